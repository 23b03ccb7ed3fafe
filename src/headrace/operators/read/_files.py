"""Which files a reader sees, and the check that they are still the planned ones.

1. A file is known by path, size and mark; the mark holds mtime, ctime and inode, so that content of the same size
   with its old mtime put back still shows.
2. Whoever opens a planned file compares before the first byte and after the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from headrace.errors import InputChanged, SpecError, StorageUnavailable
from headrace.operators.read._globs import compile_globs
from headrace.operators.shapes import InputFile

DANGLING = "dangling"
"""Mark of a symbolic link that points nowhere; reading it gives an error row."""

_FIX = "start the run again, so that it plans the files as they are now; don't write into a folder that a run reads"


def list_files(root: str, include: Sequence[str], exclude: Sequence[str], allow_empty: bool) -> list[InputFile]:
    """The regular files under `root` that match, sorted by path; linked folders are not entered.

    Raises SpecError where the root is missing, or nothing matches and that is not allowed.
    """
    base = os.path.abspath(root)
    if not os.path.lexists(base):
        near = os.path.dirname(base)
        while not os.path.isdir(near):
            near = os.path.dirname(near)
        inside = ", ".join(sorted(os.listdir(near))[:8]) or "nothing"
        raise SpecError("root", repr(root), "there is no such file or folder", f"{near} exists and holds {inside}")
    if not os.path.isdir(base):
        return [_look(os.path.dirname(base), os.path.basename(base))]
    wanted, unwanted = compile_globs(include), compile_globs(exclude)
    try:
        paths = sorted(path for path in _walk(base, "") if wanted(path) and not unwanted(path))
    except OSError as error:
        raise StorageUnavailable(str(error.filename or base), str(error), "the folder must be readable") from error
    files = [_look(base, path) for path in paths]
    if not files and not allow_empty:
        told = f"nothing under {base} matches include={list(include)} exclude={list(exclude)}"
        raise SpecError("root", repr(root), told, "correct the globs, or set allow_empty: true")
    return files


def _walk(base: str, folder: str) -> Iterator[str]:
    with os.scandir(os.path.join(base, folder)) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(base, path)
            elif entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)):
                yield path


def _look(root: str, path: str) -> InputFile:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        fix = "rename it, or leave it out with exclude"
        raise SpecError("root", ascii(path), "a file's name must be UTF-8", fix) from error
    try:
        found = os.stat(os.path.join(root, path))
    except FileNotFoundError:
        return InputFile(path, root, 0, DANGLING)
    except OSError as error:
        raise StorageUnavailable(os.path.join(root, path), str(error), "the file must be readable") from error
    return InputFile(path, root, found.st_size, mark_of(found))


def mark_of(found: os.stat_result) -> str:
    """What changes whenever the content may have changed."""
    return f"{found.st_mtime_ns}-{found.st_ctime_ns}-{found.st_ino}"


def full_path(file: InputFile) -> str:
    """Where the file lies."""
    return os.path.join(file.root, file.path)


@contextmanager
def open_planned(file: InputFile) -> Iterator[BinaryIO]:
    """Open a planned file.  Raises InputChanged where it is another one now, or becomes one while it is read."""
    place = full_path(file)
    try:
        with open(place, "rb") as handle:
            _compare(file, os.fstat(handle.fileno()))
            try:
                yield handle
            except GeneratorExit:  # the reader was left early; nobody relies on the rest
                raise
            except Exception as error:
                _compare_path(file, error)  # a changed file is the better explanation
                raise
            _compare_path(file, None)
    except FileNotFoundError as error:
        raise _changed(file, "no file") from error
    except StorageUnavailable:
        raise
    except OSError as error:
        raise StorageUnavailable(place, str(error), "the file must be readable", "check the disk and rights") from error


def _compare_path(file: InputFile, cause: Exception | None) -> None:
    try:
        found = os.stat(full_path(file))
    except FileNotFoundError as error:
        raise _changed(file, "no file") from error
    try:
        _compare(file, found)
    except InputChanged as changed:
        raise changed from cause


def _compare(file: InputFile, found: os.stat_result) -> None:
    if (found.st_size, mark_of(found)) != (file.size_bytes, file.mark):
        raise _changed(file, f"{found.st_size} bytes, mark {mark_of(found)}")


def _changed(file: InputFile, got: str) -> InputChanged:
    rule = f"the run was planned with {file.size_bytes} bytes, mark {file.mark}"
    return InputChanged(full_path(file), got, rule, _FIX)


def last_folder(file: InputFile) -> str:
    """Last name of the root: the source of rows that name none."""
    return os.path.basename(file.root.rstrip("/")) or "root"
