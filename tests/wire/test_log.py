"""The access log: one line for each request, and nothing in it that a client could forge."""
import json
import re

import pytest


def test_the_fields_of_a_line(stage):
    o = stage.origin()
    p = stage.proxy(o)
    stage.client(p).post("/a?b=c", b"12345", "User-Agent: tester/1", "Referer: http://r.test/")
    line = p.log()[0]
    want = {"client": "127.0.0.1", "method": "POST", "authority": "example.test", "target": "/a?b=c",
            "protocol": "HTTP/1.1", "status": 200, "bytes_in": 5, "bytes_out": len("POST /a?b=c 5"),
            "service": "app", "endpoint": o.address, "retries": 0, "user_agent": "tester/1",
            "referer": "http://r.test/", "reused": False, "client_closed": False, "upgrade": False}
    assert {k: line[k] for k in want} == want
    assert not line["cause"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line["time"])
    assert 0 < line["duration_us"] < 5_000_000 and line["first_byte_us"] <= line["duration_us"]


def test_a_line_for_each_request_and_reuse_is_told(stage):
    p = stage.proxy(stage.origin())
    c = stage.client(p)
    for i in range(3):
        c.get("/%d" % i)
    lines = p.log(3)
    assert [line["target"] for line in lines] == ["/0", "/1", "/2"]
    assert [line["reused"] for line in lines] == [False, True, True]


def test_answers_of_our_own_carry_their_cause(stage):
    p = stage.proxy(stage.origin(), routes=["{host: a.test, service: app}"], limits={"target": "300B"})
    stage.client(p).get("/", host="b.test")
    stage.client(p).get("/" + "a" * 400, host="a.test")
    stage.client(p).send("nonsense\r\n\r\n").answer()
    lines = sorted(p.log(3), key=lambda line: line["status"])
    assert [line["status"] for line in lines] == [400, 404, 414]
    assert lines[1]["cause"] == "no_route" and all(line["cause"] for line in lines)


ALL = bytes(b for b in range(0x21, 0x100) if b not in b"\x7f")


def test_json_holds_any_byte_that_a_field_may_hold(stage):
    p = stage.proxy(stage.origin())
    c = stage.client(p)
    pieces = [("a \t" + ALL[i:i + 50].decode("latin-1") + "z") for i in range(0, len(ALL), 50)]
    for piece in pieces:
        assert c.get("/", "User-Agent: " + piece).status == 200
    p.out.wait_count(len(pieces))
    assert all(0x20 <= ord(ch) <= 0x7e for line in p.out.lines for ch in line)
    assert [json.loads(line)["user_agent"] for line in p.out.lines] == pieces


def test_what_is_long_is_cut_and_says_so(stage):
    p = stage.proxy(stage.origin())
    assert stage.client(p).get("/" + "t" * 6000, "User-Agent: " + "u" * 20000).status == 200
    p.out.wait_count(1)
    line = json.loads(p.out.lines[0])
    assert line["cut"] and line["user_agent"].startswith("uuu") and len(p.out.lines[0]) < 8192


def test_text_escapes_all_that_is_not_printable_ascii(stage):
    p = stage.proxy(stage.origin(), log="access: stdout, format: text")
    stage.client(p).get("/", "User-Agent: a\" b\\ \t\x80\xff end", "Referer: x status=999")
    line = p.out.wait_count(1)[0]
    assert all(0x20 <= ord(ch) <= 0x7e for ch in line)
    assert r"\x22" in line and r"\x80\xff" in line and r"\x09" in line
    outside = re.sub(r'"[^"]*"', '""', line)
    assert outside.count(" status=") == 1 and " status=200 " in outside and outside.count('"') % 2 == 0


def test_a_forged_line_is_one_line(stage):
    p = stage.proxy(stage.origin(), log="access: stdout, format: text")
    c = stage.client(p)
    c.send("GET /\r\nfake HTTP/1.1\r\nHost: a\r\n\r\n")
    c.ended()
    stage.client(p).get("/real")
    lines = p.out.wait_count(2)
    assert len(lines) == 2 and not any(line.startswith("fake") for line in lines)


def test_no_credentials_in_the_log(stage):
    p = stage.proxy(stage.origin())
    stage.client(p).get("/", "Authorization: Bearer s3cret", "Cookie: sid=s3cret", "Proxy-Authorization: s3cret")
    p.out.wait_count(1)
    assert "s3cret" not in p.out.text() + p.err.text()


def test_the_log_can_be_off(stage):
    p = stage.proxy(stage.origin(), log="access: off")
    c = stage.client(p)
    for _ in range(3):
        c.get("/")
    c.close()
    p.stop()
    assert p.out.text() == ""


@pytest.mark.parametrize("leaves", ["fin", "rst"])
def test_a_client_that_left_is_told(stage, leaves):
    def script(c):
        c.request()
        c.wait_closed()
    o = stage.origin(script)
    p = stage.proxy(o)
    c = stage.client(p)
    c.request("GET", "/")
    o.wait()
    if leaves == "rst":
        c.rst()
        o.wait_idle()
        line = p.log()[0]
        assert line["client_closed"] and line["cause"] == "client_left"
    else:
        c.fin()     # a half-close: the answer is still wanted
        assert c.answer().status == 504


def test_a_tunnels_line_comes_at_its_end(stage):
    def script(c):
        c.head()
        c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while c.more():
            c.send(c.take(len(c.buf)))
    p = stage.proxy(stage.origin(script))
    c = stage.client(p)
    assert c.get("/ws", "Connection: Upgrade", "Upgrade: websocket").status == 101
    c.send("12345")
    c.exactly(5)
    c.close()
    line = p.log()[0]
    assert line["status"] == 101 and line["upgrade"]
    assert line["bytes_in"] == 5 and line["bytes_out"] == 5


def test_which_rule_was_broken_is_told(stage):
    o = stage.origin(lambda c: c.request() and c.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"))
    p = stage.proxy(o)
    stage.client(p).get("/")
    c = stage.client(p)
    c.send("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n folded\r\n\r\n")
    assert c.answer().status == 400
    lines = p.log(2)
    assert [(line["cause"], line["fault"]) for line in lines] == [("bad_answer", "length"), ("bad_request", "fold")]
    assert lines[1]["protocol"] is None and lines[1]["method"] is None
