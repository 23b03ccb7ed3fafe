"""Steps -> stages -> segments.

A *stage* is a run of neighbouring steps that need the same resources; it is one function on a worker.  A *segment* is
the stages between two durable hand-offs: it starts at the reader or after a global step, and ends at a global step
(whose keys it writes) or at the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from headrace.operators.resolve import operator_name
from headrace.operators.shapes import Global, Map, Operator, Resources
from headrace.pipelines.digest import hash_text, step_digest
from headrace.pipelines.spec import Pipeline


@dataclass(frozen=True)
class Step:
    """One entry of the pipeline file."""

    index: int
    op: str
    digest: str
    operator: Operator

    @property
    def params(self) -> dict[str, Any]:
        """Plain parameters."""
        return self.operator.model_dump(mode="json")


@dataclass(frozen=True)
class Stage:
    """Neighbouring map steps with the same resources."""

    steps: tuple[Step, ...]
    resources: Resources


@dataclass(frozen=True)
class Segment:
    """Stages between two durable hand-offs.

    `key` names the segment's work: it digests everything that decides its content, so that runs which share a prefix
    share its finished units.
    """

    index: int
    source: Step  # the reader, or the global step whose selection is applied first
    stages: tuple[Stage, ...]
    barrier: Step | None  # the global step whose keys are written at the end; None: the output
    key: str

    @property
    def maps(self) -> tuple[Step, ...]:
        """The map steps of all stages, in order."""
        return tuple(step for stage in self.stages for step in stage.steps)


def steps_of(pipeline: Pipeline) -> tuple[Step, ...]:
    """The pipeline's steps with their digests."""
    return tuple(
        Step(index, operator_name(type(operator)), step_digest(operator), operator)
        for index, operator in enumerate(pipeline.steps)
    )


def segments_of(steps: tuple[Step, ...], input_digest: str) -> tuple[Segment, ...]:
    """Cut the steps at global steps; each segment's key continues the key of the one before it."""
    segments: list[Segment] = []
    source, maps, key = steps[0], list[Step](), hash_text("input", input_digest)
    for step in (*steps[1:], None):
        if step is not None and isinstance(step.operator, Map):
            maps.append(step)
            continue
        assert step is None or isinstance(step.operator, Global)
        members = [source, *maps] + ([step] if step else [])
        key = hash_text(key, *(member.digest for member in members))
        segments.append(Segment(len(segments), source, _stages(maps), step, key))
        if step is not None:
            source, maps = step, []
    return tuple(segments)


def _stages(maps: list[Step]) -> tuple[Stage, ...]:
    grouped = groupby(maps, key=lambda step: step.operator.resources)
    stages = tuple(Stage(tuple(steps), resources) for resources, steps in grouped)
    return stages or (Stage((), Resources()),)
