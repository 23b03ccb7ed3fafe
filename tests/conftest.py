"""What every test starts from: a clean environment, no telemetry, and a lake of its own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.storage.lake import Lake

REPOSITORY = Path(__file__).resolve().parent.parent

# Set before anything imports Ray or Prefect, and inherited by every process that a test starts.
os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    DO_NOT_TRACK="1",
    PREFECT_SERVER_ANALYTICS_ENABLED="false",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",  # else Ray warns of a default that will change
)
# A developer's own lake or credentials must neither be seen nor touched; the corpus is read-only input.
for _name in [name for name in os.environ if name.startswith("HEADRACE_") and name != "HEADRACE_CORPUS"]:
    del os.environ[_name]


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory: a test that resolves `./lake` gets one of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that does not exist yet, in the test's own folder."""
    from headrace.storage.lake import Lake

    return Lake.resolve(str(tmp_path / "lake"))


@pytest.fixture(scope="session")
def corpus_dir() -> Path:
    """The folder of real documents: HEADRACE_CORPUS, or `shared/corpus` beside the repository."""
    folder = Path(os.environ.get("HEADRACE_CORPUS") or REPOSITORY.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}; set HEADRACE_CORPUS")
    return folder


@pytest.fixture(scope="session")
def ray_local() -> Iterator[None]:
    """One small local Ray for the whole session; skips where the `pipelines` extra is not installed."""
    ray = pytest.importorskip("ray", reason="needs the extra headrace[pipelines]")
    if ray.is_initialized():  # somebody's test started its own and left it running
        pytest.fail("Ray is running already; use the ray_local fixture, or shut your own down")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lance is not fork-safe")  # Ray's children exec at once
        ray.init(
            num_cpus=2,
            object_store_memory=256 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    yield
    ray.shutdown()
