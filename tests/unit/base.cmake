foreach(name mem budget slab buf arena ttl slotq chan hash num path pages base64 origin)
  thimble_test(test_${name} SOURCES unit/test_${name}.c ROOMS base)
endforeach()
