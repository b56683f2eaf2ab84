#!/usr/bin/python3
"""Python's http.client: http_client.py SPEC"""
import http.client
import threading

import common
import ws


class Client:
    def __init__(self, host):
        self.host, self.c = host, None

    def connection(self, step):
        if self.c is None:
            self.c = http.client.HTTPConnection(self.host, timeout=20)
            if step.get("http10"):
                self.c._http_vsn, self.c._http_vsn_str = 10, "HTTP/1.0"
        return self.c

    def take(self, step, seen):
        c = self.connection(step)
        body = common.body(step)
        c.putrequest(step["method"], step["target"], skip_accept_encoding=True)
        for name, value in step["headers"] + ([["Connection", "close"]] if step.get("close") else []):
            c.putheader(name, value)
        if step.get("ws"):
            for f in (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                      ("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")):
                c.putheader(*f)
        if step.get("chunked"):
            c.putheader("Transfer-Encoding", "chunked")
            body = [body[i:i + 50000] for i in range(0, len(body), 50000)]
        elif body is not None:
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body, encode_chunked=bool(step.get("chunked")))
        a = c.getresponse()
        seen.update(status=a.status, headers=a.getheaders())
        if a.status == 101:
            ws.talk(self.exactly, c.sock.sendall, step["ws"])
            return
        seen.took(a.read())

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.c.sock.recv(n - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def one(self, step, seen):
        try:
            self.take(step, seen)
        except (OSError, http.client.HTTPException, EOFError, ValueError) as e:
            seen.failed(e)
            self.close()

    def close(self):
        if self.c:
            self.c.close()
        self.c = None


def main():
    spec = common.spec()
    for kind in spec["kinds"]:
        all_seen = [common.Seen(kind, i) for i in range(len(kind["steps"]))]
        if kind["parallel"]:
            clients = [Client(spec["host"]) for _ in kind["steps"]]
            threads = [threading.Thread(target=c.one, args=a) for c, *a in zip(clients, kind["steps"], all_seen)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        else:
            clients = [Client(spec["host"])]
            for step, seen in zip(kind["steps"], all_seen):
                clients[0].one(step, seen)
        for c in clients:
            c.close()
        for seen in all_seen:
            seen.tell()


main()
