"""Where Muster means to differ from Kafka, each with its reason. Nothing else may differ.

explains(difference) is called with the first difference of a pair of transcripts. `ends`: what comes after it in the same sequence is not
compared, because the groups have taken different ways. `shown_by` are fixed sequences, at least one of which shows the difference, if need be
after some tries: the test fails when an entry is no longer needed. A `rare` one depends on how busy the machine is, and is not asked for.
"""
from fixed import commit, drop, formed, heartbeat, join, leave, plain, sequence, stable, sync, tick
from sequences import BROKEN_METADATA, METADATA_MAX, REBALANCES, SESSIONS


class Known:
    def __init__(self, name, reason, explains, *shown_by, ends=False, rare=False):
        self.name, self.reason, self.explains, self.ends, self.rare, self.shown_by = name, reason, explains, ends, rare, shown_by


def only_muster_answers(d, api, error):
    """Kafka never answers that request, Muster does so with that error."""
    return d.entry.name == api and d.field == "phase" and d.kafka is None and d.muster is not None and d.muster.get("error") == error


def superseded(api):
    """A second request of the same member has taken the place of the parked one."""
    def explains(d):
        return only_muster_answers(d, api, 27) and any(
            e.name == api and e.step > d.step and e.phase == d.muster_entry.answered and e.values["group"] == d.muster_entry.values["group"]
            for e in d.muster_entries)
    return explains


def arbitrary_leader(d):
    """A new leader was due, that is, the one before did not join; nobody says which of the others it is."""
    if d.entry.name != "JoinGroup" or d.field != "leader" or d.kafka_entry.answer["error"] != 0 or d.muster_entry.answer["error"] != 0:
        return False
    for entry in (d.kafka_entry, d.muster_entry):
        entries = d.kafka_entries if entry is d.kafka_entry else d.muster_entries
        before = [e for e in entries if e.name == "JoinGroup" and e.answered is not None and e.answered < entry.answered
                  and e.answer.get("error") == 0]
        if before:
            last = max(before, key=lambda e: (e.answered, e.answer["generation"])).answer["leader"]
        else:
            first = next((e for e in entries if e.name == "JoinGroup" and e.answered != e.phase), None)  # the first that was parked, not an id handed out
            last = first and (first.values["member"] or first.answered is not None and first.answer["member"])
        if entry.answer["leader"] == last:
            return False
    return True


def error_of(entry):
    return entry.answer["error"] if isinstance(entry.answer, dict) and "error" in entry.answer else None


def static_in_full_group(d):
    """Set off by a JoinGroup by instance id that Kafka refuses with 81."""
    cause = d.cause()
    return cause is not None and cause[0].name == "JoinGroup" and cause[0].version >= 5 and cause[0].values["instance"] is not None \
        and error_of(cause[0]) == 81 and error_of(cause[1]) != 81


def refused_was_waited_for(d):
    """Set off by a JoinGroup with an id that both refuse with 81; Muster completes the join phase."""
    cause = d.cause()
    return cause is not None and cause[0].name == "JoinGroup" and cause[0].values["member"] != "" and error_of(cause[0]) == 81 \
        and error_of(cause[1]) == 81 and d.field == "phase"


def tied_vote(d):
    """Both protocols got the most votes."""
    if d.entry.name != "JoinGroup" or d.field != "protocol":
        return False
    generation = [e for e in d.kafka_entries if e.name == "JoinGroup" and error_of(e) == 0 and
                  e.answer["generation"] == d.kafka_entry.answer["generation"]]
    members = next((e.answer["members"] for e in generation if e.answer["members"] and e.answer["leader"] == d.kafka_entry.answer["leader"]), [])
    offers = []
    for member in members:
        said = [e for e in d.kafka_entries if e.name == "JoinGroup" and e.phase <= d.kafka_entry.answered and
                (e.values["member"] == member["member"] or isinstance(e.answer, dict) and e.answer["member"] == member["member"])
                and error_of(e) not in (23, 25, 26, 82)]
        if said:
            offers.append(offered(said[-1]))
    return {d.kafka, d.muster} <= winners(offers)


def offered(join):
    return [p["name"] for p in join.values["protocols"]]


def winners(offers):
    """The protocols with the most votes; offers: of each member, its own in the order of its wish."""
    candidates = set(offers[0]).intersection(*offers) if offers else set()
    votes = [next(n for n in names if n in candidates) for names in offers if candidates]
    return {n for n in votes if votes.count(n) == max(map(votes.count, votes))}


def tied_at_replacement(d):
    """A static member replaced in Stable makes a tie between the protocol in use, with which Muster answers at once, and another, for which Kafka rebalances."""
    k, m = d.kafka_entry, d.muster_entry
    if d.entry.name != "JoinGroup" or d.field != "phase" or m.answered != m.phase or error_of(m) != 0 or k.values["member"] != "" or k.version < 5:
        return False
    if k.values["instance"] is None:
        return False
    offers, before = {}, 0  # by instance id, or else member id, of all in this generation
    for e in d.muster_entries:
        if e.step <= m.step and e.name == "JoinGroup" and error_of(e) == 0 and e.answer["generation"] == m.answer["generation"]:
            before = len(offers)
            offers[e.version >= 5 and e.values["instance"] or e.answer["member"]] = offered(e)
    if len(offers) != before:  # nobody was replaced
        return False
    tied = winners(list(offers.values()))
    return len(tied) > 1 and m.answer["protocol"] in tied


def left_before_it_came(d):
    """An id that was handed out (79) but never joined has left; Kafka rebalances for it."""
    for k, m in zip(d.kafka_entries, d.muster_entries):
        if k.name == "LeaveGroup" and k.answered is not None and k.answered <= d.phase():
            ids = [k.values["member"]] if k.version < 3 else [w["member"] for w, r in zip(k.values["members"], k.answer["members"]) if r["error"] == 0]
            for member in ids:
                joins = [e for e in d.kafka_entries if e.name == "JoinGroup" and e.step < k.step and isinstance(e.answer, dict)
                         and e.answer["member"] == member]
                if joins and error_of(joins[0]) == 79 and not any(error_of(e) == 0 for e in joins) and error_of(k) == 0:
                    return True
    return False


def commit_of_nothing(d):
    """A commit without membership to a group that does not exist, of which nothing was stored (12), has made Kafka remember that group."""
    if d.entry.name in ("Heartbeat", "LeaveGroup", "OffsetFetch"):
        return False
    for e in d.kafka_entries:
        if e.name == "OffsetCommit" and e.values["generation"] < 0 and e.answered is not None and e.answered <= d.phase():
            group, errors = e.values["group"], {p["error"] for t in e.answer["topics"] for p in t["partitions"]}
            joined = any(j.name == "JoinGroup" and j.step < e.step and j.values["group"] == group and error_of(j) not in (24, 26) for j in d.kafka_entries)
            concerned = d.entry.name == "ListGroups" or group in (d.entry.values.get("group"), *d.entry.values.get("groups", []))
            if 12 in errors and 0 not in errors and not joined and concerned:
                return True
    return False


def timer_of_nothing(d):
    """The last member has left while an id was handed out, and a join or a commit followed at once."""
    e = d.kafka_entry
    joined = e.name == "JoinGroup" and d.field == "phase" and e.answered == e.phase and error_of(e) == 0
    committed = e.name == "OffsetCommit" and d.field.endswith(".error") and d.kafka == 25 and e.values["generation"] < 0
    if not joined and not committed:
        return False
    left = [x for x in d.kafka_entries if x.name == "LeaveGroup" and x.step < e.step and "tick" not in d.steps[x.phase:e.phase] and error_of(x) == 0]
    return any(j.name == "JoinGroup" and error_of(j) == 79 and j.step < x.step for x in left for j in d.kafka_entries)


def session_of_replacement(d):
    """A static member was replaced without a rebalance by one that asks for another session timeout than its last join did."""
    members, sessions = {}, {}  # by instance id; by member id
    for e in d.kafka_entries:
        if e.name != "JoinGroup" or error_of(e) not in (0, None) or e.step > d.step:
            continue
        instance = e.values.get("instance") if e.version >= 5 else None
        before = sessions.get(members.get(instance))
        if instance is not None and e.values["member"] == "" and e.answered == e.phase and before not in (None, e.values["session_ms"]):
            return True
        member = e.answer["member"] if e.answered is not None else e.values["member"]
        sessions[member] = e.values["session_ms"]
        if instance is not None:
            members[instance] = member
    return False


def sign_of_life_while_new(d):
    """Kafka expires a new member, whose first join is parked, one session after it sent a heartbeat or a commit."""
    e = d.kafka_entry
    if e.name != "JoinGroup" or error_of(e) != 25 or "tick" not in d.steps[e.answered:e.answered + 1] or d.field not in ("phase", "error"):
        return False
    return any(o.phase <= d.phase() and o.name in ("Heartbeat", "OffsetCommit") and o.values["member"] == e.values["member"]
               for o in d.kafka_entries)


def partition_asked_twice(d):
    if d.entry.name != "ListOffsets" or not d.field.startswith("topics"):
        return False
    asked = [(t["name"], p["index"]) for t in d.entry.values["topics"] for p in t["partitions"]]
    twice = {place for place in asked if asked.count(place) > 1}

    def others(answer):
        return sorted((t["name"], p["index"], str(p)) for t in answer["topics"] for p in t["partitions"] if (t["name"], p["index"]) not in twice)
    said = [(t["name"], p["index"], p["error"]) for t in d.kafka_entry.answer["topics"] for p in t["partitions"]]
    return all(said.count((*place, 42)) == 1 for place in twice) and others(d.kafka_entry.answer) == others(d.muster_entry.answer)


def topic_named_twice(d):
    """The same partitions with the same results, under one topic in Kafka."""
    if d.entry.name not in ("OffsetCommit", "OffsetDelete", "ListOffsets") or d.field != "topics":
        return False

    def flat(topics):
        return sorted((str(t.get("name")), str(t.get("topic_id")), str(p)) for t in topics for p in t["partitions"])
    names = [str(t.get("name", t.get("topic_id"))) for t in d.entry.values["topics"]]
    return len(set(names)) < len(names) and flat(d.kafka) == flat(d.muster)


def resource_of_no_kind(d):
    if d.entry.name != "DescribeConfigs":
        return False
    kafka, muster = (sorted((r["type"], r["name"], r["error"]) for r in e.answer["results"]) for e in (d.kafka_entry, d.muster_entry))
    unknown = [r for r in muster if r[0] in (0, 99)]
    return bool(unknown) and all(r[2] == 42 for r in unknown) and kafka == [(kind, name, 42) for kind, name, _ in muster]


def state_topics(d):
    """Alike but for topics that Kafka keeps other state in."""
    return d.entry.name == "Metadata" and d.field == "topics" and \
        [t for t in d.kafka if t["name"] not in ("__transaction_state", "__share_group_state")] == d.muster


def transactions(d):
    return d.entry.name == "FindCoordinator" and d.entry.values["key_type"] == 1 and error_in(d.kafka_entry) == 0 and error_in(d.muster_entry) == 15


def error_in(entry):
    return entry.answer["coordinators"][0]["error"] if entry.version >= 4 else entry.answer["error"]


def unreadable_subscription(d):
    """A consumer has joined with a subscription that Kafka's reader throws at."""
    return any(e.name == "JoinGroup" and e.phase <= d.phase() and e.values.get("protocol_type", "consumer") == "consumer" and e.values["protocols"] and
               e.values["protocols"][0]["metadata"] in BROKEN_METADATA and (e.answered != e.phase or error_of(e) in (0, -1)) for e in d.kafka_entries)


def other_origin(d):
    """The member has joined again from a connection with another client id."""
    return d.entry.name == "DescribeGroups" and d.field.endswith(("client_id", "host"))


def ghost(d):
    """A connection with a parked JoinGroup was closed."""
    return "drop" in d.steps[:d.phase()] and d.entry.name == "JoinGroup"


def synced_for_its_replacement(d):
    """A static member was replaced in Stable before it had synced, and then time has passed."""
    joins = [e for e in d.kafka_entries if e.name == "JoinGroup" and e.version >= 5 and e.values["instance"] is not None and error_of(e) == 0]
    for join in joins:
        before = [e for e in joins if e.step < join.step and e.values["instance"] == join.values["instance"]]
        if not before or join.values["member"] != "" or join.answered != join.phase or "tick" not in d.steps[join.phase:d.phase() + 1]:
            continue
        old = before[-1].answer["member"], join.answer["generation"]
        if not any(e.name == "SyncGroup" and e.step < join.step and error_of(e) == 0 and (e.values["member"], e.values["generation"]) == old
                   for e in d.kafka_entries):
            return True
    return False


KNOWN = [
    Known("superseded join answered",
          "A member that sends JoinGroup while its earlier one is parked (on another connection) has the earlier one answered 27 at once; Kafka "
          "leaves it unanswered until the connection ends (B16).", superseded("JoinGroup"),
          sequence(join(0), join(0), join(0))),
    Known("superseded sync answered", "The same for SyncGroup.", superseded("SyncGroup"), sequence(formed(2), sync(1), sync(1))),
    Known("parked sync of a removed member answered",
          "A member that is removed while its SyncGroup is parked is told so (25); Kafka forgets that request (group-protocol 1.8).",
          lambda d: only_muster_answers(d, "SyncGroup", 25), sequence(formed(2), sync(1), leave(1))),
    Known("ghost joins dropped",
          "When the connection of a parked JoinGroup of versions 0 to 3 closes, nobody can ever learn that member's id: it is removed at once. In Kafka "
          "it counts as joined, and holds its partitions until its timer of 300 s (B01, B36).", ghost,
          sequence(stable(1), join(1, 3), drop(1), join(0), tick()), ends=True),
    Known("another leader chosen",
          "When the leader is gone, or did not join, any joined member may follow it; Kafka takes the first of a hash map of random ids.",
          arbitrary_leader,
          sequence(stable(5), leave(0), *(join(actor, 3) for actor in range(1, 5))), ends=True),
    Known("another protocol of a tied vote",
          "Among protocols with equally many votes the one that the leader prefers wins; Kafka takes the first of a hash map.", tied_vote,
          sequence(join(0, 3, offers=("range", "roundrobin")), join(1, 3, offers=("roundrobin", "range")), tick()),
          sequence(join(0, 3, offers=("roundrobin", "range")), join(1, 3, offers=("range", "roundrobin")), tick()), ends=True),
    Known("a tie at a replacement changes nothing",
          "A static member replaced in Stable by one that wishes otherwise may leave the protocol in use with as many votes as another: it stays in use. "
          "In Kafka the first of a hash map wins, and if that is the other the group rebalances.", tied_at_replacement,
          *(sequence(join(0, 3, offers=(one, other)), join(1, 5, offers=(one, other), instance="i0"), tick(), sync(0), sync(1, instance="i0"),
                     join(1, 5, offers=(other, one), instance="i0", member=""), tick())
            for one, other in (("roundrobin", "range"), ("range", "roundrobin"))), ends=True),
    Known("a restarted static member has its place in a full group",
          "Kafka refuses with 81 (group.max.size) the JoinGroup that brings an instance id of the group and no member id, although it adds no member.",
          static_in_full_group,
          sequence(join(0, 5, instance="i0"), *(join(actor, 3) for actor in range(1, 5)), tick(), join(0, 5, instance="i0", member="")), ends=True),
    Known("nobody waits for a member that was refused",
          "A JoinGroup with an id that the join phase waits for is refused with 81: the id is forgotten, and if all others are there the phase is "
          "complete. Kafka forgets the id as well, but looks at that only when something else happens.", refused_was_waited_for,
          sequence(stable(1), *(join(actor, 3) for actor in range(1, 5)), join(5), join(0), join(5)), ends=True),
    Known("an id that never joined leaves without a rebalance",
          "LeaveGroup of an id that was handed out with 79 and has not come back: nothing changes for the members. Kafka rebalances the group.",
          left_before_it_came, sequence(stable(1), join(1), leave(1), heartbeat(0)), ends=True),
    Known("a commit that stores nothing makes no group",
          "Kafka creates the group before it looks at the partitions, in memory only; after a restart it is gone.", commit_of_nothing,
          sequence(commit(0, metadata="m" * (METADATA_MAX + 1)), commit(0, generation=0)), ends=True),
    Known("a group that is empty is so at once",
          "When the last member leaves while an id is handed out, the group is Empty. Kafka gets there with a timer of 0 ms, which a "
          "JoinGroup may overtake: it is then answered without the initial delay. So may a commit without membership: it is refused (25) there.",
          timer_of_nothing,
          sequence(stable(1), join(1, 4), leave(0), join(2, 3), heartbeat(2, generation=2), tick()),
          sequence(stable(1), join(1, 4), leave(0), commit(0)), ends=True, rare=True),
    Known("session timeout of a replaced static member",
          "A static member that is replaced without a rebalance gets its new session timeout at once; in Kafka the timer still has the old length "
          "until the first heartbeat (group-protocol 0.3).", session_of_replacement,
          sequence(join(0, 5, SESSIONS[0], instance="i0"), tick(), sync(0, instance="i0"), join(0, 5, instance="i0", member=""), tick(2), heartbeat(0)),
          ends=True),
    Known("a new member keeps its time",
          "A member in its first join phase may stay parked for 300 s. In Kafka a heartbeat or commit of it (which no client sends) shortens that "
          "to its session timeout.", sign_of_life_while_new,
          sequence(stable(1), join(1), join(1, session=SESSIONS[0]), heartbeat(1, generation=1), tick(2)), ends=True),
    Known("a partition asked twice",
          "ListOffsets answers each time the same; Kafka answers once, with 42.", partition_asked_twice,
          sequence(plain(0, "ListOffsets", 5, topics=[{"name": "t", "partitions": [{"index": 1}, {"index": 1}]}]))),
    Known("a topic named twice",
          "A topic that a request names twice is answered twice, as it was asked; in Kafka's answer all its partitions stand under one.",
          topic_named_twice, sequence(("ask", 0, lambda c: ("OffsetCommit", 8, {"group": c.group, "generation": -1, "topics": [
              {"name": "t", "partitions": [{"index": i, "offset": 1}]} for i in (0, 7)]})))),
    Known("a resource of no kind",
          "DescribeConfigs refuses a resource of an unknown kind, and answers about the others; Kafka refuses all.", resource_of_no_kind,
          sequence(plain(0, "DescribeConfigs", 4, resources=[{"type": 4, "name": "1000", "keys": ["group.max.size"]}, {"type": 99, "name": "x", "keys": None}]))),
    Known("no transactions", "FindCoordinator for a transaction finds nothing (15).", transactions,
          sequence(plain(0, "FindCoordinator", 4, keys=["x"], key_type=1), plain(0, "FindCoordinator", 3, key="x", key_type=1))),
    Known("no topic of transactions", "In Kafka looking for a transaction's coordinator has made a topic, which Metadata of all topics then holds.",
          state_topics, sequence(plain(0, "FindCoordinator", 4, keys=["x"], key_type=1), tick(), plain(0, "Metadata", 1, topics=None))),
    Known("a subscription that cannot be read stops nothing",
          "A member's metadata with a negative count or length, or that end within the user data, make Kafka's join phase throw: nobody is "
          "ever answered. We answer, and know nothing of the group's topics.", unreadable_subscription,
          *(sequence(join(0, 3, metadata=metadata), tick()) for metadata in BROKEN_METADATA), ends=True),
    Known("client id and host of the latest join",
          "DescribeGroups shows where a member joined from last; Kafka shows where it joined from first, which misleads after a restart.",
          other_origin, sequence(stable(1), ("ask", 1, lambda c: ("JoinGroup", 4, {
              "group": c.group, "session_ms": 60000, "member": c.actors[0].member, "protocols": [{"name": "range", "metadata": b""}]})),
              ("ask", 0, lambda c: ("DescribeGroups", 4, {"groups": [c.group]})))),
    Known("a replaced static member syncs under its new id",
          "A static member that is replaced in Stable before it has sent SyncGroup is waited for under its new id. In Kafka the sync timer goes on "
          "waiting for the old id, which nobody has any more, and ends the generation for it (group-protocol 1.6).", synced_for_its_replacement,
          sequence(join(0, 3, rebalance=REBALANCES[0]), join(1, 5, rebalance=REBALANCES[0], instance="i0"), tick(), sync(0),
                   join(1, 5, rebalance=REBALANCES[0], instance="i0", member=""), sync(1, instance="i0"), tick(2), heartbeat(0)),
          ends=True),
    Known("other words of an error", "The text of an error is our own.", lambda d: d.field.endswith("message") and isinstance(d.muster, str),
          sequence(plain(0, "FindCoordinator", 3, key="group", key_type=9))),
]
