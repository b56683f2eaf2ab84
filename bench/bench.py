#!/usr/bin/env python3
"""Measures reverse proxies side by side: memory and CPU.

  bench.py list                       peers and whether their binary is here
  bench.py start    [options]         memory at start, binary size
  bench.py mem      [options]         bytes per held connection
  bench.py load     [options]         requests/s, latency, CPU per request
  bench.py services [options]         many services, with and without checks
  bench.py instr    [options]         instructions and system calls per request
  bench.py rtt      [options]         one stream over a way of 20 ms
  bench.py compress [options]         compressed answers: bytes, CPU, memory
  bench.py tlsfloor                   heap bytes per idle connection of OpenSSL alone
  bench.py report   --out FILE        tables from the results file

Every measurement is one JSON line appended to --out.  See README.md.
"""
import argparse
import importlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TMP = os.path.join(tempfile.gettempdir(), "proxy-bench")
PEERS_DIR = os.environ.get("BENCH_PEERS", os.path.join(tempfile.gettempdir(), "peers"))
LOCK = os.environ.get("BENCH_LOCK", os.path.join(tempfile.gettempdir(), "bench.lock"))
BASE = int(os.environ.get("BENCH_PORT", "28080"))
PORT, TLS_PORT, UP_PORT = BASE, BASE + 1, BASE + 2
PAGE = 4096
# open files: as many as this machine lets a process have, 200000 at most
NOFILE = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (200000, 200000))
    NOFILE = 200000
except (ValueError, OSError):
    NOFILE = 200000 if NOFILE < 0 else min(NOFILE, 200000)
MAXCONN = 60000 if NOFILE >= 130000 else NOFILE - 1000
STEPS = (1000, 10000, 20000) if NOFILE >= 50000 else (1000, NOFILE * 2 // 5, NOFILE * 4 // 5)
sys.path.insert(0, os.path.join(HERE, "peers"))


# ---------------------------------------------------------------- set-up ---

def build():
    """Compiles the C tools and makes a certificate, once."""
    os.makedirs(TMP, exist_ok=True)
    for name in ("origin", "conns", "churn", "floor", "sslmem", "delay"):
        src = os.path.join(HERE, "c", name + ".c")
        out = os.path.join(TMP, name)
        if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(src):
            subprocess.check_call(["cc", "-O2", "-o", out, src, "-lssl", "-lcrypto", "-lpthread"])
    cert, key = TMP + "/cert.pem", TMP + "/key.pem"
    if not os.path.exists(cert):
        subprocess.check_call(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", key, "-out", cert, "-days", "3650", "-subj", "/CN=bench.test",
             "-addext", "subjectAltName=DNS:bench.test"], stderr=subprocess.DEVNULL)
        with open(TMP + "/both.pem", "w") as f:
            f.write(open(cert).read() + open(key).read())
    with open(TMP + "/openssl.cnf", "w") as f:
        # load generators offer one cipher suite and X25519 first, so that
        # every proxy does the same cryptography
        f.write("openssl_conf = c\n[c]\nssl_conf = s\n[s]\nsystem_default = d\n[d]\n"
                "MinProtocol = TLSv1.3\nCiphersuites = TLS_AES_128_GCM_SHA256\nGroups = X25519:P-256\n")


def load_peer(name):
    m = importlib.import_module(name)
    b = m.binary
    if b.startswith("built:"):
        path = os.path.join(TMP, b[6:])
    elif b.startswith("repo:"):
        path = os.environ.get("BENCH_BIN_" + name.upper()) or os.path.join(os.path.dirname(HERE), b[5:])
    else:
        path = os.environ.get("BENCH_BIN_" + name.upper())
        if not path:
            local = os.path.join(PEERS_DIR, b)
            path = local if os.path.exists(local) else shutil.which(b)
    m.path = path
    m.peer = name.replace("_", "-")
    return m


def all_peers():
    names = sorted(f[:-3] for f in os.listdir(os.path.join(HERE, "peers"))
                   if f.endswith(".py") and not f.startswith("_"))
    return [load_peer(n) for n in names]


def version_of(m):
    if not hasattr(m, "version"):
        return ""
    r = subprocess.run([m.path] + m.version, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return r.stdout.strip().split("\n")[0][:100]


# ------------------------------------------------------- processes, figures ---

def tree(pid):
    """pid and all its descendants."""
    kids = {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                s = open("/proc/%s/stat" % d).read()
                kids.setdefault(int(s[s.rindex(")") + 2:].split()[1]), []).append(int(d))
            except OSError:
                pass
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        todo += kids.get(p, [])
    return out


def memory(pid):
    """PSS, RSS, private bytes of the process tree; `anon` is the part of PSS that lies in no file."""
    tot = {"pss": 0, "rss": 0, "priv": 0, "anon": 0, "procs": 0}
    for p in tree(pid):
        try:
            for line in open("/proc/%d/smaps_rollup" % p):
                k, _, v = line.partition(":")
                if k == "Pss":
                    tot["pss"] += int(v.split()[0]) * 1024
                elif k == "Pss_Anon":
                    tot["anon"] += int(v.split()[0]) * 1024
                elif k == "Rss":
                    tot["rss"] += int(v.split()[0]) * 1024
                elif k in ("Private_Dirty", "Private_Clean"):
                    tot["priv"] += int(v.split()[0]) * 1024
            tot["procs"] += 1
        except OSError:
            pass
    return tot


def cpu(pid):
    """CPU seconds of the process tree: exact run time, and user/system ticks."""
    ns = user = sys_ = 0
    tck = os.sysconf("SC_CLK_TCK")
    for p in tree(pid):
        try:
            for t in os.listdir("/proc/%d/task" % p):
                ns += int(open("/proc/%d/task/%s/schedstat" % (p, t)).read().split()[0])
            s = open("/proc/%d/stat" % p).read()
            f = s[s.rindex(")") + 2:].split()
            user += int(f[11])
            sys_ += int(f[12])
        except (OSError, IndexError):
            pass
    return ns / 1e9, user / tck, sys_ / tck


def kernel():
    """Kernel memory: socket buffers (sockstat) and slab, in bytes."""
    m = re.search(r"TCP: inuse (\d+) orphan \d+ tw (\d+) alloc (\d+) mem (\d+)", open("/proc/net/sockstat").read())
    slab = int(re.search(r"Slab:\s+(\d+)", open("/proc/meminfo").read()).group(1)) * 1024
    return {"tcp_alloc": int(m.group(3)), "tcp_mem": int(m.group(4)) * PAGE, "tw": int(m.group(2)), "slab": slab}


def fds(pid):
    n = 0
    for p in tree(pid):
        try:
            n += len(os.listdir("/proc/%d/fd" % p))
        except OSError:
            pass
    return n


class Params:
    """What a peer file gets: numbers, paths, and two helpers."""

    def __init__(self, workers, maxconn, services=None, health=False, compress=None):
        self.port, self.tls_port, self.nofile = PORT, TLS_PORT, NOFILE
        self.up_host, self.up_port = "127.0.0.1", UP_PORT
        self.workers, self.maxconn = workers, maxconn
        self.cert, self.key, self.pem = TMP + "/cert.pem", TMP + "/key.pem", TMP + "/both.pem"
        self.services, self.health, self.compress = services, health, compress
        self.dir = tempfile.mkdtemp(prefix="peer-", dir=TMP)
        os.chmod(self.dir, 0o755)

    def fill(self, text):
        """Replaces @name@ by the parameter of that name."""
        return re.sub(r"@(port|tls_port|up_host|up_port|workers|maxconn|cert|key|pem|dir|nofile)@",
                      lambda m: str(getattr(self, m.group(1))), text)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        return path


def pinned(cpus):
    def f():
        resource.setrlimit(resource.RLIMIT_NOFILE, (NOFILE, NOFILE))
        if cpus is not None:
            os.sched_setaffinity(0, cpus)
    return f


class Server:
    """A started process tree that listens on a port."""

    def __init__(self, cmd, port, cpus=None, env=None, cwd=None, ready_s=20, log=None):
        e = dict(os.environ)
        e.update(env or {})
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            raise RuntimeError("port %d is in use" % port)
        except OSError:
            pass
        self.log = open(log or os.devnull, "w")
        t = time.monotonic()
        self.p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  preexec_fn=pinned(cpus), env=e, cwd=cwd, start_new_session=True)
        self.pid = self.p.pid
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                pass
            if self.p.poll() is not None or time.monotonic() - t > ready_s:
                rc = self.p.poll()
                self.stop()
                raise RuntimeError("did not start (rc %s): %s: %s" % (
                    rc, " ".join(cmd)[:120], open(log).read()[-600:] if log else ""))
            time.sleep(0.01)
        self.start_s = time.monotonic() - t

    def stop(self):
        pids = tree(self.pid)
        for sig, wait in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            for p in pids:
                try:
                    os.kill(p, sig)
                except OSError:
                    pass
            end = time.monotonic() + wait
            while time.monotonic() < end:
                self.p.poll()
                pids = [p for p in pids if os.path.exists("/proc/%d" % p) and p != self.pid or
                        p == self.pid and self.p.poll() is None]
                if not pids:
                    return
                time.sleep(0.05)


def start_origin(cpus=None):
    return Server([TMP + "/origin", str(UP_PORT)], UP_PORT, cpus)


def start_peer(m, workers, maxconn=None, services=None, health=False, cpus=None, ready_s=None, how=None, compress=None):
    p = Params(workers, maxconn or MAXCONN, services, health, compress)
    cmd = (how or m.start)(m.path, p)
    env = m.env(p) if hasattr(m, "env") else None
    s = Server(cmd, PORT, cpus, env, p.dir, ready_s or getattr(m, "ready_s", 20), p.dir + "/bench.log")
    s.params = p
    return s


def http_get(host, path="/s", port=PORT, timeout=5):
    """Status code of one GET."""
    s = socket.create_connection(("127.0.0.1", port), timeout)
    s.settimeout(timeout)
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host)).encode())
    d = b""
    while True:
        r = s.recv(65536)
        d += r
        m = re.search(rb"(?i)\ncontent-length: *(\d+).*?\r\n\r\n", d, re.S)
        if not r or m and len(d) >= m.end() + int(m.group(1)):
            break
    s.close()
    return (int(d.split()[1]) if d else 0), d.partition(b"\r\n\r\n")[2]


def origin_stats():
    w = http_get("x", "/stats", UP_PORT)[1].decode().split()
    return dict(zip(w[::2], map(int, w[1::2])))


class Out:
    def __init__(self, path):
        self.path = path

    def __call__(self, **kw):
        kw["when"] = time.strftime("%H:%M:%S")
        with open(self.path, "a") as f:
            f.write(json.dumps(kw) + "\n")
        print(" ".join("%s=%s" % (k, round(v, 2) if isinstance(v, float) else v)
                       for k, v in kw.items() if k != "when"), flush=True)


# ---------------------------------------------------------------- measures ---

def do_start(peers, a, out):
    for m in peers:
        for workers in a.workers:
            for maxconn in (1024, 60000):
                o = start_origin()
                try:
                    s = start_peer(m, workers, maxconn)
                except RuntimeError as e:
                    print("!", m.peer, e)
                    o.stop()
                    continue
                time.sleep(1)
                before = memory(s.pid)
                try:
                    for _ in range(20):
                        if http_get("bench.test")[0] != 200:
                            raise RuntimeError("does not answer 200")
                    time.sleep(0.5)
                    mem = memory(s.pid)
                except (OSError, RuntimeError) as e:
                    print("!", m.peer, repr(e))
                    continue
                finally:
                    s.stop()
                    o.stop()
                out(kind="start", peer=m.peer, workers=workers, maxconn=maxconn, start_ms=s.start_s * 1000,
                    pss0=before["pss"], pss=mem["pss"], rss=mem["rss"], priv=mem["priv"], procs=mem["procs"],
                    binary=os.path.getsize(os.path.realpath(m.path)), version=version_of(m))


class Holder:
    """The conns tool, told what to do line by line."""

    def __init__(self, mode, tls, inflight=64, path="/s", accept="identity"):
        cmd = [TMP + "/conns", "127.0.0.1", str(TLS_PORT if tls else PORT), mode,
               "inflight=%d" % inflight, "path=" + path, "accept=" + accept] + ([] if not tls else ["tls"] if tls is True else [tls])
        e = dict(os.environ, OPENSSL_CONF=TMP + "/openssl.cnf")
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  preexec_fn=pinned(None), env=e)

    def tell(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().split()

    def end(self):
        self.p.stdin.close()
        self.p.wait()


MEM_CASES = {
    # name: (mode, tls, steps, path, inflight)
    "idle": ("get", False, STEPS, "/s", 64),
    "idle-tls": ("get", True, STEPS, "/s", 64),
    "none": ("none", False, STEPS, "/s", 64),
    "idle-tls12": ("get", "tls12", STEPS, "/s", 64),
    "none-tls": ("none", True, STEPS, "/s", 64),
    "hello": ("hello", True, (500, 1000, 2000), "/s", 64),
    "hellopart": ("hellopart", True, (500, 1000, 2000), "/s", 64),
    "partial": ("partial", False, STEPS, "/s", 64),
    "partial-tls": ("partial", True, STEPS, "/s", 64),
    "slowread": ("slowread", False, (500, 1000, 2000), "/l", 64),
    "slowread-tls": ("slowread", True, (500, 1000, 2000), "/l", 64),
    "stream": ("get", False, [n // 2 for n in STEPS], "/s", 64),     # two connections each at the peer
}


def do_mem(peers, a, out):
    for workers in a.workers:
        for m in peers:
            if workers > getattr(m, "max_workers", 99):
                continue
            for case in a.cases:
                mode, tls, steps, path, inflight = MEM_CASES[case]
                if (tls and not m.tls) or (case == "stream" and not hasattr(m, "stream")):
                    continue
                if m.binary == "built:origin" and mode == "slowread":
                    pass
                o = start_origin()
                try:
                    s = start_peer(m, workers, how=m.stream if case == "stream" else None)
                except RuntimeError as e:
                    print("!", m.peer, e)
                    o.stop()
                    continue
                h = None
                try:
                    for _ in range(20):
                        http_get("bench.test")
                    time.sleep(1)
                    k0, m0 = kernel(), memory(s.pid)
                    h = Holder(mode, tls, inflight, path)
                    points = [dict(n=0, **m0)]
                    failed = 0
                    for n in steps:
                        r = h.tell(str(n))
                        live, failed = int(r[1]), int(r[2])
                        time.sleep(2.5 if mode == "slowread" else 1.5)
                        live = int(h.tell("check")[1])
                        points.append(dict(n=live, up=max(0, origin_stats()["open"] - 1), **memory(s.pid)))
                    k1 = kernel()
                    st = origin_stats()
                    temp = 0
                    for p in tree(s.pid):   # files a proxy spilled to, unlinked ones too
                        for f in os.listdir("/proc/%d/fd" % p):
                            try:
                                i = os.stat("/proc/%d/fd/%s" % (p, f))
                                if i.st_size and (i.st_mode & 0o170000) == 0o100000:
                                    temp += i.st_blocks * 512
                            except OSError:
                                pass
                    stayed = None
                    if case == "idle":      # one in a hundred stays, chosen at random
                        left = int(h.tell("keep 100")[1])
                        time.sleep(6)
                        stayed = dict(n=left, **memory(s.pid))
                    h.tell("close")
                    h.end()
                    h = None
                    time.sleep(5)
                    after = memory(s.pid)
                    x, y = points[-2], points[-1]
                    slope = (y["pss"] - x["pss"]) / max(1, y["n"] - x["n"])
                    out(kind="mem", peer=m.peer, workers=workers, case=case, live=y["n"], failed=failed,
                        per_conn=slope, all_in=(y["pss"] - m0["pss"]) / max(1, y["n"]), pss0=m0["pss"], pss=y["pss"], pss_after=after["pss"],
                        anon0=m0["anon"], anon=y["anon"], anon_after=after["anon"], rss=y["rss"], rss_after=after["rss"], up_open=y["up"], origin_bytes=st["bytes"],
                        stayed=stayed and stayed["n"], pss_stayed=stayed and stayed["pss"],
                        stayed_share=stayed and round((stayed["pss"] - m0["pss"]) / max(1, y["pss"] - m0["pss"]), 3),
                        temp_bytes=temp, tcp_mem=k1["tcp_mem"] - k0["tcp_mem"], slab=k1["slab"] - k0["slab"],
                        tcp_alloc=k1["tcp_alloc"] - k0["tcp_alloc"],
                        points=[(p["n"], p["pss"]) for p in points])
                except (RuntimeError, OSError, IndexError, ValueError) as e:
                    print("!", m.peer, case, repr(e))
                finally:
                    if h:
                        h.p.kill()
                    s.stop()
                    o.stop()
                    shutil.rmtree(s.params.dir, ignore_errors=True)


def to_us(t):
    n, u = re.match(r"([\d.]+)(us|ms|s|m)", t).groups()
    return float(n) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}[u]


def wrk(conns, secs, path, tls, cpus, threads=2, fields=()):
    url = "%s://127.0.0.1:%d%s" % ("https" if tls else "http", TLS_PORT if tls else PORT, path)
    e = dict(os.environ, OPENSSL_CONF=TMP + "/openssl.cnf")
    r = subprocess.run(["wrk", "-t%d" % threads, "-c%d" % conns, "-d%gs" % secs, "--latency", "-H", "Host: bench.test"] +
                       [w for f in fields for w in ("-H", f)] + [url],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       preexec_fn=pinned(cpus), env=e)
    t = r.stdout
    d = {"requests": int(re.search(r"(\d+) requests in", t).group(1)),
         "seconds": to_us(re.search(r"requests in ([\d.]+\w+)", t).group(1)) / 1e6,
         "p50": to_us(re.search(r"(?m)^ +50% +(\S+)", t).group(1)), "p99": to_us(re.search(r"(?m)^ +99% +(\S+)", t).group(1))}
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", t)
    err = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", t)
    d["bad"] = (int(bad.group(1)) if bad else 0) + (sum(map(int, err.groups())) if err else 0)
    return d


def churn(conns, secs, tls, cpus):
    e = dict(os.environ, OPENSSL_CONF=TMP + "/openssl.cnf")
    r = subprocess.run([TMP + "/churn", "127.0.0.1", str(TLS_PORT if tls else PORT), str(secs), str(conns)] +
                       (["tls"] if tls else []), stdout=subprocess.PIPE, text=True, preexec_fn=pinned(cpus), env=e)
    w = r.stdout.split()
    d = dict(zip(w[::2], map(float, w[1::2])))
    return {"requests": int(d["done"]), "seconds": d["seconds"], "p50": d["p50"], "p99": d["p99"], "bad": int(d["failed"])}


LOADS = {
    # name: (connections, path, tls, new connection per request)
    "s64": (64, "/s", False, False),
    "s512": (512, "/s", False, False),
    "m64": (64, "/m", False, False),
    "l64": (64, "/l", False, False),
    "tls64": (64, "/s", True, False),
    "tls-m64": (64, "/m", True, False),
    "new": (64, "/s", False, True),
    "new-tls": (64, "/s", True, True),
}


lock_wait = [600.0]


def locked(f):
    """Runs f(True) under the machine's benchmark lock (flock).  When the lock
    cannot be had in --lock-wait seconds the work goes on without it, marked
    as such in the results; the share of CPU that others used is recorded."""
    import fcntl

    def rang(*_):
        raise TimeoutError

    with open(LOCK, "a") as l:
        old = signal.signal(signal.SIGALRM, rang)
        signal.setitimer(signal.ITIMER_REAL, lock_wait[0])
        try:
            fcntl.flock(l, fcntl.LOCK_EX)
            have = True
        except TimeoutError:
            have = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        return f(have)


def machine_busy():
    """CPU seconds used by everything on this machine since boot."""
    f = list(map(int, open("/proc/stat").readline().split()[1:9]))
    return (sum(f) - f[3] - f[4] - f[7]) / os.sysconf("SC_CLK_TCK")


def children_cpu():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def load_once(m, workers, case, rnd, seconds, have_lock, out):
    conns, path, tls, fresh = LOADS[case]
    # one worker: proxy on core 0, load and origin on core 1
    pp, lp = ({0}, {1}) if workers == 1 else (None, None)
    o = s = None
    try:
        o = start_origin(lp)
        s = start_peer(m, workers, cpus=pp)

        def go(secs):
            return churn(conns, secs, tls, lp) if fresh else wrk(conns, secs, path, tls, lp)

        go(1)
        c0, u0, s0 = cpu(s.pid)
        oc0 = cpu(o.pid)[0]
        b0, k0, t0 = machine_busy(), children_cpu(), time.monotonic()
        d = go(seconds)
        c1, u1, s1 = cpu(s.pid)
        oc1 = cpu(o.pid)[0]
        other = (machine_busy() - b0) - (children_cpu() - k0) - (c1 - c0) - (oc1 - oc0)
        other = max(0.0, other) / (time.monotonic() - t0) * 100
        mem = memory(s.pid)
        n = max(1, d["requests"])
        ticks = max(1e-9, u1 - u0 + s1 - s0)
        out(kind="load", peer=m.peer, workers=workers, case=case, round=rnd,
            rps=d["requests"] / d["seconds"], p50=d["p50"], p99=d["p99"], bad=d["bad"],
            cpu_us=(c1 - c0) / n * 1e6, user_share=(u1 - u0) / ticks,
            cpu_pct=(c1 - c0) / d["seconds"] * 100, origin_us=(oc1 - oc0) / n * 1e6,
            pss=mem["pss"], locked=have_lock, other_pct=other)
    except (AttributeError, KeyError, OSError, RuntimeError) as e:
        print("!", m.peer, case, repr(e), flush=True)
    finally:
        if s:
            s.stop()
            shutil.rmtree(s.params.dir, ignore_errors=True)
        if o:
            o.stop()


def do_load(peers, a, out):
    for rnd in range(a.rounds):
        for workers in a.workers:
            for case in a.cases:
                tls, fresh = LOADS[case][2:]
                # peers take turns, each round starting with another one
                order = peers[rnd % len(peers):] + peers[:rnd % len(peers)]
                order = [m for m in order if (m.tls or not tls) and workers <= getattr(m, "max_workers", 99)
                         and (getattr(m, "closes", True) or not fresh)]
                locked(lambda have: [load_once(m, workers, case, rnd, a.seconds, have, out) for m in order])


def do_services(peers, a, out):
    n = a.services
    svcs = []
    for i in range(n):
        ends = []
        for j in range(2):
            k = i * 2 + j
            ends.append(("127.%d.%d.%d" % (20 + k // 62500, k // 250 % 250 + 1, k % 250 + 1), UP_PORT))
        svcs.append(("svc%05d.example.test" % i, ends))
    for m in peers:
        if not m.services:
            continue
        for workers in a.workers:
            for health in ((False, True) if m.health else (False,)):
                if a.only_health and not health:
                    continue
                o = start_origin()
                try:
                    s = start_peer(m, workers, 10000, svcs, health, ready_s=240)
                except RuntimeError as e:
                    print("!", m.peer, e)
                    o.stop()
                    continue
                try:
                    time.sleep(3)
                    load_cpu = cpu(s.pid)[0]
                    m0 = memory(s.pid)
                    codes = []
                    for h, _ in (svcs[0], svcs[n // 2], svcs[-1]):
                        try:
                            codes.append(http_get(h, "/s")[0])
                        except OSError:
                            codes.append(-1)
                    time.sleep(12 if health else 0)
                    r0, c0, t0 = origin_stats()["requests"], cpu(s.pid)[0], time.monotonic()
                    time.sleep(20 if health else 2)
                    r1, c1, t1 = origin_stats()["requests"], cpu(s.pid)[0], time.monotonic()
                    m1 = memory(s.pid)
                    # one GET to every service, to see what a used service costs
                    touched = 0
                    conn = None
                    for h, _ in svcs:
                        try:
                            touched += http_get(h, "/s")[0] == 200
                        except OSError:
                            pass
                    time.sleep(1)
                    m2 = memory(s.pid)
                    out(kind="services", peer=m.peer, workers=workers, n=n, health=health,
                        start_s=s.start_s, load_cpu_s=load_cpu, pss0=m0["pss"], pss=m1["pss"], rss=m1["rss"],
                        pss_touched=m2["pss"], touched=touched, codes=codes,
                        cpu_pct=(c1 - c0) / (t1 - t0) * 100, checks_s=(r1 - r0) / (t1 - t0), fds=fds(s.pid))
                finally:
                    s.stop()
                    o.stop()
                    shutil.rmtree(s.params.dir, ignore_errors=True)


# ------------------------------------------------------------------ report ---

def quiet(rows):
    """Load lines taken while little else ran; all of them if there is none."""
    q = [r for r in rows if r.get("other_pct", 0) <= 25]
    return q or rows


def med(rows, key):
    v = [r[key] for r in rows]
    return statistics.median(v) if v else None


def table(title, head, lines):
    print("\n### %s\n" % title)
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join([" --- "] + [" ---: "] * (len(head) - 1)) + "|")
    for l in lines:
        print("| " + " | ".join(l) + " |")


def mb(x):
    return "%.1f" % (x / 1048576)


def do_report(a):
    rows = [json.loads(l) for l in open(a.out)]
    order = []
    for r in rows:
        if r["peer"] not in order:
            order.append(r["peer"])
    sel = lambda **k: [r for r in rows if all(r.get(x) == y for x, y in k.items())]
    if sel(kind="start"):
        lines = []
        for p in order:
            r = sel(kind="start", peer=p)
            if r:
                g = lambda w, m: (lambda v: mb(med(v, "pss")) if v else "-")(sel(kind="start", peer=p, workers=w, maxconn=m))
                lines.append([p, r[-1]["version"][:40], "%.0f" % (r[-1]["binary"] / 1024),
                              g(1, 1024), g(1, 60000), g(2, 1024), g(2, 60000)])
        table("PSS at start, MiB (after 20 requests)", ["peer", "version", "binary KiB", "1w, 1k conns max",
              "1w, 60k max", "2w, 1k max", "2w, 60k max"], lines)
    for w in (1, 2):
        lines = []
        cases = [c for c in MEM_CASES if sel(kind="mem", workers=w, case=c)]
        for p in order:
            if sel(kind="mem", peer=p, workers=w):
                l = [p]
                for c in cases:
                    v = sel(kind="mem", peer=p, workers=w, case=c)
                    l.append("%.0f" % med(v, "per_conn") if v else "-")
                lines.append(l)
        if lines:
            table("Bytes per held connection, slope of PSS between the last two steps, %d worker(s)" % w,
                  ["peer"] + cases, lines)
            lines = []
            for p in order:
                if sel(kind="mem", peer=p, workers=w):
                    l = [p]
                    for c in cases:
                        v = sel(kind="mem", peer=p, workers=w, case=c)
                        l.append("%s / %s / %s" % (mb(med(v, "pss0")), mb(med(v, "pss")), mb(med(v, "pss_after"))) if v else "-")
                    lines.append(l)
            table("PSS in MiB before / with all connections / 5 s after they left, %d worker(s)" % w, ["peer"] + cases, lines)
    for w in (1, 2):
        cases = [c for c in LOADS if sel(kind="load", workers=w, case=c)]
        lines = []
        for p in order:
            if sel(kind="load", peer=p, workers=w):
                v = [[r["cpu_us"] for r in sel(kind="load", peer=p, workers=w, case=c)] for c in cases]
                lines.append([p] + ["%.1f (%d)" % (min(x), len(x)) if x else "-" for x in v])
        if lines:
            table("CPU microseconds per request, %d worker(s), lowest of the (n) rounds" % w, ["peer"] + cases, lines)
        for key, name, fmt in (("cpu_us", "CPU microseconds per request", "%.1f"), ("rps", "requests per second", "%.0f"),
                               ("p50", "p50 latency, us", "%.0f"), ("p99", "p99 latency, us", "%.0f")):
            lines = []
            for p in order:
                if sel(kind="load", peer=p, workers=w):
                    l = [p]
                    for c in cases:
                        v = sel(kind="load", peer=p, workers=w, case=c)
                        q = quiet(v)
                        noisy = "*" if v and q is v and len(v) and v[0].get("other_pct", 0) > 25 else ""
                        bad = "!" if any(r["bad"] > 0.001 * max(1, r["rps"]) for r in q) else ""
                        l.append(fmt % med(q, key) + noisy + bad if v else "-")
                    lines.append(l)
            if lines:
                table("%s, %d worker(s), median" % (name, w), ["peer"] + cases, lines)
    if sel(kind="load"):
        print("\n`*`: only measured while other work used more than 25 % of a core; `!`: some requests failed.")
    if sel(kind="instr"):
        lines = []
        for p in order:
            v = sel(kind="instr", peer=p)
            if v:
                lines.append([p, "%.0f" % med(v, "instructions"), "%.2f" % v[-1]["syscalls"] if "syscalls" in v[-1] else "-"])
        table("For each proxied request, access log on", ["peer", "user instructions", "system calls"], lines)
    if sel(kind="rtt"):
        lines = []
        for p in order:
            v = sel(kind="rtt", peer=p)
            if v:
                lines.append([p, "%.1f" % med(v, "answer_ms"), "%.1f" % med(v, "down_mb_s"),
                              "%.1f" % med(v, "up_mb_s") if v[-1]["up_mb_s"] else "-"])
        table("One stream over 20 ms, MB/s, median", ["peer", "small answer, ms", "down", "up"], lines)
    if sel(kind="compress"):
        lines = []
        for k in dict.fromkeys((r["peer"], r["coding"], r["level"], r["path"]) for r in sel(kind="compress")):
            v = sel(kind="compress", peer=k[0], coding=k[1], level=k[2], path=k[3])
            lines.append(list(map(str, k)) + [str(v[-1]["bytes"]), "%.0f" % med(v, "cpu_us"), "%.0f" % (med(v, "held") / 1024) if v[-1]["held"] >= 0 else ""])
        table("Compressed answers, median", ["peer", "coding", "level", "path", "bytes sent", "CPU us", "KiB held by a slow client"], lines)
    if sel(kind="services"):
        lines = []
        for r in sel(kind="services"):
            lines.append([r["peer"], str(r["workers"]), "yes" if r["health"] else "no", "%.2f" % r["start_s"],
                          "%.2f" % r["load_cpu_s"], mb(r["pss"]), mb(r["pss_touched"]), str(r["touched"]), "%.2f" % r["cpu_pct"],
                          "%.0f" % r["checks_s"], str(r["fds"])])
        table("Services", ["peer", "workers", "checks", "start s", "CPU s to load", "PSS MiB", "PSS after one GET each, MiB",
              "GETs ok", "CPU %", "checks/s", "fds"], lines)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=("list", "start", "mem", "load", "services", "instr", "rtt", "compress", "tlsfloor", "report"))
    ap.add_argument("--peers", default="", help="comma list; default all found")
    ap.add_argument("--workers", default="1", help="comma list of worker counts")
    ap.add_argument("--cases", default="", help="comma list; default all of the kind")
    ap.add_argument("--seconds", type=float, default=8)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--services", type=int, default=5000)
    ap.add_argument("--only-health", action="store_true")
    ap.add_argument("--lock-wait", type=float, default=600, help="seconds to wait for the lock file")
    ap.add_argument("--out", default=os.path.join(TMP, "results.jsonl"))
    a = ap.parse_args()
    if a.what == "report":
        return do_report(a)
    # when ended from outside, still stop what was started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    build()
    if a.what == "tlsfloor":
        subprocess.check_call([TMP + "/sslmem", TMP + "/cert.pem", TMP + "/key.pem"])
        return
    peers = all_peers()
    if a.peers:
        want = a.peers.split(",")
        peers = sorted((m for m in peers if m.peer in want), key=lambda m: want.index(m.peer))
    if a.what == "list":
        for m in peers:
            print("%-16s %-50s %s" % (m.peer, m.path, version_of(m) if m.path and os.path.exists(m.path) else "not here"))
        return
    peers = [m for m in peers if m.path and os.path.exists(m.path)]
    a.workers = [int(x) for x in a.workers.split(",")]
    known = MEM_CASES if a.what == "mem" else LOADS
    a.cases = a.cases.split(",") if a.cases else list(known)
    out = Out(a.out)
    lock_wait[0] = a.lock_wait
    if a.what in ("instr", "rtt", "compress"):
        if a.what == "instr" and not a.peers:
            peers = [m for m in peers if m.peer == "thimble"]
        return importlib.import_module(a.what).main(sys.modules[__name__], peers, a, out)
    {"start": do_start, "mem": do_mem, "load": do_load, "services": do_services}[a.what](peers, a, out)


if __name__ == "__main__":
    main()
