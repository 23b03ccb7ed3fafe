"""Changes of code that a stopped run went on with, because somebody accepted them.

1. What such a run makes is a mixture.  Its units are its own from the first changed segment on: other runs with the
   code of the plan share that segment's key, and must neither read these units nor take the run for an answer.
2. Units that were finished before are taken over as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headrace.pipelines.plan import RunPlan
from headrace.pipelines.records import finished_units, record_key
from headrace.pipelines.segments import Segment, Step
from headrace.pipelines.selection import selection_key
from headrace.storage.objects import ObjectStore


def accept_changes(objects: ObjectStore, plan: RunPlan, changed: Sequence[Step]) -> None:
    """Note which steps go on with other code than planned."""
    for step in changed:
        body = {"step": step.index, "op": step.op, "before": plan.step_digests[step.index], "after": step.digest}
        objects.put_once(f"runs/{plan.run}/accepted/{step.index}-{step.digest}.json", json.dumps(body).encode())


def accepted_changes(objects: ObjectStore, run: str) -> list[dict[str, Any]]:
    """The changes of code that a run accepted."""
    return [json.loads(objects.get(info.key)) for info in objects.list(f"runs/{run}/accepted/")]


def first_own_segment(segments: Sequence[Segment], changes: Sequence[dict[str, Any]]) -> int:
    """Number of the first segment that has a changed step."""
    first = min(change["step"] for change in changes)
    return next(s.index for s in segments if s.barrier is None or first <= s.barrier.index)


def take_over(objects: ObjectStore, shared: str, own: str) -> None:
    """Make what others finished of a segment this run's own too; what the run has already stays.  Scratch is shared."""
    for unit, key in finished_units(objects, shared).items():
        objects.put_once(record_key(own, unit), objects.get(key))
    if (selection := objects.get_or_none(selection_key(shared))) is not None:
        objects.put_once(selection_key(own), selection)
