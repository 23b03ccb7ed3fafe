from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.read._identity import Identity, Seen, text_views


def _ids(path: str, keys: Sequence[str | None] | None, offsets: list[int], texts: list[str]) -> list[str]:
    identity, array = Identity(path), pa.array(texts, pa.large_string())
    if keys is None:
        return list(identity.of_coordinates(np.array(offsets), array).to_pylist())
    return list(identity.of_keys(pa.array(keys, pa.string()), np.array(offsets), array).to_pylist())


def test_a_coordinate_id_depends_on_path_offset_and_text() -> None:
    (base,) = _ids("a", None, [1], ["x"])
    assert len(base) == 32
    assert int(base, 16) >= 0
    others = [_ids("b", None, [1], ["x"]), _ids("a", None, [2], ["x"]), _ids("a", None, [1], ["y"])]
    assert len({base, *(other[0] for other in others)}) == 4


def test_a_coordinate_id_never_changes() -> None:
    """Datasets that are published already hold them."""
    assert _ids("docs/a.jsonl", None, [42], ["Weir"]) == ["534ec276bb6233a9a1c6428d32fa5985"]


def test_own_keys_stay_and_missing_ones_are_replaced() -> None:
    ids = _ids("a", ["k", None, "", "é"], [0, 1, 2, 3], list("abcd"))
    assert ids == ["k", *_ids("a", None, [1, 2], ["b", "c"]), "é"]


def test_a_repeated_key_gets_its_texts_digits_and_equal_rows_their_places() -> None:
    ids = _ids("a", ["k", "k", "k", "k"], [0, 1, 2, 3], ["x", "y", "x", "y"])
    assert ids[0] == "k"
    assert all(len(other) == 10 and other.startswith("k~") for other in ids[1:])
    assert len(set(ids)) == 4
    assert _ids("other", ["k", "k"], [7, 8], ["x", "y"])[1] == ids[1], "of the text alone"
    assert _ids("other", ["k", "k"], [7, 8], ["x", "x"])[1] != ids[2], "of text and place"


def test_repeats_are_seen_over_batches() -> None:
    identity = Identity("a")
    first = identity.of_keys(pa.array(["k", "l"]), np.array([0, 1]), pa.array(["x", "y"], pa.large_string()))
    second = identity.of_keys(pa.array(["k", "k"]), np.array([2, 3]), pa.array(["x", "z"], pa.large_string()))
    assert first.to_pylist() == ["k", "l"]
    assert second.to_pylist() == [
        _ids("a", ["k", "k"], [0, 2], ["x", "x"])[1],
        _ids("a", ["k", "k"], [0, 1], ["", "z"])[1],
    ]


def test_a_key_that_looks_like_a_suffixed_one_is_not_taken_twice() -> None:
    taken = _ids("a", ["k", "k"], [0, 1], ["x", "y"])[1]
    for keys in ([taken, "k", "k"], ["k", "k", taken], ["k", taken, "k"]):
        ids = _ids("a", keys, [0, 1, 2], ["x", "y", "y"])
        assert len(set(ids)) == 3


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "", "a", "b", "c"]), st.sampled_from(["", "x", "y"])), min_size=1, max_size=30
    ),
    st.integers(1, 7),
)
def test_ids_are_unique_in_a_part_however_it_is_batched(rows: list[tuple[str | None, str]], size: int) -> None:
    identity, ids = Identity("a"), []
    for at in range(0, len(rows), size):
        batch = rows[at : at + size]
        keys = pa.array([key for key, _ in batch], pa.string())
        texts = pa.array([text for _, text in batch], pa.large_string())
        ids += identity.of_keys(keys, np.arange(at, at + len(batch)), texts).to_pylist()
    assert len(set(ids)) == len(rows)
    assert ids == _ids("a", [key for key, _ in rows], list(range(len(rows))), [text for _, text in rows])


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=8), st.lists(st.integers(0, 60)))
def test_seen_is_a_set(added: list[list[int]], asked: list[int]) -> None:
    seen = Seen()
    for hashes in added:
        seen.add(np.array(hashes, np.uint64))
    known = {number for hashes in added for number in hashes}
    assert seen.contains(np.array(asked, np.uint64)).tolist() == [number in known for number in asked]


def test_seen_keeps_few_runs() -> None:
    seen = Seen()
    for number in range(1000):
        seen.add(np.array([number], np.uint64))
    assert len(seen._runs) <= 10


def test_views_follow_slices_and_absence() -> None:
    array = pa.array(["zero", "one", "", "drei\0"], pa.large_string()).slice(1)
    assert [bytes(view) for view in text_views(array, 3)] == [b"one", b"", b"drei\0"]
    assert text_views(None, 2) == [b"", b""]
    assert text_views(pa.array([], pa.large_string()), 0) == []
