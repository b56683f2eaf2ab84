thimble_test(test_digest SOURCES unit/test_digest.c ROOMS crypto base)
thimble_test(test_password SOURCES unit/test_password.c ROOMS crypto base)
