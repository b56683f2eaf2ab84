"""TLS with clients and servers of others: OpenSSL's and GnuTLS's tools, curl, Python, and with --long programs on crypto/tls of
Go, Node and wolfSSL (tests/peers), and Chromium.  With each: TLS 1.2 and 1.3, several requests on a connection, resumption, certificates
of clients, and new keys in the middle of bodies where it has them."""
import base64
import hashlib
import random
import re
import ssl
import subprocess
import time

import pytest

import certs
import peers
from harness import free_port
from peers import Process
from test_tls import Secure, context
from test_tls_records import count

VERSIONS = ["1.2", "1.3"]
PARK = ["", ", park: off"]
FORMS = [("1.2", ""), ("1.3", ""), ("1.3", ", park: off")]


def body_back(c):
    """The script of an origin that answers with what it got."""
    while True:
        r = c.request()
        if r is None:
            return
        c.reply(r.body)


def backwards(c):
    """The script of one that answers with a line of what it got."""
    while True:
        r = c.request()
        if r is None:
            return
        c.reply("%s %s\n" % (r.target, r.text()[::-1]))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peers")
    ca = certs.Authority(folder, "ca")
    return {"ca": ca.cert, "a": ca.issue(folder, "a", ["a.test"]), "client": ca.issue(folder, "client", ["the-client"])}


def listener(stage, store, more="", script=body_back, clients=False, **settings):
    o = stage.origin(script)
    if clients:
        more += ", client_certificates: {ca: %s}" % store["ca"]
    return stage.proxy(o, listen="tls: {certificates: %s%s}" % (store["a"].yaml(), more), **settings)


def service(address, store, more="", client=False):
    if client:
        more += ", cert: %s, key: %s" % (store["client"].cert, store["client"].key)
    return "{endpoints: ['%s'], tls: {ca: %s, name: a.test%s}}" % (address, store["ca"], more)


def need(long):
    if not long:
        pytest.skip("with --long")


def version_of(v):
    return ssl.TLSVersion.TLSv1_2 if v == "1.2" else ssl.TLSVersion.TLSv1_3


# ---- Go, Node, wolfSSL -----------------------------------------------------

@pytest.mark.parametrize("peer", sorted(peers.PEERS))
@pytest.mark.parametrize("version, park", FORMS)
@pytest.mark.parametrize("clients", [False, True])
def test_clients(stage, long, store, peer, version, park, clients):
    need(long)
    p = listener(stage, store, park, clients=clients)
    pair = store["client"]
    order = {"cert": pair.cert, "key": pair.key} if clients else {}
    said = peers.client(peer, port=p.port, ca=store["ca"], version=version, size=300000, rounds=3, requests=4, **order)
    assert said == [{"version": version, "resumed": r} for r in ("false", "true", "true")]
    assert len(p.log(12)) == 12
    assert count(p, "parked") == (3 if (version, park) == ("1.3", "") else 0)


@pytest.mark.parametrize("peer", sorted(peers.PEERS))
@pytest.mark.parametrize("version, park", FORMS)
@pytest.mark.parametrize("clients", [False, True])
def test_servers(stage, long, store, peer, version, park, clients):
    need(long)
    order = {"ca": store["ca"]} if clients else {}
    address = peers.server(stage, peer, cert=store["a"].cert, key=store["a"].key, version=version, **order)
    p = stage.proxy({"app": service(address, store, park, clients)})
    c = stage.client(p)
    for resumed in ("false", "true", "true"):
        for i in range(4):
            body = random.randbytes(300000)
            r = c.post("/close" if i == 3 else "/%d" % i, body)
            assert r.status == 200 and r.body == body
            forgets = peer == "wolfssl" and (version, resumed) == ("1.2", "true")       # whose certificate a session is of
            assert r.get("X-Tls") == "version=%s resumed=%s who=%s" % (version, resumed, "the-client" if clients and not forgets else "-")
    assert count(p, "connects") == 3


@pytest.mark.parametrize("peer", sorted(peers.PEERS))
def test_a_server_that_wants_a_certificate(stage, long, store, peer):
    """In TLS 1.3 it says so behind the handshake."""
    need(long)
    address = peers.server(stage, peer, cert=store["a"].cert, key=store["a"].key, version="1.3", ca=store["ca"])
    p = stage.proxy({"app": service(address, store)})
    r = stage.client(p).post("/", b"x")
    assert r.status == 502 and r.error in ("tls_alert_received", "connection_terminated")
    p.err.wait("TLS alert|handshake failed")


# ---- OpenSSL ---------------------------------------------------------------

class Talk(Process):
    """A tool that sends what it is told, and says what it gets."""

    def __init__(self, stage, *command):
        super().__init__([str(w) for w in command])
        stage.clients.append(self)

    def close(self):
        self.stop()

    def slowly(self, *parts):
        """Each in a read of its own."""
        for p in parts:
            self.say(p)
            time.sleep(0.05)        # there is no sign of its having read


def s_client(stage, p, store, version, *more):
    t = Talk(stage, "openssl", "s_client", "-connect", "127.0.0.1:%d" % p.port, "-servername", "a.test", "-CAfile", store["ca"],
             "-verify_return_error", "-tls" + version.replace(".", "_"), *more)
    return t


REQUEST = b"POST /%d HTTP/1.1\r\nHost: a.test\r\nContent-Length: 12\r\n\r\n"


@pytest.mark.parametrize("park", PARK)
def test_s_client_with_new_keys_in_the_middle_of_bodies(stage, store, park):
    p = listener(stage, store, park, backwards)
    t = s_client(stage, p, store, "1.3")
    t.out.wait("Verify return code: 0|Verification: OK")
    for i in range(2):
        t.slowly(REQUEST % i + b"123", b"k\n", b"456", b"K\n", b"789012")
        t.out.wait("^/%d 210987654321" % i)
    assert len(p.log(2)) == 2 and "KEYUPDATE" in t.out.text()


@pytest.mark.parametrize("version, park", FORMS)
def test_s_client_resumes(stage, store, version, park):
    p = listener(stage, store, park)
    path = str(stage.folder / "session")
    for i in range(2):
        t = s_client(stage, p, store, version, "-ign_eof", *(["-sess_in", path] if i else ["-sess_out", path]))
        t.say(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
        t.process.stdin.flush()
        t.process.wait(20)
        t.out.thread.join(10)
        assert re.search(r"^%s, TLSv%s" % ("Reused" if i else "New", version), t.out.text(), re.M), t.out.text()
        assert "HTTP/1.1 200 OK" in t.out.text()


def s_server(stage, store, version, *more):
    port = free_port()
    t = Process([str(w) for w in ("openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-cert", store["a"].cert, "-key",
                                  store["a"].key, "-tls" + version.replace(".", "_"), *more)])
    stage.origins.append(t)
    t.out.wait("^ACCEPT")
    return t, "127.0.0.1:%d" % port


@pytest.mark.parametrize("park", PARK)
@pytest.mark.parametrize("tickets", [0, 1, 2, 4])
def test_s_server_with_new_keys_in_the_middle_of_bodies(stage, store, park, tickets):
    t, address = s_server(stage, store, "1.3", "-num_tickets", tickets)
    p = stage.proxy({"app": service(address, store, park)})
    c = stage.client(p)
    for i in range(2):
        c.request("GET", "/%d" % i)
        t.out.wait("^GET /%d " % i)
        for part in (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123", b"k\n", b"456", b"K\n", b"789"):
            t.say(part)
            time.sleep(0.05)        # there is no sign of its having read
        assert c.answer().text() == "123456789"
    assert count(p, "connects") == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("clients", [False, True])
def test_s_server_resumes(stage, store, version, clients):
    """-www answers each request with what it knows of the connection, and ends it."""
    more = ["-CAfile", store["ca"], "-Verify", "2", "-verify_return_error"] if clients else []
    _, address = s_server(stage, store, version, "-www", *more)
    p = stage.proxy({"app": service(address, store, client=clients)})
    c = stage.client(p)
    for i in range(3):
        text = c.get("/").text()
        assert re.search("^%s, TLSv%s" % ("Reused" if i else "New", version), text, re.M), text
        assert ("the-client" in text) == clients or version == "1.3"
    assert count(p, "connects") == 3


# ---- GnuTLS ----------------------------------------------------------------

def priority(version):
    return "NORMAL:-VERS-ALL:+VERS-TLS" + version


@pytest.mark.parametrize("version, park", FORMS)
def test_gnutls_cli(stage, long, store, version, park):
    need(long)
    p = listener(stage, store, park, backwards, clients=True)
    t = Talk(stage, "gnutls-cli", "-p", p.port, "--x509cafile", store["ca"], "--sni-hostname", "a.test", "--verify-hostname", "a.test",
             "--x509certfile", store["client"].cert, "--x509keyfile", store["client"].key, "--inline-commands", "--priority",
             priority(version), "127.0.0.1")
    t.out.wait("Simple Client Mode")
    rekey = [b"^rekey^\n"] if version == "1.3" else []
    t.slowly(REQUEST % 0 + b"123\n", *rekey, b"5678\n", *rekey, b"0\r\n")
    t.out.wait("HTTP/1.1 200 OK")
    assert p.log()[0]["status"] == 200 and p.log()[0]["bytes_in"] == 12
    assert t.out.text().count("Rekey was completed") == len(rekey) * 2
    t.slowly(b"^resume^\n")
    t.out.wait("This is a resumed session")
    t.slowly(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert p.log(2)[1]["status"] == 200


@pytest.mark.parametrize("version, park", FORMS)
@pytest.mark.parametrize("clients", [False, True])
def test_gnutls_serv(stage, long, store, version, park, clients):
    need(long)
    port = free_port()
    more = ["--x509cafile", store["ca"], "--require-client-cert", "--verify-client-cert"] if clients else ["--disable-client-cert"]
    t = Process(["gnutls-serv", "--http", "-p", str(port), "--x509certfile", store["a"].cert, "--x509keyfile", store["a"].key,
                 "--priority", priority(version), *more])
    stage.origins.append(t)
    t.out.wait("IPv4 127.0.0.1|IPv4 0.0.0.0")
    p = stage.proxy({"app": service("127.0.0.1:%d" % port, store, park, clients)})
    c = stage.client(p)
    for i in range(3):
        r = c.get("/")
        assert r.status == 200 and "TLS" + version in r.text()
    c.close()
    assert count(p, "connects") >= 1


# ---- curl, Python ----------------------------------------------------------

def curl(p, store, version, *more):
    v = ["--tlsv1.2", "--tls-max", "1.2"] if version == "1.2" else ["--tlsv1.3"]
    r = subprocess.run(["curl", "-sS", "-v", "--http1.1", "--cacert", store["ca"], "--resolve", "a.test:%d:127.0.0.1" % p.port, *v, *more],
                       capture_output=True, timeout=60, check=False)
    text = r.stderr.decode("latin-1")
    assert r.returncode == 0, text
    return r.stdout, text


@pytest.mark.parametrize("version, park", FORMS)
def test_curl(stage, store, version, park):
    p = listener(stage, store, park, clients=True)
    url = "https://a.test:%d/" % p.port
    data = stage.folder / "body"
    data.write_bytes(random.randbytes(2 << 20))
    out, said = curl(p, store, version, "--cert", store["client"].cert, "--key", store["client"].key, "--data-binary", "@%s" % data, url, url)
    assert hashlib.sha256(out).digest() == hashlib.sha256(data.read_bytes() * 2).digest()
    assert "SSL connection using TLSv%s" % version in said and "Re-using existing connection" in said
    out, said = curl(p, store, version, "--cert", store["client"].cert, "--key", store["client"].key, "-H", "Connection: close", url, url)
    # with TLS 1.2 it wants session ids, which we have none of
    assert version == "1.2" or "SSL re-using session ID" in said or "SSL reusing session" in said
    assert count(p, "handshakes") == 3


@pytest.mark.parametrize("version, park", FORMS)
def test_python_with_a_certificate(stage, store, version, park):
    p = listener(stage, store, park, clients=True)
    ctx = context(store["ca"], version_of(version))
    ctx.load_cert_chain(store["client"].cert, store["client"].key)
    session = None
    for i in range(3):
        c = Secure(p.address, ctx, session=session)
        assert c.sock.session_reused == (i > 0)
        for _ in range(3):
            body = random.randbytes(50000)
            assert c.post("/", body, host="a.test").body == body
        session = c.sock.session
        c.close()


# ---- Chromium --------------------------------------------------------------

PAGE = """<!doctype html><title>t</title><pre id=said>nothing</pre><script>
(async () => {
	let all = 0;
	for (let i = 0; i < 20; i++) all += (await (await fetch("/n/" + i)).text()).length;
	const body = new Uint8Array(3000000);
	for (let i = 0; i < body.length; i++) body[i] = i * 7 % 251;
	const back = new Uint8Array(await (await fetch("/echo", { method: "POST", body })).arrayBuffer());
	const same = back.length === body.length && back.every((b, i) => b === body[i]);
	const many = await Promise.all([...Array(12).keys()].map(i => fetch("/m/" + i).then(r => r.text())));
	document.getElementById("said").textContent = `all=${all} same=${same} many=${many.length}`;
})();
</script>"""


@pytest.mark.parametrize("version, park", FORMS)
def test_chromium(stage, long, store, version, park):
    need(long)

    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            if r.target == "/":
                c.reply(PAGE, "Content-Type: text/html")
            else:
                c.reply(r.body or "x" * 1000)
    p = listener(stage, store, park + (", max_version: '1.2'" if version == "1.2" else ", min_version: '1.3'"), script)
    pem = certs.openssl("x509", "-in", store["a"].cert, "-pubkey", "-noout")
    der = ssl.PEM_cert_to_DER_cert(pem.replace("PUBLIC KEY", "CERTIFICATE"))
    spki = base64.b64encode(hashlib.sha256(der).digest()).decode()
    r = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                        "--disable-background-networking", "--disable-component-update", "--user-data-dir=%s" % (stage.folder / "chromium"),
                        "--ignore-certificate-errors-spki-list=" + spki, "--host-resolver-rules=MAP a.test 127.0.0.1",
                        "--virtual-time-budget=60000", "--dump-dom", "https://a.test:%d/" % p.port],
                       capture_output=True, text=True, timeout=120, check=False)
    assert "all=20000 same=true many=12" in r.stdout, r.stdout[-2000:] + r.stderr[-2000:]
    p.stop()
    requests, shaken = (int(re.search(r"\b%s=(\d+)" % k, p.err.text())[1]) for k in ("requests", "handshakes"))
    assert requests >= 34 and shaken <= 8


# ---- testssl.sh ------------------------------------------------------------

@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_testssl_finds_nothing(stage, long, key):
    need(long)
    folder = stage.folder
    ca = certs.Authority(folder, "the-ca")
    pair = ca.issue(folder, "pair", ["localhost"], key=key)
    p = stage.proxy(stage.origin(), listen="tls: {certificates: %s}" % pair.yaml(), timeouts={"head": "10s", "idle": "20s"},
                    routes=["{service: app, hsts: on}"], log="level: info, access: 'off'")
    found = str(folder / "found.csv")
    subprocess.run(["testssl", "--quiet", "--color", "0", "--warnings", "batch", "--add-ca", ca.cert, "--ip", "127.0.0.1", "--csvfile",
                    found, "localhost:%d" % p.port], capture_output=True, timeout=900, check=False)
    with open(found, encoding="utf-8") as f:
        lines = [line.strip().split('","') for line in f]
    # of the certificate, the DNS zone, the application behind the proxy, and the machine that looks: not ours
    others = {"cert_serialNumberLen", "cert_revocation", "DNS_CAArecord", "security_headers", "engine_problem"}
    bad = [line for line in lines if line[3] in ("LOW", "MEDIUM", "HIGH", "CRITICAL", "WARN", "FATAL") and line[0].strip('"') not in others]
    assert len(lines) > 100
    assert not bad
