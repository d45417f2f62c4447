"""Where secrets are kept: the local key store, or Vault."""

from mira.secrets.base import Secrets
from mira.secrets.build import open_secrets

__all__ = ["Secrets", "open_secrets"]
