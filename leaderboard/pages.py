"""Templates: compiled once, every value escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from html import escape as escape_once
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmark.report import numbers
from leaderboard.names import file_name

Text = str | tuple[str, str]
"""A text, or a text and an interval."""
_TEMPLATES = Path(__file__).parent / "templates"
# Names, labels and verdicts come again on thousands of pages.
escape = lru_cache(maxsize=1 << 16)(escape_once)
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

    Long lists and tables are put together here: a template takes five times as long.

    Example:
        >>> str(definitions([("a", "<b>")]))
        '<dl class="pairs">\n<div><dt>a</dt><dd>&lt;b&gt;</dd></div>\n</dl>'
    """
    found = [f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs]
    return Markup("\n".join(['<dl class="pairs">', *found, "</dl>"]))


def heads(names: Iterable[str]) -> Markup:
    """Headings of columns, every text escaped.

    Example:
        >>> str(heads(["<1"]))
        '<th scope="col">&lt;1</th>'
    """
    return Markup("".join(f'<th scope="col">{escape(name)}</th>' for name in names))


def lines(rows: Iterable[Sequence[Text]]) -> Markup:
    r"""Rows of a table: a heading, then texts, or texts with an interval; every one escaped.

    Example:
        >>> str(lines([["a", "<1", ("61.4", "±2.0")]]))
        '<tr><th scope="row">a</th><td>&lt;1</td><td>61.4 <small>±2.0</small></td></tr>\n'
    """
    found = []
    for name, *cells in rows:
        found.append(f'<tr><th scope="row">{escape(name)}</th>')
        for value in cells:
            text, spread = (value, "") if isinstance(value, str) else value
            more = f" <small>{escape(spread)}</small>" if spread else ""
            found.append(f"<td>{escape(text)}{more}</td>")
        found.append("</tr>\n")
    return Markup("".join(found))


class Pages:
    """Renders the templates for one site.

    Args:
        site: What every page shows.
    """

    def __init__(self, site: dict[str, Any]) -> None:
        self._site = site

    @cached_property
    def _environment(self) -> Environment:
        made = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # They do not change while a site is made; a look at each file for each page costs.
            auto_reload=False,
        )
        made.filters["embed"] = embed
        made.filters["definitions"] = definitions
        made.filters["heads"] = heads
        made.filters["lines"] = lines
        made.filters["file_name"] = file_name
        made.filters["metric"] = lambda key: numbers.metric(key).label
        return made

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
