"""Back-pressure: a peer that does not read holds up nobody else, and costs little."""
import socket
import threading

from harness import octets, wait_until

BIG = 16 << 20


def rss(p):
    with open("/proc/%d/statm" % p.pid) as f:
        return int(f.read().split()[1]) * 4096


class Pouring:
    """An origin's script that pours an answer and counts what the proxy takes."""

    def __init__(self, size):
        self.size, self.taken, self.done = size, 0, threading.Event()

    def __call__(self, c):
        r = c.request()
        while r and r.target != "/big":
            c.reply("small")
            r = c.request()
        if r is None:
            return
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        c.send("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.size)
        piece = b"x" * 16384
        while self.taken < self.size:
            c.send(piece)
            self.taken += len(piece)
        self.done.set()
        c.hold()

    def settled(self):
        """What was taken once that has stopped growing."""
        last = [-1, 0]

        def still():
            last[1] = last[1] + 1 if self.taken == last[0] else 0
            last[0] = self.taken
            return last[1] > 40
        wait_until(still, "the proxy to stop reading")
        return self.taken


def test_a_client_that_does_not_read_holds_back_the_origin(stage):
    pour = Pouring(BIG)
    o = stage.origin(pour)
    p = stage.proxy(o, timeouts={"write": "20s", "between_bytes": "20s"})
    slow = stage.client(p, receive_buffer=8192, patience=20)
    slow.request("GET", "/big")
    o.wait(1)
    # What is under way lies in kernel buffers, not in the proxy.
    assert pour.settled() < BIG // 2
    other = stage.client(p)
    for _ in range(10):
        assert other.get("/").text() == "small"
    slow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    a = slow.answer()
    assert a.status == 200 and len(a.body) == BIG


def test_many_slow_readers_cost_little_memory(stage):
    pour = Pouring(BIG)
    scripts = [pour if i == 0 else Pouring(BIG) for i in range(24)]
    o = stage.origin(scripts)
    p = stage.proxy(o, timeouts={"write": "30s", "between_bytes": "30s"})
    before = rss(p)
    slow = [stage.client(p, receive_buffer=8192) for _ in range(20)]
    for c in slow:
        c.request("GET", "/big")
    o.wait(20)
    for s in scripts[:20]:
        s.settled()
    assert rss(p) - before < 20 * (256 << 10) + (8 << 20)


def test_a_client_that_never_reads_is_given_up(stage):
    pour = Pouring(BIG)
    o = stage.origin(pour)
    p = stage.proxy(o, timeouts={"write": "300ms", "between_bytes": "20s"})
    c = stage.client(p, receive_buffer=8192)
    c.request("GET", "/big")
    o.wait_idle()
    assert not pour.done.is_set()
    assert p.log()[0]["cause"] == "write_timeout"


def test_an_origin_that_does_not_read_holds_back_the_client(stage):
    gate = threading.Event()

    def script(c):
        r = c.head()
        gate.wait(20)
        c.body(r)
        c.reply("%d" % len(r.body))
        c.hold()
    o = stage.origin(script)
    c = stage.client(stage.proxy(o, timeouts={"body": "20s", "first_byte": "20s", "write": "20s"}), patience=20)
    sent = [0]

    def pour():
        c.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % (2 * BIG))
        for _ in range(2 * BIG // 16384):
            c.send(octets("y") * 16384)
            sent[0] += 16384
    t = threading.Thread(target=pour, daemon=True)
    t.start()
    o.wait(1, heads=True)
    last = [-1, 0]

    def still():
        last[1] = last[1] + 1 if sent[0] == last[0] else 0
        last[0] = sent[0]
        return last[1] > 40
    wait_until(still, "the client to be held back")
    assert sent[0] < 2 * BIG - (4 << 20)
    gate.set()
    assert c.answer().text() == str(2 * BIG)
    t.join(10)
