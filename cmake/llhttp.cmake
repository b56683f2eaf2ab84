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
endif()
