from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headrace.errors import DatasetNotFound
from headrace.storage.commit import create_target, publish, stage
from headrace.storage.contract import QUARANTINE, REJECTS, Contract
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.lineage import QUARANTINE_VERSION, REJECTS_VERSION, SUPERSEDES
from headrace.storage.why import PREVIEW_CHARS, explain, printable
from tests.storage.support import NAME, documents, files_of, lost, target

ODD = """it's "quoted" 'x' OR '1'='1"""


def dropped(id: str, run: str, **more: Any) -> dict[str, Any]:
    told = {"step": 1, "op": "text.min_words", "rule": "min_words", "value": 3.0, "threshold": 50.0}
    return {
        "id": id,
        "run": run,
        "source_file": "a.jsonl",
        "source_offset": 12,
        "text": f"text of {id}",
        **told,
        **more,
    }


def broken(id: str, run: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "run": run, "step": 0, "op": "read.jsonl", "error": "no JSON", "line": 7, **more}


def publish_run(
    lake: Lake,
    run: str,
    kept: list[str],
    rejects: list[dict[str, Any]],
    quarantine: list[dict[str, Any]],
    supersedes: dict[str, list[Any]] | None = None,
    finish: bool = True,
) -> list[Any]:
    """The three commits of a run, kept last; with `finish=False` it dies before the last."""
    target(lake)
    versions = {}
    for kind, schema, rows in (("quarantine", QUARANTINE, quarantine), ("rejects", REJECTS, rejects)):
        name = f"{NAME}.{kind}"
        create_target(lake, name, Contract(schema, key=None))
        versions[kind] = publish(lake, name, stage(lake, name, lost(kind, rows)), run, {}).version
    fragments = stage(lake, NAME, documents(kept))
    if finish:
        properties = {
            SUPERSEDES: json.dumps(list(supersedes or {})),
            REJECTS_VERSION: str(versions["rejects"]),
            QUARANTINE_VERSION: str(versions["quarantine"]),
        }
        old = [fragment for replaced in (supersedes or {}).values() for fragment in replaced]
        publish(lake, NAME, fragments, run, properties, files_of(old))
    return fragments


def test_each_outcome(lake: Lake) -> None:
    publish_run(lake, "r1", ["a"], [dropped("b", "r1", note="too short", partner="a")], [broken("c", "r1")])
    kept, cut, bad, none = (explain(lake, NAME, 2, id) for id in "abcz")
    assert [told.outcome for told in (kept, cut, bad, none)] == ["kept", "dropped", "quarantined", "unknown"]
    assert [told.run for told in (kept, cut, bad, none)] == ["r1", "r1", "r1", None]
    (fact,) = cut.rows
    assert (fact.step, fact.op, fact.rule, fact.value, fact.threshold) == (1, "text.min_words", "min_words", 3.0, 50.0)
    assert (fact.note, fact.partner, fact.source_file, fact.source_offset) == ("too short", "a", "a.jsonl", 12)
    (fact,) = bad.rows
    assert (fact.error, fact.line, fact.op, fact.rule) == ("no JSON", 7, "read.jsonl", None)
    (fact,) = kept.rows
    assert (fact.source_file, fact.source_offset, fact.text) == ("part.jsonl", 0, "some text of a")
    assert none.rows == ()


def test_text_is_readable(lake: Lake) -> None:
    publish_run(lake, "r1", [], [dropped("b", "r1", note="note", partner="a")], [broken("c", "r1")])
    assert explain(lake, NAME, 2, "b").text() == (
        "b: dropped in docs/python@2, run r1\n"
        "  step 1 text.min_words: min_words, value 3, threshold 50, note, lost to a\n"
        "  from a.jsonl at 12\n"
        "  text: text of b"
    )
    assert "step 0 read.jsonl: no JSON" in explain(lake, NAME, 2, "c").text()
    assert "unknown in docs/python@2" in explain(lake, NAME, 2, "z").text()


def test_ids_with_quotes_are_only_ids(lake: Lake) -> None:
    publish_run(lake, "r1", ["a"], [dropped(ODD, "r1"), dropped("b", "r1")], [])
    told = explain(lake, NAME, 2, ODD)
    assert (told.id, told.outcome, len(told.rows)) == (ODD, "dropped", 1)
    assert explain(lake, NAME, 2, "x' OR '1'='1").outcome == "unknown"


def test_a_run_without_its_kept_commit_explains_nothing(lake: Lake) -> None:
    publish_run(lake, "dead", [], [dropped("b", "dead")], [broken("c", "dead")], finish=False)
    publish_run(lake, "r1", ["b"], [], [])
    told = explain(lake, NAME, 2, "b")
    assert (told.outcome, len(told.rows)) == ("kept", 1)
    assert explain(lake, NAME, 2, "c").outcome == "unknown"


def test_a_replaced_run_explains_only_the_versions_before(lake: Lake) -> None:
    old = publish_run(lake, "old", ["a"], [dropped("b", "old"), dropped("c", "old")], [])
    publish_run(lake, "new", ["b"], [dropped("a", "new")], [], {"old": old})
    outcomes = {version: [explain(lake, NAME, version, id).outcome for id in "abc"] for version in (1, 2, 3)}
    assert outcomes == {
        1: ["unknown", "unknown", "unknown"],
        2: ["kept", "dropped", "dropped"],
        3: ["dropped", "kept", "unknown"],
    }


def test_rows_of_every_live_run_are_found(lake: Lake) -> None:
    publish_run(lake, "r1", ["a"], [dropped("b", "r1")], [])
    publish_run(lake, "r2", ["c"], [dropped("b", "r2"), dropped("d", "r2")], [broken("b", "r2"), broken("b", "r2")])
    told = explain(lake, NAME, 3, "b")
    assert sorted((fact.outcome, fact.run or "") for fact in told.rows) == [
        ("dropped", "r1"),
        ("dropped", "r2"),
        ("quarantined", "r2"),
        ("quarantined", "r2"),
    ]
    assert explain(lake, NAME, 3, "a").run == "r1"
    assert explain(lake, NAME, 2, "d").outcome == "unknown"


def test_rejects_are_read_as_they_were_published(lake: Lake) -> None:
    publish_run(lake, "r1", [], [dropped("b", "r1")], [])
    open_head(lake, f"{NAME}.rejects").delete("true")
    assert explain(lake, NAME, 2, "b").outcome == "dropped"


def test_rejects_that_were_cleaned_away_are_looked_for_at_the_head(lake: Lake) -> None:
    publish_run(lake, "r1", [], [dropped("b", "r1")], [])
    publish_run(lake, "dead", [], [dropped("c", "dead")], [], finish=False)
    open_head(lake, f"{NAME}.rejects").cleanup_old_versions(older_than=timedelta(0))
    assert explain(lake, NAME, 2, "b").outcome == "dropped"
    assert explain(lake, NAME, 2, "c").outcome == "unknown"


def test_a_dataset_without_rejects_explains_its_rows(lake: Lake) -> None:
    target(lake)
    publish(lake, NAME, stage(lake, NAME, documents(["a"])), "r1", {})
    assert explain(lake, NAME, 2, "a").outcome == "kept"
    assert explain(lake, NAME, 2, "b").outcome == "unknown"
    with pytest.raises(DatasetNotFound, match="version 9"):
        explain(lake, NAME, 9, "a")


def test_long_text_is_cut_and_the_terminal_is_safe(lake: Lake) -> None:
    hostile = "\x1b[2Jboo\u202e"
    publish_run(lake, "r1", [], [dropped(hostile, "r1", text="x" * 1000, note=hostile)], [])
    told = explain(lake, NAME, 2, hostile)
    assert told.rows[0].text == "x" * PREVIEW_CHARS
    assert told.rows[0].note == hostile
    assert all(letter.isprintable() or letter == "\n" for letter in told.text())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\nb\tcä", "a⏎b cä"),
        ("a\r\nb\n\nc", "a⏎b⏎⏎c"),
        ("a\rb", "a\ufffdb"),  # would overwrite the line
        ("a\x1b[2Jb\x00\x0b\x85\u2028", "a\ufffd[2Jb\ufffd\ufffd\ufffd\ufffd"),
        ("a\u202eb", "a\ufffdb"),
    ],
)
def test_breaks_are_seen_and_the_rest_is_replaced(text: str, wanted: str) -> None:
    assert printable(text) == wanted


def test_a_preview_is_one_line(lake: Lake) -> None:
    publish_run(lake, "r1", [], [dropped("b", "r1", text="one\ntwo\tthree")], [])
    told = explain(lake, NAME, 2, "b")
    assert told.text().splitlines()[-1] == "  text: one⏎two three"
    assert told.rows[0].text == "one\ntwo\tthree"


def test_values_go_through_json(lake: Lake) -> None:
    publish_run(lake, "r1", [], [dropped("b", "r1")], [])
    told = json.loads(json.dumps(explain(lake, NAME, 2, "b").to_dict()))
    assert (told["outcome"], told["version"], told["rows"][0]["rule"]) == ("dropped", 2, "min_words")
