"""`mirror` of a route: copies go to a second service, and the requests themselves never notice."""
import threading
import time

import pytest

from harness import echo, free_port, wait_until


def mirrored(stage, app, shadow, extra="", **more):
    services = {"app": app.address, "shadow": getattr(shadow, "address", shadow)}
    return stage.proxy(services, routes=["{service: app, mirror: {service: shadow%s}}" % extra], **more)


def served(p):
    """The counters that the program tells at its end."""
    p.signal(15)
    assert p.wait() == 0
    p.check_clean()
    return dict(w.split("=", 1) for w in p.err.wait("served:").partition("served:")[2].split() if "=" in w)


def test_a_copy_is_the_request(stage):
    app, shadow = stage.origin(), stage.origin()
    c = stage.client(mirrored(stage, app, shadow))
    assert c.post("/a?b=c", b"some body", "X-One: 1", "Cookie: x=y", "Expect: 100-continue").text() == "POST /a?b=c 9"
    copy, r = shadow.wait(1)[0], app.requests[0]
    assert (copy.method, copy.target, copy.body) == ("POST", "/a?b=c", b"some body")
    assert copy.get("Expect") is None
    assert sorted(f for f in copy.fields) == sorted(f for f in r.fields if f[0] != "Expect")


def test_a_chunked_body_is_copied_with_its_length(stage):
    app, shadow = stage.origin(), stage.origin()
    c = stage.client(mirrored(stage, app, shadow))
    c.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"
           "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
    assert [c.answer().text() for _ in range(2)] == ["PUT / 5", "GET /next 0"]
    copies = {r.target: r for r in shadow.wait(2)}
    assert sorted(copies) == ["/", "/next"]
    assert copies["/"].body == b"abcde" and copies["/"].get("Content-Length") == "5"


@pytest.mark.parametrize("size, limit, copied", [(65536, "", True), (65537, "", False), (5, ", body_limit: 4B", False),
                                                 (1, ", body_limit: off", False), (1000000, ", body_limit: 1MB", True)])
def test_the_body_of_a_copy_is_bounded(stage, size, limit, copied):
    app, shadow = stage.origin(), stage.origin()
    p = mirrored(stage, app, shadow, limit)
    c = stage.client(p)
    body = bytes(i % 251 for i in range(size))
    assert c.post("/sized", body).text() == "POST /sized %d" % size
    c.send("POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % size, body, "\r\n0\r\n\r\n")
    assert c.answer().text() == "POST /chunked %d" % size
    assert c.get("/end").status == 200
    got = shadow.wait(3 if copied else 1)
    assert all(r.body == body for r in got if r.target != "/end")
    assert sorted(r.target for r in got) == (["/chunked", "/end", "/sized"] if copied else ["/end"])
    assert int(served(p).get("mirror_body_limit", 0)) == (0 if copied else 2)


@pytest.mark.parametrize("share, count", [("10%", 50), ("0.5", 250), ("1%", 5), ("0%", 0), ("100%", 500)])
def test_the_share_is_exact(stage, share, count):
    app, shadow = stage.origin(), stage.origin()
    p = mirrored(stage, app, shadow, ", share: %s" % share, workers=2)
    clients = [stage.client(p) for _ in range(10)]
    for i in range(50):
        for c in clients:
            c.request("GET", "/%d" % i)
        for c in clients:
            assert c.answer().status == 200
    if count:
        shadow.wait(count)
    n = served(p)
    assert len(shadow.requests) == count and int(n.get("mirrored", 0)) <= count
    assert "mirror_dropped" not in n


def resets(c):
    c.head()
    c.rst()


def garbage(c):
    c.head()
    c.send("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" * 50)


def hangs(c):
    c.head()
    c.wait_closed()


def endless(c):
    c.head()
    c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not c.origin.over.is_set():
        c.send("1000\r\n" + "x" * 4096 + "\r\n")


def early(c):
    """Answers and closes without having read the body."""
    c.head()
    c.send("HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("script", [resets, garbage, hangs, endless, early, None])
def test_a_bad_mirror_under_load(stage, script):
    app = stage.origin()
    shadow = stage.origin(script) if script else "127.0.0.1:%d" % free_port()
    p = mirrored(stage, app, shadow, ", timeout: 500ms")
    body = b"b" * 20000
    faults = []

    def load():
        try:
            c = stage.client(p)
            for i in range(30):
                a = c.post("/%d" % i, body) if i % 2 else c.get("/%d" % i)
                assert a.status == 200 and a.text().endswith(str(len(body) if i % 2 else 0))
        except BaseException as e:  # noqa: B902
            faults.append(e)
    threads = [threading.Thread(target=load) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults
    assert len(app.requests) == 240 and app.connections <= 8
    n = served(p)
    told = sum(int(n.get(k, 0)) for k in ("mirrored", "mirror_failed", "mirror_dropped", "mirror_body_limit"))
    assert told <= 240 and int(n.get("mirror_body_limit", 0)) == 0


def test_the_answer_does_not_wait(stage):
    """While every copy hangs, requests are answered as without a mirror."""
    app, shadow = stage.origin(), stage.origin(hangs)
    p = mirrored(stage, app, shadow, ", timeout: 30s")
    c = stage.client(p)
    began = time.monotonic()
    for _ in range(50):
        assert c.get("/").status == 200
    assert time.monotonic() - began < 5
    shadow.wait(50, heads=True)


def test_copies_are_bounded(stage):
    app, shadow = stage.origin(), stage.origin(hangs)
    p = mirrored(stage, app, shadow, ", timeout: 60s", limits={"calls": 6}, timeouts={"drain": "60s"})
    c = stage.client(p)
    for _ in range(10):
        assert c.get("/").status == 200
    shadow.wait(3, heads=True)
    n = served(p)   # and the end does not wait for those that hang
    assert len(shadow.heads) == 3 and n["mirror_dropped"] == "7"


def test_a_full_mirror_drops(stage):
    app, shadow = stage.origin(), stage.origin(hangs)
    p = mirrored(stage, app, "{endpoints: ['%s'], max_connections: 2}" % shadow.address, ", timeout: 30s")
    c = stage.client(p)
    for _ in range(6):
        assert c.get("/").status == 200
    shadow.wait(2, heads=True)
    assert served(p)["mirror_dropped"] == "4" and shadow.connections == 2


def test_a_client_that_leaves_in_its_body(stage):
    app, shadow = stage.origin(), stage.origin()
    p = mirrored(stage, app, shadow)
    c = stage.client(p)
    c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
    app.wait(1, heads=True)
    c.rst()
    p.log(1)
    assert stage.client(p).get("/x").status == 200
    assert [r.target for r in shadow.wait(1)] == ["/x"]


def test_a_mirror_behind_auth(stage):
    def who(c):
        while True:
            r = c.request()
            if not r:
                return
            c.reply("", status="200 OK" if r.get("Cookie") else "403 No")
    app, shadow, auth = stage.origin(), stage.origin(), stage.origin(who)
    p = stage.proxy({"app": app.address, "shadow": shadow.address, "who": auth.address},
                    routes=["{service: app, auth: {service: who}, mirror: {service: shadow}}"])
    c = stage.client(p)
    assert c.post("/in", b"x" * 50000, "Cookie: yes").status == 200
    assert c.get("/out").status == 403
    assert c.get("/last", "Cookie: yes").status == 200
    copies = {r.target: r.body for r in shadow.wait(2)}     # in any order: nobody waits for them
    assert copies == {"/in": b"x" * 50000, "/last": b""}


def test_a_mirror_that_comes_back(stage):
    app, shadow = stage.origin(), stage.origin()
    port = shadow.port
    p = mirrored(stage, app, shadow)
    shadow.stop_listening()
    c = stage.client(p)
    assert c.get("/1").status == 200
    back = stage.origin(echo, port=port)
    wait_until(lambda: c.get("/2").status == 200 and back.requests, "the mirror to be used again", 5)
