"""Gates of one route together: in which order a request meets them, and that what they add does not clash."""
from harness import octets
from test_auth_basic import USERS, basic
from test_cors import APP, cors

CORS = "cors: {origins: '%s', credentials: on}" % APP
PLAIN = {"Allow-Origin": APP, "Allow-Credentials": "true"}


def says(c):
    """What there is of these fields."""
    while True:
        r = c.request()
        if r is None:
            return
        c.reply("".join("%s: %s\n" % f for f in r.fields if f[0].lower() in ("authorization", "x-user", "x-asked")))


def test_addresses_cors_rate_and_password_in_this_order(stage):
    o = stage.origin(says)
    gates = "%s, rate_limit: {rate: 2/h, name: n}, basic_auth: {file: '%s'}" % (CORS, USERS)
    p = stage.proxy(o, routes=["{path: /denied, service: app, deny: 127.0.0.1, %s}" % gates, "{service: app, %s}" % gates])
    c = stage.client(p)
    a = c.ask("OPTIONS", "/denied", "Origin: " + APP, "Access-Control-Request-Method: PUT")
    assert (a.status, cors(a)) == (403, {})
    for _ in range(5):      # of no password, and of no bucket
        a = c.ask("OPTIONS", "/", "Origin: " + APP, "Access-Control-Request-Method: PUT")
        assert a.status == 200 and a.get("RateLimit") is None
    for status, fields in ((401, []), (200, [basic("alice", "secret")]), (429, []), (429, [basic("alice", "secret")])):
        a = c.get("/", "Origin: " + APP, *fields)       # a wrong password costs a request, too
        assert (a.status, cors(a)) == (status, PLAIN)
        assert a.get("RateLimit") and (a.get("WWW-Authenticate") is None) == (status != 401)
    assert [line["cause"] for line in p.log(10)][-4:] == ["basic_required", None, "rate_limited", "rate_limited"]


def test_a_password_and_then_a_service(stage):
    """Held twice: by the password, then by the service that is asked, which sees who it is and not the password."""
    asked = stage.origin(lambda c: [c.reply("", "X-Asked: " + (r.get("X-User") or "nobody") + (r.get("Authorization") or ""))
                                    for r in iter(c.request, None)])
    o = stage.origin(says)
    route = ("{service: app, basic_auth: {file: '%s', user_header: X-User}, auth: {service: door, path: /, "
             "response_headers: [X-Asked]}, %s}" % (USERS, CORS))
    p = stage.proxy({"app": o.address, "door": asked.address}, routes=[route])
    c = stage.client(p)
    for user, password in (("alice", "secret"), ("bob", "correct horse"), ("alice", "secret")):
        a = c.get("/", basic(user, password), "Origin: " + APP, "X-User: root", "X-Asked: root")
        assert sorted(a.text().split("\n")) == ["", "X-Asked: " + user, "X-User: " + user]
        assert cors(a) == PLAIN
    assert c.get("/", basic("alice", "wrong")).status == 401 and len(asked.requests) == 3


def test_vary_of_cors_and_of_compression(stage):
    body = octets("compress me " * 1000)
    o = stage.origin(lambda c: [c.reply(body, "Content-Type: text/plain", "Vary: X") for r in iter(c.request, None)])
    p = stage.proxy(o, routes=["{service: app, compress: on, %s}" % CORS])
    a = stage.client(p).get("/", "Origin: " + APP, "Accept-Encoding: gzip")
    assert a.get("Content-Encoding") == "gzip" and cors(a) == PLAIN
    assert a.get("Vary") == "X, Origin, Accept-Encoding"


def test_a_304_keeps_the_vary_of_what_a_cache_has(stage):
    """Its Vary takes the place of the stored one: without Accept-Encoding a compressed answer would be for everybody."""
    o = stage.origin(lambda c: [c.send('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 9999\r\n\r\n') for r in iter(c.request, None)])
    p = stage.proxy(o, routes=["{service: app, compress: on, %s}" % CORS])
    c = stage.client(p)
    a = c.get("/", "Origin: " + APP, "Accept-Encoding: gzip", 'If-None-Match: W/"1"')
    assert (a.status, a.get("ETag"), a.get("Vary"), a.get("Content-Length")) == (304, 'W/"1"', "Origin, Accept-Encoding", None)
    a = c.get("/", "Origin: " + APP, "Accept-Encoding: gzip", 'If-None-Match: "1"')
    assert (a.get("ETag"), a.get("Vary"), a.get("Content-Length")) == ('"1"', "Origin", "9999")


def test_answers_of_our_own_have_room_for_all_that_is_added(stage):
    cookies = ["Set-Cookie: c%d=1" % i for i in range(90)]
    door = stage.origin(lambda c: [c.reply("", *cookies) for r in iter(c.request, None)])
    adds = ", ".join("X-A%d: v" % i for i in range(95))
    p = stage.proxy({"door": door.address}, routes=[
        "{path: /adds, answer: {body: hi}, response_headers: {add: {%s}}}" % adds,
        "{path: /cookies, answer: {body: hi}, auth: {service: door}}",
        "{path: /both, answer: {body: hi}, auth: {service: door}, response_headers: {add: {%s}}}" % adds])
    c = stage.client(p)
    for path, n_adds, n_cookies in (("/adds", 95, 0), ("/cookies", 0, 90), ("/both", 95, 90)):
        a = c.get(path)
        assert (a.status, a.text(), len(a.all("Set-Cookie"))) == (200, "hi", n_cookies)
        assert len([n for n, _ in a.fields if n.startswith("X-A")]) == n_adds


def test_no_client_writes_what_the_gates_say_with_underscores(stage):
    """Behind CGI X_User and X-User are one name."""
    door = stage.origin(lambda c: [c.reply("", "X-Asked: door") for r in iter(c.request, None)])
    o = stage.origin()
    p = stage.proxy({"app": o.address, "door": door.address}, listen="underscores: allow", routes=[
        "{service: app, basic_auth: {file: '%s', user_header: X-User}, auth: {service: door, response_headers: [X-Asked]}}" % USERS])
    lies = ["X_User: root", "x_asked: root", "X_Original-URL: http://a/", "X_Real_IP: 10.0.0.1"]
    assert stage.client(p).get("/", basic("alice", "secret"), "X_Other: 1", *lies).status == 200
    for r, ours in ((o.requests[0], {"X-User": ["alice"], "X-Asked": ["door"]}),
                    (door.requests[0], {"X-User": ["alice"], "X-Original-Url": ["http://example.test/"], "X-Real-Ip": ["127.0.0.1"]})):
        seen = {}
        for n, v in r.fields:
            seen.setdefault(n.replace("_", "-").title(), []).append(v)
        assert seen["X-Other"] == ["1"] and {n: seen[n] for n in ours} == ours
