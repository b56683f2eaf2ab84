"""Limits of an endpoint that hold for all workers together, and the requests that wait."""
import re
import threading
import time
from random import Random

import pytest

from harness import Client, wait_until


class Counting:
    """An origin that counts the requests it has at one time, and lets them go when it is told."""

    def __init__(self, stage, hold=False, pause=0.0):
        self.now = self.most = self.served = 0
        self.dies = False
        self.lock = threading.Lock()
        self.gate = threading.Semaphore(0) if hold else None
        self.pause = pause
        self.origin = stage.origin(self.script)
        self.address = self.origin.address

    def script(self, c):
        while True:
            r = c.request()
            if not r:
                return
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            if self.gate:
                self.gate.acquire(timeout=20)
            if self.pause:
                time.sleep(self.pause)      # what the origin takes for it
            with self.lock:
                self.now -= 1
                self.served += 1
            if self.dies:
                return
            c.reply(r.target)

    def go(self, n=1):
        self.gate.release(n)


def limited(stage, origins, limit, **more):
    ends = ", ".join("'%s'" % o.address for o in origins)
    return stage.proxy({"app": "{endpoints: [%s], %s}" % (ends, limit)}, **more)


def crowd(stage, p, clients, requests):
    """Each of `clients` connections asks `requests` times, one after another: the statuses, and who took longest for one."""
    statuses, longest = [], [0.0]

    def run(c, n):
        for i in range(requests):
            began = time.monotonic()
            a = c.get("/%d/%d" % (n, i))
            assert a.status != 200 or a.text() == "/%d/%d" % (n, i)
            statuses.append(a.status)
            longest[0] = max(longest[0], time.monotonic() - began)
    threads = [threading.Thread(target=run, args=(stage.client(p), n)) for n in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return statuses, longest[0]


@pytest.mark.parametrize("limit", ["max_requests: 1", "max_connections: 1", "max_requests: 1, max_connections: 1",
                                   "max_requests: 1, max_connections: 3"])
def test_one_request_at_a_time_over_all_workers(stage, limit):
    o = Counting(stage, pause=0.0005)
    p = limited(stage, [o], limit, workers=4)
    statuses, longest = crowd(stage, p, 16, 25)
    assert statuses == [200] * 400 and o.most == 1
    assert longest < 4      # nobody starves: 16 who take turns have theirs soon


@pytest.mark.parametrize("limit", ["max_requests: 3", "max_connections: 3"])
def test_the_limit_is_used_and_not_passed(stage, limit):
    o = Counting(stage, pause=0.002)
    p = limited(stage, [o], limit, workers=3)
    statuses, _ = crowd(stage, p, 24, 12)
    assert statuses == [200] * 288 and o.most == 3


def test_a_connection_that_idles_in_another_worker_is_given_up(stage):
    """One connection, in whichever worker: each of them serves at once, long before an idle one would be closed."""
    o = Counting(stage)
    p = limited(stage, [o], "max_connections: 1", workers=4, timeouts={"upstream_idle": "1m", "queue": "3s"})
    clients = [stage.client(p) for _ in range(12)]
    began = time.monotonic()
    for c in clients + clients:
        assert c.get("/").status == 200
    assert time.monotonic() - began < 3 and o.most == 1


def test_who_waits_for_a_service_is_served_by_the_first_endpoint_that_is_free(stage):
    a, b = Counting(stage, hold=True), Counting(stage, hold=True)
    p = limited(stage, [a, b], "max_requests: 1, host: endpoint", timeouts={"first_byte": "20s"})
    clients = [stage.client(p).request("GET", "/%d" % n) for n in range(6)]
    a.origin.wait(1)
    b.origin.wait(1)
    for n in range(2, 6):       # b alone has room, again and again
        b.go()
        b.origin.wait(n, heads=True)
    assert len(a.origin.requests) == 1
    assert [r.get("Host") for r in b.origin.requests] == [b.address] * len(b.origin.requests)
    a.go(9)
    b.go(9)
    assert sorted(c.answer().text() for c in clients) == ["/%d" % n for n in range(6)]


def test_first_come_first_served(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", timeouts={"first_byte": "20s"})
    clients = []
    for n in range(8):
        clients.append(stage.client(p).request("GET", "/%d" % n))
        if n == 0:
            o.origin.wait(1)
        else:
            clients[-1].silent(0.02)
    o.go(9)
    for c in clients:
        c.answer()
    assert [r.target for r in o.origin.requests] == ["/%d" % n for n in range(8)]


def test_those_that_wait_are_bounded_in_bytes(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", limits={"waiting": "16KiB"}, timeouts={"first_byte": "20s"})
    first = stage.client(p).request("GET", "/first")
    o.origin.wait(1)
    clients = [stage.client(p).request("GET", "/%d" % n) for n in range(20)]
    refused = [c for c in clients if not c.silent(0.05)]
    assert 8 <= len(refused) <= 15
    for c in refused:
        a = c.answer()
        assert (a.status, a.error) == (503, "connection_limit_reached")
    # a large one finds an empty queue, whatever its size
    o.go(30)
    for c in [first] + [c for c in clients if c not in refused]:
        assert c.answer().status == 200
    assert p.log(1)
    o.gate = threading.Semaphore(0)
    first = stage.client(p).request("GET", "/again")
    wait_until(lambda: o.now == 1)
    large = stage.client(p).request("GET", "/large", "X-Large: " + "x" * 30000)
    assert large.silent(0.1)
    assert stage.client(p).get("/more").status == 503
    o.go(2)
    assert first.answer().status == 200 and large.answer().status == 200
    lines = [e["cause"] for e in p.log(24)]
    assert lines.count("queue_full") == len(refused) + 1


def test_a_wait_ends(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", timeouts={"first_byte": "20s", "queue": "300ms"})
    first = stage.client(p).request("GET", "/first")
    o.origin.wait(1)
    a = stage.client(p).get("/late")
    assert (a.status, a.error, a.get("Retry-After")) == (503, "connection_limit_reached", "1")
    line = p.log(1)[0]
    assert (line["cause"], line["endpoint"], line["service"]) == ("queue_timeout", None, "app")
    o.go()
    assert first.answer().status == 200
    o.go()
    assert stage.client(p).get("/").status == 200


def test_who_leaves_is_not_served(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", timeouts={"first_byte": "20s"})
    clients = [stage.client(p).request("GET", "/first")]
    o.origin.wait(1)
    clients += [stage.client(p).request("GET", "/%d" % n) for n in range(6)]
    assert clients[-1].silent(0.1)
    for c in clients[1:6:2]:
        c.rst()
    assert {e["cause"] for e in p.log(3)} == {"client_left"}
    o.go(9)
    assert [c.answer().status for c in [clients[0]] + clients[2:7:2]] == [200] * 4
    assert sorted(r.target for r in o.origin.requests) == ["/1", "/3", "/5", "/first"]


def test_a_reset_that_comes_with_the_request_is_seen(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", timeouts={"first_byte": "20s"})
    first = stage.client(p).request("GET", "/first")
    o.origin.wait(1)
    for n in range(20):
        c = stage.client(p)
        c.request("GET", "/gone")
        c.rst()
    late = stage.client(p).request("GET", "/late")
    assert late.silent(0.3)
    o.go(2)
    assert first.answer().status == 200 and late.answer().status == 200
    assert [r.target for r in o.origin.requests] == ["/first", "/late"]


def test_a_tunnel_has_its_slot_to_its_end(stage):
    def script(c):
        r = c.request()
        if r and r.target == "/ws":
            c.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            c.wait_closed()
        elif r:
            c.reply("done")
    o = stage.origin(script)
    p = stage.proxy({"app": "{endpoints: ['%s'], max_requests: 1}" % o.address}, timeouts={"queue": "10s"})
    t = stage.client(p)
    t.send("GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert t.until(b"\r\n\r\n").startswith(b"HTTP/1.1 101")
    c = stage.client(p).request("GET", "/")
    assert c.silent(0.2)
    t.close()
    assert c.answer().text() == "done"


def test_an_endpoint_that_goes_down_gives_those_that_wait_to_another(stage):
    a, b = Counting(stage, hold=True), Counting(stage, hold=True)
    p = limited(stage, [a, b], "max_requests: 1", timeouts={"first_byte": "20s", "queue": "20s"})
    clients = [stage.client(p).request("GET", "/%d" % n) for n in range(6)]
    a.origin.wait(1)
    b.origin.wait(1)
    a.origin.stop_listening()
    a.dies = True
    a.go()
    b.go(9)
    assert [c.answer().status for c in clients] == [200] * 6


def test_nobody_waits_for_an_endpoint_that_is_gone(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", timeouts={"first_byte": "20s", "queue": "20s"})
    clients = [stage.client(p).request("POST", "/%d" % n, body="x") for n in range(4)]
    o.origin.wait(1)
    began = time.monotonic()
    o.origin.stop_listening()
    o.dies = True
    o.go()
    answers = [c.answer() for c in clients]
    assert {a.status for a in answers} == {502} and time.monotonic() - began < 5
    assert sorted(e["cause"] for e in p.log(4)) == ["connect_refused"] * 3 + ["upstream_closed"]


def test_a_drain_finishes_those_that_wait(stage):
    o = Counting(stage, hold=True)
    p = limited(stage, [o], "max_requests: 1", workers=4, timeouts={"first_byte": "20s"})
    clients = [stage.client(p).request("GET", "/%d" % n) for n in range(8)]
    o.origin.wait(1)
    assert clients[-1].silent(0.1)
    p.signal(15)
    p.err.wait("no new connections")
    o.go(9)
    assert [c.answer().status for c in clients] == [200] * 8
    assert p.wait() == 0 and o.most == 1


def test_questions_and_copies_count(stage):
    auth, app = Counting(stage, hold=True), Counting(stage)
    p = stage.proxy({"app": app.address, "who": "{endpoints: ['%s'], max_requests: 1}" % auth.address},
                    routes=["{service: app, auth: {service: who, timeout: 20s}}"], workers=4)
    clients = [stage.client(p).request("GET", "/%d" % n) for n in range(6)]
    auth.origin.wait(1)
    assert all(c.silent(0.02) for c in clients)
    auth.go(9)
    assert [c.answer().status for c in clients] == [200] * 6
    assert auth.most == 1


@pytest.mark.parametrize("limit", ["max_requests: 2", "max_connections: 2", "max_requests: 3, max_connections: 2"])
def test_a_storm_leaves_nothing_behind(stage, limit, long):
    """Clients that leave at any time, origins that close or say nothing, workers that wait for each other: no slot is lost, and
    nobody waits for ever.  (That they are all back is also looked at when the program ends.)"""
    def script(c):
        random = Random(c.number)
        while True:
            r = c.request()
            if not r:
                return
            if random.random() < 0.2:
                time.sleep(0.004)       # what the origin takes for it
            if random.random() < 0.1:
                return
            c.reply(r.target, *(["Connection: close"] if random.random() < 0.2 else []))
    ends = ", ".join("'%s'" % stage.origin(script).address for _ in range(2))
    p = stage.proxy({"app": "{endpoints: [%s], %s}" % (ends, limit)}, workers=4, timeouts={"queue": "20s", "first_byte": "20s"})
    served = [0]

    def client(n):
        random = Random(n)
        c = Client(p.address)
        for i in range(100 if long else 25):
            try:
                c.request(random.choice(["GET", "GET", "POST"]), "/%d/%d" % (n, i))
                if random.random() < 0.25:
                    time.sleep(random.random() * 0.01)
                    c.rst()
                    c = Client(p.address)
                    continue
                a = c.answer()
                assert a.status == 502 or a.text() == "/%d/%d" % (n, i)
                served[0] += a.status == 200
            except OSError:
                c = Client(p.address)
        c.close()
    threads = [threading.Thread(target=client, args=(n,)) for n in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads) and served[0] > 100
    began = time.monotonic()
    for _ in range(20):
        assert stage.client(p).get("/after").status in (200, 502)
    assert time.monotonic() - began < 5


def test_who_waits_goes_to_an_endpoint_whose_checks_go_well_again(stage):
    """Nothing is given back that could tell of it."""
    gate, well = threading.Event(), threading.Event()

    def script(full):
        def run(c):
            while True:
                r = c.request()
                if not r:
                    return
                if r.target == "/healthz":
                    c.reply("", status="200 OK" if full or well.is_set() else "503 No")
                    continue
                if full:
                    gate.wait(20)
                c.reply("full" if full else "other")
        return run
    full, other = stage.origin(script(True)), stage.origin(script(False))
    p = stage.proxy({"app": "{endpoints: ['%s', '%s'], max_requests: 1, health: {http: /healthz, interval: 100ms, rise: 1, fall: 1}}"
                            % (full.address, other.address)}, timeouts={"first_byte": "20s", "queue": "20s"})
    p.err.wait("endpoint %s: 1 check" % re.escape(other.address))
    first = stage.client(p).request("GET", "/")
    wait_until(lambda: [r.target for r in full.requests].count("/") == 1)
    second = stage.client(p).request("GET", "/")
    assert second.silent(0.3)
    well.set()
    assert second.answer().text() == "other"
    gate.set()
    assert first.answer().text() == "full"
