from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.main import main
from headrace.errors import HeadraceError
from tests.cli.support import Caller, best_cpu_seconds, command

HEAVY = ("lance", "pyarrow", "ray", "numba", "polars", "pandas", "torch", "pydantic", "obstore", "yaml")


def test_help_is_quick() -> None:
    assert best_cpu_seconds("from headrace.cli.main import main; main(['--help'])", 0.3) < 0.3


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, json\nfrom headrace.cli.main import main\nassert main(['--help']) == 0\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout.splitlines()[-1]) == []


def test_version(call: Caller) -> None:
    told = call("--version")
    assert told.code == 0
    assert re.fullmatch(r"headrace \d+\.\d+\.\d+\S*\n", told.out)


@pytest.mark.parametrize("arguments", [[], ["dataset"], ["runs"]])
def test_no_command_shows_the_commands(call: Caller, arguments: list[str]) -> None:
    told = call(*arguments)
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith(" ".join(["Usage: headrace", *arguments]))
    assert "Commands:" in told.err


def test_unknown_command_names_the_nearest(call: Caller) -> None:
    told = call("dataset", "shw")
    assert told.code == 2
    assert "'show'" in told.err
    assert "headrace dataset --help" in told.err


def test_wrong_usage_is_one_json_object_too(call: Caller) -> None:
    told = call("run", "--json")
    assert told.code == 2
    assert told.answer["error"]["kind"] == "UsageError"
    assert "FILE" in told.answer["error"]["message"]


def test_error_is_one_line_and_a_code(call: Caller, workdir: Path) -> None:
    told = call("run", "nope.yaml")
    assert told.code == 2
    assert told.out == ""
    assert [line for line in told.err.splitlines() if line.startswith("error: nope.yaml")]
    assert "Traceback" not in told.err


@pytest.mark.parametrize("where", ["front", "end"])
def test_debug_shows_the_traceback(call: Caller, workdir: Path, where: str) -> None:
    told = call("--debug", "run", "nope.yaml") if where == "front" else call("run", "nope.yaml", "--debug")
    assert told.code == 2
    assert "Traceback" in told.err


def test_unexpected_error_is_internal(call: Caller, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> list[str]:
        raise RuntimeError("boom\nmore")

    monkeypatch.setattr("headrace.storage.lake.Lake.names", broken)
    told = call("dataset", "ls")
    assert told.code == 70
    assert "RuntimeError: boom" in told.err
    assert "Traceback" not in told.err
    assert call("dataset", "ls", "--json").answer["error"]["exit_code"] == 70
    assert "Traceback" in call("dataset", "ls", "--debug").err


def test_every_class_keeps_its_exit_code(call: Caller, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HeadraceError)]
    assert len(kinds) > 8
    for kind in kinds:

        def failing(self: object, kind: type[HeadraceError] = kind) -> list[str]:
            raise kind("somewhere")

        monkeypatch.setattr("headrace.storage.lake.Lake.names", failing)
        assert call("dataset", "ls").code == kind.exit_code


def test_arguments_default_to_the_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["headrace", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("headrace ")


def test_reader_that_leaves_early_is_no_error(workdir: Path) -> None:
    script = "import sys; from headrace.cli.main import main; sys.exit(main())"
    pipe = f"{sys.executable} -c '{script}' operators | true; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, cwd=workdir)
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr
    assert ran.returncode in (0, 1)  # 0 where everything was written before the reader left


def test_narrow_encoding_costs_a_letter_only(workdir: Path) -> None:
    told = command("run", "ü.yaml", cwd=workdir, PYTHONIOENCODING="ascii")
    assert told.code == 2
    assert "?.yaml" in told.err
