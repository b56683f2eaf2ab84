"""How fast one stream is over a long way: 20 ms there and back.

A client in a network namespace of its own asks a proxy in another for one large
answer, and sends one large body, over a cable with 10 ms in each direction: netem
where the kernel has it, else c/delay.c between two TUN devices.  Windows and buffers
that are too small show here and nowhere on loopback.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

SIZE = 64 << 20
A, B = "thimble-client", "thimble-server"       # the namespaces
HERE = os.path.dirname(os.path.abspath(__file__))


def ip(*args):
    subprocess.run(["ip"] + list(args), check=True, stderr=subprocess.PIPE)


def quietly(*cmd):
    return subprocess.run(list(cmd), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Cable:
    """Two namespaces and the way between them."""

    def __init__(self, b, half_ms):
        self.delay = None
        for ns in (A, B):
            ip("netns", "add", ns)
        if self._netem(half_ms):
            self.kind = "netem"
        else:
            self.delay = subprocess.Popen([b.TMP + "/delay", "thwire0", "thwire1", str(half_ms * 1000)],
                                          stdout=subprocess.PIPE, text=True)
            if self.delay.stdout.readline().strip() != "ready":
                raise OSError("neither netem nor TUN devices work here")
            self.kind = "tun"
        for ns, dev, mine, other in ((A, "thwire0", "10.99.0.1", "10.99.0.2"), (B, "thwire1", "10.99.0.2", "10.99.0.1")):
            ip("link", "set", dev, "netns", ns)
            if self.kind == "tun":
                ip("-n", ns, "addr", "add", mine, "peer", other, "dev", dev)
            else:
                ip("-n", ns, "addr", "add", mine + "/24", "dev", dev)
            ip("-n", ns, "link", "set", dev, "up", "txqueuelen", "20000")
            ip("-n", ns, "link", "set", "lo", "up")
            if self.kind == "netem":
                subprocess.run(["ip", "netns", "exec", ns, "tc", "qdisc", "add", "dev", dev, "root", "netem",
                                "delay", "%dms" % half_ms, "limit", "200000"], check=True, stderr=subprocess.PIPE)

    def _netem(self, half_ms):
        if not quietly("ip", "link", "add", "thwire0", "type", "veth", "peer", "name", "thwire1"):
            return False
        if quietly("tc", "qdisc", "add", "dev", "thwire0", "root", "netem", "delay", "%dms" % half_ms):
            return True
        quietly("ip", "link", "del", "thwire0")
        return False

    def remove(self):
        if self.delay:
            self.delay.send_signal(signal.SIGTERM)
            self.delay.wait(5)
        quietly("ip", "link", "del", "thwire0")
        for ns in (A, B):
            quietly("ip", "netns", "del", ns)


ORIGIN = """
import socket, sys, threading
SIZE = %d
piece = b'x' * (1 << 20)
def serve(c):
    buf = b''
    while True:
        while b'\\r\\n\\r\\n' not in buf:
            d = c.recv(1 << 20)
            if not d: return
            buf += d
        head, _, buf = buf.partition(b'\\r\\n\\r\\n')
        if head.startswith(b'POST'):
            left = SIZE - len(buf)
            buf = b''
            while left > 0:
                left -= len(c.recv(1 << 20))
            c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
        elif b'/big' in head:
            c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %%d\\r\\n\\r\\n' %% SIZE)
            for _ in range(SIZE >> 20): c.sendall(piece)
        else:
            c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(('127.0.0.1', int(sys.argv[1])))
l.listen()
print('ready', flush=True)
while True:
    threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
""" % SIZE

CLIENT = """
import socket, sys, time
SIZE, port = %d, int(sys.argv[1])
def get(s, target):
    s.sendall(b'GET ' + target + b' HTTP/1.1\\r\\nHost: b\\r\\n\\r\\n')
    return head(s)
def head(s):
    buf = b''
    while b'\\r\\n\\r\\n' not in buf: 
        d = s.recv(65536)
        if not d: sys.exit('closed')
        buf += d
    h, _, rest = buf.partition(b'\\r\\n\\r\\n')
    if b' 200 ' not in h[:13]: sys.exit(h[:60])
    return len(rest)
s = socket.create_connection(('10.99.0.2', port), 60)
get(s, b'/')
t = time.monotonic()
for _ in range(5): get(s, b'/')
rtt = (time.monotonic() - t) / 5
t = time.monotonic()
left = SIZE - get(s, b'/big')
while left > 0: left -= len(s.recv(1 << 20)) or sys.exit('cut')
down = time.monotonic() - t
print(rtt * 1000, SIZE / down / 1e6, flush=True)
t = time.monotonic()
s.sendall(b'POST /up HTTP/1.1\\r\\nHost: b\\r\\nContent-Length: %%d\\r\\n\\r\\n' %% SIZE)
piece = b'y' * (1 << 20)
for _ in range(SIZE >> 20): s.sendall(piece)
head(s)
up = time.monotonic() - t
print(SIZE / up / 1e6)
""" % SIZE


def one(b, m, cable, rnd, out):
    inside = ["ip", "netns", "exec", B]
    p = b.Params(1, 1000)
    origin = subprocess.Popen(inside + [sys.executable, "-c", ORIGIN, str(b.UP_PORT)], stdout=subprocess.PIPE, text=True)
    origin.stdout.readline()
    cmd = m.start(m.path, p)
    # Peers listen on 127.0.0.1; here they must be reached from outside.
    for name in os.listdir(p.dir):
        path = os.path.join(p.dir, name)
        if os.path.isfile(path):
            with open(path) as f:
                text = f.read()
            with open(path, "w") as f:
                f.write(text.replace("127.0.0.1:%d" % b.PORT, "10.99.0.2:%d" % b.PORT))
    log = open(p.dir + "/bench.log", "w")
    proxy = subprocess.Popen(inside + cmd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=p.dir)
    try:
        for attempt in range(100):
            r = subprocess.run(["ip", "netns", "exec", A, sys.executable, "-c", CLIENT, str(b.PORT)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if "refused" not in r.stderr or proxy.poll() is not None:
                break
            time.sleep(0.05)
        figures = list(map(float, r.stdout.split()))
        if r.returncode:
            print("!", m.peer, r.stderr.strip().split("\n")[-1], open(p.dir + "/bench.log").read()[-300:].strip())
        if len(figures) >= 2:       # some peers refuse so large a body as they are shipped
            out(kind="rtt", peer=m.peer, round=rnd, cable=cable.kind, answer_ms=figures[0], down_mb_s=figures[1],
                up_mb_s=figures[2] if len(figures) > 2 else None)
    finally:
        for q in (proxy, origin):
            for pid in b.tree(q.pid):
                try:
                    os.kill(pid, signal.SIGTERM)
                except OSError:
                    pass
            try:
                q.wait(10)
            except subprocess.TimeoutExpired:
                q.kill()
                q.wait()
        log.close()
        shutil.rmtree(p.dir, ignore_errors=True)


def main(b, peers, a, out):
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("rtt is skipped: it needs root and ip (iproute2)")
        return
    cable = None
    try:
        cable = Cable.__new__(Cable)
        cable.delay = None
        cable.__init__(b, 10)
    except (OSError, subprocess.CalledProcessError) as e:
        print("rtt is skipped: no cable could be laid: %s %s" % (e, getattr(e, "stderr", b"") or ""))
        cable.remove()
        return
    try:
        for rnd in range(a.rounds):
            for m in peers:
                if not m.binary.startswith("built:"):
                    one(b, m, cable, rnd, out)
    finally:
        cable.remove()
