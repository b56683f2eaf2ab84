"""`retry` of a route and `retry_budget` of a service: what is tried again, when, how often, and what the client gets in the end."""
import re
import time

import pytest

from harness import config, echo, free_port

QUICK = "backoff: {base: 1ms, max: 5ms}"


def says(status, body="", *fields):
    """An origin that answers so, always."""
    def script(c):
        while c.request():
            c.reply(body, *fields, status=status)
    return script


def start(stage, endpoints, retry, service="", **more):
    """`retry` is the value of the route's key."""
    ends = "[%s]" % ", ".join("'%s'" % (getattr(e, "address", e)) for e in endpoints)
    if "balance" not in service:
        service += ", balance: round_robin"         # nothing is left to chance
    return stage.text(config({"app": "{endpoints: %s%s}" % (ends, service)}, routes=["{service: app, retry: %s}" % retry], **more))


def counters(p):
    """What the program tells of at its end."""
    p.stop()
    return {k: int(v) for k, v in re.findall(r" (\w+)=(\d+)", p.err.wait("served:"))}


def test_a_status_is_replaced_by_anothers_answer(stage):
    bad, good = stage.origin(says("503 Busy", "busy")), stage.origin()
    p = start(stage, [bad, good], "{attempts: 1, on: [503], %s}" % QUICK)
    c = stage.client(p)
    for i in range(4):
        a = c.get("/%d" % i)
        assert (a.status, a.text()) == (200, "GET /%d 0" % i)
    assert len(good.requests) == 4 and bad.connections == 1     # an answer that was not passed on leaves its connection whole
    lines = p.log(4)
    assert {(r["retries"], r["retry_cause"]) for r in lines} - {(0, None)} == {(1, "503")}
    assert all(r["no_retry"] is None for r in lines)


def test_without_a_policy_an_answer_is_an_answer(stage):
    bad, good = stage.origin(says("503 Busy", "busy")), stage.origin()
    c = stage.client(stage.proxy({"app": [bad.address, good.address]}))
    seen = set()
    while seen != {200, 503}:
        seen.add(c.get("/").status)


def test_other_statuses_pass(stage):
    a, b = stage.origin(says("500 Bad")), stage.origin(says("500 Bad"))
    p = start(stage, [a, b], "{attempts: 3, on: [503, 502]}")
    assert stage.client(p).get("/").status == 500
    assert len(a.requests + b.requests) == 1


@pytest.mark.parametrize("framing", ["sized", "chunked", "close", "none"])
def test_the_last_real_answer_is_handed_through(stage, framing):
    def script(c):
        while c.request():
            if framing == "sized":
                c.reply("the real reason", "X-Why: 7", "Content-Type: text/x", status="503 Very Busy")
            elif framing == "none":
                c.reply("", "X-Why: 7", "Content-Type: text/x", status="503 Very Busy")
            else:
                c.send("HTTP/1.1 503 Very Busy\r\nX-Why: 7\r\nContent-Type: text/x\r\n")
                c.send("Transfer-Encoding: chunked\r\n\r\n8\r\nthe real\r\n7\r\n reason\r\n0\r\n\r\n" if framing == "chunked"
                       else "\r\nthe real reason")
            if framing == "close":
                return
    o = stage.origin(script)
    gone = "127.0.0.1:%d" % free_port()
    p = start(stage, [o, gone], "{attempts: 3, on: [connect, 503], %s}" % QUICK)
    c = stage.client(p)
    a = c.get("/")
    assert (a.status, a.reason, a.get("X-Why"), a.get("Content-Type")) == (503, "Very Busy", "7", "text/x")
    assert a.text() == ("" if framing == "none" else "the real reason") and not a.get("Proxy-Status")
    assert c.get("/").status == 503     # and the client's connection goes on
    assert p.log(1)[0]["no_retry"] == "attempts" and p.log(1)[0]["cause"] is None
    assert len(o.requests) >= 4


def test_a_kept_answer_is_better_than_one_of_ours(stage):
    """The first says 503, the rest cannot be reached: no 502 of ours in place of what an origin said."""
    o = stage.origin(says("503 Busy", "real", "Retry-After: 7"))
    dead = ["127.0.0.1:%d" % free_port() for _ in range(2)]
    p = start(stage, [o, *dead], "{attempts: 2, on: [connect, 503], %s}" % QUICK)
    for _ in range(6):
        a = stage.client(p).get("/")
        assert (a.status, a.text(), a.get("Retry-After")) == (503, "real", "7")


def test_head_keeps_its_length(stage):
    def script(c):
        while c.head():
            c.send("HTTP/1.1 503 Busy\r\nContent-Length: 1234\r\n\r\n")
    p = start(stage, [stage.origin(script)], "{attempts: 1, on: [503], %s}" % QUICK)
    a = stage.client(p).ask("HEAD", "/")
    assert a.status == 503 and a.get("Content-Length") == "1234"


@pytest.mark.parametrize("method, methods, tries", [("GET", "", 3), ("PUT", "", 3), ("POST", "", 1), ("POST", "methods: [POST], ", 3),
                                                    ("GET", "methods: POST, ", 1)])
def test_methods(stage, method, methods, tries):
    o = stage.origin(says("503 Busy"))
    p = start(stage, [o], "{attempts: 2, on: [503], %s%s}" % (methods, QUICK))
    assert stage.client(p).ask(method, "/", body=b"abc").status == 503
    assert len(o.requests) == tries and all(r.body == b"abc" for r in o.requests)
    assert p.log(1)[0]["no_retry"] == ("attempts" if tries == 3 else "method")


def test_never_the_same_twice_while_there_is_another(stage):
    origins = [stage.origin(says("503 Busy")) for _ in range(4)]
    p = start(stage, origins, "{attempts: 3, on: [503], %s}" % QUICK, ", retry_budget: {min_per_second: 1000}", workers=2)
    for i in range(12):
        assert stage.client(p).get("/%d" % i).status == 503
    for o in origins:
        assert sorted(r.target for r in o.requests) == sorted("/%d" % i for i in range(12))


def test_the_same_again_when_it_is_the_only_one(stage):
    def once(c):
        c.request()
        c.reply("", status="503 Busy")
        echo(c)
    o = stage.origin(once)
    p = start(stage, [o], "{attempts: 1, on: [503], backoff: {base: 40ms, max: 40ms}}")
    began = time.monotonic()
    assert stage.client(p).get("/").text() == "GET / 0"
    assert time.monotonic() - began > 0.015
    assert o.connections == 1


def test_off_is_off(stage):
    """`retry: off`: not even what a route without it does."""
    def script(c):
        c.request()
        c.reply("first")
        c.request()
    o = stage.origin([script, echo])
    p = start(stage, [o], "off")
    c = stage.client(p)
    assert c.get("/1").text() == "first"
    assert c.get("/2").status == 502
    p = start(stage, ["127.0.0.1:%d" % free_port(), "127.0.0.1:%d" % free_port()], "off")
    assert stage.client(p).get("/").status == 502
    assert p.log(1)[0]["no_retry"] == "off" and p.log(1)[0]["retries"] == 0


def test_a_connect_that_fails_is_tried_again_with_pauses(stage):
    """The only endpoint comes back within the pauses."""
    port = free_port()
    p = start(stage, ["127.0.0.1:%d" % port], "{attempts: 10, on: connect, backoff: {base: 20ms, max: 200ms}}")
    c = stage.client(p).request("POST", "/", body=b"x" * 300000)
    p.err.wait("refused the connection")
    o = stage.origin(port=port)
    assert c.answer().text() == "POST / 300000"
    assert len(o.requests) == 1 and p.log(1)[0]["retry_cause"] == "connect_refused"


def test_per_try_timeout(stage):
    silent, good = stage.origin(lambda c: c.request() and c.wait_closed()), stage.origin()
    p = start(stage, [silent, good], "{attempts: 1, on: [timeout], per_try_timeout: 150ms, %s}" % QUICK)
    n = 0
    while not silent.requests:
        assert stage.client(p).get("/").status == 200
        n += 1
    assert len(good.requests) == n
    assert ("first_byte_timeout", 1) in {(r["retry_cause"], r["retries"]) for r in p.log(n)}
    posts, before = set(), len(silent.requests + good.requests)
    while posts != {200, 504}:
        posts.add(stage.client(p).post("/", b"x").status)
        n += 1
    assert len(silent.requests + good.requests) - before == sum(r["method"] == "POST" for r in p.log(n))


def test_all_tries_together_have_the_first_byte_time_out(stage):
    o = stage.origin(lambda c: c.request() and c.wait_closed())
    p = start(stage, [o], "{attempts: 10, on: [timeout], per_try_timeout: 300ms, %s}" % QUICK, timeouts={"first_byte": "800ms"})
    began = time.monotonic()
    a = stage.client(p).get("/")
    took = time.monotonic() - began
    assert a.status == 504 and 0.7 < took < 1.5
    assert len(o.requests) == 3 and p.log(1)[0]["no_retry"] == "time"


def test_retry_after_speaks_for_the_endpoint_that_says_it(stage):
    busy, good = stage.origin(says("503 Busy", "later", "Retry-After: 30")), stage.origin()
    p = start(stage, [busy, good], "{attempts: 2, on: [503], %s}" % QUICK)
    assert {stage.client(p).get("/").status for _ in range(4)} == {200}
    p = start(stage, [busy], "{attempts: 2, on: [503], %s}" % QUICK)
    before = len(busy.requests)
    a = stage.client(p).get("/")
    assert (a.status, a.get("Retry-After")) == (503, "30") and len(busy.requests) == before + 1
    assert p.log(1)[0]["no_retry"] == "retry_after"


@pytest.mark.parametrize("size, chunked, tries", [(65536, False, 2), (65537, False, 1), (300000, False, 1), (65536, True, 2),
                                                  (65537, True, 1), (300000, True, 1)])
def test_an_answer_too_large_to_be_kept_passes_whole(stage, size, chunked, tries):
    body = bytes(range(48, 112)) * (size // 64) + b"x" * (size % 64)

    def script(c):
        while c.request():
            if chunked:
                c.send("HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, size, 10000):
                    piece = body[at:at + 10000]
                    c.send("%x\r\n" % len(piece), piece, "\r\n")
                c.send("0\r\n\r\n")
            else:
                c.reply(body, status="503 Busy")
    o = stage.origin(script)
    p = start(stage, [o], "{attempts: 1, on: [503], %s}" % QUICK)
    c = stage.client(p)
    a = c.get("/")
    assert a.status == 503 and a.body == body
    assert len(o.requests) == tries
    assert p.log(1)[0]["no_retry"] == ("attempts" if tries == 2 else "size")
    assert c.get("/").body == body


def test_an_answer_that_breaks_while_it_is_kept_is_none(stage):
    def breaks(c):
        c.request()
        c.send("HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\nabc")
    bad, good = stage.origin(breaks), stage.origin()
    p = start(stage, [bad, good], "{attempts: 1, on: [503], %s}" % QUICK)
    assert {stage.client(p).get("/").status for _ in range(4)} == {200}


def test_a_request_whose_body_still_comes_is_sent_again_whole(stage):
    def early(c):
        c.head()
        c.reply("", status="503 Busy")
        c.wait_closed()
    busy, good = stage.origin(early), stage.origin()
    p = start(stage, [busy, good], "{attempts: 1, on: [503], %s}" % QUICK)
    for n in range(2):
        c = stage.client(p)
        c.send("PUT /%d HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\nabc" % n)
        busy.wait(1, heads=True) if n == 0 and busy.heads else None
        time.sleep(0.05)
        c.send("def")
        assert c.answer().text() == "PUT /%d 6" % n
    assert [r.body for r in good.requests] == [b"abcdef"] * 2


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_client_that_leaves_in_a_pause(stage, how):
    o = stage.origin(says("503 Busy"))
    p = start(stage, [o], "{attempts: 10, on: [503], backoff: {base: 1s, max: 1s}}", timeouts={"first_byte": "off"})
    c = stage.client(p).request("GET", "/")
    o.wait(1)
    if how == "rst":
        c.rst()
        assert p.log(1)[0]["cause"] == "client_left"
    else:   # a half-close: the answer is still wanted, and the pause is for it
        c.fin()
        assert c.silent(0.3)
    assert len(o.requests) == 1


def test_a_pause_holds_no_connection(stage):
    def script(c):
        r = c.request()
        c.reply("", status="503 Busy") if r.target == "/slow" else c.reply("ok")
        echo(c)
    o = stage.origin(script)
    p = start(stage, [o], "{attempts: 1, on: [503], backoff: {base: 1s, max: 1s}}", ", max_connections: 1",
              timeouts={"first_byte": "off"})
    stage.client(p).request("GET", "/slow")
    o.wait(1)
    assert stage.client(p).get("/other").status == 200
    assert o.connections == 1


# ---- the budget ---------------------------------------------------------------

def test_a_storm_is_bounded(stage):
    origins = [stage.origin(says("503 Busy", "no")) for _ in range(3)]
    p = start(stage, origins, "{attempts: 5, on: [503], %s}" % QUICK,
              ", retry_budget: {ratio: 20%, min_per_second: 10}", workers=2)
    n, began = 300, time.monotonic()
    clients = [stage.client(p) for _ in range(6)]
    for i in range(n // 6):
        for c in clients:
            c.request("GET", "/")
        for c in clients:
            a = c.answer()
            assert (a.status, a.text()) == (503, "no")      # the real answer, not one of ours
    took = time.monotonic() - began
    seen = sum(len(o.requests) for o in origins)
    assert n * 1.1 < seen <= n * 1.2 + 10 * (took + 1), (seen, took)
    assert "budget" in {r["no_retry"] for r in p.log(n)}
    assert counters(p)["no_retry_budget"] > 0


def test_a_service_without_a_budget_retries_connects_alone(stage):
    gone, bad, good = "127.0.0.1:%d" % free_port(), stage.origin(says("503 Busy")), stage.origin()
    p = start(stage, [bad, good], "{attempts: 2, on: [connect, 503], %s}" % QUICK, ", retry_budget: {ratio: 0%, min_per_second: off}")
    seen = set()
    while seen != {200, 503}:
        seen.add(stage.client(p).get("/").status)
    p = start(stage, [gone, good], "{attempts: 2, on: [connect, 503], %s}" % QUICK, ", retry_budget: {ratio: 0%, min_per_second: off}")
    assert {stage.client(p).get("/").status for _ in range(4)} == {200}


def test_a_dead_kept_connection_needs_no_budget(stage):
    def script(c):
        c.request()
        c.reply("first")
        c.request()
    o = stage.origin([script, echo])
    p = start(stage, [o], "{on: reset}", ", retry_budget: {ratio: 0%, min_per_second: off}")
    c = stage.client(p)
    assert c.get("/1").text() == "first"
    assert c.get("/2").text() == "GET /2 0"
    assert counters(p)["stale"] == 1


def test_defaults_can_have_both(stage):
    bad, good = stage.origin(says("502 Bad")), stage.origin()
    p = stage.text(config({"app": [bad.address, good.address]}, more="defaults: {retry: {on: 502}, retry_budget: {ratio: 1}}\n"))
    assert {stage.client(p).get("/").status for _ in range(4)} == {200}


def test_a_chunked_body_beyond_the_replay_copy_is_sent_once(stage):
    """`limits.replay` is 1 KiB: what was sent of more is not here any more, and that is counted."""
    seen = []

    def script(c):
        seen.append(len(c.request().body))
    ends = [stage.origin(script), stage.origin(script)]
    p = stage.text(config({"app": [e.address for e in ends]}, limits={"replay": "1KiB"}))
    c = stage.client(p)
    c.send("PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(50):
        c.send("64\r\n" + "x" * 100 + "\r\n")
    c.send("0\r\n\r\n")
    assert c.answer("PUT").status == 502 and seen == [5000]
    assert p.log(1)[0]["no_retry"] == "body"
    seen_by_counter = counters(p)
    assert seen_by_counter["replay_dropped"] == 1 and seen_by_counter["no_retry_body"] == 1
