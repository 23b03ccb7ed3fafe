"""Every path, link, dotted name, operator, command and make target that the documents cite is there."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from headrace.cli.main import app
from headrace.operators.resolve import names as operator_names
from tests.contracts._repository import ROOT

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)#\s]+)[^)\n]*\)")
DOTTED = re.compile(r"\bheadrace(?:\.[A-Za-z_]\w*)+")
PATH = re.compile(r"\.?[\w-][\w.-]*(/[\w.-]+)*/?")
TARGET = re.compile(r"\bmake ([a-z]+)\b")
COMMAND = re.compile(r"(?<![\w./-])headrace ([a-z][^\n`#|&;]*)")
CITED_ENDINGS = (".py", ".md", ".toml", ".txt", ".sh")
# Look like module paths, and are not: keys of a commit's properties and of a field's metadata, and an event.
NOT_MODULES = {
    "headrace.run",
    "headrace.pipeline",
    "headrace.source",
    "headrace.supersedes",
    "headrace.rejects_version",
    "headrace.quarantine_version",
    "headrace.published_at",
    "headrace.mode",
    "headrace.dataset.published",
}


def documents() -> list[Path]:
    folders = ("docs", "examples", "deploy", "benchmarks", "src/headrace")
    return sorted([*ROOT.glob("*.md"), *(path for folder in folders for path in (ROOT / folder).rglob("*.md"))])


def _prose(text: str) -> str:
    return FENCE.sub("", text)


def _dead_links(text: str, folder: Path) -> list[str]:
    targets = [
        target for target in LINK.findall(_prose(text)) if "://" not in target and not target.startswith("mailto:")
    ]
    return [target for target in targets if not (folder / target).exists()]


@cache
def _ignored_folders() -> frozenset[str]:
    return frozenset(line.strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines())


def _cites_a_path(span: str) -> bool:
    """Whether a code span names something of this repository, and not a dataset, an object key or a user's file."""
    if not PATH.fullmatch(span) or span.strip("/") in _ignored_folders():
        return False
    if "/" not in span:
        return span.endswith(CITED_ENDINGS)
    first, last = span.split("/")[0], span.rstrip("/").rpartition("/")[2]
    if first in _ignored_folders() or not (ROOT / first).exists():
        return span.endswith(CITED_ENDINGS)
    return first in ("src", "tests", ".ci") or span.endswith("/") or "." in last


def _dead_paths(text: str, folder: Path) -> list[str]:
    cited = [span for span in SPAN.findall(_prose(text)) if _cites_a_path(span)]
    return [span for span in cited if not _found(span, folder)]


def _found(span: str, folder: Path) -> bool:
    if (ROOT / span).exists() or (folder / span).exists():
        return True
    return folder != ROOT and next(folder.rglob(span.rstrip("/")), None) is not None


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            fields: dict[str, object] = getattr(found, "model_fields", {})
            if not hasattr(found, part) and part not in fields:
                return False
            found = getattr(found, part, None)
        return True
    return False


def _dead_names(text: str) -> list[str]:
    # A block with a title is a file of its own, and is run by the test of the document that shows it.
    shown = FENCE.sub(lambda block: "" if "title=" in block[1] else block[2], text)
    cited = {match.removesuffix(".") for match in DOTTED.findall(shown)} - NOT_MODULES
    return sorted(name for name in cited if not name.endswith((".yaml", ".py")) and not _resolves(name))


def _dead_operators(text: str) -> list[str]:
    known = set(operator_names())
    folders = "|".join(sorted({name.partition(".")[0] for name in known}))
    cited = [span for span in SPAN.findall(_prose(text)) if re.fullmatch(rf"({folders})(\.[a-z_0-9]+)+", span)]
    return [span for span in cited if span not in known and not span.endswith(CITED_ENDINGS)]


def _dead_targets(text: str) -> list[str]:
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    return sorted({target for piece in _code(text) for target in TARGET.findall(piece)} - known)


def _code(text: str) -> list[str]:
    return [block[1] for block in FENCE.findall(text)] + SPAN.findall(_prose(text))


@cache
def _command_line() -> dict[str, set[str]]:
    """ "run", "dataset why", ... -> its options; a group has none of its own but the root's."""
    root = typer.main.get_command(app)
    found: dict[str, set[str]] = {}
    todo: list[tuple[str, Any]] = [("", root)]
    while todo:
        name, command = todo.pop()
        found[name] = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        todo += [(f"{name} {word}".strip(), below) for word, below in getattr(command, "commands", {}).items()]
    return found


def _dead_commands(text: str) -> list[str]:
    known = _command_line()
    dead = []
    for line in (match for piece in _code(text) for match in COMMAND.findall(piece)):
        words = line.split()
        name = next((name for cut in (2, 1) if (name := " ".join(words[:cut])) in known), None)
        # A group's second word is a command of it ("dataset ls"), or a placeholder ("dataset …").
        if name is None or (_is_group(name) and words[1:] and re.fullmatch("[a-z]+", words[1])):
            dead.append(line)
            continue
        options = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        if options - known[name] - known[""] - {"--help"}:
            dead.append(line)
    return dead


def _is_group(name: str) -> bool:
    return any(other.startswith(f"{name} ") for other in _command_line())


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_document_cites_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    assert _dead_links(text, path.parent) == []
    assert _dead_paths(text, path.parent) == []
    assert _dead_names(text) == []
    assert _dead_operators(text) == []
    assert _dead_targets(text) == []
    assert _dead_commands(text) == []


def test_dead_citations_are_seen() -> None:
    text = (
        "See [that](docs/none.md), `src/headrace/none.py`, `storage/none.py`, `none.py`, `tests/none/`, `make none`.\n"
        "`headrace.errors.NoneError` `headrace.none` `text.none`\n"
        "Fine: [this](CONTRIBUTING.md) `docs/python` `pages/calm.lance` `lake/a/b.json` `headrace.errors.DataError`.\n"
        "```python title=none.py\nimport headrace.none2\n```\n```\nheadrace.none3\n```\n"
        "`headrace none` `headrace dataset none` `headrace run a.yaml --none`\n"
        "Fine: `headrace run a.yaml --engine ray` `headrace dataset …`\n"
    )
    assert _dead_links(text, ROOT) == ["docs/none.md"]
    assert _dead_paths(text, ROOT) == ["src/headrace/none.py", "storage/none.py", "none.py", "tests/none/"]
    assert _dead_names(text) == ["headrace.errors.NoneError", "headrace.none", "headrace.none3"]
    assert _dead_operators(text) == ["text.none"]
    assert _dead_targets(text) == ["none"]
    assert _dead_commands(text) == ["none", "dataset none", "run a.yaml --none"]


def test_what_a_demo_left_behind_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """README says `make demo`, then `make test`: with `./lake` there, keys of a lake are still no paths of ours."""
    (tmp_path / ".gitignore").write_text((ROOT / ".gitignore").read_text("utf-8"), "utf-8")
    (tmp_path / "lake").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.setattr("tests.contracts.test_docs_paths.ROOT", tmp_path)
    assert _dead_paths("`lake/a/b.json` `lake/docs/` `src/none.py`", tmp_path) == ["src/none.py"]
