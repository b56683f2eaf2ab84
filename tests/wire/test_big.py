"""64 MiB each way, sized and in chunks, and not a byte is another."""
import hashlib
import random
import threading

import pytest

PIECE = random.Random(7).randbytes(1 << 18)
SIZE = 64 << 20
TIMES = {"first_byte": "60s", "between_bytes": "20s", "body": "20s", "write": "20s"}


def expected():
    h = hashlib.sha256()
    for _ in range(SIZE // len(PIECE)):
        h.update(PIECE)
    return h.hexdigest()


def pour(stream, chunked):
    """Sends the body in pieces of changing sizes."""
    sizes, sent = random.Random(3), 0
    for _ in range(SIZE // len(PIECE)):
        at = 0
        while at < len(PIECE):
            n = min(sizes.choice((1, 100, 16384, 65536, 200000)), len(PIECE) - at)
            data = PIECE[at:at + n]
            stream.send(b"%x\r\n" % n + data + b"\r\n" if chunked else data)
            at += n
            sent += n
    if chunked:
        stream.send("0\r\n\r\n")
    assert sent == SIZE


def framing(chunked):
    return "Transfer-Encoding: chunked" if chunked else "Content-Length: %d" % SIZE


@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_down(stage, chunked):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n%s\r\n\r\n" % framing(chunked))
        pour(c, chunked)
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script), timeouts=TIMES), patience=60)
    h = hashlib.sha256()
    a = c.request("GET", "/").answer(sink=h.update)
    assert a.whole and h.hexdigest() == expected()


@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "chunked"])
def test_up(stage, chunked):
    h = hashlib.sha256()

    def script(c):
        c.request(sink=h.update)
        c.reply(h.hexdigest())
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script), timeouts=TIMES), patience=60)
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n" % framing(chunked))
    pour(c, chunked)
    assert c.answer().text() == expected()


def test_both_ways_at_once(stage):
    """The origin sends back what comes while it comes."""
    def script(c):
        r = c.head()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.body(r, lambda data: c.send(b"%x\r\n" % len(data) + data + b"\r\n"))
        c.send("0\r\n\r\n")
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script), timeouts=TIMES), patience=60)
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n" % framing(True))
    t = threading.Thread(target=pour, args=(c, True), daemon=True)
    t.start()
    h = hashlib.sha256()
    c.answer(sink=h.update)
    t.join(10)
    assert h.hexdigest() == expected()
