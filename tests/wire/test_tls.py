"""TLS from clients and to endpoints: what is said through it is what is said without it."""
import os
import shutil
import signal
import ssl
import subprocess

import pytest

from harness import Client, echo


def certificate(stage, name="a.test", kind="ec", more=()):
    """Paths of a certificate, by itself, and its key."""
    cert, key = (str(stage.folder / ("%s-%s.%s" % (name, kind, e))) for e in ("crt", "key"))
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if kind == "ec" else ["-newkey", "rsa:2048"]
    names = ",".join("DNS:" + n for n in (name,) + tuple(more))
    subprocess.run(["openssl", "req", "-x509", *new, "-nodes", "-keyout", key, "-out", cert, "-days", "90",
                    "-subj", "/CN=" + name, "-addext", "subjectAltName=" + names + ",IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


def context(ca=None, version=None, alpn=None):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca:
        c.load_verify_locations(ca)
    else:
        c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    if version:
        c.minimum_version = c.maximum_version = version
    if alpn:
        c.set_alpn_protocols(alpn)
    return c


class Secure(Client):
    def __init__(self, address, ctx, name="a.test", session=None):
        super().__init__(address)
        self.sock = ctx.wrap_socket(self.sock, server_hostname=name, session=session, suppress_ragged_eofs=False)


def world(stage, script=echo, tls="", routes=None, **settings):
    o = stage.origin(script)
    cert, key = certificate(stage)
    p = stage.proxy({"app": o.address}, listen="tls: {certificates: [{cert: %s, key: %s}]%s}" % (cert, key, tls),
                    routes=routes, **settings)
    return p, context(cert), o


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
WAYS = [(VERSIONS[0], ""), (VERSIONS[1], ""), (VERSIONS[1], ", park: off")]


@pytest.mark.parametrize("version, tls", WAYS)
def test_requests_on_one_connection(stage, version, tls):
    p, ctx, o = world(stage, tls=tls)
    ctx.minimum_version = ctx.maximum_version = version
    c = Secure(p.address, ctx)
    for i in range(20):
        r = c.get("/%d" % i, host="a.test")
        assert r.status == 200 and r.text().startswith("GET /%d" % i)
    body = os.urandom(300000)
    assert c.post("/up", body, host="a.test").status == 200
    assert o.requests[-1].body == body
    c.close()


@pytest.mark.parametrize("version, tls", WAYS)
def test_large_bodies_come_whole(stage, version, tls):
    data = os.urandom(3 << 20)

    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(data)
    p, ctx, o = world(stage, script, tls)
    ctx.minimum_version = ctx.maximum_version = version
    c = Secure(p.address, ctx)
    for _ in range(3):
        assert c.get("/", host="a.test").body == data


def test_the_origin_is_told_of_https(stage):
    p, ctx, o = world(stage)
    c = Secure(p.address, ctx)
    c.get("/", host="a.test")
    assert o.requests[0].get("X-Forwarded-Proto") == "https"


def test_a_host_that_the_certificate_is_not_for_is_421(stage):
    p, ctx, o = world(stage)
    c = Secure(p.address, ctx)
    assert c.get("/", host="other.test").status == 421
    assert c.get("/", host="a.test").status == 200
    assert c.get("/", host="A.test.:8443").status == 200
    assert c.get("/", host="127.0.0.1").status == 200


def test_plain_http_is_told_so(stage):
    p, ctx, o = world(stage)
    c = stage.client(p)
    r = c.get("/")
    assert r.status == 400 and "TLS" in r.text()
    c.ended()


def test_garbage_is_closed(stage):
    p, ctx, o = world(stage)
    c = stage.client(p)
    c.send(b"\x00\x01garbage\r\n\r\n")
    c.ended()


def test_a_hello_in_single_bytes(stage):
    """The handshake and a request, each byte on its own."""
    p, ctx, o = world(stage)
    bio_in, bio_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    s = ctx.wrap_bio(bio_in, bio_out, server_hostname="a.test")
    raw = stage.client(p)

    def move(more):
        data = bio_out.read()
        for i in range(len(data)):
            raw.send(data[i:i + 1])
        if more:
            bio_in.write(raw.sock.recv(65536))
    while True:
        try:
            s.do_handshake()
            break
        except ssl.SSLWantReadError:
            move(True)
    move(False)
    s.write(b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n")
    move(False)
    got = b""
    while b"GET /x" not in got:
        try:
            got += s.read(65536)        # one record
        except ssl.SSLWantReadError:
            bio_in.write(raw.sock.recv(65536))
    assert got.startswith(b"HTTP/1.1 200 ")


def test_the_end_is_told(stage):
    """close_notify when the proxy closes, so that the client can tell it from a cut."""
    p, ctx, o = world(stage)
    c = Secure(p.address, ctx)
    r = c.get("/", "Connection: close", host="a.test")
    assert r.status == 200
    assert c.rest() == b""       # an end without close_notify would raise


def test_a_cut_answer_is_a_cut(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        c.rst()
    p, ctx, o = world(stage, script)
    c = Secure(p.address, ctx)
    with pytest.raises((EOFError, ssl.SSLError, ConnectionError)):
        c.get("/", host="a.test")


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_are_resumed(stage, version):
    p, ctx, o = world(stage)
    ctx.minimum_version = ctx.maximum_version = version
    c = Secure(p.address, ctx)
    c.get("/", host="a.test")
    session = c.sock.session
    d = Secure(p.address, ctx, session=session)
    assert d.sock.session_reused
    assert d.get("/", host="a.test").status == 200


def test_names_choose_certificates(stage):
    o = stage.origin()
    a, b = certificate(stage, "a.test"), certificate(stage, "b.test", more=("*.wild.test",))
    p = stage.proxy({"app": o.address}, listen="tls: {certificates: [{cert: %s, key: %s}, {cert: %s, key: %s}]}" % (a + b))
    for ca, name in ((a[0], "a.test"), (b[0], "b.test"), (b[0], "x.wild.test")):
        c = Secure(p.address, context(ca), name)
        assert c.get("/", host=name).status == 200


@pytest.mark.parametrize("park", ["on", "off"])
def test_endpoints_by_tls(stage, park):
    """An origin with TLS behind the proxy, its certificate verified."""
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)

    def script(c):
        try:
            c.sock = server.wrap_socket(c.sock, server_side=True)
        except OSError:     # it does not trust us
            return
        echo(c)
    o = stage.origin(script)
    address = o.address
    other = certificate(stage, "other.test")[0]
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {ca: %s, name: inner.test, park: %s}}" % (address, cert, park),
                     "bad": "{endpoints: ['%s'], tls: {ca: %s, name: inner.test}}" % (address, other),
                     "name": "{endpoints: ['%s'], tls: {ca: %s, name: wrong.test}}" % (address, cert)},
                    routes=["{path: /bad, service: bad}", "{path: /name, service: name}", "{service: app}"])
    c = stage.client(p)
    for i in range(10):
        assert c.get("/%d" % i).text().startswith("GET /%d" % i)
    body = os.urandom(500000)
    assert c.post("/", body).status == 200
    assert o.requests[-1].body == body
    for path in ("/bad", "/name"):
        r = c.get(path)
        assert (r.status, r.error) == (502, "tls_certificate_error")
    p.err.wait("TLS handshake failed: ")
    c.close()
    p.stop()        # else the origin waits for us


def secure_origin(stage, script, version=None):
    """An origin with TLS, whose script has it shaken, and the settings of a service that trusts it."""
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    if version:
        server.minimum_version = server.maximum_version = version

    def shaken(run):
        def script(c):
            c.sock = server.wrap_socket(c.sock, server_side=True, suppress_ragged_eofs=False)
            run(c)
        return script
    o = stage.origin([shaken(s) for s in (script if isinstance(script, list) else [script])])
    return o, "{endpoints: ['%s'], tls: {ca: %s, name: inner.test}}" % (o.address, cert)


def pipe(ctx, server_side=False):
    """An SSL object between two memories, for those who choose what goes in one segment."""
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    return ctx.wrap_bio(i, o, server_side=server_side, server_hostname=None if server_side else "a.test"), i, o


def one_segment_origin(stage, version):
    """An origin that says its answer and close_notify in one segment, and then waits for whoever asked to close."""
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    server.minimum_version = server.maximum_version = version

    def script(c):
        s, i, o = pipe(server, True)

        def turn(what):
            while True:
                try:
                    return what()
                except ssl.SSLWantReadError:
                    if o.pending:
                        c.sock.sendall(o.read())
                    data = c.sock.recv(65536)
                    if not data:
                        raise EOFError
                    i.write(data)
        turn(s.do_handshake)
        if o.pending:
            c.sock.sendall(o.read())
        n = 0
        while True:
            got = b""
            while b"\r\n\r\n" not in got:
                got += turn(lambda: s.read(65536))
            n += 1
            last, ended = b"/last" in got, b"/ended" in got
            s.write(b"HTTP/1.1 200 OK\r\n" + (b"\r\nto the end" if ended else b"Content-Length: 2\r\n\r\nok"))
            if last or ended:
                try:
                    s.unwrap()
                except ssl.SSLWantReadError:
                    pass
            c.sock.sendall(o.read())
            if last or ended:
                while c.sock.recv(65536):
                    pass
                return
    o = stage.origin(script)
    return o, "{endpoints: ['%s'], tls: {ca: %s, name: inner.test}}" % (o.address, cert)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_end_in_one_segment_with_the_answer(stage, version, before):
    """close_notify, behind data of the same read, is heard though no FIN follows."""
    o, service = one_segment_origin(stage, version)
    c = stage.client(stage.proxy({"app": service}))
    for _ in range(before):
        assert c.get("/more").text() == "ok"
    r = c.get("/ended")
    assert r.status == 200 and r.text() == "to the end"


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_endpoint_that_ended_is_not_used_again(stage, version, before):
    o, service = one_segment_origin(stage, version)
    c = stage.client(stage.proxy({"app": service}))
    for _ in range(before):
        assert c.get("/more").text() == "ok"
    assert c.get("/last").text() == "ok"
    o.wait_idle()           # nobody keeps it
    assert c.post("/more", b"once").text() == "ok"
    assert o.connections == 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("how", ["says so", "early"])
def test_an_endpoint_that_will_close_is_not_used_again(stage, version, before, how):
    """It says so, or answered before it had the request; and closes much later."""
    def script(c):
        for _ in range(before):
            c.request()
            c.reply("ok")
        c.head()
        c.reply("last", *(["Connection: close"] if how == "says so" else []))
        c.hold()
    o, service = secure_origin(stage, [script, echo], version)
    p = stage.proxy({"app": service})
    c = stage.client(p)
    for _ in range(before):
        assert c.get("/more").text() == "ok"
    if how == "early":
        c.send(b"POST /last HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc")
        assert c.answer().text() == "last"
        c = stage.client(p)
    else:
        assert c.get("/last").text() == "last"
    assert c.post("/more", b"once").text() == "POST /more 4"
    assert o.connections == 2
    c.close()
    p.stop()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("together", [True, False])
def test_hands_that_are_shaken_while_a_drain_begins(stage, version, together):
    """The request that they are shaken for has its answer."""
    p, ctx, o = world(stage)
    ctx.minimum_version = ctx.maximum_version = version
    s, i, out = pipe(ctx)
    raw = stage.client(p)

    def turn(what):
        while True:
            try:
                return what()
            except ssl.SSLWantReadError:
                if out.pending:
                    raw.send(out.read())
                assert raw.more()
                i.write(raw.take(len(raw.buf)))
    with pytest.raises(ssl.SSLWantReadError):
        s.do_handshake()
    raw.send(out.read())
    assert raw.more()
    i.write(raw.take(len(raw.buf)))
    p.signal(signal.SIGTERM)
    p.err.wait("no new connections")
    turn(s.do_handshake)
    if not together:
        raw.send(out.read())
        raw.silent(0.2)
    s.write(b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n")
    raw.send(out.read())
    i.write(raw.take(len(raw.buf)))
    assert turn(lambda: s.read(65536)).startswith(b"HTTP/1.1 200 ")
    raw.close()
    assert p.wait() == 0


@pytest.mark.parametrize("more, sent, scheme", [
    ("", "X-Forwarded-Proto: http", "https"), (", x_forwarded: 'off'", "X-Forwarded-Proto: http", "https"), (", x_forwarded: 'off'", "X-A: b", "https"),
    (", trusted_proxies: [127.0.0.1], x_forwarded: 'off'", "X-Forwarded-Proto: http", "http")])
def test_the_scheme_of_redirects_and_of_questions(stage, more, sent, scheme):
    o = stage.origin(lambda c: [c.reply(status="401 Unauthorized") for r in iter(c.request, None)])
    cert, key = certificate(stage)
    p = stage.proxy(o, listen="tls: {certificates: [{cert: %s, key: %s}]}%s" % (cert, key, more),
                    routes=["{answer: {}, auth: {service: app, sign_in: '/in?u={url}'}}", "{path: /old, redirect: {host: b.test}}"])
    c = Secure(p.address, context(cert))
    assert c.get("/x", sent, host="a.test").get("Location") == "/in?u=%s%%3A%%2F%%2Fa.test%%2Fx" % scheme
    assert o.requests[0].get("X-Original-URL") == scheme + "://a.test/x"
    assert c.get("/old", sent, host="a.test").get("Location") == scheme + "://b.test/old"


@pytest.mark.parametrize("version, park", [(VERSIONS[0], "on"), (VERSIONS[1], "on"), (VERSIONS[1], "off")])
@pytest.mark.parametrize("why", ["close", "extra", "early"])
def test_an_endpoint_whose_exchange_did_not_end_well_is_not_used_again(stage, version, park, why):
    """It says that it closes, says more than was asked for, or answers before it had the request: then nothing may follow."""
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    server.minimum_version = server.maximum_version = version
    behind = []

    def script(c):
        try:
            c.sock = server.wrap_socket(c.sock, server_side=True)
            c.head() if why == "early" else c.request()
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n%s\r\nx" % (b"Connection: close\r\n" if why == "close" else b"")
            c.send(answer + (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny" if why == "extra" else b""))
            behind.append(c.wait_closed())
        except OSError:
            behind.append(b"")
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {name: inner.test, ca: %s, park: %s}}" % (o.address, cert, park)})
    for n in range(1, 4):
        c = stage.client(p)
        if why == "early":
            c.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\nhalf")
            assert c.answer("POST").text() == "x"
        else:
            assert c.get("/").text() == "x"
        c.close()
        o.wait_connections(n)
        o.wait_idle()
    assert len(behind) == 3 and set(behind) <= {b"", b"half"}


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_with_endpoints_outlive_their_connections(stage, version):
    """A pool that is empty has put its sessions away; a change of whom we trust begins anew, once."""
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    server.minimum_version = server.maximum_version = version
    reused = []

    def script(c):
        c.sock = server.wrap_socket(c.sock, server_side=True)
        reused.append(c.sock.session_reused)
        c.request()
        c.reply("x", "Connection: close")
        try:
            while c.sock.recv(100):
                pass
        except OSError:
            pass
    o = stage.origin(script)
    ca = stage.folder / "trusted.pem"
    shutil.copy(cert, ca)
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {name: inner.test, ca: %s}}" % (o.address, ca)})
    c = stage.client(p)

    def ask(n):
        assert c.get("/").status == 200
        o.wait_connections(n)
        o.wait_idle()
    for n in range(1, 4):
        ask(n)
    other = certificate(stage, "other.test")[0]
    ca.write_text(open(cert).read() + open(other).read())
    p.err.wait("trusted.pem has changed and was read")
    for n in range(4, 7):
        ask(n)
    assert reused == [False, True, True, False, True, True]
