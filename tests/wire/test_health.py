"""Endpoints that are left out: those at which requests fail (`eject`), and those whose checks fail (`health`)."""
import re
import ssl
import time

import pytest
from harness import wait_until
from test_tls import certificate


class Switch:
    """An origin that does what it is told: `good` answers with its name, others go wrong in their way; it knows checks
    (by their path) from requests."""

    def __init__(self, stage, name, how="good", check="good", **more):
        self.name, self.how, self.check = name, how, check
        self.served, self.checked = 0, 0
        self.origin = stage.origin(self.script, **more)
        self.address = self.origin.address

    def script(self, c):
        while True:
            r = c.request()
            if r is None:
                return
            check = r.target.startswith("/healthz")
            if check:
                self.checked += 1
            else:
                self.served += 1
            how = self.check if check else self.how
            if how == "good":
                c.reply(self.name)
            elif how == "silent":
                c.wait_closed()
                return
            elif how == "reset":
                c.rst()
                return
            elif how == "close":
                return
            elif isinstance(how, bytes):
                c.send(how)
                c.wait_closed()
                return
            else:
                c.reply(self.name, status=how)


def service(ends, more):
    return "{endpoints: [%s], balance: round_robin, %s}" % (", ".join("'%s'" % e.address for e in ends), more)


def names(c, n, target="/"):
    return "".join(c.get(target).text() for _ in range(n))


# ---- eject ---------------------------------------------------------------------

@pytest.mark.parametrize("how", ["close", "reset", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_an_endpoint_is_left_out_after_failures_in_a_row(stage, how):
    a, b = Switch(stage, "a", how), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: 3, time: 1m}")}, timeouts={"first_byte": "200ms"})
    c = stage.client(p)
    while a.served < 3:
        c = stage.client(p)
        c.get("/")
    p.err.wait(r"endpoint %s: left out for 60\.0 s: 3 requests in a row failed, the last one: the endpoint" % re.escape(a.address))
    served = a.served
    assert names(stage.client(p), 6) == "bbbbbb" and a.served == served


def test_time_outs_count(stage):
    a, b = Switch(stage, "a", "silent"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: 2, time: 1m}")}, timeouts={"first_byte": "100ms"})
    while a.served < 2:
        stage.client(p).get("/")
    p.err.wait(r"2 requests in a row failed, the last one: the endpoint did not answer in time")


def test_refused_connections_count(stage):
    a, b = Switch(stage, "a"), Switch(stage, "b")
    a.origin.stop_listening()
    p = stage.proxy({"app": service([a, b], "eject: {failures: 2, time: 1m}")})
    c = stage.client(p)
    end = time.monotonic() + 10
    while "left out" not in p.err.text() and time.monotonic() < end:
        assert c.get("/").text() == "b"     # the other one, however that one fares
    p.err.wait(r"endpoint %s: left out for 60\.0 s: 2 requests in a row failed, the last one: the endpoint refused" % re.escape(a.address))


def test_it_comes_back_on_probation_and_is_out_for_longer(stage):
    a, b = Switch(stage, "a", "close"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: 3, time: 300ms, max_time: 700ms}")})
    c = stage.client(p)

    seen = 0

    def until(line):
        nonlocal seen
        end = time.monotonic() + 10
        while time.monotonic() < end:
            for i, l in enumerate(p.err.lines[seen:]):
                if line in l:
                    seen += i + 1
                    return
            c.get("/")
        raise AssertionError(p.err.text()[-3000:])
    until("left out for 0.3 s: 3 requests in a row failed")
    until("used again, for its time is over")
    until("left out for 0.6 s: 3 requests in a row failed")      # the first failure was enough
    until("left out for 0.7 s")
    a.how = "good"
    until("used again")
    wait_until(lambda: "a" in names(c, 4), "a is used again")
    p.stop()
    p.err.wait(r"served:.* ejections=3 .*health_signs=")


def test_something_good_between_failures_begins_anew(stage):
    a, b = Switch(stage, "a"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: 3, time: 1m}")})
    for _ in range(4):
        for how in ("close", "close", "good"):
            a.how = how
            before = a.served
            while a.served == before:
                stage.client(p).get("/")
    assert "left out" not in p.err.text()


def test_ratio(stage):
    a, b = Switch(stage, "a", "500 No"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: off, ratio: 40%, volume: 10, interval: 1m, time: 1m, server_errors: on}")})
    c = stage.client(p)
    n = 0
    while a.served < 20 and "left out" not in p.err.text():
        a.how = "500 No" if n % 2 else "good"
        before = a.served
        while a.served == before:
            c.get("/")
        n += 1
    p.err.wait(r"left out for 60\.0 s: \d+ of 1\d requests failed, the last one: an answer with a status of 500 or more")


def test_server_errors_are_answers_unless_they_are_to_count(stage):
    a, b = Switch(stage, "a", "500 No"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: {failures: 2, time: 1m}")})
    c = stage.client(p)
    assert names(c, 20).count("a") == 10
    assert "left out" not in p.err.text()


def test_eject_off(stage):
    a, b = Switch(stage, "a", "close"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "eject: off")})
    while a.served < 20:
        stage.client(p).get("/")
    assert "left out" not in p.err.text()


def test_the_last_one_stays(stage):
    a = Switch(stage, "a", "close")
    p = stage.proxy({"app": service([a], "eject: {failures: 2, max_share: 100%}")})
    for _ in range(5):
        assert stage.client(p).get("/").status == 502
    p.err.wait(r"too many requests in a row failed.*it is used on, for 0 of the 1 endpoints of service app are out")
    assert "left out" not in p.err.text()
    a.how = "good"
    assert stage.client(p).get("/").text() == "a"


def test_no_more_than_their_share(stage):
    ends = [Switch(stage, n, "close") for n in "abc"] + [Switch(stage, "d")]
    p = stage.proxy({"app": service(ends, "eject: {failures: 2, time: 1m, max_share: 50%}")})
    while sum(e.served >= 6 for e in ends[:3]) < 1:
        stage.client(p).get("/")
    p.err.wait(r"it is used on, for 2 of the 4 endpoints of service app are out")
    assert p.err.text().count("left out for") == 2


def test_panic_uses_all(stage):
    ends = [Switch(stage, n, "close") for n in "ab"] + [Switch(stage, n) for n in "cd"]
    p = stage.proxy({"app": service(ends, "eject: {failures: 1, time: 1m, max_share: 75%, panic: 60%}")})
    while p.err.text().count("left out for") < 2:
        stage.client(p).get("/")
    p.err.wait(r"service app: 2 of 4 endpoints are well; all are used")
    for e in ends[:2]:
        e.how = "good"
    assert set(names(stage.client(p), 8)) == set("abcd")


def test_a_verdict_is_shared_by_services_with_the_same_rules(stage):
    a, b = Switch(stage, "a", "close"), Switch(stage, "b")
    eject = "eject: {failures: 2, time: 1m}"
    p = stage.proxy({"one": service([a, b], eject), "two": service([b, a], eject), "own": service([a, b], "eject: {failures: 3, time: 1m}")},
                    routes=["{path: /%s, service: %s}" % (n, n) for n in ("one", "two", "own")])
    while a.served < 2:
        stage.client(p).get("/one")
    p.err.wait("left out for 60.0 s: 2 requests")
    before = a.served
    assert names(stage.client(p), 6, "/two") == "bbbbbb" and a.served == before
    names(stage.client(p), 4, "/own")
    assert a.served > before


# ---- health --------------------------------------------------------------------

FAST = "interval: 100ms, timeout: 300ms, rise: 2, fall: 3"


def down(p, e, why, n=3):
    p.err.wait(r"endpoint %s: %d checks in a row failed, the last one: %s" % (re.escape(e.address), n, why))


@pytest.mark.parametrize("how,why", [
    ("503 No", "it answered with status 503"), ("silent", "it did not answer in time"), ("reset", "the connection broke"),
    ("close", "it closed the connection without an answer"), (b"garbage\r\n\r\n", "its answer is not HTTP"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 20000, "its answer is"), (b"HTTP/1.1 200 OK\r\nContent-Le", "it did not answer in time"),
    (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "its answer is not HTTP"),
])
def test_checks_take_it_down_and_up(stage, how, why):
    a, b = Switch(stage, "a"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "health: {http: /healthz, interval: 100ms, timeout: 300ms, rise: 2, fall: 3}")})
    c = stage.client(p)
    wait_until(lambda: a.checked > 1 and b.checked > 1, "both are checked")
    a.check = how
    down(p, a, why)
    assert names(c, 6) == "bbbbbb"
    a.check = "good"
    p.err.wait(r"endpoint %s: 2 checks in a row went well" % re.escape(a.address))
    assert set(names(c, 4)) == set("ab")


def test_a_check_that_fails_now_and_then_changes_nothing(stage):
    a, b = Switch(stage, "a"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "health: {http: /healthz, %s}" % FAST)})
    for how in ("503 No", "503 No", "good") * 3:
        a.check, before = how, a.checked
        wait_until(lambda: a.checked > before, "a check")
    assert "checks in a row failed" not in p.err.text()


def test_what_a_check_says(stage):
    a = Switch(stage, "a", check="404 Not Found")
    p = stage.proxy({"app": service([a], "health: {http: '/healthz?deep=1', method: HEAD, host: in.test, statuses: [2xx, 404, 500-501],"
                                          " headers: {X-Probe: yes please, User-Agent: me}, %s}" % FAST)})
    r = a.origin.wait(3)[2]
    assert (r.method, r.target, r.get("Host"), r.get("X-Probe"), r.get("User-Agent")) == ("HEAD", "/healthz?deep=1", "in.test", "yes please", "me")
    assert r.get("Connection") is None
    assert "failed" not in p.err.text()
    a.check = "403 Forbidden"
    down(p, a, "it answered with status 403")


def test_host_and_agent_by_default(stage):
    a = Switch(stage, "a")
    stage.proxy({"app": service([a], "health: {http: /healthz, %s}" % FAST)})
    r = a.origin.wait(1)[0]
    assert (r.method, r.get("Host"), r.get("User-Agent")) == ("GET", a.address, "thimble")


def test_each_check_has_a_connection_that_is_reset(stage):
    ends = []

    def script(c):
        c.request()
        c.reply("fine")
        try:
            c.sock.recv(1)
            ends.append("fin")
        except ConnectionResetError:
            ends.append("reset")
    o = stage.origin(script)
    stage.proxy({"app": "{endpoints: ['%s'], health: {http: /healthz, interval: 100ms}}" % o.address})
    wait_until(lambda: len(ends) >= 4, "four checks")
    assert set(ends) == {"reset"} and o.connections >= 4


def test_tcp_and_a_port_of_its_own(stage):
    a, b = Switch(stage, "a"), Switch(stage, "b")
    side = stage.origin(lambda c: c.wait_closed())
    p = stage.proxy({"app": service([a, b], "health: {tcp: on, port: %d, %s}" % (side.port, FAST))})
    side.wait_connections(4)
    assert a.checked == 0 and "failed" not in p.err.text()
    side.stop_listening()
    down(p, a, "it could not be connected to: Connection refused")
    down(p, b, "it could not be connected to: Connection refused")
    assert set(names(stage.client(p), 4)) == set("ab")     # none is left: all are used


def test_unix_sockets_are_checked(stage, tmp_path):
    a = Switch(stage, "a", path=str(tmp_path / "a.sock"))
    stage.proxy({"app": service([a], "health: {http: /healthz, %s}" % FAST)})
    assert a.origin.wait(2)[1].get("Host") == "localhost"


def test_start_waits_for_no_check(stage):
    a = Switch(stage, "a", check="503 No")
    p = stage.proxy({"app": service([a], "health: {http: /healthz, interval: 1h}")})
    assert stage.client(p).get("/").text() == "a"


def test_a_good_check_ends_an_ejection(stage):
    a, b = Switch(stage, "a", "close"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "health: {http: /healthz, %s}, eject: {failures: 2, time: 1m}" % FAST)})
    while "left out for" not in p.err.text():
        stage.client(p).get("/")
    p.err.wait(r"endpoint %s: used again, for its checks go well" % re.escape(a.address))


def test_defaults_have_health_and_eject(stage):
    a, b = Switch(stage, "a", check="503 No"), Switch(stage, "b")
    p = stage.proxy({"app": service([a, b], "max_connections: 0")},
                    more="defaults: {health: {http: /healthz, interval: 100ms, fall: 1}, eject: {failures: 1, time: 1m}}\n")
    down(p, a, "it answered with status 503", 1)


def secure(stage, name="inner.test"):
    cert, key = certificate(stage, name)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)

    def script(c):
        try:
            c.sock = server.wrap_socket(c.sock, server_side=True, suppress_ragged_eofs=False)
        except OSError:
            return
        r = c.request()
        if r is not None:
            c.reply("fine")
            c.wait_closed()
    return stage.origin(script), cert


@pytest.mark.parametrize("how", ["http: /healthz", "tcp: on"])
def test_tls_is_spoken_and_certificates_are_looked_at(stage, how):
    o, cert = secure(stage)
    other = certificate(stage, "other.test")[0]
    tls = "{endpoints: ['%s'], tls: {ca: %s, name: %s}, health: {%s, interval: 100ms, fall: 2}}"
    p = stage.proxy({"good": tls % (o.address, cert, "inner.test", how), "bad": tls % (o.address, other, "inner.test", how),
                     "name": tls % (o.address, cert, "wrong.test", how)})
    down = r"endpoint %s: 2 checks in a row failed, the last one: the TLS handshake failed: .*" % re.escape(o.address)
    p.err.wait(down)
    o.wait_connections(12)
    wait_until(lambda: len(re.findall(down, p.err.text())) == 2, "both that do not trust it say so")
    if "http" in how:
        assert o.wait(3)[2].target == "/healthz"
    p.stop()
    assert len(re.findall("checks in a row failed", p.err.text())) == 2


def test_an_endpoint_that_says_nothing_to_a_handshake(stage):
    o = stage.origin(lambda c: c.wait_closed())
    o.errors = Forgiving()
    p = stage.proxy({"app": "{endpoints: ['https://%s'], tls: {insecure_skip_verify: on}, "
                            "health: {tcp: on, interval: 100ms, timeout: 200ms, fall: 1}}" % o.address})
    p.err.wait(r"1 checks in a row failed, the last one: the TLS handshake did not end in time")


def test_a_plain_origin_is_no_tls_endpoint(stage):
    a = Switch(stage, "a")
    cert = certificate(stage, "inner.test")[0]
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {ca: %s, name: inner.test}, health: {http: /healthz, interval: 100ms, timeout: 200ms, fall: 1}}"
                     % (a.address, cert)})
    a.origin.errors = Forgiving()
    p.err.wait(r"1 checks in a row failed, the last one: ")


class Forgiving(list):
    """A ClientHello is no request, and that is no fault of the test."""

    def append(self, what):
        pass


@pytest.mark.parametrize("at", [0, 1, 8, 12, 14, 17])
def test_an_answer_that_is_reset_at_any_byte(stage, at):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    def script(c):
        c.request()
        c.send(answer[:at])
        c.rst()
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], health: {http: /healthz, interval: 100ms, fall: 2}}" % o.address})
    p.err.wait(r"2 checks in a row failed, the last one: (the connection broke|it closed|it did not)")
    assert stage.client(p).get("/").status == 502


def test_a_storm_has_few_lines(stage):
    a = Switch(stage, "a")
    dead = ["127.%d.%d.1:1" % (1 + i // 200, i % 200) for i in range(400)]
    p = stage.proxy({"app": "{endpoints: [%s], health: {http: /healthz, interval: 1s, fall: 1}}" % ", ".join("'%s'" % d for d in dead + [a.address])})
    wait_until(lambda: a.checked >= 3, "all were checked twice")
    p.stop()
    assert 100 <= len(re.findall("checks in a row failed", p.err.text())) < 350
    p.err.wait(r"served:.* checks_unwell=400\b")


def test_checks_that_wait_for_descriptors_do_not_fail(stage):
    import resource
    quiet = [Switch(stage, "x%d" % i, check="silent") for i in range(30)]
    p = stage.proxy({"app": service(quiet, "health: {http: /healthz, interval: 100ms, timeout: 200ms, fall: 100}")},
                    ceilings=[(resource.RLIMIT_NOFILE, 96)])
    wait_until(lambda: all(q.checked for q in quiet), "each was checked")
    assert stage.client(p).get("/").status == 200
