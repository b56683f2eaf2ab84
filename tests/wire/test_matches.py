"""Which route wins by method, headers, query and expressions, and what the check says of those."""
import subprocess

import pytest

from harness import BINARY, config


def world(stage, routes):
    """A client before routes that answer with their number in the list, from 0."""
    routes = ["{%s, answer: {body: '%d'}}" % (r, i) if r else "{answer: {body: '%d'}}" % i for i, r in enumerate(routes)]
    return stage.client(stage.proxy({}, routes=routes))


def who(c, target="/", *fields, method="GET", **more):
    """The number of the route that answered, or the status of another answer."""
    a = c.ask(method, target, *fields, **more)
    return int(a.text()) if a.status == 200 else "status %d" % a.status


def test_a_method_beats_none(stage):
    c = world(stage, ["", "method: PUT", "method: [POST, DELETE]"])
    assert [who(c, method=m) for m in ("GET", "PUT", "POST", "DELETE")] == [0, 1, 2, 2]


def test_a_method_beats_headers_and_headers_beat_query(stage):
    c = world(stage, ["query: {a: '1', b: '1', c: '1'}", "headers: {A: '1'}", "headers: {A: '1', B: '1'}", "method: PUT", ""])
    target = "/?a=1&b=1&c=1"
    assert who(c, target, "A: 1", "B: 1", method="PUT") == 3
    assert who(c, target, "A: 1", "B: 1") == 2
    assert who(c, target, "A: 1") == 1
    assert who(c, target) == 0
    assert who(c, "/?a=1&b=1") == 4


def test_more_parameters_win(stage):
    c = world(stage, ["query: {a: '1'}", "query: {a: '1', b: '2'}"])
    assert who(c, "/?b=2&a=1") == 1
    assert who(c, "/?a=1&b=3") == 0
    assert who(c, "/?b=2") == "status 404"


def test_the_earlier_of_equals_wins(stage):
    c = world(stage, ["headers: {A: '1'}", "headers: {B: '1'}"])
    assert who(c, "/", "B: 1", "A: 1") == 0
    assert who(c, "/", "B: 1") == 1


def test_an_expression_is_between_exact_and_prefix(stage):
    c = world(stage, ["path: /v1/users", "path: {regex: '/v[0-9]/.*'}", "path: {exact: /v1/users}",
                      "path: {regex: '/v[0-9]/users/[a-z]+'}"])
    assert who(c, "/v1/users") == 2
    assert who(c, "/v1/users/7") == 1
    assert who(c, "/v1/users/me") == 3          # the longer expression
    assert who(c, "/v1/users/me", method="PUT") == 3
    assert who(c, "/v10/users") == "status 404"


def test_an_expression_matches_the_whole_normal_path(stage):
    c = world(stage, ["path: {regex: '/v[0-9]+'}"])
    for target in ("/v2", "/v22?x=/", "/a/../v2", "//v2", "/%762"):
        assert who(c, target) == 0, target
    for target in ("/v2/", "/v2/x", "/a/v2", "/v", "/v2%0a"):
        assert who(c, target) == "status 404", target


def test_the_path_decides_before_all_that_is_asked(stage):
    c = world(stage, ["path: /, method: GET, headers: {A: '1'}", "path: /a"])
    assert who(c, "/a", "A: 1") == 1
    assert who(c, "/b", "A: 1") == 0


def test_header_names_have_no_case_and_values_have(stage):
    c = world(stage, ["headers: {x-CANARY: always}", ""])
    for field in ("X-Canary: always", "x-canary: always", "X-CANARY:   always  "):
        assert who(c, "/", field) == 0, field
    for field in ("X-Canary: Always", "X-Canary: always, x", "X-Canary2: always", "X-Canary:", "A: always"):
        assert who(c, "/", field) == 1, field


def test_of_a_repeated_header_the_first_counts(stage):
    c = world(stage, ["headers: {A: '1'}", ""])
    assert who(c, "/", "A: 1", "A: 2") == 0
    assert who(c, "/", "A: 2", "A: 1") == 1


def test_headers_are_seen_as_they_came(stage):
    c = world(stage, ["headers: {X_A: '1'}", "headers: {X-Forwarded-Proto: https}", ""])
    assert who(c, "/", "X_A: 1") == 0
    assert who(c, "/", "X-Forwarded-Proto: https") == 1
    assert who(c, "/", "X-A: 1") == 2


def test_headers_by_expression(stage):
    c = world(stage, ['headers: {X-V: {regex: "^v[0-9]+$"}}', "headers: {X-V: {regex: '.*'}}", ""])
    assert who(c, "/", "X-V: v12") == 0
    for value in ("v12x", "xv12", "v", "V1", ""):
        assert who(c, "/", "X-V: " + value) == 1, value
    assert who(c, "/") == 2


def test_parameters(stage):
    c = world(stage, ["query: {debug: '1'}", "query: {debug: {regex: '[a-z]+'}}", "query: {debug: ''}", ""])
    for target, number in (("/?debug=1", 0), ("/?x&debug=1&y=2", 0), ("/?debug=1&debug=x", 0), ("/?debug=abc", 1),
                           ("/?debug=", 2), ("/?debug", 2), ("/?", 3), ("/", 3), ("/?Debug=1", 3), ("/?debug=11", 3),
                           ("/?xdebug=1", 3), ("/?debug=%31", 3), ("/x?debug=1", 0)):
        assert who(c, target) == number, target


def test_no_match_by_method_is_404(stage):
    c = world(stage, ["path: /a, method: GET"])
    assert who(c, "/a") == 0
    assert who(c, "/a", method="PUT") == "status 404"
    assert who(c, "/a", method="HEAD") == "status 404"
    assert who(c, "/a") == 0                    # the connection goes on


def test_what_does_not_fit_leaves_the_request_to_the_next(stage):
    c = world(stage, ["host: a.test, path: {exact: /x}, method: PUT", "host: a.test, path: {regex: '/.'}, headers: {A: '1'}",
                      "host: a.test, path: /x, query: {q: '1'}", "host: '*.test', path: /, method: GET", ""])
    assert who(c, "/x?q=1", "A: 1", method="PUT", host="a.test") == 0
    assert who(c, "/x?q=1", "A: 1", host="a.test") == 1
    assert who(c, "/x?q=1", host="a.test") == 2
    assert who(c, "/x", host="a.test") == 3
    assert who(c, "/x", method="POST", host="a.test") == 4


def test_several_matches_are_alternatives_on_every_host(stage):
    c = world(stage, ["host: [a.test, b.test], matches: [{path: /p, method: [PUT, POST]}, {path: {regex: '/r[0-9]'}},"
                      " {path: {exact: /e}, query: {q: '1'}}, {headers: {H: {regex: 'x+'}}}]", ""])
    for host in ("a.test", "b.test"):
        assert who(c, "/p/1", method="PUT", host=host) == 0
        assert who(c, "/p/1", method="POST", host=host) == 0
        assert who(c, "/r1", host=host) == 0
        assert who(c, "/e?q=1", host=host) == 0
        assert who(c, "/any", "H: xx", host=host) == 0
        assert who(c, "/p/1", host=host) == 1
        assert who(c, "/e", host=host) == 1
    assert who(c, "/r1", host="c.test") == 1


def test_strip_prefix_with_matches(stage):
    o = stage.origin()
    p = stage.proxy({"app": o.address}, routes=["{matches: [{path: /api, method: GET}, {path: /api, headers: {A: '1'}}],"
                                               " strip_prefix: on, service: app}"])
    c = stage.client(p)
    assert c.get("/api/x").text() == "GET /x 0"
    assert c.ask("DELETE", "/api/x", "A: 1").text() == "DELETE /x 0"
    assert c.ask("DELETE", "/api/x").status == 404


def test_an_expression_without_end_is_500_and_no_other_route(stage):
    c = world(stage, ["path: {regex: '/(a+)+[bc]'}", ""])
    assert who(c, "/" + "a" * 60) == "status 500"
    assert who(c, "/ab") == 0
    assert who(c, "/c") == 1


@pytest.mark.parametrize("ask, column, kind", [
    ("path: {regex: '/(a'}", 5, "path"), ("headers: {a: {regex: '['}}", 5, "header"),
    ("query: {a: {regex: '*'}}", 5, "query parameter"), ("matches: [{}, {headers: {a: {regex: '(?<'}}}]", 20, "header"),
])
@pytest.mark.parametrize("command", ["check", "run"])
def test_an_expression_that_does_not_compile_is_refused_at_its_place(stage, command, ask, column, kind):
    routes = ["{path: /first, answer: {}}", "{%s, answer: {}}" % ask]
    text = config({}, routes=routes).replace("@PORT@", "0")
    r = subprocess.run([BINARY, command, "-c", stage.file("bad.yaml", text)], capture_output=True, text=True, timeout=30)
    line = text[:text.index(ask)].count("\n") + 1
    assert r.returncode == 2 and "ready" not in r.stderr
    assert "bad.yaml:%d:%d: %s: " % (line, column, kind) in r.stderr, r.stderr


@pytest.mark.parametrize("name,value", [
    ("Host", "example.test"), ("Content-Length", "1"), ("Transfer-Encoding", "chunked"), ("Connection", "keep-alive"),
    ("Keep-Alive", "1"), ("Proxy-Connection", "close"), ("TE", "trailers"), ("Trailer", "X"), ("Upgrade", "websocket")])
def test_headers_that_routes_do_not_see(stage, name, value):
    p = stage.proxy({}, routes=["{headers: {%s: {regex: '.*'}}, answer: {status: 201}}" % name, "{answer: {status: 202}}"])
    fields = [] if name == "Host" else ["%s: %s" % (name, value)]
    if name == "Upgrade":
        fields.append("Connection: Upgrade")
    c = stage.client(p).request("POST", "/", *fields)
    c.send({"Content-Length": "x", "Transfer-Encoding": "0\r\n\r\n"}.get(name, ""))
    assert c.answer().status == 202
