"""What goes wrong at byte N, for each N: an origin that resets, ends or stalls, a client that ends its side or stalls.

Beside the origin with the fault there is a good one, which is asked when nothing else is left to ask (`serving`): so the first
try always meets the fault.  Nothing may hang, no POST may be seen twice, nobody may take a part for the whole.  The long
form has every N, the short one some."""
import socket
import time

import pytest

from harness import config, wait_until
from test_cut import unsent

SIZED = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Fill: " + b"f" * 220 + b"\r\nContent-Length: 5\r\n\r\nhello")
CHUNKED = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Fill: " + b"f" * 210 + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n")
BODIES = {"sized": b"hello", "chunked": b"helloworld"}
ANSWERS = {"sized": SIZED, "chunked": CHUNKED}


def points(n, long):
    """Every byte; or about thirty, with both ends."""
    return sorted({*range(0, n, 1 if long else max(1, n // 30)), 1, n - 1})


def two(stage, script, retry="", **more):
    """The program, the origin with the fault, and the good one."""
    counts = {}

    def counted(c):
        while True:
            r = c.request()
            if r is None:
                return
            counts.setdefault(r.target, []).append("bad")
            if script(c, r):
                return

    def good(c):
        while True:
            r = c.request()
            if r is None:
                return
            counts.setdefault(r.target, []).append("good")
            c.reply("good")
    a, b = stage.origin(counted, backlog=1024), stage.origin(good, backlog=1024)
    ends = ("{endpoints: [{address: '%s'}, {address: '%s', state: serving}], eject: off, retry_budget: {ratio: 1, min_per_second: 1000}}"
            % (a.address, b.address))      # every request fails once here
    return stage.text(config({"app": ends}, routes=["{service: app%s}" % retry], **more)), counts


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_an_origin_that_ends_at_byte_n(stage, framing, method, how, long):
    answer = ANSWERS[framing]
    head = answer.index(b"\r\n\r\n") + 4

    def script(c, r):
        n = int(r.target[1:])
        c.send(answer[:n])
        if how == "rst":
            wait_until(lambda: unsent(c.sock) == 0, "the bytes to be taken")
            c.rst()
        return True
    p, counts = two(stage, script)
    for n in points(len(answer), long):
        c = stage.client(p)
        began = time.monotonic()
        c.request(method, "/%d" % n, "Connection: close", body=b"x" if method == "POST" else None)
        got = c.ended()
        tries = counts["/%d" % n]
        assert time.monotonic() - began < 2, n
        if n < head and method == "GET":
            assert got.endswith(b"\r\n\r\ngood") and tries == ["bad", "good"], (n, got)
        elif n < head:
            assert got.startswith(b"HTTP/1.1 502 ") and tries == ["bad"], (n, got)
        elif how == "rst" and tries == ["bad", "good"]:
            assert method == "GET" and got.endswith(b"good")    # the reset overtook what came before it
        elif got.startswith(b"HTTP/1.1 502 "):
            assert how == "rst" and tries == ["bad"]
        else:
            assert tries == ["bad"] and got.startswith(b"HTTP/1.1 200 "), (n, got)
            assert not got.endswith(BODIES["sized"] if framing == "sized" else b"0\r\n\r\n"), (n, got)
        c.close()


def at_once(stage, p, targets, send):
    """A client for each target, all at one time: {target: (what it got, seconds)}, each read to its end."""
    clients = {}
    for t in targets:
        c = stage.client(p)
        clients[t] = c, time.monotonic()
        send(c, t)
    got = {}
    left = dict(clients)
    for c, _ in clients.values():
        c.sock.setblocking(False)

    def look():
        for t, (c, began) in list(left.items()):
            try:
                while c.more():
                    pass
            except BlockingIOError:
                continue
            except ConnectionResetError:
                pass
            got[t] = bytes(c.buf), time.monotonic() - began
            del left[t]
        return not left
    wait_until(look, "all answers to end")
    return got


@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_an_origin_that_stalls_at_byte_n(stage, framing, long):
    answer = ANSWERS[framing]
    head = answer.index(b"\r\n\r\n") + 4

    def script(c, r):
        c.send(answer[:int(r.target[1:])])
        c.wait_closed()
        return True
    p, counts = two(stage, script, timeouts={"first_byte": "600ms", "between_bytes": "900ms"})
    got = at_once(stage, p, points(len(answer), long), lambda c, n: c.request("GET", "/%d" % n, "Connection: close"))
    for n, (text, took) in got.items():
        if n < head:
            assert text.startswith(b"HTTP/1.1 504 ") and 0.55 < took < 1.4, (n, took, text)
        else:
            assert text.startswith(b"HTTP/1.1 200 ") and not text.endswith(b"0\r\n\r\n") and 0.8 < took < 1.9, (n, took, text)
        assert counts["/%d" % n] == ["bad"]


def test_an_origin_that_stalls_is_left_for_another_where_the_route_says_so(stage, long):
    def script(c, r):
        c.send(SIZED[:int(r.target[1:])])
        c.wait_closed()
        return True
    p, counts = two(stage, script, ", retry: {on: [timeout], per_try_timeout: 300ms}")
    head = SIZED.index(b"\r\n\r\n") + 4
    got = at_once(stage, p, [n for n in points(len(SIZED), long) if n < head],
                  lambda c, n: c.request("GET", "/%d" % n, "Connection: close"))
    assert not [(n, text, took) for n, (text, took) in got.items() if not text.endswith(b"good") or took > 2]
    assert all(t == ["bad", "good"] for t in counts.values())


REQUEST = {
    "sized": b"POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: 20\r\n\r\n" + b"b" * 20,
    "chunked": (b"POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"5\r\nhello\r\nf\r\n" + b"c" * 15 + b"\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_a_client_that_stalls_at_byte_n(stage, framing, long):
    o = stage.origin()
    p = stage.proxy(o, timeouts={"head": "500ms", "body": "800ms", "idle": "500ms"})
    text = REQUEST[framing]
    head = text.index(b"\r\n\r\n") + 4
    got = at_once(stage, p, points(len(text), long)[1:], lambda c, n: c.send(text[:n]))
    for n, (answer, took) in got.items():
        assert answer.startswith(b"HTTP/1.1 408 "), (n, answer)
        assert (0.45 < took < 1.3) if n < head else (0.7 < took < 1.7), (n, took)
    assert not o.requests


@pytest.mark.parametrize("framing", ["sized", "chunked"])
@pytest.mark.parametrize("when", ["with the request", "before the answer", "inside the answer"])
def test_a_client_that_ends_its_side(stage, framing, when):
    def script(c, r):
        if when == "before the answer":
            at.append("asked")
            go()
        c.send(ANSWERS[framing][:-8])
        if when == "inside the answer":
            at.append("begun")
            go()
        c.send(ANSWERS[framing][-8:])
    at, ended = [], []

    def go():
        wait_until(lambda: ended, "the client's end")
    p, _ = two(stage, script)
    c = stage.client(p)
    c.request("GET", "/")
    if when != "with the request":
        wait_until(lambda: at, "the origin")
    c.fin()
    ended.append(True)
    got = c.ended()
    assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(b"hello" if framing == "sized" else b"0\r\n\r\n")


@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_an_origin_that_ends_its_side_with_the_answer(stage, framing):
    def script(c, r):
        c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)      # in one segment
        c.send(ANSWERS[framing])
        c.fin()
        c.wait_closed()
        return True
    p, counts = two(stage, script)
    c = stage.client(p)
    for i in range(5):
        a = c.get("/%d" % i)
        assert a.status == 200 and a.body == BODIES[framing]
    assert all(t == ["bad"] for t in counts.values())


@pytest.mark.parametrize("size", [100, 70000, 3000000])
@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_a_body_of_any_size_goes_on_when_there_was_no_connection(stage, size, framing):
    """Nothing was sent, so a POST is safe; what came with its head is kept, and the rest is not read before there is a connection."""
    from harness import free_port
    seen = []

    def script(c):
        while True:
            r = c.head()
            if r is None:
                return
            n = [0]
            c.body(r, lambda data: n.__setitem__(0, n[0] + len(data)))
            seen.append(n[0])
            c.reply("%d" % n[0])
    o = stage.origin(script)
    ends = "{endpoints: [{address: '127.0.0.1:%d'}, {address: '%s', state: serving}]}" % (free_port(), o.address)
    p = stage.text(config({"app": ends}, limits={"replay": "1KiB"}))
    c = stage.client(p)
    body = b"z" * size
    if framing == "sized":
        c.send(b"POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % size + body)
    else:
        c.send(b"POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, size, 50000):
            piece = body[at:at + 50000]
            c.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
        c.send(b"0\r\n\r\n")
    assert c.answer("POST").text() == "%d" % size and seen == [size]
    assert p.log(1)[0]["retries"] == 1 and p.log(1)[0]["retry_cause"] == "connect_refused"
