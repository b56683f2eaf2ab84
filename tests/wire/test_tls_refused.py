"""Handshakes that must fail, with clients and with endpoints: the alert that the RFCs name, a counter, and the reason in the log."""
import os
import re
import ssl
import struct

import pytest

import certs
from harness import config
from test_cli import finished
from test_tls import Secure, context, world
from test_tls_records import count


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Authorities `ca` and `other`, and Pairs of both."""
    folder = tmp_path_factory.mktemp("refused")
    ca, other = certs.Authority(folder, "ca"), certs.Authority(folder, "other")
    s = {"folder": folder, "ca": ca, "other": other, "good": ca.issue(folder, "good", ["a.test"]),
         "expired": ca.issue(folder, "expired", ["a.test"], begins=-20, days=-1),
         "later": ca.issue(folder, "later", ["a.test"], begins=1, days=20),
         "server": ca.issue(folder, "server", ["a.test"], usage="serverAuth"),
         "client": ca.issue(folder, "client", ["a.test"], usage="clientAuth"),
         "stranger": other.issue(folder, "stranger", ["a.test"]), "revoked": ca.issue(folder, "revoked", ["a.test"]),
         "other name": ca.issue(folder, "name", ["b.test"]), "rsa": ca.issue(folder, "rsa", ["a.test"], key="rsa")}
    alone = certs.Pair(folder, "alone")
    certs.openssl("req", "-x509", *certs.KEYS["ec"], "-nodes", "-keyout", alone.key, "-out", alone.cert, "-subj", "/CN=a.test")
    s["alone"] = alone
    ca.revoke(s["revoked"])
    s["crl"] = ca.crl(folder / "crl.pem")
    return s


# ---- a first message that leads nowhere ------------------------------------

def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def hello(version=0x303, versions=(0x304, 0x303), suites=(0x1301, 0xc02b), groups=(29, 23), schemes=(0x403, 0x804), alpn=(), more=b""):
    """A ClientHello in its record; `versions`, `groups` or `schemes` None: without that extension."""
    def extension(kind, data):
        return struct.pack("!H", kind) + vector(2, data)

    def shorts(some):
        return b"".join(struct.pack("!H", n) for n in some)
    e = extension(0, vector(2, b"\0" + vector(2, b"a.test")))
    if versions:
        e += extension(43, vector(1, shorts(versions)))
    if groups:
        e += extension(10, vector(2, shorts(groups))) + extension(11, b"\1\0")
        if versions and 0x304 in versions:
            e += extension(51, vector(2, shorts(groups[:1]) + vector(2, os.urandom(32)))) + extension(45, b"\1\1")
    if schemes:
        e += extension(13, vector(2, shorts(schemes)))
    if alpn:
        e += extension(16, vector(2, b"".join(vector(1, p) for p in alpn)))
    body = struct.pack("!H", version) + os.urandom(32) + b"\0" + vector(2, shorts(suites)) + b"\1\0" + vector(2, e + more)
    return b"\x16\3\1" + vector(2, b"\1" + vector(3, body))


def plain_alert(c):
    """The first record is an alert; its number."""
    head = c.exactly(5)
    assert head[0] == 21 and head[3:] == b"\0\2", head
    level, code = c.exactly(2)
    assert level == 2
    c.ended()
    return code


HELLOS = {
    "ssl3": (hello(0x300, None, (0x002f, 0x000a), None, None), 40),      # it has no protocol_version
    "tls 1.0": (hello(0x301, None, (0xc013, 0x002f)), 70),
    "tls 1.1": (hello(0x302, None, (0xc013, 0x002f)), 70),
    "tls 1.1 by extension": (hello(0x303, (0x302, 0x301), (0xc013, 0x002f)), 70),
    "no version that there is": (hello(0x303, (0x7f1c,)), 70),
    "no cipher of 1.2": (hello(0x303, None, (0xc013, 0xc009)), 40),
    "only ciphers of 1.3 in 1.2": (hello(0x303, None, (0x1301,)), 40),
    "no suite of 1.3": (hello(suites=(0x1304, 0x1305), versions=(0x304,)), 40),
    "no group of 1.3": (hello(groups=(256, 257), versions=(0x304,)), 40),
    "no group of 1.2": (hello(0x303, None, (0xc02b,), (256,)), 40),
    "no groups in 1.3": (hello(groups=None, versions=(0x304,)), 109),
    "no schemes in 1.3": (hello(schemes=None, versions=(0x304,)), 109),
    "no scheme of our key": (hello(schemes=(0x807,), versions=(0x304,)), 40),
    "h2 alone": (hello(alpn=(b"h2",)), 120),
}


@pytest.mark.true_edges("an alert is said at once or not at all")
def test_hellos_without_anything_in_common(stage):
    p, ctx, o = world(stage)
    for name, (message, alert) in HELLOS.items():
        c = stage.client(p)
        c.send(message)
        assert (name, plain_alert(c)) == (name, alert)
        c.close()
    p.err.wait(r"a TLS handshake failed: \w+")
    assert count(p, "handshake_failed") == len(HELLOS)


NO_HELLOS = {
    "an alert": (b"\x15\3\1\0\2\2\x28", "not_tls"),
    "random": (bytes(range(0x80, 0x100)), "not_tls"),
    "ssl2": (b"\x80\x2e\1\0\2\0\x15\0\0\0\x10\1\0\x80\2\0\x80\3\0\x80\4\0\x80\5\0\x80\6\0\x40\7\0\xc0" + bytes(16), "not_tls"),
    "ssh": (b"SSH-2.0-OpenSSH_9.2\r\n", "not_tls"),
    "zeros": (bytes(100), "not_tls"),
    "a ServerHello": (b"\x16\3\3\0\4\2\0\0\0", "bad_hello"),
    "a hello of nothing": (b"\x16\3\1\0\4\1\0\0\0", "bad_hello"),
    "a record of nothing": (b"\x16\3\1\0\0", "bad_hello"),
    "a hello cut by its length": (hello()[:9] + b"\0\0\0" + hello()[12:], "bad_hello"),
    "extensions that overlap": (hello(more=b"\xff\xff\0\xff"), "bad_hello"),
    "data": (b"\x17\3\3\0\3abc", "not_tls"),
}


@pytest.mark.true_edges("an alert is said at once or not at all")
def test_what_is_no_hello(stage):
    p, ctx, o = world(stage)
    seen = {}
    for name, (data, cause) in NO_HELLOS.items():
        c = stage.client(p)
        c.send(data)
        said = c.ended()
        assert (name, said) == (name, b"\x15\3\3\0\2\2\x32" if cause == "bad_hello" else said)
        assert len(said) <= 7
        c.close()
        seen[cause] = seen.get(cause, 0) + 1
    lines = p.log(len(NO_HELLOS))
    assert [line["cause"] for line in lines] == [cause for _, cause in NO_HELLOS.values()]
    p.stop()
    for cause, n in seen.items():
        assert "%s=%d" % (cause, n) in p.err.text()


def test_handshakes_that_are_cut(stage, long):
    """A client that leaves at any byte of its hello, or of what follows."""
    p, ctx, o = world(stage)
    message = hello(suites=(0x1301,))
    for n in range(0, len(message), 1 if long else 17):
        c = stage.client(p)
        c.send(message[:n])
        c.close()
    ctx.minimum_version = ctx.maximum_version = ssl.TLSVersion.TLSv1_3
    for rest in (b"", b"\x14\3\3\0\1\1", b"\x17\3\3\0\x35", b"\x17\3\3\0\x35" + bytes(0x35), b"\x15\3\3\0\2\2\x2a", b"\x16\3\3\0\4\x14\0\0\0"):
        i, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        s = ctx.wrap_bio(i, out, server_hostname="a.test")
        with pytest.raises(ssl.SSLWantReadError):
            s.do_handshake()
        c = stage.client(p)
        c.send(out.read())
        assert c.more()
        c.send(rest)
        c.fin()
        c.ended()
        c.close()
    assert Secure(p.address, ctx).get("/", host="a.test").status == 200
    assert count(p, "handshake_failed") == 6


# ---- certificates of clients -----------------------------------------------

# What a client is told, by OpenSSL's names, and what the log says.
CLIENTS = {
    None: ("CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE", "peer did not return a certificate"),
    "expired": ("CERTIFICATE_EXPIRED", "certificate has expired"),
    "later": ("BAD_CERTIFICATE", "certificate is not yet valid"),
    "server": ("UNSUPPORTED_CERTIFICATE", "unsuitable certificate purpose|invalid purpose"),
    "stranger": ("UNKNOWN_CA", "unable to get local issuer certificate"),
    "alone": ("UNKNOWN_CA", "self.signed certificate"),
    "revoked": ("CERTIFICATE_REVOKED", "certificate revoked"),
}


def says(ctx, p):
    """What the client is told, in its handshake or (TLS 1.3) behind it; None: all is well."""
    try:
        c = Secure(p.address, ctx)
        try:
            assert c.get("/", host="a.test").status == 200
        finally:
            c.close()
    except ssl.SSLError as e:
        return e.reason
    return None


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("mode", ["require", "optional"])
def test_certificates_of_clients(stage, store, version, mode):
    o = stage.origin()
    p = stage.proxy(o, listen="tls: {certificates: %s, client_certificates: {ca: %s, crl: %s, mode: %s}}" % (
        store["good"].yaml(), store["ca"].cert, store["crl"], mode))
    refused = 0
    for name in [*CLIENTS, "good", "client", "rsa"]:
        ctx = context(store["ca"].cert, version)
        if name:
            ctx.load_cert_chain(store[name].cert, store[name].key)
        told = says(ctx, p)
        if name in CLIENTS and (name or mode == "require"):
            assert re.search(r"ALERT_(%s)$" % CLIENTS[name][0], told or "nothing"), (name, told)
            refused += 1
        else:
            assert told is None, (name, told)
    assert len(o.requests) == 10 - refused
    assert count(p, "handshake_failed") == refused


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("name", [n for n in CLIENTS])
def test_the_log_says_why(stage, store, name):
    """Of each by itself, since such lines are limited to one a second."""
    p = stage.proxy(stage.origin(), listen="tls: {certificates: %s, client_certificates: {ca: %s, crl: %s}}" % (
        store["good"].yaml(), store["ca"].cert, store["crl"]))
    ctx = context(store["ca"].cert)
    if name:
        ctx.load_cert_chain(store[name].cert, store[name].key)
    assert says(ctx, p)
    p.err.wait(r"a TLS handshake failed: .*(%s)" % CLIENTS[name][1])


def test_a_session_does_not_carry_a_certificate_over(stage, store):
    """Two listeners, one authority each: a session of the one is none to the other."""
    text = config({}, listen="tls: {certificates: %s, client_certificates: {ca: %s}}" % (store["good"].yaml(), store["ca"].cert),
                  routes=["{answer: {}}"])
    ports = []
    for ca in ("ca", "other"):
        p = stage.text(text.replace(store["ca"].cert + "}", store[ca].cert + "}"))
        ports.append(p)
    ctx = context(store["ca"].cert, ssl.TLSVersion.TLSv1_2)
    ctx.load_cert_chain(store["client"].cert, store["client"].key)
    c = Secure(ports[0].address, ctx)
    assert c.get("/", host="a.test").status == 200
    with pytest.raises(ssl.SSLError):
        Secure(ports[1].address, ctx, session=c.sock.session)


# ---- certificates of endpoints ---------------------------------------------

# What an endpoint shows or does: what it is told, the cause, and what the log says.
ENDPOINTS = {
    "expired": ("CERTIFICATE_EXPIRED", "tls_certificate", "certificate has expired"),
    "later": ("BAD_CERTIFICATE", "tls_certificate", "certificate is not yet valid"),
    "client": ("UNSUPPORTED_CERTIFICATE", "tls_certificate", "unsuitable certificate purpose|invalid purpose"),
    "stranger": ("UNKNOWN_CA", "tls_certificate", "unable to get local issuer certificate"),
    "alone": ("UNKNOWN_CA", "tls_certificate", "self.signed certificate"),
    "revoked": ("CERTIFICATE_REVOKED", "tls_certificate", "certificate revoked"),
    "other name": ("BAD_CERTIFICATE|CERTIFICATE_UNKNOWN", "tls_certificate", "hostname mismatch"),
}


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", sorted(ENDPOINTS))
def test_certificates_of_endpoints(stage, store, name, version):
    alert, cause, why = ENDPOINTS[name]
    told = []

    def script(c):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.minimum_version = ctx.maximum_version = version
        ctx.load_cert_chain(store[name].cert, store[name].key)
        try:
            c.sock = ctx.wrap_socket(c.sock, server_side=True)
        except ssl.SSLError as e:
            told.append(e.reason)
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {ca: %s, crl: %s, name: a.test}}" % (o.address, store["ca"].cert, store["crl"])})
    r = stage.client(p).get("/")
    assert (r.status, r.error) == (502, "tls_certificate_error")
    assert p.log()[0]["cause"] == cause
    o.wait_idle()
    assert len(told) == 1 and re.search(r"ALERT_(%s)$" % alert, told[0])
    p.err.wait(r"endpoint %s: the TLS handshake failed: .*(%s)" % (re.escape(o.address), why))
    assert count(p, cause) == 1


@pytest.mark.parametrize("version, error, why", [
    (ssl.TLSVersion.TLSv1_2, "tls_protocol_error", "the TLS handshake failed: .*alert handshake failure"),
    (ssl.TLSVersion.TLSv1_3, "tls_alert_received", "it ended a connection with a TLS alert: .*certificate.required"),
])
@pytest.mark.parametrize("park", ["on", "off"])
def test_a_certificate_that_is_taken_unseen_is_no_reason(stage, store, version, error, why, park):
    """Nobody looks at what the endpoint shows, and it wants to see one of us."""
    def script(c):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.minimum_version = ctx.maximum_version = version
        ctx.load_cert_chain(store["stranger"].cert, store["stranger"].key)
        ctx.verify_mode = ssl.CERT_REQUIRED
        ctx.load_verify_locations(store["ca"].cert)
        with pytest.raises(ssl.SSLError):
            ctx.wrap_socket(c.sock, server_side=True)
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {insecure_skip_verify: on, park: %s}}" % (o.address, park)})
    r = stage.client(p).get("/")
    assert (r.status, r.error) == (502, error)
    p.err.wait("endpoint %s: %s" % (re.escape(o.address), why))


def alert_of(code):
    def script(c):
        c.more()
        c.send(b"\x15\3\3\0\2\2" + bytes([code]))
        c.wait_closed()
    return script


def says_then(data, wait=True):
    def script(c):
        if wait:
            c.more()
        c.send(data)
        c.fin()
        c.wait_closed()
    return script


SERVERS = {
    "plain http": says_then(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "speaks first": says_then(b"220 mail.test ESMTP\r\n", wait=False),
    "garbage": says_then(bytes(range(256))),
    "nothing": says_then(b""),
    "reset": lambda c: (c.more(), c.rst()),
    "half a record": says_then(b"\x16\3\3\0\x7a\2\0"),
    "handshake_failure": alert_of(40),
    "unrecognized_name": alert_of(112),
    "no such version": says_then(b"\x16\3\1" + vector(2, b"\2" + vector(3, b"\3\1" + bytes(32) + b"\0\xc0\x13\0\0\0"))),
    "no such suite": says_then(b"\x16\3\3" + vector(2, b"\2" + vector(3, b"\3\3" + bytes(32) + b"\0\0\x2f\0\0\0"))),
    "data": says_then(b"\x17\3\3\0\5hello"),
    "a record too long": says_then(b"\x16\3\3\xff\xff" + bytes(100)),
}


def test_endpoints_that_do_not_shake_hands(stage, store):
    pairs = {name: stage.origin(script) for name, script in SERVERS.items()}
    p = stage.proxy({"s%d" % i: "{endpoints: ['%s'], tls: {ca: %s, name: a.test}}" % (o.address, store["ca"].cert)
                     for i, o in enumerate(pairs.values())},
                    routes=["{path: /%d, service: s%d}" % (i, i) for i in range(len(pairs))])
    c = stage.client(p)
    for i, name in enumerate(pairs):
        r = c.get("/%d" % i)
        assert (name, r.status, r.error) == (name, 502, "tls_protocol_error")
    assert {line["cause"] for line in p.log(len(pairs))} == {"tls_failed"}
    p.err.wait(r"the TLS handshake failed: \w+")
    assert count(p, "tls_failed") == len(pairs)


def test_an_endpoint_that_does_not_answer_a_hello(stage, store):
    o = stage.origin(lambda c: c.wait_closed())
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {ca: %s, name: a.test}}" % (o.address, store["ca"].cert)},
                    timeouts={"connect": "300ms"})
    r = stage.client(p).get("/")
    assert (r.status, r.error) == (504, "connection_timeout")


# ---- what check says -------------------------------------------------------

@pytest.mark.parametrize("cert, key", [("good", "server"), ("rsa", "rsa2"), ("good", "rsa")])
def test_a_key_that_is_of_another_certificate(stage, store, cert, key):
    if key == "rsa2":
        certs.openssl("genrsa", "-out", str(store["folder"] / "rsa2.key"), "2048")
    else:
        key = os.path.basename(store[key].key)[:-4]
    path = stage.file("t.yaml", "listen:\n  - address: 127.0.0.1:8443\n    tls:\n      certificates:\n        - cert: %s\n          key: %s\n"
                      "routes:\n  - answer: {}\n" % (store[cert].cert, store["folder"] / (key + ".key")))
    code, out, err = finished(stage, "check", "-c", path)
    assert code == 2 and "t.yaml:6:16: " in err and "is not the key of the certificate" in err
