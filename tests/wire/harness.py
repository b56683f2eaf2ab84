"""What the wire tests stand on: the real program between a client of raw
sockets and an origin that does what a test's script says.

Nothing here is an HTTP library.  The readers are strict on purpose: an answer or
a request that bends the grammar raises Malformed, and so fails the test.  Nothing
sleeps where a line, a count or the state of a socket can be waited for.
"""
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(os.environ.get("THIMBLE", os.path.join(ROOT, "build", "asan", "thimble")))
SANITIZER = re.compile(r"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|CHECK failed)")
PATIENCE = 10.0     # seconds that a wait may take before the test fails
TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


class Malformed(Exception):
    """Bytes that are not the HTTP they claim to be."""


def octets(text):
    return text if isinstance(text, (bytes, bytearray)) else text.encode("latin-1")


def wait_until(question, what="condition", patience=PATIENCE):
    """Asks again and again until the answer is true, and returns it."""
    end = time.monotonic() + patience
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError("waited %.1f s in vain for: %s" % (patience, what))
        time.sleep(0.005)


def free_port():
    """A loopback port below the range that outgoing connections take theirs from."""
    while True:
        port = random.randint(10000, 31000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


# ---- reading HTTP strictly -------------------------------------------------

class Message:
    """A head and, once read, its body.  `line` is split at its first two spaces."""

    def __init__(self, head):
        line, _, rest = head.partition(b"\r\n")
        self.raw = head
        self.line = line.decode("latin-1").split(" ", 2)
        self.fields = []
        self.body = b""
        self.trailers = []
        self.chunks = None          # sizes, when the body came in chunks
        self.whole = False
        if b"\n" in line or b"\0" in head:
            raise Malformed(repr(head[:200]))
        self.fields = parse_fields(rest)

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name):
        """The one value of a field; None when absent, Malformed when repeated."""
        values = self.all(name)
        if len(values) > 1:
            raise Malformed("%s comes %d times: %r" % (name, len(values), values))
        return values[0] if values else None

    def text(self):
        return self.body.decode("latin-1")


class Answer(Message):
    def __init__(self, head):
        super().__init__(head)
        if not re.fullmatch(rb"HTTP/1\.[01] [1-5][0-9]{2} [^\r\n]*", head.partition(b"\r\n")[0]):
            raise Malformed("status line %r" % head[:80])
        self.version, self.status, self.reason = self.line[0], int(self.line[1]), self.line[2]

    @property
    def error(self):
        """`connection_refused` out of `Proxy-Status: thimble; error=connection_refused`."""
        m = re.search(r"error=([a-z_]+)", self.get("Proxy-Status") or "")
        return m and m[1]


class Request(Message):
    def __init__(self, head):
        super().__init__(head)
        if len(self.line) != 3 or self.line[2] not in ("HTTP/1.1", "HTTP/1.0"):
            raise Malformed("request line %r" % head[:80])
        self.method, self.target, self.version = self.line
        if len(self.all("Host")) != 1 and self.version == "HTTP/1.1":
            raise Malformed("Host %r" % self.all("Host"))
        self.connection = None      # number of the connection it came on


def parse_fields(block):
    fields = []
    for line in block.split(b"\r\n") if block else []:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.fullmatch(name) or re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise Malformed("field line %r" % line[:200])
        fields.append((name.decode(), value.strip(b" \t").decode("latin-1")))
    return fields


class Stream:
    """A socket with a reader; both ends of the proxy are made of it."""

    def __init__(self, sock, patience=PATIENCE):
        self.sock, self.buf = sock, bytearray()
        self.sock.settimeout(patience)

    # writing
    def send(self, *parts):
        for p in parts:
            self.sock.sendall(octets(p))
        return self

    def fin(self):
        self.sock.shutdown(socket.SHUT_WR)

    def rst(self):
        """Closes so that the peer gets a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    # reading
    def more(self):
        """One read into the buffer; False at the end of the stream."""
        data = self.sock.recv(262144)
        self.buf += data
        return bool(data)

    def take(self, n):
        data = bytes(self.buf[:n])
        del self.buf[:n]
        return data

    def exactly(self, n):
        while len(self.buf) < n:
            if not self.more():
                raise EOFError("end after %d of %d bytes: %r" % (len(self.buf), n, bytes(self.buf[:200])))
        return self.take(n)

    def until(self, mark):
        start = 0
        while True:
            at = self.buf.find(mark, start)
            if at >= 0:
                data = self.take(at)
                self.take(len(mark))
                return data
            start = max(0, len(self.buf) - len(mark) + 1)
            if not self.more():
                raise EOFError("end before %r: %r" % (mark, bytes(self.buf[:200])))

    def rest(self):
        """Everything until the peer closes.  A reset raises ConnectionResetError."""
        while self.more():
            pass
        return self.take(len(self.buf))

    def ended(self):
        """Waits for the end of the stream, clean or by reset, and returns what came before it."""
        try:
            return self.rest()
        except ConnectionResetError:
            return self.take(len(self.buf))

    def was_reset(self):
        """Waits for the end; True when it was a reset."""
        try:
            self.rest()
            return False
        except ConnectionResetError:
            return True

    def silent(self, seconds):
        """True when nothing comes, and no end either, for that long."""
        old = self.sock.gettimeout()
        self.sock.settimeout(seconds)
        try:
            self.more()
            return False
        except TimeoutError:
            return True
        except OSError:
            return False
        finally:
            self.sock.settimeout(old)

    def body_into(self, message, sink=None):
        """Reads the body that the head announces; `sink` takes the bytes instead of message.body."""
        take = sink or (lambda data: message.__setattr__("body", message.body + data))
        codings, lengths = message.all("Transfer-Encoding"), message.all("Content-Length")
        if codings:
            if codings != ["chunked"] or lengths:
                raise Malformed("framing %r %r" % (codings, lengths))
            message.chunks = []
            while True:
                size = self.until(b"\r\n")
                if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
                    raise Malformed("chunk size %r" % size[:40])
                n = int(size, 16)
                if n == 0:
                    break
                message.chunks.append(n)
                self._pass(n, take)
                if self.exactly(2) != b"\r\n":
                    raise Malformed("no CRLF behind a chunk")
            lines = []
            while True:
                line = self.until(b"\r\n")
                if not line:
                    break
                lines.append(line)
            message.trailers = parse_fields(b"\r\n".join(lines))
        elif lengths:
            if len(lengths) != 1 or not re.fullmatch(r"\d+", lengths[0]):
                raise Malformed("lengths %r" % lengths)
            self._pass(int(lengths[0]), take)
        else:
            return False
        message.whole = True
        return True

    def _pass(self, n, take):
        while n:
            if not self.buf and not self.more():
                raise EOFError("end with %d bytes of the body to come" % n)
            data = self.take(min(n, len(self.buf)))
            n -= len(data)
            take(data)


# ---- the client ------------------------------------------------------------

class Client(Stream):
    """A client of raw bytes."""

    def __init__(self, address, patience=PATIENCE, receive_buffer=None, source=None):
        family = (socket.AF_UNIX if isinstance(address, str) else
                  socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        sock = socket.socket(family)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(patience)
        if source:
            sock.bind((source, 0))
        sock.connect(address)
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(sock, patience)

    def head(self):
        return Answer(self.until(b"\r\n\r\n"))

    def answer(self, method="GET", sink=None):
        """One final answer with its body.  Interim ones before it are in `.interim`."""
        interim = []
        while True:
            a = self.head()
            if a.status >= 200 or a.status == 101:
                break
            interim.append(a)
        a.interim = interim
        if method == "HEAD" or a.status in (101, 204, 304):
            a.whole = True
        elif not self.body_into(a, sink):
            a.body = self.rest()        # framed by the close
            a.whole = True
        return a

    def request(self, method, target, *fields, body=None, host="example.test", version="1.1"):
        head = "%s %s HTTP/%s\r\n" % (method, target, version)
        if host is not None:
            head += "Host: %s\r\n" % host
        head += "".join(f + "\r\n" for f in fields)
        if body is not None:
            head += "Content-Length: %d\r\n" % len(body)
        return self.send(octets(head + "\r\n") + octets(body or b""))

    def ask(self, method, target, *fields, **more):
        """Sends a request and reads its answer."""
        return self.request(method, target, *fields, **more).answer(method)

    def get(self, target="/", *fields, **more):
        return self.ask("GET", target, *fields, **more)

    def post(self, target, body, *fields, **more):
        return self.ask("POST", target, *fields, body=body, **more)


# ---- the origin ------------------------------------------------------------

class Upstream(Stream):
    """One connection at the origin, in the hands of a script."""

    def __init__(self, sock, origin, number):
        super().__init__(sock, 30)
        self.origin, self.number = origin, number

    def head(self):
        """The next request's head, or None when the proxy closed instead."""
        while not self.buf:
            try:
                if not self.more():
                    return None
            except OSError:
                return None
        r = Request(self.until(b"\r\n\r\n"))
        r.connection = self.number
        self.origin.note(self.origin.heads, r)
        return r

    def body(self, request, sink=None):
        self.body_into(request, sink)
        request.whole = True
        self.origin.note(self.origin.requests, request)
        return request

    def request(self, sink=None):
        """The next whole request, or None when the proxy closed instead."""
        r = self.head()
        return r and self.body(r, sink)

    def reply(self, body=b"", *fields, status="200 OK"):
        body = octets(body)
        head = "HTTP/1.1 %s\r\n" % status + "".join(f + "\r\n" for f in fields)
        return self.send(octets(head + "Content-Length: %d\r\n\r\n" % len(body)) + body)

    def wait_closed(self):
        """Until the proxy closes or resets; returns what it sent before."""
        try:
            return self.ended()
        except OSError:
            return b""

    def hold(self):
        """Keeps the connection, silent, until the test is over."""
        self.origin.over.wait()


def echo(c):
    """The script that an origin has unless told otherwise: says what it was asked."""
    while True:
        r = c.request()
        if r is None:
            return
        c.reply("%s %s %d" % (r.method, r.target, len(r.body)))
        if "close" in (r.get("Connection") or "").lower():
            return


class Origin:
    """A listening origin.  `script` is called with an Upstream for each connection,
    in a thread of its own; a list gives the n-th connection the n-th script, and
    the last one to all that follow.  What a script raises fails the test, except
    that the proxy may always close."""

    def __init__(self, script=echo, family=socket.AF_INET, path=None, port=0, backlog=128, host=None):
        self.scripts = script if isinstance(script, list) else [script]
        self.lock = threading.Condition()
        self.heads, self.requests, self.errors = [], [], []
        self.connections = 0
        self.open = set()
        self.over = threading.Event()
        self.threads = []
        if path:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.bind(path)
            self.address = "unix:" + path
        else:
            host = host or ("::1" if family == socket.AF_INET6 else "127.0.0.1")
            self.sock = socket.socket(family)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind((host, port))
            self.port = self.sock.getsockname()[1]
            self.address = "[%s]:%d" % (host, self.port) if ":" in host else "%s:%d" % (host, self.port)
        self.sock.listen(backlog)
        self._thread(self._accept)

    def _thread(self, f, *args):
        t = threading.Thread(target=f, args=args, daemon=True)
        self.threads.append(t)
        t.start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            with self.lock:
                number, self.connections = self.connections, self.connections + 1
                self.open.add(s)
                self.lock.notify_all()
            self._thread(self._serve, s, number)

    def _serve(self, s, number):
        c = Upstream(s, self, number)
        try:
            self.scripts[min(number, len(self.scripts) - 1)](c)
        except (EOFError, ConnectionError, BrokenPipeError):
            pass
        except OSError as e:
            if not self.over.is_set():
                self.note(self.errors, e)
        except BaseException as e:  # noqa: B902  (the test must hear of it)
            self.note(self.errors, e)
        finally:
            c.close()
            with self.lock:
                self.open.discard(s)
                self.lock.notify_all()

    def note(self, where, what):
        with self.lock:
            where.append(what)
            self.lock.notify_all()

    def wait(self, n=1, heads=False, patience=PATIENCE):
        """Until n whole requests (or heads) have come; returns them all."""
        seen = self.heads if heads else self.requests
        with self.lock:
            assert self.lock.wait_for(lambda: len(seen) >= n, patience), \
                "the origin saw %d of %d requests" % (len(seen), n)
            return list(seen)

    def wait_connections(self, n, patience=PATIENCE):
        with self.lock:
            assert self.lock.wait_for(lambda: self.connections >= n, patience), \
                "the origin saw %d of %d connections" % (self.connections, n)

    def wait_idle(self, patience=PATIENCE):
        """Until no connection is open."""
        with self.lock:
            assert self.lock.wait_for(lambda: not self.open, patience), \
                "%d connections still open at the origin" % len(self.open)

    def stop_listening(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def stop(self):
        """Ends everything, and raises what a script has raised."""
        self.over.set()
        self.stop_listening()
        with self.lock:
            for s in self.open:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        for t in self.threads:
            t.join(PATIENCE)
        assert not self.errors, "the origin's script failed: %r" % self.errors


# ---- the program -----------------------------------------------------------

class Lines:
    """Collects what the program writes on one stream, line by line."""

    def __init__(self, pipe):
        self.lines, self.lock, self.done = [], threading.Condition(), False
        self.thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self.thread.start()

    def _read(self, pipe):
        for raw in pipe:
            with self.lock:
                self.lines.append(raw.decode("utf-8", "backslashreplace").rstrip("\n"))
                self.lock.notify_all()
        with self.lock:
            self.done = True
            self.lock.notify_all()
        pipe.close()

    def wait(self, pattern, patience=PATIENCE, start=0):
        """The first line, from number `start` on, that the pattern is found in."""
        def find():
            return next((l for l in self.lines[start:] if re.search(pattern, l)), None)
        with self.lock:
            self.lock.wait_for(lambda: find() is not None or self.done, patience)
            line = find()
            assert line is not None, "no line with %r in:\n%s" % (pattern, "\n".join(self.lines[-40:]))
            return line

    def wait_count(self, n, patience=PATIENCE):
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.lines) >= n, patience), \
                "%d of %d lines:\n%s" % (len(self.lines), n, "\n".join(self.lines[-40:]))
            return list(self.lines)

    def text(self):
        with self.lock:
            return "\n".join(self.lines)


class Thimble:
    """The program under test.  `out` and `err` are its Lines."""

    def __init__(self, args, port=None, env=None, ready=True, limits=None, cwd=None, stdin=None):
        self.port = port
        e = dict(os.environ)
        e.setdefault("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1")
        e.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        e.update(env or {})

        def before():
            import resource
            for what, value in limits or ():
                resource.setrlimit(what, (value, value))
        self.process = subprocess.Popen(
            [BINARY] + args, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=e, cwd=cwd, start_new_session=True,
            preexec_fn=before if limits else None)
        self.pid = self.process.pid
        if stdin is not None:
            self.process.stdin.write(octets(stdin))
            self.process.stdin.close()
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)
        self.checked = False
        if ready:
            try:
                self.err.wait(r"\bready\b")
            except AssertionError:
                self.kill()
                raise

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def log(self, n=1):
        """The first n lines of the access log, as JSON."""
        return [json.loads(line) for line in self.out.wait_count(n)[:n]]

    def cpu(self):
        """Seconds of processor time used so far."""
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, patience=PATIENCE):
        """The exit code, once it has ended by itself."""
        code = self.process.wait(patience)
        for lines in (self.out, self.err):
            lines.thread.join(PATIENCE)
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    def check_clean(self):
        """No sanitizer has spoken and nothing is left of the program."""
        self.checked = True
        found = SANITIZER.search(self.err.text())
        assert not found, self.err.text()[-8000:]
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return
        raise AssertionError("the program left processes behind")

    def stop(self):
        """What every test ends with: SIGTERM, exit code 0 in time, nothing left."""
        if self.checked:
            return
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            code = self.wait(10)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGABRT)
            self.kill()
            raise AssertionError("no exit within 10 s of SIGTERM:\n" + self.err.text()[-4000:])
        self.check_clean()
        assert code == 0, "exit code %d:\n%s" % (code, self.err.text()[-8000:])


TIMEOUTS = {"head": "2s", "body": "2s", "write": "3s", "idle": "10s", "connect": "1s", "first_byte": "3s",
            "between_bytes": "3s", "upstream_idle": "10s", "tunnel": "10s", "linger": "1s", "drain": "5s"}


def config(services, listen="", routes=None, timeouts=None, limits=None, log=None, workers=1, more=""):
    """A configuration text.  `services` is {name: address, [addresses] or text};
    several take turns; `listen` are further settings of the listener, as flow YAML; routes are lines."""
    t = dict(TIMEOUTS, **(timeouts or {}))
    text = "workers: %d\n" % workers
    text += "listen: [{address: '127.0.0.1:@PORT@'%s}]\n" % (", " + listen if listen else "")
    text += "routes:\n"
    for r in routes or ["{service: %s}" % next(iter(services))]:
        text += "  - %s\n" % r
    if services:
        text += "services:\n"
        for name, ends in services.items():
            if isinstance(ends, list):
                ends = "[%s]" % ", ".join("'%s'" % e for e in ends)
                if ends.count(",") and "balance" not in more:     # no test is left to chance
                    ends = "{endpoints: %s, balance: round_robin}" % ends
            elif not ends.startswith("{"):
                ends = "['%s']" % ends
            text += "  %s: %s\n" % (name, ends)
    text += "timeouts: {%s}\n" % ", ".join("%s: %s" % i for i in t.items())
    if limits:
        text += "limits: {%s}\n" % ", ".join("%s: %s" % i for i in limits.items())
    text += "log: {%s}\n" % (log or "level: debug, access: stdout, format: json")
    return text + more
