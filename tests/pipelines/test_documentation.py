"""`docs/pipeline-files.md` is true: its file loads, its tables have every key, its Python runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headrace.operators.resolve import names
from headrace.pipelines.load import load_pipeline
from headrace.pipelines.spec import Gates, Pipeline

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline-files.md"
README = Path(__file__).resolve().parents[2] / "src" / "headrace" / "pipelines" / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def rows_of(text: str) -> dict[str, str]:
    """First cell -> line, of all tables."""
    return {cell: line for line in text.splitlines() for cell in re.findall(r"^\| `([a-z_.]+)` \|", line)}


def test_the_worked_example_has_every_key_and_loads(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    file = tmp_path / "web.yaml"
    file.write_text(text, "utf-8")
    spec = load_pipeline(file)
    assert set(re.findall(r"^([a-z_]+):", text, re.MULTILINE)) == set(Pipeline.model_fields)
    assert set(re.findall(r"^  ([a-z_]+):", text, re.MULTILINE)) == set(Gates.model_fields)
    assert load_pipeline(file, ["steps[3].min_words=50", "channel=null", "steps.0.source='2026'"]).channel is None
    assert spec.unit_bytes == Pipeline.model_fields["unit_bytes"].default


@pytest.mark.parametrize("model", [Pipeline, Gates])
def test_the_tables_have_every_key_with_its_default(model: type[Pipeline] | type[Gates]) -> None:
    found = rows_of(PAGE.read_text("utf-8"))
    for name, field in model.model_fields.items():
        assert name in found
        if isinstance(field.default, str | int | float):
            default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
            assert re.search(rf"\| `?{default}`? \|", found[name]), found[name]
        if field.is_required():
            assert "| required |" in found[name]


def test_the_readme_has_every_key_too() -> None:
    found = rows_of(README.read_text("utf-8"))
    assert {*Pipeline.model_fields} - {"gates"} <= set(found)
    assert {f"gates.{name}" for name in Gates.model_fields} <= set(found)


def test_the_readme_has_every_module() -> None:
    told = set(re.findall(r"`([a-z_]+)`", README.read_text("utf-8")))
    modules = {path.stem for path in README.parent.glob("*.py")} - {"__init__"}
    assert modules - told == set()


def test_every_reader_is_named() -> None:
    text = PAGE.read_text("utf-8")
    assert [name for name in names() if name.startswith("read.") and f"`{name}`" not in text] == []


def test_the_python_runs(workdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workdir / "pages").mkdir()
    lines = ['{"id": "1", "text": "one two three"}', '{"id": "2", "text": "one two three"}', '{"text": "x"}']
    (workdir / "pages" / "a.jsonl").write_text("\n".join(lines), "utf-8")
    (text,) = blocks("python")
    exec(compile(text, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == "corpora/web@2 {'kept': 1, 'rejects': 2, 'quarantine': 0}\n"
