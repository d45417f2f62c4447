"""The composition root: everything is made, wired by hand, started in order, closed in reverse."""

from mira.app.resources import Resources, open_resources
from mira.app.serving import serve

__all__ = ["Resources", "open_resources", "serve"]
