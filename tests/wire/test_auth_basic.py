"""Basic auth: who gets in, what endpoints and logs see of it, and what anybody may try."""
import base64
import os
import re
import subprocess
import time

import pytest

from harness import BINARY, ROOT, octets, wait_until

USERS = os.path.join(ROOT, "tests/users.htpasswd")      # alice, bob, carol and dörte, each with another form of hash
KNOWN = [("alice", "secret"), ("bob", "correct horse"), ("carol", "open sesame"), ("dörte", "grün:blau")]
SLOW = "slow:$2y$12$DA8DXSJSgtRRHZoWUqM/J.CUdPAr77Da2cF2Kcne/VTNcAkxjmRde\n"     # aaaaaaaa; a quarter of a second


def basic(user, password):
    return "Authorization: Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


def fields(c):
    """An origin that says which fields it got."""
    while True:
        r = c.request()
        if r is None:
            return
        c.reply("".join("%s: %s\n" % f for f in r.fields if f[0].lower() in ("authorization", "x-user")))


def guarded(stage, script=fields, keys="", users=USERS, **settings):
    o = stage.origin(script)
    routes = ["{path: /open, service: app}", "{service: app, basic_auth: {file: '%s'%s}}" % (users, keys)]
    return o, stage.proxy(o, routes=routes, **settings)


def test_the_right_password_gets_in(stage):
    o, p = guarded(stage)
    c = stage.client(p)
    for user, password in KNOWN + KNOWN:        # looked at, then remembered
        a = c.get("/", basic(user, password))
        assert (a.status, a.body) == (200, b""), user
    assert c.get("/open").status == 200
    assert [line["user"] for line in p.log(9)] == [user.encode().decode("latin-1") for user, _ in KNOWN * 2] + [None]


def test_others_do_not(stage):
    o, p = guarded(stage, keys=", realm: 'the \"back\" office'")
    c = stage.client(p)
    for f in ([], ["Authorization: Bearer abc"], [basic("alice", "Secret")], [basic("alice", "")], [basic("alice", "secretx")],
              [basic("Alice", "secret")], [basic("mallory", "secret")], [basic("", "")], [basic("alice", "secret\0")],
              [basic("alice\0", "secret")]):
        a = c.get("/", *f)
        assert a.status == 401, f
        assert a.get("WWW-Authenticate") == r'Basic realm="the \"back\" office", charset="UTF-8"'
    assert c.get("/", basic("alice", "secret")).status == 200     # the connection goes on
    causes = [line["cause"] for line in p.log(11)]
    assert causes == ["basic_required"] * 2 + ["basic_failed"] * 8 + [None]
    assert len(o.requests) == 1
    assert all(line["user"] is None for line in p.log(10))


@pytest.mark.parametrize("value", [
    "Basic", "Basic ", "Basic =", "Basic !!!!", "Basic YWxpY2U6c2VjcmV0=", "Basic YWxpY2U6c2VjcmV", "Basic YWxpY2U",
    "Basic YWxpY2U=", "Basic  YWxpY2U6 c2VjcmV0", "Basic YWxpY2U6c2VjcmV0 x", "Basic YWxpY2U6c2VjcmV0,",
    "Basic " + base64.b64encode(b"alice:sec\0ret").decode(), "Basic " + base64.b64encode(b"alice:secret\r\nX: y").decode(),
    "Basic " + base64.b64encode(b"no colon").decode(), "Basic " + base64.b64encode(b"\xff\xfe:\x80").decode(),
    "Basic " + base64.b64encode(b"a" * 256 + b":secret").decode(), "Basic " + base64.b64encode(b"alice:" + b"a" * 256).decode(),
    "Basic " + base64.b64encode(b"alice:" + b"a" * 20000).decode(), "Basic " + "A" * 40000,
], ids=range(19))
def test_odd_credentials_are_nobodys(stage, value):
    o, p = guarded(stage)
    c = stage.client(p)
    assert c.get("/", "Authorization: " + value).status == 401
    assert c.get("/", basic("alice", "secret")).status == 200
    assert p.log(1)[0]["cause"] == "basic_failed" and len(o.requests) == 1


def test_two_credentials_are_none(stage):
    o, p = guarded(stage)
    c = stage.client(p)
    good, bad = basic("alice", "secret"), basic("mallory", "x")
    for pair in ((good, bad), (bad, good), (good, good)):
        assert c.get("/", *pair).status == 401
    assert not o.requests


def test_endpoints_do_not_see_the_password(stage):
    for keys, want in ((", forward: off", ""), (", forward: on", basic("alice", "secret") + "\n"),
                       (", user_header: X-User", "X-User: alice\n")):
        o, p = guarded(stage, keys=keys)
        c = stage.client(p)
        for _ in range(2):
            assert c.get("/", basic("alice", "secret")).text() == want


def test_nobody_else_sets_the_user_header(stage):
    o, p = guarded(stage, keys=", user_header: X-User")
    c = stage.client(p)
    for _ in range(2):
        a = c.get("/", "x-user: root", basic("alice", "secret"), "X-USER: root", "X_User: root")
        assert a.text() == "X-User: alice\n"
    assert c.get("/", basic("dörte", "grün:blau")).body.decode() == "X-User: dörte\n"
    assert c.get("/open", "X-User: root").text() == "X-User: root\n"     # that is another route


def test_a_body_waits_behind_the_password(stage):
    def script(c):
        r = c.head()
        if r.get("Expect"):
            c.send("HTTP/1.1 100 Continue\r\n\r\n")
        c.reply(c.body(r).body)
    o, p = guarded(stage, script=script)
    c = stage.client(p)
    body = b"x" * 300000
    assert c.post("/", body, basic("alice", "secret")).body == body
    c = stage.client(p)
    c.request("POST", "/", basic("bob", "correct horse"), "Expect: 100-continue", "Content-Length: 3")
    assert c.head().status == 100
    assert c.send(b"abc").answer().body == b"abc"
    a = stage.client(p).post("/", body, basic("bob", "wrong"))
    assert a.status == 401 and a.get("Connection") == "close"


def test_pipelined_requests_keep_their_order(stage):
    o, p = guarded(stage)
    c = stage.client(p)
    for user, password in (("alice", "no"), ("alice", "secret"), ("bob", "correct horse"), ("bob", "no"), ("carol", "open sesame")):
        c.request("GET", "/", basic(user, password))
    assert [c.answer().status for _ in range(5)] == [401, 200, 200, 401, 200]


def test_it_also_guards_answers_and_redirects(stage):
    routes = ["{path: /a, answer: {body: in}, basic_auth: {file: '%s'}}" % USERS,
              "{path: /r, redirect: {to: /x}, basic_auth: {file: '%s'}}" % USERS, "{answer: {status: 404}}"]
    c = stage.client(stage.proxy({}, routes=routes))
    for target, status in (("/a", 200), ("/r/x", 302)):
        assert c.get(target).status == 401
        assert c.get(target, basic("alice", "secret")).status == status
    assert c.ask("HEAD", "/a").status == 401


def test_a_client_that_leaves_while_its_password_is_looked_at(stage):
    o, p = guarded(stage, users=stage.file("slow.htpasswd", SLOW))
    for i in range(4):
        c = stage.client(p)
        c.request("GET", "/", basic("slow", "guess %d" % i))
        (c.rst if i % 2 else c.close)()
    a = stage.client(p).get("/", basic("slow", "aaaaaaaa"))
    assert a.status == 200
    causes = [line["cause"] for line in p.log(5)]
    assert causes.count("client_left") >= 2 and set(causes) <= {"client_left", "basic_failed", None}
    assert stage.client(p).get("/", basic("slow", "aaaaaaaa")).status == 200


def test_a_stop_while_a_password_is_looked_at(stage):
    o, p = guarded(stage, users=stage.file("slow.htpasswd", SLOW), timeouts={"drain": "100ms"})
    clients = [stage.client(p) for _ in range(5)]
    for i, c in enumerate(clients):
        c.request("GET", "/", basic("slow", "guess %d" % i))
    wait_until(lambda: p.cpu() > 0.05, "a thread to look")
    p.stop()
    assert p.err.wait("cutting|ended|served")


def median(c, n=40):
    times = []
    for _ in range(n):
        start = time.monotonic()
        assert c.get("/open").status == 200
        times.append(time.monotonic() - start)
    return sorted(times)[n // 2]


@pytest.mark.true_edges("the first to ask must be the first that is looked at")
def test_wrong_passwords_hold_up_nobody_else(stage):
    """Each of them takes a quarter of a second, and forty are waiting: on a worker that would be ten seconds."""
    o, p = guarded(stage, users=stage.file("slow.htpasswd", SLOW + open(USERS).read()),
                   timeouts={"drain": "100ms"})
    c = stage.client(p)
    assert c.get("/", basic("alice", "secret")).status == 200
    guesses = [stage.client(p) for _ in range(40)]
    for i, g in enumerate(guesses):
        g.request("GET", "/", basic("slow", "guess %d" % i))
    wait_until(lambda: p.cpu() > 0.05, "a thread to look")
    assert median(c) < 0.1
    assert c.get("/", basic("alice", "secret")).status == 200        # remembered: it waits for nobody
    assert guesses[0].answer().status in (401, 503)
    for g in guesses:
        g.close()


def test_a_full_queue_of_passwords_is_503(stage):
    o, p = guarded(stage, users=stage.file("slow.htpasswd", SLOW), timeouts={"drain": "100ms"})
    c = stage.client(p)
    for i in range(600):
        stage.client(p).request("GET", "/", basic("slow", "%d %s" % (i, "x" * 240)))
    lines = wait_until(lambda: [l for l in p.log(len(p.out.lines)) if l["cause"] == "basic_busy"], "a 503")
    assert lines[0]["status"] == 503
    assert c.get("/open").status == 200


@pytest.mark.parametrize("text,why", [
    ("alice:secret\n", r"users\.htpasswd:1: the password is plain text, or no hash that is known: use bcrypt \(htpasswd -B\)"),
    ("# x\nalice:jaj2u6rub3/JM\n", r":2: the password is hashed with traditional crypt \(DES\)"),
    ("alice:$2y$15$abcdefghijklmnopqrstu.aiRfTPpGm91XijkB5TYc/96lykHIT5m\n", r":1: the password has a bcrypt cost above 14"),
    ("alice:$6$rounds=1000000$a$%s\n" % ("x" * 86), r":1: the password is hashed in more than 500000 rounds"),
    (open(USERS, encoding="utf-8").read() + "bob:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\n",
     r":6: this user has a password already, in line 3"),
    ("alice\n", r":1: a line is user:hash, and this one has no ':'"),
    ("", r"users\.htpasswd`: no user is in it"),
    ("a:{SHA}L55TUjtiq8FBorTWAZ0jy6g129A=\n" + "#" * (1 << 20), r"a file of users has at most 1024 KiB"),
    (None, r"`.*users\.htpasswd` cannot be opened: No such file or directory"),
], ids=["plain", "des", "cost", "rounds", "twice", "no-colon", "empty", "large", "missing"])
def test_a_file_that_cannot_be_used_is_refused(stage, text, why):
    """By check and by run, with the line, and with nothing of what it says."""
    if text is not None:
        stage.file("users.htpasswd", text)
    path = stage.file("t.yaml", "listen: 127.0.0.1:1\nroutes:\n  - answer: {}\n    basic_auth: {file: users.htpasswd}\n")
    for command in ("check", "run"):
        r = subprocess.run([BINARY, command, "-c", path], capture_output=True, text=True, timeout=30, cwd="/")
        assert r.returncode == 2, r.stderr
        assert "t.yaml:3:5: basic_auth: " in r.stderr
        assert "secret" not in r.stderr and "jaj2u6" not in r.stderr
    r = subprocess.run([BINARY, "check", "-c", path], capture_output=True, text=True, timeout=30)
    assert re.search(why, r.stderr), r.stderr


def test_a_file_of_users_is_a_file(stage):
    os.mkfifo(str(stage.folder / "pipe"))
    path = stage.file("t.yaml", "routes: [{answer: {}, basic_auth: {file: pipe}}]\n")
    r = subprocess.run([BINARY, "check", "-c", path], capture_output=True, text=True, timeout=30)
    assert r.returncode == 2 and "`%s` is not a file" % str(stage.folder / "pipe")[-64:] in r.stderr
    path = stage.file("t.yaml", "routes: [{answer: {}, basic_auth: {file: '%s'}}]\n" % stage.folder)
    r = subprocess.run([BINARY, "check", "-c", path], capture_output=True, text=True, timeout=30)
    assert r.returncode == 2 and "is not a file" in r.stderr


def test_defaults_can_be_undone(stage):
    o = stage.origin()
    routes = ["{path: /open, service: app, basic_auth: off}", "{service: app}"]
    p = stage.proxy(o, routes=routes, more="defaults: {basic_auth: {file: '%s'}}\n" % USERS)
    c = stage.client(p)
    assert c.get("/open").status == 200 and c.get("/").status == 401
    assert c.get("/", basic("alice", "secret")).status == 200


def test_no_password_is_logged(stage):
    o, p = guarded(stage)
    c = stage.client(p)
    for user, password in (("alice", "secret"), ("alice", "hunter2"), ("hunter3", "x")):
        c.get("/", basic(user, password))
    p.log(3)
    p.stop()
    everything = p.out.text() + p.err.text()
    for word in ("secret", "hunter2", "hunter3", "Basic ", base64.b64encode(b"alice:secret").decode()):
        assert word not in everything


def test_workers_share_what_was_right(stage):
    o, p = guarded(stage, users=stage.file("slow.htpasswd", SLOW), workers=4)
    assert stage.client(p).get("/", basic("slow", "aaaaaaaa")).status == 200
    before = p.cpu()
    for _ in range(20):
        assert stage.client(p).get("/", basic("slow", "aaaaaaaa")).status == 200
    assert p.cpu() - before < 0.5       # the twenty would take five seconds
