"""What goes wrong with Vault, said in a sentence that tells what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from hvac import exceptions as vault

from mira.errors import SecretsUnavailable


@contextmanager
def said_clearly(address: str) -> Iterator[None]:
    """Turn what hvac and its transport raise into SecretsUnavailable.

    Causes are cut off, since they hold requests and answers.
    """
    try:
        yield
    except (vault.VaultError, OSError, KeyError, TypeError, ValueError) as error:
        raise SecretsUnavailable(_sentence(address, error)) from None


def _sentence(address: str, error: Exception) -> str:
    # The transport's errors are OSErrors too, and its kinds overlap: the order matters.
    match error:
        case vault.VaultDown() if "sealed" in str(error):
            return f"Vault at {address} is sealed. Unseal it (bao operator unseal)."
        case vault.VaultDown():
            return f"Vault at {address} is not ready ({_first(error)}). Try again."
        case vault.Forbidden():
            return (
                f"Vault at {address} denies access. See that MIRA_VAULT_MOUNT is right and that "
                "the policy of MIRA's role allows create, read and update on data/mira/*, and "
                "list, read and delete on metadata/mira/*."
            )
        case vault.InvalidPath():
            return (
                f"Vault at {address} has no such place ({_first(error)}). See that "
                "MIRA_VAULT_ADDR and MIRA_VAULT_MOUNT are right and the mount is kv version 2."
            )
        case vault.VaultError():
            return f"Vault at {address} answered: {_first(error)}."
        case requests.exceptions.SSLError():
            return (
                f"The certificate of Vault at {address} is not trusted. Set MIRA_VAULT_CA to the "
                "certificate of its authority."
            )
        case requests.exceptions.Timeout():
            return f"Vault at {address} does not answer in time. See whether it is overloaded."
        case requests.exceptions.ConnectionError():
            return (
                f"Vault at {address} cannot be reached. See whether it runs and MIRA_VAULT_ADDR "
                "is right."
            )
        case _:
            # A malformed address, a CA file that is not there, or an answer that is not Vault's.
            return (
                f"Vault at {address} cannot be used ({type(error).__name__}). See that "
                "MIRA_VAULT_ADDR names a Vault server and that MIRA_VAULT_CA exists."
            )


def _first(error: vault.VaultError) -> str:
    return str(error.errors[0])[:200] if error.errors else type(error).__name__
