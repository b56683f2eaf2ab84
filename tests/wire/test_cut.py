"""Connections cut at each point: what was not whole is never taken for whole, on either side."""
import pytest

from harness import echo, wait_until

SIZED = b"POST /cut HTTP/1.1\r\nHost: a.test\r\nContent-Length: 20\r\n\r\n" + b"b" * 20
CHUNKED = (b"POST /cut HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"5\r\nhello\r\nf\r\n" + b"c" * 15 + b"\r\n0\r\n\r\n")

# A connection that was opened for a request and not used for it is kept: for so long.
SOON = {"upstream_idle": "500ms"}


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("request_bytes", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_a_request_cut_at_every_byte(stage, request_bytes, how, long):
    o = stage.origin()
    p = stage.proxy(o, timeouts=SOON)
    assert stage.client(p).get("/warm").status == 200
    for n in range(1, len(request_bytes), 1 if long else 3):
        c = stage.client(p)
        c.send(request_bytes[:n])
        if how == "fin":
            c.fin()
            got = c.ended()
            assert not got or got.startswith(b"HTTP/1.1 4"), (n, got)
        else:
            c.rst()
    assert stage.client(p).get("/after").status == 200
    assert {r.target for r in o.requests} == {"/warm", "/after"}
    for c in stage.clients:
        c.close()
    wait_until(lambda: len(o.open) <= 1, "the cut requests' upstream connections to be gone")


def test_descriptors_are_given_back(stage):
    o = stage.origin()
    p = stage.proxy(o, timeouts=SOON)
    assert stage.client(p).get("/").status == 200
    base = p.descriptors()
    for n in range(1, 60):
        c = stage.client(p)
        c.send(SIZED[:n])
        c.rst()
    wait_until(lambda: p.descriptors() <= base, "descriptors to be given back")


ANSWER = b"HTTP/1.1 200 OK\r\nX-Fill: " + b"f" * 30 + b"\r\nContent-Length: 20\r\n\r\n" + b"a" * 20
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: " + b"f" * 20 + b"\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n"


@pytest.mark.parametrize("how", ["close", "rst"])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("answer", [ANSWER, CHUNKS], ids=["sized", "chunked"])
def test_an_answer_cut_at_every_byte(stage, answer, method, how, long):
    points = sorted({*range(0, len(answer), 1 if long else 4), len(answer) - 1})
    cut = {}

    def script(c):
        r = c.request()
        if r is None:
            return
        n = int(r.target[1:])
        cut[n] = cut.get(n, 0) + 1
        c.send(answer[:n])
        if how == "rst":
            # What was sent before must arrive: the reset follows when the proxy has read it.
            wait_until(lambda: unsent(c.sock) == 0, "the bytes to be taken")
            c.rst()
    o = stage.origin(script)
    p = stage.proxy(o)
    head_ends = answer.index(b"\r\n\r\n") + 4
    for n in points:
        c = stage.client(p)
        c.request(method, "/%d" % n, body=b"x" if method == "POST" else None)
        got = c.ended() if n >= head_ends else c.answer()
        if n < head_ends:
            assert got.status == 502 and got.error, n
        elif got.startswith(b"HTTP/1.1 502"):
            assert how == "rst"     # a reset may overtake what came before it
        else:
            assert got.startswith(b"HTTP/1.1 200"), (n, got)
            assert not whole(got), (n, got)
        if method == "POST":
            assert cut[n] == 1, n   # an unsafe request is never sent again
        c.close()


def unsent(sock):
    import fcntl
    import struct
    import termios
    return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0]


def whole(got):
    head, _, body = got.partition(b"\r\n\r\n")
    if b"chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= 20


@pytest.mark.parametrize("phase", ["before the answer", "inside the answer"])
def test_a_client_that_resets_frees_the_upstream(stage, phase):
    def script(c):
        c.request()
        if phase == "inside the answer":
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        c.wait_closed()
    o = stage.origin([script, echo])
    p = stage.proxy(o, timeouts={"first_byte": "30s", "between_bytes": "30s"})
    c = stage.client(p)
    c.request("GET", "/")
    o.wait()
    if phase == "inside the answer":
        c.head()
    c.rst()
    o.wait_idle(2)
    assert stage.client(p).get("/next").text() == "GET /next 0"


def test_a_client_that_resets_while_its_body_goes_up(stage):
    def script(c):
        r = c.head()
        c.body(r)
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000\r\n\r\nabc")
    o.wait(1, heads=True)
    c.rst()
    o.wait_idle(2)
    assert not o.requests


def test_http_1_0_clients_can_tell_a_cut_too(stage):
    """Their only end of a chunked answer is the close, so a cut must be a reset."""
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    c = stage.client(stage.proxy(stage.origin(script)))
    c.request("GET", "/", version="1.0")
    assert c.was_reset()
