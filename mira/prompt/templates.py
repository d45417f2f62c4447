"""The texts that prompts are made of: files, filled in strictly."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).parent / "templates"


class Templates:
    """Renders `templates/*.md.j2`. An unknown variable is an error, not an empty string."""

    def __init__(self, folder: Path = FOLDER) -> None:
        # Prompts are text for a model, not HTML: escaping would only disfigure them.
        self._environment = Environment(
            loader=FileSystemLoader(folder),
            undefined=StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            # Templates change with the program: nothing to look for on disk in every turn.
            auto_reload=False,
        )

        # Most of what is rendered in a turn is what was rendered in the last.
        self._rendered = lru_cache(maxsize=256)(self._render)

    def render(self, name: str, **values: Hashable) -> str:
        """The text of template `name` (without suffix), without white space around it."""
        return self._rendered(name, tuple(values.items()))

    def _render(self, name: str, values: tuple[tuple[str, Hashable], ...]) -> str:
        return self._environment.get_template(f"{name}.md.j2").render(values).strip()
