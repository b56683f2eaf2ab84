"""Who a client of TLS is: what endpoints and the access log are told of its certificate, what they are told by others, and what
names that were made to be misread become."""
import hashlib
import os
import re
import signal
import ssl
import time

import pytest

import certs
from harness import Client, wait_until
from test_cli import finished

FIELD = "X-Forwarded-Client-Cert"
LAST_WORD = pytest.mark.true_edges("an alert is the last that is said, and nobody tries again when there is no room for it")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
WAYS = [(VERSIONS[0], ""), (VERSIONS[1], ""), (VERSIONS[1], ", park: off")]


def der(tag, *parts):
    data = b"".join(parts)
    n = len(data)
    size = bytes([n]) if n < 128 else bytes([0x80 + (n.bit_length() + 7) // 8]) + n.to_bytes((n.bit_length() + 7) // 8, "big")
    return bytes([tag]) + size + data


def signed(folder, ca, name, subject="/CN=x", names=(), days="30"):
    """A Pair with any bytes: `names` are (tag, bytes), 0x86 for URIs, 0x82 for DNS names, 0x81 for addresses of mail."""
    pair = certs.Pair(folder, name)
    san = der(0x30, *[der(tag, value) for tag, value in names])
    request = str(folder / (name + ".csr"))
    config = folder / (name + ".cnf")
    config.write_text("[req]\ndistinguished_name = d\n[d]\n[x]\n" + ("subjectAltName = DER:%s\n" % san.hex() if names else ""))
    certs.openssl("req", "-new", "-config", str(config), "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-utf8",
                  "-keyout", pair.key, "-out", request, "-subj", subject)
    certs.openssl("x509", "-req", "-in", request, "-CA", ca.cert, "-CAkey", ca.key, "-CAcreateserial", "-out", pair.cert, "-days", days,
                  "-extfile", str(config), "-extensions", "x")
    return pair


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identity")
    s = type("Store", (), {})()
    s.folder, s.ca, s.other = folder, certs.Authority(folder, "ca"), certs.Authority(folder, "other")
    s.server = s.ca.issue(folder, "a", ["a.test", "b.test"])
    s.second = s.ca.issue(folder, "c", ["c.test"])
    s.client = signed(folder, s.ca, "client", "/C=DE/O=Example, Inc./CN=client one", [
        (0x86, b"spiffe://mesh.test/ns/shop/sa/web"), (0x82, b"one.test"), (0x82, b"two.test"), (0x81, b"a@b.test")])
    s.stranger = signed(folder, s.other, "stranger")
    return s


def digest(pair):
    with open(pair.cert) as f:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()


def listen(store, tls="", more="x_forwarded_client_cert: set", mode="optional"):
    return ("%s, tls: {certificates: [{cert: %s, key: %s}, {cert: %s, key: %s}], client_certificates: {ca: %s, mode: %s}%s}" % (
        more, store.server.cert, store.server.key, store.second.cert, store.second.key, store.ca.cert, mode, tls)).lstrip(", ")


def context(store, pair=None, version=None):
    c = certs.trusting(store.ca, cert=pair)
    if version:
        c.minimum_version = c.maximum_version = version
    return c


class Secure(Client):
    def __init__(self, p, ctx, name="a.test", session=None):
        super().__init__(p.address)
        self.sock = ctx.wrap_socket(self.sock, server_hostname=name, session=session, suppress_ragged_eofs=False)


def told(o):
    return o.requests[-1].all(FIELD)


def last(p, n):
    return p.log(n)[n - 1]


@pytest.mark.parametrize("version, tls", WAYS)
def test_endpoints_and_the_log_are_told_who_a_client_is(stage, store, version, tls):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store, tls))
    ctx = context(store, store.client, version)
    want = ('Hash=%s;Subject="CN=client one,O=Example\\2C Inc.,C=DE";URI=spiffe://mesh.test/ns/shop/sa/web;DNS=one.test;DNS=two.test'
            % digest(store.client))
    session = None
    for n in range(1, 4):
        c = Secure(p, ctx, session=session)
        assert c.sock.session_reused == (n > 1)
        assert c.get("/", host="a.test").status == 200
        assert told(o) == [want]
        line = last(p, n)
        assert line["tls"] == ("1.2" if version == VERSIONS[0] else "1.3") and line["tls_resumed"] == (n > 1)
        assert line["tls_cipher"].startswith("TLS_") and line["tls_name"] == "a.test"
        assert line["tls_client"] == "CN=client one,O=Example\\2C Inc.,C=DE"
        assert line["tls_client_id"] == "spiffe://mesh.test/ns/shop/sa/web"
        session = c.sock.session
        c.close()
    c = Secure(p, context(store, None, version))
    assert c.get("/", FIELD + ": Hash=0;URI=spiffe://mesh.test/admin", host="a.test").status == 200
    assert told(o) == []
    line = last(p, 4)
    assert line["tls_client"] is None and line["tls_client_id"] is None and not line["tls_resumed"]


def test_the_log_of_text(stage, store):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store), log="access: stdout")
    Secure(p, context(store, store.client, VERSIONS[1])).get("/", host="a.test")
    Secure(p, context(store), "c.test").get("/", host="c.test")
    p.out.wait_count(2)
    first, second = p.out.text().splitlines()
    assert ' tls=1.3 tls_cipher="TLS_AES_' in first
    assert (' tls_name="a.test" tls_resumed=no tls_client="CN=client one,O=Example\\x5c2C Inc.,C=DE" '
            'tls_client_id="spiffe://mesh.test/ns/shop/sa/web" flags=-') in first
    assert ' tls_name="c.test" tls_resumed=no tls_client=- tls_client_id=- flags=r' in second


def test_a_plain_line_has_nothing_of_tls(stage):
    o = stage.origin()
    p = stage.proxy({"app": o.address})
    stage.client(p).get("/")
    assert not [k for k in p.log(1)[0] if k.startswith("tls")]


@pytest.mark.parametrize("more, trusted, kept", [
    ("", False, False), ("trusted_proxies: 127.0.0.1", True, False),
    ("x_forwarded_client_cert: pass, trusted_proxies: 127.0.0.1", True, True),
    ("x_forwarded_client_cert: pass, trusted_proxies: 127.9.9.9", False, False),
    ("underscores: allow", False, False),
    ("x_forwarded_client_cert: pass, trusted_proxies: 127.0.0.1, underscores: allow", True, True)])
def test_what_a_client_says_of_certificates_is_dropped(stage, more, trusted, kept):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=more)
    c = stage.client(p)
    assert c.get("/", "x-forwarded-Client-cert: By=x;Hash=1", FIELD + ": Hash=2", "X_Forwarded_Client_Cert: Hash=3",
                 "X-Forwarded_Client-Cert: Hash=4", "X-Other: 1").status == 200
    r = o.requests[-1]
    assert r.all(FIELD) == (["By=x;Hash=1", "Hash=2"] if kept else [])
    assert not [n for n, _ in r.fields if n.lower().replace("_", "-") == FIELD.lower() and "_" in n]
    assert r.get("X-Other") == "1"


def test_a_connection_field_does_not_name_ours_away(stage, store):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    c = Secure(p, context(store, store.client))
    assert c.get("/", "Connection: " + FIELD, host="a.test").status == 200
    assert len(told(o)) == 1


@pytest.mark.parametrize("is_from, more", [("127.0.0.1", ["Hash=1;URI=a", "Hash=2"]), ("127.9.9.9", [])])
def test_ours_is_behind_those_of_trusted_peers(stage, store, is_from, more):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store, more="x_forwarded_client_cert: append, trusted_proxies: " + is_from))
    c = Secure(p, context(store, store.client))
    assert c.get("/", *[FIELD + ": " + v for v in ("Hash=1;URI=a", "Hash=2")], host="a.test").status == 200
    assert len(told(o)) == 1
    assert told(o)[0].startswith(", ".join(more + ["Hash=" + digest(store.client)]))
    c = Secure(p, context(store))
    c.get("/", FIELD + ": Hash=1", host="a.test")
    assert told(o) == (["Hash=1"] if more else [])


def test_set_takes_nothing_of_trusted_peers(stage, store):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store, more="x_forwarded_client_cert: set, trusted_proxies: 127.0.0.1"))
    Secure(p, context(store)).get("/", FIELD + ": Hash=1", host="a.test")
    assert told(o) == []
    Secure(p, context(store, store.client)).get("/", FIELD + ": Hash=1", host="a.test")
    assert told(o)[0].startswith("Hash=" + digest(store.client))


def parse(field):
    """As a careless reader does: quotes end at a quote without a backslash before it."""
    assert re.fullmatch(r'[\x20-\x7e]*', field)
    out = []
    for key, quoted, bare in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^;,]*))(?:;|$)', field):
        out.append((key, quoted or bare))
    assert ";".join('%s="%s"' % (k, v) if k == "Subject" else "%s=%s" % (k, v) for k, v in out) == field
    return out


HOSTILE = [
    # CN, names, what the subject and the names become
    ('x",URI=spiffe://mesh.test/admin;Hash="', [], 'CN=x\\22\\2CURI\\3Dspiffe://mesh.test/admin\\3BHash\\3D\\22', []),
    ("back\\\\", [], "CN=back\\5C", []),
    ("line\r\nX-Admin: 1", [], "CN=line\\0D\\0AX-Admin: 1", []),
    (" \u00fc\u4e2d ", [], "CN=\\20\\C3\\BC\\E4\\B8\\AD\\20", []),
    ("x", [(0x86, b"spiffe://a/b;Hash=0,URI=spiffe://c/d")], "CN=x", [("URI", "spiffe://a/b%3BHash=0%2CURI=spiffe://c/d")]),
    ("x", [(0x86, b"spiffe://a/b\0.c"), (0x86, b"a b"), (0x86, b'a"b'), (0x86, b"a\r\nX: y"), (0x86, b"\xff\xfe"), (0x86, b""), (0x86, b"a\\b"),
           (0x86, b"urn:good")], "CN=x", [("URI", "urn:good")]),
    ("x", [(0x82, b"good.test\0.evil.test"), (0x82, b"a;DNS=b"), (0x82, b"a b"), (0x82, b"*.ok.test"), (0x82, b"\xc3\xbc.test")], "CN=x",
     [("DNS", "*.ok.test")]),
    ("x", [(0x82, b"first.test"), (0x86, b"spiffe://one.test/a"), (0x86, b"spiffe://two.test/b")], "CN=x",
     [("URI", "spiffe://one.test/a"), ("URI", "spiffe://two.test/b"), ("DNS", "first.test")]),
]


@pytest.mark.parametrize("i", range(len(HOSTILE)))
def test_names_that_were_made_to_be_misread(stage, store, i):
    cn, names, subject, want = HOSTILE[i]
    pair = signed(stage.folder, store.ca, "hostile", "/CN=" + cn.replace("/", "\\/"), names)
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store, mode="require"))
    c = Secure(p, context(store, pair))
    assert c.get("/", host="a.test").status == 200
    assert parse(told(o)[0]) == [("Hash", digest(pair)), ("Subject", subject)] + want
    assert o.requests[-1].get("X-Admin") is None
    line = p.log(1)[0]
    assert line["tls_client"] == subject
    assert line["tls_client_id"] is None    # two URIs, or none that is one


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate_full_of_names_is_bounded(stage, store, version):
    """16 KB of names, and a subject too long to be told.  It gets no ticket, which would not fit a ClientHello."""
    names = [(0x82, b"n%03d.%s.test" % (i, b"x" * 40)) for i in range(300)] + [(0x86, b"spiffe://mesh.test/" + b"y" * 1500)]
    pair = signed(stage.folder, store.ca, "many", "/OU=" + "o" * 60 + "".join("/OU=%s%d" % ("p" * 55, i) for i in range(10)), names)
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    ctx = context(store, pair, version)
    session = None
    for n in range(2):
        c = Secure(p, ctx, session=session)
        assert not c.sock.session_reused
        assert c.get("/", host="a.test").status == 200
        session = c.sock.session
        field = told(o)[0]
        assert 3900 < len(field) <= 4096
        got = parse(field)
        assert got[:3] == [("Hash", digest(pair)), ("Subject", ""), ("URI", names[-1][1].decode())]
        assert [v for _, v in got[3:]] == [v.decode() for _, v in names[:len(got) - 3]]
        line = last(p, n + 1)
        assert line["tls_client"] is None and line["cut"] and line["tls_client_id"].startswith("spiffe://mesh.test/yyy")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_large_certificate_is_resumed_as_long_as_its_ticket_fits(stage, store, version):
    pair = signed(stage.folder, store.ca, "large", "/CN=x", [(0x82, b"n%03d.%s.test" % (i, b"x" * 40)) for i in range(145)])
    assert 7500 < len(ssl.PEM_cert_to_DER_cert(open(pair.cert).read())) <= 8192
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    ctx = context(store, pair, version)
    session = shaken(p, ctx, "a.test", None)[1]
    before = told(o)
    assert shaken(p, ctx, "a.test", session)[0] is True
    assert told(o) == before


@pytest.mark.parametrize("id, good", [
    ("spiffe://a", True), ("spiffe://a/b", True), ("spiffe://a_b-c.d/B/c.d", True), ("spiffe://a/", False), ("spiffe://A/b", False),
    ("spiffe:///b", False), ("spiffe://a//b", False), ("spiffe://a/./b", False), ("spiffe://a/..", False), ("spiffe://a/...", True),
    ("spiffe://a:1/b", False), ("spiffe://u@a/b", False), ("spiffe://a/b?c", False), ("spiffe://a/b#c", False), ("spiffe://a/%41", False),
    ("https://a/b", False), ("SPIFFE://a/b", False)])
def test_what_is_a_spiffe_id(stage, store, id, good):
    pair = signed(stage.folder, store.ca, "id", "/CN=x", [(0x86, id.encode())])
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    Secure(p, context(store, pair)).get("/", host="a.test")
    assert p.log(1)[0]["tls_client_id"] == (id if good else None)
    assert told(o)[0].endswith(";URI=" + id)


def shaken(p, ctx, name, session, host=None):
    """Whether the session was resumed, and it all went well."""
    try:
        c = Secure(p, ctx, name, session)
        assert c.get("/", host=host or name).status == 200
        return c.sock.session_reused, c.sock.session
    except (ssl.SSLError, ConnectionError, EOFError):
        return None, None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_for_one_name_and_one_authority(stage, store, version):
    """Shared keys of tickets, so that the old ones can be read: what they are bound to is all that speaks against them."""
    key = stage.folder / "tickets"
    key.write_bytes(os.urandom(64))
    shared = ", tickets: {key_file: %s}" % key
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store, shared))
    same = stage.proxy({"app": o.address}, listen=listen(store, shared))
    strict = stage.proxy({"app": o.address}, listen=listen(store, shared, mode="require"))
    both = store.folder / "both.pem"
    both.write_text(open(store.ca.cert).read() + open(store.other.cert).read())
    wider = stage.proxy({"app": o.address}, listen=listen(store, shared).replace(store.ca.cert, str(both)))
    ctx = context(store, store.client, version)
    ctx.check_hostname = False
    session = shaken(p, ctx, "a.test", None)[1]
    assert shaken(same, ctx, "a.test", session)[0] is True
    for where, name in ((p, "b.test"), (p, "c.test"), (strict, "a.test"), (wider, "a.test")):
        session = shaken(p, ctx, "a.test", None)[1]
        assert shaken(where, ctx, name, session)[0] is not True
    # somebody who has not shown one does not get in where one is needed by a session
    ctx = context(store, None, version)
    session = shaken(p, ctx, "a.test", None)[1]
    assert shaken(strict, ctx, "a.test", session)[0] is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_ends_with_the_certificate(stage, store, version):
    pair = store.ca.issue(stage.folder, "short", ["short.test"], days=3 / 86400)
    end = time.time() + 3
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    ctx = context(store, pair, version)
    resumed, session = shaken(p, ctx, "a.test", None)
    assert resumed is False and time.time() < end
    wait_until(lambda: time.time() > end + 1, "the certificate is over")
    assert shaken(p, ctx, "a.test", session)[0] is None


@LAST_WORD
def test_who_is_revoked_is_told_so_and_new_lists_count(stage, store):
    ca = certs.Authority(stage.folder, "mine")
    pairs = [ca.issue(stage.folder, n, [n + ".test"]) for n in ("good", "bad")]
    ca.revoke(pairs[1])
    crl = ca.crl(stage.folder / "crl.pem")
    o = stage.origin()
    text = listen(store).replace(store.ca.cert, ca.cert).replace("mode: optional", "crl: %s" % crl)
    p = stage.proxy({"app": o.address}, listen=text)
    for version in VERSIONS:
        contexts = [context(store, pair, version) for pair in pairs]
        assert shaken(p, contexts[0], "a.test", None)[0] is False
        with pytest.raises(ssl.SSLError, match="(?i)revoked"):
            Secure(p, contexts[1]).get("/", host="a.test")
    sessions = [shaken(p, contexts[0], "a.test", None)[1] for _ in range(2)]
    assert shaken(p, contexts[0], "a.test", sessions[0])[0] is True
    ca.revoke(pairs[0])
    ca.crl(stage.folder / "new.pem")
    os.rename(stage.folder / "new.pem", crl)
    p.err.wait("crl.pem has changed and was read")
    with pytest.raises(ssl.SSLError, match="(?i)revoked"):
        Secure(p, contexts[0], session=sessions[1]).get("/", host="a.test")


@LAST_WORD
def test_others_are_refused(stage, store):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen=listen(store))
    with pytest.raises(ssl.SSLError, match="(?i)unknown.ca"):
        Secure(p, context(store, store.stranger)).get("/", host="a.test")


def test_gates_see_who_it_is(stage, store):
    """The service that is asked whether a request may pass is told what endpoints are."""
    o, gate = stage.origin(), stage.origin()
    p = stage.proxy({"app": o.address, "gate": gate.address}, listen=listen(store),
                    routes=["{service: app, auth: {service: gate, request_headers: [X-None]}}"])
    Secure(p, context(store, store.client)).get("/", FIELD + ": Hash=0", host="a.test")
    assert told(gate) == told(o) and told(o)[0].startswith("Hash=" + digest(store.client))


# --- from http to https ---

def test_a_listener_that_redirects(stage, store):
    o = stage.origin()
    p = stage.text("""listen:
  - {address: '127.0.0.1:@PORT@', redirect: {scheme: https, status: 308}}
  - {address: 'unix:%s', redirect: {scheme: https, port: 8443}}
  - {address: 'unix:%s', tls: {certificates: {cert: %s, key: %s}}}
routes:
  - {host: a.test, path: /api, service: app}
  - {service: app}
services: {app: '%s'}
log: {format: json}
""" % (stage.folder / "p", stage.folder / "s", store.server.cert, store.server.key, o.address))
    c = stage.client(p)
    for target, fields, where in (
            ("/", (), "https://a.test/"), ("/api/x?y=%20z", (), "https://a.test/api/x?y=%20z"), ("//evil/", (), "https://a.test//evil/"),
            ("/.well-known/acme-challenge", (), "https://a.test/.well-known/acme-challenge"),
            ("/.well-known/acme-challenge/../../x", (), "https://a.test/.well-known/acme-challenge/../../x")):
        a = c.ask("GET", target, *fields, host="A.test:8080")
        assert (a.status, a.get("Location")) == (308, where.replace("a.test", "A.test"))
    assert o.requests == []
    assert {line["route"] for line in p.log(5)} == {"redirect"}
    # an authority that looks whether the host is ours gets its answer
    a = c.get("/.well-known/acme-challenge/token", host="a.test")
    assert a.status == 200 and o.requests[-1].target == "/.well-known/acme-challenge/token"
    a = c.post("/x", b"abc", host="a.test")
    assert (a.status, a.get("Location")) == (308, "https://a.test/x")
    a = stage.client(str(stage.folder / "p")).get("/q", host="a.test")
    assert (a.status, a.get("Location")) == (302, "https://a.test:8443/q")
    s = certs.shake(Client(str(stage.folder / "s")), certs.trusting(store.ca), "a.test")
    assert s.get("/api/x", host="a.test").status == 200


@pytest.mark.parametrize("is_from, proto, status", [
    ("127.0.0.1", "https", 200), ("127.0.0.1", "http", 302), ("127.9.9.9", "https", 302)])
def test_who_came_by_https_to_a_trusted_proxy_is_not_sent_round_for_ever(stage, is_from, proto, status):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, listen="redirect: {scheme: https}, trusted_proxies: " + is_from)
    a = stage.client(p).get("/x", "X-Forwarded-Proto: " + proto, host="a.test")
    assert a.status == status and a.get("Location") == (None if status == 200 else "https://a.test/x")


def test_a_redirect_needs_no_routes(stage):
    p = stage.text("""listen:
  - {address: '127.0.0.1:@PORT@', redirect: {scheme: https}}
  - {address: 'unix:%s', sni: {a.test: app}}
services: {app: 127.0.0.1:9}
""" % (stage.folder / "s"))
    c = stage.client(p)
    assert c.get("/", host="a.test").get("Location") == "https://a.test/"
    assert c.get("/.well-known/acme-challenge/token", host="a.test").status == 404


def test_a_bad_host_is_no_place_to_go(stage):
    p = stage.proxy({"app": "127.0.0.1:9"}, listen="redirect: {scheme: https}")
    for target in ("/a\\b", "/%0d%0aX: y"):
        a = stage.client(p).ask("GET", target, host="a.test")
        assert a.status in (302, 400) and a.get("X") is None
    c = stage.client(p)
    c.send(b"GET / HTTP/1.0\r\n\r\n")
    assert c.answer().status == 400


# --- HSTS of our own errors ---

def test_our_own_errors_over_tls_are_strict(stage, store):
    p = stage.text("""listen:
  - {address: '127.0.0.1:@PORT@', tls: {certificates: {cert: %s, key: %s}}}
  - 'unix:%s'
routes:
  - {host: a.test, service: none, hsts: {max_age: 1h}, response_headers: {set: {X-Edit: '1'}}}
  - {host: b.test, service: none}
services: {none: []}
""" % (store.server.cert, store.server.key, stage.folder / "s"))
    c = certs.shake(stage.client(p), certs.trusting(store.ca), "a.test")
    a = c.get("/", host="a.test")
    assert a.status == 503 and a.all("Strict-Transport-Security") == ["max-age=3600"] and a.get("X-Edit") is None
    a = c.get("/", host="b.test")
    assert a.status == 503 and a.all("Strict-Transport-Security") == []
    a = stage.client(str(stage.folder / "s")).get("/", host="a.test")
    assert a.status == 503 and a.all("Strict-Transport-Security") == []


def test_what_check_says(stage):
    for text, says in (
            ("x_forwarded_client_cert: set", "no client shows a certificate here: that needs `tls` with `client_certificates`"),
            ("x_forwarded_client_cert: pass", "`pass` needs `trusted_proxies`: those whose field is believed"),
            ("redirect: {status: 301}", "a redirect needs `to`, or one of"),
            ("redirect: {scheme: http}", "leads back to this listener, for ever")):
        path = stage.file("x.yaml", "listen: {address: '127.0.0.1:80', %s}\nroutes: [{answer: {}}]\n" % text)
        code, out, err = finished(stage, "check", "-c", path)
        assert code == 2 and says in err




# --- TLS that ends here, and any protocol within ---

def capitals(c):
    """Sends back in capitals what comes, until the end, which it passes back."""
    while c.more():
        c.send(c.take(len(c.buf)).upper())


def within(stage, o, store, tls="", **more):
    return stage.proxy({"app": o.address}, listen=listen(store, tls, more="service: app"), **more)


@pytest.mark.parametrize("version, tls", WAYS)
def test_any_protocol_within_tls(stage, store, version, tls):
    o = stage.origin(capitals)
    p = within(stage, o, store, tls)
    ctx = context(store, store.client, version)
    ctx.set_alpn_protocols(["postgresql"])
    c = Secure(p, ctx)
    assert c.sock.selected_alpn_protocol() is None
    total = 0
    # in step: a socket of Python's ssl is not for two threads at once
    for word in [b"hello", b"\0\r\n\r\nGET / HTTP/1.1\r\n\r\n"] + [os.urandom(1) * 50000 for _ in range(60)] + [b"bye"]:
        c.send(word)
        assert c.exactly(len(word)) == word.upper()
        total += len(word)
    assert c.sock.unwrap() is not None      # close_notify both ways
    line = p.log(1)[0]
    assert (line["protocol"], line["cause"], line["service"], line["status"]) == ("TCP", None, "app", 0)
    assert line["bytes_in"] == line["bytes_out"] == total
    assert line["tls"] == ("1.2" if version == VERSIONS[0] else "1.3") and line["tls_name"] == "a.test"
    assert line["tls_client_id"] == "spiffe://mesh.test/ns/shop/sa/web"


@pytest.mark.parametrize("version, tls", WAYS)
def test_the_origin_speaks_first_within_tls(stage, store, version, tls):
    def script(c):
        c.send("220 ready\r\n")
        assert c.until(b"\r\n") == b"QUIT"
        c.send(b"x" * 500000 + b"221 bye\r\n")
    p = within(stage, stage.origin(script), store, tls)
    c = Secure(p, context(store, None, version))
    assert c.until(b"\r\n") == b"220 ready"
    c.send("QUIT\r\n")
    assert c.rest() == b"x" * 500000 + b"221 bye\r\n"     # and a close_notify: else this would be an error


@pytest.mark.parametrize("version, tls", WAYS)
def test_a_cut_within_tls_is_a_cut_on_both_sides(stage, store, version, tls):
    ends = []

    def script(c):
        try:
            c.until(b"\r\n")
            c.send("half\r\n")
            ends.append(c.rest())
        except OSError as e:
            ends.append(type(e).__name__)
    o = stage.origin(script)
    p = within(stage, o, store, tls)
    c = Secure(p, context(store, None, version))
    c.send("x\r\n")
    c.until(b"\r\n")
    c.sock.close()     # without a close_notify
    o.wait_idle()
    assert ends == ["ConnectionResetError"]
    assert p.log(1)[0]["cause"] == "client_left"

    def reset(c):
        c.until(b"\r\n")
        c.rst()
    o = stage.origin(reset)
    p = within(stage, o, store, tls)
    c = Secure(p, context(store, None, version))
    c.send("x\r\n")
    with pytest.raises((ssl.SSLError, OSError)):
        c.rest()
    assert p.log(1)[0]["cause"] == "upstream_reset"


def test_nobody_gets_in_without_tls_or_a_certificate(stage, store):
    o = stage.origin(capitals)
    p = stage.proxy({"app": o.address}, listen=listen(store, more="service: app", mode="require"))
    c = stage.client(p)
    assert c.get("/").status == 400
    c = stage.client(p)
    c.send(b"\0\1\2\3 no TLS\r\n")
    c.ended()
    for pair in (None, store.stranger):
        with pytest.raises((ssl.SSLError, EOFError, ConnectionError)):
            c = Secure(p, context(store, pair))
            c.send("x")
            c.exactly(1)
    assert o.connections == 0
    c = Secure(p, context(store, store.client))
    c.send("x")
    assert c.exactly(1) == b"X"


def test_the_endpoint_of_tls_hears_who_it_is(stage, store):
    """A PROXY protocol header before what came out of TLS."""
    o = stage.origin(capitals)
    p = stage.proxy({"app": "{endpoints: ['%s'], proxy_protocol: v1}" % o.address}, listen=listen(store, more="service: app"))
    c = Secure(p, context(store))
    c.send("hello")
    assert re.fullmatch(rb"PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+\r\n", c.until(b"\n") + b"\n")
    assert c.exactly(5) == b"HELLO"


def test_nobody_there_within_tls(stage, store):
    p = stage.proxy({"app": "127.0.0.1:1"}, listen=listen(store, more="service: app"))
    with pytest.raises((ssl.SSLError, EOFError, ConnectionError)):
        c = Secure(p, context(store))
        c.exactly(1)
    line = p.log(1)[0]
    assert line["cause"] == "connect_refused" and line["tls"] == "1.3"


def test_a_drain_waits_for_what_is_within_tls(stage, store):
    o = stage.origin(capitals)
    p = within(stage, o, store)
    c = Secure(p, context(store))
    c.send("a")
    assert c.exactly(1) == b"A"
    p.signal(signal.SIGTERM)
    p.err.wait("no new connections")
    c.send("b")
    assert c.exactly(1) == b"B"
    c.sock.unwrap()
    assert p.wait() == 0
