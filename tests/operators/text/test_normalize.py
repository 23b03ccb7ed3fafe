from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.operators._kernels.normalize_table import BLANKS, LINE_ENDS, controls, nfc_candidates
from headrace.operators.text.normalize import Normalize
from tests.operators.layouts import EDGE_TEXTS, corpus_texts, fuzz_texts, layouts, text_table

SWITCHES = ("controls", "line_ends", "blanks", "trim_lines", "limit_newlines", "trim_text", "nfc")
COMBINATIONS = [dict(zip(SWITCHES, on, strict=True)) for on in product((True, False), repeat=len(SWITCHES))]


def reference(text: str, switches: dict[str, bool]) -> str:
    """One step after the other, each with Python's own tables."""
    line_ends = "\n\r\x85\u2028\u2029"
    if switches["line_ends"]:
        text = re.sub(f"\r\n|[{line_ends}]", "\n", text)
    if switches["controls"]:
        keep = "\t\x0b\x0c" + line_ends
        text = "".join(c for c in text if c in keep or not (unicodedata.category(c) == "Cc" or c == "\ufeff"))
    if switches["blanks"]:
        text = "".join(" " if c in "\x0b\x0c" or unicodedata.category(c) == "Zs" else c for c in text)
    if switches["trim_lines"]:
        text = re.sub(r"[ \t]+(?=\n|\Z)", "", text)
    if switches["limit_newlines"]:
        text = re.sub("\n{3,}", "\n\n", text)
    if switches["trim_text"]:
        text = re.sub(r"\A[ \t\n]*\n", "", text).rstrip(" \t\n")
    return unicodedata.normalize("NFC", text) if switches["nfc"] else text


def run(texts: Sequence[str | None], **switches: Any) -> list[str | None]:
    result: list[str | None] = Normalize(**switches).build()(text_table(texts)).column("text").to_pylist()
    return result


@pytest.mark.parametrize("switches", COMBINATIONS, ids=lambda s: "-".join(k for k in s if s[k]) or "nothing")
def test_equals_the_reference_and_is_idempotent(switches: dict[str, bool]) -> None:
    texts = [text for text in EDGE_TEXTS if text is not None] + fuzz_texts(1500, seed=sum(switches.values()))
    once = run(texts, **switches)
    wrong = [(t, got, want) for t, got in zip(texts, once, strict=True) if got != (want := reference(t, switches))]
    assert wrong == []
    assert run(once, **switches) == once


@pytest.mark.parametrize(("name", "table"), list(layouts(EDGE_TEXTS)), ids=lambda v: v if isinstance(v, str) else "")
def test_layouts_types_and_nulls(name: str, table: pa.Table) -> None:
    result = Normalize().build()(table)
    assert result.schema == table.schema
    assert result.drop_columns("text").equals(table.drop_columns("text"))
    everything = dict.fromkeys(SWITCHES, True)
    assert result["text"].to_pylist() == [t if t is None else reference(t, everything) for t in EDGE_TEXTS]
    result.validate(full=True)


def test_the_field_keeps_its_metadata() -> None:
    field = pa.field("text", pa.large_string(), nullable=False, metadata={"mode": "frozen"})
    table = pa.table([pa.array(["a \n"], pa.large_string())], schema=pa.schema([field], metadata={"m": "1"}))
    result = Normalize().build()(table)
    assert result.schema.equals(table.schema, check_metadata=True)


def test_real_documents(corpus_dir: Path) -> None:
    texts = corpus_texts(corpus_dir, 3000, seed=3)
    everything = dict.fromkeys(SWITCHES, True)
    once = run(list(texts))
    assert once == [reference(text, everything) for text in texts]
    assert run(once) == once
    assert once != texts


def test_a_control_between_letter_and_accent_goes_first() -> None:
    assert run(["e\x00\u0301"]) == ["é"]


def test_a_row_may_grow() -> None:
    """U+1D15E decomposes for good: NFC makes it longer."""
    assert run(["\U0001d15e" * 100, "behind"]) == [unicodedata.normalize("NFC", "\U0001d15e" * 100), "behind"]


def test_fixed_sets_are_those_of_unicode() -> None:
    def category(name: str) -> set[int]:
        return {c for c in range(0x110000) if unicodedata.category(chr(c)) == name}

    assert category("Zs") | {0x0B, 0x0C} == set(BLANKS)
    assert category("Cc") | {0xFEFF} == {*controls(), 0x09, 0x0B, 0x0C, *LINE_ENDS} - {0x2028, 0x2029}


def test_every_character_that_nfc_can_touch_is_known() -> None:
    """Complete by Python's tables, and by Arrow's own normaliser on each single character."""
    known = set(nfc_candidates().tolist())
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for c in points:
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            assert int(parts[1], 16) in known
    missing = [c for c in points if c not in known and unicodedata.combining(chr(c))]
    assert missing == []
    single = pa.array([chr(c) for c in points])
    changed = pc.not_equal(pc.utf8_normalize(single, form="NFC"), single).to_pylist()
    assert {c for c, is_changed in zip(points, changed, strict=True) if is_changed} <= known
