"""The table: kinds of exchange, and what a client or a server cannot do.

A kind is a list of steps that a client takes one after the other, with what each must come to.  The
steps know no client and no server: clients/ carry them out, servers/ have the paths.  A pair of a client
and a server runs a kind when neither lacks what it needs; the others are listed with the reason.
"""
import gzip
import random

MTIME = 1700000000
MTIME_TEXT = "Tue, 14 Nov 2023 22:13:20 GMT"

SMALL = b"a small file\n"
LARGE = random.Random(11).randbytes(1 << 20)
PLAIN = b"the same words again and again\n" * 400
FILES = {"small": SMALL, "large": LARGE, "plain": PLAIN, "words.gz": gzip.compress(PLAIN, mtime=0)}
BODIES = {"none": b"", "short": b"a=1&b=2", "k20": random.Random(12).randbytes(20000),
          "k300": random.Random(13).randbytes(300000), "m4": random.Random(14).randbytes(4 << 20)}

CHUNKED = b"".join(bytes([97 + i]) * 1000 for i in range(20))
TRAILED = b"with a trailer\n"
SLOW = b"slow, but whole\n"
CLOSED = b"as long as it lasts\n" * 100
MANY = [("X-Many-%02d" % i, "value %d of many" % i) for i in range(60)]
COOKIE = "; ".join("crumb%d=%s" % (i, "c" * 90) for i in range(30))
COOKIES = ["a=1; Path=/", "b=2; HttpOnly", "c=3; Max-Age=60"]
FILL = {"X-Fill-%02d" % i: "f" * 200 for i in range(30)}
ODD = "/echo/a%2Fb/%E2%82%AC/~x;p=1?x=1&y=%20&z=&&q=%3D%3D"


class Want:
    """What a step must come to.  body: bytes, a list of allowed bytes, or None when it does not matter.
    headers: name -> text, list of texts (in order) or None (absent); trailers, interim: when the client can tell.
    error: the client must see that it did not get all.  log: statuses of the log's lines; cause: not null there."""

    def __init__(self, status=200, body=None, headers=None, trailers=None, interim=None, error=False, log=None, cause=False,
                 contains=(), ws=False):
        self.status, self.body, self.headers = status, body, headers or {}
        self.trailers, self.interim, self.error = trailers, interim, error
        self.log = [status] if log is None else log
        self.cause, self.contains, self.ws = cause, contains, ws


def step(method, target, want, headers=(), body=None, **how):
    """how: chunked, expect, http10, close, follow, ws (sizes of messages)."""
    return dict(how, method=method, target=target, want=want, headers=list(headers), body=body)


class Kind:
    """needs: what client and server must be able to do.  one: all its steps go over one connection."""

    def __init__(self, name, *steps, needs=(), one=False, parallel=False, pipeline=False, sample=True):
        self.name, self.steps, self.needs = name, steps, set(needs)
        self.one, self.parallel, self.pipeline, self.sample = one, parallel, pipeline, sample


def get(target, body=None, ask=(), **more):
    """ask: fields of the request; the rest is step's and Want's."""
    how = {k: more.pop(k) for k in ("http10", "close", "follow") if k in more}
    return step("GET", target, Want(body=body, **more), headers=ask, **how)


small = get("/file/small", SMALL)


def echo(method, name, **how):
    """A body sent, and sent back."""
    return step(method, "/echo", Want(body=BODIES[name], headers={"X-Method": method}), body=name, **how)


KINDS = [
    Kind("get-small", get("/file/small", SMALL, ask=[("X-A", "1")])),
    Kind("get-large", get("/file/large", LARGE)),
    Kind("head", step("HEAD", "/file/small", Want(body=b"", headers={"Content-Length": str(len(SMALL))})), small,
         needs={"head"}, one=True),
    Kind("post-sized", echo("POST", "k20"), echo("POST", "short"), one=True),
    Kind("post-empty", echo("POST", "none"), small, needs={"post-empty"}, one=True),
    Kind("post-chunked", echo("POST", "k300", chunked=True), small, needs={"chunked-upload"}, one=True),
    Kind("expect-continue", step("POST", "/echo", Want(body=BODIES["k20"], interim=[100]), body="k20", expect=True), small,
         needs={"expect"}, one=True),
    Kind("put-big", echo("PUT", "m4")),
    Kind("delete-with-body", echo("DELETE", "short"), small, one=True),
    Kind("own-method", echo("PURGE", "short"), small, needs={"own-method"}, one=True),
    Kind("no-content", get("/status/204", b"", status=204, headers={"Content-Length": None}), small, one=True),
    Kind("not-found", get("/status/404", status=404), small, one=True),
    Kind("not-modified", get("/file/small", b"", status=304, ask=[("If-Modified-Since", MTIME_TEXT)]), small, one=True),
    Kind("range", get("/file/large", LARGE[1000:5000], status=206, ask=[("Range", "bytes=1000-4999")]), small, one=True),
    Kind("chunked-answer", get("/chunked", CHUNKED), small, one=True),
    Kind("trailers", get("/trailers", TRAILED, trailers={"x-sum": "17"}, ask=[("TE", "trailers")]), small,
         needs={"trailers"}, one=True),
    Kind("gzip", get("/gzip", [PLAIN, FILES["words.gz"]], ask=[("Accept-Encoding", "gzip")])),
    Kind("keep-alive", *[small] * 20, one=True),
    Kind("pipelined", *[small, get("/chunked", CHUNKED), get("/status/404", status=404), get("/file/large", LARGE), small] * 2,
         needs={"pipeline"}, one=True, pipeline=True),
    Kind("parallel", *[get("/slow", SLOW)] * 12, parallel=True),
    Kind("slow-answer", get("/slow", SLOW), small, one=True),
    Kind("redirect", get("/redirect", SMALL, log=[302, 200], follow=True), needs={"follow"}),
    Kind("odd-target", step("POST", ODD, Want(body=b"a=1&b=2", headers={"X-Target": ODD}), body="short"), needs={"raw-target"}),
    Kind("many-headers", get("/headers", ask=MANY + [("Cookie", COOKIE)],
                             contains=["%s: %s" % m for m in MANY] + ["Cookie: " + COOKIE])),
    Kind("big-head", step("GET", "/bighead", Want(headers=dict(FILL, **{"Set-Cookie": COOKIES}))), small, one=True),
    Kind("http10", get("/chunked", CHUNKED, http10=True, ask=[("X-A", "1")]), get("/file/small", SMALL, http10=True),
         needs={"http10"}),
    Kind("connection-close", get("/chunked", CHUNKED, close=True), small, needs={"close"}),
    Kind("until-close", get("/untilclose", CLOSED), small, needs={"until-close"}),
    Kind("cut-sized", get("/cut", error=True, cause=True), small, needs={"cut-sized", "tells-cut"}),
    Kind("cut-chunked", get("/cutchunked", error=True, cause=True), small, needs={"cut-chunked", "tells-cut"}),
    Kind("no-answer", get("/gone", status=502, cause=True), small, needs={"gone"}),
    Kind("early-refusal", step("POST", "/early", Want(status=413), body="k300"), small, needs={"early"}),
    Kind("early-hints", get("/interim", SMALL, interim=[103]), small, needs={"interim"}, one=True),
    Kind("options-star", step("OPTIONS", "*", Want(status=None)), small, needs={"options-star"}),
    Kind("websocket", step("GET", "/ws", Want(status=101, ws=True), ws=[5, 200, 70000, 1]), needs={"websocket"}),
]

# What each cannot do, and why.  Everything else it must do.
CLIENTS_LACK = {
    "curl": {
        "pipeline": "curl pipelines no longer",
        "websocket": "Debian's curl is built without WebSocket",
    },
    "wrk": {
        "head": "wrk waits for a body behind the answer to HEAD",
        "chunked-upload": "wrk sends what its script formats: its own framing has a length",
        "expect": "wrk does not wait for 100",
        "follow": "wrk follows no redirect",
        "http10": "wrk speaks HTTP/1.1 only",
        "tells-cut": "wrk counts errors, and does not say of which request",
        "interim": "wrk takes 103 for an answer",
        "websocket": "wrk has no WebSocket",
    },
    "node-http": {
        "follow": "Node's http follows no redirect",
        "http10": "Node's http speaks HTTP/1.1 only",
        "pipeline": "Node's http client does not pipeline",
    },
    "node-fetch": {
        "expect": "fetch refuses Expect",
        "http10": "fetch speaks HTTP/1.1 only",
        "pipeline": "fetch does not pipeline",
        "options-star": "fetch takes URLs only",
        "websocket": "fetch has no upgrade",
    },
    "undici": {
        "expect": "undici refuses Expect",
        "http10": "undici speaks HTTP/1.1 only",
        "options-star": "undici takes paths only",
    },
    "http.client": {
        "follow": "http.client follows no redirect",
        "expect": "http.client does not wait for 100",
        "interim": "http.client takes 103 for the answer",
        "pipeline": "http.client does not pipeline",
    },
    "aiohttp": {
        "pipeline": "aiohttp's client does not pipeline",
        "options-star": "aiohttp takes URLs only",
    },
    "go": {
        "http10": "net/http's client speaks HTTP/1.1 only",
        "pipeline": "net/http's client does not pipeline",
    },
}
SERVERS_LACK = {
    "nginx": {
        "interim": "nginx 1.22 sends no 103",
        "cut-sized": "nginx has nothing that breaks off an answer",
        "cut-chunked": "nginx has nothing that breaks off an answer",
        "until-close": "nginx frames every answer to HTTP/1.1",
        "websocket": "nginx passes WebSocket on, but serves none",
    },
    "apache": {
        "trailers": "no module of Apache sends trailers",
        "interim": "Apache sends 103 with HTTP/2 only",
        "until-close": "Apache frames every answer to HTTP/1.1",
        "cut-chunked": "Apache ends the chunks of an answer that broke off",
        "gone": "Apache answers whatever happens",
        "websocket": "mod_lua takes frames only that come in one segment",
    },
    "node": {},
    "python": {},
    "go": {},
}
# What a client cannot tell; the step is taken all the same.
CANNOT_TELL = {
    "repeated": {"wrk"},
    "trailers": {"node-fetch", "http.client", "aiohttp", "wrk"},
    "interim": {"node-fetch", "aiohttp", "undici", "http.client", "wrk"},
}
# Who opens another connection by itself: for these kinds (None: for all).  Seen without thimble as well.
REOPENS = {
    "node-fetch": None,
    "undici": {"head", "delete-with-body", "own-method"},
}


def keeps(client, kind):
    """Whether a client takes all steps of a kind over one connection."""
    return kind.one and (client not in REOPENS or kind.name not in (REOPENS[client] or [kind.name]))


def reason(client, server, kind):
    """Why a pair does not run a kind, or None."""
    for need in sorted(kind.needs):
        for who, lacks in ((client, CLIENTS_LACK), (server, SERVERS_LACK)):
            if need in lacks[who]:
                return lacks[who][need]
    return None
