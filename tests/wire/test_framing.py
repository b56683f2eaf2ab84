"""Where a message ends: one length, on both sides, or none at all."""
import pytest


def refused(stage, text, statuses=(400,)):
    """Sends it; the answer is an error, the connection ends, no request is whole at the origin."""
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send(text)
    a = c.answer()
    assert a.status in statuses and "close" in a.get("Connection").lower()
    assert c.ended() == b""
    assert not o.requests
    return a


HEAD = "POST / HTTP/1.1\r\nHost: a.test\r\n"


def test_two_lengths_is_400(stage):
    refused(stage, HEAD + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")


def test_length_beside_chunked_is_400(stage):
    refused(stage, HEAD + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("length", ["+3", "-1", "3,3", "3 3", "0x3", "", "18446744073709551617", "3.0"])
def test_a_length_that_is_no_number_is_400(stage, length):
    refused(stage, HEAD + "Content-Length: %s\r\n\r\nabc" % length)


@pytest.mark.parametrize("coding", [
    "gzip, chunked", "chunked, chunked", "chunked, identity", "identity", "xchunked", ",chunked", "chunked;q=1",
    "\x0bchunked", '"chunked"'])
def test_a_coding_that_is_not_just_chunked_is_refused(stage, coding):
    refused(stage, HEAD + "Transfer-Encoding: %s\r\n\r\n0\r\n\r\n" % coding, (400, 501))


def test_two_transfer_encodings_are_refused(stage):
    refused(stage, HEAD + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (400, 501))


def test_chunked_in_any_case_is_chunked(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send(HEAD + "Transfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert c.answer().text() == "POST / 3"


def test_chunked_in_http_1_0_is_refused(stage):
    refused(stage, "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("line", [
    "Host : a", " Folded: x", "No colon", "Bad name: x", "X: a\rb", "X: a\0b", ": empty", "X\x7f: y"])
def test_field_lines_that_are_none_are_400(stage, line):
    refused(stage, "GET / HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n" % line)


def test_bare_line_feeds_are_400(stage):
    refused(stage, "GET / HTTP/1.1\nHost: a.test\n\n")


@pytest.mark.parametrize("hosts", ["", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: u@a\r\n", "Host: a,b\r\n",
                                   "Host: a/b\r\n"])
def test_host_is_exactly_one_host(stage, hosts):
    refused(stage, "GET / HTTP/1.1\r\n%s\r\n" % hosts)


@pytest.mark.parametrize("line", ["GET / HTTP/2.0", "GET / HTTP/1.2", "GET / http/1.1", "GET /", "GET  / HTTP/1.1",
                                  "GET /a b HTTP/1.1", "GET /#f HTTP/1.1", "GET nopath HTTP/1.1", "G@T / HTTP/1.1"])
def test_request_lines_that_are_none(stage, line):
    refused(stage, line + "\r\nHost: a.test\r\n\r\n", (400, 501, 505))


@pytest.mark.parametrize("body", [
    "g\r\n", "-1\r\n", "0x3\r\nabc\r\n", "3\r\nabcd\r\n", "3\r\nabc\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n",
    "3;\x01\r\nabc\r\n", "10000000000000000\r\n", "\r\n", "3\r\nabcXX0\r\n\r\n"])
def test_bad_chunks_are_never_a_whole_request(stage, body):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n" + body)
    got = c.ended()
    assert not got or got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 502 ")), got
    o.wait_idle()
    assert not o.requests


def test_chunks_are_framed_anew(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o))
    c.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n", "5;ext=\"a b\"\r\nhello\r\n", "000001\r\n!\r\n", "0\r\n\r\n")
    assert c.answer().text() == "POST / 6"
    r = o.requests[0]
    assert r.body == b"hello!" and sum(r.chunks) == 6 and r.get("Transfer-Encoding") == "chunked"


def test_chunked_answer_streams_piece_by_piece(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in ("one", "two", "three"):
            c.send("%x\r\n%s\r\n" % (len(word), word))
            assert go.acquire(timeout=10)
        c.send("0\r\n\r\n")
        c.hold()
    import threading
    go = threading.Semaphore(0)
    c = stage.client(stage.proxy(stage.origin(script)))
    c.request("GET", "/")
    assert c.head().get("Transfer-Encoding") == "chunked"
    for word in (b"one", b"two", b"three"):      # the next comes only after this one has
        got = b""
        while len(got) < len(word):
            n = int(c.until(b"\r\n"), 16)
            got += c.exactly(n)
            assert c.exactly(2) == b"\r\n"
        assert got == word
        go.release()
    assert c.exactly(5) == b"0\r\n\r\n"


def trailing(line):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n%s\r\n" % line)
        c.wait_closed()
    return script


ASK = HEAD + "TE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n%s\r\n"


def test_trailers_pass_both_ways(stage):
    o = stage.origin(trailing(""))
    a = stage.client(stage.proxy(o)).send(ASK % "").answer()
    assert a.trailers == [("X-Sum", "7")]
    assert o.requests[0].trailers in ([], [("X-Sum", "6")])     # we cannot know whether an origin takes them


FORBIDDEN = ["Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", "Host: evil\r\n", "Connection: close\r\n",
             "Authorization: x\r\n"]


@pytest.mark.parametrize("line", FORBIDDEN)
def test_what_trailers_must_not_say_never_passes(stage, line):
    """Dropped, or the whole message refused or cut."""
    o = stage.origin(trailing(line))
    p = stage.proxy(o, timeouts={"idle": "300ms"})
    got = stage.client(p).send(ASK % line).ended()
    assert all(r.trailers in ([], [("X-Sum", "6")]) for r in o.requests)
    assert line.encode() not in got.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("head", [
    "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: x\r\n", "Content-Length: -3\r\n",
    "Transfer-Encoding: gzip, chunked\r\nX y: z\r\n", "Bad name: x\r\n", "X: a\0b\r\n"])
def test_an_answer_that_is_no_http_is_502(stage, head):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n" + head + "\r\nabcd")
        c.wait_closed()
    o = stage.origin(script)
    a = stage.client(stage.proxy(o)).get("/")
    assert a.status == 502 and a.error
    o.wait_idle()


@pytest.mark.parametrize("line", ["HTTP/2 200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 999999 OK", "ICY 200 OK", "hello"])
def test_a_status_line_that_is_none_is_502(stage, line):
    def script(c):
        c.request()
        c.send(line + "\r\nContent-Length: 0\r\n\r\n")
        c.wait_closed()
    assert stage.client(stage.proxy(stage.origin(script))).get("/").status == 502


def test_bad_chunks_from_the_origin_are_cut_not_ended(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "zz\r\n0\r\n\r\n")
        c.wait_closed()
    c = stage.client(stage.proxy(stage.origin(script)))
    c.request("GET", "/")
    assert not c.ended().endswith(b"0\r\n\r\n")


def test_bytes_behind_an_answer_are_nobodys(stage):
    def script(c):
        c.request()
        c.reply("first", "X-N: 1")
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        c.wait_closed()
    def second(c):
        c.request()
        c.reply("second")
        c.hold()
    o = stage.origin([script, second])
    c = stage.client(stage.proxy(o))
    assert c.get("/").text() == "first"
    assert c.get("/").text() == "second"


def test_a_body_on_204_is_not_the_next_answer(stage):
    def script(c):
        c.request()
        c.send("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        c.wait_closed()
    def second(c):
        c.request()
        c.reply("clean")
        c.hold()
    c = stage.client(stage.proxy(stage.origin([script, second])))
    assert c.get("/").status == 204
    assert c.get("/").text() == "clean"
