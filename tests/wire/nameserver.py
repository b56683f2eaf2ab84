"""A name server that says what a test's script has it say, by UDP and TCP on one port of loopback.

    ns = NameServer()
    ns.zone["web.test"] = Name(a=["127.0.0.2"], ttl=1)     # what is not in the zone is NXDOMAIN
    ns.zone["web.test"] = Name(rcode=SERVFAIL)
    ns.zone["web.test"] = Name(silent=True)
"""
import socket
import struct
import threading

from harness import PATIENCE, wait_until

A, CNAME, SRV, AAAA = 1, 5, 33, 28
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = 0, 1, 2, 3, 4, 5
TYPES = {A: "A", AAAA: "AAAA", SRV: "SRV"}


def packed(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.rstrip(".").split(".") if p) + b"\0"


def unpacked(data, at):
    parts = []
    while data[at]:
        parts.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(parts).lower(), at + 1


class Name:
    """What the server says of one name.  `srv` holds (priority, weight, port, target); `aliases` are CNAMEs on the way;
    `raw` is called with the query's bytes and returns what is sent (a list of messages) instead of all that."""

    def __init__(self, a=(), aaaa=(), srv=(), ttl=60, rcode=NOERROR, silent=False, aliases=(), raw=None, rcodes=None,
                 truncate=False, dangling=False):
        self.records = {A: list(a), AAAA: list(aaaa), SRV: list(srv)}
        self.ttl, self.rcode, self.silent, self.aliases, self.raw = ttl, rcode, silent, list(aliases), raw
        self.rcodes = rcodes or {}          # of one type
        self.truncate = truncate            # by UDP, whatever the size
        self.dangling = dangling            # the aliases lead nowhere


def record(name, kind, ttl, data):
    return packed(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def rdata(kind, value):
    if kind == A:
        return socket.inet_aton(value)
    if kind == AAAA:
        return socket.inet_pton(socket.AF_INET6, value)
    return struct.pack("!HHH", *value[:3]) + packed(value[3])


def answer(query, n, kind, name):
    """The whole message that says `n` of `name`, asked for `kind`."""
    rcode = n.rcodes.get(kind, n.rcode)
    at, out, count = name, b"", 0
    for alias in n.aliases if rcode == NOERROR else ():
        out, count, at = out + record(at, CNAME, n.ttl, packed(alias)), count + 1, alias
    if rcode == NOERROR and not n.dangling:
        for value in n.records.get(kind, ()):
            out, count = out + record(at, kind, n.ttl, rdata(kind, value)), count + 1
    end = unpacked(query, 12)[1] + 4
    return query[:2] + struct.pack("!HHHHH", 0x8180 | rcode, 1, count, 0, 0) + query[12:end] + out


class NameServer:
    def __init__(self, port=0):
        self.zone, self.queries, self.lock = {}, [], threading.Lock()
        self.silent = False
        self.peer = None                    # who asked last, by UDP
        self.over = threading.Event()
        while True:
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.udp.bind(("127.0.0.1", port))
            self.udp.settimeout(0.2)
            self.tcp = socket.socket()
            self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                self.tcp.bind(self.udp.getsockname())
                break
            except OSError:
                self.udp.close()
                self.tcp.close()
                if port:
                    raise
        self.port = self.udp.getsockname()[1]
        self.tcp.listen(64)
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._udp, self._tcp)]
        for t in self.threads:
            t.start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.port

    def config(self, **more):
        """The `dns` of a configuration that asks nobody else."""
        keys = dict(nameservers="'%s'" % self.address, search="off", hosts="off", ttl_min="100ms", timeout="200ms")
        keys.update(more)
        return "dns: {%s}\n" % ", ".join("%s: %s" % i for i in keys.items())

    def asked(self, name, kind=None, how=None):
        """How often."""
        with self.lock:
            return sum(1 for n, k, h in self.queries if n == name and kind in (None, k) and how in (None, h))

    def wait_asked(self, name, more=1, kind=None, patience=PATIENCE):
        """Until it is asked `more` times from now on."""
        want = self.asked(name, kind) + more
        wait_until(lambda: self.asked(name, kind) >= want, "%d questions for %s" % (more, name), patience)

    def _messages(self, query, how):
        name, end = unpacked(query, 12)
        kind = struct.unpack("!H", query[end:end + 2])[0]
        with self.lock:
            self.queries.append((name, kind, how))
            n = self.zone.get(name)
        if self.silent or (n and n.silent):
            return []
        if n is None:
            n = Name(rcode=NXDOMAIN)
        if n.raw:
            return n.raw(query)
        m = answer(query, n, kind, name)
        if how == "udp" and (n.truncate or len(m) > 512):
            head = query[:2] + struct.pack("!HHHHH", 0x8380 | n.rcode, 1, 0, 0, 0)
            m = head + query[12:end + 4]
        return [m]

    def _udp(self):
        while not self.over.is_set():
            try:
                query, self.peer = self.udp.recvfrom(4096)
                for m in self._messages(query, "udp"):
                    self.udp.sendto(m, self.peer)
            except OSError:
                if self.over.is_set():
                    return

    def _tcp(self):
        while True:
            try:
                s, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        s.settimeout(PATIENCE)
        try:
            f = s.makefile("rb")
            while True:
                size = f.read(2)
                if len(size) < 2:
                    return
                for m in self._messages(f.read(struct.unpack("!H", size)[0]), "tcp"):
                    s.sendall(struct.pack("!H", len(m)) + m)
        except OSError:
            pass
        finally:
            s.close()

    def stop(self):
        self.over.set()
        for s in (self.udp, self.tcp):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.udp.close()
        self.tcp.close()
        for t in self.threads:
            t.join(PATIENCE)
