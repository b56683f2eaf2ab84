"""Signals: an orderly end, a quick end, and a new access log."""
import json
import os
import signal
import threading

import pytest

from harness import Client, wait_until


def gated():
    gate = threading.Event()

    def script(c):
        r = c.request()
        while r:
            if r.target == "/slow":
                gate.wait(10)
            c.reply("done")
            r = c.request()
    return gate, script


def refuses(p):
    try:
        Client(p.address, patience=1).close()
        return False
    except OSError:
        return True


def test_sigterm_finishes_what_runs(stage):
    gate, script = gated()
    o = stage.origin(script)
    p = stage.proxy(o)
    idle, busy = stage.client(p), stage.client(p)
    assert idle.get("/").status == 200
    busy.request("GET", "/slow")
    o.wait(2)
    p.signal(signal.SIGTERM)
    assert idle.rest() == b""
    wait_until(lambda: refuses(p), "the listener to close")
    gate.set()
    a = busy.answer()
    assert a.text() == "done" and "close" in a.get("Connection").lower()
    assert p.wait() == 0


def test_sigint_is_the_same(stage):
    p = stage.proxy(stage.origin())
    assert stage.client(p).get("/").status == 200
    p.signal(signal.SIGINT)
    assert p.wait() == 0


def test_a_second_signal_ends_it_at_once(stage):
    gate, script = gated()
    o = stage.origin(script)
    p = stage.proxy(o, timeouts={"drain": "60s", "first_byte": "60s"})
    c = stage.client(p)
    c.request("GET", "/slow")
    o.wait(1)
    p.signal(signal.SIGTERM)
    wait_until(lambda: refuses(p), "the listener to close")
    p.signal(signal.SIGTERM)
    p.wait(3)
    assert c.ended() == b""
    gate.set()


def test_the_drain_time_is_bounded(stage):
    gate, script = gated()
    o = stage.origin(script)
    p = stage.proxy(o, timeouts={"drain": "300ms", "first_byte": "60s"})
    c = stage.client(p)
    c.request("GET", "/slow")
    o.wait(1)
    p.signal(signal.SIGTERM)
    assert p.wait(3) == 0
    gate.set()


def test_sigusr1_opens_the_access_log_again(stage):
    path = str(stage.folder / "access.log")
    p = stage.proxy(stage.origin(), log="access: '%s', format: json" % path)
    c = stage.client(p)
    has = lambda word: lambda: os.path.exists(path) and word in open(path).read()
    c.get("/first")
    wait_until(has("/first"), "the first line")
    os.rename(path, path + ".1")
    p.signal(signal.SIGUSR1)
    wait_until(lambda: os.path.exists(path), "a new file")
    c.get("/second")
    wait_until(has("/second"), "the second line")
    old = open(path + ".1").read()
    assert "/first" in old and "/second" not in old and "/first" not in open(path).read()


def test_sighup_and_sigpipe_do_not_end_it(stage):
    p = stage.proxy(stage.origin())
    p.signal(signal.SIGPIPE)
    assert stage.client(p).get("/").status == 200


def test_what_is_cut_at_the_end_is_in_the_log(stage):
    gate, script = gated()
    o = stage.origin(script)
    p = stage.proxy(o, timeouts={"drain": "200ms", "first_byte": "60s"})
    stage.client(p).request("GET", "/slow")
    o.wait(1)
    p.signal(signal.SIGTERM)
    assert p.wait(3) == 0
    line = p.log()[0]
    assert (line["target"], line["status"], line["cause"]) == ("/slow", 0, "drained")
    assert "drained=1" in p.err.text()
    gate.set()


@pytest.mark.whole_calls("within the drain 1500 heads must be read")
def test_what_is_cut_is_in_the_log_when_it_is_much(stage):
    gate, script = gated()
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], max_connections: 1}" % o.address}, timeouts={"drain": "1500ms", "connect": "30s"})
    clients = [stage.client(p) for _ in range(1500)]
    for c in clients:
        c.request("GET", "/slow")
    wait_until(lambda: p.descriptors() > 1500, "all to be accepted")
    p.signal(signal.SIGTERM)
    assert p.wait() == 0
    gate.set()
    assert "dropped" not in p.err.text()
    lines = [json.loads(line) for line in p.out.text().splitlines()]
    assert len(lines) >= 1500 and {line["cause"] for line in lines} == {"drained"}


@pytest.mark.true_edges("a drain gives an idle connection one chance to be readable")
def test_what_was_sent_before_the_signal_is_answered(stage):
    for _ in range(5):
        p = stage.proxy(stage.origin())
        kept = [stage.client(p) for _ in range(20)]
        for c in kept:
            assert c.get("/").status == 200
        fresh = [stage.client(p) for _ in range(100)]
        for c in kept + fresh:
            c.request("GET", "/late")
        p.signal(signal.SIGTERM)
        assert [c.answer().status for c in kept + fresh] == [200] * 120
        assert p.wait() == 0
