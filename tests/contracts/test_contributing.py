"""The walk-through of CONTRIBUTING.md, run as it stands."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
import yaml

import headrace.operators.text
from headrace.operators import resolve
from headrace.operators.shapes import VERDICT_COLUMN, Map
from headrace.pipelines.load import load_pipeline
from tests.contracts._repository import ROOT

BLOCK = re.compile(r"^```(\w+) title=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULE = "src/headrace/operators/text/shouting.py"
TEST = "tests/operators/text/test_shouting.py"
TEXTS = ["BUY NOW", "Buy it now.", "", None, "A", "漢字", "MIXED case Here"]


@pytest.fixture(scope="module")
def blocks() -> dict[str, str]:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return {title: body for _, title, body in BLOCK.findall(text)}


@pytest.fixture
def shouting(blocks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, importable and found by its name as if it lay in the operators' folder."""
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "shouting.py").write_text(blocks[MODULE], "utf-8")
    package = headrace.operators.text
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    monkeypatch.setattr(resolve, "PLACES", (*resolve.PLACES, resolve.Place(tmp_path, "headrace.operators")))
    yield importlib.import_module("headrace.operators.text.shouting")
    sys.modules.pop("headrace.operators.text.shouting", None)
    monkeypatch.delattr(package, "shouting", raising=False)


def _table(texts: list[str | None]) -> pa.Table:
    return pa.table({"id": [str(i) for i in range(len(texts))], "text": pa.array(texts, pa.large_string())})


def test_the_name_finds_the_class(shouting: ModuleType) -> None:
    assert resolve.operator_class("text.shouting") is shouting.Shouting
    assert resolve.operator_name(shouting.Shouting) == "text.shouting"
    assert issubclass(shouting.Shouting, Map)


def test_its_doctest_runs(shouting: ModuleType) -> None:
    result = doctest.testmod(shouting)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_its_docstring_has_the_blocks(shouting: ModuleType) -> None:
    text = inspect.getdoc(shouting.Shouting) or ""
    assert [block for block in ("Columns\n", "Cost:", "Raises:", "Source:", ">>>") if block not in text] == []


def test_its_own_test_passes(shouting: ModuleType, blocks: dict[str, str]) -> None:
    names: dict[str, object] = {"__name__": "test_shouting"}
    exec(compile(blocks[TEST], TEST, "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_") and callable(value))
    (mark,) = test.pytestmark  # type: ignore[attr-defined]  # parametrize leaves its cases there
    _, cases = mark.args
    assert len(cases) >= 5
    for case in cases:
        test(*case)


def test_it_keeps_the_laws_of_a_map(shouting: ModuleType) -> None:
    operator = shouting.Shouting(max_upper_frac=0.4)
    assert pickle.loads(pickle.dumps(operator)) == operator
    plain = yaml.safe_load(yaml.safe_dump(operator.model_dump(mode="json")))
    assert shouting.Shouting(**plain) == operator
    with pytest.raises(ValueError, match="max_uper_frac"):
        shouting.Shouting(max_uper_frac=0.4)

    function, table = operator.build(), _table(TEXTS)
    before = _table(TEXTS)
    whole = function(table)
    assert table.equals(before)
    assert whole.drop_columns([VERDICT_COLUMN]).equals(before)
    singles = pa.concat_tables([operator.build()(table.slice(i, 1)) for i in range(len(TEXTS))])
    assert singles.equals(whole)
    assert function(table.slice(0, 0)).schema == whole.schema


def test_its_pipeline_file_is_valid(shouting: ModuleType, blocks: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "shouting.yaml"
    path.write_text(blocks["shouting.yaml"], "utf-8")
    pipeline = load_pipeline(path)
    assert [resolve.operator_name(type(step)) for step in pipeline.steps] == ["read.jsonl", "text.shouting"]
    assert pipeline.steps[1] == shouting.Shouting(max_upper_frac=0.3)
