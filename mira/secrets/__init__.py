"""Where secrets are kept: the local key store, or Vault."""
