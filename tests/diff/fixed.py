"""Words to write fixed sequences with: each returns a step, or a list of steps."""
import sequences


def sequence(*steps):
    flat = []
    for step in steps:
        flat += step if isinstance(step, list) else [step]
    return {"seed": "fixed", "actors": [{"instance": None, "offers": []} for _ in range(8)], "steps": flat}


def tick(slots=1):
    return ("tick", slots, 0)


def drop(actor):
    return ("drop", actor, 0)


def ask(actor, name, version, values):
    """values(choice) gives the fields."""
    return ("ask", actor, lambda choice: (name, version, {"group": choice.group, **values(choice)}))


def join(actor, version=9, session=30, rebalance=60, offers=("range",), instance=None, member=None, metadata=b"", type="consumer"):
    return ask(actor, "JoinGroup", version, lambda c: {
        "session_ms": round(session * sequences.SLOT * 1000), "rebalance_ms": round(rebalance * sequences.SLOT * 1000), "instance": instance,
        "member": c.actor.member if member is None else member, "protocol_type": type,
        "protocols": [{"name": name, "metadata": metadata} for name in offers]})


def sync(actor, version=3, instance=None):
    """The assignments come along: they count only if the actor leads."""
    return ask(actor, "SyncGroup", version, lambda c: {
        "generation": c.actor.generation, "member": c.actor.member, "instance": instance,
        "assignments": [{"member": m, "assignment": b"%d" % c.order[m]} for m in c.actor.members]})


def heartbeat(actor, version=3, generation=None):
    return ask(actor, "Heartbeat", version, lambda c: {
        "generation": c.actor.generation if generation is None else generation, "member": c.actor.member})


def leave(actor, version=3):
    return ask(actor, "LeaveGroup", version, lambda c: {"members": [{"member": c.actor.member, "instance": None}]})


def commit(actor, version=8, generation=-1, metadata=""):
    return ask(actor, "OffsetCommit", version, lambda c: {
        "generation": generation, "member": "", "topics": [{"name": "t", "partitions": [{"index": 0, "offset": 1, "metadata": metadata}]}]})


def fetch_all(actor, version=8):
    return ("ask", actor, lambda c: ("OffsetFetch", version, {"groups": [{"group": c.group, "topics": None}]}))


def plain(actor, name, version, **values):
    return ("ask", actor, lambda choice: (name, version, values))


def formed(n, **more):
    """Actors 0 to n-1 in generation 1, actor 0 leads; nobody has synced."""
    return [*(join(actor, 3, **more) for actor in range(n)), tick()]


def stable(n, **more):
    return [*formed(n, **more), *(sync(actor) for actor in range(n))]
