"""Which route a request takes, and what the route does with it."""
import pytest


def named(stage, name):
    """An origin that says its name and the target it was asked for."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply("%s %s" % (name, r.target))
    return stage.origin(script)


def world(stage, routes, names, **settings):
    origins = {n: named(stage, n) for n in names}
    p = stage.proxy({n: o.address for n, o in origins.items()}, routes=routes, **settings)
    return stage.client(p)


def test_hosts_exact_and_wildcard(stage):
    c = world(stage, ["{host: a.test, service: a}", "{host: '*.a.test', service: sub}", "{service: any}"],
              ["a", "sub", "any"])
    for host, name in (("a.test", "a"), ("A.TEST", "a"), ("a.test:8080", "a"), ("x.a.test", "sub"),
                       ("y.x.a.test", "sub"), ("b.test", "any"), ("xa.test", "any")):
        assert c.get("/", host=host).text() == name + " /", host


def test_prefixes_end_at_a_border(stage):
    c = world(stage, ["{path: /api, service: api}", "{path: /api/v2, service: v2}", "{path: /, service: web}"],
              ["api", "v2", "web"])
    for target, name in (("/api", "api"), ("/api/", "api"), ("/api?q", "api"), ("/api/x", "api"), ("/apix", "web"),
                         ("/api/v2", "v2"), ("/api/v2/x", "v2"), ("/api/v2x", "api"), ("/", "web")):
        assert c.get(target).text() == "%s %s" % (name, target)


def test_a_dotted_path_cannot_step_around_a_route(stage):
    c = world(stage, ["{path: /admin, answer: {status: 403}}", "{path: /, service: web}"], ["web"])
    for target in ("/admin", "/x/../admin", "/./admin", "//admin", "/%61dmin"):
        assert c.get(target).status in (400, 403), target


def test_strip_prefix(stage):
    c = world(stage, ["{path: /api, strip_prefix: true, service: api}"], ["api"])
    for target, there in (("/api/x?q=1", "/x?q=1"), ("/api", "/"), ("/api?q", "/?q"), ("/api/", "/")):
        assert c.get(target).text() == "api " + there, target


def test_replace_prefix(stage):
    c = world(stage, ["{path: /old, replace_prefix: /new/app, service: api}"], ["api"])
    for target, there in (("/old/x?q=1", "/new/app/x?q=1"), ("/old", "/new/app"), ("/old?q", "/new/app?q")):
        assert c.get(target).text() == "api " + there, target


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(stage, status):
    c = world(stage, ["{path: /go, redirect: {to: 'https://new.test{path}', status: %d}}" % status,
                      "{service: web}"], ["web"])
    a = c.get("/go/there?x=1")
    assert a.status == status and a.get("Location") == "https://new.test/go/there?x=1"
    assert c.get("/").text() == "web /"     # the connection goes on


def test_redirect_to_https_keeps_the_host(stage):
    c = world(stage, ["{redirect: {to: 'https://{host}{path}'}}"], [])
    assert c.get("/a?b", host="shop.test").get("Location") == "https://shop.test/a?b"


def test_fixed_answers(stage):
    c = world(stage, ["{path: /health, answer: {status: 200, body: \"fine\\n\", type: text/plain}}",
                      "{path: /gone, answer: {status: 410}}", "{service: web}"], ["web"])
    a = c.get("/health")
    assert (a.status, a.text(), a.get("Content-Type")) == (200, "fine\n", "text/plain")
    assert c.get("/gone").status == 410
    h = c.ask("HEAD", "/health")
    assert h.status == 200 and h.get("Content-Length") == "5"
    assert c.get("/").text() == "web /"
    assert c.post("/health", b"ignored").status == 200


def test_no_route_is_404(stage):
    c = world(stage, ["{host: a.test, service: a}"], ["a"])
    assert c.get("/", host="b.test").status == 404
    assert c.get("/", host="a.test").status == 200


def test_no_endpoint_is_503(stage):
    p = stage.proxy({"none": "{endpoints: []}"})
    a = stage.client(p).get("/")
    assert a.status == 503 and "thimble" in a.get("Proxy-Status")


def test_request_and_answer_fields_are_set_added_and_removed(stage):
    def script(c):
        got.append(c.request())
        c.reply("", "Server: secret/1.0", "X-A: origin", "X-B: origin")
        c.hold()
    got = []
    o = stage.origin(script)
    p = stage.proxy(o, routes=[
        "{service: app, request_headers: {set: {X-A: ours}, add: {X-B: more}, remove: [X-C]},"
        " response_headers: {set: {X-A: ours}, add: {X-B: more}, remove: [Server]}}"])
    a = stage.client(p).get("/", "X-A: 1", "X-A: 2", "X-B: 1", "X-C: 1")
    r = got[0]
    assert (r.all("X-A"), r.all("X-B"), r.all("X-C")) == (["ours"], ["1", "more"], [])
    assert (a.all("X-A"), a.all("X-B"), a.all("Server")) == (["ours"], ["origin", "more"], [])


@pytest.mark.parametrize("host, there", [("keep", "example.test"), ("endpoint", None), ("fixed.test", "fixed.test")])
def test_host_policies(stage, host, there):
    o = stage.origin()
    p = stage.proxy({"app": "{endpoints: ['%s'], host: %s}" % (o.address, host)})
    assert stage.client(p).get("/").status == 200
    assert o.requests[0].get("Host") == (there or o.address)


def test_two_endpoints_share_the_work(stage):
    a, b = named(stage, "a"), named(stage, "b")
    c = stage.client(stage.proxy({"app": [a.address, b.address]}))
    got = [c.get("/").text() for _ in range(10)]
    assert 3 <= got.count("a /") <= 7 and len(a.requests) + len(b.requests) == 10


def test_max_connections_makes_requests_wait_not_fail(stage):
    import threading
    gate = threading.Event()

    def script(c):
        while c.request():
            gate.wait(10)
            c.reply("done")
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], max_connections: 2}" % o.address},
                    timeouts={"first_byte": "9s"})
    clients = [stage.client(p) for _ in range(6)]
    for c in clients:
        c.request("GET", "/")
    o.wait(2)
    assert all(c.silent(0.05) for c in clients) and o.connections == 2
    gate.set()
    assert [c.answer().text() for c in clients] == ["done"] * 6
    assert o.connections == 2


def test_a_routes_own_time_out_and_body_limit(stage):
    def script(c):
        c.request()
        c.hold()
    o = stage.origin(script)
    p = stage.proxy(o, routes=["{path: /fast, service: app, timeouts: {first_byte: 200ms}, body_limit: 10B}",
                               "{service: app}"])
    assert stage.client(p).get("/fast").status == 504
    assert stage.client(p).post("/fast", b"x" * 11).status == 413


def test_rewriting_a_path_that_is_not_in_normal_form(stage):
    c = world(stage, ["{path: /api, strip_prefix: true, service: api}", "{path: /old, replace_prefix: /new, service: api}"], ["api"])
    for target, there in (("/api/caf%c3%a9", "/caf%c3%a9"), ("/api/a%2fb", "/a%2fb"), ("/api/%7Euser", "/%7Euser"),
                          ("/api/a//b", "/a//b"), ("/api/http://x/y", "/http://x/y"), ("/old/@a%2fb", "/new/@a%2fb"),
                          ("/api/a/../b", "/a/../b")):
        assert c.get(target).text() == "api " + there, target
    for target in ("/api/../api/x", "/%61pi/x", "//api/x", "/x/../api/y", "/./api"):
        a = c.get(target)
        assert (a.status, "normal form" in a.text()) == (400, True), target


def test_a_busy_endpoint_is_passed_over_while_another_is_free(stage):
    import threading
    gate = threading.Event()

    def slow(c):
        while c.request():
            gate.wait(10)
            c.reply("slow")
    a, b = stage.origin(slow), stage.origin()
    p = stage.proxy({"app": "{endpoints: ['%s', '%s'], max_connections: 1}" % (a.address, b.address)},
                    timeouts={"first_byte": "9s", "connect": "9s"})
    clients = [stage.client(p) for _ in range(2)]
    for c in clients:
        c.request("GET", "/")       # one of them is stuck now
    a.wait(1)
    free = clients[0] if not clients[0].silent(0.2) else clients[1]
    assert free.answer().text() == "GET / 0"
    assert [free.get("/%d" % i).text() for i in range(6)] == ["GET /%d 0" % i for i in range(6)]
    gate.set()


def shares(stage, weights, asks, workers):
    origins = {n: named(stage, n) for n in weights}
    p = stage.proxy({n: o.address for n, o in origins.items()}, workers=workers, log="access: off",
                    routes=["{service: {%s}}" % ", ".join("%s: %d" % w for w in weights.items())])
    got = dict.fromkeys(weights, 0)
    clients = [stage.client(p) for _ in range(8)]
    for i in range(asks):
        got[clients[i % 8].get("/").text().split()[0]] += 1
    return got


@pytest.mark.parametrize("workers", [1, 4])
def test_weights_divide_requests(stage, workers):
    got = shares(stage, {"a": 70, "b": 25, "c": 5, "never": 0}, 500, workers)
    for name, want in (("a", 350), ("b", 125), ("c", 25)):
        assert abs(got[name] - want) <= 25, got
    assert got["never"] == 0


def test_a_service_without_endpoints_fails_in_its_share_alone(stage):
    a = named(stage, "a")
    p = stage.proxy({"a": a.address, "gone": []}, routes=["{service: {a: 4, gone: 1}}"])
    c = stage.client(p)
    statuses = [c.get("/").status for _ in range(100)]
    assert 18 <= statuses.count(503) <= 22 and statuses.count(200) == 100 - statuses.count(503)


def hosts(stage):
    """An origin that says the Host and the target it was asked for."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply("%s %s" % (r.get("host"), r.target))
    return stage.origin(script)


def test_the_host_that_a_route_sends(stage):
    o = hosts(stage)
    p = stage.proxy({"app": "{endpoints: ['%s'], host: endpoint}" % o.address},
                    routes=["{path: /a, service: app, replace_host: 'inner.test:81'}", "{service: app}"])
    c = stage.client(p)
    assert c.get("/a/x", host="outer.test").text() == "inner.test:81 /a/x"
    assert c.get("/", host="outer.test").text() == o.address + " /"


def test_the_path_that_a_route_sends(stage):
    o = hosts(stage)
    p = stage.proxy({"app": o.address}, routes=["{path: {regex: '/v[0-9]+/.*'}, service: app, replace_path: /all}"])
    c = stage.client(p)
    assert c.get("/v1/x", host="h.test").text() == "h.test /all"
    assert c.get("/v1/x?q=1&r", host="h.test").text() == "h.test /all?q=1&r"


ODD = [("/a/../b", "/b"), ("/a//b?q=//", "/a/b?q=//"), ("//evil.test/x", "/evil.test/x"), ("/%2e%2E/x", "/x"), ("/a/.", "/a/"),
       ("/.//evil.test", "/evil.test")]
UNSURE = ["/a%2fb", "/x/..;/admin", "/a%00", "//a%5Cb"]


@pytest.mark.parametrize("say", ["pass", "refuse", "redirect"])
def test_odd_paths(stage, say):
    c = world(stage, ["{service: web, odd_paths: %s}" % say], ["web"])
    for target, normal in ODD:
        r = c.get(target)
        if say == "pass":
            assert r.text() == "web " + target
        elif say == "refuse":
            assert r.status == 400, target
        else:
            assert (r.status, r.get("location")) == (308, normal)
    for target in UNSURE:
        r = c.get(target)
        assert r.text() == "web " + target if say == "pass" else r.status == 400, target
    for target in ("/", "/a/b?x=../y", "/...", "/%7e", "/a;b"):
        assert c.get(target).text() == "web " + target


def test_gates_come_before_the_path(stage):
    """Who may not come at all learns nothing of paths, and what is refused for its path counts as a request."""
    c = world(stage, ["{path: /no, service: web, odd_paths: redirect, deny: 127.0.0.1}",
                      "{path: /api, service: web, strip_prefix: on, deny: 127.0.0.1}",
                      "{service: web, odd_paths: refuse, rate_limit: {rate: 2/h, by: route}}"], ["web"])
    for target in ("/no/a//b", "/no/..;/x", "/%61pi/x"):
        assert c.get(target).status == 403, target
    assert [c.get("/a//b").status for _ in range(3)] == [400, 400, 429]
