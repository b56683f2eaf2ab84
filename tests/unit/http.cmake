thimble_test(test_head SOURCES unit/test_head.c ROOMS http base)
thimble_test(test_chunked SOURCES unit/test_chunked.c ROOMS http base)
thimble_test(test_framing SOURCES unit/test_framing.c unit/h1_trace.c ROOMS http base)
thimble_test(test_h1 SOURCES unit/test_h1.c unit/h1_trace.c ROOMS http base)
