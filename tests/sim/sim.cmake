# Simulations of the whole proxy over a network that is made up (net.h).  --wrap sends what the proxy asks
# of lib/net and of the system there; its own code is the one that the program has.
set(SIM_WRAP loop_new loop_free loop_watch loop_rewatch loop_pass loop_wake
  socket_accept socket_bound socket_connect socket_error socket_receive_small socket_receive_large socket_reset_on_close
  recv sendmsg shutdown close clock_gettime getrandom log_access_on access_write)
set(SIM_LINK)
foreach(name ${SIM_WRAP})
  list(APPEND SIM_LINK "-Wl,--wrap=${name}")
endforeach()

add_library(simworld STATIC ${CMAKE_CURRENT_LIST_DIR}/net.c ${CMAKE_CURRENT_LIST_DIR}/oracle.c
  ${CMAKE_CURRENT_LIST_DIR}/world.c)
target_link_libraries(simworld PUBLIC thimble_flags proxy health dispatch conf net http base)
target_link_options(simworld PUBLIC ${SIM_LINK})

add_executable(sim ${CMAKE_CURRENT_LIST_DIR}/main.c ${CMAKE_CURRENT_LIST_DIR}/stories.c
  ${CMAKE_CURRENT_LIST_DIR}/stories_queue.c ${CMAKE_CURRENT_LIST_DIR}/stories_retry.c ${CMAKE_CURRENT_LIST_DIR}/stories_again.c ${CMAKE_CURRENT_LIST_DIR}/stories_admit.c
  ${CMAKE_CURRENT_LIST_DIR}/stories_call.c ${CMAKE_CURRENT_LIST_DIR}/stories_ask.c ${CMAKE_CURRENT_LIST_DIR}/stories_mirror.c
  ${CMAKE_CURRENT_LIST_DIR}/stories_stream.c ${CMAKE_CURRENT_LIST_DIR}/stories_compress.c ${CMAKE_CURRENT_LIST_DIR}/stories_basic.c
  ${CMAKE_CURRENT_LIST_DIR}/stories_slots.c
  ${CMAKE_CURRENT_LIST_DIR}/walk.c ${CMAKE_CURRENT_LIST_DIR}/bystander.c ${CMAKE_CURRENT_LIST_DIR}/origin.c)
target_link_libraries(sim PRIVATE simworld decode)
target_compile_definitions(sim PRIVATE THIMBLE_SOURCE="${CMAKE_SOURCE_DIR}")

add_test(NAME sim_stories COMMAND sim all)
add_test(NAME sim_shuffled COMMAND sim all --seed 7)
set_tests_properties(sim_stories sim_shuffled PROPERTIES TIMEOUT 120)
add_test(NAME sim_walk COMMAND sim walk --seed 1 --seeds 4000)
add_test(NAME sim_lean COMMAND sim lean --seed 1 --seeds 1000)
add_test(NAME sim_torture COMMAND sim torture --every 3)
set_tests_properties(sim_walk sim_lean sim_torture PROPERTIES TIMEOUT 120)
