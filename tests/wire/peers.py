"""TLS clients and servers of others (tests/peers): how each is built, started and asked."""
import glob
import json
import os
import shutil
import subprocess

from harness import ROOT, Lines

HERE = os.path.join(ROOT, "tests", "peers")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/go/bin"


def program(name):
    return shutil.which(name, path=PATH)


def built(name, sources, command, **more):
    """A program of tests/peers, built when its sources are newer."""
    path = os.path.join(ROOT, "build", name)
    files = glob.glob(os.path.join(HERE, sources))
    if not os.path.exists(path) or os.path.getmtime(path) < max(map(os.path.getmtime, files)):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        r = subprocess.run(command + ["-o", path + ".new"] + (["."] if "cwd" in more else []), capture_output=True, text=True,
                           check=False, **more)
        assert r.returncode == 0, r.stderr
        os.rename(path + ".new", path)
    return path


def go(o):
    env = dict(os.environ, GOPROXY="off", GOTOOLCHAIN="local", CGO_ENABLED="0")
    env.setdefault("HOME", os.path.join(ROOT, "build"))
    return [built("peer-go", "go/*", [program("go"), "build"], cwd=os.path.join(HERE, "go"), env=env), json.dumps(o)]


def node(o):
    return ["node", os.path.join(HERE, "node.js"), json.dumps(o)]


def wolf(o):
    command = ["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", os.path.join(HERE, "wolf.c"), "-lwolfssl"]
    return [built("peer-wolf", "wolf.c", command), o["mode"]] + [
        str(o.get(k) or "-") for k in ("port", "name", "ca", "cert", "key", "version", "size", "rounds", "requests")]


PEERS = {"go": go, "node": node, "wolfssl": wolf}


class Process:
    """One that runs until the test is over; `out` are its Lines, `say` is for its input."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env=dict(os.environ, PATH=PATH), start_new_session=True)
        self.out = Lines(self.process.stdout)

    def say(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.out.thread.join(10)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass


def client(peer, **order):
    """Runs one to its end; what it says of each of its connections."""
    command = PEERS[peer](dict({"mode": "client", "name": "a.test", "size": 100000, "rounds": 2, "requests": 3}, **order))
    r = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 0 and "error" not in r.stdout, r.stdout + r.stderr
    return [dict(w.split("=", 1) for w in line.split()) for line in r.stdout.splitlines()]


def server(stage, peer, **order):
    """Starts one; its address."""
    p = Process(PEERS[peer](dict({"mode": "server", "name": "a.test", "size": 0, "rounds": 0, "requests": 0, "port": 0}, **order)))
    stage.origins.append(p)
    return "127.0.0.1:" + p.out.wait(r"^port=\d+").split("=")[1]
