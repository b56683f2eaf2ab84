#!/usr/bin/python3
"""curl, one process for each kind: curl.py SPEC"""
import json
import os
import subprocess
import tempfile

import common


def arguments(host, step, name):
    args = ["--http1.0" if step.get("http10") else "--http1.1", "--path-as-is", "-m", "20", "-o", name + ".body", "-D", name + ".head",
            "-w", "%{json}\\n", "-H", "Expect: 100-continue" if step.get("expect") else "Expect:"]
    args += ["-I"] if step["method"] == "HEAD" else ["-X", step["method"]]
    for f in step["headers"]:
        args += ["-H", "%s: %s" % tuple(f)]
    if step["body"]:
        args += ["--data-binary", "@" + step["body"], "-H", "Content-Type:"]
    if step.get("chunked"):
        args += ["-H", "Transfer-Encoding: chunked"]
    if step.get("close"):
        args += ["-H", "Connection: close"]
    if step.get("follow"):
        args += ["-L"]
    if step["target"] == "*":
        return args + ["--request-target", "*", "http://%s/" % host]
    return args + ["http://%s%s" % (host, step["target"])]


def fields(lines):
    return [(n, v.strip()) for n, _, v in (line.partition(":") for line in lines)]


def heads(seen, name):
    """What curl wrote of heads: interim ones, the last one, and behind it the trailers."""
    with open(name + ".head", encoding="latin-1", newline="") as f:
        blocks = [b.split("\r\n") for b in f.read().split("\r\n\r\n")]
    for b in blocks:
        if b[0].startswith("HTTP/"):
            status = int(b[0].split(" ")[1])
            if status < 200:
                seen["interim"].append(status)
            seen.update(status=status, headers=fields(b[1:]))
        elif b[0]:
            seen["trailers"] = fields(line for line in b if line)


def main():
    spec = common.spec()
    for kind in spec["kinds"]:
        with tempfile.TemporaryDirectory() as folder:
            args = ["curl", "-q", "-sS"] + (["-Z", "--parallel-immediate"] if kind["parallel"] else [])
            names = [os.path.join(folder, str(i)) for i in range(len(kind["steps"]))]
            for i, step in enumerate(kind["steps"]):
                args += (["--next"] if i else []) + arguments(spec["host"], step, names[i])
            p = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            said = {}
            for line in p.stdout.decode().splitlines():
                one = json.loads(line)
                said[one["filename_effective"]] = one
            for i, name in enumerate(names):
                seen = common.Seen(kind, i)
                one = said.get(name + ".body")
                if one is None or one["exitcode"]:
                    seen["error"] = (one or {}).get("errormsg") or p.stderr.decode() or "nothing"
                if os.path.exists(name + ".head"):
                    heads(seen, name)
                data = b""
                if os.path.exists(name + ".body") and kind["steps"][i]["method"] != "HEAD":
                    with open(name + ".body", "rb") as f:
                        data = f.read()
                seen.took(data)
                seen.tell()


main()
