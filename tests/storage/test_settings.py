from __future__ import annotations

import traceback

import pytest
from pydantic import ValidationError

from headrace.errors import SpecError
from headrace.storage.settings import Settings, is_remote, storage_options

SECRET = "s3cr3t-value"


def test_defaults() -> None:
    settings = Settings.read()
    assert (settings.lake, settings.storage_options) == ("./lake", {})


def test_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_LAKE", "/data/lake")
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", f'{{"aws_secret_access_key": "{SECRET}"}}')
    assert Settings.read().lake == "/data/lake"
    assert storage_options("s3://bucket/lake") == {"aws_secret_access_key": SECRET}


def test_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", f'{{"aws_secret_access_key": "{SECRET}"}}')
    settings = Settings.read()
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.parametrize("text", [f'{{"key": "{SECRET}"', f'["{SECRET}"]', f'{{"key": ["{SECRET}"]}}'])
def test_a_wrong_value_is_refused_and_not_shown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", text)
    with pytest.raises(SpecError, match="HEADRACE_STORAGE_OPTIONS") as told:
        Settings.read()
    assert SECRET not in "".join(traceback.format_exception(told.value))


def test_a_folder_needs_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STORAGE_OPTIONS", '{"aws_region": "x"}')
    assert storage_options("/data/lake") is None
    assert not is_remote("/data/lake")


def test_settings_are_frozen_and_know_their_fields() -> None:
    with pytest.raises(ValidationError):
        Settings.read().lake = "elsewhere"  # type: ignore[misc]  # what is tested
    with pytest.raises(ValidationError):
        Settings(lak="./lake")  # type: ignore[call-arg]  # what is tested
