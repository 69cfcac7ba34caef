#!/usr/bin/env python3
"""What the reference solutions of 50 exercises of polyglot-benchmark cost as whole files and as edits.

    tools/polyglot/measure.py CLONE PROGRAM [COUNT]

CLONE is a clone of https://github.com/Aider-AI/polyglot-benchmark, PROGRAM a built code-commit. No model is asked: each
stub becomes its reference solution by a reply of either form, which the program applies in a work tree of its own, and both
must end in the same files. So this measures bytes of replies and that they land, not rounds.
"""

import difflib
import json
import pathlib
import subprocess
import sys
import tempfile


def exercises(clone):
    """Of each language in turn: the files of the stub and those of the solution, by their paths."""
    by_language = {}
    for config in sorted(clone.glob("*/exercises/practice/*/.meta/config.json")):
        folder, files = config.parent.parent, json.loads(config.read_text())["files"]
        pairs = list(zip(files["solution"], files.get("example", files.get("exemplar", []))))
        pairs = [(new, old) for new, old in pairs if pathlib.Path(new).suffix == pathlib.Path(old).suffix]
        if not pairs or not all((folder / path).is_file() for pair in pairs for path in pair):
            continue
        stub = {path: (folder / path).read_text() for path, _ in pairs}
        solution = {path: (folder / example).read_text() for path, example in pairs}
        if stub != solution and all(text.endswith("\n") for text in [*stub.values(), *solution.values()]):
            by_language.setdefault(config.parts[-6], []).append((folder.name, stub, solution))
    found = []
    while any(by_language.values()):
        found += [(language, *of.pop(0)) for language, of in by_language.items() if of]
    return found


def whole(stub, solution):
    changed = [path for path in solution if stub[path] != solution[path]]
    return "".join(f"^^^^{path}\n{solution[path]}^^^^end\n" for path in changed)


def hunks(old, new):
    """Changed lines, with as many around them as make the old ones unique."""
    old, new = old.splitlines(True), new.splitlines(True)
    regions = [list(op[1:]) for op in difflib.SequenceMatcher(None, old, new, False).get_opcodes() if op[0] != "equal"]

    def is_unique(region):
        search = old[region[0]:region[1]]
        return bool(search) and sum(old[at:at + len(search)] == search for at in range(len(old))) == 1

    while not all(map(is_unique, regions)):
        region = next(region for region in regions if not is_unique(region))
        if region[0] > 0:
            region[0], region[2] = region[0] - 1, region[2] - 1
        if region[1] < len(old):
            region[1], region[3] = region[1] + 1, region[3] + 1
        merged = [regions[0]]
        for one in regions[1:]:
            if one[0] <= merged[-1][1]:
                merged[-1][1], merged[-1][3] = max(merged[-1][1], one[1]), max(merged[-1][3], one[3])
            else:
                merged.append(one)
        regions = merged
    return [("".join(old[a:b]), "".join(new[c:d])) for a, b, c, d in regions]


def edits(stub, solution):
    """A file that changes almost everywhere is given whole, as the prompt says."""
    reply = ""
    for path in (path for path in solution if stub[path] != solution[path]):
        parts = "".join(f"<<<<<<< SEARCH\n{a}=======\n{b}>>>>>>> REPLACE\n" for a, b in hunks(stub[path], solution[path]))
        one = f"^^^^edit {path}\n{parts}^^^^end\n"
        reply += min(one, whole({path: stub[path]}, {path: solution[path]}), key=len)
    return reply


def applied(program, stub, reply):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        subprocess.run(["git", "init", "-q", root], check=True)
        for path, text in stub.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        ran = subprocess.run([program, "apply"], cwd=root, input=reply.encode(), capture_output=True)
        if ran.returncode != 0:
            return ran.stderr.decode()
        return {path: (root / path).read_text() for path in stub}


def main():
    clone, program = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    total, wrong = [0, 0], 0
    for language, name, stub, solution in exercises(clone)[:count]:
        replies = [whole(stub, solution), edits(stub, solution)]
        ended = [applied(program, stub, reply) == solution for reply in replies]
        sizes = [len(reply.encode()) for reply in replies]
        total, wrong = [a + b for a, b in zip(total, sizes)], wrong + ended.count(False)
        print(f"{language:<11} {name:<26} {sizes[0]:>7} {sizes[1]:>7} {'' if all(ended) else ended}")
    print(f"all: {total[0]} bytes as whole files, {total[1]} as edits; {wrong} replies did not end in the solution")
    return 1 if wrong else 0


sys.exit(main())
