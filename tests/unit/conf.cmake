thimble_test(test_conf SOURCES unit/test_conf.c ROOMS conf base)
thimble_test(test_conf_tree SOURCES unit/test_conf_tree.c ROOMS conf base)
thimble_test(test_schema SOURCES unit/test_schema.c ROOMS conf base)
thimble_test(test_page SOURCES unit/test_page.c ROOMS conf base)
