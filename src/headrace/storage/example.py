"""An id to ask about: a row that the newest live run of a version lost, else one that it kept."""

from __future__ import annotations

from headrace.errors import DatasetNotFound
from headrace.storage.foreign import storage_calls
from headrace.storage.lake import Lake
from headrace.storage.lineage import live, publications
from headrace.storage.literals import text_literal
from headrace.storage.open import open_pinned

_NEWEST_FRAGMENTS = 32
"""Where a run's lost rows lie; to look through all the rejects for an example would cost more than it tells."""


def example_id(lake: Lake, name: str, version: int) -> tuple[str, str] | None:
    """What became of a row (`dropped`, `quarantined` or `kept`) and its id; None where the version explains nothing."""
    for found in reversed(live(publications(lake, name, version))):
        ours = f"run = {text_literal(found.run)}"
        for outcome, place, number, wanted in (
            ("dropped", f"{name}.rejects", found.rejects_version, ours),
            ("quarantined", f"{name}.quarantine", found.quarantine_version, ours),
            ("kept", name, found.version, None),
        ):
            if number is not None and (row_id := _first_id(lake, place, number, wanted)) is not None:
                return outcome, row_id
    return None


def _first_id(lake: Lake, name: str, version: int, wanted: str | None) -> str | None:
    try:
        dataset = open_pinned(lake, name, version)
    except DatasetNotFound:  # cleaned away
        return None
    with storage_calls(dataset.uri):
        for fragment in dataset.get_fragments()[: -_NEWEST_FRAGMENTS - 1 : -1]:
            found = fragment.to_table(columns=["id"], filter=wanted, limit=1)
            if found.num_rows:
                return str(found["id"][0].as_py())
    return None
