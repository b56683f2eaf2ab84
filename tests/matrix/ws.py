"""WebSocket frames (RFC 6455 5.2), as much as an echo needs."""
import base64
import hashlib
import os
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accept(key):
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def xor(data, key):
    pad = (key * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")


def frame(first, data, masked):
    n, bit = len(data), 128 if masked else 0
    head = bytes([first, bit | n]) if n < 126 else (
        struct.pack(">BBH", first, bit | 126, n) if n < 65536 else struct.pack(">BBQ", first, bit | 127, n))
    if not masked:
        return head + data
    key = os.urandom(4)
    return head + key + xor(data, key)


def read(exactly):
    """One frame: its first byte and its data.  exactly(n) gives n bytes or raises EOFError."""
    first, n = exactly(2)
    masked, n = n & 128, n & 127
    if n > 125:
        n = int.from_bytes(exactly(2 if n == 126 else 8), "big")
    key = exactly(4) if masked else None
    data = exactly(n)
    return first, xor(data, key) if key else data


def talk(exactly, send, sizes):
    """A client's side: messages of these sizes, each awaited, then the close."""
    for n in sizes:
        data = os.urandom(n).hex()[:n].encode()
        send(frame(0x81, data, True))
        if read(exactly) != (0x81, data):
            raise ValueError("a message of %d bytes came back as another" % n)
    send(frame(0x88, b"\x03\xe8", True))
    try:
        first, _ = read(exactly)
    except EOFError:
        return                      # some answer the close by closing
    if first != 0x88:
        raise ValueError("a message behind the close")
