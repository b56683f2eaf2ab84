"""thimble_short (tests/shim/short.c) does what it is for: else the tests that run on it would say nothing."""
import os

import pytest

import harness


@pytest.fixture
def short(monkeypatch):
    path = os.path.join(os.path.dirname(harness.BINARY), "thimble_short")
    if not os.access(path, os.X_OK):
        pytest.skip("no thimble_short beside this program")
    monkeypatch.setattr(harness, "BINARY", path)


def pieces(c):
    c.request()
    c.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    c.send(*[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 20, "0\r\n\r\n")
    c.hold()


def test_byte_by_byte_at_first_and_in_pieces_behind(stage, short):
    p = stage.proxy(stage.origin(pieces), env={"SHORT_BYTES": "1", "SHORT_FIRST": "8192", "SHORT_MOST": "3000", "SHORT_AGAIN": "0"})
    a = stage.client(p).get("/")
    assert a.body == b"x" * 20000
    assert a.chunks[:5000] == [1] * 5000 and max(a.chunks) > 100


def test_all_byte_by_byte(stage, short):
    p = stage.proxy(stage.origin(pieces), env={"SHORT_BYTES": "1", "SHORT_FIRST": "0", "SHORT_AGAIN": "30"})
    a = stage.client(p).get("/")
    assert a.chunks == [1] * 20000
