#!/usr/bin/env python3
"""The same odd requests through thimble to several origins: all must understand the same (README.md).

    differ.py [--thimble BINARY] [--sample] [--count N] [--seed N] [--origin RE] [--replay FILE] [--raw] [-v]

A disagreement is printed with the shortest bytes that still show it.  Exit 0 when there is none.  The last line is
"N passed, N failed".
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "wire"))
import harness  # noqa: E402
import odd  # noqa: E402
from run import start_thimble  # noqa: E402
from servers import Server, missing  # noqa: E402

ORIGINS = ["nginx", "apache", "haproxy", "node", "python", "go"]
SAMPLE = ["nginx", "haproxy", "node", "python"]
HASTY = ["haproxy"] # its answer without a server takes what came of a body that was cut
SILENT = {(o, b"OPTIONS", b"*") for o in ("apache", "go")}      # they answer that by themselves
SHRINK = 250        # conversations that making a finding shorter may take


def octets(text):
    return (text or "").encode("latin-1")


# ---- what an origin understood ---------------------------------------------

class Understood(tuple):
    """(method, target, body), of a whole request that the origin took for good."""


class Reports:
    """Reads what an origin writes down, as it comes."""

    def __init__(self, server):
        self.server, self.at = server, 0
        self.path = server.log.name if server.name == "haproxy" else server.report

    def more(self):
        """New lines, as Understood."""
        with open(self.path, "rb") as f:
            f.seek(self.at)
            data = f.read()
        data = data[:data.rfind(b"\n") + 1]
        self.at += len(data)
        return [u for u in map(self.understood, data.split(b"\n")) if u]

    def understood(self, line):
        if not line.startswith(b"{"):
            return None
        one = json.loads(line.decode("latin-1"))
        if one.get("s", 200) != 200:
            return None
        name = self.server.name
        if name == "apache":
            if one["id"] == "-":
                return None
            with open(os.path.join(self.server.work, "reports", one["id"]), encoding="latin-1") as f:
                one = json.loads(f.read())
        if name == "nginx":
            return Understood((one["m"].encode("latin-1"), one["t"].encode("latin-1"), one["b"].encode("latin-1")))
        if name == "haproxy":       # it writes - for what is empty
            return Understood(tuple(bytes.fromhex(one[k].replace("-", "")) for k in "mtb"))
        return Understood((one["m"].encode("latin-1"), bytes.fromhex(one["t"]), bytes.fromhex(one["b"])))


class Seen:
    """One conversation with one origin: thimble's lines, what the origin understood, what the client was told."""

    def __init__(self, lines, understood, statuses, problems):
        self.lines, self.understood, self.statuses, self.problems = lines, understood, statuses, problems


class End:
    """An origin with thimble in front of it; or (raw) with nothing."""

    def __init__(self, name, folder, raw):
        work = os.path.join(folder, name)
        os.mkdir(work)
        os.chmod(work, 0o755)
        self.server = Server(name, folder, work, report=os.path.join(work, "report"))
        self.reports = Reports(self.server)
        try:
            self.proxy = None if raw else start_thimble(self.server, work, "3s")
        except Exception:
            self.server.stop()
            raise
        self.port = self.server.port if raw else self.proxy.port
        self.name, self.number, self.read = name, 0, 0
        self.reports.more()

    def send(self, data):
        """One connection: all the bytes, a FIN, and what comes until the end."""
        problem, got = None, b""
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.settimeout(8)
            port = s.getsockname()[1]
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    got += piece
            except TimeoutError:
                problem = "the connection was left open"
            except OSError:
                pass                # reset: what came is what there is
        return port, got, problem

    def talk(self, data):
        port, got, problem = self.send(data)
        problems = [problem] if problem else []
        understood = self.canary(problems)
        lines = self.lines(port, problems) if self.proxy else []
        if self.name in HASTY and any(line["endpoint"] and line["cause"] for line in lines):
            understood += self.canary(problems)     # it tells of what was cut when it comes to that connection
            self.lines(port, problems)
        return Seen(lines, understood, statuses(got, lines, problems) if self.proxy else [], problems)

    def canary(self, problems):
        """A plain request, which must come to the origin as that.  What the origin understood before it."""
        self.number += 1
        canary = b"/canary/%d" % self.number
        _, answer, _ = self.send(b"GET %s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" % canary)
        if not (answer.startswith(b"HTTP/1.1 200 ") and b"ok\n" in answer):
            problems.append("the next request, a plain one, got %r" % answer)
        return self.until(canary, problems)

    def until(self, canary, problems):
        """What was understood before the canary, which must be as it was sent."""
        seen, end = [], time.monotonic() + 5
        while not any(u[1] == canary for u in seen):
            seen += self.reports.more()
            if time.monotonic() > end:
                problems.append("the next request, a plain one, was not understood")
                return seen
            time.sleep(0.0005)
        plain = next(u for u in seen if u[1] == canary)
        seen.remove(plain)
        if plain != (b"GET", canary, b""):
            problems.append("the next request, a plain one, was understood as %r" % (plain,))
        return seen

    def lines(self, port, problems):
        """The log's lines of the connection.  The canary's line is behind them."""
        self.proxy.out.wait(r"/canary/%d\b" % self.number, start=self.read)
        new = [json.loads(line) for line in self.proxy.out.lines[self.read:]]
        self.read += len(new)
        if problems:
            problems += ["the log has of it: %r" % {k: v for k, v in line.items() if v} for line in new]
        return [line for line in new if line["client_port"] == port]

    def stop(self):
        try:
            if self.proxy:
                self.proxy.stop()
        finally:
            self.server.stop()


class Told:
    """A socket that gives bytes which have come already."""

    def __init__(self, data):
        self.data = data

    def settimeout(self, _):
        pass

    def recv(self, _):
        data, self.data = self.data, b""
        return data


def statuses(got, lines, problems):
    """The client's answers, read strictly; a line of the log says whether its request was HEAD."""
    c = harness.Client.__new__(harness.Client)
    harness.Stream.__init__(c, Told(got))
    out = []
    try:
        for line in lines:
            if line["status"]:
                out.append(one_answer(c, line["method"]).status)
    except (EOFError, harness.Malformed) as e:
        if isinstance(e, EOFError) and any(line["cause"] for line in lines):   # cut, and the log says so: a reset may
            return [line["status"] for line in lines if line["status"]]         # take with it what came before
        problems.append("the client was told %r (%s)" % (got[:200], e))
        return out
    if c.buf:
        problems.append("behind the answers the client was told %r" % bytes(c.buf[:100]))
    return out


def one_answer(c, method):
    """The next answer.  When the method was not understood, it may have been HEAD or not."""
    kept = bytes(c.more() and c.buf or c.buf)
    try:
        return c.answer(method or "GET")
    except EOFError:
        if method:
            raise
        c.buf[:] = kept
        return c.answer("HEAD")


# ---- comparing -------------------------------------------------------------

def sent(line):
    """Whether thimble says that a whole request went to the origin: (method, target, bytes of body), or None."""
    if line["endpoint"] is None or line["cause"] is not None:
        return None
    return octets(line["method"]), octets(line["target"]), line["bytes_in"]


def same(asked, understood):
    method, target, size = asked
    if understood[0] != method or len(understood[2]) != size:
        return False
    return understood[1] == target or (target.endswith(b"...") and understood[1].startswith(target[:-3]))


def match(name, seen, bad):
    """What an origin understood must be what thimble says that it sent, in order; what it refused is left out.
    {number of the line: Understood}."""
    out, left = {}, list(seen.understood)
    for i, line in enumerate(seen.lines):
        asked = sent(line)
        if line["status"] == 504:
            bad.append("%s waits for more of a request" % name)
        if not asked:
            if name in HASTY and left and line["endpoint"] and left[0][:2] == (octets(line["method"]), octets(line["target"])):
                left.pop(0)
        elif line["status"] >= 400:
            pass                    # refused: what they understand they answer with 200
        elif left and same(asked, left[0]):
            out[i] = left.pop(0)
            while line["retries"] and left and left[0] == out[i]:
                left.pop(0)
        elif (name, *asked[:2]) not in SILENT:
            bad.append("%s answered %r, and understood %s" % (name, asked, left[0] if left else "nothing"))
    if left:
        bad.append("%s understood %s, which was not sent as that" % (name, left[0]))
    return out


def fine(seen):
    """How many lines there are before an answer with an error.  An origin may refuse, and the connection may end with
    that: what is behind it need not be the same."""
    return next((i for i, line in enumerate(seen.lines) if line["status"] >= 400 or line["status"] == 0), len(seen.lines))


def compare(everyone):
    """{origin: Seen} -> what is wrong with it, as a list."""
    bad, took = [], {}
    for name, seen in everyone.items():
        bad += ["%s: %s" % (name, p) for p in seen.problems]
        took[name] = match(name, seen, bad)
        logged = [line["status"] for line in seen.lines if line["status"]]
        if seen.statuses != logged:
            bad.append("%s: the client was told %r, the log has %r" % (name, seen.statuses, logged))
    first, *others = everyone
    for name in others:
        a, b = everyone[first], everyone[name]
        n = min(fine(a), fine(b))
        asked = [[(line["method"], line["target"], line["bytes_in"]) for line in s.lines] for s in (a, b)]
        if asked[0][:n] != asked[1][:n] or (len(a.lines) != len(b.lines) and fine(a) == len(a.lines) and fine(b) == len(b.lines)):
            bad.append("%s was sent %r, %s %r" % (first, asked[0], name, asked[1]))
        bad += ["%s understood %s, %s %s" % (first, took[first][i], name, took[name][i])
                for i in range(n) if i in took[first] and i in took[name] and took[first][i] != took[name][i]]
    return bad


def compare_raw(everyone):
    """Without a proxy: whether two origins took something, and not the same."""
    took = {name: seen.understood for name, seen in everyone.items()}
    names = [n for n in took if took[n]]
    return ["%s understood %s, %s %s" % (names[0], took[names[0]], n, took[n]) for n in names[1:] if took[n] != took[names[0]]]


def self_check():
    """The comparison must find each of these."""
    def line(**more):
        return dict({"method": "POST", "target": "/a", "bytes_in": 3, "status": 200, "cause": None, "endpoint": "e", "retries": 0}, **more)
    a, b = Understood((b"POST", b"/a", b"abc")), Understood((b"GET", b"/b", b""))
    second = line(method="GET", target="/b", bytes_in=0)

    def true():
        return Seen([line(), second], [a, b], [200, 200], [])
    refused = Seen([line(status=400)], [], [400], [])
    lies = [Seen([line(), second], [a], [200, 200], []), Seen([line(), second], [a, b, b], [200, 200], []),
            Seen([line(), second], [Understood((b"POST", b"/a", b"ab")), b], [200, 200], []),
            Seen([line(), second], [Understood((b"POST", b"/a", b"abd")), b], [200, 200], []),
            Seen([line(), second], [a, Understood((b"GET", b"/c", b""))], [200, 200], []),
            Seen([line(), second], [a, b], [200], []), Seen([line()], [a], [200], []), Seen([line(status=504)], [], [504], []),
            Seen([line(cause="body_cut")], [a], [200], []), Seen([line(), second], [a, b], [200, 200], ["x"])]
    missed = [] if not compare({"x": true(), "y": true(), "z": refused}) else ["self-check: agreement is called a fault"]
    missed += ["self-check: fault %d is not found" % i for i, lie in enumerate(lies) if not compare({"x": true(), "y": lie})]
    return len(lies) + 1 - len(missed), missed


# ---- running ---------------------------------------------------------------

class Table:
    """All origins, asked side by side."""

    def __init__(self, names, folder, raw):
        self.raw, self.ends, self.asked, self.understood, self.refused = raw, [], 0, 0, 0
        self.pool = concurrent.futures.ThreadPoolExecutor(len(names))
        try:
            for name in names:
                self.ends.append(End(name, folder, raw))
        except Exception:
            self.stop()
            raise

    def ask(self, data):
        self.asked += 1
        everyone = dict(zip([e.name for e in self.ends], self.pool.map(lambda e: e.talk(data), self.ends)))
        self.understood += sum(len(seen.understood) for seen in everyone.values())
        self.refused += sum(line["status"] >= 400 and sent(line) is not None for seen in everyone.values() for line in seen.lines)
        return compare_raw(everyone) if self.raw else compare(everyone)

    def shorten(self, data):
        """Takes away what is not needed for a finding: first lines, then pieces, then bytes."""
        left = [SHRINK]

        def still(candidate):
            left[0] -= 1
            return bool(candidate) and bool(self.ask(candidate))
        parts = data.splitlines(keepends=True)
        for split in (lambda d: d.splitlines(keepends=True), lambda d: re.findall(rb"(?s)\w+|.", d), lambda d: [bytes([b]) for b in d]):
            parts, size = split(b"".join(parts)), 8
            while size and left[0] > 0:
                i = 0
                while i < len(parts) and left[0] > 0:
                    shorter = parts[:i] + parts[i + size:]
                    if still(b"".join(shorter)):
                        parts = shorter
                    else:
                        i += size
                size //= 2
        return b"".join(parts)

    def stop(self):
        problems = []
        for end in self.ends:
            try:
                end.stop()
            except AssertionError as e:
                problems.append("%s: %s" % (end.name, e))
        self.pool.shutdown()
        return problems


def show(name, data, found, table, verbose):
    print("FAIL %s" % name)
    short = table.shorten(data)
    for line in (table.ask(short) or found)[:6]:
        print("    " + line[:600])
    print("    sent: %r" % short)
    if verbose:
        print("    was:  %r" % data)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--thimble", default=harness.BINARY)
    ap.add_argument("--sample", action="store_true", help="a few, with the origins that are here")
    ap.add_argument("--count", type=int, help="conversations (3000; --sample: 300)")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--origin", default="", help="regular expression")
    ap.add_argument("--replay", help="a file with the bytes of one conversation")
    ap.add_argument("--raw", action="store_true", help="without thimble: how much do these origins disagree by themselves?")
    ap.add_argument("-v", action="store_true", help="the bytes before they were made shorter, too")
    a = ap.parse_args()
    harness.BINARY = os.path.abspath(a.thimble)
    os.environ["PATH"] += ":/usr/sbin:/sbin:/usr/local/go/bin"
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    names = [o for o in (SAMPLE if a.sample else ORIGINS) if re.search(a.origin, o)]
    gone = [o for o in names if missing(o)]
    for o in gone:
        print("%s: %s is not here" % (o, missing(o)))
    names = [o for o in names if o not in gone]
    passed, failures = self_check()
    failures += [] if a.sample else ["%s is not here" % o for o in gone]
    found = 0
    if a.replay:
        with open(a.replay, "rb") as f:
            work = [(a.replay, f.read())]
    else:
        work = list(odd.conversations(a.seed, a.count or (300 if a.sample else 3000)))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="differ-") as folder:
        os.chmod(folder, 0o755)
        table = Table(names, folder, a.raw)
        try:
            for name, data in work:
                bad = table.ask(data)
                if not bad:
                    passed += 1
                    continue
                found += 1
                if found <= 10:
                    show(name, data, bad, table, a.v)
                else:
                    print("FAIL %s: %s" % (name, bad[0][:300]))
        finally:
            failures += table.stop()
    for f in failures:
        print("FAIL " + f)
    print("%d conversations with %s, seed %d, %.0f s: %d requests understood, %d refused by an origin, %d disagreements" % (
        len(work), ", ".join(names), a.seed, time.monotonic() - began, table.understood, table.refused, found))
    print("%d passed, %d failed" % (passed, found + len(failures)))
    return found + len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
