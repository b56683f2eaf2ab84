"""Tunnels: only after a 101 that was asked for, and then bytes both ways."""
import pytest

ASK = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
       "Sec-WebSocket-Version: 13")
SWITCH = ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


def mirror(c):
    """Accepts the upgrade, then sends back in capitals what comes."""
    r = c.head()
    assert r.get("Upgrade") == "websocket" and "upgrade" in r.get("Connection").lower()
    c.send(SWITCH)
    while c.more():
        c.send(c.take(len(c.buf)).upper())


def opened(stage, o, **settings):
    c = stage.client(stage.proxy(o, **settings))
    a = c.get("/ws", *ASK)
    assert a.status == 101 and a.get("Upgrade").lower() == "websocket"
    assert a.get("Connection").lower() == "upgrade"
    return c


def test_bytes_go_both_ways(stage):
    c = opened(stage, stage.origin(mirror))
    for word in (b"hello", b"a" * 100000, b"bye"):
        c.send(word)
        assert c.exactly(len(word)) == word.upper()


def test_bytes_sent_with_the_request_arrive_after_the_switch(stage):
    c = stage.client(stage.proxy(stage.origin(mirror)))
    c.send("GET /ws HTTP/1.1\r\nHost: a.test\r\n" + "".join(f + "\r\n" for f in ASK) + "\r\nearly")
    assert c.answer().status == 101
    assert c.exactly(5) == b"EARLY"


def test_bytes_sent_with_the_switch_arrive(stage):
    def script(c):
        c.head()
        c.send(SWITCH + "welcome")
        c.wait_closed()
    assert opened(stage, stage.origin(script)).exactly(7) == b"welcome"


def test_half_close_of_the_client(stage):
    def script(c):
        c.head()
        c.send(SWITCH)
        data = c.rest()
        c.send("got " + data.decode())
    c = opened(stage, stage.origin(script))
    c.send("all")
    c.fin()
    assert c.rest() == b"got all"


def test_half_close_of_the_origin(stage):
    got = []
    def script(c):
        c.head()
        c.send(SWITCH, "done")
        c.fin()
        got.append(c.rest())
    o = stage.origin(script)
    c = opened(stage, o)
    assert c.rest() == b"done"
    c.send("late")
    c.close()
    o.wait_idle()
    assert got == [b"late"]


def test_reset_of_one_end_ends_the_other(stage):
    o = stage.origin(mirror)
    c = opened(stage, o)
    c.send("x")
    c.exactly(1)
    c.rst()
    o.wait_idle()


def test_a_silent_tunnel_ends_at_its_time_out(stage):
    c = opened(stage, stage.origin(mirror), timeouts={"tunnel": "300ms"})
    assert c.ended() == b""


@pytest.mark.parametrize("fields", [
    ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    ("Connection: Upgrade", "Upgrade: foo"),
    ("Upgrade: websocket",)])
def test_other_upgrades_do_not_pass(stage, fields):
    o = stage.origin()
    assert stage.client(stage.proxy(o)).get("/", *fields).text() == "GET / 0"
    r = o.requests[0]
    assert not r.all("Upgrade") and not r.all("HTTP2-Settings")
    assert "upgrade" not in (r.get("Connection") or "").lower()


def test_http_1_0_cannot_upgrade(stage):
    o = stage.origin()
    assert stage.client(stage.proxy(o)).get("/", *ASK, version="1.0").status == 200
    assert not o.requests[0].all("Upgrade")


def test_101_that_nobody_asked_for_is_502(stage):
    def script(c):
        c.request()
        c.send(SWITCH)
        c.wait_closed()
    o = stage.origin(script)
    a = stage.client(stage.proxy(o)).get("/")
    assert a.status == 502
    o.wait_idle()


def test_200_to_an_upgrade_is_a_plain_answer(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    assert c.get("/ws", *ASK).text() == "GET /ws 0"
    assert c.get("/next").text() == "GET /next 0"


def test_bytes_behind_a_refused_upgrade_are_http(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("GET /ws HTTP/1.1\r\nHost: a.test\r\n" + "".join(f + "\r\n" for f in ASK) + "\r\n"
           "GET /admin HTTP/1.1\r\nHost: b.test\r\n\r\n")
    assert c.answer().text() == "GET /ws 0"
    a = c.answer()      # parsed as a request of its own, never tunnelled
    assert a.text() == "GET /admin 0" and o.requests[1].get("Host") == "b.test"
