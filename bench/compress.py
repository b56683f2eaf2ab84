"""Compressed answers: bytes on the wire, CPU of a request, memory while a client does not read.

Bodies that compress as pages do (c/origin.c): /p has 20 KiB, /q 256 KiB, /r 8 MiB. Each way of compressing is a peer of its
own here, and identity beside it shows what the rest of a request costs. All run in turns, in one run.
"""
import shutil
import socket
import time

WAYS = [("thimble", "identity", "fast"), ("nginx", "identity", 1)] + [
    ("thimble", coding, level) for coding in ("gzip", "zstd", "br") for level in ("fast", "balanced", "small")] + [
    ("nginx", "gzip", level) for level in (1, 5, 6)]
PATHS = ("/p", "/q")
HELD = 50       # clients that do not read


def body_bytes(b, path, coding):
    """How many bytes of a body come, and whether they have that coding."""
    s = socket.create_connection(("127.0.0.1", b.PORT), 5)
    s.sendall(("GET %s HTTP/1.1\r\nHost: bench.test\r\nAccept-Encoding: %s\r\nConnection: close\r\n\r\n" % (path, coding)).encode())
    d = b""
    while True:
        r = s.recv(262144)
        if not r:
            break
        d += r
    s.close()
    head, _, body = d.partition(b"\r\n\r\n")
    head = head.decode("latin-1").lower()
    if ("content-encoding: " + coding in head) != (coding != "identity"):
        raise RuntimeError("not %s: %s" % (coding, head))
    return len(body)


def cpu_of(b, s, path, coding, seconds):
    fields = () if coding == "identity" else ("Accept-Encoding: " + coding,)
    b.wrk(16, 1, path, False, {1}, fields=fields)
    before = b.cpu(s.pid)[0]
    d = b.wrk(16, seconds, path, False, {1}, fields=fields)
    if d["bad"]:
        raise RuntimeError("%d bad answers" % d["bad"])
    return (b.cpu(s.pid)[0] - before) / max(1, d["requests"]) * 1e6, d["requests"] / d["seconds"]


def rest(b, s):
    """Until nothing is being compressed any more."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = b.cpu(s.pid)[0]
        time.sleep(1)
        if b.cpu(s.pid)[0] - before < 0.01:
            return
    raise RuntimeError("it does not come to rest")


def held_by_slow(b, s, coding):
    """Bytes of PSS for each client that asked for /r, 8 MiB, and does not read, between HELD and twice as many."""
    h = b.Holder("slowread", False, 64, "/r", coding)
    points = []
    try:
        for n in (HELD, 2 * HELD):
            h.tell(str(n))
            rest(b, s)
            points.append(b.memory(s.pid)["pss"])
        h.tell("close")
    finally:
        h.end()
    return (points[1] - points[0]) / HELD


def once(b, m, way, rnd, a, have, out):
    peer, coding, level = way
    o = s = None
    try:
        o = b.start_origin({1})
        s = b.start_peer(m, 1, cpus={0}, compress=None if coding == "identity" else (coding, level))
        for path in PATHS:
            size = body_bytes(b, path, coding)
            us, rps = cpu_of(b, s, path, coding, a.seconds)
            out(kind="compress", peer=peer, coding=coding, level=str(level), path=path, round=rnd, bytes=size, cpu_us=us, rps=rps,
                held=held_by_slow(b, s, coding) if path == PATHS[0] else -1, locked=have)
    except (OSError, RuntimeError, AttributeError) as e:
        print("!", way, repr(e), flush=True)
    finally:
        for p in (s, o):
            if p:
                p.stop()
        if s:
            shutil.rmtree(s.params.dir, ignore_errors=True)


def main(b, peers, a, out):
    there = {m.peer: m for m in peers}
    ways = [w for w in WAYS if w[0] in there]
    for rnd in range(a.rounds):
        order = ways[rnd % len(ways):] + ways[:rnd % len(ways)]
        b.locked(lambda have: [once(b, there[w[0]], w, rnd, a, have, out) for w in order])
