# TLS: with OpenSSL as the other side.
foreach(name tls13 tls13_take tls_io tls)
  thimble_test(test_${name} SOURCES unit/test_${name}.c unit/tls_peer.c unit/tls_inner.c ROOMS net base LIBS PkgConfig::OPENSSL)
endforeach()
thimble_test(test_watch SOURCES unit/test_watch.c ROOMS net base)
