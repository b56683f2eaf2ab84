"""The files of TLS: what check says of them, what a start makes of them, and how changes of them are taken in."""
import os
import re
import shutil

import pytest

import certs
from harness import Thimble, wait_until
from test_cli import finished


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """An authority and a few certificates, which tests copy."""
    folder = tmp_path_factory.mktemp("certs")
    ca = certs.Authority(folder, "ca")
    ca.issue(folder, "a", ["a.test", "*.b.test"])
    ca.issue(folder, "a-rsa", ["a.test"], key="rsa")
    ca.issue(folder, "new", ["a.test", "new.test"])
    ca.issue(folder, "soon", ["a.test"], days=10.5)
    ca.issue(folder, "over", ["a.test"], begins=-40, days=-10.5)
    ca.issue(folder, "later", ["a.test"], begins=20.5, days=90)
    certs.openssl("pkey", "-in", str(folder / "a.key"), "-aes256", "-passout", "pass:x", "-out", str(folder / "locked.key"))
    (folder / "garbage").write_bytes(bytes(range(256)))
    (folder / "chain.pem").write_text((folder / "ca.pem").read_text() + (folder / "a.pem").read_text())
    (folder / "cut.pem").write_text((folder / "a.pem").read_text()[:300])
    return folder


LISTEN = """listen:
  - address: 127.0.0.1:@PORT@
    tls:
      certificates:
        - cert: %s
          key: %s
routes:
  - host: [a.test, c.b.test]
    answer: {}
"""
SERVICE = """services:
  s:
    endpoints: [%s]
    tls: {%s}
routes:
  - service: s
"""


def check(stage, store, text):
    """(exit code, output, errors without the path) of a check of a file beside the certificates."""
    for name in os.listdir(store):
        if os.path.isfile(store / name):
            shutil.copy(store / name, stage.folder)
    path = stage.file("t.yaml", text.replace("@PORT@", "8443"))
    code, out, err = finished(stage, "check", "-c", path)
    return code, out, err.replace(str(stage.folder) + "/", "")


def test_good_files_are_not_talked_about(stage, store):
    code, out, err = check(stage, store, LISTEN % ("a.pem", "a.key"))
    assert (code, err) == (0, "") and ": good: 1 listener, 1 route, 0 services" in out
    code, out, err = check(stage, store, SERVICE % ("https://127.0.0.1", "name: a.test, ca: ca.pem, cert: a.pem, key: a.key"))
    assert (code, err) == (0, "")


@pytest.mark.parametrize("text,says", [
    (LISTEN % ("none.pem", "a.key"), ["5:17: `none.pem` cannot be read: No such file or directory"]),
    (LISTEN % ("none.pem", "none.key"), ["5:17: `none.pem` cannot be read: No such file or directory",
                                         "6:16: `none.key` cannot be read: No such file or directory"]),
    (LISTEN % ("garbage", "a.key"), ["5:17: `garbage` holds no certificate (-----BEGIN CERTIFICATE-----)"]),
    (LISTEN % ("cut.pem", "a.key"), ["5:17: `cut.pem` certificate 1 of it cannot be read: "]),
    (LISTEN % ("a.pem", "garbage"), ["6:16: `garbage` holds no private key (-----BEGIN PRIVATE KEY-----) (`a.pem`)"]),
    (LISTEN % ("a.pem", "locked.key"), ["6:16: `locked.key` is encrypted: it must be without a passphrase (`a.pem`)"]),
    (LISTEN % ("a.pem", "a-rsa.key"), ["6:16: `a-rsa.key` is not the key of the certificate (`a.pem`)"]),
    (LISTEN % ("chain.pem", "a.key"), ["5:17: `chain.pem` has the certificate of the key in place 2: it comes first"]),
    (SERVICE % ("https://127.0.0.1", "name: a.test, ca: garbage"),
     ["4:29: `garbage` holds no certificate (-----BEGIN CERTIFICATE-----)"]),
    (SERVICE % ("https://127.0.0.1", "name: a.test, ca: none, cert: a.pem, key: ca.key"),
     ["4:29: `none` cannot be read: No such file or directory", "4:53: `ca.key` is not the key of the certificate (`a.pem`)"]),
    (SERVICE % ("https://127.0.0.1", "name: a.test, groups: X25519:NOPE"), ["4:33: `groups` names a group that OpenSSL has not"]),
    (SERVICE % ("https://127.0.0.1, 127.0.0.2:443", "name: a.test"), []),
    (SERVICE % ("https://127.0.0.1, http://127.0.0.2", "name: a.test"), ["3:36: `tls` is on, and this endpoint begins with http://"]),
    (SERVICE % ("127.0.0.1:443", ""), ["4:10: the endpoints of `s` are addresses, or go by several names: say whose certificate they have"]),
])
def test_what_cannot_be_used_is_refused_at_its_place(stage, store, text, says):
    code, out, err = check(stage, store, text)
    lines = [line for line in err.splitlines() if line.startswith("t.yaml:")]
    assert (code, bool(out)) == ((2, False) if says else (0, True))
    assert len(lines) == len(says)
    for line, want in zip(lines, says):
        assert line.startswith("t.yaml:" + want)


@pytest.mark.parametrize("pair,says", [
    ("soon", r"5:17: warning: the certificate in `soon.pem` expires in 10 days, on 20\d\d-\d\d-\d\d$"),
    ("over", r"5:17: warning: the certificate in `over.pem` has expired on 20\d\d-\d\d-\d\d$"),
    ("later", r"5:17: warning: the certificate in `later.pem` is not good before 20\d\d-\d\d-\d\d$"),
])
def test_check_warns_of_dates(stage, store, pair, says):
    code, out, err = check(stage, store, LISTEN % (pair + ".pem", pair + ".key"))
    assert code == 0 and ": good: " in out
    lines = err.splitlines()
    assert re.match("t.yaml:" + says, lines[0])
    assert lines[1:] == ["t.yaml:8:5: warning: no certificate of a listener is for the host `c.b.test`"]


def test_check_warns_of_certificates_that_are_for_no_route(stage, store):
    text = LISTEN.replace("a.test, c.b.test", "x.test, b.test, d.c.b.test")
    code, out, err = check(stage, store, text % ("a.pem", "a.key"))
    assert code == 0
    assert err.splitlines() == [
        "t.yaml:5:17: warning: the certificate in `a.pem` is for no host of a route: a.test, *.b.test",
        "t.yaml:8:5: warning: no certificate of a listener is for the host `x.test`",
        "t.yaml:8:5: warning: no certificate of a listener is for the host `b.test`",
        "t.yaml:8:5: warning: no certificate of a listener is for the host `d.c.b.test`",
    ]
    assert "no certificate" not in check(stage, store, text.replace("listen:\n", "listen:\n  - ':1'\n") % ("a.pem", "a.key"))[2]
    for more in (text + "  - answer: {}\n", text.replace("x.test, b.test, d.c.b.test", "'*.b.test'")):
        assert "for no host" not in check(stage, store, more % ("a.pem", "a.key"))[2]


def test_nobody_is_verified_in_silence(stage, store):
    code, out, err = check(stage, store, SERVICE % ("https://127.0.0.1", "insecure_skip_verify: on"))
    assert code == 0
    assert err.splitlines() == ["t.yaml:4:10: warning: the endpoints of `s` are not verified: whoever is in between can read and change everything"]


def test_a_start_with_what_cannot_be_used_is_2(stage, store):
    shutil.copy(store / "a.pem", stage.folder)
    path = stage.file("t.yaml", LISTEN.replace("@PORT@", "0") % ("a.pem", "none.key"))
    code, out, err = finished(stage, "run", "-c", path)
    assert code == 2
    assert "the configuration cannot be used: %s:6:16: `%s/none.key` cannot be read" % (path, stage.folder) in err


def program(stage, text):
    """The program with certificates in its folder, and what it has written so far."""
    p = stage.text(text + "log: {level: info}\n")
    p.err.wait("certificate ")
    return p


def lay(store, pair, folder, name):
    """As most do it: written beside, and renamed."""
    for ending in (".pem", ".key"):
        shutil.copy(store / (pair + ending), folder / ("." + name + ending))
        os.rename(folder / ("." + name + ending), folder / (name + ending))


def test_the_start_tells_when_certificates_expire(stage, store):
    for pair in ("a", "soon", "over"):
        lay(store, pair, stage.folder, pair)
    p = program(stage, LISTEN % ("a.pem", "a.key") + "services: {s: {endpoints: 'https://127.0.0.1', tls: {name: x, cert: soon.pem, key: soon.key}},\n"
                "  t: {endpoints: 'https://127.0.0.1', tls: {name: x, cert: over.pem, key: over.key}}}\n")
    assert re.search(r" info .*/a.pem \(a\.test, \*\.b\.test\) expires in \d+ days, on ", p.err.wait(r"/a\.pem"))
    assert re.search(r" warn .*/soon.pem \(a\.test\) expires in 10 days, on ", p.err.wait(r"/soon\.pem"))
    assert re.search(r" error .*/over.pem \(a\.test\) has expired on ", p.err.wait(r"/over\.pem"))


def in_place(store, pair, folder, name):
    for ending in (".key", ".pem"):
        with open(folder / (name + ending), "wb") as f:
            f.write((store / (pair + ending)).read_bytes())


def test_changes_are_taken_in(stage, store):
    lay(store, "a", stage.folder, "x")
    p = program(stage, LISTEN % ("x.pem", "x.key"))
    lay(store, "new", stage.folder, "x")
    p.err.wait(r"certificate .*/x.pem \(a.test, new.test\)")
    before = len(p.err.lines)
    in_place(store, "a", stage.folder, "x")
    p.err.wait(r"certificate .*/x.pem \(a.test, \*\.b\.test\)", start=before)
    p.stop()
    assert "tls_reloads=2" in p.err.text() and "tls_reloads_refused" not in p.err.text()


def test_a_secret_that_is_swapped(stage, store):
    """As Kubernetes does it: `..data` is a link to a folder, and a new one comes by rename."""
    folder = stage.folder / "secret"
    folder.mkdir()

    def swap(n, pair):
        at = folder / ("..%d" % n)
        at.mkdir()
        shutil.copy(store / (pair + ".pem"), at / "tls.crt")
        shutil.copy(store / (pair + ".key"), at / "tls.key")
        os.symlink("..%d" % n, folder / "..data_tmp")
        os.rename(folder / "..data_tmp", folder / "..data")
        if n > 1:
            shutil.rmtree(folder / ("..%d" % (n - 1)))
    swap(1, "a")
    for name in ("tls.crt", "tls.key"):
        os.symlink("..data/" + name, folder / name)
    p = program(stage, LISTEN % ("secret/tls.crt", "secret/tls.key"))
    for n, pair, names in ((2, "new", "a.test, new.test"), (3, "a", "a.test, *.b.test"), (4, "new", "a.test, new.test")):
        before = len(p.err.lines)
        swap(n, pair)
        p.err.wait(r"certificate .*/tls\.crt \(%s\)" % re.escape(names), start=before)
    p.stop()
    assert "tls_reloads=3" in p.err.text() and "tls_reloads_refused" not in p.err.text()


def test_bad_files_leave_the_old_ones(stage, store):
    lay(store, "a", stage.folder, "x")
    shutil.copy(store / "ca.pem", stage.folder)
    p = program(stage, LISTEN.replace("routes:", "      client_certificates: { ca: ca.pem }\nroutes:") % ("x.pem", "x.key"))
    shutil.copy(store / "a-rsa.key", stage.folder / "x.key")
    line = p.err.wait("is not the key of the certificate")
    assert " error " in line and line.endswith("; what was there before stays in use")
    os.unlink(stage.folder / "x.pem")
    p.err.wait("x.pem` cannot be read: No such file or directory; what was there before stays in use")
    (stage.folder / "ca.pem").write_text("")
    p.err.wait("ca.pem` is empty; what was there before stays in use")
    shutil.copy(store / "ca.pem", stage.folder)
    lay(store, "new", stage.folder, "x")
    p.err.wait(r"certificate .*/x.pem \(a.test, new.test\)")
    p.stop()
    found = re.search(r"tls_reloads=(\d+) tls_reloads_refused=(\d+)", p.err.text())
    assert int(found[1]) >= 1 and int(found[2]) == 3
    assert "PRIVATE KEY-----\n" not in p.err.text()


def test_a_change_drops_no_connection(stage, store):
    lay(store, "a", stage.folder, "x")
    p = program(stage, LISTEN % ("x.pem", "x.key"))
    trust = certs.trusting(certs.Pair(store, "ca"))
    old = certs.shake(stage.client(p), trust, "a.test")
    half = certs.shake(stage.client(p), trust, "a.test")
    assert certs.hosts_of(old) == ["a.test", "*.b.test"]
    assert old.get("/", host="a.test").status == 200
    half.send("GET / HTTP/1.1\r\nHost: ")
    lay(store, "new", stage.folder, "x")
    p.err.wait(r"certificate .*/x.pem \(a.test, new.test\)")
    new = certs.shake(stage.client(p), trust, "a.test")
    assert certs.hosts_of(new) == ["a.test", "new.test"]
    assert new.get("/", host="a.test").status == 200
    half.send("a.test\r\n\r\n")
    assert half.answer().status == 200
    # what it may be asked for is still what its certificate says
    assert old.get("/", host="c.b.test").status == 200
    assert old.get("/", host="a.test").status == 200


def test_endpoints_are_verified_by_what_is_there_now(stage, store):
    lay(store, "a", stage.folder, "x")
    shutil.copy(store / "garbage", stage.folder / "ca.pem")
    other = certs.Authority(stage.folder, "other")
    shutil.copy(other.cert, stage.folder / "ca.pem")
    back = program(stage, LISTEN % ("x.pem", "x.key"))
    front = stage.text("""listen: 127.0.0.1:@PORT@
routes: [{service: s}]
services: {s: {endpoints: ['https://127.0.0.1:%d'], host: a.test, tls: {ca: ca.pem}}}
log: {level: info}
""" % back.port)
    assert stage.client(front).get("/").status == 502
    shutil.copy(store / "ca.pem", stage.folder)
    front.err.wait("ca.pem has changed and was read")
    assert stage.client(front).get("/").status == 200


def test_hsts_is_sent_over_tls_alone(stage, store):
    lay(store, "a", stage.folder, "a")
    o = stage.origin(lambda c: (c.request(), c.reply("x", "Strict-Transport-Security: max-age=1")))
    p = program(stage, LISTEN.replace("listen:", "listen:\n  - 'unix:%s'" % (stage.folder / "s")) % ("a.pem", "a.key") + """    hsts: {max_age: 1h, include_subdomains: on}
  - path: /on
    service: o
    hsts: {max_age: 400d, include_subdomains: on, preload: on}
  - path: /off
    service: o
    hsts: off
  - path: /to
    redirect: {to: 'https://a.test/'}
defaults: {hsts: on}
services: {o: '%s'}
""" % o.address)
    rows = [("a.test", "/", "max-age=3600; includeSubDomains"), ("b.test", "/to", "max-age=31536000"),
            ("b.test", "/on", "max-age=34560000; includeSubDomains; preload"), ("b.test", "/off", "max-age=1")]
    for host, path, want in rows:
        c = certs.shake(stage.client(p), certs.trusting(certs.Pair(store, "ca")), "a.test")
        a = c.get(path, host="a.test" if host == "a.test" else "x.b.test")
        assert a.all("Strict-Transport-Security") == [want]
        plain = stage.client(str(stage.folder / "s")).get(path, host=host)
        assert plain.all("Strict-Transport-Security") == (["max-age=1"] if path in ("/on", "/off") else [])


def test_to_an_https_address_from_the_command_line(stage, store):
    """What the system trusts is what OpenSSL is told that it trusts."""
    ca = certs.Pair(store, "ca")
    authority = certs.Authority(stage.folder, "own")
    pair = authority.issue(stage.folder, "l", ["localhost"])
    back = program(stage, LISTEN.replace("[a.test, c.b.test]", "localhost") % (pair.cert, pair.key))
    for trusted, status in ((authority.cert, 200), (ca.cert, 502)):
        p = stage.start(["run", "--to", "https://localhost:%d" % back.port, "--listen", "127.0.0.1:0"], env={"SSL_CERT_FILE": trusted})
        port = int(re.search(r"listening on 127.0.0.1:(\d+)", p.err.text())[1])
        assert stage.client(("127.0.0.1", port)).get("/", host="localhost").status == status
    code, out, err = finished(stage, "run", "--to", "https://127.0.0.1:%d" % back.port)
    assert code == 2 and "say whose certificate they have" in err
