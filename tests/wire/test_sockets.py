"""Unix sockets and IPv6, on both sides."""
import os
import socket

import pytest

from harness import Client, config


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback here")


def test_a_unix_socket_of_the_origin(stage):
    o = stage.origin(path=str(stage.folder / "app.sock"))
    c = stage.client(stage.proxy({"app": [o.address]}))
    for i in range(3):
        assert c.get("/%d" % i).text() == "GET /%d 0" % i
    assert o.connections == 1


def test_a_unix_socket_that_is_not_there_is_502(stage):
    p = stage.proxy({"app": ["unix:" + str(stage.folder / "none.sock")]})
    assert stage.client(p).get("/").status == 502


def test_a_unix_socket_for_clients(stage):
    o = stage.origin()
    path = str(stage.folder / "front.sock")
    p = stage.text(config({"app": o.address}).replace("127.0.0.1:@PORT@", "unix:" + path))
    assert "listening on unix:" + path in p.err.text()
    c = stage.client(path)
    assert c.get("/").text() == "GET / 0" and c.get("/").status == 200
    c.close()
    p.stop()
    assert not os.path.exists(path)


def test_a_left_over_unix_socket_is_replaced_but_a_living_one_is_not(stage):
    o = stage.origin()
    path = str(stage.folder / "front.sock")
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(path)
    dead.close()
    text = config({"app": o.address}).replace("127.0.0.1:@PORT@", "unix:" + path)
    stage.text(text)
    assert stage.client(path).get("/").status == 200
    second = stage.start(["run", "-c", stage.file("second.yaml", text)], ready=False)
    assert second.wait() == 1
    second.check_clean()
    assert stage.client(path).get("/").status == 200


@needs_ipv6
def test_ipv6_on_both_sides(stage):
    o = stage.origin(family=socket.AF_INET6)
    p = stage.text(config({"app": o.address}).replace("127.0.0.1:@PORT@", "[::1]:@PORT@"))
    assert "listening on [::1]:%d" % p.port in p.err.text()
    c = stage.client(("::1", p.port))
    assert c.get("/").status == 200
    assert o.requests[0].get("X-Forwarded-For").strip("[]") == "::1"
    assert p.log()[0]["client"] == "::1"


@needs_ipv6
def test_any_address_takes_both_families(stage):
    p = stage.text(config({"app": stage.origin().address}).replace("127.0.0.1:@PORT@", ":@PORT@"))
    assert stage.client(("127.0.0.1", p.port)).get("/").status == 200
    assert stage.client(("::1", p.port)).get("/").status == 200
    assert p.log()[0]["client"] == "127.0.0.1"     # never ::ffff:127.0.0.1


def test_two_listeners(stage):
    o = stage.origin()
    path = str(stage.folder / "b.sock")
    text = config({"app": o.address})
    first = text.index("listen:")
    line = text[first:text.index("\n", first)]
    p = stage.text(text.replace(line, "listen:\n  - address: '127.0.0.1:@PORT@'\n  - address: 'unix:%s'" % path))
    assert stage.client(p).get("/").status == 200
    assert Client(path).get("/").status == 200


def test_a_client_on_a_unix_socket_has_no_address_to_forward(stage):
    o = stage.origin()
    for trusted, there in (("none", "unknown"), ("['unix:']", "1.2.3.4, unknown")):
        path = str(stage.folder / ("c%d.sock" % len(there)))
        text = config({"app": o.address}, listen="trusted_proxies: " + trusted).replace("127.0.0.1:@PORT@", "unix:" + path)
        stage.text(text)
        assert Client(path).get("/", "X-Forwarded-For: 1.2.3.4").status == 200
        assert o.requests[-1].get("X-Forwarded-For") == there


def test_trusting_unix_peers_trusts_no_others(stage):
    o = stage.origin()
    for trusted in ("['unix:']", "[10.0.0.0/8, 'unix:']"):
        assert stage.client(stage.proxy(o, listen="trusted_proxies: " + trusted)).get("/", "X-Forwarded-For: 6.6.6.6").status == 200
        assert o.requests[-1].get("X-Forwarded-For") == "127.0.0.1"
