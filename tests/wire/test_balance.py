"""Which endpoint gets a request: `balance`, weights and states, keys of hashes, sticky cookies."""
import re
import threading

import harness
import pytest


def named(stage, name):
    def script(c):
        while c.request():
            c.reply(name)
    return stage.origin(script)


class World:
    def __init__(self, stage, names="ab", balance="round_robin", ends=None, **more):
        self.stage = stage
        self.origins = {n: named(stage, n) for n in names}
        ends = ends or {}
        texts = ["{address: '%s'%s}" % (o.address, ", " + ends[n] if n in ends else "") for n, o in self.origins.items()]
        service = "{endpoints: [%s], balance: %s}" % (", ".join(texts), balance)
        self.p = stage.proxy({"app": service}, **more)
        self.c = stage.client(self.p)

    def row(self, n, *fields, target="/"):
        return "".join(self.c.get(target, *fields).text() for _ in range(n))


# ---- least, round robin, weights ----------------------------------------------

def test_round_robin_takes_turns(stage):
    row = World(stage, "abc").row(9)
    assert row in ("abcabcabc", "bcabcabca", "cabcabcab")


def test_weights_are_exact(stage):
    w = World(stage, "abc", ends={"a": "weight: 5", "c": "weight: 2"})
    for _ in range(5):
        row = w.row(8)
        assert (row.count("a"), row.count("b"), row.count("c")) == (5, 1, 2)
        assert "aaaa" not in row


def test_workers_do_not_start_in_step(stage):
    w = World(stage, "abcdefgh", workers=8, ends={"a": "weight: 2"})
    first = {stage.client(w.p).get("/").text() for _ in range(40)}
    assert len(first) > 2


def test_least_goes_where_less_is_in_flight(stage):
    gate = threading.Event()

    def slow(c):
        while c.request():
            gate.wait(10)
            c.reply("slow")
    a, b = stage.origin(slow), named(stage, "b")
    p = stage.proxy({"app": "{endpoints: ['%s', '%s'], balance: least}" % (a.address, b.address)}, workers=4, timeouts={"first_byte": "9s"})
    clients = [stage.client(p) for _ in range(30)]
    stuck = None
    for i, c in enumerate(clients):     # by chance, until one is stuck; it is counted for all workers
        c.request("GET", "/")
        if a.connections or c.silent(0.1):
            a.wait(1)
            stuck = i
            break
        assert c.answer().text() == "b"
    assert stuck is not None
    for c in clients[stuck + 1:] + [stage.client(p) for _ in range(10)]:
        assert c.get("/").text() == "b"
    assert len(a.requests) == 1
    gate.set()
    assert clients[stuck].answer().text() == "slow"


def test_least_heeds_weights(stage):
    row = World(stage, "ab", "least", ends={"a": "weight: 9"}).row(300)
    assert 240 <= row.count("a") <= 295


# ---- states ---------------------------------------------------------------------

@pytest.mark.parametrize("balance", ["least", "round_robin", "{hash: path}", "{sticky: {cookie: home}}"])
def test_states_by_their_order(stage, balance):
    w = World(stage, "abcd", balance, ends={"a": "state: terminating", "b": "state: serving", "d": "state: drain"})
    assert w.row(6) == "cccccc"
    for name, then in (("c", "b"), ("b", "a")):
        w.origins[name].stop()
        w.c = stage.client(w.p)
        assert w.row(4) == then * 4, name
    w.origins["a"].stop()
    assert stage.client(w.p).get("/").status == 502
    assert not w.origins["d"].requests


def test_weight_0_and_drain_get_nothing(stage):
    w = World(stage, "abc", ends={"a": "weight: 0", "b": "state: drain"})
    assert w.row(6) == "cccccc"


@pytest.mark.parametrize("balance", ["least", "round_robin", "{hash: address}", "{sticky: {cookie: home}}"])
def test_nobody_for_what_is_new_is_503(stage, balance):
    w = World(stage, "ab", balance, ends={"a": "weight: 0", "b": "state: drain"})
    assert w.c.get("/").status == 503
    assert w.p.log(1)[0]["cause"] == "no_endpoint"


# ---- hash -----------------------------------------------------------------------

def keyed(w, ask):
    """Where each of 40 keys goes; twice it is the same."""
    first = [ask(i) for i in range(40)]
    assert [ask(i) for i in range(40)] == first
    assert len(set(first)) == len(w.origins)
    return first


def test_hash_by_header(stage):
    w = World(stage, "abc", "{hash: {header: X-User}}")
    first = keyed(w, lambda i: w.row(1, "X-User: u%d" % i))
    assert [w.row(1, "x-USER:   u%d " % i) for i in range(40)] == first
    both = [w.row(1, "X-User: u%d" % i, "X-User: other") for i in range(40)]
    assert both != first                                # all of its values count
    assert [w.row(1, "X-User: u%d" % i, "X-User: other") for i in range(40)] == both
    assert len(set(w.row(40))) == 3                     # without it: any


def test_hash_by_cookie(stage):
    w = World(stage, "abc", "{hash: {cookie: user}}")
    first = keyed(w, lambda i: w.row(1, "Cookie: a=b; user=u%d; c=d" % i))
    assert [w.row(1, "Cookie: x=y", "Cookie: user=u%d; user=other" % i) for i in range(40)] == first
    assert len(set(w.row(40, "Cookie: user2=u1; auser=u1"))) == 3


def test_hash_by_query_and_path(stage):
    w = World(stage, "abc", "{hash: {query: id}}")
    first = keyed(w, lambda i: w.row(1, target="/x?a=1&id=%d" % i))
    assert [w.row(1, target="/%d?id=%d&id=7" % (i, i)) for i in range(40)] == first
    assert len(set(w.row(40, target="/x?ID=1"))) == 3
    w = World(stage, "abc", "{hash: path}")
    first = keyed(w, lambda i: w.row(1, target="/%d" % i))
    assert [w.row(1, target="/%d?a=%d" % (i, i)) for i in range(40)] == first


def test_hash_by_address(stage):
    w = World(stage, "abc", "{hash: address}", listen="trusted_proxies: 127.0.0.0/8")
    assert len(set(w.row(10))) == 1
    by = [stage.client(w.p, source="127.0.0.%d" % (i + 2)).get("/").text() for i in range(24)]
    assert by == [stage.client(w.p, source="127.0.0.%d" % (i + 2)).get("/").text() for i in range(24)] and len(set(by)) == 3
    told = [w.row(1, "X-Forwarded-For: 10.0.0.%d" % i) for i in range(24)]
    assert told == [w.row(1, "X-Forwarded-For: 10.0.0.%d" % i) for i in range(24)] and len(set(told)) == 3
    net = {w.row(1, "X-Forwarded-For: 2001:db8::%x" % i) for i in range(1, 20)}
    assert len(net) == 1                                # a client has all of its network


def test_instances_agree_and_only_keys_of_the_lost_move(stage):
    w = World(stage, "abcd", "{hash: {header: X-User}}")
    first = [w.row(1, "X-User: %d" % i) for i in range(60)]
    text = ", ".join("'%s'" % o.address for o in list(w.origins.values())[::-1])
    again = stage.client(stage.proxy({"app": "{endpoints: [%s], balance: {hash: {header: X-User}}}" % text}))
    assert [again.get("/", "X-User: %d" % i).text() for i in range(60)] == first    # in any order of the file
    w.origins["b"].stop()
    w.c = stage.client(w.p)
    now = [w.row(1, "X-User: %d" % i) for i in range(60)]
    assert all(n == f or f == "b" for n, f in zip(now, first)) and "b" not in now


def test_a_bound_passes_the_busy_over(stage):
    gate = threading.Event()

    def slow(name):
        def script(c):
            while c.request():
                gate.wait(10)
                c.reply(name)
        return script
    origins = {n: stage.origin(slow(n)) for n in "abc"}
    ends = ", ".join("'%s'" % o.address for o in origins.values())
    p = stage.proxy({"app": "{endpoints: [%s], balance: {hash: path, bound: 125}}" % ends}, timeouts={"first_byte": "9s"}, workers=2)
    clients = [stage.client(p) for _ in range(12)]
    for i, c in enumerate(clients):
        c.request("GET", "/same")
        harness.wait_until(lambda: sum(o.connections for o in origins.values()) == i + 1)
    gate.set()
    got = [c.answer().text() for c in clients]
    assert max(got.count(n) for n in "abc") <= 5        # 125 % of a third of 12
    assert len({clients[0].get("/same").text() for _ in range(6)}) == 1


def test_tcp_by_address(stage):
    origins = [stage.origin(lambda c, n=n: (c.send(n), c.hold())) for n in (b"a", b"b", b"c")]
    p = stage.proxy({"app": "{endpoints: [%s], balance: {hash: address}}" % ", ".join("'%s'" % o.address for o in origins)},
                    listen="service: app", routes=["{service: app}"])
    by = [[stage.client(p, source="127.0.0.%d" % (i + 2)).exactly(1) for i in range(20)] for _ in range(2)]
    assert by[0] == by[1] and len(set(by[0])) == 3


# ---- sticky ----------------------------------------------------------------------

def cookie_of(answer):
    cookies = answer.all("Set-Cookie")
    assert len(cookies) == 1
    return cookies[0].split(";")[0]


def test_sticky(stage):
    w = World(stage, "abc", "{sticky: {cookie: home}}", workers=2)
    homes = {}
    for _ in range(30):
        a = w.c.get("/")
        assert re.fullmatch(r"home=[0-9a-f]{16}; Path=/; HttpOnly; SameSite=Lax", a.get("Set-Cookie")), a.get("Set-Cookie")
        homes[a.text()] = cookie_of(a)
    assert sorted(homes) == ["a", "b", "c"]
    for name, cookie in homes.items():
        for _ in range(5):
            a = stage.client(w.p).get("/", "Cookie: x=y; " + cookie)
            assert a.text() == name and not a.all("Set-Cookie")


def test_sticky_attributes(stage):
    w = World(stage, "ab", "{sticky: {cookie: home, ttl: 1h, same_site: strict}}", listen="trusted_proxies: 127.0.0.0/8")
    assert w.c.get("/").get("Set-Cookie").endswith("; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict")
    assert w.c.get("/", "X-Forwarded-Proto: https").get("Set-Cookie").endswith("; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Strict")
    w = World(stage, "ab", "{sticky: {cookie: home, same_site: none}}", listen="trusted_proxies: 127.0.0.0/8")
    assert w.c.get("/").get("Set-Cookie").endswith("; Path=/; HttpOnly")     # browsers take None with Secure alone
    assert w.c.get("/", "X-Forwarded-Proto: https").get("Set-Cookie").endswith("; HttpOnly; Secure; SameSite=None")


def test_a_lost_home_is_replaced(stage):
    w = World(stage, "abc", "{sticky: {cookie: home}}")
    a = w.c.get("/")
    cookie, name = cookie_of(a), a.text()
    w.origins[name].stop()
    w.c = stage.client(w.p)
    a = w.c.get("/", "Cookie: " + cookie)
    assert a.status == 200 and a.text() != name
    again = cookie_of(a)
    assert again != cookie
    for _ in range(4):
        b = w.c.get("/", "Cookie: " + again)
        assert b.text() == a.text() and not b.all("Set-Cookie")


@pytest.mark.parametrize("more", ["state: drain", "state: terminating", "weight: 0"])
def test_a_drained_endpoint_keeps_its_sessions(stage, more):
    key = "key: 00112233445566778899aabbccddeeff"
    origins = {n: named(stage, n) for n in "ab"}
    text = "{endpoints: [{address: '%s'%s}, '%s'], balance: {sticky: {cookie: home, %s}}}"
    before = stage.client(stage.proxy({"app": text % (origins["a"].address, "", origins["b"].address, key)}))
    homes = {}
    while len(homes) < 2:
        a = before.get("/")
        homes[a.text()] = cookie_of(a)
    after = stage.client(stage.proxy({"app": text % (origins["a"].address, ", " + more, origins["b"].address, key)}))
    for _ in range(5):      # another process with the same key knows them too
        a = after.get("/", "Cookie: " + homes["a"])
        assert a.text() == "a" and not a.all("Set-Cookie")
        assert after.get("/").text() == "b"


def test_values_are_of_one_process_and_service(stage):
    origins = {n: named(stage, n) for n in "ab"}
    ends = ", ".join("'%s'" % o.address for o in origins.values())
    one = "{endpoints: [%s], balance: {sticky: {cookie: home}}}" % ends
    routes = ["{path: /x, service: x}", "{service: app}"]
    p = stage.proxy({"app": one, "x": one}, routes=routes)
    seen = {cookie_of(stage.client(p).get(t)) for t in ["/", "/x"] * 15}
    seen |= {cookie_of(stage.client(stage.proxy({"app": one}, routes=["{service: app}"])).get("/")) for _ in range(2)}
    assert 5 <= len(seen) <= 6
    for o in origins.values():
        host, port = o.address.split(":")
        assert not any(port in c or "%04x" % int(port) in c for c in seen)


def test_hostile_cookies(stage):
    w = World(stage, "ab", "{sticky: {cookie: home}}", limits={"head": "64KiB"})
    good = None
    while not good:
        a = w.c.get("/")
        good = cookie_of(a) if a.text() == "a" else None
    for bad in ("home=", "home", "home=" + "0" * 16, "home=" + "f" * 50000, "home=zzzzzzzzzzzzzzzz", "home=\"%s\"" % good[5:],
                "=%s" % good[5:], ";" * 5000, "home=a;" * 5000, good[:-1] + ("0" if good[-1] != "0" else "1"), good.upper()[4:]):
        a = w.c.get("/", "Cookie: " + bad)
        assert a.status == 200 and len(a.all("Set-Cookie")) == 1, bad[:40]
    # one that is ours among others, in several fields
    for fields in (["Cookie: home=bad; " + good], ["Cookie: home=bad", "Cookie: x=y; " + good], ["Cookie: %s; home=bad" % good]):
        for _ in range(3):
            a = w.c.get("/", *fields)
            assert a.text() == "a" and not a.all("Set-Cookie")
    # but not behind a crowd
    assert w.c.get("/", "Cookie: " + "home=x; " * 8 + good).all("Set-Cookie")


def test_the_origins_own_cookies_pass(stage):
    def script(c):
        while c.request():
            c.reply("a", "Set-Cookie: home=theirs", "Set-Cookie: x=y")
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: '%s', balance: {sticky: {cookie: home}}}" % o.address})
    a = stage.client(p).get("/")
    assert a.all("Set-Cookie")[:2] == ["home=theirs", "x=y"] and len(a.all("Set-Cookie")) == 3
    a = stage.client(p).get("/", "Cookie: " + a.all("Set-Cookie")[2].split(";")[0])
    assert a.all("Set-Cookie") == ["home=theirs", "x=y"]


def test_defaults_and_one_endpoint_as_a_map(stage):
    o = named(stage, "a")
    p = stage.proxy({"app": "{endpoints: {address: '%s', weight: 3}}" % o.address}, more="defaults: {balance: {sticky: {cookie: d}}}\n")
    assert stage.client(p).get("/").get("Set-Cookie").startswith("d=")
