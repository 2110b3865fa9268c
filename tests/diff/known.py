"""Where Muster means to differ from Kafka, each with its reason. Nothing else may differ.

explains(difference) is called with the first difference of a pair of transcripts. `ends`: what comes after it in the same sequence is not
compared, because the groups have taken different ways. `shown_by` is a fixed sequence that shows the difference: the test fails when an entry
is no longer needed.
"""


class Known:
    def __init__(self, name, reason, explains, ends=False, shown_by=None):
        self.name, self.reason, self.explains, self.ends, self.shown_by = name, reason, explains, ends, shown_by


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


KNOWN = [
    Known("superseded join answered",
          "A member that sends JoinGroup while its earlier one is parked (on another connection) has the earlier one answered 27 at once; Kafka "
          "leaves it unanswered until the connection ends (B16).", superseded("JoinGroup")),
    Known("superseded sync answered", "The same for SyncGroup.", superseded("SyncGroup")),
    Known("parked sync of a removed member answered",
          "A member that is removed while its SyncGroup is parked is told so (25); Kafka forgets that request (group-protocol 1.8).",
          lambda d: only_muster_answers(d, "SyncGroup", 25)),
]
