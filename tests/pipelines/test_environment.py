"""Versions of what a run used."""

from __future__ import annotations

import platform
from importlib import metadata

import pytest

from headrace.pipelines.environment import package_versions


def test_installed_packages_are_told_and_missing_ones_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = metadata.version

    def without_ray(package: str) -> str:
        if package == "ray":
            raise metadata.PackageNotFoundError(package)
        return ask(package)

    monkeypatch.setattr(metadata, "version", without_ray)
    found = package_versions()
    assert found["pylance"] == ask("pylance")
    assert found["python"] == platform.python_version()
    assert found["unicode"].count(".") == 2  # NFC and word splitting follow it
    assert "ray" not in found
