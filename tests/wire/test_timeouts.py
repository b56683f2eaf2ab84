"""Each time-out ends what it should, when it should, and says so."""
import time

import pytest

SHORT = "300ms"


class Clock:
    def __enter__(self):
        self.start = time.monotonic()
        return self

    def __exit__(self, *_):
        self.spent = time.monotonic() - self.start


def took(clock, low=0.25, high=1.5):
    assert low <= clock.spent <= high, "%.2f s" % clock.spent


def dead_address(stage):
    """An address where a connection neither opens nor fails: a listener whose queue is full."""
    import socket
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(0)
    fill = []
    for _ in range(4):
        f = socket.socket()
        f.setblocking(False)
        f.connect_ex(s.getsockname())
        fill.append(f)
    stage.clients += [s] + fill      # closed at the end of the test
    return "127.0.0.1:%d" % s.getsockname()[1]


def test_a_head_that_does_not_end(stage):
    c = stage.client(stage.proxy(stage.origin(), timeouts={"head": SHORT}))
    c.send("GET / HTTP/1.1\r\nHost:")
    with Clock() as clock:
        got = c.ended()
    assert not got or got.startswith(b"HTTP/1.1 408 ")
    took(clock)


def test_a_head_that_drips_is_no_longer_alive(stage):
    """The time-out is for the whole head, not for each byte."""
    c = stage.client(stage.proxy(stage.origin(), timeouts={"head": SHORT}))
    with Clock() as clock:
        c.send("GET / HTTP/1.1\r\nX: ")
        try:
            while c.silent(0.05):
                c.send("x")
            c.ended()
        except OSError:
            pass
    took(clock)


def test_a_connection_that_says_nothing(stage):
    c = stage.client(stage.proxy(stage.origin(), timeouts={"idle": SHORT, "head": SHORT}))
    with Clock() as clock:
        got = c.ended()
    assert got == b""
    took(clock)


def test_an_idle_connection_between_requests(stage):
    c = stage.client(stage.proxy(stage.origin(), timeouts={"idle": SHORT}))
    assert c.get("/").status == 200
    with Clock() as clock:
        assert c.rest() == b""
    took(clock)


def test_a_body_that_stops(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, timeouts={"body": SHORT}))
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc")
    with Clock() as clock:
        a = c.answer()
    assert a.status == 408
    took(clock)
    o.wait_idle()
    assert not o.requests


def test_connect(stage):
    p = stage.proxy({"app": dead_address(stage)}, timeouts={"connect": SHORT})
    c = stage.client(p)
    with Clock() as clock:
        a = c.get("/")
    assert a.status in (502, 504) and a.error == "connection_timeout"
    took(clock, high=2.5)


def test_connect_time_out_goes_to_the_other_endpoint(stage):
    o = stage.origin()
    p = stage.proxy({"app": [dead_address(stage), o.address]}, timeouts={"connect": SHORT})
    c = stage.client(p)
    for _ in range(2):
        assert c.get("/").status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_first_byte_is_504_and_not_retried(stage, method):
    def script(c):
        c.request()
        c.wait_closed()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts={"first_byte": SHORT}))
    with Clock() as clock:
        a = c.ask(method, "/", body=b"")
    assert a.status == 504 and a.error == "http_response_timeout"
    took(clock)
    assert len(o.requests) == 1
    o.wait_idle()


@pytest.mark.parametrize("framing", ["Content-Length: 100", "Transfer-Encoding: chunked"])
def test_between_bytes_is_a_cut_that_the_client_can_tell(stage, framing):
    def script(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\n%s\r\n\r\n3\r\nabc\r\n" % framing)
        c.wait_closed()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts={"between_bytes": SHORT}))
    c.request("GET", "/")
    assert c.head().status == 200
    with Clock() as clock:
        got = c.ended()
    if framing.endswith("chunked"):
        assert b"".join(got.split(b"\r\n")[1::2]) == b"abc" and not got.endswith(b"0\r\n\r\n")
    else:
        assert got == b"3\r\nabc\r\n"
    took(clock)
    o.wait_idle()


def test_an_idle_upstream_connection_is_given_up(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, timeouts={"upstream_idle": SHORT}))
    assert c.get("/").status == 200
    with Clock() as clock:
        o.wait_idle()
    took(clock)
    assert c.get("/").status == 200 and o.connections == 2


def test_the_cause_is_in_the_access_log(stage):
    def script(c):
        c.request()
        c.wait_closed()
    p = stage.proxy(stage.origin(script), timeouts={"first_byte": SHORT})
    assert stage.client(p).get("/").status == 504
    line = p.log()[0]
    assert line["status"] == 504 and "time" in line["cause"]


def test_a_stalled_upload_is_the_clients_fault(stage):
    o = stage.origin(lambda c: c.request())
    c = stage.client(stage.proxy(o, timeouts={"first_byte": "100ms", "body": "400ms"}))
    c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na")
    assert c.answer().status == 408
    assert not o.requests


def test_a_slow_upload_is_not_the_origins_fault(stage):
    o = stage.origin()
    c = stage.client(stage.proxy(o, timeouts={"first_byte": "100ms", "body": "2s"}))
    c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
    for piece in "abcd":
        time.sleep(0.08)
        c.send(piece)
    assert c.answer().text() == "POST / 4"


def test_an_origin_that_takes_nothing_of_a_request(stage):
    def script(c):
        c.head()
        c.hold()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts={"first_byte": "9s", "write": "300ms", "body": "9s"}))
    c.sock.settimeout(5)
    c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
    piece = b"x" * 65536
    try:
        for _ in range(1000):
            c.sock.sendall(piece)
    except OSError:
        pass        # the proxy has answered and reads no more
    a = c.answer()
    assert (a.status, a.error) == (504, "connection_write_timeout")


def test_an_answers_head_that_drips_is_no_longer_alive(stage):
    def script(c):
        c.request()
        for b in "HTTP/1.1 200 OK\r\nX: " + "y" * 60:
            c.send(b)
            time.sleep(0.02)
        c.hold()
    c = stage.client(stage.proxy(stage.origin(script), timeouts={"first_byte": "400ms"}))
    with Clock() as clock:
        assert c.get("/").status == 504
    took(clock, low=0.3, high=1.2)


def test_a_wait_for_a_connection_ends(stage):
    def script(c):
        c.request()
        c.wait_closed()
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], max_connections: 1}" % o.address},
                    timeouts={"queue": SHORT, "first_byte": "9s"})
    stage.client(p).request("GET", "/stuck")
    o.wait(1)
    with Clock() as clock:
        a = stage.client(p).get("/waits")
    assert (a.status, a.error) == (503, "connection_limit_reached")
    took(clock)
