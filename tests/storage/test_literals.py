from __future__ import annotations

import lance
import pyarrow as pa
import pytest

from headrace.storage.lake import Lake
from headrace.storage.literals import text_literal

QUOTES = ["it's", '"double"', "'", "''", "a' OR '1'='1", "\\'"]
ODD = [*QUOTES, "back\\slash", "%_", "", "ä\u2028 \t\n", "--", "`x`", "$1 :x ?"]


@pytest.mark.parametrize("id", ODD)
def test_a_filter_finds_exactly_this_text(id: str, lake: Lake) -> None:
    dataset = lance.write_dataset(pa.table({"id": [*ODD, "plain"]}), lake.dataset_uri("odd"))
    assert dataset.to_table(filter=f"id = {text_literal(id)}")["id"].to_pylist() == [id]
