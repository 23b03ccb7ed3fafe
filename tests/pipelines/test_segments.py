"""Steps -> stages -> segments, and the keys by which runs share work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.shapes import Operator
from headrace.pipelines.segments import Segment, segments_of, steps_of
from headrace.pipelines.spec import Pipeline
from tests.pipelines.plain import FirstOfText, Lines, Shout, ShoutOnGpu, Without

READER = Lines(root="in")
STEPS: list[Operator] = [Shout(), Without(word="a"), FirstOfText(), ShoutOnGpu()]


def cut(*operators: Operator, digest: str = "input") -> tuple[Segment, ...]:
    return segments_of(steps_of(Pipeline(pipeline="p", output="o", steps=(READER, *operators))), digest)


def shape(segments: tuple[Segment, ...]) -> list[tuple[int, list[list[int]], int | None]]:
    """Index of source, of the steps of each stage, and of the barrier, for each segment."""
    return [
        (
            segment.source.index,
            [[step.index for step in stage.steps] for stage in segment.stages],
            None if segment.barrier is None else segment.barrier.index,
        )
        for segment in segments
    ]


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ([], [(0, [[]], None)]),
        ([Shout(), Without(word="a")], [(0, [[1, 2]], None)]),
        ([Shout(), ShoutOnGpu(), ShoutOnGpu(), Shout()], [(0, [[1], [2, 3], [4]], None)]),
        ([FirstOfText()], [(0, [[]], 1), (1, [[]], None)]),
        ([Shout(), FirstOfText(), Shout(), FirstOfText()], [(0, [[1]], 2), (2, [[3]], 4), (4, [[]], None)]),
    ],
)
def test_steps_are_cut_at_global_steps_and_fused_by_resources(
    operators: list[Operator], expected: list[tuple[int, list[list[int]], int | None]]
) -> None:
    assert shape(cut(*operators)) == expected


@given(st.lists(st.sampled_from(STEPS), max_size=7))
def test_every_step_is_in_one_place(operators: list[Operator]) -> None:
    segments = cut(*operators)
    places = [0]
    for number, segment in enumerate(segments):
        assert segment.index == number
        assert segment.source.index == places[-1]
        places += [step.index for step in segment.maps]
        if segment.barrier is not None:
            places.append(segment.barrier.index)
        for stage in segment.stages:
            assert all(step.operator.resources == stage.resources for step in stage.steps)
    assert places == list(range(len(operators) + 1))
    assert [segment.barrier is None for segment in segments] == [False] * (len(segments) - 1) + [True]


def test_runs_with_one_prefix_share_its_key() -> None:
    one = cut(Shout(), FirstOfText(), Shout())
    other = cut(Shout(), FirstOfText(), Without(word="a"))
    assert one[0].key == other[0].key
    assert one[1].key != other[1].key


@pytest.mark.parametrize(
    "operators",
    [
        [Shout(mark="?"), FirstOfText(), Shout()],
        [FirstOfText(), Shout(), Shout()],
        [Shout(), FirstOfText(min_length=1), Shout()],
        [Shout(), Shout(), FirstOfText(), Shout()],
    ],
)
def test_a_change_before_the_barrier_changes_all_keys_after_it(operators: list[Operator]) -> None:
    before, after = cut(Shout(), FirstOfText(), Shout()), cut(*operators)
    assert not {segment.key for segment in before} & {segment.key for segment in after}


def test_the_input_changes_all_keys() -> None:
    before, after = cut(Shout(), FirstOfText()), cut(Shout(), FirstOfText(), digest="other")
    assert not {segment.key for segment in before} & {segment.key for segment in after}


def test_a_step_shows_its_parameters() -> None:
    (segment,) = cut(Without(word="a"))
    assert [(step.op, step.params) for step in segment.maps] == [("tests.pipelines.plain:Without", {"word": "a"})]
