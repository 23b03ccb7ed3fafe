from __future__ import annotations

import shlex
from pathlib import Path

import headrace
from tests.cli.support import PIPELINE, Caller, command, write_project, write_rows


def test_run_tells_what_happened(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml")
    assert told.code == 0
    assert told.err.startswith(f"lake: {project}/lake\n")
    lines = [line.split() for line in told.out.splitlines()]
    assert ["0", "read.jsonl", "4", "4", "0"] in lines
    assert ["1", "own:Refuse", "4", "3", "1"] in lines
    assert ["2", "text.length", "3", "2", "1", "by", "min_chars", "0"] in lines
    assert ["all", "4", "2", "1", "1"] in lines
    assert "gates: min_rows 2 (limit 0)" in told.out
    assert "published docs/notes@2: 2 rows in all, 2 of this run; channel prod (run " in told.out
    assert "1 row could not be processed; look: headrace dataset head docs/notes.quarantine\n" in told.out
    assert "id~suffix" not in told.out
    assert "4 rows" in told.out
    assert "rows/s" in told.out
    assert "published docs/notes@2" not in told.err


def test_example_line_works(call: Caller, project: Path) -> None:
    shown = call("run", "notes.yaml").out.splitlines()[-1]
    assert shown.startswith("why was a row dropped?  headrace dataset why docs/notes@2 ")
    told = call(*shlex.split(shown.partition("headrace ")[2]))
    assert told.code == 0
    assert "dropped in docs/notes@2" in told.out
    assert "min_chars, value 5, threshold 10" in told.out


def test_example_is_a_lost_row_where_there_is_one(call: Caller, project: Path) -> None:
    quarantined = call("run", "notes.yaml", "--set", "steps[2].min_chars=1", "--json").answer
    assert quarantined["example"]["outcome"] == "quarantined"
    kept = call("run", "notes.yaml", "--set", "steps[2].min_chars=1", "--set", "steps[1].word=zzz", "--json").answer
    assert kept["example"]["outcome"] == "kept"


def test_rows_of_other_runs_are_in_all(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml").code == 0
    write_rows(project / "more", ["another text about weirs"], "b.jsonl")
    told = call("run", "notes.yaml", "--set", "pipeline=more", "--set", "steps[0].root=more")
    assert "published docs/notes@3: 3 rows in all, 1 of this run; channel prod" in told.out
    assert "quarantine\n" not in told.out
    answer = call("run", "notes.yaml", "--set", "write=append", "--fresh", "twice", "--json").answer
    assert (answer["rows"], answer["report"]["rows"]["kept"]) == (5, 2)
    assert answer["channel"] == {"name": "prod", "version": 4}


def test_renamed_ids_are_told(call: Caller, project: Path) -> None:
    write_rows(project / "in" / "again", ["a text of the same id", "one more of them"])
    told = call("run", "notes.yaml")
    assert told.code == 0
    assert "1 row repeated an id of the source and got id~suffix" in told.out


def test_lines_to_paste_mean_the_same_lake(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--lake", "my pool")
    assert "look: headrace dataset head docs/notes.quarantine --lake 'my pool'" in told.out
    shown = told.out.splitlines()[-1]
    assert call(*shlex.split(shown.partition("headrace ")[2])).code == 0
    assert "notes.yaml --lake 'my pool' --fresh" in call("run", "notes.yaml", "--lake", "my pool").out


def test_already_published_tells_where_version_and_channel_are(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml", "--set", "write=append").code == 0
    alone = call("run", "notes.yaml", "--set", "write=append").out
    assert "newest" not in alone
    assert "not moved" not in alone
    write_rows(project / "more", ["another text about weirs"], "b.jsonl")
    assert call("run", "notes.yaml", "--set", "pipeline=more", "--set", "steps[0].root=more").code == 0
    told = call("run", "notes.yaml", "--set", "write=append")
    assert "already published: docs/notes@2" in told.out
    assert "newest version: docs/notes@3\n" in told.out
    move = next(line for line in told.out.splitlines() if "not moved" in line)
    assert move.startswith("prod is at @3, not moved; to move it: headrace dataset tag docs/notes@2 prod --channel ")
    assert call(*shlex.split(move.partition("headrace ")[2])).code == 0
    answer = call("run", "notes.yaml", "--set", "write=append", "--json").answer
    assert (answer["newest_version"], answer["channel"]) == (3, {"name": "prod", "version": 2})
    assert "not moved" not in call("run", "notes.yaml", "--set", "write=append").out


def test_already_published_says_what_was_compared_and_how_to_force(call: Caller, project: Path) -> None:
    first = call("run", "notes.yaml", "--set", "steps[2].min_chars=12", "--json").answer
    told = call("run", "notes.yaml", "--set", "steps[2].min_chars=12")
    assert told.code == 0
    assert f"already published: docs/notes@2 (run {first['run']}); compared:" in told.out
    assert "  input: 1 files" in told.out
    assert "  steps[1] own:Refuse: code and parameters" in told.out
    force = next(line for line in told.out.splitlines() if "--fresh" in line).partition(": headrace ")[2]
    again = call(*shlex.split(force), "--json").answer
    assert (again["status"], again["version"]) == ("published", 3)
    assert again["report"]["fresh"] == "reason"


def test_json_of_a_run_is_one_object(project: Path) -> None:
    told = command("run", "notes.yaml", "--json", cwd=project)
    assert told.code == 0
    assert told.out.count("\n") == 1
    answer = told.answer
    assert answer["lake"] == str(project / "lake")
    assert (answer["status"], answer["reference"], answer["rows_read"]) == ("published", "docs/notes@2", 4)
    assert answer["report"]["rows"] == {"kept": 2, "rejects": 1, "quarantine": 1}
    assert answer["bytes_read"] == (project / "in" / "a.jsonl").stat().st_size
    again = command("run", "notes.yaml", "--json", cwd=project).answer
    assert (again["status"], again["rows_read"]) == ("already published", 0)
    assert again["compared"]


def test_operators_beside_the_file_and_in_the_working_directory(tmp_path: Path, workdir: Path) -> None:
    elsewhere = write_project(tmp_path / "elsewhere")
    write_rows(workdir / "in", ["a text of this directory"])
    told = command("run", str(elsewhere), "--json", cwd=workdir)
    assert told.code == 0, told.err
    assert told.answer["report"]["rows"]["kept"] == 1  # inputs are relative to the working directory


def test_override_that_is_wrong(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--set", "steps[2].min_char=3")
    assert told.code == 2
    assert "min_chars" in told.err
    assert not (project / "lake").exists()


def test_every_problem_of_a_file_is_an_entry(call: Caller, project: Path) -> None:
    (project / "notes.yaml").write_text(PIPELINE.replace("min_chars", "min_char") + "colour: red\n")
    told = call("run", "notes.yaml", "--json")
    error = told.answer["error"]
    assert (told.code, error["kind"], len(error["problems"])) == (2, "SpecError", 2)
    assert all(text.startswith("notes.yaml:") and "\n" not in text for text in error["problems"])
    assert "did you mean min_chars?" in error["problems"][0]
    assert "colour" in error["problems"][1]
    assert all(f"\n  {text}" in error["message"] for text in error["problems"])


def test_gate_that_fails_publishes_nothing(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--set", "gates.min_rows=100")
    assert told.code == 5
    assert "min_rows" in told.err
    assert call("dataset", "log", "docs/notes", "--json").answer["versions"][0]["run"] is None


def test_limit_needs_preview(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--limit", "3")
    assert told.code == 2
    assert "add --preview" in told.err
    assert call("run", "notes.yaml", "--preview", "--fresh", "x").code == 2


def test_preview_shows_rows_and_leaves_nothing(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--preview")
    assert told.code == 0
    assert "kept: 2" in told.out
    assert "dropped: 1" in told.out
    assert "min_chars" in told.out
    assert "quarantined: 1" in told.out
    assert "\x1b" not in told.out
    assert not (project / "lake").exists()


def test_preview_takes_so_many_rows(call: Caller, project: Path) -> None:
    answer = call("run", "notes.yaml", "--preview", "--limit", "2", "--json").answer
    assert [row["id"] for row in answer["kept"]] == ["a0"]
    assert [(row["id"], row["rule"]) for row in answer["rejects"]] == [("a1", "min_chars")]
    assert answer["quarantine"] == []
    assert answer["steps"][0]["rows_in"] == 2
    assert not (project / "lake").exists()


def test_resume_of_a_published_run(call: Caller, project: Path) -> None:
    run = call("run", "notes.yaml", "--json").answer["run"]
    told = call("resume", run)
    assert told.code == 0
    assert f"already published: docs/notes@2 (run {run})" in told.out
    assert "has a kept commit" in told.out


def test_resume_after_a_gate_needs_no_reading(call: Caller, project: Path) -> None:
    """Finished units stay finished: only the publication is tried again."""
    assert call("run", "notes.yaml", "--set", "gates.min_rows=100").code == 5
    run = call("runs", "ls", "--json").answer["runs"][0]["run"]
    (project / "in" / "a.jsonl").unlink()
    assert call("resume", run).code == 5


def test_resume_refuses_changed_code_unless_told(call: Caller, project: Path) -> None:
    assert command("run", "notes.yaml", "--set", "gates.min_rows=100", cwd=project).code == 5
    run = call("runs", "ls", "--json").answer["runs"][0]["run"]
    source = (project / "own.py").read_text()
    (project / "own.py").write_text(source.replace("if self.word in text", "if self.word in str(text)"))
    told = command("resume", run, cwd=project)
    assert told.code == 2
    assert "--accept-code-change own:Refuse" in told.err
    assert command("resume", run, "--accept-code-change", "own:Refuse", cwd=project).code == 5  # the gate again


def test_engine_that_is_none(call: Caller, project: Path) -> None:
    told = call("run", "notes.yaml", "--engine", "spark")
    assert told.code == 2
    assert "auto" in told.err


def test_rows_are_those_of_the_python_twin(call: Caller, project: Path) -> None:
    assert call("run", "notes.yaml").code == 0
    (project / "twin.yaml").write_text(PIPELINE.replace("docs/notes", "docs/twin"))
    headrace.run("twin.yaml", lake="lake")
    one, other = headrace.open("docs/notes", "lake").to_arrow(), headrace.open("docs/twin", "lake").to_arrow()
    assert one.sort_by("id").equals(other.sort_by("id"))
