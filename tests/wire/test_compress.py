"""Answers that are compressed on their way: what is, what is not, and that nothing else changes."""
import os
import random
import threading

import pytest

import codings
import harness
from harness import octets, wait_until

TEXT = "".join("<p>The queue number %d holds nothing, and so it costs nothing.</p>\n" % i for i in range(2000)).encode()
NOISE = random.Random(7).randbytes(300000)
HTML = "Content-Type: text/html; charset=utf-8"
ALL = "Accept-Encoding: gzip, deflate, br, zstd"
ON = ["{service: app, compress: on}"]


def says(body, *fields, status="200 OK"):
    """The script of an origin that always gives this answer."""
    def script(c):
        while c.request() is not None:
            c.reply(body, *fields, status=status)
    return script


def chunked(*pieces, fields=(HTML,), trailers=(), status="200 OK"):
    """The same in chunks."""
    def script(c):
        while c.request() is not None:
            c.send("HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n" % status, *(f + "\r\n" for f in fields), "\r\n")
            for p in pieces:
                c.send("%x\r\n" % len(p), p, "\r\n")
            c.send("0\r\n", *(t + "\r\n" for t in trailers), "\r\n")
    return script


def plain(a):
    """The body of an answer, decoded when it is encoded."""
    coding = a.get("Content-Encoding")
    return codings.decode(coding, a.body) if coding else a.body


# ---- what is compressed ------------------------------------------------------

@pytest.mark.parametrize("coding", codings.NAMES)
@pytest.mark.parametrize("level", ["fast", "balanced", "small"])
@pytest.mark.parametrize("sized", [True, False])
def test_each_coding_and_level(stage, coding, level, sized):
    o = stage.origin(says(TEXT, HTML) if sized else chunked(TEXT[:10], TEXT[10:70000], TEXT[70000:]))
    p = stage.proxy(o, routes=["{service: app, compress: {level: %s}}" % level])
    c = stage.client(p)
    for _ in range(2):
        a = c.get("/", "Accept-Encoding: " + coding)
        assert a.get("Content-Encoding") == coding and plain(a) == TEXT
        assert a.get("Content-Length") is None and a.chunks and a.get("Vary") == "Accept-Encoding"
    assert p.log(2)[1]["bytes_out"] == len(a.body)      # what was sent, not what it means


@pytest.mark.parametrize("body", [b"x" * 1024, NOISE, TEXT * 40, TEXT[:16384], TEXT[:16385], NOISE[:5000] + TEXT + NOISE[:70000]],
                         ids=["min_size", "noise", "large", "16384", "16385", "mixed"])
@pytest.mark.parametrize("coding", codings.NAMES)
def test_bodies_of_all_kinds(stage, coding, body):
    p = stage.proxy(stage.origin(says(body, HTML)), routes=ON)
    a = stage.client(p).get("/", "Accept-Encoding: " + coding)
    assert a.get("Content-Encoding") == coding and plain(a) == body


@pytest.mark.whole_calls("each read is sent on at once, so small ones are not compressed well")
@pytest.mark.parametrize("coding", codings.NAMES)
@pytest.mark.parametrize("level", ["fast", "balanced", "small"])
def test_it_is_worth_it(stage, coding, level):
    """A page becomes much shorter, and what cannot be compressed grows by next to nothing."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(TEXT if r.target == "/text" else NOISE, HTML)
    c = stage.client(stage.proxy(stage.origin(script), routes=["{service: app, compress: {level: %s}}" % level]))
    text, noise = (c.get(t, "Accept-Encoding: " + coding) for t in ("/text", "/noise"))
    assert plain(text) == TEXT and plain(noise) == NOISE
    assert len(text.body) < len(TEXT) / 4 and len(noise.body) < len(NOISE) + len(NOISE) // 500 + 100


@pytest.mark.parametrize("accept,coding", [
    ("gzip, deflate, br, zstd", "zstd"), ("gzip, br", "br"), ("gzip;q=1, br;q=0.9, zstd;q=0", "gzip"), ("x-gzip", "gzip"),
    ("*", "zstd"), ("identity, gzip;q=0.5", None), ("deflate", None), ("", None), ("gzip;q=0", None), ("gzip;q=nonsense", None),
    (", ,gzip;q=0.001,", "gzip"), ("x," * 20000 + "br", "br"),
], ids=lambda v: repr(v)[:30])
def test_what_a_client_takes(stage, accept, coding):
    p = stage.proxy(stage.origin(says(TEXT, HTML)), routes=ON)
    a = stage.client(p).get("/", "Accept-Encoding: " + accept)
    assert a.get("Content-Encoding") == coding and plain(a) == TEXT
    assert a.get("Vary") == "Accept-Encoding"           # whoever asks


def test_the_order_is_the_routes(stage):
    p = stage.proxy(stage.origin(says(TEXT, HTML)), routes=["{service: app, compress: {encodings: [gzip, br]}}"])
    c = stage.client(p)
    assert c.get("/", ALL).get("Content-Encoding") == "gzip"
    assert c.get("/", "Accept-Encoding: zstd, br").get("Content-Encoding") == "br"
    assert c.get("/", "Accept-Encoding: zstd").get("Content-Encoding") is None


def test_a_route_has_its_own_types_and_size(stage):
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.reply(TEXT[:int(r.target[1:])], "Content-Type: " + r.get("X-Type"))
    p = stage.proxy(stage.origin(script), routes=["{service: app, compress: {types: [common, text/event-stream, image/*], min_size: 100B}}"])
    c = stage.client(p)
    for target, kind, on in (("/100", "text/css", True), ("/99", "text/css", False), ("/5000", "text/event-stream", True),
                             ("/5000", "image/png", True), ("/5000", "application/ld+json; x=y", True),
                             ("/5000", "application/zip", False), ("/5000", "TEXT/HTML", True)):
        a = c.get(target, ALL, "X-Type: " + kind)
        assert (a.get("Content-Encoding") == "zstd") == on and plain(a) == TEXT[:int(target[1:])], (target, kind)
        assert (a.get("Vary") == "Accept-Encoding") == on


def test_defaults_are_inherited_and_replaced(stage):
    p = stage.proxy(stage.origin(says(TEXT, HTML)), routes=["{service: app}", "{path: /off, service: app, compress: off}",
                    "{path: /on, service: app, compress: on}"], more="defaults: {compress: {encodings: gzip}}\n")
    c = stage.client(p)
    assert c.get("/", ALL).get("Content-Encoding") == "gzip"
    assert c.get("/off", ALL).get("Content-Encoding") is None
    assert c.get("/on", ALL).get("Content-Encoding") == "zstd"


# ---- what its head says -------------------------------------------------------

def test_the_head_of_a_compressed_answer(stage):
    p = stage.proxy(stage.origin(says(TEXT, HTML, 'ETag: "v1"', "Accept-Ranges: bytes", "Vary: Origin", "X-Own: 1", "Set-Cookie: a=b")), routes=ON)
    a = stage.client(p).get("/", ALL)
    assert a.get("ETag") == 'W/"v1"' and a.get("Accept-Ranges") is None and a.get("X-Own") == "1"
    assert a.get("Vary") == "Origin, Accept-Encoding" and a.get("Set-Cookie") == "a=b"
    a = stage.client(p).get("/")
    assert a.get("ETag") == '"v1"' and a.get("Accept-Ranges") == "bytes" and a.get("Content-Length") == str(len(TEXT))
    assert a.get("Vary") == "Origin, Accept-Encoding" and a.body == TEXT


@pytest.mark.parametrize("vary,want", [("*", ["*"]), ("accept-encoding", ["accept-encoding"]), ("Cookie, Accept-Encoding", ["Cookie, Accept-Encoding"])])
def test_vary_is_not_said_twice(stage, vary, want):
    p = stage.proxy(stage.origin(says(TEXT, HTML, "Vary: " + vary)), routes=ON)
    assert stage.client(p).get("/", ALL).all("Vary") == want


def test_a_head_request_has_the_head_of_get(stage):
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            c.send("HTTP/1.1 200 OK\r\n%s\r\nETag: \"v1\"\r\nContent-Length: %d\r\n\r\n" % (HTML, len(TEXT)))
            if r.method == "GET":
                c.send(TEXT)
    p = stage.proxy(stage.origin(script), routes=ON)
    c = stage.client(p)
    get, head = (c.ask(m, "/", ALL) for m in ("GET", "HEAD"))
    assert head.body == b"" and plain(get) == TEXT
    for name in ("Content-Encoding", "Vary", "ETag", "Content-Length", "Content-Type"):
        assert head.get(name) == get.get(name), name
    assert c.ask("HEAD", "/").get("Content-Length") == str(len(TEXT))


def test_not_modified_knows_the_tag_that_the_client_knows(stage):
    o = stage.origin(says(b"", 'ETag: "v1"', status="304 Not Modified"))
    o.scripts = [lambda c: [c.send('HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n') for _ in iter(c.request, None)]]
    p = stage.proxy(o, routes=ON)
    c = stage.client(p)
    a = c.get("/", ALL, 'If-None-Match: W/"v1"')
    assert a.status == 304 and a.get("ETag") == 'W/"v1"' and a.get("Content-Encoding") is None
    assert c.get("/", ALL, 'If-None-Match: "v1"').get("ETag") == '"v1"'
    assert o.wait(2)[0].get("If-None-Match") == 'W/"v1"'


def test_the_routes_own_edits_come_first(stage):
    p = stage.proxy(stage.origin(says(TEXT, "Content-Type: application/octet-stream")),
                    routes=["{path: /as-text, service: app, compress: on, response_headers: {set: {Content-Type: text/plain}}}",
                            "{path: /keep, service: app, compress: on, response_headers: {set: {Content-Type: text/plain, Cache-Control: no-transform}}}",
                            "{path: /remove, service: app, compress: on, response_headers: {set: {Content-Type: text/plain}, remove: [Content-Encoding, Vary]}}"])
    c = stage.client(p)
    assert plain(c.get("/as-text", ALL)) == TEXT
    assert c.get("/keep", ALL).get("Content-Encoding") is None
    a = c.get("/remove", ALL)
    assert a.get("Content-Encoding") == "zstd" and a.get("Vary") == "Accept-Encoding" and plain(a) == TEXT


# ---- what is left as it is ----------------------------------------------------

@pytest.mark.parametrize("fields,status,body", [
    ((HTML, "Content-Encoding: gzip"), "200 OK", NOISE), ((HTML, "Content-Encoding: identity"), "200 OK", TEXT),
    ((HTML, "Cache-Control: public, no-transform"), "200 OK", TEXT), ((HTML, "Content-Range: bytes 0-2999/9000"), "206 Partial Content", TEXT[:3000]),
    ((HTML, "Content-Range: bytes */9000"), "416 Range Not Satisfiable", TEXT), (("Content-Type: image/png",), "200 OK", TEXT),
    (("Content-Type: text/event-stream",), "200 OK", TEXT), ((), "200 OK", TEXT), ((HTML,), "200 OK", TEXT[:1023]), ((HTML,), "200 OK", b""),
    ((HTML, "Repr-Digest: sha-256=:AAAA:"), "200 OK", TEXT), ((HTML, "Content-MD5: AAAA"), "200 OK", TEXT), ((HTML,), "205 Reset Content", b""),
    ((HTML,), "226 IM Used", TEXT),
], ids=lambda v: str(v)[:40] if isinstance(v, (str, tuple)) else "")
def test_what_is_never_compressed(stage, fields, status, body):
    p = stage.proxy(stage.origin(says(body, *fields, 'ETag: "v1"', "Accept-Ranges: bytes", status=status)), routes=ON)
    a = stage.client(p).get("/", ALL)
    assert a.body == body and a.get("Content-Length") == str(len(body)) and a.get("Vary") is None
    assert a.get("ETag") == '"v1"' and a.get("Accept-Ranges") == "bytes"
    assert a.all("Content-Encoding") == [f.split(": ")[1] for f in fields if f.startswith("Content-Encoding")]


def test_answers_without_a_body(stage):
    def script(c):
        while c.request() is not None:
            c.send("HTTP/1.1 204 No Content\r\n%s\r\n\r\n" % HTML)
    a = stage.client(stage.proxy(stage.origin(script), routes=ON)).get("/", ALL)
    assert a.status == 204 and a.get("Content-Encoding") is None and a.get("Vary") is None


@pytest.mark.parametrize("fields,version", [((), "1.1"), ((ALL, "Cache-Control: no-transform"), "1.1"), ((ALL,), "1.0")])
def test_who_does_not_want_it(stage, fields, version):
    p = stage.proxy(stage.origin(says(TEXT, HTML, 'ETag: "v1"')), routes=ON)
    a = stage.client(p).get("/", *fields, version=version)
    assert a.body == TEXT and a.get("Content-Length") == str(len(TEXT)) and a.get("ETag") == '"v1"'
    assert a.get("Content-Encoding") is None and a.get("Vary") == "Accept-Encoding"


def test_it_is_off_unless_asked_for(stage):
    p = stage.proxy(stage.origin(says(TEXT, HTML, 'ETag: "v1"')))
    a = stage.client(p).get("/", ALL)
    assert a.body == TEXT and a.get("Content-Encoding") is None and a.get("Vary") is None and a.get("ETag") == '"v1"'


def test_a_short_chunked_answer_goes_as_it_is(stage):
    p = stage.proxy(stage.origin(lambda c: [c.send("HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" % HTML)
                                            for _ in iter(c.request, None)]), routes=ON)
    a = stage.client(p).get("/", ALL)
    # one that comes in pieces may be compressed: nobody could know
    assert plain(a) == b"abc" and a.get("Vary") == "Accept-Encoding"


# ---- streams ------------------------------------------------------------------

@pytest.mark.parametrize("coding", codings.NAMES)
@pytest.mark.parametrize("level", ["fast", "balanced", "small"])
def test_nothing_is_held_back(stage, coding, level):
    """Each event is seen before the next one is made."""
    heard = threading.Semaphore(0)
    events = [b"data: event number %d of a few\n\n" % i for i in range(20)]

    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for e in events:
            c.send("%x\r\n" % len(e), e, "\r\n")
            assert heard.acquire(timeout=harness.PATIENCE), "the client did not get an event"
        c.send("0\r\n\r\n")
    p = stage.proxy(stage.origin(script), routes=["{service: app, compress: {types: text/event-stream, level: %s}}" % level])
    c = stage.client(p)
    c.request("GET", "/", "Accept-Encoding: " + coding)
    a = c.head()
    assert a.get("Content-Encoding") == coding
    d, got = codings.decoder(coding), b""
    while True:
        n = int(c.until(b"\r\n"), 16)
        if n == 0:
            break
        before = got.count(b"\n\n")
        got += d.feed(c.exactly(n))
        c.exactly(2)
        for _ in range(got.count(b"\n\n") - before):
            heard.release()
    assert got == b"".join(events) and d.ended


def test_a_sized_answer_that_stops_is_not_held_back(stage):
    go = threading.Event()

    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n" % (HTML, len(TEXT)), TEXT[:50000])
        assert go.wait(harness.PATIENCE)
        c.send(TEXT[50000:])
        c.hold()
    p = stage.proxy(stage.origin(script), routes=ON)
    c = stage.client(p)
    c.request("GET", "/", ALL)
    assert c.head().get("Content-Encoding") == "zstd"
    d, got = codings.decoder("zstd"), b""
    while True:
        n = int(c.until(b"\r\n"), 16)
        if n == 0:
            break
        got += d.feed(c.exactly(n))
        c.exactly(2)
        if len(got) == 50000:
            go.set()
    c.exactly(2)
    assert got == TEXT and d.ended and go.is_set()


@pytest.mark.parametrize("coding", codings.NAMES)
def test_a_slow_client_holds_back_the_origin(stage, coding):
    """More than what buffers take does not leave the origin, and all of it arrives when the client reads."""
    size, sent = 64 << 20, [0]

    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n" % (HTML, size))
        for _ in range(size // 262144):
            c.send(NOISE[:262144])
            sent[0] += 262144
        c.hold()
    p = stage.proxy(stage.origin(script), routes=ON, timeouts={"write": "60s", "between_bytes": "60s"})
    c = stage.client(p, receive_buffer=16384, patience=60)
    c.request("GET", "/", "Accept-Encoding: " + coding)
    wait_until(lambda: sent[0] > 0 and not moves(sent), "the origin to be held back", 30)
    assert sent[0] < size / 2
    a, d, n = c.head(), codings.decoder(coding), [0]

    def sink(data):
        out = d.feed(data)
        at = n[0] % 262144
        assert (NOISE[:262144] * (len(out) // 262144 + 2))[at:at + len(out)] == out
        n[0] += len(out)
    c.body_into(a, sink)
    assert n[0] == size and d.ended


def moves(sent):
    before = sent[0]
    import time
    time.sleep(0.3)
    return sent[0] != before


def test_pipelined_requests(stage):
    p = stage.proxy(stage.origin(says(TEXT, HTML)), routes=ON)
    c = stage.client(p)
    for coding in codings.NAMES + ("identity",):
        c.request("GET", "/", "Accept-Encoding: " + coding)
    for coding in codings.NAMES + (None,):
        a = c.answer()
        assert a.get("Content-Encoding") == coding and plain(a) == TEXT


def test_interim_answers_pass(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nContent-Type: text/html\r\n\r\n")
        c.reply(TEXT, HTML)
        c.hold()
    a = stage.client(stage.proxy(stage.origin(script), routes=ON)).get("/", ALL)
    assert [i.status for i in a.interim] == [103] and a.interim[0].get("Vary") is None and plain(a) == TEXT


def test_a_tunnel_is_not_touched(stage):
    def script(c):
        c.head()
        c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Type: text/plain\r\n\r\n")
        c.send(c.exactly(5) * 500)
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script), routes=ON))
    c.request("GET", "/", ALL, "Connection: Upgrade", "Upgrade: websocket")
    a = c.head()
    assert a.status == 101 and a.get("Content-Encoding") is None
    c.send("hello")
    assert c.exactly(2500) == b"hello" * 500


def test_trailers_pass_but_for_digests(stage):
    p = stage.proxy(stage.origin(chunked(TEXT, trailers=("Server-Timing: a", "Repr-Digest: sha-256=:AAAA:"))), routes=ON)
    a = stage.client(p).get("/", ALL, "TE: trailers", "Connection: TE")
    assert plain(a) == TEXT and a.trailers == [("Server-Timing", "a")]


# ---- cut answers ----------------------------------------------------------------

def cut(c, how):
    c.request()
    c.send("HTTP/1.1 200 OK\r\n%s\r\n" % HTML)
    if how == "chunked":
        c.send("Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 60000, TEXT[:60000], "\r\n1000\r\nabc")
    elif how == "sized":
        c.send("Content-Length: 100000\r\n\r\n", TEXT[:60000], "abc")
    elif how == "bad":
        c.send("Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 60003, TEXT[:60000], "abc\r\nnonsense\r\n")


@pytest.mark.whole_calls("what the client's socket does not take at once is lost with a cut")
@pytest.mark.parametrize("coding", codings.NAMES)
@pytest.mark.parametrize("how,cause", [("chunked", "answer_cut"), ("sized", "answer_cut"), ("bad", "answer_broken")])
def test_a_cut_answer_is_cut(stage, coding, how, cause):
    """Neither its framing nor its coding has an end, and what came before is there."""
    p = stage.proxy(stage.origin(lambda c: cut(c, how)), routes=ON)
    c = stage.client(p)
    c.request("GET", "/", "Accept-Encoding: " + coding)
    a = c.head()
    with pytest.raises(EOFError):
        c.body_into(a)
    d = codings.decoder(coding)
    assert d.feed(a.body) == TEXT[:60000] + b"abc" and not d.ended
    assert p.log(1)[0]["cause"] == cause


def test_an_answer_that_stalls_is_cut(stage):
    def script(c):
        cut(c, "sized")
        c.hold()
    p = stage.proxy(stage.origin(script), routes=ON, timeouts={"between_bytes": "300ms"})
    c = stage.client(p)
    c.request("GET", "/", ALL)
    a = c.head()
    with pytest.raises(EOFError):
        c.body_into(a)
    d = codings.decoder("zstd")
    assert d.feed(a.body) == TEXT[:60000] + b"abc" and not d.ended and p.log(1)[0]["cause"] == "answer_stalled"


def test_an_origin_that_ends_by_closing(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n%s\r\n\r\n" % HTML, TEXT)
    p = stage.proxy(stage.origin(script), routes=ON)
    assert plain(stage.client(p).get("/", ALL)) == TEXT


def test_clients_that_leave(stage):
    p = stage.proxy(stage.origin(says(NOISE * 10, HTML)), routes=ON, workers=2)
    for i in range(30):
        c = stage.client(p, receive_buffer=8192)
        c.request("GET", "/", "Accept-Encoding: " + codings.NAMES[i % 3])
        c.exactly(1 + 1000 * (i % 4))
        (c.rst if i % 2 else c.close)()
    assert plain(stage.client(p).get("/", ALL)) == NOISE * 10


# ---- bounds -----------------------------------------------------------------------

def test_memory_for_compression_is_bounded(stage):
    """When the encoders hold what they may, answers go as they are."""
    p = stage.proxy(stage.origin(says(NOISE * 10, HTML, 'ETag: "v1"')), routes=ON, limits={"compress": "200KiB"})
    held = [stage.client(p, receive_buffer=8192) for _ in range(6)]
    kinds = []
    for c in held:
        c.request("GET", "/", "Accept-Encoding: zstd")
        a = c.head()
        kinds.append(a.get("Content-Encoding"))
        assert a.get("Vary") == "Accept-Encoding" and a.get("ETag") == ('W/"v1"' if kinds[-1] else '"v1"')
    assert kinds == ["zstd"] * 2 + [None] * 4
    for c in held:
        c.close()
    p.out.wait_count(6)
    assert stage.client(p).get("/", "Accept-Encoding: zstd").get("Content-Encoding") == "zstd"
    p.signal(15)
    p.wait()
    assert "compressed=3" in p.err.text() and "compress_refused=4" in p.err.text()


# ---- answers of our own -------------------------------------------------------------

def test_fixed_answers(stage):
    body = TEXT[:20000].decode()
    routes = ['{path: /large, answer: {type: text/html, body: "%s"}}' % (body * 4).replace("\n", "\\n"),
              '{path: /small, answer: {type: text/html, body: "ok"}}', '{path: /away, redirect: {to: /x}}',
              '{answer: {status: 404, type: text/html, body: "%s"}}' % body.replace("\n", "\\n")]
    p = stage.text(harness.config({}, routes=routes, more="defaults: {compress: on}\n"))
    c = stage.client(p)
    for coding in codings.NAMES:
        a = c.get("/", "Accept-Encoding: " + coding)
        assert a.status == 404 and a.get("Content-Encoding") == coding and a.get("Content-Length") == str(len(a.body))
        assert plain(a) == octets(body) and a.get("Vary") == "Accept-Encoding"
        h = c.ask("HEAD", "/", "Accept-Encoding: " + coding)
        assert h.get("Content-Length") == a.get("Content-Length") and h.get("Content-Encoding") == coding
        assert c.get("/", "Accept-Encoding: " + coding, version="1.1", host="b").get("Content-Encoding") == coding
    assert c.get("/").text() == body
    assert c.get("/small", ALL).text() == "ok" and c.get("/away", ALL).status == 302
    assert plain(c.get("/large", ALL)) == octets(body * 4)


def test_answers_of_a_cause_are_plain(stage):
    p = stage.proxy({"app": "127.0.0.1:1"}, routes=ON)
    a = stage.client(p).get("/", ALL)
    assert a.status == 502 and a.get("Content-Encoding") is None and a.get("Vary") is None


def test_many_at_once(stage, long):
    """Two workers, clients of all kinds at once: no answer gets what another one made."""
    def script(c):
        while True:
            r = c.request()
            if r is None:
                return
            n = int(r.target[1:])
            body = (b"%06d " % n) * (1000 + 997 * (n % 50))
            if n % 3:
                c.reply(body, HTML)
            else:
                c.send("HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n" % HTML)
                for at in range(0, len(body), 7777):
                    c.send("%x\r\n" % len(body[at:at + 7777]), body[at:at + 7777], "\r\n")
                c.send("0\r\n\r\n")
    p = stage.proxy(stage.origin(script), routes=["{service: app, compress: on}"], workers=2)
    errors = []

    def run(k):
        try:
            c = stage.client(p, receive_buffer=4096 if k % 4 == 0 else None)
            for i in range(200 if long else 25):
                n = k * 1000 + i
                a = c.get("/%d" % n, "Accept-Encoding: " + codings.NAMES[(i + k) % 3])
                assert plain(a) == (b"%06d " % n) * (1000 + 997 * (n % 50)), n
        except BaseException as e:  # noqa: B902
            errors.append(e)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
