"""Where the lake is and how to reach it: the one place that reads the environment.

Secrets live here and nowhere else: they are never in a pipeline file, lineage, a pickle, a log or a repr.
"""

from __future__ import annotations

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from headrace.errors import SpecError


class Settings(BaseSettings):
    """Values from `HEADRACE_*` variables; arguments given in code win over them."""

    model_config = SettingsConfigDict(env_prefix="HEADRACE_", frozen=True, extra="forbid", hide_input_in_errors=True)

    lake: str = Field(default="./lake", description="root of the lake: a folder or s3://bucket/prefix")
    storage_options: dict[str, SecretStr] = Field(
        default_factory=dict, description="options of the object store, as JSON in HEADRACE_STORAGE_OPTIONS"
    )

    @classmethod
    def read(cls) -> Settings:
        """Settings of this process; SpecError where a variable cannot be understood."""
        try:
            return cls()
        except (SettingsError, ValidationError) as error:
            place = "environment HEADRACE_*"
            # `from None`: the cause holds the raw value, and that may be a secret.
            raise SpecError(place, "", str(error), "write HEADRACE_STORAGE_OPTIONS as a JSON object of texts") from None


def is_remote(uri: str) -> bool:
    """True for an object store's URI, False for a folder on this machine."""
    return "://" in uri


def storage_options(uri: str) -> dict[str, str] | None:
    """Plain options for whoever opens `uri` now; folders need none.  Do not keep the answer."""
    if not is_remote(uri):
        return None
    options = Settings.read().storage_options
    return {key: value.get_secret_value() for key, value in options.items()} or None
