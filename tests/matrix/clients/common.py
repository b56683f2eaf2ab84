"""What the clients in Python share: a spec in, a line of JSON for each step out."""
import base64
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def spec():
    with open(sys.argv[1], encoding="utf-8") as f:
        return json.load(f)


def body(step):
    if not step["body"]:
        return None
    with open(step["body"], "rb") as f:
        return f.read()


class Seen(dict):
    def __init__(self, kind, step):
        super().__init__(kind=kind["name"], step=step, status=0, headers=[], n=0, sha="", trailers=[], interim=[], error="")

    def took(self, data):
        self.update(n=len(data), sha=hashlib.sha256(data).hexdigest())
        if len(data) < 20000:
            self["body"] = base64.b64encode(data).decode()

    def failed(self, e):
        self["error"] = "%s: %s" % (type(e).__name__, e)

    def tell(self):
        print(json.dumps(self), flush=True)
