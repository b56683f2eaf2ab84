"""1 GiB each way through TLS (8 MiB without --long), and not a byte is another: on the client's side and on the endpoint's."""
import hashlib
import random
import ssl

import pytest

from test_tls import Secure, WAYS, certificate, context

PIECE = random.Random(11).randbytes(1 << 18)
TIMES = {"first_byte": "120s", "between_bytes": "60s", "body": "60s", "write": "60s"}


def pour(stream, size):
    """In pieces of changing sizes."""
    sizes, view = random.Random(5), memoryview(PIECE)
    for _ in range(size // len(PIECE)):
        at = 0
        while at < len(PIECE):
            n = sizes.choice((777, 16384, 50000, 200000))
            stream.sock.sendall(view[at:at + n])
            at += n


def expected(size):
    h = hashlib.sha256()
    for _ in range(size // len(PIECE)):
        h.update(PIECE)
    return h.hexdigest()


def both_ways(size):
    """The script of an origin that takes one body, and sends one."""
    def script(c):
        while True:
            h = hashlib.sha256()
            r = c.request(h.update)
            if r is None:
                return
            if r.method == "POST":
                c.reply(h.hexdigest())
            else:
                c.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                pour(c, size)
    return script


def ask(c, size):
    c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % size)
    pour(c, size)
    assert c.answer().text() == expected(size)
    h = hashlib.sha256()
    c.request("GET", "/", host="a.test").answer(sink=h.update)
    assert h.hexdigest() == expected(size)


@pytest.mark.whole_calls("it takes too long")
@pytest.mark.parametrize("version, park", WAYS)
def test_with_clients(stage, long, version, park):
    size = (1 << 30) if long else (8 << 20)
    cert, key = certificate(stage)
    p = stage.proxy(stage.origin(both_ways(size)), listen="tls: {certificates: [{cert: %s, key: %s}]%s}" % (cert, key, park), timeouts=TIMES)
    c = Secure(p.address, context(cert, version))
    c.sock.settimeout(60)
    stage.clients.append(c)
    ask(c, size)


@pytest.mark.whole_calls("it takes too long")
@pytest.mark.parametrize("version, park", WAYS)
def test_with_endpoints(stage, long, version, park):
    """What goes up is sealed by the SSL object, and what comes down is opened without it."""
    size = (1 << 30) if long else (8 << 20)
    cert, key = certificate(stage, "inner.test")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    server.minimum_version = server.maximum_version = version

    def script(c):
        c.sock = server.wrap_socket(c.sock, server_side=True)
        both_ways(size)(c)
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], tls: {ca: %s, name: inner.test%s}}" % (o.address, cert, park)}, timeouts=TIMES)
    c = stage.client(p, patience=60)
    try:
        ask(c, size)
    except (EOFError, OSError) as e:
        raise AssertionError("%r\n%s\n%s" % (e, p.out.text(), p.err.text())) from e
    assert o.connections == 1
    c.close()
    p.stop()
