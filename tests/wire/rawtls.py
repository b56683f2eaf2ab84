"""TLS 1.3 records in the hands of a test (RFC 8446, 5): Python's ssl shakes hands, and is left with the secrets that its key log
has.  From then on each record is what the test says, however wrong.

A Records takes the place of the socket of a harness.Stream, so that its HTTP works on top of it.
"""
import hashlib
import hmac
import os
import ssl
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
CLOSE_NOTIFY, UNEXPECTED_MESSAGE, BAD_RECORD_MAC, RECORD_OVERFLOW = 0, 10, 20, 22
HANDSHAKE_FAILURE, ILLEGAL_PARAMETER, DECODE_ERROR, PROTOCOL_VERSION, INTERNAL_ERROR = 40, 47, 50, 70, 80
NAMES = {CLOSE_NOTIFY: "close_notify", UNEXPECTED_MESSAGE: "unexpected_message", BAD_RECORD_MAC: "bad_record_mac",
         RECORD_OVERFLOW: "record_overflow", HANDSHAKE_FAILURE: "handshake_failure", ILLEGAL_PARAMETER: "illegal_parameter",
         DECODE_ERROR: "decode_error"}
SUITES = {"TLS_AES_128_GCM_SHA256": (hashlib.sha256, 16, AESGCM), "TLS_AES_256_GCM_SHA384": (hashlib.sha384, 32, AESGCM),
          "TLS_CHACHA20_POLY1305_SHA256": (hashlib.sha256, 32, ChaCha20Poly1305)}
PLAIN = 1 << 14


class Alert(Exception):
    """The peer's last word."""

    def __init__(self, level, code):
        super().__init__("alert %s" % NAMES.get(code, code))
        self.level, self.code = level, code


def expand(digest, secret, label, n):
    label = b"tls13 " + label
    info = struct.pack("!HB", n, len(label)) + label + b"\0"
    return hmac.new(secret, info + b"\1", digest).digest()[:n]      # one block is enough for all of it


class Way:
    """One direction: its secret, what comes of it, and the number of the next record."""

    def __init__(self, suite, secret):
        self.digest, self.key_size, self.cipher = SUITES[suite]
        self.become(secret)

    def become(self, secret):
        self.secret, self.seq = secret, 0
        self.aead = self.cipher(expand(self.digest, secret, b"key", self.key_size))
        self.iv = int.from_bytes(expand(self.digest, secret, b"iv", 12), "big")

    def advance(self):
        """What a KeyUpdate does."""
        self.become(expand(self.digest, self.secret, b"traffic upd", self.digest().digest_size))

    def nonce(self):
        n, self.seq = self.seq, self.seq + 1
        return (self.iv ^ n).to_bytes(12, "big")

    def inner(self, plain, outer=DATA):
        """A record of any plaintext, its type included or not."""
        head = struct.pack("!BHH", outer, 0x303, len(plain) + 16)
        return head + self.aead.encrypt(self.nonce(), plain, head)

    def seal(self, data, kind=DATA, pad=0):
        return self.inner(data + bytes([kind]) + bytes(pad))

    def open(self, record):
        plain = self.aead.decrypt(self.nonce(), record[5:], record[:5]).rstrip(b"\0")
        return plain[-1], plain[:-1]


def key_update(ask=False):
    return bytes([24, 0, 0, 1, 1 if ask else 0])


def ticket(n=64, lifetime=300):
    body = struct.pack("!II", lifetime, 7) + b"\1\1" + struct.pack("!H", n) + os.urandom(n) + b"\0\0"
    return b"\4" + len(body).to_bytes(3, "big") + body


class Records:
    """A socket to a Stream; `tx` and `rx` are its Ways, and `raw` what is below."""

    def __init__(self, raw, ctx, folder, server_side=False, name="a.test", session=None):
        self.raw, self.server, self.left = raw, server_side, b""
        self.tickets = self.updates = self.asked = self.records = 0
        self.size = PLAIN                   # bytes of data in the records of sendall
        log = os.path.join(str(folder), "keys-%s" % os.urandom(8).hex())
        ctx.keylog_filename = log
        i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
        s = ctx.wrap_bio(i, o, server_side=server_side, server_hostname=None if server_side else name, session=session)
        while True:
            try:
                s.do_handshake()
                break
            except ssl.SSLWantReadError:
                if o.pending:
                    raw.sendall(o.read())
                i.write(self.record())      # one at a time: what is behind the last is ours
            except ssl.SSLError:
                if o.pending:
                    raw.sendall(o.read())
                raise
        last = o.read()
        ctx.keylog_filename = None
        self.suite, self.resumed = s.cipher()[0], s.session_reused
        self.cert = s.getpeercert()
        self.ssl = s
        secrets = self._secrets(log)
        client, server = (Way(self.suite, secrets[who + "_TRAFFIC_SECRET_0"]) for who in ("CLIENT", "SERVER"))
        self.tx, self.rx = (server, client) if server_side else (client, server)
        raw.sendall(last)
        self.tx.seq = self._tickets_in(last) if server_side else 0

    @staticmethod
    def _secrets(path):
        with open(path, encoding="ascii") as f:
            found = {w[0]: bytes.fromhex(w[2]) for w in (line.split() for line in f) if len(w) == 3}
        os.unlink(path)
        return found

    @staticmethod
    def _tickets_in(data):
        """A server's last flight is its tickets, a record each, and nothing else."""
        n = 0
        while data:
            data = data[5 + int.from_bytes(data[3:5], "big"):]
            n += 1
        return n

    # records
    def exactly(self, n):
        got = b""
        while len(got) < n:
            more = self.raw.recv(n - len(got))
            if not more:
                raise EOFError("the stream ended inside a record" if got else "the stream ended")
            got += more
        return got

    def record(self):
        """The next record as it came."""
        head = self.exactly(5)
        return head + self.exactly(int.from_bytes(head[3:5], "big"))

    def next(self):
        """(type, content) of the next record; messages about keys have their effect."""
        record = self.record()
        if record[0] == CHANGE_CIPHER_SPEC:
            return self.next()
        kind, data = self.rx.open(record)
        self.records += 1
        if kind == HANDSHAKE:
            if data[0] == 24:
                self.updates += 1
                self.asked += data[4]
                self.rx.advance()
            elif data[0] == 4:
                self.tickets += 1
        return kind, data

    def alert(self):
        """The alert that ends the connection: nothing comes behind it.  What data came before is dropped."""
        while True:
            kind, data = self.next()
            if kind == ALERT:
                try:
                    assert self.raw.recv(1) == b"", "there is more behind an alert"
                except ConnectionResetError:
                    pass
                return data[0], data[1]

    def send_record(self, data, kind=DATA, pad=0):
        self.raw.sendall(self.tx.seal(data, kind, pad))

    def update(self, ask=False):
        """New keys for what we send."""
        self.send_record(key_update(ask), HANDSHAKE)
        self.tx.advance()

    def end(self):
        self.send_record(bytes([1, CLOSE_NOTIFY]), ALERT)

    # what a Stream wants
    def sendall(self, data):
        data = bytes(data)
        self.raw.sendall(b"".join(self.tx.seal(data[i:i + self.size]) for i in range(0, len(data), self.size)))

    def recv(self, n):
        while not self.left:
            try:
                kind, data = self.next()
            except EOFError:
                raise ConnectionError("an end without close_notify") from None
            if kind == ALERT:
                if data[1] == CLOSE_NOTIFY:
                    return b""
                raise Alert(*data)
            if kind == DATA:
                self.left = data
        data, self.left = self.left[:n], self.left[n:]
        return data

    def __getattr__(self, name):
        return getattr(self.raw, name)


__all__ = ["InvalidTag"]
