"""A small generated corpus of which it is known beforehand what becomes of every row."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

MIN_CHARS = 20
FILE_BYTES = 2_600
"""Every file is about this large, so that with `UNIT_BYTES` each is a unit of its own."""
UNIT_BYTES = 4_096

REFUSED = "REFUSEME"
"""The operator `Refuse` raises on a text that holds this word."""
DEADLY = "KILLME"
"""The operator `Deadly` kills its process on a text that holds this word."""

_WORDS = [
    a + b for a in ("weir", "mill", "race", "sluice", "gate", "pond", "stone") for b in ("", "s", "house", "water")
]


@dataclass(frozen=True)
class Doc:
    """One line of the input; `id` is None where the line is cut, so that no reader can read it."""

    file: str
    id: str | None
    text: str


@dataclass(frozen=True)
class Expected:
    """What the standard pipeline must make of a corpus, worked out row by row in plain Python."""

    kept: list[tuple[str, str]]  # id, text
    rejects: list[tuple[str, int, str, str | None]]  # id, step, rule, partner
    quarantine: list[tuple[str, int]]  # source_file, step


def make_docs(seed: int, files: int = 6) -> list[Doc]:
    """Documents in the order of files and lines: good ones, short ones, repeated, refused and cut ones."""
    rng = random.Random(seed)
    docs: list[Doc] = []
    texts: list[str] = []
    for number in range(files):
        size, row = 0, 0
        while size < FILE_BYTES:
            text = " ".join(rng.choices(_WORDS, k=rng.randint(15, 40)))
            choice = rng.random()
            if choice < 0.1:
                text = f"short {number} {row}"
            elif choice < 0.2:
                text = f"{text} {REFUSED}"
            elif choice < 0.4 and texts:
                text = rng.choice(texts)
            else:
                texts.append(text)
            name = None if 0.4 <= choice < 0.46 else f"{rng.randrange(16**8):08x}-{number}-{row}"
            docs.append(Doc(f"part-{number:03d}.jsonl", name, text))
            size += len(text) + 60
            row += 1
    return docs


def write_docs(folder: Path, docs: list[Doc]) -> None:
    """Write the files; existing ones of the same name are replaced."""
    lines = defaultdict(list)
    for doc in docs:
        line = json.dumps({"id": doc.id, "text": doc.text})
        lines[doc.file].append(line if doc.id is not None else line[: len(line) // 2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in lines.items():
        (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def expect(docs: list[Doc], min_chars: int = MIN_CHARS, refuse: str = REFUSED, between: int = 0) -> Expected:
    """The outcome of [reader, normalize, refuse, `between` harmless steps, dedup.exact, length]."""
    first: dict[str, str] = {}
    readable = [(doc.id, doc.text, doc.file) for doc in docs if doc.id is not None]
    quarantine = [(doc.file, 0) for doc in docs if doc.id is None]
    quarantine += [(file, 2) for _, text, file in readable if refuse in text]
    passed = [(name, text) for name, text, _ in readable if refuse not in text]
    for name, text in passed:
        first[text] = min(first.get(text, name), name)
    rejects: list[tuple[str, int, str, str | None]] = []
    kept = []
    for name, text in passed:
        if first[text] != name:
            rejects.append((name, 3 + between, "duplicate", first[text]))
        elif len(text) < min_chars:
            rejects.append((name, 4 + between, "min_chars", None))
        else:
            kept.append((name, text))
    return Expected(sorted(kept), sorted(rejects), sorted(quarantine))
