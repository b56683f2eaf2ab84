#!/usr/bin/python3
"""Faults under load: origins that die, drip, lie or are gone, while numbered requests come at a steady rate.

Every origin records each request before it answers it (origin.c), and the load looks at every byte of every
answer (load.c), so that at the end it is known what became of each: nothing is believed.

    tests/faults/faults.py --thimble build/release/thimble kill --seconds 60 --rate 2000
    tests/faults/faults.py --thimble build/release/thimble all

What must be, and so is asserted:
  kill      one origin of three is killed and started again, in turn, `--every` seconds: no GET fails, no POST is
            seen twice, and of POSTs no more fail than were on their way when an origin died
  down      all are gone for a while, then back: errors are honest and quick, and over within a second; few connects are tried
  garbage   an origin answers noise: never a byte of another request's answer, the program lives
  drip      a thousand answers drip beside the load: its own requests do not suffer
  silent    an origin takes requests and says nothing: they end with 504 when the time is over, others go on
"""
import argparse
import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")

CONFIG = """\
listen: [{address: 127.0.0.1:%(port)d}]
workers: %(workers)d
log: {access: off}
timeouts: {connect: 1s, first_byte: %(first_byte)s, between_bytes: 2s}
services:
  web: {endpoints: [%(web)s]}
  slow: {endpoints: [%(slow)s]}
routes: [{service: web}, {path: /slow, service: slow}]
"""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Origin:
    def __init__(self, rig, number, port, mode):
        self.rig, self.name, self.port, self.mode = rig, "o%d" % number, port, mode
        self.record = os.path.join(rig.folder, self.name)
        open(self.record, "w").close()
        self.process = None

    def start(self):
        self.process = subprocess.Popen([self.rig.tool("fault_origin"), self.name, str(self.port), self.record, *self.mode],
                                        stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            raise SystemExit("an origin does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None


class Rig:
    """Three origins (those that drip are a service of their own), the program, and what was seen of it all."""

    def __init__(self, a, modes=((), (), ()), first_byte="5s"):
        self.a, self.loads = a, []
        self.folder = tempfile.mkdtemp(prefix="faults.")
        ports = free_ports(len(modes) + 1)
        self.origins = [Origin(self, i + 1, p, m) for i, (p, m) in enumerate(zip(ports, modes))]
        self.port = ports[-1]
        for o in self.origins:
            o.start()
        addresses = [("127.0.0.1:%d" % o.port, "drip" in o.mode) for o in self.origins]
        web, slow = [x for x, drips in addresses if not drips], [x for x, drips in addresses if drips]
        conf = os.path.join(self.folder, "thimble.yaml")
        with open(conf, "w") as f:
            f.write(CONFIG % {"port": self.port, "workers": a.workers, "first_byte": first_byte,
                              "web": ", ".join(web), "slow": slow[0] if slow else web[0]})
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.thimble = subprocess.Popen([a.thimble, "run", "-c", conf], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 10
        while "ready:" not in self.text():
            if self.thimble.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("thimble does not start:\n" + self.text())
            time.sleep(0.02)

    def tool(self, name):
        """Beside the program, or of another build: they are alike everywhere."""
        builds = [os.path.dirname(os.path.abspath(self.a.thimble)), *(os.path.join(BUILD, b) for b in ("asan", "release", "tsan", "clang"))]
        for tool in (os.path.join(b, "tests", name) for b in builds):
            if os.path.exists(tool):
                return tool
        raise SystemExit("%s is not built" % name)

    def text(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()

    def load(self, rate=None, seconds=None, posts=20, **more):
        words = [x for k, v in more.items() for x in (k, str(v))]
        self.loads.append(subprocess.Popen([self.tool("fault_load"), str(self.port), str(rate or self.a.rate),
                                 str(seconds or self.a.seconds), "posts", str(posts), *words], stdout=subprocess.PIPE))
        return self.loads[-1]

    def memory(self):
        """PSS in KiB."""
        with open("/proc/%d/smaps_rollup" % self.thimble.pid) as f:
            return int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1))

    def records(self):
        """How often each number was seen by any origin, by method."""
        seen = {"GET": collections.Counter(), "POST": collections.Counter()}
        for o in self.origins:
            with open(o.record) as f:
                for line in f:
                    number, method, _ = line.split()
                    seen[method][int(number)] += 1
        return seen

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in [o.process for o in self.origins] + self.loads + [self.thimble]:
            if p and p.poll() is None:
                p.kill()
                p.wait()
        shutil.rmtree(self.folder)

    def stop(self):
        """Ends it all; the counters that the program told of at its end."""
        for o in self.origins:
            if o.process:
                o.kill()
        self.thimble.send_signal(signal.SIGTERM)
        code = self.thimble.wait(30)
        text = self.text()
        self.log.close()
        if code != 0:
            raise SystemExit("thimble ended with %d:\n%s" % (code, text[-4000:]))
        counters = re.findall(r"served:(.*)", text)
        return {k: int(v) for k, v in re.findall(r" (\w+)=(\d+)", counters[-1] if counters else "")}


class Unmet(Exception):
    pass


def must(what, truth, got):
    if not truth:
        raise Unmet("%s: %s" % (what, json.dumps(got)))


def result(process):
    out = process.communicate()[0]
    got = json.loads(out)
    must("no byte of another answer", got["wrong"] == 0 and process.returncode == 0, got)
    return got


def twice(rig):
    return [n for n, times in rig.records()["POST"].items() if times > 1]


def kill(a):
    with Rig(a) as rig:
        load = rig.load()
        kills, began = 0, time.monotonic()
        while load.poll() is None and time.monotonic() - began < a.seconds - 0.2:
            o = rig.origins[kills % 3]
            time.sleep(a.every * 0.7)
            o.kill()
            kills += 1
            time.sleep(a.every * 0.3)
            o.start()
        got = result(load)
        got["kills"] = kills
        got["twice"] = twice(rig)
        got["counters"] = rig.stop()
        failed = got["sent"] - got["posts"] - got["ok"]
        must("no GET fails", failed == 0, got)
        must("no POST is seen twice", not got["twice"], got)
        # at the rate, a POST is at an origin for well under a millisecond; 256 connections bound it whatever happens
        must("few POSTs fail", got["posts"] - got["posts_ok"] <= kills * 20, got)
        must("it was a load", got["ok"] > a.rate * a.seconds * 0.5, got)
        return got


def down(a):
    with Rig(a) as rig:
        load = rig.load(seconds=a.seconds)
        time.sleep(a.seconds * 0.25)
        for o in rig.origins:
            o.kill()
        time.sleep(a.seconds * 0.4)
        for o in rig.origins:
            o.start()
        back_ms = a.seconds * 650 + 60	# starting takes some, too
        got = result(load)
        got["back_ms"], got["twice"], got["counters"] = back_ms, twice(rig), rig.stop()
        must("errors are honest", got["lost"] + got["cut"] + got["odd"] == 0, got)
        must("errors are 502 or 503", set(got["status"]) <= {"200", "502", "503"}, got)
        must("errors are quick", got["slowest_ms"] <= 1500, got)
        must("there were errors", got["error"] > 0, got)
        must("it recovers within a second", got["last_bad_ms"] <= back_ms + 1000, got)
        must("no POST is seen twice", not got["twice"], got)
        return got


def garbage(a):
    with Rig(a, modes=(("garbage", str(a.seed)), ("garbage", str(a.seed + 1)), ())) as rig:
        got = result(rig.load(timeout=7000))
        got["counters"] = rig.stop()
        must("some were answered", got["ok"] > 0, got)
        must("some were not", got["error"] + got["cut"] > 0, got)
        must("no request hangs", got["slowest_ms"] <= 5000 + 1500 and got["stuck"] == 0, got)
        return got


def drip(a):
    with Rig(a, modes=((), (), ("drip", "1000"))) as rig:
        before = rig.memory()
        slow = []
        for i in range(a.drips):
            s = socket.create_connection(("127.0.0.1", rig.port))
            s.sendall(b"GET /slow HTTP/1.1\r\nHost: d\r\nX-Id: %d\r\n\r\n" % (10 ** 9 + i))
            slow.append(s)
        time.sleep(2)
        got = {"drips": len(slow), "bytes_each": (rig.memory() - before) * 1024 / len(slow)}
        got["beside"] = result(rig.load(posts=0, timeout=5000))
        for s in slow:
            s.setblocking(False)
            data = s.recv(65536)
            must("the head and some of the body are here", b"\r\n\r\n<1" in data, data.decode("latin1"))
            must("and not all of it", len(data) < 600, len(data))
            s.close()
        got["counters"] = rig.stop()
        must("the others do not suffer", got["beside"]["ok"] == got["beside"]["sent"] and got["beside"]["slowest_ms"] < 1000, got)
        must("an answer that drips costs little", got["bytes_each"] < 8192, got)
        return got


def silent(a):
    with Rig(a, modes=(("silent",), (), ()), first_byte="1s") as rig:
        got = result(rig.load(posts=50, conns=2000))
        got["twice"], got["counters"] = twice(rig), rig.stop()
        must("honest errors alone", got["lost"] + got["cut"] + got["odd"] == 0, got)
        must("errors are 504", set(got["status"]) <= {"200", "504"}, got)
        must("in time", got["slowest_ms"] <= 1000 * 3 + 500, got)
        must("no POST is seen twice", not got["twice"], got)
        must("others are served", got["ok"] + got["posts_ok"] > got["sent"] * 0.5, got)
        return got


FAULTS = {"kill": kill, "down": down, "garbage": garbage, "drip": drip, "silent": silent}


def arguments(argv):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("fault", choices=[*FAULTS, "all"])
    ap.add_argument("--thimble", default="build/release/thimble")
    ap.add_argument("--seconds", type=int, default=60)
    ap.add_argument("--rate", type=int, default=2000, help="requests a second")
    ap.add_argument("--every", type=float, default=1.0, help="seconds from kill to kill")
    ap.add_argument("--drips", type=int, default=1000)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    return ap.parse_args(argv)


def main():
    a = arguments(sys.argv[1:])
    passed = failed = 0
    for name in FAULTS if a.fault == "all" else [a.fault]:
        try:
            print(name, json.dumps(FAULTS[name](a)), flush=True)
            passed += 1
        except Unmet as e:
            print("%s FAILED %s" % (name, e), flush=True)
            failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
