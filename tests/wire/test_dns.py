"""Endpoints by name: a scripted name server says what names stand for, and takes it back."""
import re
import socket
import ssl
import struct
import threading
import time

import pytest

import certs
from harness import Client, config, echo, free_port, wait_until
from nameserver import A, AAAA, NXDOMAIN, REFUSED, SERVFAIL, SRV, Name, NameServer, answer, packed, unpacked


@pytest.fixture
def ns():
    servers = []

    def make(**more):
        servers.append(NameServer(**more))
        return servers[-1]
    first = make()
    first.another = make
    try:
        yield first
    finally:
        for s in servers:
            s.stop()


def says(text):
    """A script that answers with this, and says `Connection: close` to nobody."""
    def script(c):
        while c.request() is not None:
            c.reply(text)
    return script


def origins(stage, n, port=None):
    """`n` origins at 127.0.0.2 and on, with one port; each says its own address."""
    for _ in range(20):
        port = free_port()
        made = []
        try:
            for i in range(n):
                made.append(stage.origin(says("127.0.0.%d" % (i + 2)), host="127.0.0.%d" % (i + 2), port=port))
            return port, made
        except OSError:
            for o in made:
                stage.origins.remove(o)
                o.stop()
    raise AssertionError("no port is free at %d addresses" % n)


def proxy(stage, ns, services, dns=None, **settings):
    return stage.text(config(services, more=ns.config(**dns or {}), **settings))


def served(stage, p, n=8):
    """Who answers `n` requests in a row: addresses, or the cause of an answer of the proxy's own."""
    c = stage.client(p)
    return [c.get().text() for _ in range(n)]


def wait_served(stage, p, want, patience=10):
    """Until those, and no others, answer."""
    c = stage.client(p)

    def who():
        answers = [c.get() for _ in range(8)]
        return {a.text() if a.status == 200 else a.status for a in answers} == set(want)
    wait_until(who, "answers of %r" % (want,), patience)


# ---- names that are there ----------------------------------------------------

def test_a_name_stands_for_its_addresses(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.3", "127.0.0.2"])
    p = stage.text(config({"app": "Web.Test:%d" % port}, more="dns: {nameservers: '%s', search: off, hosts: off}\n" % ns.address))
    wait_served(stage, p, ["127.0.0.2", "127.0.0.3"])
    line = p.err.wait(r"service app: 2 endpoints now; 2 added")
    assert "127.0.0.2:%d, 127.0.0.3:%d" % (port, port) in line


def test_both_families_are_merged(stage, ns):
    o4 = stage.origin(says("four"))
    o6 = stage.origin(says("six"), family=socket.AF_INET6, port=o4.port)
    ns.zone["web.test"] = Name(a=["127.0.0.1"], aaaa=["::1"])
    p = proxy(stage, ns, {"app": "web.test:%d" % o4.port})
    wait_served(stage, p, ["four", "six"])
    assert o6.port == o4.port


@pytest.mark.parametrize("family, want", [("ip4", "four"), ("ip6", "six")])
def test_family(stage, ns, family, want):
    o4 = stage.origin(says("four"))
    stage.origin(says("six"), family=socket.AF_INET6, port=o4.port)
    ns.zone["web.test"] = Name(a=["127.0.0.1"], aaaa=["::1"])
    p = proxy(stage, ns, {"app": "{dns: {name: web.test, port: %d, family: %s}}" % (o4.port, family)})
    wait_served(stage, p, [want])
    assert not ns.asked("web.test", AAAA if family == "ip4" else A)


def test_names_and_addresses_stand_side_by_side(stage, ns):
    port, _ = origins(stage, 3)
    p = proxy(stage, ns, {"app": "{endpoints: ['127.0.0.2:%d', 'web.test:%d'], dns: 'more.test:%d'}" % (port, port, port)})
    assert served(stage, p) == ["127.0.0.2"] * 8           # which waits for no name
    ns.zone["web.test"] = Name(a=["127.0.0.3"])
    wait_served(stage, p, ["127.0.0.2", "127.0.0.3"])
    ns.zone["more.test"] = Name(a=["127.0.0.4", "127.0.0.3"])
    wait_served(stage, p, ["127.0.0.2", "127.0.0.3", "127.0.0.4"])


def test_weight_and_state_of_a_name_are_those_of_its_addresses(stage, ns):
    port, made = origins(stage, 3)
    ns.zone["web.test"] = Name(a=["127.0.0.2", "127.0.0.3"])
    p = proxy(stage, ns, {"app": "{endpoints: [{address: 'web.test:%d', weight: 3}, {address: '127.0.0.4:%d', weight: 1}], balance: round_robin}" % (port, port)})
    p.err.wait("service app: 3 endpoints now")
    who = served(stage, p, 70)
    assert [who.count("127.0.0.%d" % i) for i in (2, 3, 4)] == [30, 30, 10]
    p = proxy(stage, ns, {"app": "{endpoints: [{address: 'web.test:%d', state: serving}, '127.0.0.4:%d']}" % (port, port)})
    p.err.wait("service app: 3 endpoints now")
    assert served(stage, p) == ["127.0.0.4"] * 8


def test_before_the_first_answer_there_is_503_and_the_start_waits_for_nobody(stage, ns):
    port, _ = origins(stage, 1)
    ns.silent = True
    before = time.monotonic()
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    a = stage.client(p).get()
    assert a.status == 503 and a.error == "dns_error" and time.monotonic() - before < 5
    assert p.log(1)[0]["cause"] == "unresolved"
    p.err.wait(r"name web\.test: no answer in time; it has no endpoints")
    ns.zone["web.test"] = Name(a=["127.0.0.2"])
    ns.silent = False
    wait_served(stage, p, ["127.0.0.2"])
    p.err.wait(r"name web\.test: found again")


def test_check_asks_for_nothing(stage, ns):
    path = stage.file("check.yaml", config({"app": "web.test:80"}, more=ns.config()).replace("@PORT@", "8080"))
    p = stage.start(["check", "-c", path], ready=False)
    assert p.wait() == 0
    p.check_clean()
    assert not ns.queries


def speaks_tls(pair, asked):
    """A script that does so with this certificate, notes the server name that it is asked for, and says Host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.sni_callback = lambda _s, name, _c: asked.append(name.lower())

    def script(c):
        try:
            c.sock = context.wrap_socket(c.sock, server_side=True)
        except ssl.SSLError:
            return
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(r.get("Host"))
    return script


def test_a_name_is_the_name_that_tls_expects(stage, ns, tmp_path):
    ca, asked = certs.Authority(tmp_path), []
    o = stage.origin(speaks_tls(ca.issue(tmp_path, "app", ["app.test"]), asked), host="127.0.0.2")
    ns.zone["app.test"] = ns.zone["other.test"] = Name(a=["127.0.0.2"])
    p = proxy(stage, ns, {"app": "{endpoints: 'https://App.Test.:%d', tls: {ca: '%s'}, host: endpoint}" % (o.port, ca.cert),
                          "other": "{dns: {name: other.test, port: %d}, tls: {ca: '%s'}}" % (o.port, ca.cert)},
              routes=["{path: /, service: app}", "{path: /other, service: other}"])
    for name in ("app", "other"):
        p.err.wait("service %s: 1 endpoint now" % name)
    assert stage.client(p).get().text() == "App.Test.:%d" % o.port and set(asked) == {"app.test"}
    assert stage.client(p).get("/other").status == 502 and set(asked) == {"app.test", "other.test"}
    assert p.log(2)[1]["cause"] == "tls_certificate"


# ---- changes -----------------------------------------------------------------

def test_an_address_that_is_gone_gets_no_request_and_no_connection_is_kept_to_it(stage, ns):
    port, (first, second) = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=1)
    p = proxy(stage, ns, {"app": "web.test:%d" % port}, timeouts={"upstream_idle": "60s"})
    wait_served(stage, p, ["127.0.0.2"])
    ns.zone["web.test"] = Name(a=["127.0.0.3"], ttl=1)
    changed = time.monotonic()
    first.wait_idle()                                       # long before upstream_idle
    assert time.monotonic() - changed < 4
    seen = len(first.requests)
    assert served(stage, p) == ["127.0.0.3"] * 8
    assert len(first.requests) == seen
    p.err.wait(r"service app: 1 endpoint now; 1 added \(127\.0\.0\.3:\d+\), 1 removed \(127\.0\.0\.2:\d+\)")


def test_what_is_in_flight_at_an_address_that_is_gone_ends_well(stage, ns):
    go = threading.Event()

    def slow(c):
        c.request()
        go.wait(10)
        c.reply("slow")
        c.wait_closed()
    port = free_port()
    old = stage.origin(slow, host="127.0.0.2", port=port)
    stage.origin(says("new"), host="127.0.0.3", port=port)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    p.err.wait("1 endpoint now")
    c = stage.client(p).request("GET", "/")
    old.wait(1)
    ns.zone["web.test"] = Name(a=["127.0.0.3"], ttl=0)
    p.err.wait("1 removed")
    assert served(stage, p) == ["new"] * 8
    go.set()
    assert c.answer().text() == "slow"
    old.wait_idle()                                         # and its connection is not kept


def test_who_waits_for_a_service_gets_an_address_that_is_new(stage, ns):
    go, port = threading.Event(), free_port()

    def slow(c):
        c.request()
        go.wait(10)
        c.reply("slow")
    old = stage.origin(slow, host="127.0.0.2", port=port)
    stage.origin(says("new"), host="127.0.0.3", port=port)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "{endpoints: 'web.test:%d', max_requests: 1}" % port})
    p.err.wait("1 endpoint now")
    first = stage.client(p).request("GET", "/1")
    old.wait(1)
    second = stage.client(p).request("GET", "/2")           # waits, for a slot or for another address
    ns.zone["web.test"] = Name(a=["127.0.0.3"], ttl=0)
    assert second.answer().text() == "new"
    go.set()
    assert first.answer().text() == "slow"


def test_the_same_in_another_order_changes_nothing(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.2", "127.0.0.3"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    p.err.wait("2 endpoints now")
    for i in range(4):
        ns.zone["web.test"] = Name(a=["127.0.0.3", "127.0.0.2"][::1 if i % 2 else -1] * 2, ttl=0)
        ns.wait_asked("web.test", 2)
    assert p.err.text().count("endpoints now") == 1
    p.stop()
    assert re.search(r"dns_changes=1\b", p.err.text())


def test_a_time_to_live_is_kept_to_and_zero_has_a_floor(stage, ns):
    ns.zone["long.test"] = Name(a=["127.0.0.2"], ttl=3600)
    ns.zone["none.test"] = Name(a=["127.0.0.2"], ttl=0)
    ns.zone["one.test"] = Name(a=["127.0.0.2"], ttl=1)
    before = time.monotonic()
    proxy(stage, ns, {"a": ["long.test:1", "none.test:1", "one.test:1"]}, dns={"ttl_min": "200ms", "ttl_max": "1h"})
    ns.wait_asked("none.test", 5, A)
    assert time.monotonic() - before > 0.8
    assert ns.asked("long.test", A) == 1 and ns.asked("one.test", A) <= 2


def test_ttl_max_bounds_what_a_name_server_says(stage, ns):
    ns.zone["long.test"] = Name(a=["127.0.0.2"], ttl=86400)
    proxy(stage, ns, {"a": "long.test:1"}, dns={"ttl_max": "300ms"})
    ns.wait_asked("long.test", 3, A)


def test_one_question_for_many_services(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=3600)
    services = {"s%d" % i: "web.test:%d" % (port if i % 2 else port + i) for i in range(50)}
    p = proxy(stage, ns, services, routes=["{path: /s1, service: s1}", "{path: /, service: s0}"], dns={"ttl_max": "1h"})
    p.err.wait("service s49: 1 endpoint now")
    assert ns.asked("web.test") == 2                        # A and AAAA
    assert stage.client(p).get("/s1").text() == "127.0.0.2"


def test_names_that_change_under_traffic_fail_no_request(stage, ns, long):
    port, made = origins(stage, 3)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port}, workers=2)
    p.err.wait("1 endpoint now")
    over, failed, count = threading.Event(), [], [0]

    def client():
        c = Client(p.address)
        while not over.is_set():
            a = c.get()
            count[0] += 1
            if a.status != 200 or not a.text().startswith("127.0.0."):
                failed.append((a.status, a.text()))
        c.close()
    threads = [threading.Thread(target=client) for _ in range(4)]
    for t in threads:
        t.start()
    sets = [["127.0.0.2"], ["127.0.0.3"], ["127.0.0.2", "127.0.0.4"], ["127.0.0.3", "127.0.0.4"], ["127.0.0.4"]]
    broken = [Name(rcode=SERVFAIL), Name(silent=True), Name(rcode=NXDOMAIN), Name(truncate=True, a=["127.0.0.3"], ttl=0), Name(rcode=REFUSED),
              Name(aliases=["a%d.test" % i for i in range(100)], dangling=True), Name(a=["0.0.0.0"])]
    try:
        for i in range(60 if long else 15):
            ns.zone["web.test"] = Name(a=sets[i % len(sets)], ttl=0)
            ns.wait_asked("web.test", 2)
            ns.zone["web.test"] = broken[i % len(broken)]
            ns.wait_asked("web.test", 1)
    finally:
        over.set()
        for t in threads:
            t.join(10)
    assert not failed and count[0] > 100, (failed[:5], count[0])


def test_a_removed_address_gets_no_request_a_second_after_its_time(stage, ns, long):
    """The set changes every second; what each origin is asked is held against what its address was worth then."""
    ttl, port, seen = 1, free_port(), []

    def script(host):
        def serve(c):
            while c.request() is not None:
                seen.append((time.monotonic(), host))
                c.reply(host)
        return serve
    hosts = ["127.0.0.%d" % i for i in (2, 3, 4)]
    for h in hosts:
        stage.origin(script(h), host=h, port=port)
    changes = []

    def change(now):
        ns.zone["web.test"] = Name(a=now, ttl=ttl)
        changes.append((time.monotonic(), now))
    change(hosts[:1])
    p = proxy(stage, ns, {"app": "web.test:%d" % port}, workers=2)
    p.err.wait("1 endpoint now")
    over, failed = threading.Event(), []

    def client():
        c = Client(p.address)
        while not over.is_set():
            if c.get().status != 200:
                failed.append(time.monotonic())
            time.sleep(0.002)
        c.close()
    threads = [threading.Thread(target=client) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for i in range(60 if long else 6):
            over.wait(1)
            change([hosts[(i + 1) % 3]] if i % 2 else [hosts[i % 3], hosts[(i + 2) % 3]])
    finally:
        over.wait(2)
        over.set()
        for t in threads:
            t.join(10)

    def allowed(at, host):
        """Whether it was in the set at some time that an answer may be as old as."""
        return any(host in now and begun <= at and (i + 1 == len(changes) or changes[i + 1][0] >= at - ttl - 1)
                   for i, (begun, now) in enumerate(changes))
    late = [s for s in seen if not allowed(*s)]
    assert not failed and not late and len(seen) > 100 and len({h for _, h in seen}) == 3, (failed[:3], late[:3], len(seen))


# ---- names that fail ---------------------------------------------------------

BROKEN = {
    "servfail": Name(rcode=SERVFAIL), "refused": Name(rcode=REFUSED), "silence": Name(silent=True), "nxdomain": Name(rcode=NXDOMAIN),
    "no records": Name(), "nobody's addresses": Name(a=["0.0.0.0", "224.0.0.1", "255.255.255.255"], aaaa=["::", "ff02::1", "fe80::1"]),
    "a circle": Name(aliases=["b.test", "web.test"] * 20, dangling=True), "aliases without end": Name(aliases=["a%d.test" % i for i in range(100)], a=["127.0.0.3"]),
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_last_good_answer_stays(stage, ns, how):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    wait_served(stage, p, ["127.0.0.2"])
    ns.zone["web.test"] = BROKEN[how]
    p.err.wait(r"name web\.test: .*what is known of it stays in use")
    ns.wait_asked("web.test", 1)
    assert served(stage, p) == ["127.0.0.2"] * 8
    ns.zone["web.test"] = Name(a=["127.0.0.3"], ttl=0)
    wait_served(stage, p, ["127.0.0.3"])


def test_nxdomain_drop(stage, ns):
    port, _ = origins(stage, 1)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port}, dns={"nxdomain": "drop"})
    wait_served(stage, p, ["127.0.0.2"])
    ns.zone["web.test"] = Name(rcode=SERVFAIL)
    p.err.wait(r"name web\.test: no name server has an answer; what is known of it stays in use")
    assert served(stage, p, 2) == ["127.0.0.2"] * 2
    del ns.zone["web.test"]
    wait_served(stage, p, [503])
    p.err.wait(r"service app: 0 endpoints now; 0 added, 1 removed")


def test_stale(stage, ns):
    port, _ = origins(stage, 1)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port}, dns={"stale": "1s"})
    wait_served(stage, p, ["127.0.0.2"])
    ns.zone["web.test"] = Name(rcode=SERVFAIL)
    failed = time.monotonic()
    wait_served(stage, p, [503])
    assert time.monotonic() - failed > 0.7
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    wait_served(stage, p, ["127.0.0.2"], patience=15)


def test_one_family_that_fails_keeps_its_addresses(stage, ns):
    o4 = stage.origin(says("four"))
    stage.origin(says("six"), family=socket.AF_INET6, port=o4.port)
    ns.zone["web.test"] = Name(a=["127.0.0.1"], aaaa=["::1"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % o4.port})
    wait_served(stage, p, ["four", "six"])
    ns.zone["web.test"] = Name(a=["127.0.0.1"], rcodes={AAAA: SERVFAIL}, ttl=0)
    ns.wait_asked("web.test", 4, A)
    assert set(served(stage, p)) == {"four", "six"}
    ns.zone["web.test"] = Name(a=["127.0.0.1"], ttl=0)     # no AAAA, for sure
    wait_served(stage, p, ["four"])


def test_a_name_server_that_dies_and_comes_back(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    wait_served(stage, p, ["127.0.0.2"])
    ns.stop()
    p.err.wait(r"name web\.test: .*stays in use")
    assert served(stage, p) == ["127.0.0.2"] * 8
    again = ns.another(port=ns.port)
    again.zone["web.test"] = Name(a=["127.0.0.3"], ttl=0)
    wait_served(stage, p, ["127.0.0.3"], patience=20)


@pytest.mark.parametrize("how", ["silent", "servfail", "gone"])
def test_the_second_name_server_answers_for_the_first(stage, ns, how):
    port, _ = origins(stage, 1)
    second = ns.another()
    second.zone["web.test"] = Name(a=["127.0.0.2"])
    ns.zone["web.test"] = Name(rcode=SERVFAIL)
    ns.silent = how == "silent"
    if how == "gone":
        ns.stop()
    p = stage.text(config({"app": "web.test:%d" % port}, more=ns.config(nameservers="['%s', '%s']" % (ns.address, second.address))))
    wait_served(stage, p, ["127.0.0.2"])
    assert "no name server" not in p.err.text()


def test_timeout_and_attempts(stage, ns):
    ns.silent = True
    before = time.monotonic()
    p = proxy(stage, ns, {"app": "web.test:1"}, dns={"timeout": "100ms", "attempts": 3})
    p.err.wait("no answer in time")
    assert time.monotonic() - before > 0.7 and ns.asked("web.test", A) == 3     # 100 ms, 200 ms, 400 ms


# ---- answers of strangers ----------------------------------------------------

def forged(query):
    """Answers that are not ours come first: another id, another question, another kind of message."""
    kind = struct.unpack("!H", query[unpacked(query, 12)[1]:][:2])[0]
    name = unpacked(query, 12)[0]
    evil, good = Name(a=["127.0.0.3"], ttl=0), Name(a=["127.0.0.2"], ttl=0)
    m = answer(query, evil, kind, name)
    other = bytearray(query)
    other[13:16] = b"bad"
    return [struct.pack("!H", struct.unpack("!H", m[:2])[0] ^ 1) + m[2:], answer(bytes(other), evil, kind, "bad.test"), m[:11], b"", m[:2],
            answer(query, good, kind, name)]


def test_what_was_not_asked_for_is_no_answer(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.test"] = Name(raw=forged)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    p.err.wait("endpoint")
    ns.wait_asked("web.test", 6)
    assert set(served(stage, p)) == {"127.0.0.2"}


def test_an_answer_of_somebody_else_is_none(stage, ns):
    """The right id and question, from another address."""
    port, _ = origins(stage, 2)
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind(("127.0.0.9", 0))

    def raw(query):
        kind = struct.unpack("!H", query[unpacked(query, 12)[1]:][:2])[0]
        m = answer(query, Name(a=["127.0.0.3"], ttl=0), kind, "web.test")
        other.sendto(m, ns.peer)
        return [answer(query, Name(a=["127.0.0.2"], ttl=0), kind, "web.test")]
    ns.zone["web.test"] = Name(raw=raw)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    p.err.wait("endpoint now")
    ns.wait_asked("web.test", 4)
    assert set(served(stage, p)) == {"127.0.0.2"}
    other.close()


def test_ids_and_ports_are_random(stage, ns):
    asked = set()

    def raw(query):
        asked.add((ns.peer[1], query[:2]))
        return [answer(query, Name(a=["127.0.0.2"], ttl=0), A, "web.test")]
    ns.zone["web.test"] = Name(raw=raw)
    proxy(stage, ns, {"app": "{dns: {name: web.test, port: 80, family: ip4}}"})
    wait_until(lambda: len(asked) >= 20, "20 questions")
    ids = sorted(struct.unpack("!H", i)[0] for _, i in asked)
    assert len({port for port, _ in asked}) >= 15 and len(set(ids)) >= 19
    assert sum(1 for a, b in zip(ids, ids[1:]) if b - a == 1) < 3


def garbage(n):
    def raw(query):
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, n, 0, 0) + query[12:]
        return [head + b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f",        # cut
                head + b"\xc0\x0c" * 200,
                head + b"\xc0\xff" + b"\x00" * 40,
                head + (b"\x3f" + b"a" * 63) * 6]
    return raw


def test_answers_that_make_no_sense(stage, ns):
    port, _ = origins(stage, 1)
    ns.zone["good.test"] = Name(a=["127.0.0.2"], ttl=0)
    for i, n in enumerate((1, 50, 65535)):
        ns.zone["bad%d.test" % i] = Name(raw=garbage(n))
    p = proxy(stage, ns, {"app": ["good.test:%d" % port] + ["bad%d.test:%d" % (i, port) for i in range(3)]})
    wait_served(stage, p, ["127.0.0.2"])
    for i in range(3):
        ns.wait_asked("bad%d.test" % i, 1, patience=20)
    assert served(stage, p) == ["127.0.0.2"] * 8


def test_a_truncated_answer_is_asked_for_by_tcp(stage, ns):
    port, _ = origins(stage, 1)
    ns.zone["web.test"] = Name(a=["127.0.0.2"], truncate=True)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    wait_served(stage, p, ["127.0.0.2"])
    assert ns.asked("web.test", A, "tcp") == 1


def test_a_thousand_addresses(stage, ns):
    port, _ = origins(stage, 1)
    addresses = ["127.0.0.2"] + ["127.1.%d.%d" % (i // 250, i % 250 + 1) for i in range(999)]
    ns.zone["web.test"] = Name(a=addresses, ttl=0)
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    p.err.wait(r"service app: 256 endpoints now; 256 added \(127\.0\.0\.2:")
    p.err.wait(r"name web\.test: more records than dns\.addresses, 744 are left out")
    ns.zone["web.test"] = Name(a=addresses[::-1], ttl=0)    # the same are taken, whatever the order
    ns.wait_asked("web.test", 4, A)
    assert p.err.text().count("endpoints now") == 1
    assert p.err.text().count("left out") == 1


def test_lines_about_names_are_bounded(stage, ns):
    for i in range(300):
        ns.zone["n%d.test" % i] = Name(a=["127.0.0.2"], ttl=1)
    p = proxy(stage, ns, {"s%d" % i: "n%d.test:80" % i for i in range(300)})
    ns.wait_asked("n299.test", 3)
    ns.zone["n0.test"] = Name(a=["127.0.0.3"], ttl=1)
    p.err.wait(r"names: [0-9]+ lines were left out here")
    p.err.wait(r"service s0: 1 endpoint now; 1 added \(127\.0\.0\.3")
    assert 100 <= p.err.text().count("endpoint now") < 200


def test_addresses(stage, ns):
    ns.zone["web.test"] = Name(a=["127.1.%d.%d" % (i // 250, i % 250 + 1) for i in range(1000)])
    p = proxy(stage, ns, {"app": "web.test:80"}, dns={"addresses": "1000"})
    p.err.wait(r"service app: 1000 endpoints now")


def test_addresses_that_nobody_can_have(stage, ns):
    port, _ = origins(stage, 1)
    ns.zone["web.test"] = Name(a=["0.0.0.0", "127.0.0.2", "239.1.1.1"], aaaa=["::", "ff02::1", "::ffff:127.0.0.3"])
    p = proxy(stage, ns, {"app": "web.test:%d" % port})
    wait_served(stage, p, ["127.0.0.2"])
    p.err.wait(r"service app: 1 endpoint now; 1 added \(127\.0\.0\.2:")
    p.err.wait(r"name web\.test: 5 addresses of it can be nobody's")


# ---- SRV ---------------------------------------------------------------------

def test_srv_records_have_ports_and_names(stage, ns):
    a, b = stage.origin(says("a"), host="127.0.0.2"), stage.origin(says("b"), host="127.0.0.3")
    ns.zone["_http._tcp.web.test"] = Name(srv=[(0, 10, a.port, "a.test"), (0, 10, b.port, "B.Test")], ttl=0)
    ns.zone["a.test"], ns.zone["b.test"] = Name(a=["127.0.0.2"], ttl=0), Name(a=["127.0.0.3"], ttl=0)
    p = proxy(stage, ns, {"app": "{dns: {name: _http._tcp.web.test, srv: on}}"})
    wait_served(stage, p, ["a", "b"])
    ns.zone["_http._tcp.web.test"] = Name(srv=[(0, 10, b.port, "b.test")], ttl=0)
    wait_served(stage, p, ["b"])
    asked = ns.asked("a.test")
    ns.wait_asked("b.test", 4)
    assert ns.asked("a.test") <= asked + 1                  # nobody wants to know any more


def test_srv_of_a_later_priority_serves_when_the_first_has_nobody(stage, ns):
    a, b = stage.origin(says("a"), host="127.0.0.2"), stage.origin(says("b"), host="127.0.0.3")
    ns.zone["web.test"] = Name(srv=[(20, 0, b.port, "b.test"), (10, 0, a.port, "a.test")], ttl=0)
    ns.zone["b.test"] = Name(a=["127.0.0.3"], ttl=0)
    p = proxy(stage, ns, {"app": "{dns: {name: web.test, srv: on}}"})
    wait_served(stage, p, ["b"])
    ns.zone["a.test"] = Name(a=["127.0.0.2"], ttl=0)
    wait_served(stage, p, ["a"])


def test_srv_that_fails_keeps_what_is_known(stage, ns):
    a = stage.origin(says("a"), host="127.0.0.2")
    ns.zone["web.test"] = Name(srv=[(0, 1, a.port, "a.test"), (0, 1, 0, "a.test"), (0, 1, 80, ".")], ttl=0)
    ns.zone["a.test"] = Name(a=["127.0.0.2"], ttl=0)
    p = proxy(stage, ns, {"app": "{dns: {name: web.test, srv: on}}"})
    wait_served(stage, p, ["a"])
    ns.zone["web.test"] = Name(rcode=SERVFAIL)
    ns.zone["a.test"] = Name(rcode=SERVFAIL)
    p.err.wait(r"name web\.test: .*stays in use")
    ns.wait_asked("a.test", 1)
    assert served(stage, p) == ["a"] * 8


# ---- the files of the system -------------------------------------------------

def system(stage, ns, services, resolv="", hosts="", **more):
    keys = dict(hosts="'%s'" % stage.file("hosts", hosts), resolv_conf="'%s'" % stage.file("resolv.conf", resolv), search="system")
    return proxy(stage, ns, services, dns=dict(keys, **more))


def test_search_domains(stage, ns):
    port, _ = origins(stage, 2)
    ns.zone["web.second.test"] = Name(a=["127.0.0.2"])
    p = system(stage, ns, {"app": "web:%d" % port}, resolv="search first.test second.test\n")
    wait_served(stage, p, ["127.0.0.2"])
    with ns.lock:
        names = [n for n, k, _ in ns.queries if k == A]
    assert names[:2] == ["web.first.test", "web.second.test"] and "web" not in names


@pytest.mark.parametrize("name, resolv, more, want", [
    ("a.b", "search x.test\n", {}, ["a.b", "a.b.x.test"]),
    ("a.b", "search x.test\noptions ndots:2\n", {}, ["a.b.x.test", "a.b"]),
    ("a.b", "search x.test\noptions ndots:2\n", {"ndots": 1}, ["a.b", "a.b.x.test"]),
    ("a.b.", "search x.test\noptions ndots:5\n", {}, ["a.b"]),
    ("a", "search x.test\n", {"search": "[y.test, z.test]"}, ["a.y.test", "a.z.test", "a"]),
    ("a", "search x.test\n", {"search": "off"}, ["a"]),
])
def test_which_names_are_looked_for(stage, ns, name, resolv, more, want):
    p = system(stage, ns, {"app": name + ":80"}, resolv=resolv, **more)
    p.err.wait(r"name %s: there is none" % re.escape(name))
    with ns.lock:
        names = [n for n, k, _ in ns.queries if k == A]
    assert names[:len(want)] == want


def test_a_failure_is_not_taken_for_the_lack_of_a_name(stage, ns):
    """A name in a later search domain may be somebody else's."""
    port, _ = origins(stage, 2)
    ns.zone["web.a.test"], ns.zone["web.b.test"] = Name(a=["127.0.0.2"], ttl=0), Name(a=["127.0.0.3"], ttl=0)
    p = system(stage, ns, {"app": "web:%d" % port}, resolv="search a.test b.test\n")
    wait_served(stage, p, ["127.0.0.2"])
    ns.zone["web.a.test"] = Name(rcode=SERVFAIL)
    p.err.wait("stays in use")
    ns.wait_asked("web.a.test", 2)
    assert served(stage, p) == ["127.0.0.2"] * 8 and not ns.asked("web.b.test")


def test_the_hosts_file_comes_first_and_is_read_again(stage, ns):
    port, _ = origins(stage, 3)
    ns.zone["web.test"] = Name(a=["127.0.0.4"])
    p = system(stage, ns, {"app": "web.test:%d" % port}, hosts="# names\n127.0.0.2\tother WEB.test # web.test\n127.0.0.9 webb.test\n")
    wait_served(stage, p, ["127.0.0.2"])
    assert not ns.queries
    stage.file("hosts", "127.0.0.2 web.test\n127.0.0.3 web.test\n")
    wait_served(stage, p, ["127.0.0.2", "127.0.0.3"])
    assert not ns.queries
    stage.file("hosts", "\n")
    wait_served(stage, p, ["127.0.0.4"])


def test_resolv_conf_is_read_again(stage, ns):
    """Name servers in resolv_conf have no port of their own: this is about its search domains."""
    port, _ = origins(stage, 1)
    ns.zone["web.b.test"] = Name(a=["127.0.0.2"])
    p = system(stage, ns, {"app": "web:%d" % port}, resolv="search a.test\n")
    p.err.wait("there is none")
    stage.file("resolv.conf", "search b.test\n")
    wait_served(stage, p, ["127.0.0.2"], patience=20)
