from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.errors import SpecError, StorageUnavailable
from headrace.loaders.order import Piece
from headrace.loaders.source import Source
from headrace.storage.lake import Lake
from headrace.storage.open import open_version
from tests.loaders.conftest import NAME, NUM_ROWS, rows, write


def source(lake: Lake, version: int, columns: list[str] | None = None) -> Source:
    return Source(open_version(lake, f"{NAME}@{version}"), f"{NAME}@{version}", columns)


def numbers_of(source: Source, pieces: list[Piece]) -> list[list[int]]:
    group = source.read(pieces)
    stored = group.rows.column("number").to_numpy()
    return [stored[places].tolist() for places in group.places]


def test_rows_by_number_over_fragment_borders(docs_lake: Lake) -> None:
    pieces = [Piece(0, 0, 100, 900, None), Piece(0, 0, 20, 140, None), Piece(0, 0, 1, 1_002, None)]
    got = numbers_of(source(docs_lake, 1), pieces)
    assert got == [list(range(900, 1_000)), list(range(140, 160)), [1_002]]


def test_rows_inside_a_piece_come_in_the_order_of_its_key(docs_lake: Lake) -> None:
    piece = Piece(0, 0, 50, 300, 7)
    assert numbers_of(source(docs_lake, 1), [piece]) == [(300 + piece.offsets()).tolist()]


def test_deleted_rows_have_no_number(docs_lake: Lake) -> None:
    live = [number for number in range(NUM_ROWS) if number % 10 != 3]
    deleted = source(docs_lake, 2)
    assert deleted.num_rows == len(live)
    assert numbers_of(deleted, [Piece(0, 0, len(live), 0, None)]) == [live]
    assert numbers_of(deleted, [Piece(0, 0, 40, 500, None)]) == [live[500:540]]


def test_a_fragment_without_live_rows_is_passed_over(lake: Lake) -> None:
    dataset = write(lake, NAME, rows(0, 300), rows_a_fragment=100)
    dataset.delete("number >= 100 and number < 199")
    assert numbers_of(source(lake, 2), [Piece(0, 0, 201, 0, None)]) == [[*range(100), *range(199, 300)]]
    dataset.delete("number = 199")
    assert numbers_of(source(lake, 3), [Piece(0, 0, 200, 0, None)]) == [[*range(100), *range(200, 300)]]


def test_only_the_columns_asked_for_in_their_order(docs_lake: Lake) -> None:
    some = source(docs_lake, 1, ["number", "id"])
    group = some.read([Piece(0, 0, 3, 10, None)])
    assert group.rows.schema.names == ["number", "id"] == some.schema.names
    assert group.rows.column("id").to_pylist() == ["row-10", "row-11", "row-12"]


def test_reads_grow_once_the_size_of_a_row_is_known(docs_lake: Lake) -> None:
    some = source(docs_lake, 1)
    assert some.rows_a_read() == 256
    some.read([Piece(0, 0, 100, 0, None)])
    assert some.rows_a_read() == 2_048
    some.row_bytes = 2.0**20
    assert some.rows_a_read() == 8
    some.row_bytes = 2.0**30
    assert some.rows_a_read() == 1


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["txt"], r"columns: got 'txt'; docs/python@1 has id, text, number; did you mean 'text'\?"),
        (["id", "id"], "'id' twice"),
        ([], "must be a list of at least one column"),
        ("text", "must be a list of at least one column"),
    ],
)
def test_refuses_wrong_columns(docs_lake: Lake, columns: Any, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        source(docs_lake, 1, columns)


def test_a_lost_data_file_is_told_with_version_and_fragment(lake: Lake) -> None:
    dataset = write(lake, NAME, rows(0, 300), rows_a_fragment=100)
    broken = source(lake, 1)
    path = dataset.get_fragments()[1].data_files()[0].path
    with open(f"{lake.dataset_uri(NAME)}/data/{path}", "rb+") as file:
        file.truncate(10)
    assert numbers_of(broken, [Piece(0, 0, 5, 0, None)]) == [[0, 1, 2, 3, 4]]
    with pytest.raises(
        StorageUnavailable, match=r"docs/python@1, fragment 1: got .*keep the version by a tag"
    ) as caught:
        broken.read([Piece(0, 0, 5, 100, None)])
    assert caught.value.__cause__ is not None
    assert "/home/" not in str(caught.value)


def test_row_numbers_are_whole(docs_lake: Lake) -> None:
    group = source(docs_lake, 1).read([Piece(0, 0, 5, 0, 3)])
    assert group.places[0].dtype == np.int64
