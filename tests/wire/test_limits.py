"""What is too much is refused, and says which limit it was; a full process waits, it does not spin."""
import resource
import threading
import time

import pytest

from harness import Client, wait_until
from test_timeouts import dead_address


def test_a_head_too_large_is_431(stage):
    o = stage.origin()
    p = stage.proxy(o, limits={"head": "4KiB"})
    assert stage.client(p).get("/", "X: " + "x" * 3000).status == 200
    c = stage.client(p)
    a = c.get("/", "X: " + "x" * 5000)
    assert a.status == 431 and c.ended() == b""
    assert len(o.requests) == 1


def test_a_head_that_never_ends_is_431_before_it_has_all_come(stage):
    c = stage.client(stage.proxy(stage.origin(), limits={"head": "4KiB"}))
    c.send("GET / HTTP/1.1\r\nHost: a.test\r\nX: " + "x" * 8000)
    assert c.answer().status == 431


def test_too_many_fields_is_431(stage):
    p = stage.proxy(stage.origin(), limits={"fields": 20})
    assert stage.client(p).get("/", *["X-%d: 1" % i for i in range(15)]).status == 200
    assert stage.client(p).get("/", *["X-%d: 1" % i for i in range(25)]).status == 431


def test_a_target_too_long_is_414(stage):
    p = stage.proxy(stage.origin(), limits={"target": "1KiB"})
    assert stage.client(p).get("/" + "a" * 900).status == 200
    assert stage.client(p).get("/" + "a" * 1100).status == 414


def test_a_sized_body_too_large_is_413_before_the_origin_hears_of_it(stage):
    o = stage.origin()
    p = stage.proxy(o, limits={"body": "1KiB"})
    assert stage.client(p).post("/", b"x" * 1024).status == 200
    c = stage.client(p)
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1025\r\n\r\n")
    assert c.answer().status == 413
    assert len(o.heads) == 1


def test_a_chunked_body_too_large_is_413_and_never_whole(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, limits={"body": "1KiB"}))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    c.send("200\r\n" + "x" * 512 + "\r\n", "201\r\n" + "x" * 513 + "\r\n", "0\r\n\r\n")
    assert c.answer().status == 413
    o.wait_idle()
    assert not o.requests


def test_a_refused_body_is_not_in_the_way_of_its_answer(stage):
    """The client sends on and on; the 413 must reach it all the same, not be lost to a reset."""
    c = stage.client(stage.proxy(stage.origin(), limits={"body": "1KiB"}))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 200000\r\n\r\n")
    try:
        c.send(b"x" * 200000)
    except OSError:
        pass
    assert c.answer().status == 413


def test_an_answers_head_too_large_is_502(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nX: " + "x" * 200000 + "\r\n\r\n")
        c.wait_closed()
    assert stage.client(stage.proxy(stage.origin(script))).get("/").status == 502


def test_heads_of_64_kib_and_200_fields_pass_by_default(stage):
    o = stage.origin()
    p = stage.proxy(o)
    fields = ["X-%d: %s" % (i, "v" * 280) for i in range(190)]
    assert stage.client(p).get("/", *fields).status == 200
    assert len([1 for n, _ in o.requests[0].fields if n.startswith("X-") and n[2].isdigit()]) == 190


def test_framing_of_a_chunked_body_is_bounded(stage):
    """One-byte chunks, each with a long extension."""
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(200):
            c.send(("1;" + "e" * 15000 + "\r\nx\r\n") * 10)
            if c.buf or not c.silent(0.0005):
                break
    except OSError:
        pass
    got = c.ended()
    assert not got or got.startswith(b"HTTP/1.1 4"), got[:80]
    o.wait_idle()
    assert not o.requests


def test_connection_with_too_many_names_is_400(stage):
    o = stage.origin()
    p = stage.proxy(o)
    assert stage.client(p).get("/", "Connection: " + ", ".join("x-%d" % i for i in range(90))).status == 200
    c = stage.client(p)
    assert c.get("/", "Connection: " + ", ".join("x-%d" % i for i in range(110))).status == 400
    assert c.ended() == b"" and len(o.requests) == 1


def test_a_full_queue_is_503(stage):
    # 64 connects that nobody accepts, and 1 KiB of queue behind the first: 127 more requests wait, the next is told
    p = stage.proxy({"app": dead_address(stage)}, limits={"queue": "1KiB"}, timeouts={"connect": "20s"}, workers=1)
    waiting = [stage.client(p).request("GET", "/") for _ in range(64 + 127)]
    assert all(c.silent(0.01) for c in waiting[-3:])
    late = [stage.client(p).get("/late") for _ in range(3)]
    assert [a.status for a in late] == [503] * 3
    assert all("connection_limit_reached" in a.get("Proxy-Status") for a in late)
    for c in waiting:
        c.close()


def test_without_descriptors_accepting_waits_and_comes_back(stage):
    p = stage.proxy(stage.origin(), ceilings=[(resource.RLIMIT_NOFILE, 96)])
    waiting = []
    for _ in range(200):
        try:
            waiting.append(Client(p.address, patience=3))
        except OSError:
            break
    stage.clients += waiting
    assert len(waiting) > 96

    def calm():
        before, start = p.cpu(), time.monotonic()
        time.sleep(0.5)      # what is measured is the processor time of an interval
        return (p.cpu() - before) / (time.monotonic() - start) < 0.2
    wait_until(calm, "a full process to be at rest", 5)
    for c in waiting:
        c.close()

    def served():
        try:
            return Client(p.address, patience=1).get("/").status == 200
        except (OSError, EOFError):
            return False
    wait_until(served, "the process to serve again", 5)


def test_under_full_load_those_inside_are_served(stage):
    p = stage.proxy(stage.origin(), ceilings=[(resource.RLIMIT_NOFILE, 96)])
    inside = stage.client(p)
    assert inside.get("/").status == 200
    for _ in range(150):
        try:
            stage.client(p, patience=2)
        except OSError:
            break
    for _ in range(5):
        assert inside.get("/").status == 200


def test_without_descriptors_for_upstreams_requests_wait_and_none_fails(stage):
    p = stage.proxy(stage.origin(), ceilings=[(resource.RLIMIT_NOFILE, 80)])
    clients = []
    for _ in range(60):
        clients.append(Client(p.address, patience=5))
    stage.clients += clients
    for c in clients:
        c.request("GET", "/")
    served = [c.answer().status for c in clients if not c.silent(0.3)]
    assert served and set(served) == {200}


def test_kept_connections_of_one_service_make_room_for_another(stage):
    gate = {"/a": threading.Barrier(11), "/b": threading.Barrier(11)}

    def together(c):
        while True:
            r = c.request()
            if r is None:
                return
            try:
                gate[r.target].wait(5)      # so that each takes a connection of its own
            except threading.BrokenBarrierError:
                pass
            c.reply("x")
    a, b = stage.origin(together), stage.origin(together)
    p = stage.proxy({"a": a.address, "b": b.address}, routes=["{service: a}", "{path: /b, service: b}"],
                    ceilings=[(resource.RLIMIT_NOFILE, 64)])
    clients = [stage.client(p) for _ in range(11)]
    for path in ("/a", "/b", "/a", "/b"):
        for c in clients:
            c.request("GET", path)
        assert [c.answer().status for c in clients] == [200] * 11


def test_who_waits_for_a_descriptor_gets_one_that_others_free(stage):
    gate = threading.Event()

    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            if r.target != "/b/quick":
                gate.wait(20)
            c.reply("x")
    a, b = stage.origin(script), stage.origin(script)
    p = stage.proxy({"a": a.address, "b": b.address}, routes=["{service: a}", "{path: /b, service: b}"],
                    timeouts={"connect": "20s", "first_byte": "20s"}, ceilings=[(resource.RLIMIT_NOFILE, 256)])
    quick, busy = stage.client(p), stage.client(p)
    busy.request("GET", "/b/busy")
    b.wait(1)       # the only connection of its service stays busy
    others = [stage.client(p) for _ in range(140)]
    for c in others:
        c.request("GET", "/a")
    wait_until(lambda: p.descriptors() >= 230, "upstream connections to have taken all descriptors")
    quick.request("GET", "/b/quick")
    assert quick.silent(0.3) and len(b.heads) == 1
    for c in others:
        c.rst()
    assert quick.answer().status == 200
    gate.set()
