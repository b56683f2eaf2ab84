# Compiler settings and the two functions that every CMakeLists.txt here uses.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

option(THIMBLE_WERROR "Warnings are errors" ON)
set(THIMBLE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")

add_library(thimble_flags INTERFACE)
target_include_directories(thimble_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(thimble_flags INTERFACE _GNU_SOURCE)
target_compile_options(thimble_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
  -Wvla -Wundef -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough
  -fno-strict-aliasing)
if(NOT CMAKE_BUILD_TYPE MATCHES Release|RelWithDebInfo)
  target_compile_options(thimble_flags INTERFACE -fno-omit-frame-pointer)
endif()
if(THIMBLE_WERROR)
  target_compile_options(thimble_flags INTERFACE -Werror)
endif()
if(THIMBLE_SANITIZE)
  add_compile_options(-fsanitize=${THIMBLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${THIMBLE_SANITIZE})
  add_compile_definitions(THIMBLE_SANITIZED=1)
else()
  target_compile_options(thimble_flags INTERFACE -fstack-protector-strong)
  target_link_options(thimble_flags INTERFACE -Wl,-z,relro,-z,now)
  if(CMAKE_BUILD_TYPE MATCHES Release|RelWithDebInfo)
    target_compile_definitions(thimble_flags INTERFACE _FORTIFY_SOURCE=2)
  endif()
endif()

# Many functions on a request's way have a second caller elsewhere, and by its own measure gcc then leaves them out of
# line: about 320 instructions a request (./dev bench instr).
if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(inlining --param=inline-unit-growth=150 --param=max-inline-insns-auto=60 --param=large-function-growth=400)
  add_compile_options(${inlining})
  add_link_options(${inlining})
endif()

# thimble_room(NAME SOURCES a.c ... ROOMS lower ... LIBS third-party ...)
# One static library per room.  LIBS stay private: their headers are seen by
# this room alone.
function(thimble_room name)
  cmake_parse_arguments(R "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
  add_library(${name} STATIC ${R_SOURCES})
  target_link_libraries(${name} PUBLIC thimble_flags ${R_ROOMS} PRIVATE ${R_LIBS})
endfunction()

# thimble_test(NAME SOURCES a.c ... ROOMS room ... LIBS ...): a cmocka program, run by ctest.
find_library(CMOCKA_LIBRARY cmocka)
function(thimble_test name)
  cmake_parse_arguments(T "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
  if(NOT CMOCKA_LIBRARY)
    return()
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE thimble_flags ${T_ROOMS} ${T_LIBS} ${CMOCKA_LIBRARY})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()
