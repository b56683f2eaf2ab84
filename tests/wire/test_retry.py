"""What is tried again, and what never is: an unsafe request reaches an origin at most once."""
import pytest

from harness import echo, free_port, wait_until


def ends_before_the_answer(c):
    """Answers once, then takes a second request on the same connection and closes without a word."""
    c.request()
    c.reply("first")
    c.head()


def resets_before_the_answer(c):
    c.request()
    c.reply("first")
    c.head()
    c.rst()


@pytest.mark.parametrize("script", [ends_before_the_answer, resets_before_the_answer])
def test_get_on_a_dying_kept_connection_is_sent_once_more_on_a_fresh_one(stage, script):
    o = stage.origin([script, echo])
    c = stage.client(stage.proxy(o))
    assert c.get("/1").text() == "first"
    assert c.get("/2").text() == "GET /2 0"
    assert o.connections == 2 and [r.target for r in o.heads] == ["/1", "/2", "/2"]


def test_get_is_not_retried_for_ever(stage):
    def script(c):
        c.head()
    o = stage.origin(script)
    a = stage.client(stage.proxy(o)).get("/")
    assert a.status == 502 and a.error
    assert len(o.heads) <= 3


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_post_on_a_dying_kept_connection_reaches_an_origin_once(stage, method):
    def script(c):
        c.request()
        c.reply("first")
        c.request()
    o = stage.origin([script, echo])
    c = stage.client(stage.proxy(o))
    assert c.get("/1").text() == "first"
    a = c.ask(method, "/2", body=b"pay")
    assert a.status == 502 and a.error
    assert [r.target for r in o.heads] == ["/1", "/2"]


def test_a_kept_connection_that_the_origin_has_closed_is_not_used(stage):
    def script(c):
        c.request()
        c.reply("first")
    o = stage.origin([script, echo])
    c = stage.client(stage.proxy(o))
    assert c.get("/1").text() == "first"
    o.wait_idle()
    assert c.post("/2", b"safe").text() == "POST /2 4"


def test_after_the_first_byte_nothing_is_retried(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nContent-Len")
    o = stage.origin(script)
    a = stage.client(stage.proxy(o)).get("/")
    assert a.status == 502 and len(o.heads) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_connection_goes_to_the_other_endpoint(stage, method):
    o = stage.origin()
    p = stage.proxy({"app": ["127.0.0.1:%d" % free_port(), o.address]})
    c = stage.client(p)
    for _ in range(4):
        assert c.ask(method, "/", body=b"abc").text() == "%s / 3" % method


def test_all_refused_is_502_and_says_so(stage):
    p = stage.proxy({"app": ["127.0.0.1:%d" % free_port(), "127.0.0.1:%d" % free_port()]})
    c = stage.client(p)
    for _ in range(3):
        a = c.get("/")
        assert a.status == 502 and a.error == "connection_refused"
    assert p.log(1)[0]["cause"]


def test_an_origin_that_comes_back_is_used_at_once(stage):
    o = stage.origin()
    port = o.port
    p = stage.proxy(o)
    o.stop_listening()
    assert stage.client(p).get("/").status == 502
    back = stage.origin(port=port)
    wait_until(lambda: stage.client(p).get("/").status == 200, "the origin to be used again", 3)
    assert back.requests


def test_a_body_longer_than_the_replay_copy_is_not_retried(stage):
    def script(c):
        c.request()
        c.reply("first")
        c.request()
    o = stage.origin([script, echo])
    p = stage.proxy(o, limits={"replay": "1KiB"})
    c = stage.client(p)
    assert c.get("/1").text() == "first"
    a = c.ask("PUT", "/2", body=b"x" * 100000)
    assert a.status == 502 and [r.target for r in o.heads] == ["/1", "/2"]


def test_a_put_with_a_small_body_is_replayed_whole(stage):
    def script(c):
        c.request()
        c.reply("first")
        c.request()
    o = stage.origin([script, echo])
    c = stage.client(stage.proxy(o, limits={"replay": "64KiB"}))
    assert c.get("/1").text() == "first"
    a = c.ask("PUT", "/2", body=b"x" * 1000)
    assert a.status in (200, 502)
    if a.status == 200:
        assert [len(r.body) for r in o.requests] == [0, 1000, 1000]


@pytest.mark.parametrize("method, status", [("GET", 200), ("PUT", 200), ("POST", 502)])
def test_a_connection_that_dies_unanswered_goes_to_the_other_endpoint_when_that_is_safe(stage, method, status):
    bad, good = stage.origin(lambda c: c.request() and None), stage.origin()
    c = stage.client(stage.proxy({"app": [bad.address, good.address]}))
    seen = [c.ask(method, "/%d" % i, body=b"abc").status for i in range(4)]
    assert sorted(seen) == [200, 200, status, status]
    targets = [r.target for r in bad.requests + good.requests]
    if method == "POST":
        assert len(targets) == len(set(targets)) == 4
    else:
        assert len(good.requests) == 4
