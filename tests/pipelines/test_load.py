"""Pipeline files: every problem of a file at once, each with file:line, place, value, rule and the nearest name."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from headrace.errors import SpecError
from headrace.pipelines.load import build, load_pipeline
from headrace.pipelines.spec import Pipeline
from tests.pipelines.plain import Lines, Shout, Without

FINE = """\
pipeline: web
output: corpora/web
channel: prod
unit_bytes: 2048
gates:
  min_rows: 1
steps:
  - op: tests.pipelines.plain:Lines
    root: in
  # a comment, and a blank line

  - op: tests.pipelines.plain:Without
    word: "yes"
  - {op: "tests.pipelines.plain:Shout"}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "web.yaml"
    file.write_text(text, "utf-8")
    return file


def problems_of(folder: Path, text: str) -> list[str]:
    """The lines of the error, without the folder."""
    with pytest.raises(SpecError) as refused:
        load_pipeline(write(folder, text))
    return [line.strip() for line in str(refused.value).replace(f"{folder}/", "").splitlines()]


def test_several_problems_are_told_one_by_one_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load_pipeline(write(tmp_path, FINE + "zzz: 1\nyyy: 2\n"))
    assert [problem.split()[1] for problem in refused.value.problems] == ["zzz:", "yyy:"]
    assert str(refused.value).splitlines()[1:] == [f"  {problem}" for problem in refused.value.problems]
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (str(copy), copy.problems) == (str(refused.value), ())
    with pytest.raises(SpecError) as refused:
        load_pipeline(write(tmp_path, FINE + "zzz: 1\n"))
    assert refused.value.problems == ()  # the text is the one problem


def test_a_file_gives_the_same_pipeline_as_python(tmp_path: Path) -> None:
    spec = load_pipeline(write(tmp_path, FINE))
    assert spec == Pipeline.model_validate(
        {
            "pipeline": "web",
            "output": "corpora/web",
            "channel": "prod",
            "unit_bytes": 2048,
            "gates": {"min_rows": 1},
            "steps": (Lines(root="in"), Without(word="yes"), Shout()),
        }
    )
    assert build(spec.to_mapping()) == spec


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = """\
pipelin: web
output: corpora/web
write: merge
unit_bytes: 12
gates:
  min_row: 3
  max_drop_frac: 2
channel: prod
channel: candidate
steps:
  - op: tests.pipelines.plain:Lines
    roots: in
  - op: text.gopher_qualty
  - op: text.length
    min_wordz: 3
    max_chars: -1
    min_chars: ten
  - operator: text.normalize
  - text.normalize
"""
    told = problems_of(tmp_path, text)
    assert told[0] == "web.yaml: 15 problems"
    expected = [
        ("web.yaml:9 channel", "occurs twice", ""),
        ("web.yaml:11 steps[0].root (tests.pipelines.plain:Lines)", "missing", ""),
        ("web.yaml:12 steps[0].roots (tests.pipelines.plain:Lines)", "got 'in'; no such key", "did you mean root?"),
        ("web.yaml:13 steps[1].op", "'text.gopher_qualty'", "did you mean 'text.gopher_quality'?"),
        ("web.yaml:15 steps[2].min_wordz (text.length)", "got 3; no such key", "did you mean min_words?"),
        ("web.yaml:16 steps[2].max_chars (text.length)", "got -1", "greater than or equal to 0"),
        ("web.yaml:17 steps[2].min_chars (text.length)", "got 'ten'", "integer"),
        ("web.yaml:18 steps[3]", "a step is a mapping with the key op", "did you write op as 'operator'?"),
        ("web.yaml:19 steps[4]", "got 'text.normalize'", "write e.g. - op: text.normalize"),
        ("web.yaml:1 pipelin", "got 'web'; no such key", "did you mean pipeline?"),
        ("web.yaml:3 write", "got 'merge'", "'source', 'append' or 'replace'"),
        ("web.yaml:4 unit_bytes", "got 12", "greater than or equal to 1024"),
        ("web.yaml:6 gates.min_row", "got 3; no such key", "did you mean min_rows?"),
        ("web.yaml:7 gates.max_drop_frac", "got 2", "less than or equal to 1"),
        ("web.yaml:1 pipeline", "missing; the key is required", ""),
    ]
    for place, got, rule in expected:
        fitting = [line for line in told[1:] if line.startswith(place + ":") and got in line and rule in line]
        assert fitting, (place, got, rule, told)
    assert len(told) - 1 == len(expected)


def test_one_problem_is_told_in_one_line(tmp_path: Path) -> None:
    (told,) = problems_of(tmp_path, FINE.replace("output: corpora/web", "output: corpora/Web"))
    assert told.startswith("web.yaml:2 output: got 'corpora/Web'; ")


def test_a_name_without_a_near_one_gets_the_list(tmp_path: Path) -> None:
    (told,) = problems_of(tmp_path, FINE + "zzz: 1\n")
    assert told == "web.yaml:15 zzz: got 1; no such key; valid: " + ", ".join(sorted(Pipeline.model_fields))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FINE.replace("output: corpora/web\n", ""), "web.yaml:1 output: missing; the key is required; add it"),
        (
            FINE + "  - op: tests.pipelines.plain:Lines\n    root: other\n",
            "web.yaml:15 steps[3] is a second reader; a pipeline has one, as its first step",
        ),
        (
            "pipeline: p\noutput: o\nsteps:\n  - op: text.normalize\n",
            "web.yaml:4 steps[0] must be a reader (read.jsonl, read.parquet, read.text, ...)",
        ),
        ("pipeline: p\noutput: o\nsteps: []\n", "web.yaml:3 steps: got []; must be a list of steps"),
        ("pipeline: p\noutput: o\nsteps: text\n", "web.yaml:3 steps: got 'text'; must be a list of steps"),
        ("pipeline: p\noutput: o\n", "web.yaml:1 steps: got None; must be a list of steps"),
        ("pipeline: p\n  output: o\n", "web.yaml:2: got mapping values are not allowed here; must be YAML"),
        ('pipeline: "p\n', "web.yaml:2: got found unexpected end of stream; must be YAML"),
        ("a: &x [*x]\n", "web.yaml:1 a.0: an alias refers to what it is part of"),
        ("pipeline: !env HOME\n", "web.yaml:1 pipeline: got 'HOME' with the tag !env; must be a plain YAML value"),
        ("pipeline: !!int ten\n", "web.yaml:1 pipeline: got 'ten' with the tag tag:yaml.org,2002:int"),
        ("- op: text.normalize\n", "web.yaml: got no mapping; a pipeline file is a mapping"),
        ("", "web.yaml: got no mapping; a pipeline file is a mapping"),
    ],
)
def test_a_broken_file_says_where(text: str, told: str, tmp_path: Path) -> None:
    found = problems_of(tmp_path, text)
    assert any(line.startswith(told) for line in found), found


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_bytes("pipeline: wäb\n".encode("latin-1"))
    with pytest.raises(SpecError, match="byte 11; a pipeline file must be UTF-8"):
        load_pipeline(tmp_path / "web.yaml")


def test_a_missing_file_names_the_near_one(tmp_path: Path) -> None:
    write(tmp_path, FINE)
    with pytest.raises(SpecError, match=r"No such file.*did you mean .*/web\.yaml\?"):
        load_pipeline(tmp_path / "wbe.yml")
    with pytest.raises(SpecError, match="give the path of a pipeline file"):
        load_pipeline(tmp_path / "elsewhere" / "web.yaml")
    with pytest.raises(SpecError, match="directory"):
        load_pipeline(tmp_path)


def test_overrides_are_checked_like_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, FINE)
    assert load_pipeline(file, ["steps[1].word='no'", "gates.min_rows=7"]).gates.min_rows == 7
    with pytest.raises(SpecError, match=r"web\.yaml:13 steps\[1\]\.word .*got False; .*; quote it"):
        load_pipeline(file, ["steps[1].word=no"])
    with pytest.raises(SpecError, match=r"web\.yaml:12 steps\[1\]\.wrd .*did you mean word\?"):
        load_pipeline(file, ["steps.1.wrd=no"])


def test_a_mapping_without_a_file_has_places_too() -> None:
    with pytest.raises(SpecError, match=r"^steps\[0\]\.root \(tests\.pipelines\.plain:Lines\): missing"):
        build({"pipeline": "p", "output": "o", "steps": [{"op": "tests.pipelines.plain:Lines"}]})


def test_an_outside_operator_that_is_not_there_is_told(tmp_path: Path) -> None:
    (told,) = problems_of(tmp_path, FINE.replace("plain:Shout", "plain:Shoot"))
    assert told.startswith("web.yaml:14 steps[2].op: ")
    assert "did you mean 'Shout'?" in told
    (told,) = problems_of(tmp_path, FINE.replace("tests.pipelines.plain:Shout", "nowhere.at_all:Shout"))
    assert "there is no module 'nowhere'" in told


def test_aliases_of_aliases_do_not_unfold_for_ever(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(SpecError, match="at most 20000 values"):
        load_pipeline(write(tmp_path, "\n".join(levels) + "\n" + FINE))
