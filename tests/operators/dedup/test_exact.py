from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from headrace.operators.dedup.exact import Exact
from headrace.operators.shapes import SELECTION_SCHEMA, Selection
from tests.operators.layouts import EDGE_TEXTS, fuzz_texts, layouts, text_table


def select(table: pa.Table, **fields: Any) -> Selection:
    step = Exact(**fields)
    keys = step.build()(table)
    assert keys.schema == pa.schema([("key", pa.binary(16))])
    return step.select(keys.append_column("id", table["id"]))


def reference(ids: list[str], texts: list[str | None], loose: bool) -> dict[str, str]:
    """Dropped id -> id of the survivor."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, text in zip(ids, texts, strict=True):
        if text is not None:
            groups[" ".join(text.lower().split()) if loose else text].append(name)
    return {name: min(group) for group in groups.values() for name in group if name != min(group)}


def told(selection: Selection, ids: list[str]) -> dict[str, str]:
    selection.dropped.validate(full=True)
    assert selection.dropped.schema == SELECTION_SCHEMA
    rows = selection.dropped.to_pylist()
    assert [row["row"] for row in rows] == sorted(row["row"] for row in rows)
    assert {row["rule"] for row in rows} <= {"duplicate"}
    return {ids[row["row"]]: row["partner"] for row in rows}


@pytest.mark.parametrize("normalize", ["none", "loose"])
def test_equals_the_reference_whatever_the_order(normalize: str) -> None:
    choose = random.Random(7)
    # Without letters whose lower case Python takes from their neighbours, as for the last sigma of a word.
    pool: list[str | None] = [
        *EDGE_TEXTS,
        *fuzz_texts(200, seed=8, longest=4),
        "Straße",
        "STRASSE",
        "The  End",
        "the end ",
    ]
    texts = choose.choices(pool, k=3000)
    ids = [f"{choose.randrange(10**6):x}-{i}" for i in range(len(texts))]
    want = reference(ids, texts, normalize == "loose")
    assert len(want) > 1000
    for _ in range(3):
        table = pa.table({"id": ids, "text": pa.array(texts, pa.large_string())})
        selection = select(table, normalize=normalize)
        assert told(selection, ids) == want
        assert selection.counts["dropped"] == len(want)
        assert selection.counts["rows"] == len(ids)
        assert selection.counts["groups"] == len(set(want.values()))
        both = list(zip(ids, texts, strict=True))
        choose.shuffle(both)
        ids, texts = [name for name, _ in both], [text for _, text in both]


def test_keys_are_the_hashes_of_the_texts() -> None:
    for name, table in layouts(EDGE_TEXTS):
        keys = Exact().build()(table)["key"].to_pylist()
        want = [text if text is None else xxhash.xxh3_128_digest(text.encode()) for text in EDGE_TEXTS]
        assert keys == want, name


def test_nulls_are_duplicates_of_nothing() -> None:
    table = text_table([None, "", None, ""])
    assert told(select(table), table["id"].to_pylist()) == {"row-3": "row-1"}


def test_loose_ignores_case_and_white_space_only() -> None:
    texts = ["A  rose\n", "a\u3000rose", "a rose!", "a ro se", "Ä Rose", "ä\trose "]
    table = text_table(texts)
    assert told(select(table, normalize="loose"), table["id"].to_pylist()) == {"row-1": "row-0", "row-5": "row-4"}
    assert select(table).dropped.num_rows == 0


@pytest.mark.parametrize("chunks", [1, 3])
def test_keys_that_share_a_half_are_told_apart(chunks: int) -> None:
    """Selection sorts one half of the keys; equal first halves, or second ones, are not enough."""
    a, b = b"\x01" * 8, b"\x02" * 8
    keys = [a + a, a + b, b + a, a + b, b + b, a + a, None, None]
    ids = ["h", "g", "f", "e", "d", "c", "b", "a"]
    key = pa.array(keys, pa.binary(16))
    pieces = [key.slice(i, -(-len(keys) // chunks)) for i in range(0, len(keys), -(-len(keys) // chunks))]
    table = pa.table({"key": pa.chunked_array(pieces), "id": pa.chunked_array([ids])})
    assert told(Exact().select(table), ids) == {"h": "c", "g": "e"}


def test_no_rows_and_no_duplicates() -> None:
    for texts in ([], ["a"], ["a", "b"]):
        selection = select(text_table(texts))
        assert selection.dropped.schema == SELECTION_SCHEMA
        assert selection.counts == {"rows": len(texts), "groups": 0, "dropped": 0}


def test_ids_may_be_large_strings() -> None:
    table = text_table(["a", "a"])
    table = table.set_column(0, "id", table["id"].cast(pa.large_string()))
    assert told(select(table), ["row-0", "row-1"]) == {"row-1": "row-0"}


def test_a_million_rows_select_at_once() -> None:
    numbers = np.random.default_rng(9).integers(0, 700_000, 1_000_000)
    keys = np.repeat(numbers[:, None], 2, axis=1).astype(np.uint64)
    ids = pa.array(np.arange(10**7, 10**7 + len(keys))).cast(pa.string())
    table = pa.table({"key": pa.Array.from_buffers(pa.binary(16), len(keys), [None, pa.py_buffer(keys)]), "id": ids})
    assert Exact().select(table).dropped.num_rows == len(keys) - len(np.unique(numbers))
