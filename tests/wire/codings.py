"""Decoders of content codings: gzip with Python's zlib, br and zstd with the libraries that the program's
encoders come with, so that what one made another reads."""
import ctypes
import zlib

NAMES = ("gzip", "br", "zstd")
ROOM = 65536


class Gzip:
    def __init__(self):
        self.z = zlib.decompressobj(31)

    def feed(self, data):
        out = self.z.decompress(data)
        assert not self.z.unused_data
        return out

    @property
    def ended(self):
        return self.z.eof


class Br:
    def __init__(self):
        self.lib = ctypes.CDLL("libbrotlidec.so.1")
        self.lib.BrotliDecoderCreateInstance.restype = ctypes.c_void_p
        self.state = ctypes.c_void_p(self.lib.BrotliDecoderCreateInstance(None, None, None))
        self.ended = False

    def feed(self, data):
        room = ctypes.create_string_buffer(ROOM)
        at, left, out = ctypes.c_char_p(data), ctypes.c_size_t(len(data)), b""
        while True:
            to, free = ctypes.c_void_p(ctypes.addressof(room)), ctypes.c_size_t(ROOM)
            rc = self.lib.BrotliDecoderDecompressStream(self.state, ctypes.byref(left), ctypes.byref(at),
                                                        ctypes.byref(free), ctypes.byref(to), None)
            out += room.raw[:ROOM - free.value]
            assert rc, "not br"
            self.ended = rc == 1
            if rc != 3:                 # it needs no more room
                assert not left.value
                return out

    def __del__(self):
        self.lib.BrotliDecoderDestroyInstance(self.state)


class Buffer(ctypes.Structure):
    _fields_ = [("p", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


class Zstd:
    def __init__(self):
        self.lib = ctypes.CDLL("libzstd.so.1")
        self.lib.ZSTD_createDStream.restype = ctypes.c_void_p
        self.lib.ZSTD_decompressStream.restype = ctypes.c_size_t
        self.state = ctypes.c_void_p(self.lib.ZSTD_createDStream())
        self.ended = False

    def feed(self, data):
        room, held, out = ctypes.create_string_buffer(ROOM), ctypes.create_string_buffer(data, len(data)), b""
        i = Buffer(ctypes.addressof(held), len(data), 0)
        full = False
        while i.pos < i.size or full:
            assert not self.ended, "bytes behind the end"
            o = Buffer(ctypes.addressof(room), ROOM, 0)
            rc = self.lib.ZSTD_decompressStream(self.state, ctypes.byref(o), ctypes.byref(i))
            assert not self.lib.ZSTD_isError(ctypes.c_size_t(rc)), "not zstd"
            out += room.raw[:o.pos]
            self.ended = rc == 0
            full = o.pos == ROOM
        return out

    def __del__(self):
        self.lib.ZSTD_freeDStream(self.state)


def decoder(name):
    return {"gzip": Gzip, "br": Br, "zstd": Zstd}[name]()


def decode(name, data):
    """All of a whole body."""
    d = decoder(name)
    out = d.feed(data)
    assert d.ended, "the coding has no end"
    return out
