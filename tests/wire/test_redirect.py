"""Redirects by what is other than in the request, with the cases that the Gateway API's conformance has for them."""
import pytest

from harness import config


def location(stage, redirect, target="/x", host="example.test", fields=(), route="", listen="", method="GET"):
    p = stage.proxy({}, routes=["{%sredirect: %s}" % (route, redirect)], listen=listen)
    a = stage.client(p).ask(method, target, *fields, host=host)
    return a.status, a.get("Location")


@pytest.mark.parametrize("redirect,want", [
    ("{host: example.org}", (302, "http://example.org/x")),
    ("{host: example.org, status: 301}", (301, "http://example.org/x")),
    ("{host: example.org, status: 303}", (303, "http://example.org/x")),
    ("{host: example.org, status: 307}", (307, "http://example.org/x")),
    ("{host: example.org, status: 308}", (308, "http://example.org/x")),
    ("{port: 8083}", (302, "http://example.test:8083/x")),
    ("{port: 8083, host: example.org}", (302, "http://example.org:8083/x")),
    ("{port: 8083, status: 301}", (301, "http://example.test:8083/x")),
    ("{port: 8083, host: example.org, status: 302}", (302, "http://example.org:8083/x")),
    ("{scheme: https}", (302, "https://example.test/x")),
    ("{scheme: https, host: example.org}", (302, "https://example.org/x")),
    ("{scheme: https, status: 301}", (301, "https://example.test/x")),
    ("{host: '[2001:db8::1]', port: 81}", (302, "http://[2001:db8::1]:81/x")),
])
def test_host_port_scheme_and_status(stage, redirect, want):
    assert location(stage, redirect) == want


@pytest.mark.parametrize("redirect,host,want", [
    # nothing said of the scheme: the port that the client named
    ("{host: example.org}", "a.test", "http://example.org/x"), ("{host: example.org}", "a.test:8080", "http://example.org:8080/x"),
    ("{host: example.org}", "a.test:80", "http://example.org/x"), ("{host: example.org, port: 80}", "a.test:8080", "http://example.org/x"),
    ("{host: example.org, port: 8080}", "a.test", "http://example.org:8080/x"),
    ("{host: example.org, port: 443}", "a.test", "http://example.org:443/x"),
    # a scheme has a port, whatever the client named
    ("{host: example.org, scheme: https}", "a.test:8080", "https://example.org/x"),
    ("{host: example.org, scheme: http}", "a.test:8080", "http://example.org/x"),
    ("{host: example.org, scheme: https, port: 443}", "a.test", "https://example.org/x"),
    ("{host: example.org, scheme: https, port: 8443}", "a.test", "https://example.org:8443/x"),
    ("{host: example.org, scheme: https, port: 80}", "a.test", "https://example.org:80/x"),
    ("{host: example.org, scheme: http, port: 80}", "a.test", "http://example.org/x"),
    ("{scheme: https}", "[::1]:8080", "https://[::1]/x"), ("{port: 81}", "[::1]:8080", "http://[::1]:81/x"),
])
def test_port_and_scheme(stage, redirect, host, want):
    assert location(stage, redirect, host=host)[1] == want


@pytest.mark.parametrize("fields,listen,port80,nil", [
    ((), "", "http://b.test/x", "http://b.test/x"),
    (("X-Forwarded-Proto: https",), "", "http://b.test/x", "http://b.test/x"),           # nobody believes it
    (("X-Forwarded-Proto: https",), "trusted_proxies: 127.0.0.0/8", "https://b.test:80/x", "https://b.test/x"),
    (("X-Forwarded-Proto: http",), "trusted_proxies: 127.0.0.0/8", "http://b.test/x", "http://b.test/x"),
    (("X-Forwarded-Proto: gopher",), "trusted_proxies: 127.0.0.0/8", "http://b.test/x", "http://b.test/x"),
    (("X-Forwarded-Proto: https",), "trusted_proxies: 127.0.0.0/8, x_forwarded: replace", "http://b.test/x", "http://b.test/x"),
])
def test_the_scheme_of_a_request(stage, fields, listen, port80, nil):
    assert location(stage, "{host: b.test, port: 80}", fields=fields, listen=listen)[1] == port80
    assert location(stage, "{host: b.test}", fields=fields, listen=listen)[1] == nil


@pytest.mark.parametrize("route,redirect,target,want", [
    ("path: /original-prefix, ", "{path: {replace_prefix: /replacement-prefix}}", "/original-prefix/lemon", "/replacement-prefix/lemon"),
    ("path: /full, ", "{path: {replace_full: /full-path-replacement}}", "/full/path/original", "/full-path-replacement"),
    ("path: /path-and-host, ", "{host: example.org, path: {replace_prefix: /replacement-prefix}}", "/path-and-host",
     "http://example.org/replacement-prefix"),
    ("path: /full-path-and-host, ", "{host: example.org, path: {replace_full: /replacement-full}}", "/full-path-and-host",
     "http://example.org/replacement-full"),
    ("path: /p, ", "{path: {replace_prefix: /q}}", "/p?a=b&c", "/q?a=b&c"),
    ("path: /p, ", "{path: {replace_full: /q}}", "/p/x?a=b", "/q?a=b"),
    ("path: /p, ", "{path: {replace_prefix: /}}", "/p", "/"), ("path: /p, ", "{path: {replace_prefix: /}}", "/p/", "/"),
    ("path: /p, ", "{path: {replace_prefix: /}}", "/p/x", "/x"), ("path: /p/, ", "{path: {replace_prefix: /q/}}", "/p/x", "/q/x"),
    ("", "{path: {replace_prefix: /q}}", "/x", "/q/x"), ("", "{path: {replace_prefix: /q}}", "/", "/q/"),
    ("path: {regex: '/v[0-9]/?.*'}, ", "{path: {replace_full: /q}}", "/v1/x?y", "/q?y"),
    ("path: /caf%C3%A9, ", "{path: {replace_prefix: /q}}", "/caf%C3%A9/x%2fy", "/q/x%2fy"),
])
def test_paths(stage, route, redirect, target, want):
    assert location(stage, redirect, target, route=route)[1] == want


@pytest.mark.parametrize("target,status,want", [
    ("/p//evil.test", 302, "/.//evil.test"), ("/p/\\evil.test", 400, None), ("//evil.test", 404, None),
    ("/p/../p/x", 400, None), ("/%70/x", 400, None), ("//p/x", 400, None), ("/ps", 404, None),
])
def test_no_prefix_opens_a_way_to_another_host(stage, target, status, want):
    assert location(stage, "{path: {replace_prefix: /}}", target, route="path: /p, ") == (status, want)


@pytest.mark.parametrize("host", ["evil.test/x", "a@evil.test", "a.test:8x", "a b", "a.test:99999999", "\\evil.test"])
def test_hosts_that_are_none_get_nowhere(stage, host):
    assert location(stage, "{port: 81}", host=host) == (400, None)
    assert location(stage, "{scheme: https}", host=host) == (400, None)


def test_a_client_without_a_host(stage):
    p = stage.proxy({}, routes=["{redirect: {scheme: https}}", "{path: /p, redirect: {path: {replace_full: /q}}}",
                                "{path: /h, redirect: {host: b.test}}"])
    ask = lambda target: stage.client(p).send("GET %s HTTP/1.0\r\n\r\n" % target).answer()
    assert ask("/").status == 400
    assert ask("/p").get("Location") == "/q" and ask("/h").get("Location") == "http://b.test/h"


def test_post_head_and_the_body_that_nobody_wants(stage):
    p = stage.proxy({}, routes=["{redirect: {scheme: https, status: 308}}"])
    a = stage.client(p).post("/x", "body")
    assert (a.status, a.get("Location"), a.body) == (308, "https://example.test/x", b"")
    c = stage.client(p)
    assert [c.ask("HEAD", "/x").get("Location") for _ in range(2)] == ["https://example.test/x"] * 2


def test_routes_of_one_file(stage):
    """Host and path as in an HTTPRoute of several rules; a later rule of a longer prefix is its own."""
    p = stage.text(config({}, routes=[
        "{path: /port, redirect: {port: 8083}}", "{path: /port-and-host, redirect: {host: example.org, port: 8083}}",
        "{path: /scheme, redirect: {scheme: https}}", "{host: old.test, redirect: {host: new.test, status: 301}}"]))
    c = stage.client(p)
    assert [c.get(t).get("Location") for t in ("/port", "/port-and-host", "/scheme/a?b")] == [
        "http://example.test:8083/port", "http://example.org:8083/port-and-host", "https://example.test/scheme/a?b"]
    assert c.get("/port", host="old.test").get("Location") == "http://new.test/port"
