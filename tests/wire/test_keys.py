"""Keys whose effect no other story shows: with one value this happens, with another that."""
import os
import socket
import threading
import time

import pytest

from harness import config, free_port, octets, wait_until


def test_listen_services_and_routes(stage):
    o = stage.origin()
    p = stage.text("""
listen: 127.0.0.1:@PORT@
services: {app: '%s'}
routes: [{service: app}]
""" % o.address)
    assert stage.client(p).get("/x").text() == "GET /x 0"


def test_connections(stage):
    p = stage.proxy({}, routes=["{answer: {status: 201}}"], limits={"connections": 3})
    inside = [stage.client(p) for _ in range(3)]
    assert [c.get("/").status for c in inside] == [201] * 3
    late = stage.client(p).request("GET", "/")
    assert late.silent(0.2)
    inside[0].close()
    assert late.answer().status == 201


@pytest.mark.parametrize("limit,status", [("1KiB", 502), ("4KiB", 200)])
def test_answer_head(stage, limit, status):
    def script(c):
        c.request()
        c.reply("x", "X-Long: " + "y" * 2000)
    p = stage.proxy(stage.origin(script), limits={"answer_head": limit})
    assert stage.client(p).get("/").status == status


@pytest.mark.parametrize("limit,status", [("1KiB", 400), ("4KiB", 200)])
def test_chunk_overhead(stage, limit, status):
    c = stage.client(stage.proxy(stage.origin(), limits={"chunk_overhead": limit}))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n1;%s\r\nx\r\n0\r\n\r\n" % ("e" * 2000))
    assert c.answer().status == status


def held_back(stage, limits, read):
    """How much of an endless answer the proxy takes for a client that reads no more than `read` bytes."""
    taken, started = [0], threading.Event()

    def script(c):
        c.request()
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        c.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20))
        piece = octets("x" * 16384)
        while taken[0] < 64 << 20:
            c.send(piece)
            taken[0] += len(piece)
            started.set()
    p = stage.proxy(stage.origin(script), limits=limits, timeouts={"write": "20s", "between_bytes": "20s"})
    c = stage.client(p, receive_buffer=65536 if read else 8192, patience=20)
    c.request("GET", "/")
    if read:
        c.sock.settimeout(20)
        c.exactly(read)
    started.wait(10)
    last = [-1, 0]

    def still():
        last[1] = last[1] + 1 if taken[0] == last[0] else 0
        last[0] = taken[0]
        return last[1] > 60
    wait_until(still, "the proxy to stop reading")
    return taken[0] - read


def test_unsent(stage):
    few = held_back(stage, {"unsent": "4KiB"}, 0)
    many = held_back(stage, {"unsent": "off"}, 0)
    assert few < 1 << 20 and few * 2 < many, (few, many)


def test_receive_window(stage):
    few = held_back(stage, {"receive_window": "64KiB"}, 16 << 20)
    many = held_back(stage, {"receive_window": "4MiB"}, 16 << 20)
    assert few * 2 < many, (few, many)


def broken(c):
    try:
        c.send("x")
        return False
    except OSError:
        return True


@pytest.mark.parametrize("linger", [
    pytest.param("off", marks=pytest.mark.whole_calls("a close with bytes unread may take the answer with it")), "1m"])
def test_linger(stage, linger):
    p = stage.proxy({}, routes=["{answer: {status: 404}}"], timeouts={"linger": linger})
    c = stage.client(p)
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nabc")
    assert c.answer().status == 404
    if linger == "off":
        wait_until(lambda: broken(c), "a reset")
        return
    for _ in range(20):
        assert not broken(c)
        time.sleep(0.01)     # what must not happen is a reset
    c.close()


@pytest.mark.parametrize("level,told", [("warn", False), ("info", True)])
def test_level(stage, level, told):
    port = free_port()
    text = config({}, routes=["{answer: {}}"], log="level: %s, access: off" % level).replace("@PORT@", str(port))
    p = stage.start(["run", "-c", stage.file("a.yaml", text)], port=port, ready=told)

    def answers():
        try:
            return stage.client(p).get("/").status == 200
        except ConnectionRefusedError:
            return False
    wait_until(answers, "the program to listen")
    p.stop()
    assert ("ready" in p.err.text()) == told


def test_error(stage):
    path = str(stage.folder / "error.log")
    port = free_port()
    text = config({}, routes=["{answer: {}}"], log="error: %s, access: off" % path).replace("@PORT@", str(port))
    p = stage.start(["run", "-c", stage.file("a.yaml", text)], port=port, ready=False)
    wait_until(lambda: os.path.exists(path) and "ready" in open(path).read(), "the line in the file")
    assert stage.client(p).get("/").status == 200
    p.stop()
    assert "served" in open(path).read()


@pytest.mark.parametrize("buffer", ["4KiB", "8MiB"])
def test_buffer(stage, buffer):
    path, n = str(stage.folder / "pipe"), 2000
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)     # and does not read
    p = stage.proxy({}, routes=["{answer: {}}"], log="access: %s, buffer: %s, format: json" % (path, buffer))
    c = stage.client(p)
    for _ in range(n):
        c.get("/")
    if buffer == "4KiB":
        p.err.wait("records dropped from the access log")
        os.close(reader)
        return
    lines = [0]

    def all_there():
        try:
            lines[0] += os.read(reader, 1 << 20).count(b"\n")
        except BlockingIOError:
            pass
        return lines[0] == n
    wait_until(all_there, "every line")
    assert "dropped" not in p.err.text()
    os.close(reader)


def test_defaults(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{service: app}", "{path: /own, service: app, body_limit: 20B}"],
                    more="defaults: {via: edge, host: h.test, body_limit: 10B, response_headers: {set: {X-A: b}}}\n")
    c = stage.client(p)
    assert c.post("/", "0123456789").get("X-A") == "b"
    r = o.wait(1)[0]
    assert r.get("Via") == "1.1 edge" and r.get("Host") == "h.test"
    assert stage.client(p).post("/", "0123456789+").status == 413
    assert stage.client(p).post("/own", "0123456789+").status == 200


def test_path_prefix(stage):
    p = stage.proxy({}, routes=["{path: {prefix: /a}, answer: {status: 201}}", "{answer: {status: 404}}"])
    assert [stage.client(p).get(t).status for t in ("/a", "/a/", "/a/b", "/ab", "/")] == [201, 201, 201, 404, 404]


def test_time_outs_of_a_route(stage):
    def script(c):
        r = c.request()
        if r.get("Upgrade"):
            c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        else:
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        c.hold()
    o = stage.origin(script)
    p = stage.proxy(o, routes=["{service: app, timeouts: {between_bytes: 300ms, tunnel: 300ms}}"],
                    timeouts={"between_bytes": "1h", "tunnel": "1h"})
    c = stage.client(p).request("GET", "/")
    assert c.head().status == 200 and c.ended() == b"abc"
    c = stage.client(p).request("GET", "/", "Connection: Upgrade", "Upgrade: websocket")
    assert c.answer().status == 101 and c.ended() == b""
    assert [line["cause"] for line in p.log(2)] == ["answer_stalled", "tunnel_idle"]
