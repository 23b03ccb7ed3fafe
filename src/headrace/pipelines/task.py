"""What a worker needs to know about a segment: plain values that travel as JSON, and the functions built from them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from headrace.errors import SpecError
from headrace.operators.resolve import operator_class
from headrace.operators.shapes import Global, Map, MapFunction, Operator, Reader
from headrace.pipelines.digest import step_digest
from headrace.pipelines.segments import Segment, Step


@dataclass(frozen=True)
class StepTask:
    """One step as plain values."""

    index: int
    op: str
    digest: str
    params: dict[str, Any]

    @classmethod
    def of(cls, step: Step) -> StepTask:
        """From a step."""
        return cls(step.index, step.op, step.digest, step.params)

    def operator(self) -> Operator:
        """The operator again."""
        return operator_class(self.op).model_validate(self.params)


@dataclass(frozen=True)
class SegmentTask:
    """One segment as plain values; the same for every unit and both executors."""

    lake: str
    run: str
    segment: int
    work: str  # object prefix of this segment's unit records and attempts
    previous: str  # object prefix of the segment before it; "" for the first
    source: StepTask
    stages: tuple[tuple[StepTask, ...], ...]
    barrier: StepTask | None
    input_schema: str  # schema_to_text of what the source emits
    output_schema: str  # schema_to_text of what the last stage emits
    output: str  # dataset; the last segment stages to it
    rejects: str  # policy
    search_path: tuple[str, ...]

    @property
    def is_last(self) -> bool:
        """True where the segment stages to the output."""
        return self.barrier is None

    def to_json(self) -> str:
        """As JSON; also what a worker caches built functions by."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> SegmentTask:
        """The inverse of `to_json`."""
        plain = json.loads(text)
        plain["source"] = StepTask(**plain["source"])
        plain["stages"] = tuple(tuple(StepTask(**step) for step in stage) for stage in plain["stages"])
        plain["barrier"] = StepTask(**plain["barrier"]) if plain["barrier"] else None
        plain["search_path"] = tuple(plain["search_path"])
        return cls(**plain)

    @classmethod
    def of(cls, segment: Segment, **places: Any) -> SegmentTask:
        """From a segment and the places that the run gives it."""
        return cls(
            segment=segment.index,
            source=StepTask.of(segment.source),
            stages=tuple(tuple(StepTask.of(step) for step in stage.steps) for stage in segment.stages),
            barrier=StepTask.of(segment.barrier) if segment.barrier else None,
            **places,
        )


@dataclass(frozen=True)
class BuiltStep:
    """A map step with its function."""

    task: StepTask
    function: MapFunction

    @property
    def place(self) -> str:
        """For the place of an error."""
        return f"steps[{self.task.index}] ({self.task.op})"


def extend_search_path(folders: tuple[str, ...]) -> None:
    """Make outside operators importable here as they were where the run was started."""
    for folder in reversed(folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def check_code(task: SegmentTask) -> None:
    """Raise SpecError where this process finds other code for a step than the driver planned with."""
    steps = (
        task.source,
        *(step for stage in task.stages for step in stage),
        *((task.barrier,) if task.barrier else ()),
    )
    for step in steps:
        if step_digest(step.operator()) != step.digest:
            rule = "workers must find the code that the run was planned with"
            fix = "it was edited while the run was going, or this machine has another copy; then run again"
            raise SpecError(f"steps[{step.index}] ({step.op})", "other code than planned", rule, fix)


def build_steps(steps: tuple[StepTask, ...]) -> tuple[BuiltStep, ...]:
    """Build map functions; models are loaded here."""
    built = []
    for step in steps:
        operator = step.operator()
        assert isinstance(operator, Map)
        built.append(BuiltStep(step, operator.build()))
    return tuple(built)


def build_reader(step: StepTask) -> Callable[..., Any]:
    """Build the read function."""
    operator = step.operator()
    assert isinstance(operator, Reader)
    return operator.build()


def build_keys(step: StepTask) -> MapFunction:
    """Build the key function of a global step."""
    operator = step.operator()
    assert isinstance(operator, Global)
    return operator.build()
