#!/usr/bin/env python3
"""Checks the architecture's rules that a compiler does not: usage: check_rules.py TOP_FOLDER [LIBRARY.a ...]

1. The folders at the top are exactly those that the README names.
2. Includes go one way: include/ <- dataplane/, include/ <- coordinator/; the halves never include each other; coordinator/ sees no DPDK;
   inside coordinator/: wire <- log, group <- shard <- api <- session and node <- main.
3. No mutable statics: the libraries have no symbol in .data or .bss.
4. Calls that the heartbeat path must not make do not stand in its files: allocation, locks, clocks, system calls.
5. Workers share nothing: what a request runs through uses no lock, and its code has no atomic read-modify-write.
"""
import os
import platform
import re
import subprocess
import sys

TOP_LEVEL = {"meson.build", "meson_options.txt", "dataplane", "coordinator", "include", "bench", "tests", "deploy", "README.md", "LICENSE"}
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
# A file of the first kind must not include what the second pattern matches.
FORBIDDEN = [
    (r"include/", r"^(coordinator|dataplane|rte_)"),
    (r"dataplane/", r"^(coordinator|bench|tests)/"),
    (r"dataplane/tcp/", r"^(rte_|dataplane/(?!tcp/))"),
    (r"coordinator/(?!main(_config)?\.)", r"^(dataplane/|bench/|tests/|rte_|muster/dataplane\.h)"),
    (r"coordinator/wire/", r"^coordinator/(?!wire/)"),
    (r"coordinator/log/", r"^coordinator/(?!log/|wire/)"),
    (r"coordinator/group/", r"^coordinator/(api/|session|node|main|config|cli)"),
    (r"coordinator/(shard|write|commit|offsets|purgatory)\.", r"^coordinator/(api/|session|node|main|config|cli)"),
    (r"coordinator/api/", r"^coordinator/(session|main|config|cli)"),
]
# What the steady heartbeat runs through, after the connection's first one.
HOT_FILES = ["coordinator/group/heartbeat.c", "coordinator/api/heartbeat.c", "dataplane/tcp/in.c", "dataplane/input.c"]
HOT_FORBIDDEN = re.compile(r"\b(malloc|calloc|realloc|free|pthread_\w+|rte_spinlock\w*|clock_gettime|gettimeofday|write|read|poll|log_append)\s*\(")


# Libraries that requests run through, and what they must not use or contain.
SHARED_NOTHING = ("libwire.a", "libengine.a", "libapi.a", "libtcp.a", "libdataplane.a")
LOCK_CALLS = re.compile(r"^(pthread_(mutex|rwlock|spin|cond|barrier)_|sem_|mtx_|cnd_|rte_rwlock|rte_ticketlock)")
LOCKED = re.compile(r"\t(lock \S+|xchg\S*)\s+(.*)$")
# Objects, instructions, why they may.
LOCKED_MAY = [
    (r"exchange\.c\.o", r"lock or\S* +\$0x0,(0x0)?\(%rsp\)", "the fence before a bell is looked at; its operand is our own stack"),
    (r"(dataplane|inject|input|output|tx)\.c\.o", r"lock subw? +\$0x1,", "rte_pktmbuf_free of an mbuf that others refer to; ours are never shared"),
]


def sources(top):
    for folder in ("include", "dataplane", "coordinator"):
        for path, _, names in os.walk(os.path.join(top, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    yield os.path.relpath(os.path.join(path, name), top)


def check_top(top):
    tracked = {name for name in os.listdir(top) if not name.startswith(".") and not name.startswith("build")}
    for name in sorted(tracked ^ TOP_LEVEL):
        yield f"{name}: {'not one of the top-level names' if name in tracked else 'missing at the top level'}"


def check_includes(top):
    for name in sources(top):
        with open(os.path.join(top, name), encoding="utf-8") as f:
            included = INCLUDE.findall(f.read())
        for kind, pattern in FORBIDDEN:
            for header in included:
                if re.match(kind, name) and re.match(pattern, header):
                    yield f"{name}: includes {header}, which its layer must not see"


def check_statics(library):
    table = subprocess.run(["objdump", "-t", library], capture_output=True, text=True, check=True).stdout
    member = "?"
    for line in table.splitlines():
        if ":" in line and "file format" in line:
            member = line.split(":")[0]
        fields = line.split()
        # value, flags, section, size, name
        match = re.search(r"\s(\.(?:data|bss|tbss|tdata)(?:\.\S+)?|\*COM\*)\s+[0-9a-f]+\s+(\S+)$", line)
        if match and len(fields) >= 4 and not match.group(1).startswith(".data.rel.ro") and not match.group(2).startswith("."):
            yield f"{os.path.basename(library)}: {member}: mutable static {match.group(2)} in {match.group(1)}"


def check_hot(top):
    for name in HOT_FILES:
        with open(os.path.join(top, name), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                code = line.split("/*")[0]
                if not line.lstrip().startswith("*") and HOT_FORBIDDEN.search(code):
                    yield f"{name}:{number}: not on the heartbeat path: {code.strip()}"


def check_shared_nothing(library):
    table = subprocess.run(["objdump", "-t", library], capture_output=True, text=True, check=True).stdout
    for line in table.splitlines():
        fields = line.split()
        if "*UND*" in fields and LOCK_CALLS.match(fields[-1]):
            yield f"{os.path.basename(library)}: uses {fields[-1]}"
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    member, function = "?", "?"
    for line in code.splitlines():
        if "file format" in line:
            member = line.split(":")[0]
        elif line.endswith(">:"):
            function = line.split("<")[1][:-2]
        found = LOCKED.search(line)
        if not found or (found[1].startswith("xchg") and "(" not in found[2]):
            continue
        instruction = f"{found[1]} {found[2]}"
        if not any(re.search(o, member) and re.match(i, instruction) for o, i, _ in LOCKED_MAY):
            yield f"{os.path.basename(library)}: {os.path.basename(member)}: {function}: {instruction.strip()}: an atomic read-modify-write"


def main():
    top, libraries = sys.argv[1], sys.argv[2:]
    faults = [*check_top(top), *check_includes(top), *check_hot(top)]
    seen = sum(1 for _ in sources(top))
    for library in libraries:
        faults += check_statics(library)
        if os.path.basename(library) in SHARED_NOTHING and platform.machine() == "x86_64":
            faults += check_shared_nothing(library)
    print("\n".join(faults) or f"{seen} files and {len(libraries)} libraries keep the rules")
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
