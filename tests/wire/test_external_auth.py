"""`auth` of a route: a service is asked about each request, and only its whole 2xx lets it pass."""
import ssl
import threading

import pytest

from certs import Authority
from harness import echo, free_port, wait_until


def yes(c):
    """An auth service that lets everything pass."""
    while c.request():
        c.reply("fine", "X-User: alice")


def no(c):
    while c.request():
        c.reply("go away", "WWW-Authenticate: Basic realm=x", "Content-Type: text/x", "X-Secret: 1", status="401 Unauthorized")


def says(text, fin=True):
    """Answers every request with these bytes."""
    def script(c):
        while c.request():
            c.send(text)
            if fin:
                return
    return script


def guarded(stage, app, auth, extra="", services=None, routes=None, **more):
    all_services = {"app": getattr(app, "address", app), "who": getattr(auth, "address", auth)}
    all_services.update(services or {})
    return stage.proxy(all_services, routes=routes or ["{service: app, auth: {service: who%s}}" % extra], **more)


def test_a_2xx_lets_the_request_pass(stage):
    app, auth = stage.origin(), stage.origin(yes)
    c = stage.client(guarded(stage, app, auth))
    for i in range(3):
        assert c.get("/%d" % i).text() == "GET /%d 0" % i
    assert auth.connections == 1 and len(auth.requests) == 3 and app.connections == 1


def test_what_the_service_is_told(stage):
    app, auth = stage.origin(), stage.origin(yes)
    p = guarded(stage, app, auth, ", path: '/verify?a=b'", listen="trusted_proxies: []")
    c = stage.client(p)
    c.post("/shop?item=1", b"body", "Cookie: c=1", "Authorization: Bearer x", "X-Original-URL: http://liar/",
           "X-Original-Method: LIE", "X-Forwarded-Uri: /lie", "x-auth-request-redirect: /lie", "X-Real-IP: 9.9.9.9",
           "X-Forwarded-For: 8.8.8.8", "X-Forwarded-Proto: https", "Expect: 200-ok", "Range: bytes=0-1", "If-None-Match: *",
           "Under_Score: 1", host="shop.example:81")
    r = auth.requests[0]
    assert (r.method, r.target, r.body) == ("GET", "/verify?a=b", b"")
    assert r.get("Host") == "shop.example:81" and r.get("Content-Length") is None and r.get("Transfer-Encoding") is None
    assert r.get("X-Original-URL") == "http://shop.example:81/shop?item=1" and r.get("X-Original-Method") == "POST"
    assert r.get("X-Forwarded-Method") == "POST" and r.get("X-Forwarded-Uri") == "/shop?item=1"
    assert r.get("X-Auth-Request-Redirect") == "/shop?item=1"
    assert r.get("X-Forwarded-For") == "127.0.0.1" and r.get("X-Real-IP") == "127.0.0.1"
    assert r.get("X-Forwarded-Proto") == "http" and r.get("X-Forwarded-Host") == "shop.example:81"
    assert r.get("Cookie") == "c=1" and r.get("Authorization") == "Bearer x"
    for name in ("Expect", "Range", "If-None-Match", "Under_Score"):
        assert r.get(name) is None
    # the request itself is as it would be without
    s = app.requests[0]
    assert s.body == b"body" and s.get("Range") == "bytes=0-1" and s.get("X-Original-URL") == "http://liar/"


def test_a_trusted_proxy_is_believed(stage):
    app, auth = stage.origin(), stage.origin(yes)
    c = stage.client(guarded(stage, app, auth, listen="trusted_proxies: [127.0.0.0/8]"))
    c.get("/x", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: outer.example")
    r = auth.requests[0]
    assert r.get("X-Original-URL") == "https://example.test/x" and r.get("X-Real-IP") == "192.0.2.7"
    assert r.get("X-Forwarded-For") == "192.0.2.7, 127.0.0.1"


def test_only_the_named_headers_are_shown(stage):
    app, auth = stage.origin(), stage.origin(yes)
    c = stage.client(guarded(stage, app, auth, ", request_headers: [Cookie, x-key], method: POST"))
    c.get("/", "Cookie: c=1", "X-Key: k", "Authorization: secret", "X-Forwarded-For: 8.8.8.8")
    r = auth.requests[0]
    assert r.method == "POST" and r.get("Content-Length") == "0"
    assert r.get("Cookie") == "c=1" and r.get("X-Key") == "k" and r.get("Authorization") is None
    assert r.get("X-Forwarded-For") == "127.0.0.1" and r.get("X-Original-Method") == "GET" and r.get("X-Request-Id")


def test_asked_by_head(stage):
    def script(c):
        while c.request():
            c.send("HTTP/1.1 403 No\r\nContent-Length: 1000\r\n\r\n")
    app, auth = stage.origin(), stage.origin(script)
    c = stage.client(guarded(stage, app, auth, ", method: HEAD"))
    for _ in range(2):
        a = c.get("/")
        assert a.status == 403 and a.body == b"" and auth.requests[0].method == "HEAD"
    assert auth.connections == 1


def test_one_that_asks_itself_comes_to_an_end(stage):
    """The service is the proxy, by the very route that asks it."""
    app = stage.origin()
    p = stage.text("""
listen: 127.0.0.1:@PORT@
routes: [{service: app, auth: {service: self, timeout: 1s}}]
services: {app: '%s', self: '127.0.0.1:@PORT@'}
limits: {calls: 20}
log: {access: stdout, format: json}
workers: 1
""" % app.address)
    assert stage.client(p).get("/").status in (502, 503, 504)
    assert app.connections == 0


def test_no_headers_at_all(stage):
    app, auth = stage.origin(), stage.origin(yes)
    stage.client(guarded(stage, app, auth, ", request_headers: []")).get("/", "Cookie: c=1")
    assert auth.requests[0].get("Cookie") is None and app.requests[0].get("Cookie") == "c=1"


def test_headers_of_the_answer_replace_the_clients(stage):
    def script(c):
        c.request()
        c.reply("", "X-User: alice", "X-Group: a", "X-Group: b", "X-Other: 1")
        c.request()
        c.reply("")     # says nothing of X-User: then nobody does
    app, auth = stage.origin(), stage.origin(script)
    c = stage.client(guarded(stage, app, auth, ", response_headers: [x-user, X-Group]"))
    c.get("/", "X-User: root", "x-USER: root", "X-Group: admin", "X-Other: mine")
    r = app.requests[0]
    assert r.get("X-User") == "alice" and r.all("X-Group") == ["a", "b"] and r.get("X-Other") == "mine"
    c.get("/", "X-User: root")
    assert app.requests[1].get("X-User") is None


def test_many_headers_of_the_answer(stage):
    def script(c):
        c.request()
        c.reply("", *["X-Group: %d" % i for i in range(150)])
    app, auth = stage.origin(), stage.origin(script)
    assert stage.client(guarded(stage, app, auth, ", response_headers: [X-Group]")).get("/").status == 200
    assert app.requests[0].all("X-Group") == [str(i) for i in range(150)]


def test_a_refusal_reaches_the_client_and_nothing_the_endpoint(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth)
    c = stage.client(p)
    a = c.get("/secret")
    assert a.status == 401 and a.text() == "go away" and a.get("WWW-Authenticate") == "Basic realm=x"
    assert a.get("Content-Type") == "text/x" and a.get("X-Secret") is None and a.get("Proxy-Status") is None
    a = c.ask("HEAD", "/secret")
    assert a.status == 401 and a.get("Content-Length") == "7"
    line = p.log(2)[0]
    assert line["cause"] == "auth_refused" and line["status"] == 401 and line["endpoint"] is None
    assert app.connections == 0 and len(auth.requests) == 2


@pytest.mark.parametrize("status, field", [("403 Forbidden", None), ("429 Too Many", "Retry-After: 7"), ("404 Not Found", None),
                                           ("302 Found", "Location: https://login.example/?x"), ("407 Odd", None)])
def test_other_refusals(stage, status, field):
    def script(c):
        c.request()
        c.reply("text", *([field] if field else []), "Set-Cookie: s=1", "Set-Cookie: t=2", status=status)
    app, auth = stage.origin(), stage.origin(script)
    a = stage.client(guarded(stage, app, auth)).get("/")
    assert a.status == int(status[:3]) and a.text() == "text" and a.all("Set-Cookie") == ["s=1", "t=2"]
    if field:
        name, _, value = field.partition(": ")
        assert a.get(name) == value
    assert app.connections == 0


def test_the_routes_edits_are_made_on_a_refusal(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth, routes=["{service: app, auth: {service: who}, response_headers: {set: {X-Env: prod}}}"])
    a = stage.client(p).get("/")
    assert a.status == 401 and a.get("X-Env") == "prod"


def test_signing_in(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth, ", sign_in: 'https://login.{host}/start?rd={url}&x=1'", listen="trusted_proxies: [127.0.0.1]")
    c = stage.client(p)
    a = c.get("/a/b?c=d&e=%20", "X-Forwarded-Proto: https", host="shop.example:444")
    assert a.status == 302 and a.body == b"" and a.get("WWW-Authenticate") is None
    assert a.get("Location") == ("https://login.shop.example/start?rd=https%3A%2F%2Fshop.example%3A444%2Fa%2Fb"
                                 "%3Fc%3Dd%26e%3D%2520&x=1")
    assert c.ask("HEAD", "/").status == 302
    assert c.post("/", b"x").status == 401
    c = stage.client(p)
    assert c.get("/", "Connection: upgrade", "Upgrade: websocket").status == 401
    assert app.connections == 0


def test_signing_in_with_a_host_that_is_none(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth, ", sign_in: '/start?rd={url}'")
    c = stage.client(p)
    a = c.send("GET /x HTTP/1.0\r\n\r\n").answer()
    assert a.status == 302 and a.get("Location") == "/start?rd=%2Fx"


def test_cookies_of_a_2xx_reach_the_client(stage):
    def script(c):
        while c.request():
            c.reply("", "Set-Cookie: a=1", "Set-Cookie: b=2")
    def app_script(c):
        while c.request():
            c.reply("x", "Set-Cookie: app=3")
    app, auth = stage.origin(app_script), stage.origin(script)
    a = stage.client(guarded(stage, app, auth)).get("/")
    assert a.all("Set-Cookie") == ["app=3", "a=1", "b=2"]
    a = stage.client(guarded(stage, app, auth, ", set_cookie: off")).get("/")
    assert a.all("Set-Cookie") == ["app=3"]


@pytest.mark.parametrize("script, status, text", [(no, 401, "go away"), (yes, 200, "inside")])
def test_an_answer_of_the_routes_own_is_guarded_too(stage, script, status, text):
    auth = stage.origin(script)
    p = stage.proxy({"who": auth.address}, routes=["{answer: {body: inside}, auth: {service: who}}"])
    a = stage.client(p).get("/")
    assert a.status == status and a.text() == text


# ---- what goes wrong refuses the request

@pytest.mark.parametrize("script, status, cause", [
    (says("HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad"), 502, "auth_error"),
    (says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", fin=False), 502, "auth_error"),
    (says("HTTP/1.1 304 Same\r\n\r\n"), 502, "auth_failed"),
    (says("HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), 502, "auth_failed"),
    (says("220 mail.example ESMTP\r\n"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), 502, "auth_failed"),
    (says("HTTP/1.1 200 OK\r\nX: %s" % ("x" * 70000)), 502, "auth_answer_size"),
    (says("HTTP/1.1 200 OK\r\n" + "".join("X%d: 1\r\n" % i for i in range(300)) + "\r\n"), 502, "auth_answer_size"),
    (says("HTTP/1.1 403 No\r\nContent-Length: 65537\r\n\r\n" + "x" * 65537), 502, "auth_answer_size"),
    (says("HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + "x" * 1100000), 502, "auth_answer_size"),
    (says("HTTP/1.1 103 Hints\r\n\r\n" * 40), 502, "auth_failed"),
    (says(""), 502, "auth_failed"),
], ids=lambda v: v if isinstance(v, (str, int)) else "")
def test_what_is_no_answer_refuses(stage, script, status, cause):
    app, auth = stage.origin(), stage.origin(script)
    p = guarded(stage, app, auth)
    a = stage.client(p).get("/")
    assert a.status == status and a.error
    assert p.log(1)[0]["cause"] == cause
    assert app.connections == 0
    p.err.wait("auth by the service who: ")


@pytest.mark.parametrize("text, status", [
    ("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
    ("HTTP/1.1 204 None\r\n\r\n", 200),
    ("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nand more", 200),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n", 200),
    ("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + "x" * 200000, 200),
    ("HTTP/1.0 403 No\r\n\r\nuntil the end", 403),
    ("HTTP/1.1 403 No\r\nContent-Length: 65536\r\n\r\n" + "x" * 65536, 403),
], ids=lambda v: str(v)[:30])
def test_odd_answers_that_are_good(stage, text, status):
    app, auth = stage.origin(), stage.origin(says(text))
    c = stage.client(guarded(stage, app, auth))
    for _ in range(2):
        assert c.get("/").status == status


def test_an_answer_in_drops(stage):
    def script(c):
        c.request()
        for byte in "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n":
            c.send(byte)
    app, auth = stage.origin(), stage.origin(script)
    a = stage.client(guarded(stage, app, auth)).get("/")
    assert a.status == 403 and a.text() == "ab"


def test_a_service_that_is_not_there(stage):
    app = stage.origin()
    p = guarded(stage, app, "127.0.0.1:%d" % free_port())
    a = stage.client(p).get("/")
    assert a.status == 502 and a.error == "destination_unavailable" and p.log(1)[0]["cause"] == "auth_unreachable"
    p = guarded(stage, app, "{endpoints: []}")
    assert stage.client(p).get("/").status == 502
    assert app.connections == 0


def test_another_endpoint_of_the_service(stage):
    app, auth = stage.origin(), stage.origin(yes)
    p = guarded(stage, app, auth, services={"who": ["127.0.0.1:%d" % free_port(), auth.address]})
    c = stage.client(p)
    for _ in range(4):
        assert c.get("/").status == 200


def test_a_kept_connection_that_dies(stage):
    def once(c):
        c.request()
        c.reply("")
        c.head()
        c.rst()
    app, auth = stage.origin(), stage.origin([once, yes])
    c = stage.client(guarded(stage, app, auth))
    assert c.get("/").status == 200 and c.get("/").status == 200
    assert len(auth.heads) == 3 and auth.connections == 2


@pytest.mark.parametrize("text", ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"],
                         ids=["at once", "in the head", "in the body"])
def test_a_service_that_hangs_is_504(stage, text):
    def script(c):
        c.head()
        c.send(text)
        c.wait_closed()
    app, auth = stage.origin(), stage.origin(script)
    p = guarded(stage, app, auth, ", timeout: 300ms")
    a = stage.client(p).get("/")
    assert a.status == 504 and a.error == "http_response_timeout"
    assert p.log(1)[0]["cause"] == "auth_timeout" and app.connections == 0
    auth.wait_idle()


def test_the_time_out_is_for_all_of_it(stage):
    def drips(c):
        c.head()
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not c.origin.over.wait(0.02):
            c.send("x")
    app, auth = stage.origin(), stage.origin(drips)
    assert stage.client(guarded(stage, app, auth, ", timeout: 400ms")).get("/").status == 504


def test_a_reset_in_the_middle(stage):
    def script(c):
        c.head()
        c.send("HTTP/1.1 200 OK\r\nContent-Le")
        c.rst()
    app, auth = stage.origin(), stage.origin(script)
    a = stage.client(guarded(stage, app, auth)).get("/")
    assert a.status == 502 and app.connections == 0


# ---- what happens to the request meanwhile

class Gate:
    """An auth service that holds each request until it is told to let go."""

    def __init__(self):
        self.open = threading.Semaphore(0)

    def __call__(self, c):
        while c.request():
            self.open.acquire(timeout=20)
            c.reply("")

    def let(self, n=1):
        for _ in range(n):
            self.open.release()


def test_a_body_waits_until_it_may_pass(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth)
    c = stage.client(p)
    body = b"0123456789abcdef" * 400000     # more than the sockets hold
    t = threading.Thread(target=lambda: c.request("POST", "/up", body=body))
    t.start()
    auth.wait(1)
    assert app.connections == 0 and t.is_alive()
    gate.let()
    t.join()
    assert c.answer().text() == "POST /up %d" % len(body)
    assert app.requests[0].body == body


def test_a_chunked_body_and_what_is_pipelined_behind_it(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    c = stage.client(guarded(stage, app, auth))
    c.send("POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
           "GET /2 HTTP/1.1\r\nHost: a\r\n\r\nPUT /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nwxyz")
    auth.wait(1)
    assert app.connections == 0
    gate.let(3)
    assert [c.answer().text() for _ in range(3)] == ["POST /1 3", "GET /2 0", "PUT /3 4"]
    assert [r.get("X-Original-Method") for r in auth.requests] == ["POST", "GET", "PUT"]


def test_a_body_of_a_refused_request_is_not_read(stage):
    app, auth = stage.origin(), stage.origin(no)
    c = stage.client(guarded(stage, app, auth))
    a = c.ask("POST", "/", "Content-Length: 1000000", "Expect: 100-continue")
    assert a.status == 401 and not a.interim and a.get("Connection") == "close"
    assert app.connections == 0


def test_expect_continue_goes_to_the_endpoint_behind_it(stage):
    def script(c):
        r = c.head()
        c.send("HTTP/1.1 100 Continue\r\n\r\n")
        c.body(r)
        c.reply("got %d" % len(r.body))
    app, auth = stage.origin(script), stage.origin(yes)
    c = stage.client(guarded(stage, app, auth))
    c.request("POST", "/", "Content-Length: 5", "Expect: 100-continue")
    assert c.head().status == 100
    assert c.send("hello").answer().text() == "got 5"


def test_the_client_leaves_while_it_is_held(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth)
    c = stage.client(p)
    c.request("GET", "/")
    auth.wait(1)
    c.rst()
    assert p.log(1)[0]["cause"] == "client_left"
    gate.let()
    auth.wait_idle()
    assert app.connections == 0
    c = stage.client(p)     # and all goes on
    c.request("GET", "/x")
    auth.wait(2)
    gate.let()
    assert c.answer().status == 200


def test_a_half_close_is_no_leaving(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    c = stage.client(guarded(stage, app, auth))
    c.request("GET", "/x")
    c.fin()
    auth.wait(1)
    gate.let()
    assert c.answer().text() == "GET /x 0"


def test_many_are_held_at_once(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth)
    clients = [stage.client(p) for _ in range(150)]
    for i, c in enumerate(clients):
        c.request("GET", "/%d" % i)
    auth.wait(64)
    gate.let(150)
    assert [c.answer().text() for c in clients] == ["GET /%d 0" % i for i in range(150)]


def test_calls_are_bounded(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth, limits={"calls": 3})
    held = [stage.client(p) for _ in range(3)]
    for c in held:
        c.request("GET", "/")
    auth.wait(3)
    a = stage.client(p).get("/")
    assert a.status == 503 and a.error == "connection_limit_reached" and p.log(1)[0]["cause"] == "calls_full"
    gate.let(3)
    assert [c.answer().status for c in held] == [200] * 3
    gate.let()
    assert stage.client(p).get("/").status == 200


def test_requests_wait_for_a_connection_of_the_service(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth, services={"who": "{endpoints: ['%s'], max_connections: 1}" % auth.address})
    clients = [stage.client(p) for _ in range(5)]
    for c in clients:
        c.request("GET", "/")
    gate.let(5)
    assert [c.answer().status for c in clients] == [200] * 5
    assert auth.connections == 1


def test_what_is_held_is_finished_at_the_end(stage):
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth)
    c = stage.client(p)
    c.request("GET", "/last")
    auth.wait(1)
    p.signal(15)
    p.err.wait("drain|stopping|SIGTERM|end")
    gate.let()
    a = c.answer()
    assert a.text() == "GET /last 0" and a.get("Connection") == "close"
    assert p.wait() == 0
    p.check_clean()


def test_what_is_held_too_long_at_the_end_is_cut(stage):
    app, auth = stage.origin(), stage.origin(lambda c: c.hold())
    p = guarded(stage, app, auth, timeouts={"drain": "200ms"})
    c = stage.client(p)
    c.request("GET", "/last")
    wait_until(lambda: auth.connections == 1)
    p.signal(15)
    assert c.ended() == b""
    assert p.wait() == 0
    p.check_clean()


def test_a_websocket_passes_the_gate(stage):
    def script(c):
        c.head()
        c.send("HTTP/1.1 101 Up\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello")
        assert c.exactly(2) == b"hi"
        c.send("bye")
    app, auth = stage.origin(script), stage.origin(yes)
    p = guarded(stage, app, auth)
    c = stage.client(p)
    c.request("GET", "/", "Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x")
    c.send("hi")
    assert c.head().status == 101 and c.rest() == b"hellobye"
    assert auth.requests[0].get("Upgrade") is None and auth.requests[0].get("Sec-WebSocket-Key") == "x"


def test_requests_that_no_route_guards_are_not_asked_about(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth, routes=["{service: app, path: /in, auth: {service: who}}", "{service: app}"])
    c = stage.client(p)
    assert c.get("/out").status == 200 and not auth.connections
    assert c.get("/in/x").status == 401
    assert c.get("/out/../in").status == 401


def test_the_route_is_edited_behind_it(stage):
    app, auth = stage.origin(), stage.origin(yes)
    p = guarded(stage, app, auth, routes=[
        "{service: app, path: /in, strip_prefix: on, request_headers: {set: {X-User: route}}, "
        "auth: {service: who, response_headers: [X-User]}}"])
    assert stage.client(p).get("/in/x").text() == "GET /x 0"
    assert app.requests[0].get("X-User") == "route" and auth.requests[0].get("X-User") is None
    assert auth.requests[0].get("X-Original-URL").endswith("/in/x")


# ---- beside the other gates

CORS = "cors: {origins: ['https://page.test'], methods: [PUT], credentials: on}"


def test_a_preflight_is_answered_before_it(stage):
    app, auth = stage.origin(), stage.origin(no)
    p = guarded(stage, app, auth, routes=["{service: app, auth: {service: who}, %s}" % CORS])
    c = stage.client(p)
    a = c.ask("OPTIONS", "/", "Origin: https://page.test", "Access-Control-Request-Method: PUT")
    assert a.status == 200 and a.get("Access-Control-Allow-Methods") and not auth.connections
    # and a page can read why it was refused
    a = c.get("/", "Origin: https://page.test")
    assert a.status == 401 and a.get("Access-Control-Allow-Origin") == "https://page.test" and a.text() == "go away"
    assert c.ask("OPTIONS", "/").status == 401      # that was none


def test_passwords_are_looked_at_before_it(stage):
    users = stage.file("users", "u:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")     # "password"
    gate = Gate()
    app, auth = stage.origin(), stage.origin(gate)
    p = guarded(stage, app, auth, routes=["{service: app, basic_auth: {file: '%s', user_header: X-User}, "
                                          "auth: {service: who, response_headers: [X-Group]}}" % users])
    c = stage.client(p)
    assert c.get("/", "Authorization: Basic dTp3cm9uZw==").status == 401 and not auth.connections
    body = b"x" * 300000
    t = threading.Thread(target=lambda: c.request("POST", "/up", "Authorization: Basic dTpwYXNzd29yZA==", "X-Group: root", body=body))
    t.start()
    r = auth.wait(1)[0]
    assert r.get("X-User") == "u" and r.get("Authorization") is None and app.connections == 0
    gate.let()
    t.join()
    assert c.answer().text() == "POST /up %d" % len(body)
    assert app.requests[0].get("X-User") == "u" and app.requests[0].get("X-Group") is None


def test_what_it_lets_pass_has_been_counted(stage):
    app, auth = stage.origin(), stage.origin(yes)
    p = guarded(stage, app, auth, routes=["{service: app, auth: {service: who}, rate_limit: {rate: 1/h, burst: 2}}"])
    c = stage.client(p)
    assert [c.get("/").status for _ in range(4)] == [200, 200, 429, 429] and len(auth.requests) == 2


# ---- over TLS

def test_over_tls_on_all_sides(stage):
    """Client, service and endpoint: the service is behind another of us, whose listener ends TLS."""
    ca = Authority(stage.folder)
    tls = "tls: {certificates: %s}" % ca.issue(stage.folder, "a", ["a.test"]).yaml()
    app, auth = stage.origin(), stage.origin(yes)
    behind = stage.proxy({"app": app.address, "who": auth.address}, listen=tls, routes=["{path: /check, service: who}", "{service: app}"])
    ends = "{endpoints: 'https://127.0.0.1:%d', tls: {ca: '%s', name: a.test}}" % (behind.port, ca.cert)
    p = stage.proxy({"app": ends, "who": ends, "shadow": ends}, listen=tls, routes=[
        "{service: app, auth: {service: who, path: /check, response_headers: [X-User]}, mirror: {service: shadow}}"])
    c = stage.client(p)
    c.sock = ssl.create_default_context(cafile=ca.cert).wrap_socket(c.sock, server_hostname="a.test")
    for i in range(3):
        assert c.post("/%d" % i, b"x" * 50000, host="a.test").text() == "POST /%d 50000" % i
    app.wait(6)
    assert auth.requests[0].get("X-Original-URL") == "https://a.test/0"
    assert sorted(r.target for r in app.requests) == ["/0", "/0", "/1", "/1", "/2", "/2"]
    assert all(r.body == b"x" * 50000 and r.get("X-User") == "alice" for r in app.requests)
