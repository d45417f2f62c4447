"""Opens the key store that the settings name."""

from __future__ import annotations

from mira.clock import Clock
from mira.errors import StartupRefused
from mira.secrets.base import Secrets
from mira.secrets.local import LocalSecrets
from mira.settings import Settings


def open_secrets(settings: Settings, clock: Clock) -> Secrets:
    """Return the key store: Vault where `MIRA_VAULT_ADDR` is set, else the local one.

    Nothing is contacted yet. The local one is in `<home>/keys`, made if need be. Raises
    StartupRefused when the settings for Vault are not complete.
    """
    if not settings.vault_addr:
        directory = settings.home / "keys"
        try:
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StartupRefused(
                f"{directory} cannot be made: {error.strerror}.",
                "Set MIRA_HOME to a directory that MIRA may have for itself.",
            ) from None
        return LocalSecrets(directory, clock=clock)
    if not settings.vault_role_id or not settings.vault_secret_id:
        raise StartupRefused(
            "MIRA_VAULT_ADDR is set, but not the AppRole that MIRA logs in with.",
            "Set MIRA_VAULT_ROLE_ID and MIRA_VAULT_SECRET_ID, or unset MIRA_VAULT_ADDR.",
        )
    # hvac and what it needs take a while to load; who uses the local store never pays for it.
    from mira.secrets.vault import VaultSecrets

    return VaultSecrets(
        settings.vault_addr,
        role_id=settings.vault_role_id,
        secret_id=settings.vault_secret_id,
        mount=settings.vault_mount,
        ca=settings.vault_ca,
        clock=clock,
    )
