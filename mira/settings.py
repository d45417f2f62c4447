"""All settings of the process: read once, here, from the environment and nowhere else.

Every field is `MIRA_<NAME>`; the provider keys and addresses also answer to the names that the
providers' own tools use.
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from mira.errors import StartupRefused

Purpose = Literal[
    "conversation",
    "subcortex",
    "summary",
    "extraction",
    "assessment",
    "synthesis",
    "critic",
    "observer",
    "research",
]


def default_home() -> Path:
    """`~/.mira`; for root the system's state directory: a server that drops root can enter it."""
    return Path("/var/lib/mira") if os.geteuid() == 0 else Path.home() / ".mira"


def _ours(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class Settings(BaseSettings):
    """What can be set from outside. Immutable; an unknown or ill-typed value refuses the start."""

    model_config = SettingsConfigDict(env_prefix="MIRA_", frozen=True, extra="ignore")

    home: Path = Field(default_factory=default_home)
    host: str = "127.0.0.1"
    port: int = Field(1993, ge=0, le=65535)
    user: str = "me"
    timezone: str = "UTC"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    database_url: SecretStr | None = None
    database_url_app: SecretStr | None = None
    database_url_engine: SecretStr | None = None
    database_pool: int = Field(16, ge=1, le=200)
    valkey_url: SecretStr | None = None

    vault_addr: str | None = None
    vault_role_id: SecretStr | None = None
    vault_secret_id: SecretStr | None = None
    vault_mount: str = "secret"
    vault_ca: Path | None = None

    model: str | None = None
    fallback_model: str | None = None
    model_subcortex: str | None = None
    model_summary: str | None = None
    model_extraction: str | None = None
    model_assessment: str | None = None
    model_synthesis: str | None = None
    model_critic: str | None = None
    model_observer: str | None = None
    model_research: str | None = None
    anthropic_api_key: SecretStr | None = Field(
        None, validation_alias=_ours("MIRA_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY")
    )
    anthropic_base_url: str | None = Field(
        None, validation_alias=_ours("MIRA_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL")
    )
    openai_api_key: SecretStr | None = Field(
        None, validation_alias=_ours("MIRA_OPENAI_API_KEY", "OPENAI_API_KEY")
    )
    openai_base_url: str | None = Field(
        None, validation_alias=_ours("MIRA_OPENAI_BASE_URL", "OPENAI_BASE_URL")
    )
    max_output_tokens: int = Field(8192, ge=16)
    first_token_timeout: float = Field(60.0, gt=0)
    stall_timeout: float = Field(30.0, gt=0)

    embedding_model: str = "all-MiniLM-L6-v2"
    embedding_model_before: str | None = None
    ner_model: str = "en_core_web_sm"
    compute_threads: int = Field(2, ge=1, le=64)

    waiting_turns: int = Field(64, ge=1)
    passivate_after: float = Field(1800.0, gt=0)
    stop_grace: float = Field(20.0, ge=0)
    history_tokens: int = Field(40_000, ge=500)
    segment_minutes: float = Field(120.0, gt=0)
    summaries_shown: int = Field(4, ge=1, le=5)
    primer: bool = False
    subcortex_deadline: float = Field(1.5, gt=0)
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = ()

    @property
    def address(self) -> str:
        """The address that a person types."""
        host = "127.0.0.1" if self.host in ("", "0.0.0.0") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def model_for(self, purpose: Purpose) -> str | None:
        """The `provider:model` set for a purpose; the conversation's model where none is set."""
        if purpose == "conversation":
            return self.model
        value: str | None = getattr(self, f"model_{purpose}")
        return value or self.model


def load() -> Settings:
    """Read the environment.

    Raises StartupRefused naming each variable that cannot be read, never its value.
    """
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(
            f"{'MIRA_' + '.'.join(str(p) for p in e['loc']).upper()}: {e['msg']}"
            for e in error.errors(include_input=False, include_url=False)
        )
        raise StartupRefused(f"A setting cannot be read: {wrong}", "Correct or unset it.") from None


def unknown_variables() -> tuple[tuple[str, str | None], ...]:
    """Variables named MIRA_… that are no setting, each with the setting that it is nearest to."""
    known = {f"MIRA_{name.upper()}" for name in Settings.model_fields}
    # Names count whatever their case, as in reading them.
    strange = sorted(
        name for name in os.environ
        if name.upper().startswith("MIRA_") and name.upper() not in known
    )  # fmt: skip
    near = ((name, get_close_matches(name.upper(), known, n=1)) for name in strange)
    return tuple((name, found[0] if found else None) for name, found in near)


def child_environment(**extra: str) -> dict[str, str]:
    """The small environment in which child processes run: no keys, a fixed locale, and `extra`."""
    kept = {name: os.environ[name] for name in ("PATH", "TZ", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", **extra}


def keep_tokenizers_in_their_thread() -> None:
    """Keep the library tokenizers from starting a thread for every core; it asks at each call."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def python_is_supported() -> bool:
    """Whether this interpreter is one that MIRA runs on (3.11 or newer)."""
    return sys.version_info >= (3, 11)
