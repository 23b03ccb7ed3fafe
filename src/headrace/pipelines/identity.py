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


def renames_folder(run: str) -> str:
    """Folder of a run's renames: unit -> hashes of ids, each with whether its first row there keeps the id.

    One object a round, since a new name may be one that the source uses too; finding the same twice does no harm.
    """
    return f"runs/{run}/renames"


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
    number = len(objects.list(renames_folder(run)))
    objects.put_once(f"{renames_folder(run)}/{number:03d}.json", json.dumps(found).encode())


def rename_repeats(objects: ObjectStore, run: str, unit: int, kept: pa.Table) -> tuple[pa.Table, int]:
    """The unit's kept rows with repeated ids renamed, and how many were."""
    rounds = [json.loads(objects.get(info.key)).get(str(unit), {}) for info in objects.list(renames_folder(run))]
    if not any(rounds):
        return kept, 0
    given = kept["id"].to_pylist()
    ids = list(given)
    told = [kept[name].to_pylist() for name in ("text", "source_file", "source_offset") if name in kept.column_names]
    for mend in rounds:
        first = {int(key): keeps for key, keeps in mend.items()}
        for row, name in enumerate(ids):
            own = xxhash.xxh3_64_intdigest(name.encode())
            if own not in first:
                continue
            if first[own]:
                first[own] = False
                continue
            suffix = xxhash.xxh3_64_hexdigest(json.dumps([column[row] for column in told], default=str).encode())[:8]
            ids[row] = f"{name}~{suffix}"
    at = kept.column_names.index("id")
    renamed = sum(old != new for old, new in zip(given, ids, strict=True))
    return kept.set_column(at, kept.schema.field(at), pa.array(ids, kept.schema.field(at).type)), renamed
