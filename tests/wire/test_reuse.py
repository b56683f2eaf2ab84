"""Kept connections: used below the time for which an origin keeps them, so that it does not close one as it is used."""
import time

import pytest

from harness import config, wait_until

IDLE = {"upstream_idle": "20s"}


def test_keep_alive_says_how_long(stage):
    ended = []

    def script(c):
        c.request()
        c.reply("", "Keep-Alive: max=100, timeout=2")
        began = time.monotonic()
        c.wait_closed()
        ended.append(time.monotonic() - began)
    o = stage.origin(script)
    p = stage.proxy(o, timeouts=IDLE)
    assert stage.client(p).get("/").status == 200
    wait_until(lambda: ended, "the connection to be given up")
    assert 0.4 < ended[0] < 1.5


@pytest.mark.parametrize("value", ["timeout", "timeout=", "timeout=x", "max=5", "timeout=-1", "timeout=99999999999999999999999", ","])
def test_what_is_no_time_out_says_nothing(stage, value):
    def script(c):
        while c.request():
            c.reply("", "Keep-Alive: " + value)
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts=IDLE))
    for _ in range(3):
        a = c.get("/")
        assert a.status == 200 and not a.all("Keep-Alive")
    assert o.connections == 1


def test_closes_teach(stage):
    """The origin closes after 400 ms; when it has done so twice, no connection is left to it that long."""
    ended = []

    def script(c):
        c.sock.settimeout(0.4)
        c.request()
        c.reply("")
        began = time.monotonic()
        try:
            ended.append(("proxy" if not c.more() else "?", time.monotonic() - began))
        except TimeoutError:
            ended.append(("origin", time.monotonic() - began))
    o = stage.origin(script)
    p = stage.proxy(o, timeouts=IDLE)
    for n in range(1, 7):
        assert stage.client(p).get("/").status == 200
        wait_until(lambda: len(ended) >= n and not o.open, "its end")
    who = [w for w, _ in ended]
    assert who[:2] == ["origin", "origin"] and who[3:] == ["proxy"] * 3, ended
    assert all(0.15 < t < 0.4 for w, t in ended if w == "proxy"), ended


def test_an_origin_that_restarts_teaches_nothing(stage):
    o = stage.origin()
    p = stage.proxy(o, timeouts=IDLE)
    clients = [stage.client(p) for _ in range(4)]
    for c in clients:
        c.request("GET", "/")
    for c in clients:
        assert c.answer().status == 200
        time.sleep(0.15)
    for s in list(o.open):
        s.shutdown(2)
    o.wait_idle()
    before = o.connections
    c = stage.client(p)
    assert c.get("/").status == 200
    time.sleep(1)
    assert c.get("/").status == 200
    assert o.connections == before + 1


@pytest.mark.parametrize("method, connections", [("GET", 1), ("POST", 2)])
def test_what_must_not_be_lost_goes_on_a_connection_that_was_used_lately(stage, method, connections):
    o = stage.origin()
    p = stage.text(config({"app": o.address}, timeouts=IDLE))
    c = stage.client(p)
    assert c.get("/1").status == 200
    assert c.ask(method, "/2", body=b"x").status == 200
    assert o.connections == 1
    time.sleep(1.3)
    assert c.ask(method, "/3", body=b"x").text() == "%s /3 1" % method
    assert o.connections == connections


def test_a_post_takes_the_place_of_an_old_connection_when_there_may_be_no_more(stage):
    o = stage.origin()
    p = stage.text(config({"app": "{endpoints: ['%s'], max_connections: 1}" % o.address}, timeouts=IDLE))
    c = stage.client(p)
    assert c.get("/1").status == 200
    time.sleep(1.3)
    assert c.post("/2", b"x").text() == "POST /2 1"
    assert o.connections == 2 and len(o.open) <= 1
