"""Records of TLS 1.3 from peers that keep the rules, and from such as do not: to a connection that is parked, and to one with its
SSL object, from the side of a client and of an endpoint.  Every fault is answered by the alert that RFC 8446 names, counted,
and told in the log."""
import random
import re
import ssl
import threading
import time

import pytest

from harness import Client
from rawtls import (ALERT, BAD_RECORD_MAC, CHANGE_CIPHER_SPEC, CLOSE_NOTIFY, DATA, DECODE_ERROR, HANDSHAKE, ILLEGAL_PARAMETER,
                    PLAIN, PROTOCOL_VERSION, RECORD_OVERFLOW, SUITES, UNEXPECTED_MESSAGE, Records, key_update, ticket)
from test_tls import certificate, context, world

PARK = ["", ", park: off"]
FATAL = 2


class Raw(Client):
    """A client whose TLS 1.3 is in the hands of the test: `tls` are its Records."""

    def __init__(self, stage, p, ctx, **more):
        super().__init__(p.address)
        stage.clients.append(self)
        ctx.minimum_version = ssl.TLSVersion.TLSv1_3
        self.tls = self.sock = Records(self.sock, ctx, stage.folder, **more)


def service(origin, ca, more=""):
    return "{endpoints: ['%s'], tls: {ca: %s, name: inner.test%s}}" % (origin.address, ca, more)


def secure_origin(stage, script, more="", tickets=0):
    """An origin whose TLS 1.3 is in the hands of its script, as c.tls; its service."""
    cert, key = certificate(stage, "inner.test")

    def shaken(c):
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(cert, key)
        ctx.minimum_version = ssl.TLSVersion.TLSv1_3
        ctx.num_tickets = tickets
        c.tls = c.sock = Records(c.sock, ctx, stage.folder, server_side=True)
        script(c)
    o = stage.origin(shaken)
    return o, service(o, cert, more)


def count(p, name):
    """A counter of the line at the end."""
    p.stop()
    m = re.search(r"\b%s=(\d+)" % name, p.err.text())
    return int(m[1]) if m else 0


GET = b"GET /%d HTTP/1.1\r\nHost: a.test\r\n\r\n"


@pytest.mark.true_edges("an alert is said at once or not at all")
# ---- what is good ----------------------------------------------------------

@pytest.mark.parametrize("suite", sorted(SUITES))
@pytest.mark.parametrize("park", PARK)
def test_suites(stage, suite, park):
    p, ctx, o = world(stage, tls=", suites: %s%s" % (suite, park))
    c = Raw(stage, p, ctx)
    assert c.tls.suite == suite
    for i in range(3):
        assert c.get("/%d" % i, host="a.test").text() == "GET /%d 0" % i
        c.tls.update(ask=True)
    c.tls.end()
    assert c.rest() == b"" and c.tls.asked == 0
    assert count(p, "parked") == (0 if park else 1)


def sizes(long):
    if long:
        return range(1, PLAIN + 1)
    edge = [n + d for n in (16, 256, 4096, 8192, PLAIN) for d in (-1, 0, 1) if n + d <= PLAIN]
    return sorted(set(list(range(1, 40)) + edge + [random.randrange(1, PLAIN) for _ in range(20)]))


@pytest.mark.parametrize("park", PARK)
def test_records_of_every_size(stage, long, park):
    """To the origin, and back: it answers with what it got."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(r.body)
    p, ctx, o = world(stage, script, tls=park)
    c = Raw(stage, p, ctx)
    every = list(sizes(long))
    random.shuffle(every)
    for some in (every[i:i + 512] for i in range(0, len(every), 512)):
        body = random.randbytes(sum(some))
        c.tls.send_record(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % len(body))
        sender = threading.Thread(target=send_sizes, args=(c.tls, body, some))
        sender.start()
        assert c.answer().body == body
        sender.join()


def send_sizes(tls, body, some):
    at = 0
    for i, n in enumerate(some):
        tls.send_record(body[at:at + n], pad=min((0, 0, 1, PLAIN)[i % 4], PLAIN - n))
        at += n


@pytest.mark.parametrize("park", PARK)
def test_an_endpoint_with_records_of_every_size(stage, long, park):
    every = list(sizes(long))
    body = random.randbytes(sum(every))

    def script(c):
        for _ in range(2):
            c.head()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            send_sizes(c.tls, body, every)
    o, s = secure_origin(stage, script, park)
    c = stage.client(stage.proxy({"app": s}))
    for _ in range(2):
        got = []
        c.request("GET", "/").answer(sink=got.append)
        assert b"".join(got) == body


@pytest.mark.parametrize("park", PARK)
def test_records_without_data_are_nothing(stage, park):
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    for i in range(4):
        for _ in range(16):
            c.tls.send_record(b"", pad=i)
        c.tls.sendall(GET % i)
        assert c.answer().text() == "GET /%d 0" % i


@pytest.mark.parametrize("park", PARK)
def test_many_records_in_one_segment(stage, park):
    """A pipeline of requests, each cut in records of a byte."""
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    c.tls.raw.sendall(b"".join(c.tls.tx.seal(bytes([b])) for i in range(5) for b in GET % i))
    for i in range(5):
        assert c.answer().text() == "GET /%d 0" % i


@pytest.mark.parametrize("park", PARK)
def test_records_a_byte_at_a_time(stage, park):
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    for b in c.tls.tx.seal(b"POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n") + c.tls.tx.seal(b"abc", pad=9):
        c.tls.raw.sendall(bytes([b]))
    assert c.answer().text() == "POST /a 3"


# ---- new keys --------------------------------------------------------------

@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("park", PARK)
def test_new_keys_in_the_middle_of_bodies(stage, park, ask):
    """Of what the client sends, and of what is sent to it when it asks."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(r.body)
    p, ctx, o = world(stage, script, tls=park)
    c = Raw(stage, p, ctx)
    body = random.randbytes(200000)
    for _ in range(3):
        c.tls.sendall(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % len(body))
        for i in range(0, len(body), 10000):
            c.tls.sendall(body[i:i + 10000])
            c.tls.update(ask)
        assert c.answer().body == body
    assert bool(c.tls.updates) == ask and c.tls.asked == 0 and c.tls.updates <= 60


@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("park", PARK)
def test_new_keys_of_an_endpoint(stage, park, ask):
    updates = []

    def script(c):
        while True:
            r = c.request()
            if r is None:
                updates.append((c.tls.updates, c.tls.asked))
                return
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(r.body))
            for i in range(0, len(r.body), 10000):
                c.send(r.body[i:i + 10000])
                c.tls.update(ask)
    o, s = secure_origin(stage, script, park)
    p = stage.proxy({"app": s})
    c = stage.client(p)
    body = random.randbytes(200000)
    for _ in range(3):
        assert c.post("/", body).body == body
    assert o.connections == 1
    p.stop()
    o.wait_idle()
    assert bool(updates[0][0]) == ask and updates[0][1] == 0


@pytest.mark.parametrize("park", PARK)
def test_new_keys_while_it_idles(stage, park):
    """They are taken in, and answered with what is said next: not a byte before that."""
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    c.get("/", host="a.test")
    for i in range(20):
        c.tls.update(ask=True)
    c.tls.update()
    if not park:
        assert c.silent(0.05) and not c.tls.updates
    assert c.get("/x", host="a.test").text() == "GET /x 0"
    assert c.tls.updates == 1 if not park else c.tls.updates


@pytest.mark.parametrize("behind", ["handshake", "answer", "request"])
@pytest.mark.parametrize("park", PARK)
def test_a_part_of_a_record_is_the_beginning_of_a_head(stage, park, behind):
    """It has the time of a head, and not that of a connection that idles."""
    p, ctx, o = world(stage, tls=park, timeouts={"head": "500ms", "idle": "1m", "linger": "50ms"})
    c = Raw(stage, p, ctx)
    if behind == "answer":
        c.get("/0", host="a.test")
    first = c.tls.tx.seal(GET % 1) if behind == "request" else b""
    c.tls.raw.sendall(first + c.tls.tx.seal(GET % 2 + bytes(9000))[:8000])
    if first:
        assert c.answer().status == 200
    assert c.answer().status == 408


@pytest.mark.parametrize("park", PARK)
def test_new_keys_in_parts_are_no_head(stage, park):
    p, ctx, o = world(stage, tls=park, timeouts={"head": "500ms", "idle": "1m"})
    c = Raw(stage, p, ctx)
    c.get("/", host="a.test")
    record = c.tls.tx.seal(key_update(), HANDSHAKE)
    c.tls.tx.advance()
    c.tls.raw.sendall(record[:9])
    time.sleep(0.2)     # nothing tells that it was read
    c.tls.raw.sendall(record[9:])
    assert c.silent(0.8)
    assert c.get("/x", host="a.test").text() == "GET /x 0"


def test_a_message_in_parts(stage):
    p, ctx, o = world(stage)
    c = Raw(stage, p, ctx)
    for b in key_update(True):
        c.tls.send_record(bytes([b]), HANDSHAKE, pad=3)
    c.tls.tx.advance()
    assert c.get("/x", host="a.test").text() == "GET /x 0" and c.tls.updates == 1


# ---- tickets ---------------------------------------------------------------

@pytest.mark.parametrize("tickets", [0, 1, 2, 4])
@pytest.mark.parametrize("park", PARK)
def test_tickets_of_endpoints(stage, tickets, park):
    """Behind the handshake, where they are kept; later ones, even such as come in parts, are nothing."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(r.target)
            for _ in range(tickets):
                t = ticket(3000)
                c.tls.send_record(t[:1], HANDSHAKE)
                c.tls.send_record(t[1:2000], HANDSHAKE, pad=5)
                c.tls.send_record(t[2000:], HANDSHAKE)
    o, s = secure_origin(stage, script, park, tickets)
    c = stage.client(stage.proxy({"app": s}))
    for i in range(6):
        assert c.get("/%d" % i).text() == "/%d" % i
    assert o.connections == 1


@pytest.mark.parametrize("tickets", [True, False])
@pytest.mark.parametrize("park", PARK)
def test_tickets_to_clients(stage, tickets, park):
    """They come behind the handshake, numbered as any other record; no more of them when none are wanted."""
    p, ctx, o = world(stage, tls=park + ("" if tickets else ", tickets: off"))
    c = Raw(stage, p, ctx)
    for i in range(3):
        assert c.get("/%d" % i, host="a.test").text() == "GET /%d 0" % i
    assert bool(c.tls.tickets) == tickets and c.tls.tickets <= 2


# ---- what is not good: each is an alert ------------------------------------

def flip(tls, at):
    r = bytearray(tls.tx.seal(GET % 0))
    r[at] ^= 1
    return bytes(r)


def plain(kind, data=b"\0"):
    return bytes([kind, 3, 3]) + len(data).to_bytes(2, "big") + data


FAULTS = {
    "tag": (lambda t: flip(t, -1), BAD_RECORD_MAC),
    "first byte": (lambda t: flip(t, 5), BAD_RECORD_MAC),
    "again": (lambda t: t.tx.seal(b"") + resealed(t), BAD_RECORD_MAC),
    "out of order": (lambda t: b"".join(reversed([t.tx.seal(b"GET"), t.tx.seal(b" / HTTP/1.1\r\n")])), BAD_RECORD_MAC),
    "one is lost": (lambda t: (t.tx.seal(b"x"), t.tx.seal(GET % 0))[1], BAD_RECORD_MAC),
    "too long": (lambda t: t.tx.inner(bytes(PLAIN + 1) + bytes([DATA])), RECORD_OVERFLOW),
    "padded too long": (lambda t: t.tx.seal(GET % 0, pad=PLAIN), RECORD_OVERFLOW),
    "longest": (lambda t: plain(DATA, bytes(PLAIN + 257)), RECORD_OVERFLOW),
    "says it is longer": (lambda t: b"\x17\x03\x03\xff\xff", RECORD_OVERFLOW),
    "shorter than a tag": (lambda t: plain(DATA, bytes(15)), BAD_RECORD_MAC),
    "nothing within": (lambda t: plain(DATA, b""), BAD_RECORD_MAC),
    "no type": (lambda t: t.tx.inner(bytes(10)), UNEXPECTED_MESSAGE),
    "type 0x63": (lambda t: t.tx.seal(b"abc", 0x63), UNEXPECTED_MESSAGE),
    "change_cipher_spec within": (lambda t: t.tx.seal(b"\1", CHANGE_CIPHER_SPEC), UNEXPECTED_MESSAGE),
    "change_cipher_spec": (lambda t: plain(CHANGE_CIPHER_SPEC, b"\1"), UNEXPECTED_MESSAGE),
    "plain alert": (lambda t: plain(ALERT, b"\1\0"), UNEXPECTED_MESSAGE),
    "plain handshake": (lambda t: plain(HANDSHAKE, b"\1\0\0\0"), UNEXPECTED_MESSAGE),
    "http": (lambda t: b"GET / HTTP/1.1\r\n\r\n", UNEXPECTED_MESSAGE),
    "version": (lambda t: b"\x17\x03\x05" + t.tx.seal(GET % 0)[3:], DECODE_ERROR),
    "ClientHello": (lambda t: t.tx.seal(b"\1\0\0\4abcd", HANDSHAKE), UNEXPECTED_MESSAGE),
    "Finished": (lambda t: t.tx.seal(b"\x14\0\0\x20" + bytes(32), HANDSHAKE), UNEXPECTED_MESSAGE),
    "Certificate": (lambda t: t.tx.seal(b"\x0b\0\0\4\0\0\0\0", HANDSHAKE), UNEXPECTED_MESSAGE),
    "CertificateRequest": (lambda t: t.tx.seal(b"\x0d\0\0\3\0\0\0", HANDSHAKE), UNEXPECTED_MESSAGE),
    "HelloRequest": (lambda t: t.tx.seal(b"\0\0\0\0", HANDSHAKE), UNEXPECTED_MESSAGE),
    "KeyUpdate of 2": (lambda t: t.tx.seal(b"\x18\0\0\1\2", HANDSHAKE), ILLEGAL_PARAMETER),
    "KeyUpdate of 2 bytes": (lambda t: t.tx.seal(b"\x18\0\0\2\0\0", HANDSHAKE), DECODE_ERROR),
    "KeyUpdate and more": (lambda t: t.tx.seal(key_update() + key_update(), HANDSHAKE), UNEXPECTED_MESSAGE),
    "data within a message": (lambda t: t.tx.seal(b"\x18", HANDSHAKE) + t.tx.seal(GET % 0), UNEXPECTED_MESSAGE),
    "a message of nothing": (lambda t: t.tx.seal(b"", HANDSHAKE), UNEXPECTED_MESSAGE),
    "an alert of 1": (lambda t: t.tx.seal(b"\1", ALERT), DECODE_ERROR),
    "an alert of 3": (lambda t: t.tx.seal(b"\1\0\0", ALERT), DECODE_ERROR),
    "an alert of nothing": (lambda t: t.tx.seal(b"", ALERT), UNEXPECTED_MESSAGE),
    "nothing too often": (lambda t: b"".join(t.tx.seal(b"") for _ in range(40)), UNEXPECTED_MESSAGE),
    "new keys too often": (lambda t: b"".join(fresh(t) for _ in range(40)), UNEXPECTED_MESSAGE),
}
# What OpenSSL sees otherwise when the SSL object was kept; None: it takes it.
OPENSSL = {
    "KeyUpdate of 2 bytes": ILLEGAL_PARAMETER, "an alert of 1": UNEXPECTED_MESSAGE, "an alert of 3": UNEXPECTED_MESSAGE,
    "http": PROTOCOL_VERSION, "padded too long": None, "new keys too often": None,
}


def faults(park, some):
    """(name, how it is made, the alert) of each, or of some."""
    every = [(n, make, OPENSSL.get(n, alert) if park else alert) for n, (make, alert) in sorted(FAULTS.items())]
    every = [f for f in every if f[2] is not None]
    return random.sample(every, 6) if some else every


def resealed(t):
    t.tx.seq -= 1
    return t.tx.seal(b"")


def fresh(t):
    record = t.tx.seal(key_update(), HANDSHAKE)
    t.tx.advance()
    return record


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("when", ["idle", "body"])
@pytest.mark.parametrize("park", PARK)
def test_clients_that_break_a_rule(stage, long, when, park):
    """Each on a connection of its own, which idles, or is in the middle of a body."""
    p, ctx, o = world(stage, tls=park)
    todo = faults(park, not long and (park or when == "body"))
    for n, (fault, make, alert) in enumerate(todo):
        c = Raw(stage, p, ctx)
        c.get("/first", host="a.test")
        if when == "body":
            c.tls.sendall(b"POST /body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nabc")
            o.wait(2 * n + 2, heads=True)
        c.tls.raw.sendall(make(c.tls))
        assert (fault, c.tls.alert()) == (fault, (FATAL, alert))
        c.close()
        if when == "body":
            o.wait_idle()
    p.err.wait(r"a connection from 127\.0\.0\.1\S* broke a rule of TLS: \w+")
    if when == "body":
        assert sorted(str(line["cause"]) for line in p.log(2 * len(todo))) == ["None"] * len(todo) + ["tls_broken"] * len(todo)
    assert count(p, "tls_faults") == len(todo)
    assert count(p, "tls_broken") == (len(todo) if when == "body" else 0)
    assert len(o.requests) == len(todo)


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("when", ["head", "body", "idle"])
@pytest.mark.parametrize("park", PARK)
def test_endpoints_that_break_a_rule(stage, long, when, park):
    """In place of an answer, in the middle of one, and while their connection is kept."""
    todo = faults(park, not long and (park or when != "head"))
    said = {}

    def script(c):
        fault, make, _ = todo[len(said)]
        c.request()
        c.reply("first")
        if when != "idle":
            c.request()
        if when == "body":
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nabc")
        c.tls.raw.sendall(make(c.tls))
        said[fault] = c.tls.alert()
    o, s = secure_origin(stage, script, park)
    p = stage.proxy({"app": s})
    for fault, *_ in todo:
        c = stage.client(p)
        assert c.get("/").text() == "first"
        if when == "head":
            r = c.post("/", b"x")
            assert (fault, r.status, r.error) == (fault, 502, "tls_protocol_error")
        elif when == "body":
            with pytest.raises(EOFError):
                c.get("/")
        o.wait_idle()
    p.err.wait(r"endpoint %s: a connection broke a rule of TLS: \w+" % re.escape(o.address))
    assert said == {fault: (FATAL, alert) for fault, _, alert in todo}
    if when != "idle":
        assert [line["cause"] for line in p.log(2 * len(todo))] == [None, "upstream_tls"] * len(todo)
    assert count(p, "tls_faults") == len(todo)


# ---- ends ------------------------------------------------------------------

@pytest.mark.parametrize("park", PARK)
@pytest.mark.parametrize("code", [20, 48])
def test_a_client_that_ends_with_an_alert(stage, park, code):
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    c.tls.sendall(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc")
    o.wait(1, heads=True)
    c.tls.send_record(bytes([FATAL, code]), ALERT)
    assert not [r for r in records_until_the_end(c.tls) if r[0] == ALERT]       # nothing is said to that
    assert p.log()[0]["cause"] == "client_left"
    p.err.wait("ended with a TLS alert: ")
    assert count(p, "tls_alerts") == 1


def records_until_the_end(tls):
    got = []
    while True:
        try:
            got.append(tls.next())
        except (EOFError, ConnectionError):
            return got


@pytest.mark.parametrize("park", PARK)
@pytest.mark.parametrize("served", [0, 1])
def test_an_endpoint_that_ends_with_an_alert(stage, park, served):
    """As those do that want a certificate of their client: in TLS 1.3 that comes behind the handshake."""
    def script(c):
        for _ in range(served):
            c.request()
            c.reply("first")
        c.head()
        c.tls.send_record(bytes([FATAL, 116]), ALERT)
        c.wait_closed()
    o, s = secure_origin(stage, script, park)
    p = stage.proxy({"app": s})
    c = stage.client(p)
    for _ in range(served):
        assert c.get("/").text() == "first"
    r = c.post("/", b"x")
    assert (r.status, r.error) == (502, "tls_alert_received")
    assert p.log(1 + served)[-1]["cause"] == "upstream_alert"
    p.err.wait("endpoint %s: it ended a connection with a TLS alert: .*certificate.required" % re.escape(o.address))
    assert count(p, "tls_alerts") == 1


@pytest.mark.whole_calls("what is unread there is a reset")
@pytest.mark.parametrize("park", PARK)
def test_data_behind_the_end_is_ignored(stage, park):
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    c.tls.raw.sendall(c.tls.tx.seal(GET % 0) + c.tls.tx.seal(bytes([1, CLOSE_NOTIFY]), ALERT) + c.tls.tx.seal(GET % 1))
    assert c.answer().text() == "GET /0 0"
    assert c.rest() == b"" and len(o.requests) == 1


@pytest.mark.parametrize("park", PARK)
@pytest.mark.parametrize("end", ["close_notify", "fin"])
def test_an_endpoint_cut_in_a_body_that_ends_with_its_connection(stage, park, end):
    """close_notify is the end of such an answer, and a FIN by itself is none: the client must be able to tell."""
    def script(c):
        c.request()
        c.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it")
        if end == "close_notify":
            c.tls.end()
        c.close()
    o, s = secure_origin(stage, script, park)
    p = stage.proxy({"app": s})
    c = stage.client(p)
    if end == "close_notify":
        assert c.get("/").text() == "all of it"
        return
    with pytest.raises((EOFError, ConnectionError)):
        c.get("/")
    assert p.log()[0]["cause"] == "answer_cut"


@pytest.mark.parametrize("park", PARK)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_can_tell_a_cut(stage, park, version):
    """The origin leaves in the middle: an HTTP/1.0 client, whose answer ends with its connection, gets no close_notify."""
    def script(c):
        c.request()
        c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
        c.rst()
    p, ctx, o = world(stage, script, tls=park)
    c = Raw(stage, p, ctx)
    c.request("GET", "/", host="a.test", version=version)
    got = records_until_the_end(c.tls)
    data = b"".join(d for kind, d in got if kind == DATA)
    assert not data.endswith(b"0\r\n\r\n")
    if version == "1.0":
        assert not [d for kind, d in got if kind == ALERT]


@pytest.mark.parametrize("park", PARK)
def test_a_body_that_is_cut_at_each_byte(stage, long, park):
    """A FIN without close_notify anywhere in a request: the origin never sees it whole."""
    p, ctx, o = world(stage, tls=park, timeouts={"body": "30s"})      # so that it is the end that is seen
    n = 70
    for at in range(n) if long else (0, 1, 4, 5, 6, 20, 21, 22, n - 1):
        c = Raw(stage, p, ctx)
        c.tls.send_record(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 52\r\n\r\nabc")
        c.tls.raw.sendall(c.tls.tx.seal(bytes(48))[:at])
        c.tls.raw.shutdown(1)
        data = b"".join(d for kind, d in records_until_the_end(c.tls) if kind == DATA)
        assert b" 200 " not in data
    assert not o.requests


@pytest.mark.true_edges("an alert is said at once or not at all")
@pytest.mark.parametrize("park", PARK)
def test_new_keys_too_often_cost_little(stage, park):
    """A client that does nothing but ask for new keys makes us write nothing, and is ended."""
    p, ctx, o = world(stage, tls=park)
    c = Raw(stage, p, ctx)
    c.get("/", host="a.test")
    try:
        for _ in range(20000):
            c.tls.update(ask=not park)
    except ConnectionError:
        pass
    c.tls.raw.settimeout(10)
    said = [d for kind, d in records_until_the_end(c.tls) if kind == ALERT or d[0] == 24]
    assert said == ([] if park else [bytes([FATAL, UNEXPECTED_MESSAGE])])
    c.close()
    p.err.wait(r"broke a rule of TLS: (unexpected_message|too many key updates)$")
    assert count(p, "tls_faults") == 1
