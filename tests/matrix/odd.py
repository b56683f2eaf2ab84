"""Odd requests: those of the protocol cases, our own plain ones, and mutations of both.  The same seed gives the same."""
import json
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "cases")
sys.path.append(CASES)
from run_http1 import chunk_bytes  # noqa: E402

MOST = 20000        # bytes of one conversation
HOST = b"Host: a.test\r\n"

PLAIN = [b.replace(b"@", HOST) for b in (
    b"GET / HTTP/1.1\r\n@\r\n",
    b"GET /a/../b//c?x=%2F&y HTTP/1.1\r\n@Accept: */*\r\nCookie: a=1; b=2\r\n\r\n",
    b"HEAD /h HTTP/1.1\r\n@\r\nGET /after-head HTTP/1.1\r\n@\r\n",
    b"POST /p HTTP/1.1\r\n@Content-Length: 5\r\n\r\nhello",
    b"POST /p0 HTTP/1.1\r\n@Content-Length: 0\r\n\r\nGET /after HTTP/1.1\r\n@\r\n",
    b"POST /c HTTP/1.1\r\n@Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
    b"POST /ct HTTP/1.1\r\n@Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\na\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nGET /after HTTP/1.1\r\n@\r\n",
    b"PUT /u HTTP/1.1\r\n@Content-Length: 60\r\n\r\nGET /inside HTTP/1.1\r\n@\r\nabcdefghijklmnopqrstuvwxyz0123456789"[:120],
    b"DELETE /d HTTP/1.1\r\n@Content-Length: 3\r\n\r\nabcGET /after HTTP/1.1\r\n@\r\n",
    b"OPTIONS * HTTP/1.1\r\n@\r\n",
    b"GET http://a.test/abs?x HTTP/1.1\r\n@\r\n",
    b"POST /e HTTP/1.1\r\n@Expect: 100-continue\r\nContent-Length: 4\r\n\r\nwaitGET /after HTTP/1.1\r\n@\r\n",
    b"GET /old HTTP/1.0\r\n\r\n",
    b"POST /old HTTP/1.0\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nokGET /after HTTP/1.1\r\n@\r\n",
    b"GET /1 HTTP/1.1\r\n@\r\nPOST /2 HTTP/1.1\r\n@Content-Length: 4\r\n\r\nbodyGET /3 HTTP/1.1\r\n@Connection: close\r\n\r\n",
    b"GET /g HTTP/1.1\r\n@Content-Length: 9\r\n\r\nGET /x H\nGET /after HTTP/1.1\r\n@\r\n",
    b"GET /ws HTTP/1.1\r\n@Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
    b"PURGE /own HTTP/1.1\r\n@\r\nQUERY /own HTTP/1.1\r\n@Content-Length: 1\r\n\r\nq",
)]

LENGTHS = [b"0", b"1", b"4", b"5", b"6", b"+5", b"-5", b"05", b"005", b"0x5", b"5 ", b" 5", b"5\t", b"\x0b5", b"5\x0c", b"5,5", b"5, 5", b"5, 6",
           b"5;", b"5e0", b"5.0", b"", b"5 5", b"18446744073709551621", b"4294967301", b"9223372036854775808", b"\xb2", b"five", b"\"5\""]
CODINGS = [b"chunked", b"Chunked", b"chunked ", b" chunked", b"\tchunked", b"chunked\t", b"\x0bchunked", b"chunked\x0c", b"identity", b"gzip", b"gzip, chunked",
           b"chunked, gzip", b"chunked, chunked", b"chunked,", b",chunked", b"chunked;a=1", b"\"chunked\"", b"'chunked'", b"xchunked", b"chunkedx",
           b"chunk", b"identity, chunked", b"chunked, identity", b"", b"chunked\r\n ", b"x,\r\n\tchunked", b"\xa0chunked", b"chunked\0"]
SIZES = [b"5", b"05", b"0000000000000005", b"00000000000000000000000000000005", b"5 ", b" 5", b"5\t", b"0x5", b"+5", b"-1", b"5;a", b"5;a=b", b"5;a=\"b\"", b"5 ;a",
         b"5;a=\"\r\n\"", b"5;a\nb", b"5\r", b"5,", b"5_0", b"g", b"", b"FFFFFFFFFFFFFFFF", b"10000000000000005", b"fffffffffffffff5", b"5\0", b"5\n"]
FIELDS = [b"Content-Length: %s", b"Transfer-Encoding: %s", b"content-length: %s", b"TRANSFER-ENCODING: %s", b"Content-Length:%s", b"Content-Length : %s",
          b"Transfer-Encoding :%s", b" Content-Length: %s", b"\tTransfer-Encoding: %s", b"Content_Length: %s", b"Transfer_Encoding: %s", b"Content-Length\0: %s",
          b"Transfer-Encoding\r\n : %s", b"X: y\r\n Content-Length: %s", b"X: y\nTransfer-Encoding: %s", b"X: y\rContent-Length: %s", b"Content-Length:\r\n %s",
          b"X-Content-Length: %s", b"Transfer\xadEncoding: %s", b"Content-Length: 5\r\nContent-Length: %s", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: %s"]
OTHERS = [b"Connection: close", b"Connection: keep-alive", b"Connection: content-length", b"Connection: close, transfer-encoding", b"Connection: host", b"Connection: x-y, te",
          b"Keep-Alive: timeout=1", b"Proxy-Connection: close", b"TE: trailers", b"TE: chunked", b"Trailer: Content-Length", b"Upgrade: h2c", b"Upgrade: TLS/1.0",
          b"Expect: 100-continue", b"Expect: x", b"Host: b.test", b"Host:", b"Host: a.test:80", b"Host: a.test, b.test", b"Host: a@b.test", b"HTTP2-Settings: AAMAAABk",
          b"Content-Encoding: chunked", b"Range: bytes=0-1", b"X-HTTP-Method-Override: DELETE", b"X: \x80\xff", b"X:\x01", b": empty", b"novalue", b"X\xe9: 1", b"(x): 1",
          b"Content-Type: multipart/form-data; boundary=x", b"Max-Forwards: 0", b"Sec-WebSocket-Key: x"]
BYTES = [b"\r", b"\n", b"\r\n", b"\t", b" ", b"\0", b"\x0b", b"\x0c", b"\x1f", b"\x7f", b"\x80", b"\xff", b",", b";", b":", b"\"", b"\\", b"%", b"#", b"0", b"\r\n\r\n", b"\n\n"]
ENDS = [b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b" \r\n", b"\x0b\r\n", b"\0\r\n", b""]
TARGETS = [b"/", b"*", b"//a.test/x", b"/a#b", b"/a b", b"http://b.test/x", b"http://a.test", b"https://a.test/", b"a.test:80", b"/%00", b"/..%2f..", b"/\x80", b"/a\\b", b"?x",
           b"", b"/" + b"l" * 3000, b"/%", b"/a;b", b"/a?b?c", b"file:///x", b"/x\t", b"/\"'<>"]
METHODS = [b"get", b"G@T", b"GET ", b"POST\t", b"CONNECT", b"TRACE", b"OPTIONS", b"PRI", b"M-SEARCH", b"GET\0", b"(GET)", b"", b"LOCK", b"\r\nGET", b"\nGET"]
VERSIONS = [b"HTTP/1.0", b"HTTP/1.1 ", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.01", b"HTTP/11", b"HTTP/1.1\t", b"", b"HTTP/1", b"XTTP/1.1"]


def seeds():
    """(name, bytes) of the protocol cases and of the plain requests."""
    out = [("plain-%d" % i, b) for i, b in enumerate(PLAIN)]
    folder = os.path.join(CASES, "http1")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for case in map(json.loads, f):
                steps = [{"x": s["drip"], "n": 1} if isinstance(s, dict) and "drip" in s else s for s in case["send"]]
                data = b"".join(chunk_bytes(s, case["name"]) or b"" for s in steps)
                if 0 < len(data) <= MOST:
                    out.append((case["name"], data))
    return out


# ---- mutations: each takes what there is and gives another -----------------

def at_line(rng, data, make):
    """Another form of one line; lines keep their ends."""
    lines = data.splitlines(keepends=True)
    i = rng.randrange(min(len(lines), 12))
    lines[i:i + 1] = make(lines[i])
    return b"".join(lines)


def add_field(rng, data):
    if rng.random() < 0.6:
        value = rng.choice(LENGTHS if rng.random() < 0.5 else CODINGS)
        field = rng.choice(FIELDS) % value
    else:
        field = rng.choice(OTHERS)
    return at_line(rng, data, lambda line: [line, field + b"\r\n"])


def change_value(rng, data):
    """Another value of a framing field that is there."""
    found = list(re.finditer(rb"(?i)\n(content-length|transfer-encoding):([^\r\n]*)", data))
    if not found:
        return add_field(rng, data)
    m = rng.choice(found)
    value = rng.choice(LENGTHS if m[1].lower() == b"content-length" else CODINGS)
    return data[:m.start(2)] + b" " + value + data[m.end(2):]


def change_chunk(rng, data):
    found = list(re.finditer(rb"\r\n([0-9a-fA-F]+)(;[^\r\n]*)?\r\n", data))
    if not found:
        return byte(rng, data)
    m = rng.choice(found)
    return data[:m.start(1)] + rng.choice(SIZES) + data[m.end() - 2:]


def start_line(rng, data):
    found = list(re.finditer(rb"(?m)^([A-Z]+) (\S+) (HTTP/1\.[01])", data))
    if not found:
        return byte(rng, data)
    m = rng.choice(found)
    part, values = rng.choice([(1, METHODS), (2, TARGETS), (3, VERSIONS)])
    return data[:m.start(part)] + rng.choice(values) + data[m.end(part):]


def byte(rng, data):
    i = rng.randrange(len(data) + 1)
    if rng.random() < 0.6:
        i = min(i, rng.randrange(200))
    return data[:i] + rng.choice(BYTES) + data[i + rng.randrange(2):]


def line_end(rng, data):
    return at_line(rng, data, lambda line: [line.rstrip(b"\r\n") + rng.choice(ENDS)])


def move_line(rng, data):
    how = rng.randrange(3)
    return at_line(rng, data, lambda line: [[line, line], [], [b" " + line]][how])


def cut(rng, data):
    return data[:rng.randrange(1, len(data) + 1)]


def append(rng, data):
    return data + rng.choice(PLAIN)


MUTATIONS = [add_field, add_field, change_value, change_value, change_chunk, start_line, byte, line_end, move_line, cut, append, append]


def conversations(seed, count):
    """`count` of (name, bytes): first the seeds as they are, shuffled, then mutations of them."""
    rng = random.Random(seed)
    first = seeds()
    rng.shuffle(first)
    plain = [s for s in first if s[0].startswith("plain-")]
    for i in range(count):
        if i < min(len(first), count // 2):
            yield first[i]
            continue
        name, data = rng.choice(plain if rng.random() < 0.6 else first)
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            data = rng.choice(MUTATIONS)(rng, data) or b"\r\n"
        yield "%s~%d" % (name, i), data[:MOST]
