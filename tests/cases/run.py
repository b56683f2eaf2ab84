#!/usr/bin/env python3
"""Judges thimble by the protocol cases: some proxies side by side, each with a
judge of its own, since most of a case is waiting.

    run.py [--thimble BINARY] [--pairs N] [--only RE] [--class RE] [-v]

Exit 0 when all passed.  The last line is "N passed, N failed".
"""
import argparse
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def free_port():
    while True:
        port = random.randint(10000, 31000)     # below the range of outgoing connections
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Pair:
    """One proxy and the judge of one share of the cases."""

    def __init__(self, binary, share, judge_args):
        self.port, self.origin = free_port(), free_port()
        env = dict(os.environ, LISTEN_PORT=str(self.port), ORIGIN_PORT=str(self.origin))
        self.proxy = subprocess.Popen(
            [binary, "run", "-c", os.path.join(HERE, "thimble.yaml")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
        self.said = []
        self.ready = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        self.ready.wait(20)
        self.judge = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "run_http1.py"), "--proxy", "127.0.0.1:%d" % self.port,
             "--origin-port", str(self.origin), "--pid", str(self.proxy.pid), "--shard", share] + judge_args,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.lines = []

    def _listen(self):
        for line in self.proxy.stderr:
            self.said.append(line)
            if re.search(r"\bready\b", line):
                self.ready.set()
        self.ready.set()

    def follow(self, out):
        """Reads the judge to its end; what is no tally goes on at once."""
        for line in self.judge.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(("FAIL", "ok ", "the proxy")):
                print(line, end="", file=out, flush=True)
        self.judge.wait()

    def stop(self):
        """Ends the proxy; what is wrong with how it ended, or None."""
        if self.proxy.poll() is None:
            self.proxy.send_signal(signal.SIGTERM)
        try:
            code = self.proxy.wait(15)
        except subprocess.TimeoutExpired:
            self.proxy.kill()
            return "the proxy did not end within 15 s of SIGTERM"
        if code != 0:
            return "the proxy ended with code %d:\n%s" % (code, "".join(self.said[-60:]))
        if re.search(r"Sanitizer|runtime error:", "".join(self.said)):
            return "".join(self.said[-60:])
        return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--thimble", default=os.path.join(ROOT, "build", "asan", "thimble"))
    ap.add_argument("--pairs", type=int, default=4, help="proxies side by side")
    ap.add_argument("--only", help="regular expression on the case name")
    ap.add_argument("--class", dest="klass", help="regular expression on the class")
    ap.add_argument("-v", action="store_true", help="a line for each case")
    a = ap.parse_args()
    args = (["--only", a.only] if a.only else []) + (["--class", a.klass] if a.klass else []) + (["-v"] if a.v else [])
    pairs = [Pair(a.thimble, "%d/%d" % (i, a.pairs), args) for i in range(a.pairs)]
    threads = [threading.Thread(target=p.follow, args=(sys.stdout,)) for p in pairs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    passed = failed = 0
    tally, levels = {}, [0] * 5
    for p in pairs:
        problem = p.stop()
        if problem:
            print("FAIL " + problem)
            failed += 1
        for line in p.lines:
            m = re.match(r"(\S+) +(must|should) +(\d+) passed +(\d+) failed$", line)
            if m:
                t = tally.setdefault((m[1], m[2]), [0, 0])
                t[0] += int(m[3])
                t[1] += int(m[4])
            m = re.match(r"must: (\d+) of (\d+); should: (\d+) of (\d+); grave failures: (\d+)$", line)
            if m:
                levels = [x + int(y) for x, y in zip(levels, m.groups())]
        m = re.match(r"(\d+) passed, (\d+) failed$", p.lines[-1] if p.lines else "")
        passed += int(m[1]) if m else 0
        failed += int(m[2]) if m else 1
    for (name, level), (good, bad) in sorted(tally.items()):
        print("%-12s %-6s %3d passed %3d failed" % (name, level, good, bad))
    print("must: %d of %d; should: %d of %d; grave failures: %d" % tuple(levels))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
