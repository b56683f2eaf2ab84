"""Interim answers and answers that come before the request has ended."""
import time

import pytest

from harness import free_port, wait_until

HEAD = "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"


def test_100_continue_is_the_origins_to_say(stage):
    def script(c):
        r = c.head()
        assert r.get("Expect") == "100-continue"
        assert c.silent(0.1)
        c.send("HTTP/1.1 100 Continue\r\n\r\n")
        c.body(r)
        c.reply(r.body)
        c.hold()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    c.send(HEAD)
    assert c.head().status == 100
    c.send("hello")
    assert c.answer().text() == "hello"


def test_a_refusal_instead_of_100(stage):
    def script(c):
        c.head()
        c.reply("no", status="417 Expectation Failed")
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script)))
    c.send(HEAD)
    a = c.answer()
    assert (a.status, a.interim) == (417, [])


def test_103_comes_before_the_answer_in_order(stage):
    def script(c):
        while c.request():
            c.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n",
                   "HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n")
            c.reply("page")
    c = stage.client(stage.proxy(stage.origin(script)))
    for _ in range(2):
        a = c.get("/")
        assert [(i.status, i.get("Link")) for i in a.interim] == [(103, "</a.css>"), (103, "</b.css>")]
        assert a.text() == "page"


def test_http_1_0_gets_no_interim_answer(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 103 Early Hints\r\n\r\n")
        c.reply("page")
        c.hold()
    a = stage.client(stage.proxy(stage.origin(script))).get("/", version="1.0")
    assert (a.status, a.interim, a.text()) == (200, [], "page")


def test_interim_answers_are_bounded(stage):
    def script(c):
        c.request()
        for _ in range(10000):
            c.send("HTTP/1.1 103 Early Hints\r\n\r\n")
        c.reply("never")
    a = stage.client(stage.proxy(stage.origin(script))).get("/")
    assert a.status == 502


@pytest.mark.parametrize("chunked", [False, True])
def test_an_answer_before_the_body_has_come(stage, chunked):
    def script(c):
        c.head()
        c.reply("too big", status="413 Content Too Large")
        c.wait_closed()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\n" +
           ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" if chunked else "Content-Length: 100000\r\n\r\nhello"))
    a = c.answer()
    assert (a.status, a.text()) == (413, "too big")
    c.close()
    o.wait_idle()       # an upstream connection with half a request on it is not kept


def test_an_early_answer_then_the_next_request_on_a_fresh_upstream(stage):
    def script(c):
        c.head()
        c.reply("early")
        c.wait_closed()
    def second(c):
        c.request()
        c.reply("second")
        c.hold()
    o = stage.origin([script, second])
    p = stage.proxy(o)
    c = stage.client(p)
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n12345")
    assert c.answer().text() == "early"
    assert stage.client(p).get("/").text() == "second"
    assert o.connections == 2


@pytest.mark.parametrize("how", ["413-close", "413", "route", "refused", "bad-head"])
def test_an_early_answer_is_not_lost_to_a_client_that_goes_on_sending(stage, how):
    def script(c):
        c.head()
        c.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n%s\r\nbig" % ("Connection: close\r\n" if how == "413-close" else ""))
        c.hold()
    o = stage.origin(script)
    routes = ["{path: /fixed, answer: {status: 404, body: gone}}", "{path: /down, service: down}", "{service: app}"]
    p = stage.proxy({"app": o.address, "down": "127.0.0.1:%d" % free_port()}, routes=routes)
    c = stage.client(p)
    target = {"route": "/fixed", "refused": "/down"}.get(how, "/")
    extra = "Content-Length: 5\r\n" if how == "bad-head" else ""
    c.send("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n%s\r\n" % (target, extra) + "x" * 1000)
    wanted = {"route": 404, "refused": 502, "bad-head": 400}.get(how, 413)
    wait_until(lambda: not c.silent(0.01))      # the answer is here, and not looked at
    for _ in range(10):
        c.send("x" * 10000)
        time.sleep(0.01)
    assert c.answer().status == wanted
