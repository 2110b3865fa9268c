#!/usr/bin/python3
"""Real consumers against the server at $MUSTER_BOOTSTRAP, which must have the topic demo with 6 partitions.

usage: scenarios.py SCENARIO [ARGUMENT]...

  ladder FAMILY ASSIGNOR   one, two, three consumers; a clean leave; a commit, a kill, the successor
  mixed                    one consumer of each family in one group
  static                   a static member's restart, and its absence (librdkafka)
  idle                     two consumers of each family stay for 60 s without a rebalance
  restart                  the server restarts by $MUSTER_RESTART, in order and by SIGKILL, and the group comes back

FAMILY is kcat, rdkafka, confluent or kafka-python. Exit status: 0 passed, 1 failed, 77 skipped with the reason on the last line.
Nothing but MUSTER_BOOTSTRAP ties it to a server, so that it can be tried on any Kafka broker.
"""
import os
import subprocess
import sys
import time

from group import FAMILIES, HEARTBEAT_MS, SESSION_MS, Consumer, Failure, Group, Skip, require

SESSION, HEARTBEAT = SESSION_MS / 1000, HEARTBEAT_MS / 1000
QUICK = bool(os.environ.get("MUSTER_TEST_QUICK"))
IDLE_SECONDS = 5 if QUICK else 60
SETTLE = 10  # seconds for a join; the initial delay is 3 at most
NOTICE_SLACK = 1.5
SOON = SESSION / 2  # a rebalance that waits for no timeout


def said(text):
    print(text, flush=True)


def check_notice(group, gone, ended):
    """A killed member was noticed at its session timeout: neither before nor much later."""
    group.settle(SESSION + SETTLE, f"after the kill of {gone.name}")
    noticed = group.first_event_after(ended) - ended
    # Its timer began with its last heartbeat, up to one interval before the kill.
    if not SESSION - HEARTBEAT - 0.2 <= noticed <= SESSION + NOTICE_SLACK:
        raise Failure(f"{gone.name} was noticed {noticed:.2f} s after its kill, session timeout {SESSION} s")
    said(f"{gone.name} killed: noticed after {noticed:.2f} s of a session timeout of {SESSION:.0f} s")


def check_leave(group, gone, ended):
    took = group.settle(SETTLE, f"after {gone.name} left") - ended
    if took > SOON:
        raise Failure(f"the group took {took:.2f} s after the clean leave of {gone.name}")
    said(f"{gone.name} left: its partitions were given on after {took:.2f} s")


def ladder(groups, family, assignor):
    require([family])
    group = Group(f"ladder-{family}-{assignor}", assignor)
    groups.append(group)
    for count in (1, 2, 3):
        started = time.monotonic()
        consumer = group.start(family)
        said(f"{count} members: settled after {group.settle(SETTLE, f'{consumer.name} joined') - started:.2f} s: "
             + ", ".join(str(sorted(m.have)) for m in group.members))
    first, second, third = group.members
    check_leave(group, third, group.remove(third, Consumer.leave))
    if family != "kcat":  # kcat cannot be told to commit
        held = sorted(second.have)
        second.ask("commit 42", "committed")
    check_notice(group, second, group.remove(second, Consumer.kill))
    if family != "kcat":
        offsets = first.ask("committed", "offsets")["offsets"]
        if offsets != {str(p): 42 for p in held}:
            raise Failure(f"{second.name} committed 42 for {held}; its successor fetched {offsets}")
        said(f"{second.name} committed 42 for {held}, and its successor fetched that")
    group.remove(first, Consumer.leave)
    group.check_never_shared()
    group.check_no_errors()


def mixed(groups):
    require(FAMILIES)
    group = Group("mixed", "range")
    groups.append(group)
    for family in FAMILIES:
        consumer = group.start(family)
        group.settle(SETTLE, f"{consumer.name} joined")
        said(f"{consumer.name} joined: " + ", ".join(f"{m.name} {sorted(m.have)}" for m in group.members))
    held = {m: sorted(m.have) for m in group.members}
    committers = [m for m in group.members if m.family != "kcat"]
    for number, member in enumerate(committers):
        member.ask(f"commit {100 + number}", "committed")
    wanted = {str(p): 100 + number for number, member in enumerate(committers) for p in held[member]}
    for member in committers:
        offsets = member.ask("committed", "offsets")["offsets"]
        if offsets != wanted:
            raise Failure(f"{member.name} fetched {offsets}, expected {wanted}")
    said("each fetched what the others committed")
    gone = group.members[0]  # the first to join leads
    check_notice(group, gone, group.remove(gone, Consumer.kill))
    while len(group.members) > 1:
        gone = group.members[0]
        check_leave(group, gone, group.remove(gone, Consumer.leave))
    group.check_never_shared()
    group.check_no_errors()


def static(groups):
    require(["rdkafka"])
    group = Group("static", "range")
    groups.append(group)
    group.start("rdkafka", "instance-a")
    group.settle(SETTLE, "the first joined")
    second = group.start("rdkafka", "instance-b")
    group.settle(SETTLE, "the second joined")
    had = second.have
    for how in (Consumer.leave, Consumer.kill):  # a static member's close is no leave
        before = group.counts()
        group.remove(second, how)
        time.sleep(1)
        second = group.start("rdkafka", "instance-b")
        group.settle(SESSION - 2, "instance-b came back")
        time.sleep(SESSION + NOTICE_SLACK)  # its predecessor's session would have ended by now
        if second.have != had:
            raise Failure(f"instance-b had {sorted(had)}, and {sorted(second.have)} after its restart")
        before[second.name] = len(second.events)
        if group.quiet_since(before):
            raise Failure(f"the restart of instance-b moved others: {group.quiet_since(before)}")
        said(f"instance-b restarted ({how.__name__}) and kept {sorted(had)}; instance-a noticed nothing")
    check_notice(group, second, group.remove(second, Consumer.kill))
    group.check_never_shared()
    group.check_no_errors()


def journal_lines(group):
    """What the server's rebalance journal says of the group; empty where there is none."""
    path = os.environ.get("MUSTER_LOG")
    if not path:
        return []
    with open(path, errors="replace") as log:
        return [line for line in log if f"group={group.id} " in line]


def idle(groups):
    require(FAMILIES)
    for family in FAMILIES:
        group = Group(f"idle-{family}", "range")
        groups.append(group)
        for _ in range(2):
            group.start(family)
    for group in groups:
        group.settle(2 * SETTLE, "two members joined")
    time.sleep(1)
    before = [(group.counts(), journal_lines(group)) for group in groups]
    time.sleep(IDLE_SECONDS)
    for group, (counts, journal) in zip(groups, before):
        group.wait(group.settled, 0, "the group is still settled")
        told = group.quiet_since(counts)
        if told:
            raise Failure(f"{group.id} did not stay quiet: {told}")
        if journal_lines(group) != journal:
            raise Failure(f"{group.id} has new journal lines: {journal_lines(group)[len(journal):]}")
        group.check_no_errors()
    said(f"{IDLE_SECONDS} s idle: no rebalance and no error in {len(groups)} groups")


def restart(groups):
    command = os.environ.get("MUSTER_RESTART")
    if not command:
        raise Skip("MUSTER_RESTART is not set: nobody here can restart the server")
    families = [f for f in FAMILIES if f != "kcat"]
    require(families)
    group = Group("restart", "range")
    groups.append(group)
    for family in families:
        group.start(family)
    group.settle(2 * SETTLE, "all joined")
    for number, how in enumerate(("term", "kill")):
        before = group.counts()
        subprocess.run([command, how], check=True)
        started = time.monotonic()
        # Groups live in memory so far: every member is unknown to the new server and joins anew.
        group.wait(lambda: all(any("all" in e for e in m.events[before[m.name]:]) for m in group.members) and group.settled(),
                   SESSION + 2 * SETTLE, f"all came back after {how}")
        said(f"restarted by {how}: the group was complete again {time.monotonic() - started:.2f} s after the server was ready")
        for member in group.members:
            member.ask(f"commit {7 + number}", "committed")


SCENARIOS = {"ladder": ladder, "mixed": mixed, "static": static, "idle": idle, "restart": restart}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in SCENARIOS or "MUSTER_BOOTSTRAP" not in os.environ:
        print(__doc__, file=sys.stderr)
        return 2
    groups = []
    try:
        SCENARIOS[sys.argv[1]](groups, *sys.argv[2:])
        return 0
    except Skip as reason:
        print(f"skip: {reason}")
        return 77
    except Failure as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        for group in groups:
            group.show()
        if os.environ.get("MUSTER_LOG"):
            print("the server's last lines:", file=sys.stderr)
            with open(os.environ["MUSTER_LOG"], errors="replace") as log:
                for line in log.readlines()[-40:]:
                    print(f"  {line.rstrip()}", file=sys.stderr)
        return 1
    finally:
        for group in groups:
            group.stop()


if __name__ == "__main__":
    sys.exit(main())
