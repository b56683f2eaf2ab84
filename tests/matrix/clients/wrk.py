#!/usr/bin/python3
"""wrk with a script, one process for each kind: wrk.py SPEC"""
import os
import subprocess
import tempfile

import common

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrk.lua")


def message(host, step):
    body = common.body(step)
    fields = [("Host", host)] + [tuple(f) for f in step["headers"]] + ([("Content-Length", len(body))] if body is not None else [])
    if step.get("close"):
        fields.append(("Connection", "close"))
    head = "%s %s HTTP/1.1\r\n" % (step["method"], step["target"]) + "".join("%s: %s\r\n" % f for f in fields)
    return (head + "\r\n").encode("latin-1") + (body or b"")


def answers(path):
    with open(path, "rb") as f:
        while True:
            line = f.readline()
            if not line:
                return
            fields = []
            while True:
                name, colon, value = f.readline().decode("latin-1").rstrip("\n").partition(": ")
                if not colon:
                    break
                fields.append((name, value))
            yield int(line), fields, f.read(int(f.readline()))


def groups(kinds):
    """What is asked step by step goes into one run."""
    plain = [k for k in kinds if not (k["parallel"] or k["pipeline"])]
    if plain:
        yield plain
    for k in kinds:
        if k not in plain:
            yield [k]


def main():
    spec = common.spec()
    for kinds in groups(spec["kinds"]):
        seen = [(common.Seen(k, i), s) for k in kinds for i, s in enumerate(k["steps"])]
        with tempfile.TemporaryDirectory() as folder:
            asked, told = os.path.join(folder, "asked"), os.path.join(folder, "told")
            messages = [message(spec["host"], s) for _, s in seen]
            if kinds[0]["pipeline"]:
                messages = [b"".join(messages)]
            with open(asked, "wb") as f:
                for m in messages:
                    f.write(b"%d\n" % len(m) + m)
            subprocess.run(["wrk", "-t1", "-c%d" % (len(seen) if kinds[0]["parallel"] else 1), "-d20s", "-s", SCRIPT,
                            "http://%s/" % spec["host"], "--", asked, told, str(len(seen))],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            got = list(answers(told)) if os.path.exists(told) else []
        for i, (s, _) in enumerate(seen):
            if i < len(got):
                s.update(status=got[i][0], headers=got[i][1])
                s.took(got[i][2])
            else:
                s["error"] = "no answer"
            s.tell()


main()
