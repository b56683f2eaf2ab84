# Target `llhttp`.  From the system when its pkg-config file says 9.4.2 or newer;
# else from the C sources that Debian's node-llhttp installs (8.1), where being
# strict is a matter of how they are compiled.  lib/http adds its own checks
# before and after, so that both are equally strict.

find_package(PkgConfig QUIET)
pkg_check_modules(LLHTTP QUIET IMPORTED_TARGET libllhttp>=9.4.2)
add_library(llhttp INTERFACE)
if(LLHTTP_FOUND)
  target_link_libraries(llhttp INTERFACE PkgConfig::LLHTTP)
else()
  find_path(LLHTTP_HEADER llhttp.h PATHS /usr/share/include/llhttp /usr/include/node)
  find_path(LLHTTP_SOURCE llhttp.c PATHS /usr/share/llhttp)
  if(NOT LLHTTP_HEADER OR NOT LLHTTP_SOURCE)
    message(FATAL_ERROR "llhttp not found: install libllhttp >= 9.4.2, or Debian's node-llhttp")
  endif()
  add_library(llhttp_source STATIC
    ${LLHTTP_SOURCE}/llhttp.c ${LLHTTP_SOURCE}/api.c ${LLHTTP_SOURCE}/http.c)
  target_include_directories(llhttp_source SYSTEM PUBLIC ${LLHTTP_HEADER})
  target_compile_definitions(llhttp_source PRIVATE LLHTTP_STRICT_MODE=1)
  target_compile_options(llhttp_source PRIVATE -w $<$<NOT:$<CONFIG:Debug>>:-O3>)
  target_link_libraries(llhttp INTERFACE llhttp_source)

  # A second copy for long heads on processors with SSE4.2, which is asked when the
  # program starts: it reads names and values 16 bytes at a time.  One object in which all but
  # the entry is local, so that both copies can be linked into one program.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8
     AND CMAKE_LINKER AND CMAKE_OBJCOPY)
    add_library(llhttp_sse42_parts OBJECT
      ${LLHTTP_SOURCE}/llhttp.c ${LLHTTP_SOURCE}/api.c ${LLHTTP_SOURCE}/http.c)
    target_include_directories(llhttp_sse42_parts SYSTEM PRIVATE ${LLHTTP_HEADER})
    target_compile_definitions(llhttp_sse42_parts PRIVATE
      LLHTTP_STRICT_MODE=1 llhttp_execute=llhttp_execute_sse42)
    target_compile_options(llhttp_sse42_parts PRIVATE -w -msse4.2 $<$<NOT:$<CONFIG:Debug>>:-O3>)
    set_target_properties(llhttp_sse42_parts PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
    set(whole ${CMAKE_BINARY_DIR}/llhttp_sse42.o)
    add_custom_command(OUTPUT ${whole}
      COMMAND ${CMAKE_LINKER} -r $<TARGET_OBJECTS:llhttp_sse42_parts> -o ${whole}
      COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=llhttp_execute_sse42 ${whole}
      DEPENDS llhttp_sse42_parts $<TARGET_OBJECTS:llhttp_sse42_parts>
      COMMAND_EXPAND_LISTS VERBATIM)
    add_library(llhttp_sse42 STATIC ${whole})
    set_target_properties(llhttp_sse42 PROPERTIES LINKER_LANGUAGE C)
    set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_link_libraries(llhttp INTERFACE llhttp_sse42)
    target_compile_definitions(llhttp INTERFACE THIMBLE_LLHTTP_SSE42=1)
  endif()
endif()
