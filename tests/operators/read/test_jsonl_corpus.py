"""The JSON lines reader on real documents and on one document that is most of a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from headrace.operators.read.jsonl import Jsonl
from tests.operators.read.reading import corpus, read_all


def test_the_corpus_is_read_whole() -> None:
    folder = corpus()
    read = read_all(Jsonl(root=str(folder), include=["docs-*.jsonl.zst"]), 64 << 20)
    assert (read.rows.num_rows, read.errors.num_rows) == (58_857, 0)
    assert read.rows.schema.names[6:] == ["lang", "path"]
    first = folder / "docs-00.jsonl.zst"
    with first.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
        wanted = [json.loads(line) for line in stream.read().splitlines()]
    found = read.rows.slice(0, len(wanted)).select(["id", "text", "source", "lang", "path"]).to_pylist()
    ids = [row["id"] for row in found]
    assert len(set(ids)) == len(ids), "the file has some rows twice, under one id"
    assert len([id_ for id_ in ids if "~" in id_]) == len(wanted) - len({row["id"] for row in wanted})
    for row in found:
        row["id"] = row["id"].partition("~")[0]
    assert found == [{name: row[name] for name in found[0]} for row in wanted]


def test_the_corpus_reads_the_same_in_parts() -> None:
    reader = Jsonl(root=str(corpus()), include=["*.jsonl"])
    whole = read_all(reader, 1 << 30)
    assert whole.rows.num_rows == 291
    assert whole.errors.num_rows == 0
    assert read_all(reader, 10_000).rows.equals(whole.rows)


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_huge_line_among_small_ones_needs_little_memory(tmp_path: Path, ascii_only: bool) -> None:
    """In a process of its own, since the peak of this one is history."""
    huge = 100 << 20
    piece = "x" if ascii_only else "wörd 😀 \\n"
    with (tmp_path / "a.jsonl").open("wb") as out:
        small = b'{"text": "small", "id": "s"}\n'
        out.write(small + b'{"id": "huge", "text": "')
        for _ in range(100):
            out.write((piece * ((1 << 20) // len(piece.encode()))).encode())
        out.write(b'"}\n' + small + b"broken\n")
    script = (
        "import resource, sys, pyarrow as pa\n"
        "from headrace.operators.read.jsonl import Jsonl\n"
        "reader = Jsonl(root=sys.argv[1]); (file,) = reader.files(); schema = reader.schema([file])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "lengths, errors = [], 0\n"
        "for part in reader.parts(file, 8 << 20):\n"
        "    for batch in reader.build()(part, schema):\n"
        "        lengths += [len(view.as_buffer()) for view in batch.rows['text']]; errors += batch.errors.num_rows\n"
        "        del batch\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, errors, *lengths)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    peak_kib, errors, *lengths = map(int, done.stdout.split())
    assert errors == 1
    assert lengths[0] == lengths[2] == 5
    assert lengths[1] > huge * 0.8
    assert peak_kib * 1024 < 6 * huge
