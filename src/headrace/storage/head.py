"""Opening a dataset as it is now: the step below references, for the code that commits and moves channels."""

from __future__ import annotations

import difflib

import lance

from headrace.errors import DatasetNotFound, StorageUnavailable
from headrace.storage.foreign import FIX, first_line, is_missing, storage_calls
from headrace.storage.lake import Lake


def open_head(lake: Lake, name: str) -> lance.LanceDataset:
    """The newest version; DatasetNotFound with the near names where there is no such dataset."""
    dataset = head_or_none(lake, name)
    if dataset is None:
        names = lake.names()
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
        told = f"near names: {', '.join(near)}" if near else "the lake has no datasets" if lake.exists() else "no lake"
        raise DatasetNotFound(f"lake {lake.uri}", repr(name), "must be a dataset of this lake", told)
    return dataset


def head_or_none(lake: Lake, name: str) -> lance.LanceDataset | None:
    """The newest version, or None where there is no such dataset."""
    uri = lake.dataset_uri(name)
    try:
        with storage_calls(uri):
            return lance.dataset(uri, storage_options=lake.storage_options())
    except ValueError as error:  # Lance says "not there" this way, and other things too
        if is_missing(error):
            return None
        raise StorageUnavailable(uri, first_line(error), "the storage must answer", FIX) from error


def version_numbers(dataset: lance.LanceDataset) -> list[int]:
    """The versions that still exist, oldest first (clean-up removes old ones)."""
    with storage_calls(dataset.uri):
        return sorted(int(ref["version"]) for ref in dataset.version_refs())


def transaction_properties(dataset: lance.LanceDataset, version: int) -> dict[str, str]:
    """What the commit of this version carried; empty where it carried nothing or is cleaned away."""
    try:
        transaction = dataset.read_transaction(version)
    except (OSError, ValueError) as error:
        if is_missing(error):
            return {}
        raise StorageUnavailable(dataset.uri, first_line(error), "the storage must answer", FIX) from error
    return dict((transaction.transaction_properties if transaction else None) or {})
