"""User instructions and system calls for each proxied request.

Unlike time, the number of instructions does not move with the load of the machine,
so a change of one per cent can be seen.  Two runs of different length, and the
slope between them, leave out the start; all threads are counted, and the access log
is on, to /dev/null.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import time


CONNECTIONS = 64    # in step: each asks, then each is answered, so that a turn has many events, as under load
REQUEST = b"GET /s HTTP/1.1\r\nHost: bench.test\r\n\r\n"    # what wrk sends


def answer(s):
    got = b""
    while b"\r\n\r\n" not in got:
        got += s.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    left = int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)[1]) - len(body)
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError("answer %r" % head[:60])
    while left > 0:
        left -= len(s.recv(65536))


def ask(port, n):
    """n requests over CONNECTIONS kept connections."""
    conns = []
    for _ in range(CONNECTIONS):
        s = socket.create_connection(("127.0.0.1", port), 60)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conns.append(s)
    for _ in range(n // CONNECTIONS):
        for s in conns:
            s.sendall(REQUEST)
        for s in conns:
            answer(s)
    for s in conns:
        s.close()


def run(b, m, wrapper, n):
    """One proxy under `wrapper` serves n requests and is ended in order."""
    p = b.Params(1, 1000)
    p.access_log = "/dev/null"
    origin = b.start_origin()
    try:
        cmd = wrapper + m.start(m.path, p)
        server = b.Server(cmd, b.PORT, ready_s=60, cwd=p.dir, log=p.dir + "/bench.log",
                          env=m.env(p) if hasattr(m, "env") else None)
        try:
            ask(b.PORT, n)
            time.sleep(0.5)
            # The program itself: strace would let it run on.
            for pid in reversed(b.tree(server.pid)):
                os.kill(pid, signal.SIGTERM)
                break
            server.p.wait(60)
        finally:
            server.stop()
    finally:
        origin.stop()
        shutil.rmtree(p.dir, ignore_errors=True)


def instructions(b, m, n):
    out = os.path.join(b.TMP, "callgrind.%s.%d" % (m.peer, n))
    run(b, m, ["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + out], n)
    with open(out) as f:
        found = re.search(r"(?m)^(?:totals|summary): (\d+)", f.read())
    return int(found[1]), out


def calls(b, m, n):
    out = os.path.join(b.TMP, "strace.%s.%d" % (m.peer, n))
    run(b, m, ["strace", "-f", "-c", "-o", out], n)
    counts = {}
    with open(out) as f:
        for line in f:
            w = line.split()
            if len(w) >= 5 and w[3].isdigit() and w[-1] != "total":
                counts[w[-1]] = counts.get(w[-1], 0) + int(w[3])
    return counts


def main(b, peers, a, out):
    if not shutil.which("valgrind"):
        raise SystemExit("instr needs valgrind")
    low, high = 8 * CONNECTIONS, 72 * CONNECTIONS
    for m in peers:
        (x, _), (y, path) = instructions(b, m, low), instructions(b, m, high)
        row = {"kind": "instr", "peer": m.peer, "requests": high - low, "instructions": (y - x) / (high - low),
               "profile": path}
        if shutil.which("strace"):
            x, y = calls(b, m, low), calls(b, m, high)
            per = {k: round((y[k] - x.get(k, 0)) / (high - low), 2) for k in y}
            per = {k: v for k, v in per.items() if v >= 0.02}
            row["syscalls"] = round(sum(per.values()), 2)
            row["calls"] = per
        out(**row)
