"""Who may come, and how often: allow, deny, rate_limit, and whom these take a client for."""
import re
import threading

import pytest

from harness import Client, config, wait_until


def status(stage, program, target="/", *fields, source=None):
    c = stage.client(program, source=source)
    try:
        return c.get(target, *fields).status
    finally:
        c.close()


def statuses(client, n, *fields):
    return [client.get("/", *fields).status for _ in range(n)]


# ---- allow and deny --------------------------------------------------------

def test_addresses_that_are_not_allowed_are_403(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{service: app, allow: [127.0.0.2, 127.1.0.0/16]}"])
    assert [status(stage, p, source=a) for a in ("127.0.0.2", "127.1.2.3", "127.0.0.1", "127.2.0.1", "127.0.0.3")] == \
        [200, 200, 403, 403, 403]
    assert len(o.requests) == 2
    a = stage.client(p).get()
    assert a.text() == "403 Forbidden: this route is not open to this client\n" and not a.all("Proxy-Status")
    assert [r["cause"] for r in p.log(6)][-4:] == ["address_denied"] * 4


def test_deny_wins_over_allow(stage):
    p = stage.proxy(stage.origin(), routes=["{service: app, allow: [127.0.0.2, 127.0.0.3], deny: 127.0.0.0/30}",
                                            "{path: /b, service: app, deny: 127.0.0.2}"])
    assert [status(stage, p, source="127.0.0.%d" % n) for n in (2, 3, 9)] == [403, 403, 403]
    assert [status(stage, p, "/b", source="127.0.0.%d" % n) for n in (1, 2, 3)] == [200, 403, 200]


@pytest.mark.parametrize("action", ["answer: {status: 204}", "redirect: {to: /x}"])
def test_every_action_has_a_door(stage, action):
    p = stage.proxy(stage.origin(), routes=["{deny: 127.0.0.2, %s}" % action])
    assert [status(stage, p, source="127.0.0.%d" % n) for n in (1, 2)][1] == 403
    assert status(stage, p) in (204, 302)


def test_a_refused_request_goes_to_no_other_route(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{path: /a, service: app, deny: 127.0.0.1}", "{service: app}"])
    assert status(stage, p, "/a/x") == 403 and not o.heads


def test_defaults_hold_for_routes_that_say_nothing(stage):
    p = stage.text(config({"app": stage.origin().address}, routes=["{service: app}", "{path: /open, service: app, allow: all}",
                                                                   "{path: /deny, service: app, allow: all, deny: 127.0.0.1}"],
                          more="defaults: {allow: 127.0.0.2}\n"))
    assert [status(stage, p, t) for t in ("/", "/open", "/deny")] == [403, 200, 403]
    assert [status(stage, p, t, source="127.0.0.2") for t in ("/", "/open", "/deny")] == [200, 200, 200]


def test_ipv6_and_mapped_peers(stage):
    def proxy(allow):
        text = config({"app": stage.origin().address}, routes=["{service: app, allow: ['%s']}" % allow])
        return stage.text(text.replace("127.0.0.1:@PORT@", ":@PORT@"))
    for allow, v4, v6 in (("127.0.0.0/8", 200, 403), ("::1", 403, 200), ("::/0", 403, 200), ("::ffff:127.0.0.0/104", 200, 403),
                          ("0.0.0.0/0", 200, 403)):
        p = proxy(allow)
        assert stage.client(("127.0.0.1", p.port)).get().status == v4
        assert stage.client(("::1", p.port)).get().status == v6


def test_peers_on_a_unix_socket(stage):
    for i, (word, want) in enumerate((("allow: 'unix:'", 200), ("allow: 0.0.0.0/0", 403), ("deny: 'unix:'", 403), ("deny: '::/0'", 200))):
        path = str(stage.folder / ("s%d" % i))
        stage.text(config({"app": stage.origin().address}, routes=["{service: app, %s}" % word]).replace("127.0.0.1:@PORT@", "unix:" + path))
        assert stage.client(path).get().status == want


def test_a_refused_connection_goes_on(stage):
    p = stage.proxy(stage.origin(), routes=["{path: /a, service: app, deny: 127.0.0.1}", "{service: app}"])
    c = stage.client(p)
    c.request("GET", "/a").request("GET", "/b").request("HEAD", "/a").request("GET", "/c")
    assert [c.answer().status, c.answer().status, c.answer("HEAD").status, c.answer().status] == [403, 200, 403, 200]


# ---- who the client is -----------------------------------------------------

TRUST = "trusted_proxies: [127.0.0.1, 10.0.0.0/8, 'fd00::/8']"
DOOR = ["{service: app, allow: [203.0.113.9, '2001:db8::9', 10.1.1.1]}"]
GOOD, BAD = "X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 198.51.100.1"


@pytest.mark.parametrize("fields,want", [
    ((), 403), ((GOOD,), 200), ((BAD,), 403), ((GOOD + ":4711",), 200), (("X-Forwarded-For: ::ffff:203.0.113.9",), 200),
    (("X-Forwarded-For: 2001:db8::9",), 200), (("X-Forwarded-For: [2001:db8::9]:443",), 200), (("X-Forwarded-For: 2001:db8::8",), 403),
    # the proxies behind the client are trusted, who is before it is not read
    ((GOOD + ", 10.0.0.1, fd00::1",), 200), ((GOOD + ",10.0.0.1 ,\t10.0.0.2",), 200), ((BAD + ", 203.0.113.9, 10.0.0.1",), 200),
    (("X-Forwarded-For: x, \x80, 203.0.113.9",), 200), ((GOOD + ", 198.51.100.1, 10.0.0.1",), 403), ((GOOD + ", 198.51.100.1",), 403),
    # several fields are one list
    ((GOOD, BAD), 403), ((BAD, GOOD), 200), ((GOOD, "X-Forwarded-For: 10.0.0.1", "x-forwarded-for: 10.0.0.2"), 200),
    ((GOOD, "X-Forwarded-For:"), 200), ((BAD, "X-Forwarded-For:"), 403),
    # all are trusted: the first
    (("X-Forwarded-For: 10.1.1.1, 10.0.0.1",), 200), (("X-Forwarded-For: 10.0.0.1, 10.1.1.1",), 403),
    # empty members, and what is no address
    ((GOOD + ", ,",), 200), (("X-Forwarded-For: , ,203.0.113.9",), 200), ((GOOD + ", unknown",), 403), ((GOOD + ", 10.0.0.1, _x",), 403),
    (("X-Forwarded-For: unknown, 203.0.113.9",), 200), ((GOOD + " 10.0.0.1",), 403), ((GOOD + ";10.0.0.1",), 403),
    (("X-Forwarded-For: 203.0.113.09",), 403), (("X-Forwarded-For: \"203.0.113.9\"",), 403), ((GOOD + "\x00"[:0] + "/32",), 403),
    ((GOOD + ", 203.0.113.9:99999999",), 403), (("Forwarded: for=203.0.113.9", "X-Real-IP: 203.0.113.9"), 403),
    (("X-Forwarded-For : 203.0.113.9",), 400), (("X_Forwarded_For: 203.0.113.9",), 403),
    ((GOOD + ", 10.0.0.1" * 3000,), 200), ((BAD + ", 10.0.0.1" * 3000,), 403), ((GOOD + "," * 30000,), 200),
], ids=lambda v: repr(v)[:60])
def test_who_a_trusted_proxy_speaks_for(stage, fields, want):
    assert status(stage, stage.proxy(stage.origin(), listen=TRUST, routes=DOOR), "/", *fields) == want


def test_who_is_not_trusted_speaks_for_nobody(stage):
    p = stage.proxy(stage.origin(), listen=TRUST, routes=DOOR)
    assert status(stage, p, "/", GOOD, source="127.0.0.2") == 403
    p = stage.proxy(stage.origin(), routes=["{service: app, allow: 203.0.113.9}", "{path: /d, service: app, deny: 127.0.0.1}"])
    assert status(stage, p, "/", GOOD) == 403
    assert status(stage, p, "/d", GOOD) == 403


@pytest.mark.parametrize("mode,want", [("append", 200), ("off", 200), ("replace", 403)])
def test_replace_is_to_believe_nobody(stage, mode, want):
    p = stage.proxy(stage.origin(), listen=TRUST + ", x_forwarded: " + mode, routes=DOOR)
    assert status(stage, p, "/", GOOD) == want


def test_a_trusted_unix_peer_speaks_for_clients(stage):
    path = str(stage.folder / "s")
    stage.text(config({"app": stage.origin().address}, listen="trusted_proxies: ['unix:']", routes=["{service: app, deny: 203.0.113.9}"])
               .replace("127.0.0.1:@PORT@", "unix:" + path))
    assert stage.client(path).get("/", GOOD).status == 403
    assert stage.client(path).get("/", BAD).status == 200
    assert stage.client(path).get("/").status == 200


# ---- rate limits -----------------------------------------------------------

def test_beyond_the_rate_is_429(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{service: app, rate_limit: 3/h}"])
    c = stage.client(p)
    answers = [c.get() for _ in range(5)]
    assert [a.status for a in answers] == [200] * 3 + [429] * 2 and len(o.requests) == 3
    assert [a.get("RateLimit-Policy") for a in answers] == ['"address";q=3;w=3600'] * 5
    assert [re.sub(r"t=\d+$", "t", a.get("RateLimit")) for a in answers] == ['"address";r=%d;t' % n for n in (2, 1, 0, 0, 0)]
    assert not answers[2].all("Retry-After") and 1190 < int(answers[3].get("Retry-After")) <= 1200
    assert answers[4].text() == "429 Too Many Requests: too many requests in too short a time\n"
    assert [r["cause"] for r in p.log(5)] == [None] * 3 + ["rate_limited"] * 2
    assert status(stage, p, source="127.0.0.2") == 200      # another client has its own


def test_what_is_told_to_come_later_may_come_later(stage):
    c = stage.client(stage.proxy(stage.origin(), routes=["{service: app, rate_limit: {rate: 4/s, burst: 1}}"]))
    assert c.get().status == 200
    a = c.get()
    assert a.status == 429 and a.get("Retry-After") == "1"
    wait_until(lambda: c.get().status == 200, "one more request within 250 ms", 5)


@pytest.mark.parametrize("by", ["address", "route", "{header: X-Key}"])
def test_the_limit_is_exact_over_all_workers(stage, by):
    o = stage.origin()
    p = stage.proxy(o, workers=4, routes=["{service: app, rate_limit: {rate: 50/h, by: %s}}" % by])
    seen, problems = [], []

    def ask():
        try:
            for _ in range(4):      # a new connection may come to another worker
                c = Client(p.address)
                seen.extend(statuses(c, 5, "X-Key: same"))
                c.close()
        except Exception as e:      # noqa: B902  (the test must hear of it)
            problems.append(e)
    threads = [threading.Thread(target=ask) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems and len(seen) == 320
    assert seen.count(200) == 50 and seen.count(429) == 270 and len(o.requests) == 50


def test_by_header(stage):
    c = stage.client(stage.proxy(stage.origin(), routes=["{service: app, rate_limit: {rate: 2/h, by: {header: X-Key}}}"]))
    assert statuses(c, 3, "X-Key: a") == [200, 200, 429]
    assert statuses(c, 3, "x-key:  b ") == [200, 200, 429]
    assert statuses(c, 1, "X-Key: b") == [429]
    assert statuses(c, 3) == [200, 200, 429]                            # without it: one for all of them
    assert statuses(c, 1, "X-Key:") == [429]
    assert statuses(c, 3, "X-Key: A") == [200, 200, 429]                # values are told apart by case
    assert statuses(c, 3, "X-Key: a", "X-Key: b") == [200, 200, 429]    # all of its values count
    assert statuses(c, 1, "X-Key: a, b") == [200]
    assert c.get("/", "X-Key: c").get("RateLimit-Policy") == '"header";q=2;w=3600'


def test_by_route(stage):
    p = stage.proxy(stage.origin(), routes=["{service: app, rate_limit: {rate: 2/h, by: route}}",
                                            "{path: /b, service: app, rate_limit: {rate: 2/h, by: route}}"])
    assert [status(stage, p, "/", source="127.0.0.%d" % n) for n in (1, 2, 3)] == [200, 200, 429]
    assert [status(stage, p, "/b") for n in range(3)] == [200, 200, 429]


def test_clients_of_one_network_are_one(stage):
    o = stage.origin()
    p = stage.proxy(o, listen="trusted_proxies: 127.0.0.1", routes=[
        "{service: app, rate_limit: 1/h}", "{path: /net, service: app, rate_limit: {rate: 1/h, ipv4_prefix: 24, ipv6_prefix: 128}}"])
    c = stage.client(p)

    def by(address, target="/"):
        return c.get(target, "X-Forwarded-For: " + address).status
    assert [by(a) for a in ("192.0.2.1", "192.0.2.2", "192.0.2.1")] == [200, 200, 429]
    assert [by(a) for a in ("2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::", "2001:db8:0:1::1")] == [200, 429, 429, 200]
    assert [by(a, "/net") for a in ("192.0.2.1", "192.0.2.2", "192.0.3.1")] == [200, 429, 200]
    assert [by(a, "/net") for a in ("2001:db8::1", "2001:db8::2", "2001:db8::1")] == [200, 200, 429]
    assert [by(a) for a in ("192.0.2.9", "::ffff:192.0.2.9")] == [200, 429]


def test_a_client_has_no_other_bucket_by_spoofing(stage):
    c = stage.client(stage.proxy(stage.origin(), routes=["{service: app, rate_limit: 3/h}"]))
    assert [c.get("/", "X-Forwarded-For: 192.0.2.%d" % n).status for n in range(5)] == [200] * 3 + [429] * 2
    p = stage.proxy(stage.origin(), listen="trusted_proxies: 127.0.0.1", routes=["{service: app, rate_limit: 3/h}"])
    c = stage.client(p)
    assert [c.get("/", "X-Forwarded-For: 192.0.2.%d, 198.51.100.1" % n).status for n in range(5)] == [200] * 3 + [429] * 2


def test_of_several_limits_none_is_charged_when_one_refuses(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{service: app, rate_limit: [{rate: 5/h, by: route}, {rate: 2/h}]}"])
    assert [status(stage, p, source="127.0.0.1") for _ in range(6)] == [200, 200] + [429] * 4
    assert [status(stage, p, source="127.0.0.2") for _ in range(4)] == [200, 200] + [429] * 2
    assert [status(stage, p, source="127.0.0.3") for _ in range(2)] == [200, 429]
    assert len(o.requests) == 5


def test_several_limits_are_told_together(stage):
    p = stage.proxy(stage.origin(), routes=[
        "{service: app, rate_limit: [{rate: 4/h, burst: 2, name: slow}, {rate: 100/s, by: route, name: off}, {rate: 9/h, by: route}]}"])
    c = stage.client(p)
    a = c.get()
    assert a.get("RateLimit-Policy") == '"slow";q=2;w=1800, "route";q=9;w=3600'
    assert re.fullmatch(r'"slow";r=1;t=\d+, "route";r=8;t=\d+', a.get("RateLimit"))
    c.get()
    a = c.get()
    assert a.status == 429 and a.get("RateLimit-Policy") == '"slow";q=2;w=1800' and re.fullmatch(r'"slow";r=0;t=\d+', a.get("RateLimit"))
    assert a.get("Retry-After") == a.get("RateLimit").partition("t=")[2]


def test_a_limit_that_is_not_told(stage):
    c = stage.client(stage.proxy(stage.origin(), routes=["{service: app, rate_limit: {rate: 1/h, name: off}}"]))
    for want in (200, 429):
        a = c.get()
        assert a.status == want and not a.all("RateLimit") and not a.all("RateLimit-Policy")
        assert bool(a.all("Retry-After")) == (want == 429)


def test_an_origin_that_limits_too_is_heard(stage):
    def script(c):
        c.request()
        c.reply("", "RateLimit-Policy: \"mine\";q=7;w=1", "RateLimit: \"mine\";r=6")
        c.hold()
    a = stage.client(stage.proxy(stage.origin(script), routes=["{service: app, rate_limit: 9/h}"])).get()
    assert a.all("RateLimit-Policy") == ['"mine";q=7;w=1', '"address";q=9;w=3600'] and a.all("RateLimit")[0] == '"mine";r=6'


@pytest.mark.parametrize("route", ["answer: {body: hi}", "redirect: {to: /x}"])
def test_every_action_is_limited(stage, route):
    c = stage.client(stage.proxy(stage.origin(), routes=["{rate_limit: 2/h, %s}" % route]))
    assert [s == 429 for s in statuses(c, 3)] == [False, False, True]


def test_response_headers_have_the_last_word(stage):
    c = stage.client(stage.proxy(stage.origin(), routes=[
        "{service: app, rate_limit: 9/h, response_headers: {remove: [RateLimit, RateLimit-Policy]}}"]))
    a = c.get()
    assert a.status == 200 and not a.all("RateLimit") and not a.all("RateLimit-Policy")


def test_the_door_is_before_the_limit(stage):
    p = stage.proxy(stage.origin(), routes=["{service: app, deny: 127.0.0.2, rate_limit: {rate: 2/h, by: route}}"])
    assert [status(stage, p, source="127.0.0.2") for _ in range(5)] == [403] * 5
    assert [status(stage, p) for _ in range(3)] == [200, 200, 429]


def test_a_body_that_is_not_wanted(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{service: app, rate_limit: 1/h}", "{path: /no, service: app, deny: 127.0.0.1}"])
    assert status(stage, p) == 200
    for target, want in (("/", 429), ("/no", 403)):
        c = stage.client(p)
        c.request("POST", target, body=b"x" * 300000)
        a = c.answer()
        assert a.status == want and a.get("Connection") == "close"
        c.ended()
        c = stage.client(p)
        c.request("POST", target, "Expect: 100-continue", "Content-Length: 5")
        a = c.answer()
        assert a.status == want and not a.interim
    assert len(o.heads) == 1


def test_a_tunnel_is_one_request(stage):
    def script(c):
        c.head()
        c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        c.hold()
    p = stage.proxy(stage.origin(script), routes=["{service: app, rate_limit: 1/h}"])
    up = ("Connection: Upgrade", "Upgrade: websocket")
    a = stage.client(p).get("/", *up)
    assert a.status == 101 and a.get("RateLimit-Policy")
    assert stage.client(p).get("/", *up).status == 429


def test_rate_memory_is_bounded_and_keeps_the_heavy(stage):
    p = stage.proxy(stage.origin(), listen="trusted_proxies: 127.0.0.1", limits={"rate_memory": "4KiB"},
                    routes=["{answer: {status: 204}, rate_limit: 3/h}"])
    heavy = stage.client(p)
    assert statuses(heavy, 4) == [204] * 3 + [429]
    for _ in range(20):
        c = stage.client(p)
        c.send(*("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.%d.%d.%d\r\n\r\n" % (_, n, n) for n in range(50)))
        assert [c.answer().status for n in range(50)] == [204] * 50
        assert statuses(heavy, 1) == [429]
    p.err.wait(r"warn  limits.rate_memory is used up: rate limits forgot \d+ clients early")
    p.stop()
    m = re.search(r"served:.* rate_limited=21 .*rates_evicted=(\d+)", p.err.text())
    assert m and 800 < int(m[1]) < 1000


def test_hostile_values_of_a_header(stage, long):
    """Each is a bucket of its own; none does any harm."""
    p = stage.proxy(stage.origin(), limits={"rate_memory": "64KiB"}, routes=["{answer: {status: 204}, rate_limit: {rate: 1/h, by: {header: X-Key}}}"])
    c = stage.client(p)
    values = ["\xff" * 2000, "'; drop", "%00", "\t\t", "a" * 60000] + [str(n) for n in range(3000 if long else 500)]
    for v in values:
        assert c.get("/", "X-Key: " + v).status == 204
    assert c.get("/", "X-Key: " + values[-1]).status == 429


def test_a_client_that_leaves_gives_nothing_back(stage):
    o = stage.origin(lambda c: (c.head(), c.hold()))
    p = stage.proxy(o, routes=["{service: app, rate_limit: 1/h}"])
    c = stage.client(p)
    c.request("GET", "/")
    o.wait(1, heads=True)
    c.rst()
    assert p.log(1)[0]["cause"] == "client_left"
    assert status(stage, p) == 429
