# Cross-compiling for musl, as build.sh sets it up in THIMBLE_STATIC.  `musl-gcc -static-pie` makes a dynamic program
# without a word, since its specs replace the link line; so the line is written out here.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES THIMBLE_STATIC)
set(CMAKE_C_COMPILER ${THIMBLE_STATIC}/bin/musl-cc)
set(CMAKE_C_COMPILER_AR gcc-ar)      # with the plugin for link-time optimization
set(CMAKE_C_COMPILER_RANLIB gcc-ranlib)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(ENV{PKG_CONFIG_LIBDIR} ${THIMBLE_STATIC}/sys/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
set(CMAKE_C_FLAGS_INIT "-isystem ${THIMBLE_STATIC}/sys/include")

set(musl /usr/lib/x86_64-linux-musl)
foreach(part crtbeginS.o crtendS.o)
  execute_process(COMMAND gcc -print-file-name=${part} OUTPUT_VARIABLE ${part} OUTPUT_STRIP_TRAILING_WHITESPACE)
endforeach()
string(CONCAT CMAKE_C_LINK_EXECUTABLE
  "gcc -static-pie -nostdlib -nostartfiles <FLAGS> <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> -Wl,--gc-sections "
  "${musl}/rcrt1.o ${musl}/crti.o ${crtbeginS.o} <OBJECTS> ${THIMBLE_ALLOCATOR} -o <TARGET> -L${musl} -L${THIMBLE_STATIC}/sys/lib "
  "-Wl,--start-group <LINK_LIBRARIES> -lssl -lcrypto -lbrotlienc -lbrotlicommon -lc -lgcc -lgcc_eh -Wl,--end-group "
  "${crtendS.o} ${musl}/crtn.o")
