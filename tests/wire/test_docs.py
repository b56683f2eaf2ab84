"""What the documents promise is there: examples pass the check, tests that are named exist."""
import os
import re
import subprocess

import pytest

from harness import BINARY, ROOT

EXAMPLES = sorted(os.listdir(os.path.join(ROOT, "deploy/examples")))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_pass_the_check(name):
    path = os.path.join(ROOT, "deploy/examples", name)
    r = subprocess.run([BINARY, "check", "-c", path], capture_output=True, text=True, timeout=30)
    assert r.returncode == 0, r.stderr


def test_configurations_in_the_readme_pass_the_check(tmp_path):
    blocks = re.findall(r"```yaml\n(.*?)```", open(os.path.join(ROOT, "README.md")).read(), re.S)
    assert blocks
    for i, block in enumerate(blocks):
        path = tmp_path / ("%d.yaml" % i)
        path.write_text(block)
        r = subprocess.run([BINARY, "check", "-c", str(path)], capture_output=True, text=True, timeout=30)
        assert r.returncode == 0, r.stderr


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


def test_links_lead_somewhere():
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md"):
        text = open(os.path.join(ROOT, name)).read()
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert os.path.exists(os.path.join(ROOT, os.path.dirname(name), link)), (name, link)
