"""The command `mira`."""
