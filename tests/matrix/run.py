#!/usr/bin/env python3
"""Real clients and real servers with thimble between them (README.md).

    run.py [--thimble BINARY] [--sample] [--kind RE] [--client RE] [--server RE] [--direct] [-v]

Exit 0 when all passed.  The last line is "N passed, N failed".
"""
import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "wire"))
import harness  # noqa: E402
import table  # noqa: E402
from servers import Go, PYTHON, Server, missing, program  # noqa: E402

CLIENTS = {
    "curl": [PYTHON, "curl.py"], "wrk": [PYTHON, "wrk.py"], "node-http": ["node", "node_http.js"],
    "node-fetch": ["node", "node_fetch.js"], "undici": ["node", "undici.js"], "http.client": [PYTHON, "http_client.py"],
    "aiohttp": [PYTHON, "aiohttp_client.py"], "go": ["go"],
}
SERVERS = ["nginx", "apache", "node", "python", "go"]
SAMPLE = {"curl", "node-http", "node-fetch", "http.client", "go"}, {"nginx", "node", "python", "go"}
NODE = dict(os.environ, NODE_PATH="/usr/share/nodejs", NODE_NO_WARNINGS="1")


# ---- one client ------------------------------------------------------------

def client_missing(name):
    needs = {"curl": "curl", "wrk": "wrk"}.get(name, CLIENTS[name][0])
    if name == "go":
        return missing("go")
    if not program(needs):
        return needs
    probe = {"undici": ["node", "-e", "require('undici')"], "aiohttp": [PYTHON, "-c", "import aiohttp"],
             "node-fetch": ["node", "-e", "new Headers().getSetCookie()"]}.get(name)
    if probe and subprocess.run(probe, env=NODE, stderr=subprocess.DEVNULL, check=False).returncode:
        return name
    return None


def target_of(client, kind, i):
    """The target with a mark by which the log's line is found."""
    target = kind.steps[i]["target"]
    return target if target == "*" else "%s%sk=%s.%s.%d" % (target, "&" if "?" in target else "?", client, kind.name, i)


def unmarked(value):
    return re.sub(r"[?&]k=[^&]*$", "", value)


def ask(client, address, kinds, folder):
    """Lets a client take the steps of these kinds.  {kind: what it saw, step by step}."""
    spec = {"host": address, "kinds": [
        {"name": k.name, "parallel": k.parallel, "pipeline": k.pipeline, "steps": [
            dict({n: v for n, v in s.items() if n != "want"}, target=target_of(client, k, i),
                 body=s["body"] and os.path.join(folder, "body-" + s["body"])) for i, s in enumerate(k.steps)]}
        for k in kinds]}
    path = os.path.join(folder, "spec-%s-%s.json" % (client, address))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f)
    command, *script = CLIENTS[client]
    args = [Go.path(), "ask", path] if client == "go" else [command, os.path.join(HERE, "clients", script[0]), path]
    p = subprocess.run(args, env=NODE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=300, check=False)
    seen = {k.name: [None] * len(k.steps) for k in kinds}
    for line in p.stdout.decode().splitlines():
        one = json.loads(line)
        seen[one["kind"]][one["step"]] = one
    last = (p.stderr.decode().strip().splitlines() or [""])[-1][:200]
    for name, steps in seen.items():
        for i, one in enumerate(steps):
            if one is None:
                steps[i] = {"kind": name, "status": 0, "error": "the client said nothing: " + last}
    return seen


# ---- judging ---------------------------------------------------------------

def sha(data):
    return hashlib.sha256(data).hexdigest()


def judge_step(client, want, seen):
    if want.error:
        return [] if seen["error"] else ["the client does not know that the answer was cut"]
    if seen["error"]:
        return ["error: " + seen["error"]]
    if seen["status"] != want.status and want.status is not None:
        return ["status %d, not %d" % (seen["status"], want.status)]
    bad = []
    if want.body is not None and not want.ws:
        allowed = want.body if isinstance(want.body, list) else [want.body]
        if seen["sha"] not in [sha(b) for b in allowed]:
            bad.append("a body of %d bytes, not the one of %d" % (seen["n"], len(allowed[0])))
    for name, value in want.headers.items():
        got = [unmarked(v) for n, v in seen["headers"] if n.lower() == name.lower()]
        if isinstance(value, list) and client in table.CANNOT_TELL["repeated"]:
            continue
        if got != ([] if value is None else value if isinstance(value, list) else [value]):
            bad.append("%s: %r, not %r" % (name, got, value))
    if want.contains:
        text = base64.b64decode(seen.get("body") or "").decode("latin-1").lower()
        lost = [c for c in want.contains if c.lower() not in text]
        if lost:
            bad.append("%d lines did not come, as %r" % (len(lost), lost[0]))
    if want.trailers and client not in table.CANNOT_TELL["trailers"]:
        got = {n.lower(): v for n, v in seen["trailers"]}
        if got != want.trailers:
            bad.append("trailers %r" % got)
    if want.interim and client not in table.CANNOT_TELL["interim"] and seen["interim"] != want.interim:
        bad.append("interim answers %r, not %r" % (seen["interim"], want.interim))
    return bad


def lines_of(client, kind, i, log):
    mark = re.compile(r"[?&]k=%s\.%s\.%d$" % (re.escape(client), re.escape(kind.name), i))
    return [line for line in log if mark.search(line["target"] or "") or (kind.steps[i]["target"] == "*" == line["target"])]


def judge_counts(step, line):
    """The log's counts of body bytes."""
    want, bad = step["want"], []
    sent = len(table.BODIES[step["body"]]) if step["body"] else 0
    if want.ws:
        sent = sum(step["ws"])
    if line["bytes_in"] < sent if want.ws else line["bytes_in"] not in ([sent] if want.status != 413 else range(sent + 1)):
        bad.append("the log counts %d bytes in, not %d" % (line["bytes_in"], sent))
    if isinstance(want.body, bytes) and line["bytes_out"] != len(want.body):
        bad.append("the log counts %d bytes out, not %d" % (line["bytes_out"], len(want.body)))
    return bad


def judge(client, kind, seen, log):
    """What is wrong with a kind, by what the client saw and what thimble wrote (None: there was no thimble)."""
    bad = []
    for i, step in enumerate(kind.steps):
        want = step["want"]
        bad += ["step %d: %s" % (i, b) for b in judge_step(client, want, seen[i])]
        if log is None:
            continue
        lines = lines_of(client, kind, i, log)
        if client == "wrk" and kind.parallel:   # it goes on until all have an answer, and leaves then
            lines = [line for line in lines if line["cause"] != "client_left"][:1]
        statuses = [line["status"] for line in lines]
        if statuses != ([seen[i]["status"]] if want.status is None else want.log):
            bad.append("step %d: the log has %r" % (i, statuses))
        elif any((line["cause"] is not None) != want.cause for line in lines):
            bad.append("step %d: the log's cause is %r" % (i, [line["cause"] for line in lines]))
        else:
            bad += ["step %d: %s" % (i, b) for b in judge_counts(step, lines[-1])]
    if log is not None and table.keeps(client, kind):
        ports = {line["client_port"] for i in range(len(kind.steps)) for line in lines_of(client, kind, i, log)}
        if len(ports) != 1:
            bad.append("%d connections, not one" % len(ports))
    return bad


def self_check():
    """The judge must find each of these lies.  How many it found, and what it did not."""
    kind = table.Kind("self", table.get("/a", b"abc", headers={"A": "1", "B": ["1", "2"]}, trailers={"x": "1"}, interim=[103],
                                        contains=["abc"]), table.get("/b", error=True, cause=True), one=True)
    kind.steps[0]["want"].headers["C"] = None

    def truth():
        seen = [{"error": "", "status": 200, "sha": sha(b"abc"), "n": 3, "body": base64.b64encode(b"abc").decode(),
                 "headers": [("a", "1"), ("b", "1"), ("b", "2")], "trailers": [("X", "1")], "interim": [103]}, {"error": "cut"}]
        return seen, [{"target": "/a?k=curl.self.0", "status": 200, "cause": None, "client_port": 1, "bytes_in": 0, "bytes_out": 3},
                      {"target": "/b?k=curl.self.1", "status": 200, "cause": "answer_cut", "client_port": 1, "bytes_in": 0}]
    lies = [(0, 0, "status", 201), (0, 0, "sha", sha(b"abd")), (0, 0, "headers", [("a", "1")]), (0, 0, "error", "reset"),
            (0, 0, "headers", [("a", "1"), ("b", "1"), ("b", "2"), ("c", "")]), (0, 0, "trailers", []), (0, 0, "interim", []),
            (0, 0, "body", ""), (0, 1, "error", ""), (1, 0, "status", 502), (1, 0, "cause", "x"), (1, 1, "cause", None),
            (1, 0, "bytes_in", 1), (1, 0, "bytes_out", 4), (1, 1, "client_port", 2), (1, 1, "target", "/c")]
    missed = [] if not judge("curl", kind, *truth()) else ["the truth is called a lie"]
    for part, i, key, value in lies:
        told = truth()
        told[part][i][key] = value
        if not judge("curl", kind, *told):
            missed.append("not found by the judge: %s=%r" % (key, value))
    return len(lies) + 1 - len(missed), missed


# ---- all pairs of one server -----------------------------------------------

class Row:
    """A server, thimble in front of it, and all clients, one after the other."""

    def __init__(self, name, clients, kinds, folder, direct):
        self.name, self.clients, self.kinds, self.folder, self.direct = name, clients, kinds, folder, direct
        self.passed, self.failures, self.excluded, self.seconds = 0, [], [], 0

    def run(self):
        began = time.monotonic()
        try:
            server = Server(self.name, self.folder, self.folder)
            try:
                proxy = None if self.direct else start_thimble(server, self.folder)
                try:
                    self.pairs(server, proxy)
                finally:
                    if proxy:
                        proxy.stop()
            finally:
                server.stop()
        except Exception as e:      # noqa: B902  (whatever it is, it must be seen)
            self.failures.append(("-", "-", "%s: %s" % (type(e).__name__, e)))
        self.seconds = time.monotonic() - began

    def pairs(self, server, proxy):
        for client in self.clients:
            kinds = []
            for k in self.kinds:
                why = table.reason(client, self.name, k)
                if why:
                    self.excluded.append((client, k.name, why))
                else:
                    kinds.append(k)
            seen, log = self.pair(client, proxy or server, kinds, proxy)
            for k in kinds:
                bad = judge(client, k, seen[k.name], log)
                if bad:
                    self.failures.append((client, k.name, "; ".join(bad[:4]) + self.without(client, server, k, proxy)))
                else:
                    self.passed += 1

    def pair(self, client, end, kinds, proxy):
        start = len(proxy.out.lines) if proxy else 0
        address = end.address if isinstance(end, Server) else "127.0.0.1:%d" % end.port
        seen = ask(client, address, kinds, self.folder)
        if not proxy:
            return seen, None
        wanted = sum(len(s["want"].log) for k in kinds for s in k.steps)
        end = time.monotonic() + 5
        while True:
            log = [json.loads(line) for line in list(proxy.out.lines)[start:]]
            log = [line for line in log if line["target"] == "*" or "k=%s." % client in line["target"]]
            if len(log) >= wanted or time.monotonic() > end:    # the judge says which line is not there
                return seen, log
            time.sleep(0.01)

    def without(self, client, server, kind, proxy):
        """Whether the same fails when nobody is between."""
        if not proxy:
            return ""
        bad = judge(client, kind, ask(client, server.address, [kind], self.folder)[kind.name], None)
        return "  [without thimble: %s]" % (bad[0] if bad else "passes")


def start_thimble(server, folder, patience="30s"):
    for attempt in range(5):
        port = harness.free_port()
        text = harness.config({"app": server.address}, listen="upgrade: [websocket]", timeouts={
            k: patience for k in ("head", "body", "write", "first_byte", "between_bytes", "tunnel")},
            log="level: info, access: stdout, format: json")
        path = os.path.join(folder, "thimble-%s.yaml" % server.name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("@PORT@", str(port)))
        try:
            return harness.Thimble(["run", "-c", path], port=port)
        except AssertionError:
            if attempt == 4:
                raise


def matching(names, pattern):
    return [n for n in names if re.search(pattern or "", n)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--thimble", default=harness.BINARY)
    ap.add_argument("--sample", action="store_true", help="what is here already, without what takes long")
    ap.add_argument("--kind", help="regular expression")
    ap.add_argument("--client", help="regular expression")
    ap.add_argument("--server", help="regular expression")
    ap.add_argument("--direct", action="store_true", help="without thimble: does the table itself hold?")
    ap.add_argument("-v", action="store_true", help="say what is not run, and why")
    a = ap.parse_args()
    harness.BINARY = os.path.abspath(a.thimble)
    os.environ["PATH"] += ":/usr/sbin:/sbin:/usr/local/go/bin"
    clients, servers = matching(CLIENTS, a.client), matching(SERVERS, a.server)
    if a.sample:
        clients, servers = [c for c in clients if c in SAMPLE[0]], [s for s in servers if s in SAMPLE[1]]
    failures = []
    for name, lacks in [(c, client_missing(c)) for c in clients] + [(s, missing(s)) for s in servers]:
        if lacks:
            print("%s: %s is not here" % (name, lacks))
            if not a.sample:
                failures.append("%s is not here" % name)
    clients, servers = [c for c in clients if not client_missing(c)], [s for s in servers if not missing(s)]
    kinds = [k for k in table.KINDS if re.search(a.kind or "", k.name)]
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
        os.chmod(folder, 0o755)
        for name, data in list(table.FILES.items()) + [("body-" + n, b) for n, b in table.BODIES.items()]:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
            os.utime(f.name, (table.MTIME, table.MTIME))
        rows = [Row(s, clients, kinds, folder, a.direct) for s in servers]
        threads = [threading.Thread(target=r.run) for r in rows]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    return report(rows, clients, kinds, failures, a.v)


def report(rows, clients, kinds, failures, verbose):
    passed, missed = self_check()
    failures += missed
    for r in rows:
        for client, kind, why in r.excluded:
            if verbose:
                print("not run: %s -> %s, %s: %s" % (client, r.name, kind, why))
        failures += ["%s -> %s, %s: %s" % (client, r.name, kind, what) for client, kind, what in r.failures]
        passed += r.passed
    for f in failures:
        print("FAIL " + f)
    cells = len(rows) * len(clients) * len(kinds)
    print("%d kinds, %d clients, %d servers: %d of %d exchanges run, %d left out with a reason (-v); %s" % (
        len(kinds), len(clients), len(rows), cells - sum(len(r.excluded) for r in rows), cells,
        sum(len(r.excluded) for r in rows), ", ".join("%s %.0f s" % (r.name, r.seconds) for r in rows)))
    print("%d passed, %d failed" % (passed, len(failures)))
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
