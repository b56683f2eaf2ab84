#!/usr/bin/env python3
"""Keeps the staircase of rooms: what may include what.

Fails when a file of a room includes a room above it or beside it, when a
third-party header is used outside the one room that owns the library, when an
include is not written as a path from the root, and when a header does not
compile alone.  Prints a line per finding, then "N passed, N failed".
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A room and what it may include beside itself.
ROOMS = {
    "lib/base": (),
    "lib/crypto": ("lib/base",),
    "lib/http": ("lib/base",),
    "lib/net": ("lib/base",),
    "conf": ("lib/base",),
    "dispatch": ("lib/base", "lib/crypto"),
    "health": ("lib/base", "lib/http", "lib/net", "dispatch"),
    "proxy": ("lib/base", "lib/crypto", "lib/http", "lib/net", "conf", "dispatch", "health"),
}

# A third-party header (as a prefix) and the places that may include it.
LIBRARIES = {
    "event2/": ("lib/net/", "proxy/demo.c"),
    "event.h": (),
    "evhttp.h": (),
    "llhttp": ("lib/http/",),
    "nghttp2/": ("lib/http/",),
    "zlib.h": ("lib/http/encode.c",),
    "brotli/": ("lib/http/encode.c",),
    "zstd": ("lib/http/encode.c",),
    "yaml.h": ("conf/",),
    "pcre2": ("dispatch/",),
    "openssl/": ("lib/crypto/", "lib/net/tls", "lib/net/feed.c"),   # digests there, connections here
    "crypt.h": ("lib/crypto/",),
    "ares": ("lib/net/",),
    "cmocka": (),
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def room_of(path):
    return next((r for r in ROOMS if path.startswith(r + "/")), None)


def sources():
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(ROOT, room)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def includes(path):
    """(line, quote or bracket, what) of each include of a file."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    for m in INCLUDE.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, m[1], m[2]


def check_file(path):
    room = room_of(path)
    for line, how, what in includes(path):
        where = "%s:%d: " % (path, line)
        if how == '"':
            if not os.path.exists(os.path.join(ROOT, what)):
                yield where + '"%s" is not a path from the root' % what
                continue
            other = room_of(what)
            if other is None:
                yield where + "%s is in no room" % what
            elif other != room and other not in ROOMS[room]:
                yield where + "%s may not include %s" % (room, other)
        else:
            for lib, places in LIBRARIES.items():
                if what.startswith(lib) and not path.startswith(places):
                    yield where + "<%s> belongs to %s" % (what, " and ".join(places) or "nobody here")


def compiler():
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT]
    for package in ("libevent_core", "yaml-0.1", "libpcre2-8", "libllhttp", "openssl", "libcares"):
        r = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True)
        flags += r.stdout.split() if r.returncode == 0 else []
    for folder in ("/usr/share/include/llhttp", "/usr/include/node"):
        if os.path.exists(folder + "/llhttp.h"):
            flags += ["-isystem", folder]
    return [shutil.which(os.environ.get("CC", "cc")) or "gcc"] + flags + ["-x", "c", "-"]


def check_alone(command, path):
    r = subprocess.run(command, input='#include "%s"\n' % path, capture_output=True, text=True)
    if r.returncode:
        yield "%s: does not compile alone\n%s" % (path, "\n".join(r.stderr.splitlines()[:12]))


def main():
    passed = failed = 0
    command = compiler()
    for path in sources():
        findings = list(check_file(path))
        if path.endswith(".h"):
            findings += check_alone(command, path)
        for f in findings:
            print(f)
        passed += not findings
        failed += bool(findings)
    if not passed + failed:
        print("no sources found under " + ROOT)
        failed = 1
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
