"""What tests of crashes share: a process that forks runs, and a site to run in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.corpus import Doc, make_docs
from tests.pipelines.driving import Site, Zygote, make_site, zygote


@pytest.fixture(scope="session")
def forks() -> Iterator[Zygote]:
    """One zygote for all tests."""
    with zygote() as process:
        yield process


@pytest.fixture(scope="session")
def docs() -> list[Doc]:
    """The standard corpus: six files, each a unit."""
    return make_docs(seed=1)


@pytest.fixture
def site(tmp_path: Path, forks: Zygote, docs: list[Doc]) -> Site:
    """A site with the standard corpus and pipeline."""
    return make_site(tmp_path / "site", forks, docs)
