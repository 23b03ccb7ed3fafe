from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Caller


@pytest.fixture
def published(call: Caller, project: Path) -> str:
    """Two versions of docs/notes; returns the run of the newer."""
    assert call("run", "notes.yaml").code == 0
    answer = call("run", "notes.yaml", "--set", "steps[2].min_chars=3", "--json").answer
    run: str = answer["run"]
    return run


def test_ls(call: Caller, published: str) -> None:
    lines = [line.split() for line in call("dataset", "ls").out.splitlines()]
    assert lines == [["dataset", "version", "rows", "channels", "and", "tags"], ["docs/notes", "3", "3", "prod@3"]]
    names = [entry["name"] for entry in call("dataset", "ls", "--all", "--json").answer["datasets"]]
    assert names == ["docs/notes", "docs/notes.quarantine", "docs/notes.rejects"]


def test_ls_of_no_lake(call: Caller, workdir: Path) -> None:
    told = call("dataset", "ls")
    assert (told.code, told.out) == (0, "")
    assert "there is no lake here yet" in told.err
    assert call("dataset", "ls", "--json").answer["exists"] is False


def test_show(call: Caller, published: str) -> None:
    told = call("dataset", "show", "docs/notes@prod")
    assert told.code == 0
    assert "docs/notes@3: 3 rows" in told.out
    assert "large_string" in told.out
    assert f"by run {published}, pipeline notes" in told.out
    assert "own:Refuse" in told.out
    answer = call("dataset", "show", "docs/notes@2", "--json").answer
    assert (answer["version"], answer["rows"], answer["tags"]) == (2, 2, {"prod": 3})
    assert answer["published"]["version"] == 2
    assert {"name": "id", "type": "string", "nullable": False} in answer["columns"]


def test_show_of_a_version_before_any_run(call: Caller, published: str) -> None:
    assert call("dataset", "show", "docs/notes@1", "--json").answer["published"] is None


def test_head_is_printable(call: Caller, published: str) -> None:
    told = call("dataset", "head", "docs/notes")
    assert told.code == 0
    assert "a long text about weirs" in told.out
    assert "\x1b" not in told.out
    answer = call("dataset", "head", "docs/notes", "--json")
    assert answer.out.isascii()
    assert [row["id"] for row in answer.answer["rows"]] == ["a0", "a1", "a3"]
    assert answer.answer["rows"][2]["text"] == "a text with \x1b[31mred\x1b[0m in it"


def test_head_of_some_rows_and_columns(call: Caller, published: str) -> None:
    told = call("dataset", "head", "docs/notes", "-n", "1", "--columns", "id,source")
    assert told.out == "id: a0\nsource: in\n"
    wrong = call("dataset", "head", "docs/notes", "--columns", "txt")
    assert wrong.code == 2
    assert "try text" in wrong.err
    assert call("dataset", "head", "docs/notes", "-n", "0").code == 2


def test_log_is_newest_first(call: Caller, published: str) -> None:
    versions = call("dataset", "log", "docs/notes", "--json").answer["versions"]
    assert [(entry["version"], entry["rows"], entry["tags"]) for entry in versions] == [
        (3, 3, ["prod"]),
        (2, 2, []),
        (1, 0, []),
    ]
    assert versions[0]["run"] == published
    assert [line.split()[0] for line in call("dataset", "log", "docs/notes", "-n", "2").out.splitlines()[1:]] == [
        "3",
        "2",
    ]


@pytest.mark.parametrize(
    ("row", "outcome", "words"),
    [
        ("a0", "kept", "a long text about weirs"),
        ("a1", "dropped", "min_chars, value 5, threshold 10"),
        ("a2", "quarantined", "refused"),
    ],
)
def test_why(call: Caller, project: Path, row: str, outcome: str, words: str) -> None:
    assert call("run", "notes.yaml").code == 0
    told = call("dataset", "why", "docs/notes", row)
    assert told.code == 0
    assert f"{row}: {outcome} in docs/notes@2" in told.out
    assert words in told.out
    assert "\x1b" not in told.out
    answer = call("dataset", "why", "docs/notes", row, "--json").answer
    assert (answer["id"], answer["outcome"]) == (row, outcome)


def test_why_of_a_version(call: Caller, published: str) -> None:
    assert "a1: dropped" in call("dataset", "why", "docs/notes@2", "a1").out
    assert "a1: kept" in call("dataset", "why", "docs/notes", "a1").out


def test_why_without_an_id_explains_a_dropped_row(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml").code == 0
    assert "a1: dropped in docs/notes@2" in call("dataset", "why", "docs/notes").out
    assert call("dataset", "why", "docs/notes@1").code == 4  # no run published that one


def test_why_of_an_unknown_id(call: Caller, published: str) -> None:
    told = call("dataset", "why", "docs/notes", "no\x1b[2Jpe")
    assert told.code == 4
    assert "unknown in docs/notes@3" in told.out
    assert "\x1b" not in told.out
    answer = call("dataset", "why", "docs/notes", "nope", "--json")
    assert (answer.code, answer.answer["outcome"]) == (4, "unknown")


def test_tag_is_fixed(call: Caller, published: str) -> None:
    told = call("dataset", "tag", "docs/notes@2", "paper")
    assert (told.code, told.out) == (0, "tag docs/notes@paper names version 2\n")
    assert call("dataset", "show", "docs/notes@paper", "--json").answer["version"] == 2
    moved = call("dataset", "tag", "docs/notes@3", "paper")
    assert moved.code == 2
    assert "never move" in moved.err
    assert call("dataset", "tag", "docs/notes", "2026-12-01").code == 2


def test_channel_moves_with_a_reason(call: Caller, published: str) -> None:
    told = call("dataset", "tag", "docs/notes@2", "prod", "--channel", "--why", "roll back", "--json").answer
    assert (told["channel"], told["version"], told["before"]) == ("prod", 2, 3)
    assert call("dataset", "show", "docs/notes@prod", "--json").answer["version"] == 2
    assert "before: 2" in call("dataset", "tag", "docs/notes@3", "prod", "--channel", "--why", "mended").out


def test_history_of_a_channel_is_shown(call: Caller, published: str) -> None:
    hostile = "roll back:\x1b[2J " + "x" * 200
    assert call("dataset", "tag", "docs/notes@2", "prod", "--channel", "--why", hostile).code == 0
    shown = [line.split() for line in call("dataset", "show", "docs/notes").out.splitlines()]
    at = next(n for n, line in enumerate(shown) if line[:2] == ["channel", "moved"])
    assert [line[:2] for line in shown[at + 1 : at + 4]] == [["prod", "2"], ["prod", "3"], ["prod", "2"]]
    assert shown[at + 2][-1] == published
    answer = call("dataset", "show", "docs/notes@1", "--json").answer
    assert [(m["n"], m["before"], m["to"]) for m in answer["moves"]["prod"]] == [(3, 3, 2), (2, 2, 3), (1, None, 2)]
    assert (answer["moves"]["prod"][0]["why"], answer["moves"]["prod"][0]["run"]) == (hostile, None)
    log = call("dataset", "log", "docs/notes")
    assert "prod: roll back:\ufffd[2J xxxx" in log.out
    assert max(map(len, log.out.splitlines())) < 160
    assert log.out.splitlines()[1].endswith("prod: published")
    versions = call("dataset", "log", "docs/notes", "--json").answer["versions"]
    told = [[(move["channel"], move["n"]) for move in entry["moves"]] for entry in versions]
    assert told == [[("prod", 2)], [("prod", 3), ("prod", 1)], []]
    assert versions[1]["moves"][0]["why"] == hostile


def test_old_moves_are_counted(call: Caller, published: str) -> None:
    assert "earlier moves" not in call("dataset", "show", "docs/notes").out
    for version in (2, 3, 2, 3, 2):
        assert call("dataset", "tag", f"docs/notes@{version}", "prod", "--channel", "--why", "to and fro").code == 0
    assert call("dataset", "log", "docs/notes").out.count("prod: to and fro") == 2  # once a version
    told = call("dataset", "show", "docs/notes").out
    assert told.count("to and fro") == 5
    assert "2 earlier moves: --json has them all" in told
    assert len(call("dataset", "show", "docs/notes", "--json").answer["moves"]["prod"]) == 7


def test_a_dataset_without_channels_has_no_moves(call: Caller, published: str) -> None:
    assert "moved to" not in call("dataset", "show", "docs/notes.rejects").out
    assert call("dataset", "show", "docs/notes.rejects", "--json").answer["moves"] == {}


@pytest.mark.parametrize("arguments", [["--channel"], ["--channel", "--why", " "], ["--why", "x"]])
def test_channel_and_reason_go_together(call: Caller, published: str, arguments: list[str]) -> None:
    assert call("dataset", "tag", "docs/notes@2", "prod", *arguments).code == 2
    assert call("dataset", "show", "docs/notes@prod", "--json").answer["version"] == 3


@pytest.mark.parametrize("verb", ["show", "head", "log"])
def test_unknown_dataset_names_the_near(call: Caller, published: str, verb: str) -> None:
    told = call("dataset", verb, "docs/note")
    assert told.code == 4
    assert "docs/notes" in told.err
    assert call("dataset", verb, "Docs").code == 2
