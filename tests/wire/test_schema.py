"""`thimble schema`: what it prints takes all that the check takes, and refuses what an editor should mark.

Files are read as YAML 1.2, as editors do; without PyYAML the examples are skipped. Where jsonschema is installed,
it has to agree with the small validator here."""
import copy
import functools
import json
import os
import re
import subprocess

import pytest

from harness import BINARY, ROOT

try:
    import jsonschema
except ImportError:
    jsonschema = None


def run(*args, **more):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=30, **more)


@functools.lru_cache(None)
def schema():
    r = run("schema")
    assert r.returncode == 0 and not r.stderr
    return json.loads(r.stdout)


# ---- a validator of the keywords that the schema uses -----------------------

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
LABELS = ("$schema", "$defs", "title", "description", "default")


def is_type(v, name):
    if name in ("integer", "number"):
        return isinstance(v, int if name == "integer" else (int, float)) and not isinstance(v, bool)
    return isinstance(v, TYPES[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def size(kind, v):
    return len(v) if isinstance(v, kind) else None


def fits(v, s, root):
    if isinstance(s, bool):
        return s
    return all(keyword(name, arg, v, s, root) for name, arg in s.items())


def keyword(name, arg, v, s, root):
    is_map, is_list, is_text = isinstance(v, dict), isinstance(v, list), isinstance(v, str)
    number = v if is_type(v, "number") else None
    if name in LABELS:
        return True
    if name == "$ref":
        return fits(v, root["$defs"][re.fullmatch(r"#/\$defs/(\w+)", arg).group(1)], root)
    if name == "type":
        return any(is_type(v, t) for t in ([arg] if isinstance(arg, str) else arg))
    if name == "enum":
        return any(same(v, a) for a in arg)
    if name == "pattern":
        return not is_text or bool(re.search(arg, v))
    if name == "anyOf":
        return any(fits(v, a, root) for a in arg)
    if name == "oneOf":
        return sum(fits(v, a, root) for a in arg) == 1
    if name == "not":
        return not fits(v, arg, root)
    if name == "properties":
        return not is_map or all(fits(v[k], a, root) for k, a in arg.items() if k in v)
    if name == "additionalProperties":
        return not is_map or all(fits(v[k], arg, root) for k in v if k not in s.get("properties", {}))
    if name == "propertyNames":
        return not is_map or all(fits(k, arg, root) for k in v)
    if name == "required":
        return not is_map or all(k in v for k in arg)
    if name == "dependentSchemas":
        return not is_map or all(fits(v, a, root) for k, a in arg.items() if k in v)
    if name == "items":
        return not is_list or all(fits(i, arg, root) for i in v)
    bounds = {"minimum": (number, 1), "maximum": (number, -1), "minLength": (size(str, v), 1), "maxLength": (size(str, v), -1),
              "minItems": (size(list, v), 1), "maxItems": (size(list, v), -1),
              "minProperties": (size(dict, v), 1), "maxProperties": (size(dict, v), -1)}
    n, sign = bounds[name]      # KeyError: a keyword that this validator does not know
    return n is None or (n - arg) * sign >= 0


def valid(document, s=None):
    s = s or schema()
    answer = fits(document, s, s)
    if jsonschema:
        assert answer == jsonschema.Draft202012Validator(s).is_valid(document)
    return answer


def checked(tmp_path, document):
    """What `thimble check` says: JSON is YAML."""
    path = tmp_path / "t.yaml"
    path.write_text(json.dumps(document))
    r = run("check", "-c", str(path))
    assert r.returncode in (0, 2), r.stderr
    return r.returncode == 0


# ---- files that people copy -------------------------------------------------

def yaml_load(text):
    """YAML 1.2: `off` is a text, and only these are not."""
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for tag, pattern, first in (("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
                                ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
                                ("int", r"[-+]?[0-9]+", "-+0123456789"),
                                ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789")):
        Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile("^(?:%s)$" % pattern), list(first))
    return yaml.load(text, Loader)


def blocks(name):
    found = re.findall(r"```yaml\n(.*?)```", open(os.path.join(ROOT, name), encoding="utf-8").read(), re.S)
    assert found
    return [("%s:%d" % (name, i), text) for i, text in enumerate(found)]


def examples():
    folder = os.path.join(ROOT, "deploy/examples")
    files = [(n, open(os.path.join(folder, n), encoding="utf-8").read()) for n in sorted(os.listdir(folder))]
    return blocks("docs/configuration.md") + blocks("README.md") + files


@pytest.mark.parametrize("name,text", examples(), ids=lambda v: v if len(v) < 40 else "")
def test_examples_fit(name, text):
    document = yaml_load(text)
    assert valid(document)
    assert not valid(dict(document, rotes=[]))


HEAD = "routes: [{service: a}]\nservices: {a: []}\n"


@pytest.mark.parametrize("text,good", [
    ("workers: ${NONE:-2}\n", True), ("limits:\n", False), ("workers:\n", False), ("workers: 1.5\n", False),
    ("listen:\n- address: :1\n  trusted_proxies:\n  - unix:\n  via: off\n  x_forwarded: off\n  forwarded: on\n", True),
    ("defaults: {request_headers: {set: {A: , B: 1.10, C: off}}}\n", True),
    ("timeouts: {head: 1h, tunnel: off}\n", True), ("timeouts: {head: off}\n", False),
])
def test_yaml_is_read_alike(tmp_path, text, good):
    path = tmp_path / "t.yaml"
    path.write_text(HEAD + text)
    assert run("check", "-c", str(path)).returncode == (0 if good else 2)
    assert valid(yaml_load(HEAD + text)) == good


# ---- one change to a good file, and what becomes of it ----------------------

GOOD = {"routes": [{"service": "a"}], "services": {"a": "127.0.0.1:1"}}


def changed(path, value):
    document = copy.deepcopy(GOOD)
    at = document
    for step in path[:-1]:
        at = at[step] if isinstance(step, int) else at.setdefault(step, {})
    at[path[-1]] = value
    return document


R = ("routes", 0)
USERS = os.path.join(ROOT, "tests/users.htpasswd")
TAKEN = [
    (("workers",), 4), (("workers",), "4"), (("workers",), "auto"), (("workers",), "${NONE:-2}"),
    (("listen",), ":80"), (("listen",), "unix:/s"), (("listen",), "localhost:0"), (("listen",), {"address": "[::1]:1"}),
    (("listen",), [":1", {"address": ":2", "forwarded": True, "via": "off", "upgrade": []}]),
    (("listen",), [{"address": ":2", "forwarded": "yes", "trusted_proxies": ["fd00::/8", {"unix": ""}, "unix:"]}]),
    (("defaults",), {"trusted_proxies": "none", "upgrade": "off", "host": "x.test:80", "max_connections": 0}),
    (("defaults",), {"forwarded": "true", "max_connections": "off", "request_headers": {"set": {"A": 1, "B": None}}}),
    (("services", "a"), []), (("services", "a"), ["http://10.0.0.1/", "unix:/a"]), (("services", "a"), {"endpoints": "1.1.1.1:1"}),
    (("limits", "head"), "64kib"), (("limits", "replay"), 0), (("limits", "replay"), "0"), (("limits", "body"), "off"),
    (("timeouts", "drain"), "2S"), (("timeouts", "tunnel"), 0), (("timeouts", "tunnel"), "${NONE:-1s}"),
    (("log", "access"), "./a"), (("log", "error"), "stderr"), (("log", "format"), "json"),
    (R + ("path",), "/a"), (R + ("path",), {"exact": "/a*"}), (R + ("path",), {"regex": ".*"}),
    (R + ("method",), "GET"), (R + ("method",), ["GET", "M-SEARCH"]), (R + ("host",), "*.x.test"), (R + ("host",), ["a", "b"]),
    (R + ("headers",), {"A": 1, "B": None, "C": {"regex": 1}}), (R + ("query",), {"a[]": "", "b": {"regex": "x"}}),
    (R + ("matches",), [{"path": "/a", "method": "GET"}, {"headers": {"A": "b"}}, {}]),
    (R + ("cors",), "off"), (R + ("cors",), {"origins": "*"}), (("defaults",), {"cors": {"origins": ["*"], "methods": "*"}}),
    (R + ("cors",), {"origins": ["https://a.test", "http://*.b.test:81", "http://[::1]:8080", "x-y://**.c"], "methods": ["PUT"],
                     "headers": ["A", "b"], "expose": "C", "credentials": "on", "max_age": "0s"}),
    (R + ("basic_auth",), "off"), (R + ("basic_auth",), {"file": USERS}),
    (R + ("basic_auth",), {"file": USERS, "realm": "a b", "user_header": "X-U", "forward": True}),
    (R + ("basic_auth",), {"file": USERS, "user_header": "off"}),
    (R + ("response_headers",), {"remove": "A", "add": {"B": "c"}}), (R + ("body_limit",), "off"),
    (R + ("allow",), "all"), (R + ("allow",), ["10.0.0.0/8", {"unix": ""}]), (R + ("deny",), []), (R + ("deny",), "::1"),
    (R + ("rate_limit",), "off"), (R + ("rate_limit",), "10/s"), (("defaults",), {"rate_limit": "1/h", "allow": "unix:", "deny": "none"}),
    (R + ("rate_limit",), {"rate": "10/m", "burst": 5, "by": "route", "name": "a", "ipv4_prefix": 24, "ipv6_prefix": "48"}),
    (R + ("rate_limit",), ["1/s", {"rate": "1/s", "by": {"header": "A"}, "burst": "auto"}, {"rate": "${NONE:-1/s}", "name": "off"}]),
    (("limits", "rate_memory"), "1MiB"),
    (R + ("auth",), {"service": "a", "path": "/x?y=z", "sign_in": "https://a.test/?rd={url}", "request_headers": [], "set_cookie": "off"}),
    (R + ("auth",), {"service": "a", "method": "HEAD", "response_headers": "X-User", "timeout": "1s", "sign_in": "/in"}),
    (R + ("mirror",), {"service": "a", "share": 0.5, "body_limit": "off"}), (R + ("mirror",), {"service": "a", "share": "12.5%"}),
    (R + ("compress",), True), (R + ("compress",), "off"), (R + ("compress",), {}), (("defaults",), {"compress": "yes"}),
    (R + ("compress",), {"encodings": "br", "types": "text/*", "min_size": "2KiB", "level": "small"}),
    (R + ("compress",), {"encodings": ["gzip", "zstd", "br"], "types": ["common", "text/event-stream", "a/*+b"]}),
    (R + ("compress",), {"encodings": "all", "types": "common"}), (("limits", "compress"), "1GiB"),
    (R,  {"answer": {"status": "404", "body": None}}), (R, {"answer": {"status": 599, "body": 7}}), (R, {"answer": {}}),
    (R, {"redirect": {"scheme": "https"}}), (R, {"redirect": {"host": "a.test", "port": 81, "scheme": "http", "status": 301}}),
    (R, {"redirect": {"path": {"replace_full": "/x"}}}), (R, {"redirect": {"port": "81", "path": {"replace_prefix": "/x"}}}),
    (R, {"redirect": {"to": "/x", "status": "308"}}), (R, {"redirect": {"to": "https://{host}{path}", "status": 301}}),
]
REFUSED = [
    (("nosuch",), 1), (("limits", "nosuch"), 1), (("timeouts", "nosuch"), "1s"), (("log", "nosuch"), 1),
    (("defaults", "address"), ":80"), (("listen",), {"address": ":1", "nosuch": 1}), (("services", "a"), {"endpoints": [], "x": 1}),
    (R + ("servce",), "a"), (R + ("path",), {"glob": "/a"}), (R + ("headers",), {"A": {"regexp": "x"}}),
    (R + ("matches",), [{"host": "a"}]), (R, {"redirect": {"to": "/", "code": 301}}), (R, {"answer": {"text": "x"}}),
    (R + ("cors",), True), (R + ("cors",), {}), (R + ("cors",), {"origins": []}), (R + ("cors",), {"origins": "a.test"}),
    (R + ("cors",), {"origins": "https://a.test/"}), (R + ("cors",), {"origins": "*", "headers": "a b"}),
    (R + ("cors",), {"origins": "*", "max_age": 3600}), (R + ("cors",), {"origin": "*"}), (R + ("cors",), {"origins": "https://A"}),
    (R + ("basic_auth",), USERS), (R + ("basic_auth",), {"realm": "x"}), (R + ("basic_auth",), {"file": []}),
    (R + ("basic_auth",), {"file": USERS, "users": "x"}), (R + ("basic_auth",), {"file": USERS, "user_header": "a b"}),
    (R + ("request_headers",), {"delete": ["A"]}), (R + ("timeouts",), {"head": "1s"}),
    (("workers",), 0), (("workers",), 257), (("workers",), "many"), (("workers",), True), (("workers",), None), (("workers",), []),
    (("listen",), 8080), (("listen",), []), (("listen",), {}), (("listen",), [{"via": "x"}]),
    (("listen",), {"address": ":1", "x_forwarded": "of"}), (("listen",), {"address": ":1", "forwarded": 1}),
    (("listen",), {"address": ":1", "trusted_proxies": {"unix": None}}), (("listen",), {"address": ":1", "upgrade": "h2C"}),
    (("listen",), {"address": ":1", "via": "a b"}), (("defaults",), []), (("limits",), None),
    (("services",), []), (("services", "a b"), ":1"), (("services", "a"), None), (("services", "a"), "10.0.0.1"),
    (("services", "a"), {"host": "keep"}), (("services", "a"), {"endpoints": [], "max_connections": -1}),
    (("limits", "head"), 65536), (("limits", "head"), "64K"), (("limits", "head"), "off"), (("limits", "body"), 0),
    (("timeouts", "head"), 10), (("timeouts", "head"), "10"), (("timeouts", "head"), "0"), (("timeouts", "drain"), "1 s"),
    (("log", "access"), "here"), (("log", "error"), "off"), (("log", "level"), "loud"),
    (("routes",), []), (("routes",), {}), (("routes",), "a"), (("routes",), [{}]), (R, "a"),
    (R + ("answer",), {}), (R, {"redirect": {}}), (R, {"redirect": {"scheme": "ftp"}}), (R, {"redirect": {"port": 0}}), (R, {"redirect": {"path": {}}}),
    (R, {"redirect": {"path": {"replace_full": "/x", "replace_prefix": "/y"}}}), (R, {"redirect": {"path": "/x"}}),
    (R, {"redirect": {"host": ""}}), (R, {"redirect": {"to": "x.test"}}), (R, {"redirect": {"to": "/", "status": 200}}),
    (R, {"answer": {"status": 199}}), (R, {"answer": {"body": []}}), (R, {"answer": "ok"}),
    (R + ("path",), "a"), (R + ("path",), "/a/*"), (R + ("path",), {}), (R + ("path",), {"prefix": "/", "exact": "/"}),
    (R + ("method",), "get"), (R + ("method",), []), (R + ("host",), []), (R + ("headers",), ["A"]), (R + ("headers",), {"A b": 1}),
    (R + ("headers",), {"A": ["b"]}), (R + ("query",), {"a&b": 1}), (R + ("matches",), []), (R + ("matches",), {}),
    (R + ("allow",), "none"), (R + ("deny",), "all"), (R + ("allow",), {}), (R + ("deny",), ["x.test"]),
    (R + ("auth",), {}), (R + ("auth",), "a"), (R + ("auth",), {"service": "a", "path": "x"}), (R + ("auth",), {"service": "a", "method": "PUT"}),
    (R + ("auth",), {"service": "a", "sign_in": "in"}), (R + ("mirror",), {"share": "1%"}), (R + ("mirror",), {"service": "a", "share": 2}),
    (R + ("mirror",), {"service": "a", "share": "much"}), (R + ("mirror",), {"service": "a", "body_limit": "0B", "x": 1}),
    (R + ("rate_limit",), "10"), (R + ("rate_limit",), 10), (R + ("rate_limit",), []), (R + ("rate_limit",), ["off"]),
    (R + ("rate_limit",), {"burst": 1}), (R + ("rate_limit",), {"rate": "1/d"}), (R + ("rate_limit",), {"rate": "1/s", "nosuch": 1}),
    (R + ("rate_limit",), {"rate": "1/s", "by": "ip"}), (R + ("rate_limit",), {"rate": "1/s", "by": {}}),
    (R + ("rate_limit",), {"rate": "1/s", "burst": 0}), (R + ("rate_limit",), {"rate": "1/s", "ipv4_prefix": 0}),
    (R, {"service": "a", "path": "/", "matches": [{}]}), (R + ("strip_prefix",), "maybe"), (R + ("body_limit",), 5),
    (R + ("compress",), 1), (R + ("compress",), []), (R + ("compress",), "gzip"), (R + ("compress",), {"codings": "br"}),
    (R + ("compress",), {"encodings": []}), (R + ("compress",), {"encodings": "deflate"}), (R + ("compress",), {"types": []}),
    (R + ("compress",), {"types": "text"}), (R + ("compress",), {"types": "*/*"}), (R + ("compress",), {"types": ["a/*b*"]}),
    (R + ("compress",), {"level": 6}), (R + ("compress",), {"min_size": "off"}), (("limits", "compress"), "off"),
]


@pytest.mark.parametrize("path,value", TAKEN, ids=repr)
def test_what_the_check_takes_fits(tmp_path, path, value):
    document = changed(path, value)
    assert checked(tmp_path, document)
    assert valid(document)


@pytest.mark.parametrize("path,value", REFUSED, ids=repr)
def test_unknown_keys_and_wrong_types_do_not_fit(tmp_path, path, value):
    document = changed(path, value)
    assert not valid(document)
    assert not checked(tmp_path, document)


def test_without_routes_nothing_fits():
    assert valid(GOOD)
    assert not valid({"services": GOOD["services"]}) and not valid([]) and not valid("x")


@pytest.mark.skipif(not jsonschema, reason="jsonschema is not installed")
def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_command():
    assert "thimble schema" in run("help").stdout
    assert run("schema", "-c", "x").returncode == 2
    with open("/dev/full", "w") as full:
        r = subprocess.run([BINARY, "schema"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert r.returncode == 1 and "could not be written" in r.stderr
