"""How many shake hands at once, who waits, and for how long."""
import re
import ssl

import pytest

from harness import config
from test_tls import certificate, context, pipe


def start(stage, limits=None, timeouts=None):
    cert, key = certificate(stage)
    p = stage.text(config({}, listen="tls: {certificates: [{cert: %s, key: %s}]}" % (cert, key), routes=["{answer: {}}"],
                          limits=limits, timeouts=timeouts))
    return p, context(cert)


def hello(ctx):
    """An SSL object over memories, and its first message."""
    s, i, o = pipe(ctx)
    with pytest.raises(ssl.SSLWantReadError):
        s.do_handshake()
    return s, i, o, o.read()


def begun(stage, p, ctx):
    """A connection that has said hello, and the rest of what is needed to go on."""
    s, i, o, first = hello(ctx)
    c = stage.client(p)
    c.send(first)
    return c, s, i, o


def finish(c, s, i, o):
    """Its handshake ends well, and a request is answered."""
    while True:
        try:
            s.do_handshake()
            break
        except ssl.SSLWantReadError:
            if o.pending:
                c.send(o.read())
            assert c.buf or c.more()
            i.write(c.take(len(c.buf)))
    c.send(o.read())
    s.write(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    c.send(o.read())
    while True:
        try:
            return s.read(65536)
        except ssl.SSLWantReadError:
            assert c.more()
            i.write(c.take(len(c.buf)))


@pytest.mark.true_edges("whose hello is whole first is chance there")
def test_handshakes_are_bounded_and_more_wait(stage):
    p, ctx = start(stage, limits={"handshakes": 2})
    held = [begun(stage, p, ctx) for _ in range(2)]
    for c, *_ in held:
        assert c.more()         # the server's part is here
    waiting = [begun(stage, p, ctx) for _ in range(3)]
    assert all(c.silent(0.1) for c, *_ in waiting)
    assert finish(*held[0]).startswith(b"HTTP/1.1 200 ")
    assert waiting[0][0].more()         # in the order in which they came
    assert waiting[1][0].silent(0.1)
    held[1][0].close()
    assert waiting[1][0].more()
    waiting[0][0].close()
    for one in (waiting[1], waiting[2]):
        assert finish(*one).startswith(b"HTTP/1.1 200 ")
    p.stop()
    assert "handshakes_queued=3" in p.err.text()


@pytest.mark.true_edges("whose hello is whole first is chance there")
def test_who_waits_for_a_handshake_has_a_bounded_place(stage):
    p, ctx = start(stage, limits={"handshakes": 1, "queue": "1KiB"}, timeouts={"handshake": "20s"})
    first = begun(stage, p, ctx)
    assert first[0].more()
    _, _, _, bytes_of_hello = hello(ctx)
    waiting = []
    for _ in range(128):        # 8 bytes each
        waiting.append(stage.client(p))
        waiting[-1].send(bytes_of_hello)
    late = stage.client(p)
    late.send(bytes_of_hello)
    assert late.ended() == b""
    p.err.wait("too many connections wait for their TLS handshake")
    assert finish(*first).startswith(b"HTTP/1.1 200 ")
    for c in waiting:
        assert c.more()
        c.close()
    p.stop()
    assert "handshakes_full=1" in p.err.text()


def test_whoever_keeps_others_from_shaking_hands_gives_way(stage):
    """Two connections that say no more than hello do not shut out a third."""
    p, ctx = start(stage, limits={"handshakes": 2}, timeouts={"handshake": "60s"})
    silent = [begun(stage, p, ctx) for _ in range(2)]
    for s in silent:
        assert s[0].more()
    assert finish(*begun(stage, p, ctx)).startswith(b"HTTP/1.1 200 ")
    silent[0][0].ended()
    assert finish(*silent[1]).startswith(b"HTTP/1.1 200 ")      # nobody waits for it any more
    p.stop()
    assert "handshake_slow=1" in p.err.text()


@pytest.mark.parametrize("place", ["shaking", "waiting"])
def test_a_handshake_that_does_not_end(stage, place):
    p, ctx = start(stage, limits={"handshakes": 1}, timeouts={"handshake": "300ms", "head": "10s"})
    c, *_ = begun(stage, p, ctx)
    assert c.more()
    if place == "waiting":
        other, *_ = begun(stage, p, ctx)
        other.ended()           # it may have had its turn when the other was out of time
    c.ended()
    p.err.wait("the TLS handshake did not end in time")
    p.stop()
    assert re.search(r"handshake_timeout=%d\b" % (2 if place == "waiting" else 1), p.err.text())


def test_the_memory_of_many_handshakes_is_given_back(stage):
    p, ctx = start(stage)
    many = [begun(stage, p, ctx) for _ in range(16)]
    for c, *_ in many:
        assert c.more()
    for one in many[1:]:
        assert finish(*one).startswith(b"HTTP/1.1 200 ")
    p.err.wait("a wave is over: the heap was given back")
    assert finish(*many[0]).startswith(b"HTTP/1.1 200 ")
