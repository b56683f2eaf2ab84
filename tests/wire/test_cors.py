"""CORS: preflights, the fields of answers, whoever gives them, and what stays as it was."""
import pytest

from harness import octets
from test_auth_basic import USERS

APP = "https://app.example"
POLICY = ("{origins: [%s, 'https://*.example.com'], methods: [PUT, DELETE], headers: [X-One, Authorization], expose: [ETag, X-Two], "
          "credentials: on, max_age: 10m}" % APP)


def saying(*said, status="200 OK"):
    """An origin whose answers have these fields."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(r.method, *said, status=status)
    return script


def world(stage, policy=POLICY, script=None, more="", **settings):
    o = stage.origin(script or saying())
    return o, stage.proxy(o, routes=["{service: app, cors: %s%s}" % (policy, more)], **settings)


def cors(a):
    return {n[15:]: v for n, v in a.fields if n.startswith("Access-Control-")}


def preflight(c, origin, method="PUT", *more):
    return c.ask("OPTIONS", "/x", "Origin: " + origin, "Access-Control-Request-Method: " + method, *more)


PLAIN = {"Allow-Origin": APP, "Allow-Credentials": "true", "Expose-Headers": "ETag, X-Two"}
ALLOWED = dict(PLAIN, **{"Allow-Methods": "PUT, DELETE", "Allow-Headers": "X-One, Authorization", "Max-Age": "600"})


def test_a_preflight_is_answered_here(stage):
    o, p = world(stage)
    c = stage.client(p)
    a = preflight(c, APP, "PUT", "Access-Control-Request-Headers: x-one")
    assert (a.status, a.body, cors(a), a.get("Vary")) == (200, b"", ALLOWED, "Origin")
    assert cors(preflight(c, "https://a.example.com"))["Allow-Origin"] == "https://a.example.com"
    assert not o.requests
    assert [line["cause"] for line in p.log(2)] == [None, None]


def test_a_preflight_of_another_origin_is_403(stage):
    o, p = world(stage)
    c = stage.client(p)
    for origin in ("https://evil.example", "null", "http://app.example", APP + ":443", APP + ".evil.example", "https://a.b.example.com",
                   "https://example.com", "https://evil.net/.example.com", "HTTPS://APP.EXAMPLE", "*"):
        a = preflight(c, origin)
        assert (a.status, cors(a), a.get("Vary")) == (403, {}, "Origin"), origin
    assert not o.requests
    assert {line["cause"] for line in p.log(10)} == {"cors_refused"}


def test_what_is_no_preflight_is_forwarded(stage):
    o, p = world(stage)
    c = stage.client(p)
    for method, fields in (("OPTIONS", ["Origin: " + APP]), ("OPTIONS", ["Access-Control-Request-Method: PUT"]),
                           ("GET", ["Origin: " + APP, "Access-Control-Request-Method: PUT"]), ("OPTIONS", []),
                           ("OPTIONS", ["Origin: " + APP, "Origin: " + APP, "Access-Control-Request-Method: PUT"])):
        assert c.ask(method, "/", *fields).text() == method
    assert len(o.requests) == 5


def test_an_answer_says_who_may_read_it(stage):
    o, p = world(stage)
    c = stage.client(p)
    a = c.get("/", "Origin: " + APP)
    assert (a.text(), cors(a), a.get("Vary")) == ("GET", PLAIN, "Origin")
    for fields in ([], ["Origin: https://evil.example"], ["Origin: null"]):
        a = c.get("/", *fields)         # forwarded all the same; the browser keeps it
        assert (a.text(), cors(a), a.get("Vary")) == ("GET", {}, "Origin")
    assert len(o.requests) == 4


def test_what_an_endpoint_says_is_replaced(stage):
    said = ["Access-Control-Allow-Origin: *", "access-control-allow-origin: https://evil.example",
            "Access-Control-Allow-Credentials: true", "Access-Control-Expose-Headers: *", "Access-Control-Max-Age: 1",
            "Access-Control-Allow-Methods: *", "Access-Control-Allow-Headers: *", "Access-Control-Allow-Private-Network: true",
            "Vary: Accept, Accept-Encoding", "ETag: \"x\""]
    o, p = world(stage, script=saying(*said))
    c = stage.client(p)
    a = c.get("/", "Origin: " + APP)
    assert (cors(a), a.get("Vary"), a.get("ETag")) == (PLAIN, "Accept, Accept-Encoding, Origin", '"x"')
    assert cors(c.get("/")) == {} and cors(c.get("/", "Origin: https://evil.example")) == {}


@pytest.mark.parametrize("said,vary", [([], ["Origin"]), (["Vary: origin"], ["origin"]), (["Vary: *"], ["*"]),
                                       (["Vary: A", "Vary: B"], ["A", "B, Origin"]), (["Vary:"], ["Origin"])])
def test_vary_is_merged(stage, said, vary):
    o, p = world(stage, script=saying(*said))
    assert stage.client(p).get("/", "Origin: " + APP).all("Vary") == vary


def test_a_star_is_the_same_for_everybody(stage):
    o, p = world(stage, "{origins: '*', methods: '*', headers: ['*', Authorization]}")
    c = stage.client(p)
    for fields in ([], ["Origin: " + APP], ["Origin: null"]):
        a = c.get("/", *fields)
        assert (cors(a), a.get("Vary")) == ({"Allow-Origin": "*"}, None)
    assert cors(preflight(c, "null")) == {"Allow-Origin": "*", "Allow-Methods": "*", "Allow-Headers": "*, Authorization"}


def test_with_credentials_a_star_is_what_was_asked_for(stage):
    o, p = world(stage, "{origins: %s, methods: '*', headers: '*', credentials: on}" % APP)
    c = stage.client(p)
    a = preflight(c, APP, "PURGE", "Access-Control-Request-Headers: x-a, x-b")
    assert cors(a) == {"Allow-Origin": APP, "Allow-Credentials": "true", "Allow-Methods": "PURGE", "Allow-Headers": "x-a, x-b"}
    assert a.get("Vary") == "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
    for odd in ("x-a;b", "a b", "x,,y", "<x>"):
        assert "Allow-Headers" not in cors(preflight(c, APP, "PUT", "Access-Control-Request-Headers: " + odd))
        assert "Allow-Methods" not in cors(preflight(c, APP, odd))


def test_our_own_answers_can_be_read_too(stage):
    o = stage.origin()
    o.stop_listening()
    routes = ["{path: /gone, service: app, cors: %s}" % POLICY,
              "{path: /in, answer: {body: in}, cors: %s, basic_auth: {file: '%s'}}" % (POLICY, USERS),
              "{path: /away, redirect: {to: /x}, cors: %s}" % POLICY,
              "{path: /small, service: app, body_limit: 1B, cors: %s}" % POLICY, "{path: /plain, answer: {body: x}}"]
    p = stage.proxy(o, routes=routes)
    for target, status in (("/gone", 502), ("/in", 401), ("/away", 302)):
        a = stage.client(p).get(target, "Origin: " + APP)
        assert (a.status, cors(a), a.get("Vary")) == (status, PLAIN, "Origin")
    a = stage.client(p).post("/small", b"too long", "Origin: " + APP)
    assert (a.status, cors(a)) == (413, PLAIN)
    c = stage.client(p)
    assert preflight(c, APP).status == 404      # no route
    assert cors(c.get("/plain", "Origin: " + APP)) == {}
    a = c.ask("OPTIONS", "/in", "Origin: " + APP, "Access-Control-Request-Method: GET")
    assert (a.status, cors(a)) == (200, ALLOWED)       # a preflight has no credentials, and needs none


def test_a_route_has_the_last_word(stage):
    o, p = world(stage, more=", response_headers: {set: {X-Extra: 'yes'}, remove: [Vary]}")
    a = stage.client(p).get("/", "Origin: " + APP)
    assert (a.get("X-Extra"), a.get("Vary"), cors(a)) == ("yes", None, PLAIN)


def test_a_field_cannot_be_broken(stage):
    """What of a request is sent back is an origin that matched."""
    o, p = world(stage)
    c = stage.client(p)
    for origin in ("https://a\x80.example.com", "https://a .example.com", "https://%0d%0a.example.com", "x" * 5000):
        c.request("GET", "/", "Origin: " + origin)
        assert cors(c.answer()) == {}


def test_defaults_can_be_undone(stage):
    o = stage.origin()
    p = stage.proxy(o, routes=["{path: /off, service: app, cors: off}", "{service: app}"],
                    more="defaults: {cors: {origins: '*'}}\n")
    c = stage.client(p)
    assert cors(c.get("/off", "Origin: " + APP)) == {} and cors(c.get("/")) == {"Allow-Origin": "*"}


@pytest.mark.parametrize("key,field", [
    ("methods: PATCH", ("Allow-Methods", "PATCH")), ("headers: [A, b]", ("Allow-Headers", "A, b")), ("expose: C", ("Expose-Headers", "C")),
    ("credentials: on", ("Allow-Credentials", "true")), ("max_age: 90s", ("Max-Age", "90")), ("max_age: 0s", ("Max-Age", "0")),
    ("credentials: off", None), ("max_age: off", None),
])
def test_each_key_is_a_field(stage, key, field):
    o, p = world(stage, "{origins: %s, %s}" % (APP, key))
    assert cors(preflight(stage.client(p), APP)) == dict([("Allow-Origin", APP)] + ([field] if field else []))
