"""From a reference to a pinned version: what is read never moves under the reader."""

from __future__ import annotations

import difflib

import lance

from headrace.errors import DatasetNotFound, StorageUnavailable
from headrace.storage.channels import channel_version, channels, tags
from headrace.storage.foreign import FIX, first_line, is_missing, storage_calls
from headrace.storage.head import open_head, version_numbers
from headrace.storage.lake import Lake
from headrace.storage.reference import Reference


def resolve_version(lake: Lake, ref: Reference | str) -> int:
    """The version number that the reference means now; DatasetNotFound lists what there is."""
    ref = Reference.parse(ref) if isinstance(ref, str) else ref
    head = open_head(lake, ref.name)
    if ref.at is None:
        return int(head.version)
    if isinstance(ref.at, int):
        versions = version_numbers(head)
        if ref.at in versions:
            return ref.at
        told = f"versions are {_spans(versions)}"
        raise DatasetNotFound(f"dataset {ref.name}", f"version {ref.at}", "must be one of its versions", told)
    version = channel_version(lake, ref.name, ref.at)
    if version is not None:
        return version
    fixed = tags(lake, ref.name)
    if ref.at in fixed:
        return fixed[ref.at]
    known = sorted({*fixed, *channels(lake, ref.name)})
    near = difflib.get_close_matches(ref.at, known, n=3, cutoff=0.5) or known[:8]
    told = f"there are {', '.join(near)}" if near else "it has none yet"
    raise DatasetNotFound(f"dataset {ref.name}", repr(ref.at), "must be one of its channels or tags", told)


def open_version(lake: Lake, ref: Reference | str) -> lance.LanceDataset:
    """The dataset, pinned to the version that the reference means now."""
    ref = Reference.parse(ref) if isinstance(ref, str) else ref
    return open_pinned(lake, ref.name, resolve_version(lake, ref))


def open_pinned(lake: Lake, name: str, version: int) -> lance.LanceDataset:
    """The dataset at a version that was resolved before, for workers; DatasetNotFound where it was cleaned away."""
    uri = lake.dataset_uri(name)
    try:
        with storage_calls(uri):
            return lance.dataset(uri, version=version, storage_options=lake.storage_options())
    except ValueError as error:
        if is_missing(error):
            rule = "must be one of its versions"
            raise DatasetNotFound(f"dataset {name}", f"version {version}", rule, "it may be cleaned away") from error
        raise StorageUnavailable(uri, first_line(error), "the storage must answer", FIX) from error


def _spans(versions: list[int]) -> str:
    """`1-3, 7` for 1, 2, 3, 7."""
    spans: list[list[int]] = []
    for version in versions:
        if spans and spans[-1][1] == version - 1:
            spans[-1][1] = version
        else:
            spans.append([version, version])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
