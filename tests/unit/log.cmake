# The logs: the ring, the lines, the writer thread.
thimble_test(test_logring SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_logring.c ROOMS base LIBS Threads::Threads)
