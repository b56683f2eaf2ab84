# The logs: the ring, the lines, the writer thread.  The sources are compiled in,
# so that these tests need nothing else of the proxy room.
set(LOG_SOURCES)
foreach(source access log logwriter logsink)
  list(APPEND LOG_SOURCES ${CMAKE_SOURCE_DIR}/proxy/${source}.c)
endforeach()
thimble_test(test_logring SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_logring.c ROOMS base LIBS Threads::Threads)
thimble_test(test_access SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_access.c ${LOG_SOURCES} ROOMS base LIBS Threads::Threads)
thimble_test(test_log SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_log.c ${LOG_SOURCES} ROOMS base LIBS Threads::Threads)
