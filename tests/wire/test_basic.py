"""A plain request and its plain answer, in each of HTTP/1's shapes."""
import pytest


def test_get_reaches_the_origin_and_back(stage):
    o = stage.origin()
    a = stage.client(stage.proxy(o)).get("/hello?x=1", "X-Mine: yes")
    assert (a.status, a.text()) == (200, "GET /hello?x=1 0")
    r = o.requests[0]
    assert (r.method, r.target, r.version) == ("GET", "/hello?x=1", "HTTP/1.1")
    assert r.get("Host") == "example.test" and r.get("X-Mine") == "yes"


def test_both_connections_are_kept(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    for i in range(5):
        assert c.get("/%d" % i).text() == "GET /%d 0" % i
    assert o.connections == 1


def test_an_upstream_connection_serves_another_client(stage):
    o = stage.origin()
    p = stage.proxy(o)
    for i in range(3):
        c = stage.client(p)
        assert c.get("/").status == 200
        c.close()
    assert o.connections == 1


def test_post_with_a_length(stage):
    o = stage.origin()
    a = stage.client(stage.proxy(o)).post("/", b"x" * 1000)
    assert a.text() == "POST / 1000"
    assert o.requests[0].get("Content-Length") == "1000" and o.requests[0].body == b"x" * 1000


def test_head_has_no_body_but_its_length(stage):
    def script(c):
        while c.request():
            c.send("HTTP/1.1 200 OK\r\nContent-Length: 4321\r\n\r\n")
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    a = c.ask("HEAD", "/")
    assert a.status == 200 and a.get("Content-Length") == "4321"
    assert c.ask("HEAD", "/").status == 200 and o.connections == 1


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_answers_without_a_body(stage, status):
    def script(c):
        while c.request():
            c.send("HTTP/1.1 %s\r\nETag: \"1\"\r\n\r\n" % status)
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    for _ in range(2):
        a = c.get("/")
        assert a.status == int(status[:3]) and a.get("ETag") == '"1"'
        assert not a.all("Transfer-Encoding") and not a.all("Content-Length")
    assert o.connections == 1


def test_options_asterisk(stage):
    o = stage.origin()
    assert stage.client(stage.proxy(o)).ask("OPTIONS", "*").status == 200
    assert (o.requests[0].method, o.requests[0].target) == ("OPTIONS", "*")


def test_absolute_form_goes_on_in_origin_form(stage):
    o = stage.origin()
    a = stage.client(stage.proxy(o)).get("http://real.test/path?q", host="real.test")
    assert a.status == 200
    assert o.requests[0].target == "/path?q" and o.requests[0].get("Host") == "real.test"


def test_http_1_0_client_gets_a_close(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.request("GET", "/", version="1.0")
    a = c.head()
    assert a.status == 200 and "keep-alive" not in (a.get("Connection") or "").lower()
    assert c.rest() == b"GET / 0"
    assert o.requests[0].version == "HTTP/1.1"


def test_http_1_0_keep_alive(stage):
    c = stage.client(stage.proxy(stage.origin()))
    for _ in range(2):
        a = c.get("/", "Connection: keep-alive", version="1.0")
        assert a.status == 200 and a.get("Connection").lower() == "keep-alive"


def test_http_1_0_client_never_sees_chunks(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script)))
    c.request("GET", "/", "Connection: keep-alive", version="1.0")
    a = c.head()
    assert not a.all("Transfer-Encoding")
    assert c.rest() == b"abcde"


def test_http_1_0_origin_whose_body_ends_with_its_connection(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.0 200 OK\r\n\r\nall of it")
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    for n in (1, 2):
        a = c.get("/")
        assert a.text() == "all of it" and a.whole
        assert o.connections == n


def test_connection_close_is_heeded(stage):
    c = stage.client(stage.proxy(stage.origin()))
    a = c.get("/", "Connection: close")
    assert a.text() == "GET / 0" and "close" in a.get("Connection").lower()
    assert c.rest() == b""


def test_connection_close_of_the_origin_stays_there(stage):
    def script(c):
        c.request()
        c.reply("bye", "Connection: close")
    o = stage.origin(script)
    c = stage.client(stage.proxy(o))
    for n in (1, 2):
        a = c.get("/")
        assert a.text() == "bye" and "close" not in (a.get("Connection") or "")
    assert o.connections == 2


def test_any_method_passes(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    for m in ("PUT", "DELETE", "PATCH", "PROPFIND", "X-ODD"):
        assert c.ask(m, "/").text() == "%s / 0" % m


def test_connect_is_refused(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    assert c.ask("CONNECT", "example.test:443", host="example.test:443").status in (400, 405, 501)
    assert not o.heads


def test_path_bytes_are_not_touched(stage):
    o = stage.origin()
    target = "/a%2fb//c/%7Euser/./x;y=1?q=%20+&&a=b#"[:-1]
    assert stage.client(stage.proxy(o)).get(target).status == 200
    assert o.requests[0].target == target


def test_a_head_byte_by_byte(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    for b in b"POST /slow HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc":
        c.send(bytes([b]))
    assert c.answer().text() == "POST /slow 3"


def test_many_clients_at_once(stage):
    o = stage.origin()
    p = stage.proxy(o, workers=2)
    clients = [stage.client(p) for _ in range(60)]
    for i, c in enumerate(clients):
        c.request("GET", "/%d" % i)
    for i, c in enumerate(clients):
        assert c.answer().text() == "GET /%d 0" % i
