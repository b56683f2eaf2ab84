"""What belongs to one connection stays on it, and what the proxy adds to a request."""
import re

import pytest


def seen(stage, *fields, send=None, **settings):
    """The request as the origin saw it."""
    o = stage.origin()
    c = stage.client(stage.proxy(o, **settings))
    a = c.send(send).answer() if send else c.get("/", *fields)
    assert a.status == 200
    return o.requests[0]


HOP = ("Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip", "Connection: keep-alive, X-Private",
       "X-Private: secret", "X-Public: yes")


def test_hop_by_hop_fields_of_a_request_stay_here(stage):
    r = seen(stage, *HOP)
    for name in ("Keep-Alive", "Proxy-Connection", "X-Private"):
        assert not r.all(name), name
    assert r.get("X-Public") == "yes"


def test_hop_by_hop_fields_of_an_answer_stay_there(stage):
    def script(c):
        c.request()
        c.reply("", *HOP)
        c.hold()
    a = stage.client(stage.proxy(stage.origin(script))).get("/")
    for name in ("Keep-Alive", "Proxy-Connection", "X-Private"):
        assert not a.all(name), name
    assert a.get("X-Public") == "yes"


@pytest.mark.parametrize("name", ["Host", "X-Forwarded-For", "Content-Length", "Authorization"])
def test_connection_cannot_name_away_what_matters(stage, name):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    a = c.get("/", "Connection: %s" % name, "Authorization: Basic eA==")
    if a.status == 200:
        r = o.requests[0]
        assert r.get("Host") == "example.test" and r.get("X-Forwarded-For") == "127.0.0.1"
    else:
        assert a.status == 400 and not o.heads


def test_duplicate_fields_keep_their_order(stage):
    r = seen(stage, "X-N: 1", "Cookie: a=1", "X-N: 2", "Cookie: b=2", "X-N: 3")
    assert r.all("X-N") == ["1", "2", "3"] and r.all("Cookie") == ["a=1", "b=2"]


def test_set_cookie_is_never_joined(stage):
    def script(c):
        c.request()
        c.reply("", "Set-Cookie: a=1, x", "Set-Cookie: b=2")
        c.hold()
    assert stage.client(stage.proxy(stage.origin(script))).get("/").all("Set-Cookie") == ["a=1, x", "b=2"]


def test_forwarded_for_proto_and_host(stage):
    r = seen(stage)
    assert r.get("X-Forwarded-For") == "127.0.0.1"
    assert r.get("X-Forwarded-Proto") == "http"
    assert r.get("X-Forwarded-Host") == "example.test"


SPOOF = ("X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test")


def test_an_unknown_peer_is_not_believed(stage):
    r = seen(stage, *SPOOF, listen="x_forwarded: replace")
    assert r.all("X-Forwarded-For") == ["127.0.0.1"]
    assert r.all("X-Forwarded-Proto") == ["http"]
    assert r.all("X-Forwarded-Host") == ["example.test"]


def test_a_trusted_peer_is_believed_and_added_to(stage):
    r = seen(stage, *SPOOF, listen="trusted_proxies: [127.0.0.0/8]")
    assert [v.strip() for f in r.all("X-Forwarded-For") for v in f.split(",")] == ["6.6.6.6", "127.0.0.1"]
    assert r.all("X-Forwarded-Proto") == ["https"]
    assert r.all("X-Forwarded-Host") == ["evil.test"]


def test_appending_puts_our_own_value_last(stage):
    r = seen(stage, *SPOOF, listen="x_forwarded: append")
    assert [v.strip() for f in r.all("X-Forwarded-For") for v in f.split(",")][-1] == "127.0.0.1"


def test_forwarding_fields_can_be_off(stage):
    r = seen(stage, "X-Forwarded-For: 6.6.6.6", listen="x_forwarded: off")
    assert r.all("X-Forwarded-For") in ([], ["6.6.6.6"])
    assert not r.all("X-Forwarded-Proto")


def test_forwarded_of_rfc_7239(stage):
    r = seen(stage, listen="forwarded: true")
    last = r.all("Forwarded")[-1].split(",")[-1]
    parts = dict(p.strip().split("=", 1) for p in last.split(";"))
    assert parts["for"].strip('"') == "127.0.0.1" and parts["proto"] == "http"


def test_via_names_us_last(stage):
    o = stage.origin()
    assert stage.client(stage.proxy(o, listen="via: gate")).get("/", "Via: 1.0 before").status == 200
    joined = [v.strip() for f in o.requests[0].all("Via") for v in f.split(",")]
    assert joined == ["1.0 before", "1.1 gate"]


def test_a_request_id_is_made_and_returned(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, listen="request_id: X-Request-Id"))
    ids = []
    for _ in range(3):
        a = c.get("/")
        ids.append(a.get("X-Request-Id"))
    assert ids == [r.get("X-Request-Id") for r in o.requests]
    assert len(set(ids)) == 3 and all(re.fullmatch(r"[0-9a-zA-Z-]{16,64}", i) for i in ids)


@pytest.mark.parametrize("sent, kept", [
    ("0123456789abcdef-mine", True), ("a/b+c=:.@_", True), ("x" * 128, True),
    ("x" * 129, False), ("a b", False), ("a\"b", False), ("", False)])
def test_a_request_id_is_kept_when_it_is_plain(stage, sent, kept):
    o = stage.origin()
    a = stage.client(stage.proxy(o, listen="request_id: X-Request-Id")).get("/", "X-Request-Id: " + sent)
    assert (a.get("X-Request-Id") == sent) == kept
    assert o.requests[0].all("X-Request-Id") == [a.get("X-Request-Id")]


@pytest.mark.parametrize("how, status, there", [("drop", 200, []), ("allow", 200, ["1"]), ("refuse", 400, None)])
def test_underscores_in_names(stage, how, status, there):
    o = stage.origin()
    a = stage.client(stage.proxy(o, listen="underscores: " + how)).get("/", "X_Odd: 1")
    assert a.status == status
    assert (o.requests[0].all("X_Odd") if o.requests else None) == there


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "GET"])
def test_max_forwards_counts_down(stage, method):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    for sent, there in (("5", "4"), ("1", "0"), ("x", "x"), ("-1", "-1")):
        assert c.ask(method, "/", "Max-Forwards: " + sent).status == 200
        assert o.requests[-1].get("Max-Forwards") == (sent if method == "GET" else there)
    a = c.ask(method, "/", "Max-Forwards: 0")
    assert a.status == {"OPTIONS": 200, "TRACE": 501, "GET": 200}[method]
    assert len(o.requests) == (5 if method == "GET" else 4)
