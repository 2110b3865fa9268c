#!/usr/bin/env python3
"""Checks that every public bug report that we replay has its test: usage: check_replay_cases.py TESTS_FOLDER

replay_cases.list has one row per case and test, `B01 unit/group/test_replay_cases.c b01_name`, or, for a case that does not concern us yet,
`B49 - the reason`. Checked: every case of the reports' list has rows; each test named stands in its file, begins with the number of its case, and its file
is built or run by the meson.build beside it; and no test with such a name is missing from the list.
"""
import pathlib
import re
import sys

CASES = """B01 B04 B05 B07 B08 B09 B10 B11 B12 B13 B16 B18 B20 B21 B24 B30 B31 B33 B36 B37 B40 B41 B44 B45 B49 B50 B52
           B60 B61 B62 B63 B64 B65 B66 B67 B68 B69 B70 B80 B82 B83 B84 B86 B87 B92""".split()
C_TEST = re.compile(r"^Test\(\w+,\s*(b\d\d_\w+)", re.M)
PYTHON_TEST = re.compile(r"^\s+def (test_b\d\d_\w+)\(", re.M)


def tests_of(path):
    return set((C_TEST if path.suffix == ".c" else PYTHON_TEST).findall(path.read_text(encoding="utf-8")))


def rows(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.split("#")[0].strip()
        if line:
            yield number, line.split(None, 2)


def check_row(tests, case, file, name):
    path = tests / file
    if not path.is_file() or name not in tests_of(path):
        yield f"{case}: there is no test {name} in {file}"
    if not re.match(rf"(test_)?{case.lower()}_", name):
        yield f"{case}: the name {name} does not begin with its number"
    runs = re.escape(path.stem.removeprefix("test_"))
    if not re.search(rf"\b{runs}\b", (path.parent / "meson.build").read_text(encoding="utf-8")):
        yield f"{case}: nothing runs {file}"


def check(tests):
    seen, listed = set(), set()
    for number, row in rows(tests / "rules" / "replay_cases.list"):
        if len(row) != 3 or row[0] not in CASES:
            yield f"replay_cases.list:{number}: a known case, a file or '-', and a test or a reason are wanted"
            continue
        case, file, rest = row
        seen.add(case)
        if file == "-":
            continue
        listed.add((file, rest))
        yield from check_row(tests, case, file, rest)
    for case in sorted(set(CASES) - seen):
        yield f"{case}: neither a test nor a reason"
    for path in sorted([*tests.rglob("test_*.c"), *tests.rglob("test_*.py")]):
        file = path.relative_to(tests).as_posix()
        for name in sorted(tests_of(path)):
            if (file, name) not in listed:
                yield f"{file}: {name} is not in replay_cases.list"


def main():
    faults = list(check(pathlib.Path(sys.argv[1])))
    print("\n".join(faults) or f"{len(CASES)} cases have their tests or a reason")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
