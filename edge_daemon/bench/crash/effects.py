"""What a history shows of what befell it, by name: the ends of its keys, and what happened to the rig. Pure.

By these a fault proves that it had an effect, and not only that it was called.
"""

from collections import Counter

from edge_daemon.bench.crash.notes import Name, Notebook, Schedule, Told

LATE_NS = 40_000_000
"""From the dispatch to the stage `accepted`; a hundredth of that is usual."""

Signs = Counter[str]


def signs_of(notebook: Notebook, schedule: Schedule) -> Signs:
    """How often each: the code of a receipt that failed, `refused` and a code, and what else is named below.

    What was only found at the end, when everything had healed, shows no effect but `not known`.
    """
    signs = Counter(schedule.signs)
    signs.update(_ends(notebook).values())
    signs.update(_answers(notebook))
    signs["accepted late"] = _late(notebook)
    signs["pushed again"] = _pushed_again(notebook)
    signs["daemon killed"] = len(schedule.deaths_ns)
    signs["daemon started"] = sum(
        what.startswith("daemon") and what.endswith("starts") for _, what in schedule.life
    )
    signs.update(f"board {about.what}" for about in schedule.boards)
    return +signs


def _ends(notebook: Notebook) -> dict[Name, str]:
    """Of each key, as it was first told."""
    ends: dict[Name, str] = {}
    for entry in notebook.entries:
        if isinstance(entry, Told) and entry.receipt is not None and entry.receipt["status"] != "pending":
            ends.setdefault(entry.name, (entry.receipt.get("error") or {}).get("code", "committed"))
    return ends


def _answers(notebook: Notebook) -> list[str]:
    said = []
    for told in notebook.entries:
        if not isinstance(told, Told):
            continue
        if told.by == "lookup" and not told.known:
            said.append("not known")
        if not told.final_round and told.error is not None:
            said.append(f"refused {told.error['code']}")
        if not told.final_round and told.deduplicated:
            said.append("deduplicated")
    return said


def _late(notebook: Notebook) -> int:
    sent: dict[Name, int] = {}
    late: set[Name] = set()
    for entry in notebook.entries:
        if isinstance(entry, Told):
            continue
        first_ns = sent.setdefault(entry.name, entry.at_ns)
        if getattr(entry, "stage", "") == "accepted" and entry.at_ns - first_ns > LATE_NS:
            late.add(entry.name)
    return len(late)


def _pushed_again(notebook: Notebook) -> int:
    pushed = Counter(
        entry.name for entry in notebook.entries if isinstance(entry, Told) and entry.by == "push"
    )
    return sum(count > 1 for count in pushed.values())
