"""Ids must be unique in what a run publishes, also where the source's own keys are not.

A reader sees one part at a time.  So each unit notes the hashes of its kept ids; before publishing, ids that occur
twice are found over all units, and the units that hold later occurrences are done again with these rows renamed to
`id~suffix`, the suffix a hash of text and coordinates.  The first occurrence, in the order of the stored plan, keeps
the bare id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import xxhash

from headrace.pipelines.records import UnitRecord
from headrace.storage.objects import ObjectStore


def renames_key(run: str) -> str:
    """Object key of a run's renames: unit -> hashes of ids, each with whether its first row there keeps the id."""
    return f"runs/{run}/renames.json"


def id_hashes(ids: pa.ChunkedArray) -> bytes:
    """uint64 hash of each id, in row order."""
    hashes = (xxhash.xxh3_64_intdigest(name.encode()) for name in ids.to_pylist())
    return np.fromiter(hashes, np.uint64, len(ids)).tobytes()


def find_repeats(objects: ObjectStore, records: Sequence[UnitRecord]) -> dict[str, dict[str, bool]]:
    """Unit -> hash of a repeated id -> may its first row there keep the id; only units with something to mend."""
    hashes = [np.frombuffer(objects.get(record.scratch["ids"][0]), np.uint64) for record in records]
    if not hashes:
        return {}
    values, counts = np.unique(np.concatenate(hashes), return_counts=True)
    repeated = values[counts > 1]
    if not len(repeated):
        return {}
    found: dict[str, dict[str, bool]] = {}
    seen: set[int] = set()
    for record, own in zip(records, hashes, strict=True):
        here, times = np.unique(own[np.isin(own, repeated)], return_counts=True)
        mend = {int(h): int(h) not in seen for h, n in zip(here, times, strict=True) if n > 1 or int(h) in seen}
        seen.update(int(h) for h in here)
        if mend:
            found[str(record.unit)] = {str(h): first for h, first in mend.items()}
    return found


def store_repeats(objects: ObjectStore, run: str, found: dict[str, dict[str, bool]]) -> None:
    """Fix what is renamed, once and for all."""
    objects.put_once(renames_key(run), json.dumps(found).encode())


def rename_repeats(objects: ObjectStore, run: str, unit: int, kept: pa.Table) -> tuple[pa.Table, int]:
    """The unit's kept rows with repeated ids renamed, and how many were."""
    body = objects.get_or_none(renames_key(run))
    mend = {} if body is None else {int(h): first for h, first in json.loads(body).get(str(unit), {}).items()}
    if not mend:
        return kept, 0
    ids, renamed = kept["id"].to_pylist(), 0
    told = [kept[name].to_pylist() for name in ("text", "source_file", "source_offset") if name in kept.column_names]
    for row, name in enumerate(ids):
        own = xxhash.xxh3_64_intdigest(name.encode())
        if own not in mend:
            continue
        if mend[own]:
            mend[own] = False
            continue
        suffix = xxhash.xxh3_64_hexdigest(json.dumps([column[row] for column in told], default=str).encode())[:8]
        ids[row] = f"{name}~{suffix}"
        renamed += 1
    at = kept.column_names.index("id")
    return kept.set_column(at, kept.schema.field(at), pa.array(ids, kept.schema.field(at).type)), renamed
