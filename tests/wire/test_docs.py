"""What the documents promise is there: examples pass the check, tests that are named exist."""
import ast
import importlib.util
import os
import re
import subprocess

import pytest

import certs
from harness import BINARY, ROOT

def files(ending, *folders):
    found = []
    for folder in folders or [""]:
        for at, below, names in os.walk(os.path.join(ROOT, folder)):
            below[:] = [b for b in below if b not in ("build", ".git", "corpus")]
            found += [os.path.relpath(os.path.join(at, n), ROOT) for n in names if n.endswith(ending)]
    return sorted(found)


def examples():
    """(where it is, text) of every configuration that a reader may take for one."""
    found = [(name, open(os.path.join(ROOT, name)).read()) for name in files(".yaml", "deploy")]
    for name in files(".md"):
        text = open(os.path.join(ROOT, name)).read()
        for m in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.S | re.M):
            if m[1] in ("yaml", "yml") or re.search(r"^(routes|services|listen):", m[2], re.M):
                found.append(("%s:%d" % (name, text.count("\n", 0, m.start()) + 2), m[2]))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("where,text", EXAMPLES, ids=[where for where, _ in EXAMPLES])
def test_examples_pass_the_check_without_a_warning(tmp_path, where, text):
    path = tmp_path / "example.yaml"
    path.write_text(certs.provide(text, tmp_path))
    for name in re.findall(r"\b[\w-]+\.htpasswd\b", text):      # files that it names
        (tmp_path / name).write_text("somebody:$2y$04$V62p9WKfsTCtPfXgfCy54ut77Bbwouhzw/SVRuHgF.F2Zz4uNQLgG\n")
    r = subprocess.run([BINARY, "check", "-c", str(path)], capture_output=True, text=True, timeout=30)
    assert r.returncode == 0 and not r.stderr, r.stderr


def test_all_examples_were_found():
    names = [re.sub(r":\d+$", "", where) for where, _ in EXAMPLES]
    assert {"README.md", "deploy/examples/edge.yaml", "docs/configuration.md"} <= set(names)
    for name in set(names):
        text = open(os.path.join(ROOT, name)).read()
        assert not name.endswith(".md") or names.count(name) == len(re.findall(r"```(?:yaml|yml)$", text, re.M)), name


def test_each_limit_has_a_test():
    rows = re.findall(r"\| `(\w+)` \|$", open(os.path.join(ROOT, "SECURITY.md")).read(), re.M)
    assert len(rows) > 20
    sources = ""
    for folder in ("tests/wire", "tests/unit", "tests/sim"):
        for name in os.listdir(os.path.join(ROOT, folder)):
            if name.endswith((".py", ".c")):
                sources += open(os.path.join(ROOT, folder, name)).read()
    missing = [r for r in rows if not re.search(r"\b%s\(" % r, sources)]
    assert not missing


PAGE = os.path.join(ROOT, "docs/configuration.md")


def docs():
    spec = importlib.util.spec_from_file_location("docs", os.path.join(ROOT, "tests/docs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_page_are_those_of_the_program():
    page = open(PAGE).read()
    new, wrong = docs().made(page, docs().tables(BINARY))
    assert not wrong
    assert new == page, "./dev docs writes the tables anew"


def test_a_table_that_is_not_on_the_page_would_be_seen():
    page, table = open(PAGE).read(), docs().tables(BINARY)
    made = docs().made
    assert made(page, dict(table, nonsense="x\n"))[1] and made(page + page, table)[1]
    assert made(page.replace("<!-- keys: log -->", ""), table)[1]
    assert made(page.replace("<!-- /keys -->", "", 1), table)[1]
    less = {k: v for k, v in table.items() if k != "log"}
    assert made(page, less)[1]
    assert made(page.replace("how much is too much", "much"), table) == (page, [])


def source_of(test):
    """The text of a test with its decorators, or None: `wire/test_x.py::test_y`, `unit/test_x.c::name`."""
    name, _, function = test.partition("::")
    path = os.path.join(ROOT, "tests", name)
    if not os.path.exists(path):
        return None
    text = open(path).read()
    if name.endswith(".py"):
        found = [f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and f.name == function]
        return "\n".join(ast.get_source_segment(text, n) for f in found for n in [*f.decorator_list, f]) or None
    found = re.search(r"^static void %s\(.*?^}" % re.escape(function), text, re.S | re.M)
    return found and found[0]


def untested(keys, table):
    """What is wrong with a table of tests for these keys."""
    rows = [line.split() for line in table.split("\n") if line and line[0] != "#"]
    known = dict(row for row in rows if len(row) == 2)
    wrong = ["%s has no test" % k for k in keys if k not in known]
    wrong += ["%s is no key, or is there twice" % row[0] for row in rows if row[0] not in keys or rows.count(row) > 1]
    for key, test in known.items():
        text = source_of(test)
        if text is None:
            wrong.append("%s: there is no %s" % (key, test))
        elif not re.search(r"\b%s\b" % key.split(".")[-1], text):
            wrong.append("%s is not in the text of %s" % (key, test))
    return wrong


def keys_of(tables):
    return ["%s.%s" % (noun, key) for noun, table in tables.items() if noun != "defaults"
            for key in re.findall(r"^\| `(\w+)` ", table, re.M)]


def test_each_key_has_a_test_that_names_it():
    keys = keys_of(docs().tables(BINARY))
    assert len(keys) > 70
    wrong = untested(keys, open(os.path.join(ROOT, "tests/keys.txt")).read())
    assert not wrong, "tests/keys.txt: " + "; ".join(wrong)


@pytest.mark.parametrize("table,wrong", [
    ("log.level wire/test_keys.py::test_level", []), ("", ["log.level has no test"]),
    ("log.level wire/test_keys.py::test_nosuch", ["log.level: there is no wire/test_keys.py::test_nosuch"]),
    ("log.level wire/nosuch.py::test_level", ["log.level: there is no wire/nosuch.py::test_level"]),
    ("log.level wire/test_keys.py::test_unsent", ["log.level is not in the text of wire/test_keys.py::test_unsent"]),
    ("log.level wire/test_keys.py::test_level\nlog.x wire/test_keys.py::test_level",
     ["log.x is no key, or is there twice", "log.x is not in the text of wire/test_keys.py::test_level"]),
])
def test_a_key_without_a_test_would_be_seen(table, wrong):
    assert untested(["log.level"], table) == wrong


def test_links_within_the_page_lead_somewhere():
    page = open(PAGE).read()
    heads = {h.lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", page, re.M)}
    assert heads
    assert not [a for a in re.findall(r"\]\(#([^)]*)\)", page) if a not in heads]


def test_links_lead_somewhere():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"):
        text = open(os.path.join(ROOT, name)).read()
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert os.path.exists(os.path.join(ROOT, os.path.dirname(name), link)), (name, link)
