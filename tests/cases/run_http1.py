#!/usr/bin/env python3
"""The judge of the HTTP/1 cases (Python 3.11, standard library only).

It starts a recording origin (raw sockets, strict parser), sends every case to the
proxy, and judges each case by (a) what the client saw, (b) what the origin got, and
(c) whether a following canary request still gets its own answer.

    run_http1.py --proxy 127.0.0.1:8080 --origin-port 9000 [--cases DIR] [--only RE]
                 [--class RE] [--shard I/N] [--json OUT] [-v] [--list] [--pid PROXYPID]

README.md beside it says how the proxy must be set up and what each key means; run.py
does all of that for thimble.
"""
import argparse, glob, hashlib, json, os, re, socket, struct, sys, threading, time

HANG = 5.0            # s: longest time a client may be left without answer or close
SETTLE = 0.25         # s: quiet time after which "nothing more comes" is believed
CLOSE_WAIT = 3.0      # s: how long a close that is due may take

TCHAR = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
CTL = frozenset(list(range(0, 9)) + list(range(10, 32)) + [127])


def lat(s):
    return s.encode("latin-1")


# ---------------------------------------------------------------- steps
def chunk_bytes(step, cid):
    if isinstance(step, str):
        return lat(step.replace("{id}", cid))
    if "x" in step:
        return lat(step["x"]) * int(step["n"])
    if "hdrs" in step:                       # many header lines
        n, w = int(step["hdrs"]), int(step.get("w", 8))
        return b"".join(b"X-F%d: %s\r\n" % (i, b"v" * w) for i in range(n))
    if "chunks" in step:                     # n chunks of w bytes
        n, w = int(step["chunks"]), int(step.get("w", 1))
        return (b"%x\r\n" % w + lat(step.get("c", "c")) * w + b"\r\n") * n
    if "b64" in step:
        import base64
        return base64.b64decode(step["b64"])
    return None


# ---------------------------------------------------------------- HTTP parsing
class Bad(Exception):
    def __init__(self, code, detail=""):
        super().__init__(code)
        self.code, self.detail = code, detail


def parse_fields(block, anom, where):
    """block: bytes with no start line and no final empty line. Strict; notes anomalies."""
    out = []
    if not block:
        return out
    if b"\0" in block:
        anom.add(where + "nul")
    for line in block.split(b"\r\n"):
        if b"\n" in line:
            anom.add(where + "bare-lf")
        if b"\r" in line:
            anom.add(where + "bare-cr")
        if line[:1] in (b" ", b"\t"):
            anom.add(where + "obs-fold")
            continue
        name, sep, val = line.partition(b":")
        if not sep:
            anom.add(where + "no-colon")
            continue
        if name[-1:] in (b" ", b"\t"):
            anom.add(where + "space-before-colon")
        elif not name or any(c not in TCHAR for c in name):
            anom.add(where + "bad-name")
        val = val.strip(b" \t")
        if any(c in CTL for c in val) and not (b"\n" in val or b"\r" in val or b"\0" in val):
            anom.add(where + "ctl-in-value")
        out.append((name.decode("latin-1"), val.decode("latin-1")))
    return out


def get(fields, name):
    return [v for n, v in fields if n.lower() == name]


class Reader:
    """Blocking buffered reader on a socket with a total deadline."""

    def __init__(self, sock, deadline, pre=b""):
        self.s, self.buf, self.deadline, self.eof, self.all = sock, pre, deadline, False, b""

    def more(self):
        if self.eof:
            return False
        left = self.deadline() - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.s.settimeout(left)
        try:
            d = self.s.recv(262144)
        except socket.timeout:
            raise TimeoutError
        except OSError:
            self.eof = True
            return False
        if not d:
            self.eof = True
            return False
        self.buf += d
        return True

    def until(self, tok, limit=8 << 20):
        while tok not in self.buf:
            if len(self.buf) > limit:
                raise Bad("too-big")
            if not self.more():
                return None
        i = self.buf.index(tok)
        r, self.buf = self.buf[:i], self.buf[i + len(tok):]
        return r

    def exactly(self, n, sink):
        while n > 0:
            if not self.buf and not self.more():
                return False
            d = self.buf[:n]
            self.buf = self.buf[n:]
            n -= len(d)
            sink(d)
        return True


def read_chunked(rd, sink, anom, where, msg):
    """Returns True when complete. Strict: anomalies are noted, fatal ones raise Bad."""
    while True:
        line = rd.until(b"\r\n", 1 << 20)
        if line is None:
            return False
        size, sep, ext = line.partition(b";")
        if any(c in CTL for c in ext):
            anom.add(where + "ctl-in-chunk-ext")
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
            if re.fullmatch(rb"[0-9A-Fa-f]{1,16}[ \t]+", size):
                size = size.strip()
                anom.add(where + "space-after-chunk-size")
            else:
                anom.add(where + "bad-chunk-size")
                raise Bad("bad-chunk-size", repr(line[:40]))
        n = int(size, 16)
        if n == 0:
            break
        if not rd.exactly(n, sink):
            return False
        end = b""
        while len(rd.buf) < 2:
            if not rd.more():
                return False
        end, rd.buf = rd.buf[:2], rd.buf[2:]
        if end != b"\r\n":
            anom.add(where + "bad-chunk-end")
            raise Bad("bad-chunk-end", repr(end))
    lines = []
    while True:
        line = rd.until(b"\r\n", 1 << 20)
        if line is None:
            return False
        if line == b"":
            break
        lines.append(line)
    msg["trailers"] = parse_fields(b"\r\n".join(lines), anom, where + "trailer-")
    for n, _ in msg["trailers"]:
        if n.lower() in ("content-length", "transfer-encoding", "host", "connection", "trailer", "authorization"):
            anom.add(where + "forbidden-trailer")
    return True


class Sink:
    def __init__(self):
        self.n, self.h, self.head = 0, hashlib.sha256(), b""

    def __call__(self, d):
        self.n += len(d)
        self.h.update(d)
        if len(self.head) < 262144:
            self.head += d

    def result(self):
        return {"len": self.n, "sha": self.h.hexdigest(), "head": self.head.decode("latin-1")}


# ---------------------------------------------------------------- origin
class Origin:
    def __init__(self, host, port):
        self.lock = threading.Lock()
        self.case = None
        self.reqs = []           # requests attributed: dicts
        self.conn_anoms = []     # (case id, code, detail)
        self.last = time.monotonic()
        self.host, self.port = host, port
        self.conns = set()
        self.nconn = 0
        self.open()

    def open(self):
        ls = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        ls.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ls.bind((self.host, self.port))
        ls.listen(512)
        self.ls = ls
        threading.Thread(target=self.accept, args=(ls,), daemon=True).start()

    def down(self):
        try:
            self.ls.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.ls.close()
        with self.lock:
            cs = list(self.conns)
        for c in cs:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self, ls):
        while True:
            try:
                c, _ = ls.accept()
            except OSError:
                return
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.conns.add(c)
                self.nconn += 1
                k = self.nconn
            threading.Thread(target=self.serve, args=(c, k), daemon=True).start()

    def begin(self, case):
        with self.lock:
            self.case = case
            self.reqs = []
            self.conn_anoms = []
            self.counts = {}

    def note(self, code, detail=""):
        with self.lock:
            self.conn_anoms.append((code, detail))

    def serve(self, c, k):
        try:
            self.serve2(c, k)
        except (OSError, TimeoutError):
            pass
        except Exception as e:                                   # a bug here must be seen
            self.note("origin-bug", repr(e))
        finally:
            with self.lock:
                self.conns.discard(c)
            try:
                c.close()
            except OSError:
                pass

    def play(self, c, steps, cid):
        for st in steps:
            if isinstance(st, dict) and "sleep" in st:
                time.sleep(st["sleep"])
                continue
            if isinstance(st, dict) and "drip" in st:
                for ch in lat(st["drip"]):
                    c.sendall(bytes([ch]))
                    time.sleep(st.get("every", 0.01))
                continue
            c.sendall(chunk_bytes(st, cid))

    def serve2(self, c, k):
        rd = Reader(c, lambda: time.monotonic() + 30)
        served = 0
        while True:
            head = rd.until(b"\r\n\r\n", 8 << 20)
            if head is None:
                if rd.buf.strip(b"\r\n") :
                    # an incomplete request head
                    with self.lock:
                        self.reqs.append({"m": "?", "t": rd.buf[:200].decode("latin-1"), "complete": False,
                                          "h": [], "anom": ["partial-head"], "conn": k, "eof": True})
                return
            served += 1
            self.last = time.monotonic()
            anom = set()
            line, _, block = head.partition(b"\r\n")
            if line == b"":                                       # CRLF before a request line
                anom.add("leading-crlf")
                line, _, block = block.partition(b"\r\n")
            m = re.fullmatch(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e\x80-\xff]+) HTTP/(\d)\.(\d)", line)
            req = {"m": "?", "t": "?", "v": "?", "h": [], "complete": False, "conn": k, "n": served,
                   "body": None, "trailers": [], "raw": head[:600].decode("latin-1")}
            req["h"] = parse_fields(block, anom, "")
            if not m:
                anom.add("bad-request-line")
                req["t"] = line[:200].decode("latin-1")
            else:
                req["m"], req["t"], req["v"] = m[1].decode(), m[2].decode("latin-1"), (m[3] + b"." + m[4]).decode()
            h = req["h"]
            te, cl, host = get(h, "transfer-encoding"), get(h, "content-length"), get(h, "host")
            if req["v"] == "1.1" and not host:
                anom.add("no-host")
            if len(host) > 1:
                anom.add("dup-host")
            for x in host:
                if re.search(r"[\s,/@?#\\]", x):
                    anom.add("bad-host")
            if te and cl:
                anom.add("te+cl")
            if len(te) > 1:
                anom.add("dup-te")
            if len(cl) > 1:
                anom.add("dup-cl")
            if cl and (not re.fullmatch(r"\d+", cl[0]) or int(cl[0]) >= 1 << 64):
                anom.add("bad-cl")
            if te and req["v"] == "1.0":
                anom.add("te-in-1.0")
            tes = [x.strip().lower() for v in te for x in v.split(",")]
            if te and tes[-1] != "chunked":
                anom.add("te-not-chunked")
            elif te and (tes.count("chunked") != 1 or "" in tes):
                anom.add("te-odd")
            req["anom"] = sorted(anom)
            mm = re.search(rb"/(?:t|smuggled)/([a-z0-9.+-]+)", head)
            with self.lock:
                case = self.case
                req["cid"] = mm[1].decode() if mm else None
                req["canary"] = req["t"].startswith("/canary/")
                self.reqs.append(req)
                cid = case["name"] if case else "-"
                script = None
                if case and not req["canary"]:
                    i = self.counts.get("i", 0)
                    self.counts["i"] = i + 1
                    sc = case.get("origin") or []
                    if i < len(sc):
                        script = sc[i]
                    elif case.get("origin_repeat") and sc:
                        script = sc[-1]
            if anom & {"bad-request-line", "te+cl", "dup-te", "dup-cl", "bad-cl", "te-not-chunked", "te-in-1.0",
                       "space-before-colon", "no-colon", "obs-fold", "bare-lf", "bare-cr", "nul"}:
                time.sleep(0.05)
                rd.s.settimeout(0.3)
                try:
                    req["rest"] = (rd.buf + c.recv(65536))[:300].decode("latin-1")
                except OSError:
                    req["rest"] = rd.buf[:300].decode("latin-1")
                c.sendall(b"HTTP/1.1 400 Origin-Refused\r\nContent-Length: 0\r\nConnection: close\r\nX-Anom: "
                          + ",".join(sorted(anom)).encode() + b"\r\n\r\n")
                return
            script = script or {}
            wants_close = any("close" in v.lower().replace(" ", "").split(",") for v in get(h, "connection"))
            if req["v"] == "1.0" and not any("keep-alive" in v.lower() for v in get(h, "connection")):
                wants_close = True
            early = script.get("when") == "head"
            if early:
                self.play(c, script.get("send", []), cid)
            if get(h, "expect") and not script.get("no100") and not early:
                c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if script.get("read", True) and script.get("then") != "tunnel":
                sink = Sink()
                req["sink"] = sink
                try:
                    if te:
                        ok = read_chunked(rd, sink, anom, "body-", req)
                    elif cl:
                        ok = rd.exactly(int(cl[0]), sink)
                    else:
                        ok = True
                except Bad as b:
                    ok = False
                    req["bad"] = b.code + " " + b.detail
                    req["anom"] = sorted(anom)
                    req["body"] = sink.result()
                    return
                req["anom"] = sorted(anom)
                req["body"] = sink.result()
                req["complete"] = ok
                self.last = time.monotonic()
                if not ok:
                    return
            if not early:
                if "send" in script:
                    self.play(c, script["send"], cid)
                elif script.get("then") not in ("rst", "hang", "close-silent"):
                    body = ("echo %s %s %d\n" % (req["m"], req["t"], (req["body"] or {"len": 0})["len"])).encode("latin-1")
                    r = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Origin: yes\r\nX-Target: "
                         + req["t"].encode("latin-1") + b"\r\nContent-Length: %d\r\n" % len(body)
                         + (b"Connection: close\r\n" if wants_close else b"") + b"\r\n")
                    c.sendall(r + (b"" if req["m"] == "HEAD" else body))
            req["done"] = True
            then = script.get("then", "keep")
            if then == "rst":
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            if then in ("close", "close-silent"):
                return
            if then == "hang":
                rd2 = Reader(c, lambda: time.monotonic() + 8)
                try:
                    while rd2.more():
                        rd2.buf = b""
                except TimeoutError:
                    pass
                return
            if then == "tunnel":
                t = rd.buf
                rd.buf = b""
                req["complete"] = True
                req["body"] = {"len": 0, "sha": "", "head": ""}
                c.settimeout(8)
                while True:
                    if t:
                        req["tunnel"] = req.get("tunnel", "") + t.decode("latin-1")
                        c.sendall(t if script.get("echo", True) else b"")
                    t = c.recv(65536)
                    if not t:
                        return
            if then == "late":                       # unsolicited bytes on an idle connection
                time.sleep(script.get("after", 0.15))
                self.play(c, script["late"], cid)
                continue
            if then == "close-late":
                time.sleep(script.get("after", 0.1))
                return
            if wants_close and "send" not in script:
                return


# ---------------------------------------------------------------- client
class Client:
    def __init__(self, addr, methods):
        self.s = socket.create_connection(addr, timeout=3)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s.settimeout(None)
        self.buf, self.t_last, self.eof, self.reset = b"", time.monotonic(), False, False
        self.cv = threading.Condition()
        self.methods = methods
        self.slow = 0
        threading.Thread(target=self.rx, daemon=True).start()

    def rx(self):
        while True:
            try:
                if self.slow:
                    time.sleep(self.slow)
                    d = self.s.recv(4096)
                else:
                    d = self.s.recv(262144)
            except ConnectionResetError:
                self.reset = True
                d = b""
            except OSError:
                d = b""
            with self.cv:
                self.t_last = time.monotonic()
                if d:
                    self.buf += d
                else:
                    self.eof = True
                self.cv.notify_all()
            if not d:
                return

    def parse(self):
        """Parses all that came. Returns (responses, leftover, anomalies)."""
        out, anom, b, mi = [], set(), self.buf, 0
        while b:
            i = b.find(b"\r\n\r\n")
            head = b if i < 0 else b[:i]
            line, _, block = head.partition(b"\r\n")
            m = re.fullmatch(rb"HTTP/1\.([01]) (\d\d\d)( [\x09\x20-\x7e\x80-\xff]*)?", line)
            if not m and (i >= 0 or self.eof):
                anom.add("not-http")
                break
            if i < 0:
                break
            st = int(m[2])
            a = set()
            r = {"status": st, "v": "1." + m[1].decode(), "h": parse_fields(block, a, ""), "body": b"", "complete": True, "trailers": []}
            b = b[i + 4:]
            te, cl = get(r["h"], "transfer-encoding"), get(r["h"], "content-length")
            if te and cl:
                a.add("te+cl")
            if len(te) > 1:
                a.add("dup-te")
            if len(cl) > 1:
                a.add("dup-cl")
            if cl and not re.fullmatch(r"\d+", cl[0]):
                a.add("bad-cl")
            if 100 <= st < 200:
                if te or cl:
                    a.add("framing-on-1xx")
                if st == 101:
                    r["body"], b = b, b""
                    r["complete"] = True
                    r["tunnel"] = True
                r["anom"] = a
                anom |= a
                out.append(r)
                if st == 101:
                    break
                continue
            meth = self.methods[mi] if mi < len(self.methods) else "GET"
            mi += 1
            if st == 204 and (te or (cl and cl[0] != "0")):
                a.add("framing-on-204")
            if meth == "HEAD" or st in (204, 304):
                pass
            elif te:
                if te[-1].split(",")[-1].strip().lower() != "chunked":
                    a.add("te-not-chunked")
                    r["body"], b = b, b""
                    r["complete"] = self.eof
                else:
                    if r["v"] == "1.0":
                        a.add("te-in-1.0")
                    r["chunked"] = True
                    body, rest, ok = self.dechunk(b, a, r)
                    r["body"], r["complete"] = body, ok
                    b = rest if ok else b""
            elif cl and re.fullmatch(r"\d+", cl[0]):
                n = int(cl[0])
                r["body"], r["complete"] = b[:n], len(b) >= n
                b = b[n:]
            else:
                r["body"], b, r["complete"] = b, b"", self.eof and not self.reset
                r["until_close"] = True
            r["anom"] = a
            anom |= a
            out.append(r)
            if not r["complete"]:
                break
        return out, b, anom

    @staticmethod
    def dechunk(b, a, r):
        body = []
        while True:
            i = b.find(b"\r\n")
            if i < 0:
                return b"".join(body), b, False
            size = b[:i].partition(b";")[0]
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}[ \t]*", size):
                a.add("bad-chunk-size")
                return b"".join(body), b, False
            n = int(size, 16)
            b = b[i + 2:]
            if n == 0:
                lines = []
                while True:
                    i = b.find(b"\r\n")
                    if i < 0:
                        return b"".join(body), b, False
                    line, b = b[:i], b[i + 2:]
                    if not line:
                        r["trailers"] = parse_fields(b"\r\n".join(lines), a, "trailer-")
                        return b"".join(body), b, True
                    lines.append(line)
            if len(b) < n + 2:
                body.append(b[:n])
                return b"".join(body), b"", False
            body.append(b[:n])
            if b[n:n + 2] != b"\r\n":
                a.add("bad-chunk-end")
                return b"".join(body), b, False
            b = b[n + 2:]

    def finals(self):
        rs, left, an = self.parse()
        return sum(1 for r in rs if (r["status"] >= 200 or r["status"] == 101) and r["complete"])

    def wait(self, pred, timeout):
        end = time.monotonic() + timeout
        with self.cv:
            while True:
                if pred():
                    return True
                left = end - time.monotonic()
                if left <= 0 or (self.eof and not pred()):
                    return pred()
                self.cv.wait(min(left, 0.05))


# ---------------------------------------------------------------- judging
def status_ok(pat, st):
    for p in str(pat).split("|"):
        if p == "any" or p == str(st) or (len(p) == 3 and p.endswith("xx") and p[0] == str(st)[0]):
            return True
    return False


def match_val(spec, vals):
    """spec: None=absent; str=exactly one equal; list=exactly these in order; dict: re/has/last/any."""
    if spec is None:
        return not vals
    if isinstance(spec, str):
        return vals == [spec]
    if isinstance(spec, list):
        return vals == spec
    if "join" in spec:                       # same list members however split over lines
        sep = spec.get("sep", ",")
        flat = [x.strip() for v in vals for x in v.split(sep) if x.strip()]
        return flat == spec["join"]
    if "re" in spec:
        return len(vals) > 0 and all(re.fullmatch(spec["re"], v, re.S) for v in vals)
    if "has" in spec:
        return any(spec["has"] in v for v in vals)
    if "hasnt" in spec:
        return all(spec["hasnt"].lower() not in v.lower() for v in vals)
    if "last" in spec:
        return bool(vals) and vals[-1].split(",")[-1].strip() == spec["last"]
    if "any" in spec:
        return any(match_val(s, vals) for s in spec["any"])
    return False


def body_ok(spec, b):
    """b: bytes or the origin's {len, sha, head}."""
    if isinstance(b, bytes):
        b = {"len": len(b), "sha": hashlib.sha256(b).hexdigest(), "head": b.decode("latin-1")}
    if b is None:
        return False
    if isinstance(spec, str):
        return b["head"] == spec and b["len"] == len(spec)
    if "re" in spec:
        return re.fullmatch(spec["re"], b["head"], re.S) is not None
    if "x" in spec:
        want = lat(spec["x"]) * spec["n"]
        return b["len"] == len(want) and b["sha"] == hashlib.sha256(want).hexdigest()
    if "len" in spec and b["len"] != spec["len"]:
        return False
    if "prefix_of" in spec:
        return spec["prefix_of"].startswith(b["head"])
    if "not" in spec:
        return spec["not"] not in b["head"]
    return True


NAMED = {
    # request refused: an error answer, then close; nothing whole reached the origin
    "reject": {"client": ["4xx|500|501|505"], "closed": True, "origin": 0},
    # closed without a word; nothing whole reached the origin
    "drop": {"client": [], "closed": True, "origin": 0},
    # the fault is in the body: any error or a cut, but nothing whole at the origin
    "reject_body": {"client": ["4xx|5xx"], "closed": True, "origin": 0},
    # an error answer where the framing is clear: staying open is allowed
    "refuse": {"client": ["4xx|500|501|505"], "origin": 0},
    # one clean request, one 200
    "ok1": {"client": ["200"], "origin": 1},
    "bad_gateway": {"client": ["502|503|500"], "origin": {"min": 1, "max": 3}},
}


def judge_alt(case, alt, obs):
    why = []
    rs = [r for r in obs["responses"]]
    inform = [r for r in rs if 100 <= r["status"] < 200 and r["status"] != 101]
    fin = [r for r in rs if r["status"] >= 200 or r["status"] == 101]
    want = alt.get("client")
    if want is not None:
        if len(fin) != len(want):
            why.append("client saw %s, wanted %s" % ([r["status"] for r in fin], want))
        else:
            for r, p in zip(fin, want):
                if not status_ok(p, r["status"]):
                    why.append("client saw %s, wanted %s" % ([r["status"] for r in fin], want))
                    break
    for i, chk in enumerate(alt.get("resp", [])):
        if chk is None:
            continue
        if i >= len(fin):
            why.append("no response %d" % i)
            continue
        r = fin[i]
        for k, spec in chk.get("h", {}).items():
            if not match_val(spec, get(r["h"], k.lower())):
                why.append("response %d header %s: %r" % (i, k, get(r["h"], k.lower())))
        if "body" in chk and not body_ok(chk["body"], r["body"]):
            why.append("response %d body %r.. (%d bytes)" % (i, r["body"][:60], len(r["body"])))
        if "chunked" in chk and bool(r.get("chunked")) != chk["chunked"]:
            why.append("response %d chunked=%s" % (i, bool(r.get("chunked"))))
        if "trailers" in chk:
            for k, spec in chk["trailers"].items():
                if not match_val(spec, get(r["trailers"], k.lower())):
                    why.append("response %d trailer %s" % (i, k))
        if "complete" in chk:
            if r["complete"] != chk["complete"]:
                why.append("response %d complete=%s" % (i, r["complete"]))
    for i, r in enumerate(fin):
        chk = alt.get("resp", [])
        spec = chk[i] if i < len(chk) and chk[i] else {}
        if "complete" not in spec and not r["complete"]:
            why.append("response %d is cut short" % i)
    if "inform" in alt:
        got = [r["status"] for r in inform]
        a = alt["inform"]
        if isinstance(a, list):
            if got != a:
                why.append("1xx seen %s, wanted %s" % (got, a))
        else:
            if any(str(s) not in a.get("only", str(s)).split("|") for s in got):
                why.append("1xx seen %s" % got)
            if len(got) < a.get("min", 0) or len(got) > a.get("max", 9999):
                why.append("1xx count %d" % len(got))
    if alt.get("closed") is True and not obs["closed"]:
        why.append("connection not closed")
    if alt.get("closed") is False and obs["closed"]:
        why.append("connection closed")
    if "within" in alt and obs["t_end"] > alt["within"]:
        why.append("took %.1f s, at most %.1f allowed" % (obs["t_end"], alt["within"]))
    if "tunnel" in alt:
        t = fin[-1]["body"].decode("latin-1") if fin and fin[-1].get("tunnel") else None
        if t != alt["tunnel"]:
            why.append("tunnel bytes at the client %r" % (t,))
    whole = [r for r in obs["origin"] if r["complete"]]
    part = [r for r in obs["origin"] if not r["complete"]]
    o = alt.get("origin")
    if isinstance(o, int):
        if len(whole) != o:
            why.append("origin saw %d whole requests %s, wanted %d" % (len(whole), [r["m"] + " " + r["t"][:60] for r in whole], o))
    elif isinstance(o, dict):
        n = len(whole) + (len(part) if o.get("partial") else 0)
        if n < o.get("min", 0) or n > o.get("max", 99):
            why.append("origin saw %d requests, wanted %s" % (n, o))
    elif isinstance(o, list):
        if len(whole) != len(o):
            why.append("origin saw %d whole requests %s, wanted %d" % (len(whole), [r["m"] + " " + r["t"][:60] for r in whole], len(o)))
        else:
            for i, (r, chk) in enumerate(zip(whole, o)):
                if "m" in chk and r["m"] not in chk["m"].split("|"):
                    why.append("origin request %d method %s" % (i, r["m"]))
                if "v" in chk and r["v"] != chk["v"]:
                    why.append("origin request %d version %s" % (i, r["v"]))
                if "t" in chk:
                    ts = chk["t"] if isinstance(chk["t"], list) else [chk["t"]]
                    if r["t"] not in [t.replace("{id}", case["name"]) for t in ts]:
                        why.append("origin request %d target %r" % (i, r["t"][:200]))
                if "t_re" in chk and not re.fullmatch(chk["t_re"], r["t"], re.S):
                    why.append("origin request %d target %r" % (i, r["t"][:200]))
                for k, spec in chk.get("h", {}).items():
                    if not match_val(spec, get(r["h"], k.lower())):
                        why.append("origin request %d header %s: %r" % (i, k, [v[:80] for v in get(r["h"], k.lower())]))
                for k, spec in chk.get("tr", {}).items():
                    if not match_val(spec, get(r["trailers"], k.lower())):
                        why.append("origin request %d trailer %s: %r" % (i, k, get(r["trailers"], k.lower())))
                if "body" in chk and not body_ok(chk["body"], r["body"]):
                    b = r["body"] or {"head": "", "len": -1}
                    why.append("origin request %d body %r.. (%d bytes)" % (i, b["head"][:80], b["len"]))
                if "tunnel" in chk and r.get("tunnel", "") != chk["tunnel"]:
                    why.append("origin request %d tunnel %r" % (i, r.get("tunnel", "")[:80]))
    return why


def observe(case, addr, origin):
    cid = case["name"]
    origin.begin(case)
    obs = {"t0": time.monotonic(), "hang": False, "connect": True}
    if case.get("origin_down"):
        origin.down()
        time.sleep(0.05)
    alts = [NAMED[a] if isinstance(a, str) else a for a in case["expect"]]
    want = max([len(a["client"]) for a in alts if a.get("client") is not None] or [1])
    need_close = any(a.get("closed") is True for a in alts)
    hang = case.get("hang", HANG)
    try:
        c = Client(addr, case.get("methods") or methods_of(case))
    except OSError as e:
        obs.update(connect=False, responses=[], leftover=b"", anom=set(), closed=True, origin=[], why=str(e))
        if case.get("origin_down"):
            origin.open()
        return obs
    c.slow = case.get("slow_read", 0)
    sent_rst = False
    try:
        for st in case["send"]:
            if isinstance(st, dict):
                if "sleep" in st:
                    c.wait(lambda: c.eof, st["sleep"])
                    continue
                if "await" in st:
                    w = st["await"]
                    if w == "100":
                        c.wait(lambda: b"HTTP/1.1 " in c.buf, st.get("for", 1.0))
                    elif w == "bytes":
                        c.wait(lambda: lat(st["bytes"]) in c.buf, st.get("for", 1.5))
                    else:
                        c.wait(lambda: c.finals() >= int(w), st.get("for", 3.0))
                    continue
                if "fin" in st:
                    c.s.shutdown(socket.SHUT_WR)
                    continue
                if "rst" in st:
                    c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sent_rst = True
                    c.s.close()
                    break
                if "drip" in st:
                    end = time.monotonic() + st.get("max", 60)
                    for ch in lat(st["drip"].replace("{id}", cid)):
                        if c.eof or time.monotonic() > end:
                            break
                        c.s.sendall(bytes([ch]))
                        time.sleep(st.get("every", 0.002))
                    continue
            c.s.sendall(chunk_bytes(st, cid))
    except OSError:
        pass
    obs["t_sent"] = time.monotonic()
    if sent_rst:
        time.sleep(0.3)
        obs.update(responses=[], leftover=b"", anom=set(), closed=True, t_end=0)
    else:
        t_sent = obs["t_sent"]
        while True:
            now = time.monotonic()
            if c.eof:
                break
            n = c.finals()
            if n >= want and now - c.t_last > (CLOSE_WAIT if need_close else SETTLE) and now - origin.last > SETTLE:
                break
            if now - t_sent > hang:
                obs["hang"] = n < want
                break
            with c.cv:
                c.cv.wait(0.03)
        rs, left, anom = c.parse()
        obs["t_end"] = c.t_last - obs["t0"]
        obs.update(responses=rs, leftover=left, anom=anom, closed=c.eof, raw=c.buf[:400])
        # last: a slow case may still be waiting for a close that is due
    # let the origin get quiet
    end = time.monotonic() + 1.5
    while time.monotonic() < end and time.monotonic() - origin.last < 0.12:
        time.sleep(0.02)
    try:
        c.s.close()
    except OSError:
        pass
    with origin.lock:
        obs["origin"] = [r for r in origin.reqs if not r.get("canary")]
        obs["origin_notes"] = list(origin.conn_anoms)
    obs["dur"] = time.monotonic() - obs["t0"]
    if case.get("origin_down"):
        origin.open()
        time.sleep(1.2 if case.get("recover") else 0.3)
    return obs


def methods_of(case):
    txt = "".join(s for s in case["send"] if isinstance(s, str))
    return re.findall(r"(?:^|\n)([!#$%&'*+.^_`|~0-9A-Za-z-]+) [^\n]* HTTP/1", txt)


def canary(addr, n, tries=2):
    """Requests whose answer is known; on one new connection. Returns None or what is wrong."""
    for attempt in range(tries):
        try:
            c = Client(addr, ["GET"] * 2)
        except OSError as e:
            if attempt == tries - 1:
                return "cannot connect: %s" % e
            time.sleep(0.5)
            continue
        bad = None
        for k in range(2):
            tgt = "/canary/%d-%d-%d" % (n, attempt, k)
            try:
                c.s.sendall(lat("GET %s HTTP/1.1\r\nHost: example.test\r\n\r\n" % tgt))
            except OSError:
                bad = "closed early"
                break
            c.wait(lambda: c.finals() > k, 4)
            rs, left, an = c.parse()
            fin = [r for r in rs if r["status"] >= 200]
            if len(fin) <= k:
                bad = "no answer" if not c.eof else "closed without answer"
                break
            r = fin[k]
            if r["status"] == 200 and lat("echo GET %s 0\n" % tgt) != r["body"]:
                bad = "POISONED: wrong answer %d %r" % (r["status"], r["body"][:80])
                break
            if r["status"] != 200 or left:
                bad = "answer %d left %r" % (r["status"], left[:80])
                if b"smuggled" in r["body"] or b"STALE" in c.buf:
                    bad = "POISONED: " + bad
                break
        c.s.close()
        if bad is None:
            return None
        if bad.startswith("POISONED"):
            return bad
        time.sleep(0.4)
    return bad


def judge(case, obs, can):
    fails = []
    if not obs["connect"]:
        return ["cannot connect to the proxy: " + obs.get("why", "")]
    if can:
        fails.append("canary: " + can)
    if obs["hang"] and not case.get("hang_ok"):
        fails.append("HANG: neither answer nor close in %.0f s" % case.get("hang", HANG))
    allow = set(case.get("allow", []))
    for r in obs["origin"]:
        bad = [a for a in r["anom"] if a not in allow]
        if r["anom"] == ["partial-head"]:
            continue
        if bad:
            fails.append("UNSAFE forward %s: %r" % (",".join(bad), r.get("raw", "")[:160]))
        if "/smuggled/" in r["t"]:
            fails.append("SMUGGLED request parsed at the origin: %s %s" % (r["m"], r["t"]))
        if r.get("cid") and r["cid"] != case["name"] and r["t"].startswith("/t/"):
            fails.append("stray request of case %s" % r["cid"])
    for code, d in obs.get("origin_notes", []):
        fails.append("origin: %s %s" % (code, d))
    bad = [a for a in obs["anom"] if a not in allow]
    if bad:
        fails.append("client got malformed: %s %r" % (",".join(sorted(bad)), obs.get("raw", b"")[:120]))
    if obs["leftover"] and not bad and "not-http" not in obs["anom"] and not any(r.get("tunnel") for r in obs["responses"]):
        if obs["leftover"].strip(b"\r\n"):
            fails.append("bytes after the last response: %r" % obs["leftover"][:80])
    alts = [NAMED[a] if isinstance(a, str) else a for a in case["expect"]]
    whys = []
    for i, alt in enumerate(alts):
        w = judge_alt(case, alt, obs)
        if not w:
            whys = []
            obs["alt"] = case["expect"][i] if isinstance(case["expect"][i], str) else "alt%d" % i
            break
        whys.append(w)
    if whys:
        short = min(whys, key=len)
        fails.append("no allowed outcome: " + "; ".join(short))
    return fails


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--proxy", required=False, default="127.0.0.1:8080")
    ap.add_argument("--origin-port", type=int, default=9000)
    ap.add_argument("--origin-host", default="127.0.0.1")
    ap.add_argument("--cases", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "http1"))
    ap.add_argument("--only", help="regular expression on the case name")
    ap.add_argument("--class", dest="klass", help="regular expression on the class")
    ap.add_argument("--shard", default="0/1", help="I/N: each N-th case, from the I-th on")
    ap.add_argument("--json", help="write all outcomes to this file")
    ap.add_argument("--pid", type=int, help="the proxy's process: a case after which it is gone fails")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("-v", action="store_true", help="say a line for each case")
    a = ap.parse_args()
    cases = []
    for f in sorted(glob.glob(os.path.join(a.cases, "*.jsonl"))):
        with open(f) as fh:
            for i, line in enumerate(fh, 1):
                if line.strip() and not line.startswith("#"):
                    try:
                        c = json.loads(line)
                    except ValueError as e:
                        sys.exit("%s:%d: %s" % (f, i, e))
                    cases.append(c)
    names = [c["name"] for c in cases]
    dup = {n for n in names if names.count(n) > 1}
    if dup:
        sys.exit("duplicate names: %s" % dup)
    if a.only:
        cases = [c for c in cases if re.search(a.only, c["name"])]
    if a.klass:
        cases = [c for c in cases if re.search(a.klass, c["class"])]
    first, step = map(int, a.shard.split("/"))
    cases = cases[first::step]
    if a.list:
        for c in cases:
            print("%-10s %-6s %-34s %s" % (c["class"], c.get("level", "must"), c["name"], c["shows"]))
        print(len(cases), "cases")
        return 0
    host, _, port = a.proxy.rpartition(":")
    addr = (host.strip("[]"), int(port))
    origin = Origin(a.origin_host, a.origin_port)
    time.sleep(0.1)
    c0 = canary(addr, 0, 5)
    if c0:
        print("the proxy does not forward a plain request: " + c0)
        print("0 passed, %d failed" % len(cases))
        return 2
    res, tally = [], {}
    dead = False
    for n, case in enumerate(cases, 1):
        if dead:
            fails, obs = ["proxy is gone"], {"dur": 0, "responses": [], "origin": []}
        else:
            obs = observe(case, addr, origin)
            can = canary(addr, n)
            fails = judge(case, obs, can)
            if a.pid and not os.path.exists("/proc/%d" % a.pid):
                fails.append("CRASH: the proxy's process is gone")
                dead = True
        lvl = case.get("level", "must")
        t = tally.setdefault((case["class"], lvl), [0, 0])
        t[1 if fails else 0] += 1
        grave = any(re.match(r"UNSAFE|SMUGGLED|HANG|CRASH|canary|stray", f) for f in fails)
        res.append({"name": case["name"], "class": case["class"], "level": lvl, "pass": not fails, "grave": grave,
                    "why": fails, "alt": obs.get("alt"), "dur": round(obs.get("dur", 0), 2),
                    "client": [r["status"] for r in obs["responses"]], "closed": obs.get("closed"),
                    "origin": [{k: r.get(k) for k in ("m", "t", "complete", "anom")} for r in obs["origin"]]})
        if fails or a.v:
            print("%s %-6s %-10s %-34s %s" % ("FAIL" if fails else "ok  ", lvl, case["class"], case["name"],
                                              " | ".join(fails) if fails else "(%s)" % obs.get("alt")))
            sys.stdout.flush()
    print()
    for k in sorted(tally):
        print("%-12s %-6s %3d passed %3d failed" % (k[0], k[1], tally[k][0], tally[k][1]))
    must = [r for r in res if r["level"] == "must"]
    print("must: %d of %d; should: %d of %d; grave failures: %d" % (
        sum(r["pass"] for r in must), len(must), sum(r["pass"] for r in res if r["level"] != "must"), len(res) - len(must),
        sum(r["grave"] for r in res)))
    if a.json:
        with open(a.json, "w") as fh:
            json.dump(res, fh, indent=1)
    p = sum(r["pass"] for r in res)
    print("%d passed, %d failed" % (p, len(res) - p))
    return 0 if p == len(res) else 1


if __name__ == "__main__":
    sys.exit(main())
