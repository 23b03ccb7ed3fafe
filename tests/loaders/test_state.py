from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import SpecError
from headrace.loaders.state import StreamState

STATE = StreamState("docs/python", 3, 1_003, 7, True, 256, 96, False, 32)


def test_round_trip_through_json() -> None:
    text = json.dumps(STATE.to_dict())
    assert len(text) < 1_024
    assert StreamState.from_dict(json.loads(text)) == STATE


def test_what_is_written_is_frozen() -> None:
    """Saved checkpoints hold this; another content needs another format number and a reader for both."""
    assert STATE.to_dict() == {
        "format": 1,
        "dataset": "docs/python",
        "version": 3,
        "num_rows": 1_003,
        "seed": 7,
        "shuffle": True,
        "block_rows": 256,
        "position": 96,
        "finished": False,
        "batch_size": 32,
    }


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"position": "5"}, r"position: got '5'; must be int"),
        ({"position": -1}, r"position: got -1; counts samples from 0"),
        ({"position": True}, r"position: got True; must be int"),
        ({"shuffle": 1}, r"shuffle: got 1; must be bool"),
        ({"format": 2}, r"format 2; this release reads format 1"),
        ({"epoch": 1}, r"an unknown epoch; has exactly format, dataset"),
    ],
)
def test_refuses_what_it_did_not_write(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        StreamState.from_dict(STATE.to_dict() | changes)


def test_refuses_a_state_with_a_field_missing() -> None:
    state = STATE.to_dict()
    del state["seed"]
    with pytest.raises(SpecError, match="no seed; has exactly"):
        StreamState.from_dict(state)


def test_refuses_what_is_no_dict() -> None:
    with pytest.raises(SpecError, match="must be a dict"):
        StreamState.from_dict([1])  # type: ignore[arg-type]


def test_same_stream_whatever_does_not_order_it() -> None:
    STATE.check_same_stream(replace(STATE, position=0, finished=True, batch_size=1))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dataset": "docs/rust"}, "dataset 'docs/python' (here 'docs/rust')"),
        ({"version": 4}, "version 3 (here 4)"),
        ({"num_rows": 9}, "num_rows 1003 (here 9)"),
        ({"seed": 0}, "seed 7 (here 0)"),
        ({"shuffle": False}, "shuffle True (here False)"),
        ({"block_rows": 64}, "block_rows 256 (here 64)"),
        ({"version": 4, "seed": 0}, "version 3 (here 4), seed 7 (here 0)"),
    ],
)
def test_names_every_field_that_differs(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError) as caught:
        STATE.check_same_stream(replace(STATE, **changes))
    assert caught.value.got == told
    assert "docs/python@3" in caught.value.fix
