"""Listeners that pass bytes on: to one service, and TLS by its server name."""
import signal
import socket
import ssl
import struct
import subprocess
import threading

import pytest

import harness

V1 = b"PROXY TCP4 192.0.2.7 198.51.100.2 5678 443\r\n"
LAST_WORD = pytest.mark.true_edges("an alert goes to a socket that nothing was written to, and so has room")


def capitals(c):
    """Sends back in capitals what comes, until the end, which it passes back."""
    while c.more():
        c.send(c.take(len(c.buf)).upper())


def passing(stage, o, listen="service: app", **settings):
    return stage.proxy(o, listen=listen, **settings)


def services(*origins, more=""):
    return {"app": "{endpoints: [%s]%s}" % (", ".join('"%s"' % o.address for o in origins), more)}


def line(p, n=0):
    return p.log(n + 1)[n]


# ---- one service -----------------------------------------------------------

def test_bytes_go_both_ways(stage):
    p = passing(stage, stage.origin(capitals))
    c = stage.client(p)
    for word in (b"hello", b"a" * 1000000, b"\0\r\n\r\nGET / HTTP/1.1\r\n\r\n", b"bye"):
        writer = threading.Thread(target=c.send, args=(word,))
        writer.start()
        assert c.exactly(len(word)) == word.upper()
        writer.join()
    c.fin()
    assert c.rest() == b""
    r = line(p)
    n = 5 + 1000000 + 23 + 3
    assert r["protocol"] == "TCP" and r["bytes_in"] == n and r["bytes_out"] == n and r["cause"] is None
    assert r["service"] == "app" and r["route"] is None and r["status"] == 0 and r["client"] == "127.0.0.1"
    assert r["duration_us"] >= r["connect_us"] > 0


def test_the_origin_speaks_first(stage):
    def script(c):
        c.send("220 ready\r\n")
        assert c.until(b"\r\n") == b"QUIT"
        c.send("221 bye\r\n")
    p = passing(stage, stage.origin(script))
    c = stage.client(p)
    assert c.until(b"\r\n") == b"220 ready"
    c.send("QUIT\r\n")
    assert c.until(b"\r\n") == b"221 bye"
    c.fin()
    assert c.rest() == b"" and line(p)["cause"] is None


def test_half_close_of_the_client(stage):
    p = passing(stage, stage.origin(lambda c: c.send(b"got " + c.rest())))
    c = stage.client(p).send("all")
    c.fin()
    assert c.rest() == b"got all"


def test_half_close_before_the_origin_is_there(stage):
    p = passing(stage, stage.origin(lambda c: c.send(b"got " + c.rest())))
    clients = [stage.client(p).send("x%d" % n) for n in range(20)]
    for c in clients:
        c.fin()
    for n, c in enumerate(clients):
        assert c.rest() == b"got x%d" % n


def test_half_close_of_the_origin(stage):
    got = []

    def script(c):
        c.send("done")
        c.fin()
        got.append(c.rest())
    o = stage.origin(script)
    p = passing(stage, o)
    c = stage.client(p)
    assert c.rest() == b"done"
    c.send("late")
    c.fin()
    o.wait_idle()
    assert got == [b"late"] and line(p)["cause"] is None and line(p)["bytes_in"] == 4


def test_a_reset_of_the_client_is_passed_on(stage):
    seen = []
    o = stage.origin(lambda c: (c.exactly(1), seen.append(c.was_reset())))
    p = passing(stage, o)
    c = stage.client(p).send("x")
    o.wait_connections(1)
    stage.clients.remove(c)
    c.rst()
    o.wait_idle()
    assert seen == [True] or seen == []     # it may be reset before the byte was read
    assert line(p)["cause"] == "client_left" and line(p)["client_closed"]


def test_a_reset_of_the_origin_is_passed_on(stage):
    def script(c):
        c.exactly(1)
        c.rst()
    p = passing(stage, stage.origin(script))
    assert stage.client(p).send("x").was_reset()
    assert line(p)["cause"] == "upstream_reset"


def test_a_reset_behind_what_nobody_takes_is_passed_on_at_once(stage):
    o = stage.origin(lambda c: c.hold())
    p = passing(stage, o, timeouts={"tunnel": "60s"})
    c = stage.client(p)
    c.sock.setblocking(False)
    sent = 0
    with pytest.raises(BlockingIOError):
        while True:
            sent += c.sock.send(b"x" * 65536)
    stage.clients.remove(c)
    c.rst()
    assert line(p)["cause"] == "client_left"


def test_a_client_that_does_not_read_holds_back_the_origin(stage):
    went = []

    def script(c):
        c.sock.settimeout(2)
        try:
            for _ in range(1000):
                c.sock.sendall(b"x" * 65536)
                went.append(65536)
        except TimeoutError:
            pass
    o = stage.origin(script)
    p = passing(stage, o, limits={"receive_window": "64KiB", "unsent": "16KiB"})
    c = stage.client(p, receive_buffer=4096)
    o.wait_connections(1)
    harness.wait_until(lambda: not o.open, "the origin gives up")
    assert sum(went) < 32 << 20
    assert len(c.rest()) >= sum(went)


def test_each_connection_has_its_own(stage):
    o = stage.origin(capitals)
    p = passing(stage, o)
    clients = [stage.client(p) for _ in range(30)]
    for n, c in enumerate(clients):
        c.send("a%02d" % n)
    for n, c in enumerate(clients):
        assert c.exactly(3) == b"A%02d" % n
    assert o.connections == 30
    for c in clients:
        c.fin()
        assert c.rest() == b""
    o.wait_idle()


def test_another_endpoint_when_one_cannot_be_connected_to(stage):
    dead, o = stage.origin(), stage.origin(capitals)
    dead.stop_listening()
    p = passing(stage, services(dead, o))
    for n in range(4):
        c = stage.client(p).send("hello")
        assert c.exactly(5) == b"HELLO"
        c.fin()
        c.rest()
    lines = p.log(4)
    assert all(r["endpoint"] == o.address and r["cause"] is None for r in lines)
    assert sum(r["retries"] for r in lines) == 1    # then it is avoided


def reset_unasked(stage, p):
    """A client that says nothing is reset, which may be before connect() has returned."""
    try:
        return stage.client(p).was_reset()
    except ConnectionResetError:
        return True


def test_no_endpoint_can_be_connected_to(stage):
    dead = [stage.origin() for _ in range(4)]
    for o in dead:
        o.stop_listening()
    p = passing(stage, services(*dead))
    assert reset_unasked(stage, p)
    r = line(p)
    assert r["cause"] == "connect_refused" and r["retries"] == 2 and r["connect_us"] is None


def test_a_service_without_endpoints(stage):
    p = passing(stage, {"app": "{endpoints: []}"})
    assert reset_unasked(stage, p)
    assert line(p)["cause"] == "no_endpoint" and line(p)["endpoint"] is None


def test_connections_are_limited(stage):
    o = stage.origin(capitals)
    p = passing(stage, services(o, more=", max_connections: 1"), timeouts={"connect": "10s"})
    a = stage.client(p).send("a")
    assert a.exactly(1) == b"A"
    b = stage.client(p).send("b")
    assert b.silent(0.3)
    a.fin()
    assert a.rest() == b"" and b.exactly(1) == b"B"


def test_a_wait_for_a_connection_ends(stage):
    o = stage.origin(capitals)
    p = passing(stage, services(o, more=", max_connections: 1"), timeouts={"queue": "300ms"})
    a = stage.client(p).send("a")
    assert a.exactly(1) == b"A"
    assert reset_unasked(stage, p)
    assert line(p)["cause"] == "queue_timeout"
    assert a.send("a").exactly(1) == b"A"


def test_a_stream_without_traffic_ends_at_its_time_out(stage):
    seen = []
    o = stage.origin(lambda c: seen.append(c.was_reset()))
    p = passing(stage, o, timeouts={"tunnel": "300ms"})
    assert reset_unasked(stage, p)
    o.wait_idle()
    assert seen == [True] and line(p)["cause"] == "tunnel_idle"


def test_traffic_either_way_keeps_it(stage):
    def script(c):
        for _ in range(8):
            c.sock.settimeout(0.15)
            try:
                c.more()
            except TimeoutError:
                pass
            c.send("x")
        c.fin()
    p = passing(stage, stage.origin(script), timeouts={"tunnel": "600ms"})
    assert stage.client(p).rest() == b"xxxxxxxx"


def test_a_drain_lets_it_finish(stage):
    p = passing(stage, stage.origin(capitals), timeouts={"drain": "20s"})
    c = stage.client(p).send("a")
    assert c.exactly(1) == b"A"
    p.signal(signal.SIGTERM)
    p.err.wait("no new connections")
    assert c.send("b").exactly(1) == b"B"
    c.fin()
    assert c.rest() == b""
    assert p.wait() == 0 and line(p)["cause"] is None


def test_a_drain_ends_it_when_the_time_is_over(stage):
    o = stage.origin(capitals)
    p = passing(stage, o, timeouts={"drain": "300ms"})
    clients = [stage.client(p).send("a") for _ in range(5)]
    for c in clients:
        assert c.exactly(1) == b"A"
    p.signal(signal.SIGTERM)
    assert all(c.was_reset() for c in clients)
    assert p.wait() == 0
    assert [r["cause"] for r in p.log(5)] == ["drained"] * 5
    assert "streams=5" in p.err.text() and "drained=5" in p.err.text()


def test_the_counters(stage):
    p = passing(stage, stage.origin(capitals))
    c = stage.client(p).send("abc")
    c.exactly(3)
    c.fin()
    c.rest()
    p.stop()
    assert " streams=1 " in p.err.text() and " bytes_in=3 bytes_out=3" in p.err.text() and "requests=" not in p.err.text()


def test_it_stands_beside_http(stage):
    tcp, web = stage.origin(capitals), stage.origin()
    text = harness.config({"web": web.address, "tcp": tcp.address})
    text = text.replace("listen: [", "listen: [{address: 'unix:%s', service: tcp}, " % (stage.folder / "s"))
    p = stage.text(text)
    c = harness.Client(str(stage.folder / "s"))
    stage.clients.append(c)
    assert c.send("hello").exactly(5) == b"HELLO"
    assert stage.client(p).get("/a").text() == "GET /a 0"
    c.fin()
    c.rest()
    assert {r["protocol"] for r in p.log(2)} == {"TCP", "HTTP/1.1"}


def test_no_routes_are_needed(stage):
    o = stage.origin(capitals)
    p = stage.text("listen: {address: '127.0.0.1:@PORT@', service: app}\nservices: {app: '%s'}\n" % o.address)
    assert stage.client(p).send("x").exactly(1) == b"X"


def test_text_lines_of_the_log(stage):
    p = passing(stage, stage.origin(capitals), log="access: stdout, format: text")
    c = stage.client(p).send("x")
    c.exactly(1)
    c.fin()
    c.rest()
    assert " method=- authority=- target=- protocol=TCP status=0 bytes_in=1 bytes_out=1 " in p.out.wait_count(1)[0]


def test_the_proxy_protocol_in_front(stage):
    o = stage.origin(capitals)
    p = passing(stage, o, listen="service: app, trusted_proxies: 127.0.0.1, proxy_protocol: on")
    c = stage.client(p).send(V1 + b"hello")
    assert c.exactly(5) == b"HELLO"
    c.fin()
    c.rest()
    r = line(p)
    assert r["client"] == "192.0.2.7" and r["client_port"] == 5678 and r["bytes_in"] == 5
    for i in range(len(V1)):        # at whatever byte it is cut
        c = stage.client(p).send(V1[:i])
        c.send(V1[i:] + b"x")
        assert c.exactly(1) == b"X"
    assert stage.client(p).send(b"hello").ended() == b""
    assert o.connections == 1 + len(V1)


def test_the_proxy_protocol_in_and_out(stage):
    o = stage.origin(capitals)
    p = passing(stage, services(o, more=", proxy_protocol: v1"),
                listen="service: app, trusted_proxies: 127.0.0.1, proxy_protocol: optional")
    first = b"PROXY TCP4 192.0.2.7 127.0.0.1 5678 %d\r\n" % p.port
    c = stage.client(p).send(V1 + b"hello")
    assert c.exactly(len(first) + 5) == (first + b"hello").upper()
    c.fin()
    c.rest()
    assert line(p)["bytes_in"] == 5     # the client's own
    c = stage.client(p).send(b"x")
    first = b"PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\n" % (c.sock.getsockname()[1], p.port)
    assert c.exactly(len(first) + 1) == (first + b"x").upper()


def test_the_header_goes_before_the_origins_greeting(stage):
    def script(c):
        assert c.until(b"\r\n").startswith(b"PROXY TCP4 ")
        c.send("hello")
        c.fin()
    p = passing(stage, services(stage.origin(script), more=", proxy_protocol: v1"))
    assert stage.client(p).rest() == b"hello"


# ---- TLS by its server name ------------------------------------------------

def extension(kind, body):
    return struct.pack(">HH", kind, len(body)) + body


def server_name(name):
    name = harness.octets(name)
    return extension(0, struct.pack(">HBH", len(name) + 3, 0, len(name)) + name)


def hello(name=None, more=b"", padding=0):
    e = extension(43, b"\2\3\4") + (server_name(name) if name is not None else b"") + more
    if padding:
        e += extension(21, bytes(padding))
    body = b"\3\3" + b"r" * 32 + b"\0" + b"\0\2\x13\1" + b"\1\0" + struct.pack(">H", len(e)) + e
    return b"\1" + struct.pack(">I", len(body))[1:] + body


def records(message, size=16384):
    parts = [message[i:i + size] for i in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(p)) + p for p in parts)


ALERT = b"\x15\3\3\0\2\2"


class Names:
    """Origins that say who they are and then what they got."""

    def __init__(self, stage, **settings):
        self.origins = {}
        self.seen = {}
        for name in ("exact", "wild", "any"):
            self.origins[name] = stage.origin(self.script(name))
        self.stage = stage
        names = settings.pop("names", "{A.Example.com: exact, '*.example.com': wild, '*': any}")
        more = settings.pop("listen", "")
        ends = {n: o.address for n, o in self.origins.items()}
        self.p = stage.proxy(ends, listen="sni: %s%s" % (names, more), **settings)

    def script(self, name):
        def script(c):
            c.send(name)
            data = c.rest()
            self.seen[name] = data
            c.fin()
        return script

    def says(self, *parts):
        c = self.stage.client(self.p)
        c.send(*parts)
        c.fin()
        return c.rest().decode()


def test_names_lead_to_services(stage):
    n = Names(stage)
    for name, service in [("a.example.com", "exact"), ("A.EXAMPLE.COM", "exact"), ("a.example.com.", "exact"),
                          ("b.example.com", "wild"), ("x.a.example.com", "wild"), ("example.com", "any"),
                          ("other.net", "any"), (None, "any"), ("127.0.0.1", "any")]:
        whole = records(hello(name)) + b"\x17\3\3\0\4data"
        assert n.says(whole) == service
        assert n.seen[service] == whole     # not a byte is changed
    lines = n.p.log(9)
    assert [r["authority"] for r in lines[:4]] == ["a.example.com"] * 3 + ["b.example.com"]
    assert lines[7]["authority"] is None and {r["protocol"] for r in lines} == {"TLS"}


@LAST_WORD
def test_an_unknown_name_is_told_so(stage):
    n = Names(stage, names="{a.example.com: exact, '*.example.com': wild}")
    for name in ("example.com", "b.net", None):
        c = stage.client(n.p).send(records(hello(name)))
        assert c.rest() == ALERT + b"\x70"      # unrecognized_name, fatal
    lines = n.p.log(3)
    assert [r["cause"] for r in lines] == ["unknown_name"] * 3
    assert [r["authority"] for r in lines] == ["example.com", "b.net", None]
    assert not any(o.connections for o in n.origins.values())


@LAST_WORD
@pytest.mark.parametrize("name", ["*.b", "a b", "", "a..b", "a\0b", "\xe9", "a" * 64, ".".join(["a" * 50] * 6)])
def test_a_name_that_is_none(stage, name):
    n = Names(stage)
    c = stage.client(n.p).send(records(hello(name)))
    assert c.rest() in (ALERT + b"\x70", ALERT + b"\x32")
    assert not any(o.connections for o in n.origins.values())


def test_a_hello_byte_by_byte_and_in_records_of_any_size(stage):
    n = Names(stage)
    message = hello("a.example.com", extension(16, b"\0\x0c\2h2\x08http/1.1"))
    for size in (1, 2, 3, 5, 40, 1000):
        whole = records(message, size)
        assert n.says(*[whole[i:i + 1] for i in range(len(whole))]) == "exact"
        assert n.seen["exact"] == whole


def test_a_hello_split_anywhere(stage):
    n = Names(stage)
    whole = records(hello("a.example.com"))
    clients = [stage.client(n.p).send(whole[:i]) for i in range(len(whole) + 1)]
    for i, c in enumerate(clients):
        c.send(whole[i:])
        c.fin()
    for c in clients:
        assert c.rest() == b"exact"


def test_a_large_hello_passes(stage):
    n = Names(stage)
    whole = records(hello("a.example.com", padding=16000))
    assert n.says(whole) == "exact" and n.seen["exact"] == whole


@LAST_WORD
def test_a_hello_beyond_16_kib_is_refused(stage):
    n = Names(stage)
    for whole in (records(hello("a.example.com", padding=16400), 8000), records(hello("a.example.com", padding=3000), 1),
                  b"\x16\3\1\x40\0" + b"\1\0\x3f\xfc"):
        c = stage.client(n.p)
        try:
            c.send(whole)
        except OSError:
            pass
        assert c.ended() in (ALERT + b"\x32", b"")
    assert [r["cause"] for r in n.p.log(3)] == ["hello_size"] * 3
    assert not any(o.connections for o in n.origins.values())


@LAST_WORD
@pytest.mark.parametrize("what,answer,cause", [
    (b"\x16\3\1\0\4\1\0\0\0", ALERT + b"\x32", "bad_hello"),
    (b"\x16\3\1\0\4\2\0\0\0", ALERT + b"\x32", "bad_hello"),
    (records(hello("a.example.com"))[:50] + b"\x17" + b"\0" * 99, ALERT + b"\x32", "bad_hello"),
    (records(hello("a.example.com", server_name("b.example.com"))), ALERT + b"\x32", "bad_hello"),
    (b"\x80\x2e\1\3\1\0\x15", b"", "not_tls"),
    (b"SSH-2.0-x\r\n", b"", "not_tls"),
    (b"\0" * 100, b"", "not_tls"),
])
def test_what_is_no_hello(stage, what, answer, cause):
    n = Names(stage)
    c = stage.client(n.p).send(what)
    assert c.ended() == answer
    assert line(n.p)["cause"] == cause and not any(o.connections for o in n.origins.values())


def test_plain_http_is_told_so(stage):
    n = Names(stage)
    for request in ("GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n", "POST /x HTTP/1.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        a = stage.client(n.p).send(request).answer()
        assert a.status == 400 and "this port speaks TLS" in a.text() and a.get("Connection") == "close"
    assert [r["cause"] for r in n.p.log(3)] == ["plain_http"] * 3


def test_a_hello_that_drips_is_no_longer_alive(stage):
    n = Names(stage, timeouts={"head": "300ms", "idle": "60s", "tunnel": "60s"})
    whole = records(hello("a.example.com"))
    silent, half = stage.client(n.p), stage.client(n.p).send(whole[:40])
    assert silent.ended() == b"" and half.ended() == b""
    assert [r["cause"] for r in n.p.log(2)] == ["head_timeout"] * 2
    c = stage.client(n.p).send(whole)
    assert c.exactly(5) == b"exact" and c.silent(0.6)


def test_a_client_that_leaves_in_its_hello(stage):
    n = Names(stage)
    whole = records(hello("a.example.com"))
    for part in (b"", whole[:40]):
        c = stage.client(n.p).send(part)
        c.fin()
        assert c.ended() == b""
    assert n.says(whole) == "exact"
    assert [r["cause"] for r in n.p.log(2)] == ["client_left", None]


def test_a_drain_closes_who_has_said_nothing(stage):
    n = Names(stage, timeouts={"head": "60s", "drain": "30s"})
    c = stage.client(n.p)
    assert n.says(records(hello("a.example.com"))) == "exact"
    n.p.stop()
    assert c.ended() == b""


def test_the_proxy_protocol_before_tls(stage):
    n = Names(stage, listen=", trusted_proxies: 127.0.0.1, proxy_protocol: on")
    whole = records(hello("a.example.com"))
    for i in range(len(V1)):
        c = stage.client(n.p).send(V1[:i])
        c.send(V1[i:] + whole)
        c.fin()
        assert c.rest() == b"exact" and n.seen["exact"] == whole
    assert line(n.p)["client"] == "192.0.2.7"
    assert stage.client(n.p).send(whole).ended() == b""


@LAST_WORD
def test_tls_itself_passes(stage):
    """A real handshake, end to end, with the origin's certificate."""
    key, cert = str(stage.folder / "k.pem"), str(stage.folder / "c.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=a.example.com", "-addext", "subjectAltName=DNS:a.example.com"],
                   check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)

    def script(c):
        with server.wrap_socket(c.sock, server_side=True) as s:
            s.sendall(s.recv(100).upper())
            s.unwrap()
    o = stage.origin(script)
    p = stage.proxy(o, listen="sni: {a.example.com: app}")
    context = ssl.create_default_context(cafile=cert)
    with socket.create_connection(p.address, timeout=10) as raw:
        with context.wrap_socket(raw, server_hostname="a.example.com") as s:
            s.sendall(b"hello")
            assert s.recv(100) == b"HELLO" and s.version() == "TLSv1.3"
    with socket.create_connection(p.address, timeout=10) as raw:
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME|unrecognized name"):
            context.wrap_socket(raw, server_hostname="b.example.com")
