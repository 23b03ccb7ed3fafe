from __future__ import annotations

import pyarrow as pa

from headrace.storage.rows import Rows


def test_html_is_escaped_and_cut() -> None:
    table = pa.table({"<id>": ["<script>alert(1)</script>", None], "raw": [b"\0\1", b""], "text": ["x" * 500, "y"]})
    html = Rows(table)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;id&gt;" in html
    assert "2 bytes" in html
    assert "x" * 200 + "…" in html
    assert "x" * 201 not in html


def test_text_is_printable() -> None:
    rows = Rows(pa.table({"id": ["a", "b"], "text": ["one\ntwo\x1b[2J", None]}))
    assert len(rows) == 2
    assert repr(rows) == "id: a\ntext: one two [2J\n\nid: b\ntext: "
    assert repr(Rows(rows.table.slice(0, 0))) == "no rows"
    assert "<tbody></tbody>" in Rows(rows.table.slice(0, 0))._repr_html_()
