#!/usr/bin/python3
"""Python's http.server as an origin: plain.py PORT ROOT"""
import email.utils
import http.server
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import ws  # noqa: E402

ROOT = sys.argv[2]
REPORT = os.environ.get("REPORT")
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.any
        raise AttributeError(name)

    def log_message(self, *a):
        pass

    def exactly(self, n):
        data = self.rfile.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def body(self):
        """http.server leaves the framing of bodies to its user."""
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            parts = []
            while True:
                line = self.rfile.readline(1000)
                if not line.endswith(b"\n"):
                    raise EOFError
                n = int(line.split(b";")[0], 16)
                if n == 0:
                    while self.rfile.readline(65536).strip():
                        pass
                    return b"".join(parts)
                parts.append(self.exactly(n))
                if self.exactly(2) != b"\r\n":
                    raise ValueError("chunk")
        return self.exactly(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, body, *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def any(self):
        target = self.requestline.split(" ")[1]
        try:
            if REPORT:
                data = self.body()
                with LOCK, open(REPORT, "a") as f:
                    f.write(json.dumps({"m": self.command, "t": target.encode("latin-1").hex(), "b": data.hex()}) + "\n")
                self.answer(200, b"ok\n")
                return
            first, _, second = target.split("?")[0].strip("/").partition("/")
            if target == "*":
                self.answer(200, b"", ("Allow", "GET, POST"))
                return
            getattr(self, "at_" + first)(second)
            self.wfile.flush()
        except (EOFError, ConnectionError):
            self.close_connection = True

    def at_echo(self, _):
        self.answer(200, self.body(), ("X-Method", self.command), ("X-Target", self.requestline.split(" ")[1]))

    def at_file(self, name):
        path = os.path.join(ROOT, os.path.basename(name))
        when = email.utils.formatdate(os.path.getmtime(path), usegmt=True)
        with open(path, "rb") as f:
            data = f.read()
        m = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if self.headers.get("If-Modified-Since") == when:
            self.answer(304, b"", ("Last-Modified", when))
        elif m:
            part = data[int(m[1]):int(m[2]) + 1]
            self.answer(206, part, ("Content-Range", "bytes %s-%s/%d" % (m[1], m[2], len(data))))
        else:
            self.answer(200, data, ("Last-Modified", when))

    def at_status(self, code):
        self.answer(int(code), b"" if code == "204" else b"status\n")

    def start(self, *fields):
        self.send_response(200)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def at_chunked(self, _):
        self.start(("Transfer-Encoding", "chunked"))
        for i in range(20):
            self.chunk(bytes([97 + i]) * 1000)
        self.wfile.write(b"0\r\n\r\n")

    def at_trailers(self, _):
        self.start(("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum"))
        self.chunk(b"with a trailer\n")
        self.wfile.write(b"0\r\nX-Sum: 17\r\n\r\n")

    def at_gzip(self, _):
        with open(os.path.join(ROOT, "words.gz"), "rb") as f:
            self.answer(200, f.read(), ("Content-Encoding", "gzip"))

    def at_slow(self, _):
        time.sleep(0.15)
        self.start(("Transfer-Encoding", "chunked"))
        self.chunk(b"slow, ")
        time.sleep(0.15)
        self.chunk(b"but whole\n")
        self.wfile.write(b"0\r\n\r\n")

    def at_redirect(self, _):
        self.answer(302, b"", ("Location", "/file/small?" + self.path.partition("?")[2]))

    def at_headers(self, _):
        self.answer(200, "".join("%s: %s\r\n" % f for f in self.headers.items()).encode("latin-1"))

    def at_bighead(self, _):
        fill = [("X-Fill-%02d" % i, "f" * 200) for i in range(30)]
        self.answer(200, b"big\n", *fill, ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; HttpOnly"),
                    ("Set-Cookie", "c=3; Max-Age=60"))

    def at_untilclose(self, _):
        self.start(("Connection", "close"))
        self.wfile.write(b"as long as it lasts\n" * 100)

    def at_cut(self, _):
        self.start(("Content-Length", "100000"))
        self.wfile.write(b"x" * 1000)
        self.close_connection = True

    def at_cutchunked(self, _):
        self.start(("Transfer-Encoding", "chunked"))
        self.chunk(b"x" * 1000)
        self.close_connection = True

    def at_gone(self, _):
        self.close_connection = True

    def at_early(self, _):
        self.close_connection = True
        self.answer(413, b"big\n", ("Connection", "close"))

    def at_interim(self, _):
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        self.wfile.flush()
        self.at_file("small")

    def at_ws(self, _):
        self.close_connection = True
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", ws.accept(self.headers["Sec-WebSocket-Key"]))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        first = 0
        while first & 15 != 8:
            first, data = ws.read(self.exactly)
            self.wfile.write(ws.frame(first, data, False))
            self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
