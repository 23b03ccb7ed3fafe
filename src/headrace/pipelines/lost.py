"""Scratch that was lost since its unit finished: found before it is needed, so that the unit is done again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.pipelines.records import UnitRecord, finished_units, mark_broken
from headrace.pipelines.selection import selection_key
from headrace.storage.objects import ObjectStore


def set_lost_scratch_aside(
    objects: ObjectStore, works: Sequence[str], num_units: int
) -> Iterator[tuple[int, int, str]]:
    """Set aside the records whose scratch is gone or cut; yields segment, unit and object key of each.

    `works` are the object prefixes of all segments.  Last first, since a unit that is done again needs the scratch of
    the segment before; where nothing is open behind a segment, its scratch is not needed and not looked for.
    """
    for index in reversed(range(len(works) - 1)):
        work = works[index]
        is_selected = objects.size_bytes(selection_key(work)) is not None
        if is_selected and len(finished_units(objects, works[index + 1])) >= num_units:
            continue
        finished = finished_units(objects, work)
        sizes = {info.key: info.size_bytes for info in objects.list(f"{work}/scratch")} if finished else {}
        for unit, key in finished.items():
            record = UnitRecord.from_json(objects.get(key))
            for name, (place, size_bytes) in record.scratch.items():
                # Scratch that was taken over from another run lies elsewhere.
                found = sizes[place] if place in sizes else objects.size_bytes(place)
                if found != size_bytes and not (is_selected and name == "keys"):
                    mark_broken(objects, work, unit, f"its scratch is lost ({place})", record)
                    yield index, unit, place
                    break
