foreach(name auth balance encoding mirror policy router snapshot endpoint rules sticky route limits networks rate retry idle htpasswd basic cors)
  thimble_test(test_${name} SOURCES ${CMAKE_SOURCE_DIR}/tests/unit/test_${name}.c ROOMS dispatch LIBS Threads::Threads)
endforeach()
