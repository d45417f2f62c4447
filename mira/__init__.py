"""MIRA: a self-hosted assistant with one conversation that never ends."""

__version__ = "0.1.0"
