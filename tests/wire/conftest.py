"""Fixtures of the wire tests.  What a test starts is stopped behind it, clients
and origins first, and every program must then end with code 0 and say nothing
of leaks, races or undefined behaviour."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

# The forms of --shim, as settings of tests/shim/short.c, and the marks of tests that say nothing in them.
SHIMS = {
    "byte": ({}, ["whole_calls"]),
    "again": ({"SHORT_BYTES": "5", "SHORT_AGAIN": "25"}, ["whole_calls", "true_edges"]),
}


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the thorough form of tests that have one")
    parser.addoption("--shim", choices=sorted(SHIMS), help="sockets move a few bytes at a time (tests/shim/short.c)")


@pytest.fixture
def long(request):
    return request.config.getoption("--long")


def pytest_configure(config):
    config.addinivalue_line("markers", "whole_calls(why): says nothing when sockets move a few bytes at a time")
    config.addinivalue_line("markers", "true_edges(why): says nothing when a socket may say that it is readable and is not")
    shim = config.getoption("--shim")
    if shim:
        harness.BINARY = os.path.join(os.path.dirname(harness.BINARY), "thimble_short")
        os.environ.update(SHIMS[shim][0])
    if not os.access(harness.BINARY, os.X_OK):
        raise pytest.UsageError("no program at %s: ./dev build asan, or set THIMBLE" % harness.BINARY)


def pytest_collection_modifyitems(config, items):
    shim = config.getoption("--shim")
    if shim:
        out = [i for i in items if any(i.get_closest_marker(m) for m in SHIMS[shim][1])]
        config.hook.pytest_deselected(items=out)
        items[:] = [i for i in items if i not in out]


class Stage:
    """All that one test has started."""

    def __init__(self, folder):
        self.folder = folder
        self.clients, self.origins, self.programs = [], [], []

    def origin(self, script=harness.echo, **more):
        self.origins.append(harness.Origin(script, **more))
        return self.origins[-1]

    def start(self, args, **more):
        """The program with these arguments."""
        self.programs.append(harness.Thimble(args, **more))
        return self.programs[-1]

    def file(self, name, text):
        path = str(self.folder / name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def text(self, text, **more):
        """The program with a configuration text, in which @PORT@ is a free port."""
        for attempt in range(5):
            port = harness.free_port()
            path = self.file("thimble-%d.yaml" % len(self.programs), text.replace("@PORT@", str(port)))
            program = harness.Thimble(["run", "-c", path], port=port, ready=False, **more)
            try:
                program.err.wait(r"\bready\b")
            except AssertionError:
                program.kill()
                if attempt < 4 and "in use" in program.err.text():
                    continue
                raise
            self.programs.append(program)
            return program

    def proxy(self, origin, **settings):
        """The program in front of one origin, an address or a dict of services."""
        more = {k: settings.pop(k) for k in ("env", "ceilings") if k in settings}
        if "ceilings" in more:
            more["limits"] = more.pop("ceilings")
        services = origin if isinstance(origin, dict) else {"app": getattr(origin, "address", origin)}
        return self.text(harness.config(services, **settings), **more)

    def client(self, program, **more):
        self.clients.append(harness.Client(getattr(program, "address", program), **more))
        return self.clients[-1]

    def end(self):
        problems = []
        for c in self.clients:
            c.close()
        for thing in self.origins + self.programs:
            try:
                thing.stop()
            except AssertionError as e:
                problems.append(str(e))
        assert not problems, "\n".join(problems)


@pytest.fixture
def stage(tmp_path):
    s = Stage(tmp_path)
    try:
        yield s
    finally:
        s.end()
