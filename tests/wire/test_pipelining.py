"""Requests sent without waiting: answered in their order, each with its own answer."""
import threading


def line(i, method="GET", body=""):
    return "%s /%d HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s" % (method, i, len(body), body)


def test_two_hundred_requests_in_one_write(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("".join(line(i) for i in range(200)))
    assert [c.answer().text() for i in range(200)] == ["GET /%d 0" % i for i in range(200)]


def test_bodies_between_them(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("".join(line(i, "POST", "b" * i) for i in range(50)))
    assert [c.answer().text() for i in range(50)] == ["POST /%d %d" % (i, i) for i in range(50)]


def test_chunked_bodies_between_them(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("".join("POST /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" %
                   (i, i, "c" * i) for i in range(1, 30)))
    assert [c.answer().text() for i in range(1, 30)] == ["POST /%d %d" % (i, i) for i in range(1, 30)]


def test_the_second_is_not_sent_before_the_first_is_answered(stage):
    gate = threading.Event()

    def script(c):
        while c.request():
            gate.wait(10)
            c.reply("ok")
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts={"first_byte": "9s"}))
    c.send(line(1) + line(2))
    o.wait(1)
    assert c.silent(0.1) and len(o.heads) == 1
    gate.set()
    assert c.answer().text() == "ok" and c.answer().text() == "ok"


def test_nothing_behind_a_refusal_is_parsed(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send(line(1) + "GET /2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + line(3))
    assert c.answer().text() == "GET /1 0"
    assert c.answer().status == 400
    assert c.ended() == b"" and [r.target for r in o.heads] == ["/1"]


def test_nothing_behind_a_close_is_parsed(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + line(2))
    assert c.answer().text() == "GET /1 0"
    assert c.ended() == b"" and [r.target for r in o.heads] == ["/1"]


def test_fin_behind_the_last_request_still_gets_all_answers(stage):
    c = stage.client(stage.proxy(stage.origin()))
    c.send("".join(line(i) for i in range(20)))
    c.fin()
    assert [c.answer().text() for i in range(20)] == ["GET /%d 0" % i for i in range(20)]
    assert c.rest() == b""


def test_an_answer_of_our_own_between_others_keeps_its_place(stage):
    p = stage.proxy(stage.origin(), routes=["{path: /own, answer: {status: 200, body: own}}", "{service: app}"])
    c = stage.client(p)
    c.send("".join("GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % t for t in ("/1", "/own", "/2", "/own", "/own", "/3")))
    assert [c.answer().text() for _ in range(6)] == ["GET /1 0", "own", "GET /2 0", "own", "own", "GET /3 0"]


def test_empty_lines_before_a_request_are_skipped(stage):
    c = stage.client(stage.proxy(stage.origin()))
    c.send(line(1), "\r\n", line(2))
    assert c.answer().text() == "GET /1 0" and c.answer().text() == "GET /2 0"
