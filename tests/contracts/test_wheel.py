"""What a user installs is `src/headrace`, all of it and nothing else."""

from __future__ import annotations

import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

from packaging.requirements import Requirement

from tests.contracts._repository import PACKAGE, tracked


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def test_content_is_the_package_folder(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == source
    assert "headrace/py.typed" in shipped


def test_every_tracked_source_file_is_shipped(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    wanted = {path.removeprefix("src/") for path in tracked() if path.startswith("src/headrace/")}
    assert wanted - shipped == set()


def test_licence_and_command_are_shipped(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = (name for name in names if name.endswith("entry_points.txt"))
        assert "headrace = headrace.cli.main:main" in archive.read(points).decode()
    assert any(name.endswith("LICENSE") for name in names)
    assert _metadata(wheel)["License-Expression"] == "Apache-2.0"


def test_base_requirements_are_slim_and_name_the_right_lance(wheel: Path) -> None:
    wanted = [Requirement(row) for row in _metadata(wheel).get_all("Requires-Dist") or []]
    base = {row.name.lower() for row in wanted if row.marker is None}
    assert "pylance" in base  # its import name is lance; `lance` on the index is another project
    assert base.isdisjoint({"lance", "ray", "prefect", "numba", "polars", "torch", "zstandard", "pandas"})
