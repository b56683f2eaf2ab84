"""PROXY protocol headers: in, from those who may say who a client is; out, to endpoints that want to know."""
import socket
import struct

import pytest

import harness

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ON = "trusted_proxies: 127.0.0.0/8, proxy_protocol: on"
MAY = "trusted_proxies: 127.0.0.0/8, proxy_protocol: optional"
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.2 5678 443\r\n"
GET = b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n"


def v2(family=0x11, body=None, command=0x21):
    if body is None:
        body = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.2") + struct.pack(">HH", 5678, 443)
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(body)) + body


def v6_body(source="2001:db8::7"):
    return (socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, "2001:db8::2") +
            struct.pack(">HH", 5678, 443))


# ---- in --------------------------------------------------------------------

@pytest.mark.parametrize("header,client,port", [
    (V1, "192.0.2.7", 5678),
    (b"PROXY TCP6 2001:db8::7 2001:db8::2 5678 443\r\n", "2001:db8::7", 5678),
    (b"PROXY TCP6 ::ffff:192.0.2.7 ::1 5678 443\r\n", "192.0.2.7", 5678),
    (v2(), "192.0.2.7", 5678),
    (v2(0x21, v6_body()), "2001:db8::7", 5678),
    (v2(0x21, v6_body("::ffff:192.0.2.7")), "192.0.2.7", 5678),
    (v2(body=v2()[16:] + b"\x04\0\2xx"), "192.0.2.7", 5678),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1", None),
    (v2(command=0x20), "127.0.0.1", None),
    (v2(0, b""), "127.0.0.1", None),
    (v2(0x12), "127.0.0.1", None),
    (v2(0x31, b"/" * 216), "127.0.0.1", None),
])
def test_the_address_of_the_header_is_the_clients(stage, header, client, port):
    o = stage.origin()
    p = stage.proxy(o, listen=ON)
    c = stage.client(p).send(header + GET)
    assert c.answer().text() == "GET /a 0"
    assert c.get("/b").text() == "GET /b 0"     # the header is for the whole connection
    for n, line in enumerate(p.log(2)):
        assert line["client"] == client and line["client_port"] == (port or c.sock.getsockname()[1])
        assert o.requests[n].get("X-Forwarded-For") == client


def test_a_header_byte_by_byte(stage):
    o = stage.origin()
    p = stage.proxy(o, listen=ON)
    for header in (V1, v2(), v2(0x21, v6_body())):
        c = stage.client(p)
        for i in range(len(header + GET)):
            c.send((header + GET)[i:i + 1])
        assert c.answer().text() == "GET /a 0"
    assert [r.get("X-Forwarded-For") for r in o.requests] == ["192.0.2.7", "192.0.2.7", "2001:db8::7"]


@pytest.mark.parametrize("header", [V1, v2()])
def test_a_header_split_anywhere(stage, header):
    o = stage.origin()
    p = stage.proxy(o, listen=ON)
    clients = [stage.client(p).send(header[:i]) for i in range(len(header) + 1)]
    for i, c in enumerate(clients):
        c.send(header[i:] + GET)
    for c in clients:
        assert c.answer().text() == "GET /a 0"
    assert {r.get("X-Forwarded-For") for r in o.requests} == {"192.0.2.7"}


def test_the_address_of_the_header_is_not_trusted_itself(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, listen=ON)).send(V1 + GET.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n"))
    c.answer()
    assert o.requests[0].get("X-Forwarded-For") == "192.0.2.7"


@pytest.mark.parametrize("header", [
    GET, b"\x16\3\1\0\5hello", b"PROXY TCP4 192.0.2.7 198.51.100.2 05678 443\r\n",
    b"PROXY TCP4 192.0.2.7 198.51.100.2 5678 443\n", b"PROXY " + b"x" * 200, v2(0x41), v2(command=0x22), v2(body=b"short"),
    v2(body=v2()[16:] + b"\x03\0\4abcd"), SIGNATURE + b"\x21\x11\xff\xff", b"proxy tcp4 1 2 3 4\r\n",
    b"\0" * 40, V1[:20] + b"\r\n",
])
def test_what_is_no_header_ends_the_connection(stage, header):
    o = stage.origin()
    p = stage.proxy(o, listen=ON)
    c = stage.client(p).send(header + GET)
    assert c.ended() == b""
    p.err.wait("a connection from 127.0.0.1 was closed: it did not begin with a valid PROXY protocol header")
    stage.client(p).send(V1 + GET).answer()
    assert len(o.requests) == 1
    p.stop()
    assert "proxy_header=1" in p.err.text()


def test_a_header_of_somebody_else_is_not_read(stage):
    o = stage.origin()
    p = stage.proxy(o, listen="trusted_proxies: 127.0.0.2, proxy_protocol: on")
    for header in (V1, v2(), b""):
        c = stage.client(p)
        try:
            c.send(header + GET)
        except OSError:
            pass
        assert c.ended() == b""
    p.stop()
    assert not o.requests and "proxy_untrusted=3" in p.err.text()
    assert "a connection from 127.0.0.1 was closed: it is not among the listener's trusted_proxies" in p.err.text()


def test_without_the_key_a_header_is_no_request(stage):
    p = stage.proxy(stage.origin(), listen="trusted_proxies: 127.0.0.0/8")
    for header in (V1, v2()):
        a = stage.client(p).send(header + GET).answer()
        assert a.status == 400


def test_optional(stage):
    o = stage.origin()
    p = stage.proxy(o, listen=MAY)
    for first in (b"", V1, v2(), b"\r\n"):
        assert stage.client(p).send(first + GET).answer().text() == "GET /a 0"
    assert [r.get("X-Forwarded-For") for r in o.requests] == ["127.0.0.1", "192.0.2.7", "192.0.2.7", "127.0.0.1"]
    assert stage.client(p).send(b"PROXY TCP4 1.2.3.4\r\n" + GET).ended() == b""     # begins like one, and is none
    assert stage.client(p).send(b"PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").answer().text() == "PUT /p 0"


def test_optional_is_not_for_everybody(stage):
    o = stage.origin()
    p = stage.proxy(o, listen="trusted_proxies: 127.0.0.2, proxy_protocol: optional")
    assert stage.client(p).send(GET).answer().text() == "GET /a 0"
    for header in (V1, v2()):
        assert stage.client(p).send(header + GET).answer().status == 400
    assert [r.get("X-Forwarded-For") for r in o.requests] == ["127.0.0.1"]


def test_a_header_that_drips_is_no_longer_alive(stage):
    p = stage.proxy(stage.origin(), listen=ON, timeouts={"head": "300ms", "idle": "60s"})
    silent, half, whole = stage.client(p), stage.client(p).send(V1[:10]), stage.client(p).send(V1 + GET[:10])
    assert silent.ended() == b"" and half.ended() == b""
    assert whole.answer().status == 408
    p.stop()
    assert "head_timeout=3" in p.err.text()


def test_a_connection_that_ends_before_its_header(stage):
    p = stage.proxy(stage.origin(), listen=ON)
    for part in (b"", V1[:10]):
        c = stage.client(p).send(part)
        c.fin()
        assert c.ended() == b""
    assert stage.client(p).send(V1 + GET).answer().status == 200
    p.stop()
    assert "proxy_header=1" in p.err.text()     # one that says nothing is no fault: load balancers look that way


def test_an_idle_connection_behind_its_header(stage):
    p = stage.proxy(stage.origin(), listen=ON, timeouts={"head": "300ms", "idle": "60s"})
    c = stage.client(p).send(V1)
    assert c.silent(1)      # the head deadline was for the header alone
    assert c.send(GET).answer().status == 200


def test_from_a_unix_socket(stage):
    o = stage.origin()
    path = str(stage.folder / "s")
    p = stage.text(harness.config({"app": o.address}).replace(
        "'127.0.0.1:@PORT@'", "'unix:%s', trusted_proxies: \"unix:\", proxy_protocol: on" % path))
    c = harness.Client(path)
    stage.clients.append(c)
    assert c.send(V1 + GET).answer().status == 200
    assert o.requests[0].get("X-Forwarded-For") == "192.0.2.7"


def test_a_drain_closes_who_has_sent_no_header(stage):
    p = stage.proxy(stage.origin(), listen=ON, timeouts={"head": "60s", "drain": "30s"})
    c = stage.client(p)
    harness.wait_until(lambda: p.descriptors(), "the start")
    stage.client(p).send(V1 + GET).answer()
    p.stop()
    assert c.ended() == b""


# ---- out -------------------------------------------------------------------

def introduced(c):
    """An origin that wants a header in front of each connection, and then does what echo does."""
    first = c.exactly(5)
    if first == b"PROXY":
        c.origin.note(c.origin.headers, (first + c.until(b"\r\n")).decode())
    else:
        rest = c.exactly(11)
        body = c.exactly(struct.unpack(">H", rest[9:])[0])
        assert first + rest[:7] == SIGNATURE
        c.origin.note(c.origin.headers, rest[7:9] + body)
    harness.echo(c)


def wanting(stage, **more):
    o = stage.origin(introduced, **more)
    o.headers = []
    return o


def service(o, version="v1", more=""):
    ends = o if isinstance(o, list) else [o]
    return {"app": "{endpoints: [%s], proxy_protocol: %s%s}" % (", ".join('"%s"' % e.address for e in ends), version, more)}


def test_version_1_out(stage):
    o = wanting(stage)
    p = stage.proxy(service(o))
    c = stage.client(p)
    assert c.get("/a").text() == "GET /a 0"
    assert o.headers == ["PROXY TCP4 127.0.0.1 127.0.0.1 %d %d" % (c.sock.getsockname()[1], p.port)]


def test_version_2_out(stage):
    o = wanting(stage)
    p = stage.proxy(service(o, "v2"))
    c = stage.client(p)
    assert c.get("/a").text() == "GET /a 0"
    local = socket.inet_aton("127.0.0.1")
    assert o.headers == [b"\x21\x11" + local + local + struct.pack(">HH", c.sock.getsockname()[1], p.port)]


def test_what_came_in_goes_out(stage):
    o = wanting(stage)
    p = stage.proxy(service(o), listen=ON)
    stage.client(p).send(V1 + GET).answer()
    stage.client(p).send(v2(0x21, v6_body()) + GET).answer()
    stage.client(p).send(b"PROXY UNKNOWN\r\n" + GET).answer()
    assert o.headers[0] == "PROXY TCP4 192.0.2.7 127.0.0.1 5678 %d" % p.port
    assert o.headers[1] == "PROXY TCP6 2001:db8::7 ::ffff:127.0.0.1 5678 %d" % p.port
    assert o.headers[2].startswith("PROXY TCP4 127.0.0.1 127.0.0.1 ")


def test_a_client_on_a_unix_socket_is_unknown(stage):
    o = wanting(stage)
    path = str(stage.folder / "s")
    stage.text(harness.config(service(o)).replace("'127.0.0.1:@PORT@'", "'unix:%s'" % path))
    c = harness.Client(path)
    stage.clients.append(c)
    assert c.get("/a").status == 200
    assert o.headers == ["PROXY UNKNOWN"]


def test_no_two_requests_share_a_connection(stage):
    o = wanting(stage)
    p = stage.proxy(service(o))
    a, b = stage.client(p), stage.client(p)
    for n in range(3):
        assert a.get("/a%d" % n).status == 200 and b.get("/b%d" % n).status == 200
    assert o.connections == 6
    ports = ["%d" % c.sock.getsockname()[1] for c in (a, b)]
    assert [h.split()[4] for h in o.headers] == ports * 3
    o.wait_idle()


def test_a_service_without_it_shares_none_with_one_that_has_it(stage):
    o = stage.origin(lambda c: introduced(c) if c.number else harness.echo(c))
    o.headers = []
    services = dict(service(o), plain=o.address)
    p = stage.proxy(services, routes=["{path: /plain, service: plain}", "{service: app}"])
    c = stage.client(p)
    assert c.get("/plain").status == 200        # this connection is kept
    assert c.get("/app").status == 200          # and is not the one for this
    assert o.connections == 2 and len(o.headers) == 1
    assert c.get("/plain").status == 200
    assert o.connections == 2


def test_those_who_wait_for_a_connection_get_one_of_their_own(stage):
    o = wanting(stage)
    p = stage.proxy(service(o, more=", max_connections: 1"), timeouts={"connect": "5s"})
    clients = [stage.client(p).request("POST", "/%d" % n, body=b"x" * 1000) for n in range(8)]
    for n, c in enumerate(clients):
        assert c.answer().text() == "POST /%d 1000" % n
    assert o.connections == 8 and len(set(o.headers)) == 8


def test_a_kept_connection_makes_room_for_one_of_its_own(stage):
    o = stage.origin(lambda c: introduced(c) if c.number % 2 else harness.echo(c))
    o.headers = []
    services = {"plain": '{endpoints: ["%s"], max_connections: 1}' % o.address}
    services.update(service(o, more=", max_connections: 1"))
    p = stage.proxy(services, routes=["{path: /plain, service: plain}", "{service: app}"])
    c = stage.client(p)
    for n in range(3):
        assert c.get("/plain").status == 200
        assert c.get("/app").status == 200
    assert o.connections == 6 and len(o.headers) == 3


def test_another_endpoint_gets_the_header_too(stage):
    o = wanting(stage)
    dead = stage.origin()
    dead.stop_listening()
    p = stage.proxy(service([dead, o], more=", host: endpoint"))
    for n in range(4):
        assert stage.client(p).get("/%d" % n).status == 200
    assert len(o.headers) == 4
    assert {r.get("Host") for r in o.requests} == {o.address}


def test_a_tunnel_behind_the_header(stage):
    def script(c):
        c.origin.note(c.origin.headers, c.until(b"\r\n"))
        c.head()
        c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while c.more():
            c.send(c.take(len(c.buf)).upper())
    o = stage.origin(script)
    o.headers = []
    c = stage.client(stage.proxy(service(o)))
    assert c.get("/", "Connection: Upgrade", "Upgrade: websocket").status == 101
    assert c.send("hello").exactly(5) == b"HELLO"
    assert o.headers[0].startswith(b"PROXY TCP4 127.0.0.1 127.0.0.1 ")


@pytest.mark.parametrize("version,header", [("v1", "PROXY UNKNOWN"), ("v2", b"\x20\0")])
def test_a_question_of_our_own_says_that_it_is_ours(stage, version, header):
    gate, o = wanting(stage), stage.origin()
    services = {"app": o.address, "gate": '{endpoints: ["%s"], proxy_protocol: %s}' % (gate.address, version)}
    p = stage.proxy(services, routes=["{service: app, auth: {service: gate}}"])
    c = stage.client(p)
    assert c.get("/a").text() == "GET /a 0" and c.get("/b").text() == "GET /b 0"
    assert gate.headers == [header] * 2 and gate.connections == 2
