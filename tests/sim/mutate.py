#!/usr/bin/env python3
"""mutate.py - proves that the simulation's net is tight: builds it with one deliberate fault at a time and expects a violation.

usage: mutate.py SOURCE_TOP [--seeds N] [--only NAME,...] [--shrink] [--jobs N]

Every row of mutants.list is applied to a copy of the coordinator; the simulator runs over its seeds until one fails. A fault that survives
all seeds, does not apply any more, or does not compile is a failure of this test.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STORED_SEEDS = 1000001
FLAGS = ['-std=gnu11', '-O1', '-w', '-fno-strict-aliasing', '-Iinclude', '-I.']


def sources(top):
    found = sorted(p.relative_to(top) for d in ('coordinator', 'tests/sim') for p in (top / d).rglob('*.c'))
    skip = re.compile(r'coordinator/(main|cli|config\w*|output|catalog)\.c')
    return [p for p in found if not skip.fullmatch(str(p))] + [pathlib.Path('tests/unit/log/sim_disk.c')]


def mutants(top):
    rows = []
    for line in (top / 'tests/sim/mutants.list').read_text().splitlines():
        if not line.strip() or line.startswith('#'):
            continue
        parts = [p.replace('\\|', '|') for p in re.split(r' (?<!\\)\| ', line)]
        if len(parts) != 4:
            sys.exit(f'mutants.list: four columns wanted: {line}')
        name, file, old, new = parts[0].strip(), parts[1].strip(), parts[2].replace('\\n', '\n'), parts[3].replace('\\n', '\n')
        rows.append((name, file, old, new))
    return rows


def compile_one(top, source, out):
    return subprocess.run(['cc', *FLAGS, '-c', str(source), '-o', str(out)], cwd=top, capture_output=True, text=True)


def build_base(top, work):
    objects = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {}
        for s in sources(top):
            objects[str(s)] = work / (str(s).replace('/', '_') + '.o')
            jobs[pool.submit(compile_one, top, s, objects[str(s)])] = s
        for job, s in jobs.items():
            if job.result().returncode != 0:
                sys.exit(f'{s} does not compile:\n{job.result().stderr}')
    ours = [str(o) for s, o in objects.items() if not s.startswith('tests/')]
    subprocess.run(['ar', 'rcs', str(work / 'base.a'), *ours], check=True)
    return [str(o) for s, o in objects.items() if s.startswith('tests/')] + [str(work / 'base.a')]


def apply(text, old, new):
    numbered = re.match(r'(\d+):', old)
    nth = int(numbered.group(1)) if numbered else 0
    old = old[numbered.end():] if numbered else old
    parts = text.split(old)
    if len(parts) < 2 or (not nth and len(parts) != 2):
        return None
    at = (nth or 1)
    return old.join(parts[:at]) + new + old.join(parts[at:])


def try_mutant(top, work, objects, row, seeds, shrink):
    name, file, old, new = row
    text = apply((top / file).read_text(), old, new)
    if text is None:
        return name, 'does not apply', False
    tree = work / name
    tree.mkdir()
    source = tree / pathlib.Path(file).name
    source.write_text(text)
    built = compile_one(top, source, tree / 'mutant.o')
    if built.returncode != 0:
        return name, 'does not compile: ' + built.stderr.strip().splitlines()[0], False
    # whatever the mutant defines is not taken from the archive any more
    subprocess.run(['cc', str(tree / 'mutant.o'), *objects, '-lisal', '-o', str(tree / 'sim')], check=True)
    # faults of the log show where there is one (tests/sim/stored.h)
    first = STORED_SEEDS if file.startswith('coordinator/log/') or file == 'coordinator/newest.c' else 1
    run = subprocess.run([str(tree / 'sim'), '--first', str(first), '--seeds', str(seeds)] + ([] if shrink else ['--no-shrink']), capture_output=True, text=True)
    shutil.rmtree(tree)
    if run.returncode == 0:
        return name, f'SURVIVED {seeds} seeds', False
    return name, run.stdout if shrink else run.stdout.splitlines()[0] if run.stdout else '?', True


def main():
    args = argparse.ArgumentParser()
    args.add_argument('top')
    args.add_argument('--seeds', type=int, default=400)
    args.add_argument('--only', help='names, separated by commas')
    args.add_argument('--shrink', action='store_true', help='show the short list of actions that finds the fault')
    args.add_argument('--jobs', type=int, default=1)
    args = args.parse_args()
    top = pathlib.Path(args.top).resolve()
    rows = [r for r in mutants(top) if not args.only or r[0] in args.only.split(',')]
    failures = 0
    with tempfile.TemporaryDirectory() as d:
        work = pathlib.Path(d)
        objects = build_base(top, work)
        subprocess.run(['cc', *objects, '-lisal', '-o', str(work / 'sim')], check=True)
        if subprocess.run([str(work / 'sim'), '--seeds', '40', '--no-shrink']).returncode != 0:
            sys.exit('the simulation fails without any fault: nothing is proven')
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for name, what, caught in pool.map(lambda r: try_mutant(top, work, objects, r, args.seeds, args.shrink), rows):
                print(f"{'caught ' if caught else 'FAILED '} {name}: {what}", flush=True)
                failures += not caught
    print(f'{len(rows) - failures} of {len(rows)} faults caught')
    return failures > 0


if __name__ == '__main__':
    sys.exit(main())
