"""Sequences in which the two once differed and do not any more: each must be answered alike to the end, known differences apart."""
from fixed import ask, fetch_all, join, leave, plain, sequence, stable, sync, tick

SUBSCRIBES_T = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"
SUBSCRIBES_U = b"\0\0\0\0\0\1\0\1u\xff\xff\xff\xff"


def offset_delete(actor):
    return ask(actor, "OffsetDelete", 0, lambda c: {"topics": [{"name": name, "partitions": [{"index": 0}]} for name in ("t", "u")]})


def topics(**partition):
    """t, one that does not exist, and u; only of u a partition is named."""
    return [{"name": "t", "partitions": []}, {"name": "nowhere", "partitions": []}, {"name": "u", "partitions": [{"index": 0, **partition}]}]


COMMIT = ask(0, "OffsetCommit", 8, lambda c: {"generation": -1, "topics": topics(offset=1)})


ONCE = {
    "subscriptions while a member with others joins": sequence(
        join(0, 3, metadata=SUBSCRIBES_U), tick(), join(1, 3, metadata=SUBSCRIBES_T), offset_delete(2), join(0, metadata=SUBSCRIBES_U), offset_delete(2)),
    "subscriptions of who has left": sequence(
        join(0, 3, metadata=SUBSCRIBES_U), join(1, 3, metadata=SUBSCRIBES_T), tick(), leave(1), offset_delete(2), join(0, metadata=SUBSCRIBES_U),
        offset_delete(2)),
    "subscription of a replaced static member": sequence(
        stable(1, metadata=SUBSCRIBES_U), join(1, 5, instance="i", metadata=SUBSCRIBES_U), join(0, metadata=SUBSCRIBES_U), tick(),
        join(1, 5, instance="i", member="", metadata=SUBSCRIBES_T), offset_delete(2)),
    "a group that has had no join phase": sequence(join(0, 3, metadata=SUBSCRIBES_U), offset_delete(1), tick(), offset_delete(1)),
    "user data that are not there": sequence(join(0, 3, metadata=SUBSCRIBES_U[:-4]), tick(), offset_delete(1)),
    "commit of topics without partitions": sequence(COMMIT, fetch_all(0)),
    "deletion of topics without partitions": sequence(
        COMMIT, ask(0, "OffsetDelete", 0, lambda c: {"topics": topics()}), fetch_all(0)),
    "end of topics without partitions": sequence(plain(0, "ListOffsets", 5, topics=topics())),
}


def keep_for(actor, ms, version=4, own=True, topics=("t", "u")):
    """Commits that name how long they are to be kept; as a member, or as nobody."""
    return ask(actor, "OffsetCommit", version, lambda c: {
        "generation": c.actor.generation if own else -1, "member": c.actor.member if own else "", "retention_ms": ms,
        "topics": [{"name": name, "partitions": [{"index": 0, "offset": 1}]} for name in topics]})


# Played with servers that look for expired offsets several times per slot, and keep offsets for a minute where the commit does not say.
EXPIRING = {
    "offsets of a simple group": sequence(keep_for(0, 100, own=False, topics="t"), keep_for(0, -1, own=False, topics="u"), tick()),
    "a simple group of which nothing is left": sequence(keep_for(0, 100, own=False), tick()),
    "offsets of subscribed topics stay": sequence(stable(1, metadata=SUBSCRIBES_T), keep_for(0, 100), tick()),
    "offsets of a group that has no subscription to read": sequence(stable(1), keep_for(0, 100), tick()),
    "offsets of a group of another type": sequence(stable(1, type="connect"), keep_for(0, 100), tick()),
    "offsets of a group that joins": sequence(
        stable(1, metadata=SUBSCRIBES_T), keep_for(0, 100), join(1, 3, metadata=SUBSCRIBES_T), tick()),
    "offsets of a group that waits for its leader": sequence(
        keep_for(0, 1500, own=False), join(0, 3, metadata=SUBSCRIBES_T), tick(2)),
    "offsets of a group whose static member was replaced by one that wants another topic": sequence(
        stable(1, metadata=SUBSCRIBES_T), join(1, 5, instance="i", metadata=SUBSCRIBES_U), join(0, metadata=SUBSCRIBES_T), sync(0), sync(1, instance="i"),
        join(1, 5, instance="i", member="", metadata=SUBSCRIBES_T), keep_for(0, 100), tick()),
    "a group that everybody has left": sequence(stable(1, metadata=SUBSCRIBES_T), leave(0), tick()),
    "a group that everybody has left, with offsets": sequence(stable(1, metadata=SUBSCRIBES_T), keep_for(0, 100, topics="t"), leave(0), tick()),
    "a group that everybody has left, with offsets that stay": sequence(stable(1, metadata=SUBSCRIBES_T), keep_for(0, -1), leave(0), tick()),
}
