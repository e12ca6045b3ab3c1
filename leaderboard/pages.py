"""Templates: compiled once, every value escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmark.report import numbers
from benchmark.report.renderers import html
from benchmark.report.text_table import TextTable
from leaderboard.names import method_href

_TEMPLATES = Path(__file__).parent / "templates"
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def embed(value: Any) -> Markup:
    r"""JSON that may stand in a script element: nothing in it ends the element or a line.

    Example:
        >>> str(embed({"a": "</script>"}))
        '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_ESCAPED))


def definitions(pairs: Iterable[tuple[str, str]]) -> Markup:
    r"""Names and values as a definition list, every text escaped.

    Long lists are put together here: a template takes five times as long.

    Example:
        >>> str(definitions([("a", "<b>")]))
        '<dl class="pairs">\n<div><dt>a</dt><dd>&lt;b&gt;</dd></div>\n</dl>'
    """
    lines = (
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in pairs
    )
    return Markup("\n".join(['<dl class="pairs">', *lines, "</dl>"]))


class Pages:
    """Renders the templates for one site.

    Args:
        site: What every page shows.
    """

    def __init__(self, site: dict[str, Any]) -> None:
        self._site = site

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # They do not change while a site is built; a look at each file for each page costs.
            auto_reload=False,
        )
        environment.filters |= {
            "embed": embed,
            "definitions": definitions,
            "block": _block,
            "notes": lambda table: Markup(html.notes(table)),
            "method_href": method_href,
            "metric": lambda key: numbers.metric(key).label,
        }
        return environment

    def load(self, *templates: str) -> None:
        """Compile templates now, before processes part that would each do so."""
        for template in templates:
            self._environment.get_template(f"{template}.html")

    def render(self, template: str, root: str = "", **values: Any) -> bytes:
        """A page.

        Args:
            template: File name without ``.html``.
            root: Way from the page to the site's root, ``../`` or empty.
            **values: What the template shows.
        """
        page = self._environment.get_template(f"{template}.html")
        # Lone surrogates have no bytes in UTF-8.
        return page.render(site=self._site, root=root, **values).encode("utf-8", "replace")


def _block(table: TextTable, classes: str = "", i: int = 0) -> Markup:
    """One block of a table, escaped by its renderer."""
    return Markup(html.block(table, i, classes=classes))
