# thimble_short: the program over sockets that move a few bytes at a time (short.c).
add_executable(thimble_short ${CMAKE_SOURCE_DIR}/proxy/main.c ${CMAKE_CURRENT_LIST_DIR}/short.c)
target_link_libraries(thimble_short PRIVATE proxy)
target_compile_definitions(thimble_short PRIVATE THIMBLE_VERSION="${PROJECT_VERSION}")
foreach(name recv read sendmsg send write writev splice epoll_ctl close)
  target_link_options(thimble_short PRIVATE "-Wl,--wrap=${name}")
endforeach()
