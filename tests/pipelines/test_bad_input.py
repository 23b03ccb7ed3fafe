"""Bad input through a whole pipeline: each bad line is told with file, line and error, and costs nothing else."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.driving import Ended, Site, Zygote

GOOD = [{"id": f"good-{n}", "text": f"a good text that is long enough, number {n}"} for n in range(40)]
MIB = 1 << 20
HUGE_BYTES = 200 * MIB


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture
def place(tmp_path: Path, forks: Zygote) -> Site:
    """A site with one good file; its pipeline lets every readable line through."""
    (tmp_path / "in").mkdir()
    site = Site(tmp_path, forks)
    (site.input / "good.jsonl").write_bytes(_lines(GOOD))
    _pipeline(site)
    return site


def _pipeline(site: Site, op: str = "read.jsonl", **params: Any) -> None:
    reader = {"op": op, "root": "in", **params}
    site.write_pipeline(
        [reader, {"op": "text.normalize"}, {"op": "dedup.exact"}, {"op": "text.length", "min_chars": 0}]
    )


def _run(site: Site, rows: int, errors: int, **given: Any) -> Ended:
    """Run, and count what must be kept and quarantined; a recount from the files must agree."""
    done = site.run(**given)
    assert done.status == "published"
    assert (len(site.rows()), len(site.rows(".quarantine"))) == (rows, errors)
    assert site.rows(".rejects") == []
    assert site.verify(done.run) == []
    assert {row["id"] for row in GOOD} <= {row["id"] for row in site.rows()}
    return done


BAD_LINES = {
    "cut": b'{"id": "bad", "text": "this line is c',
    "not UTF-8": b'{"id": "bad", "text": "caf\xe9 and more"}',
    "a raw NUL": b'{"id": "bad", "text": "a\x00b"}',
    "only NULs": b"\x00" * 50,
    "no object": b"[1, 2, 3]",
    "no text": b'{"id": "bad", "body": "the text has another key here"}',
    "a text that is no string": b'{"id": "bad", "text": 12}',
    "binary": bytes(range(14, 256)),
    "half a surrogate": b'{"id": "bad", "text": "\\ud800 alone"}',
    "deeply nested": b'{"id": "bad", "text": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_among_good_ones(place: Site, kind: str) -> None:
    rows = [json.dumps({"id": f"l-{n}", "text": f"line {n} of the file with the bad line"}).encode() for n in range(9)]
    body = b"\n".join([*rows[:5], BAD_LINES[kind], *rows[5:]]) + b"\n"
    (place.input / "mixed.jsonl").write_bytes(body)
    _run(place, len(GOOD) + 9, 1)
    (bad,) = place.rows(".quarantine")
    assert bad["source_file"] == "mixed.jsonl"
    assert bad["line"] == 6
    assert bad["source_offset"] == sum(len(row) + 1 for row in rows[:5])
    assert bad["error"]
    assert bad["op"] == "read.jsonl"
    assert bad["raw"] == BAD_LINES[kind]


def test_a_last_line_that_is_cut(place: Site) -> None:
    (place.input / "cut.jsonl").write_bytes(
        b'{"id": "whole", "text": "the line before"}\n{"id": "cut", "text": "the las'
    )
    _run(place, len(GOOD) + 1, 1)
    (bad,) = place.rows(".quarantine")
    assert (bad["source_file"], bad["line"]) == ("cut.jsonl", 2)


def test_a_gzip_file_that_is_cut(place: Site) -> None:
    rows = [{"id": f"z-{n}", "text": f"row {n} " + f"of noise {n * 7919} " * 20} for n in range(2_000)]
    whole = gzip.compress(_lines(rows))
    (place.input / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    done = place.run()
    assert done.status == "published"
    kept = {row["id"]: row["text"] for row in place.rows()}
    texts = {row["id"]: row["text"] for row in rows + GOOD}
    assert kept == {name: texts[name].strip() for name in kept}
    assert {row["id"] for row in GOOD} <= set(kept)
    assert len(kept) < len(texts)
    (bad,) = place.rows(".quarantine")
    assert bad["source_file"] == "cut.jsonl.gz"
    assert bad["error"]
    assert place.verify(done.run) == []


def test_a_gzip_file_that_is_none(place: Site) -> None:
    (place.input / "wrong.jsonl.gz").write_bytes(b"this is no gzip at all\n" * 20)
    (place.input / "empty.jsonl.gz").write_bytes(b"")
    done = place.run()
    assert done.status == "published"
    assert len(place.rows()) == len(GOOD)
    assert "wrong.jsonl.gz" in {row["source_file"] for row in place.rows(".quarantine")}
    assert place.verify(done.run) == []


def test_texts_keep_every_character(place: Site) -> None:
    odd = "NUL \0, bell \a, line\u2028separator, \U0001f600, combining e\u0301, a\u200bb"
    _pipeline(place)
    place.write_pipeline(
        [{"op": "read.jsonl", "root": "in"}, {"op": "dedup.exact"}, {"op": "text.length", "min_chars": 0}]
    )
    (place.input / "odd.jsonl").write_bytes(_lines([{"id": "odd", "text": odd}]))
    _run(place, len(GOOD) + 1, 0)
    assert {row["id"]: row["text"] for row in place.rows()}["odd"] == odd


def test_empty_files_and_blank_lines(place: Site) -> None:
    (place.input / "empty.jsonl").write_bytes(b"")
    (place.input / "blank.jsonl").write_bytes(b"\n\n  \n\r\n")
    _run(place, len(GOOD), 0)


@pytest.mark.parametrize("root", ["nowhere", "in/good.json", "empty"])
def test_nothing_to_read_is_a_clear_error(place: Site, root: str) -> None:
    (place.folder / "empty").mkdir()
    _pipeline(place)
    place.write_pipeline([{"op": "read.jsonl", "root": root}, {"op": "text.normalize"}])
    started = time.monotonic()
    refused = place.run()
    assert time.monotonic() - started < 30
    assert refused.error == "SpecError"
    assert root in refused.text
    assert not place.lake.exists()


@pytest.mark.parametrize("write", ["source", "replace", "append"])
def test_an_empty_folder_that_may_be_empty(place: Site, write: str) -> None:
    (place.input / "good.jsonl").unlink()
    reader = {"op": "read.jsonl", "root": "in", "allow_empty": True}
    place.write_pipeline([reader, {"op": "dedup.exact"}, {"op": "text.length", "min_chars": 0}], write=write)
    done = place.run()
    assert done.status == "published"
    assert place.rows() == []
    assert place.verify(done.run) == []
    assert place.run().status == "already published"


def test_a_column_that_only_the_last_file_has(place: Site) -> None:
    (place.input / "last.jsonl").write_bytes(_lines([{"id": "z", "text": "the last one of all", "year": 1894}]))
    _run(place, len(GOOD) + 1, 0)
    years = {row["id"]: row["year"] for row in place.rows()}
    assert years.pop("z") == 1894
    assert set(years.values()) == {None}


def test_a_column_of_nulls_first(place: Site) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"n-{n}", "text": f"a row without a year {n}", "year": None} for n in range(200)
    ]
    rows += [{"id": "y", "text": "a row with a year", "year": 7}, {"id": "s", "text": "and tags", "tags": ["a", None]}]
    (place.input / "nulls.jsonl").write_bytes(_lines(rows))
    _run(place, len(GOOD) + len(rows), 0)
    found = {row["id"]: row for row in place.rows()}
    assert found["y"]["year"] == 7
    assert found["n-3"]["year"] is None


def test_a_key_that_comes_after_the_look(place: Site) -> None:
    """The schema comes from the first MB of every file; a later key must neither vanish nor stop the run."""
    rows: list[dict[str, Any]] = [{"id": f"p-{n}", "text": f"{n} " + "x" * 1_000} for n in range(2_000)]
    rows.append({"id": "late", "text": "the row with a new key", "surprise": {"deep": [1]}})
    (place.input / "long.jsonl").write_bytes(_lines(rows))
    _pipeline(place)
    done = place.run(overrides=["unit_bytes=300000"])
    assert done.status == "published"
    found = {row["id"]: row for row in place.rows()}
    assert len(found) == len(GOOD) + len(rows)
    assert json.loads(found["late"]["extra"]) == {"surprise": {"deep": [1]}}
    assert place.verify(done.run) == []


def test_a_type_that_changes_after_the_look(place: Site) -> None:
    rows: list[dict[str, Any]] = [{"id": f"p-{n}", "text": f"{n} " + "x" * 1_000, "year": n} for n in range(2_000)]
    rows.append({"id": "late", "text": "the row with another type", "year": "MDCCCXCIV"})
    (place.input / "long.jsonl").write_bytes(_lines(rows))
    _run(place, len(GOOD) + len(rows) - 1, 1, overrides=["unit_bytes=300000"])
    (bad,) = place.rows(".quarantine")
    assert (bad["source_file"], bad["line"]) == ("long.jsonl", 2_001)
    assert "year" in bad["error"]


def test_text_files(place: Site) -> None:
    (place.input / "good.jsonl").unlink()
    _pipeline(place, "read.text")
    files = {
        "a.txt": b"one text\nof two lines",
        "b.md": b"\xef\xbb\xbfwith a mark",
        "nul.txt": b"a\x00b c",
        "empty.txt": b"",
    }
    bad = {"latin.txt": b"caf\xe9", "cut.txt.gz": gzip.compress(b"some text " * 500)[:30]}
    for name, body in {**files, **bad}.items():
        (place.input / name).write_bytes(body)
    place.write_pipeline(
        [{"op": "read.text", "root": "in", "include": ["**/*.txt", "**/*.md", "**/*.gz"]}, {"op": "dedup.exact"}]
    )
    done = place.run()
    assert done.status == "published"
    texts = {row["source_file"]: row["text"] for row in place.rows()}
    assert texts == {"a.txt": "one text\nof two lines", "b.md": "with a mark", "nul.txt": "a\0b c", "empty.txt": ""}
    told = {row["source_file"]: row for row in place.rows(".quarantine")}
    assert set(told) == set(bad)
    assert "byte 3" in told["latin.txt"]["error"]
    assert place.verify(done.run) == []


def test_one_key_in_several_files(place: Site) -> None:
    """The same key with the same text and with another one: nothing is lost, ids stay unique."""
    again = [{**GOOD[0], "text": "the same key, another text"}, {"id": "good-1", "text": "and one more"}, GOOD[2]]
    (place.input / "again.jsonl").write_bytes(_lines(again))
    place.write_pipeline([{"op": "read.jsonl", "root": "in"}, {"op": "text.length", "min_chars": 0}])
    for unit_bytes in (1 << 20, 1024):
        done = place.run(overrides=[f"unit_bytes={unit_bytes}", f"pipeline=p{unit_bytes}", f"output=o{unit_bytes}"])
        assert done.status == "published"
        place.output = f"o{unit_bytes}"
        rows = place.rows()
        assert len(rows) == len({row["id"] for row in rows}) == len(GOOD) + 3
        assert place.verify(done.run) == []


def _huge(place: Site) -> str:
    line = "some words that make a text and go on, "
    text = line * (HUGE_BYTES // len(line))
    around = [{"id": "small", "text": "one before"}, {"id": "huge", "text": text}, {"id": "last", "text": "one behind"}]
    (place.input / "huge.jsonl").write_bytes(_lines(around))
    return text


@pytest.mark.timeout(300)
def test_a_huge_document_among_small_ones(place: Site) -> None:
    """Memory is bound by a few times the largest row."""
    huge = _huge(place)
    before = place.run(overrides=["steps[0].include=[good.jsonl]", "output=small"], limit=200).peak_bytes
    done = place.run(overrides=[f"unit_bytes={8 * MIB}"], limit=200)
    assert done.status == "published"
    rows = {row["id"]: row for row in place.rows()}
    assert rows["huge"]["text"] == huge.strip()
    assert done.peak_bytes - before < 6 * HUGE_BYTES
    assert place.verify(done.run) == []


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_huge_document_on_ray(place: Site) -> None:
    """It travels between two stages as one cell of an envelope."""
    huge = _huge(place)
    small = {"op": "tests.pipelines.operators:SlowSmall", "seconds_per_row": 0}
    place.write_pipeline(
        [{"op": "read.jsonl", "root": "in"}, {"op": "text.normalize"}, small, {"op": "dedup.exact"}, small],
        unit_bytes=8 * MIB,
    )
    done = place.run(engine="ray", cpus=2, limit=400)
    assert done.status == "published"
    rows = {row["id"]: row for row in place.rows()}
    assert len(rows) == len(GOOD) + 3
    assert rows["huge"]["text"] == huge.strip()
