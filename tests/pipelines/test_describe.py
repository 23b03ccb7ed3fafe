"""A unit as text."""

from __future__ import annotations

import json

from headrace.operators.shapes import InputFile, InputPart
from headrace.pipelines.describe import describe_scratch, describe_unit, unit_of
from headrace.pipelines.plan import Unit


def test_a_unit_survives_its_description() -> None:
    one, other = InputFile("a/ä.txt", "/in", 10, "m"), InputFile("b", "s3://in", 3, "etag")
    unit = Unit(7, (InputPart(one, 4, 10, 6), InputPart(other, 0, 3, 3)))
    assert unit_of(describe_unit(unit)) == unit


def test_scratch_is_described_by_its_record() -> None:
    assert json.loads(describe_scratch(3, "work/k/units/0000003.0.json")) == {
        "unit": 3,
        "record": "work/k/units/0000003.0.json",
    }
