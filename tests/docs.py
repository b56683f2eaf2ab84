#!/usr/bin/env python3
"""The tables of docs/configuration.md beside the table of keys.

    tests/docs.py BINARY            is the page as `BINARY keys` prints its tables?
    tests/docs.py BINARY --write    make it so

The page has a pair of marks, `<!-- keys: NOUN -->` and `<!-- /keys -->`, for each map of the language; what stands
between them is the program's, what stands around them is written by hand."""
import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "configuration.md")
BLOCK = re.compile(r"<!-- keys: (\w+) -->\n((?:(?!<!-- keys).)*?)<!-- /keys -->\n", re.S)


def tables(binary):
    """{noun: its table} of all that the program knows."""
    text = subprocess.run([binary, "keys"], capture_output=True, text=True, check=True, timeout=30).stdout
    return dict(BLOCK.findall(text))


def made(page, table):
    """The page with these tables, and what is wrong with its marks."""
    found = [noun for noun, _ in BLOCK.findall(page)]
    wrong = ["a section is missing, with `<!-- keys: %s -->` and on the next line `<!-- /keys -->`" % n
             for n in table if n not in found]
    wrong += ["`<!-- keys: %s -->` is there twice" % n for n in set(found) if found.count(n) > 1]
    wrong += ["`<!-- keys: %s -->`: the program has no such table" % n for n in found if n not in table]
    return BLOCK.sub(lambda m: "<!-- keys: %s -->\n%s<!-- /keys -->\n" % (m[1], table.get(m[1], m[2])), page), wrong


def main():
    page = open(PAGE).read()
    new, wrong = made(page, tables(sys.argv[1]))
    if "--write" in sys.argv:
        if new != page:
            open(PAGE, "w").write(new)
    elif new != page:
        wrong.append("the tables are not those of the program; ./dev docs writes them")
    for w in wrong:
        print("docs/configuration.md: " + w, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
