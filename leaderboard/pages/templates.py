"""Templates: compiled once, every value escaped."""

import json
import re
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from benchmark.errors import printable
from benchmark.report import numbers
from benchmark.report.renderers import html
from benchmark.report.scenarios import CLASSES, KINDS
from benchmark.report.text_table import TextTable
from leaderboard.names import method_href

_ESCAPED = {char: f"\\u{ord(char):04x}" for char in "<>&"}


def embed(value: Any) -> Markup:
    r"""JSON that may stand in a script element: nothing in it ends the element or a line.

    Example:
        >>> str(embed({"a": "</script>"}))
        '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char, escaped in _ESCAPED.items():
        text = text.replace(char, escaped)
    return Markup(text)


def from_markdown(text: str) -> Markup:
    r"""A document as HTML; links to files that are not on the site are plain words.

    Example:
        >>> str(from_markdown("<!-- made --> See [a](b.md), [c](#d) & `<e>`."))
        '<p>See a, <a href="#d">c</a> &amp; <code>&lt;e&gt;</code>.</p>\n'
        >>> str(from_markdown("## In `x`\nText"))
        '<details id="in-x">\n<summary>In <code>x</code></summary>\n<p>Text</p>\n</details>\n'
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(re.sub(r"<!--.*?-->", "", text, flags=re.S))
    names = Counter[str]()
    for i, token in enumerate(tokens):
        if token.type == "heading_open":  # addresses as GitHub makes them
            plain = re.sub(r"[^\w\- ]", "", tokens[i + 1].content.lower())
            name = plain.replace(" ", "-")
            again = names[name]
            names[name] += 1
            token.attrSet("id", f"{name}-{again}" if again else name)
        kept, leads = [], [True]
        for child in token.children or ():
            if child.type == "link_open":
                leads.append(str(child.attrs["href"]).startswith(("#", "https://")))
            away = child.type.startswith("link_") and not leads[-1]
            if child.type == "link_close":
                leads.pop()
            if not away and child.type != "image":
                kept.append(child)
        token.children = kept if token.children is not None else None
    return Markup(_folded(parser.renderer.render(tokens, parser.options, {})))


def _folded(page: str) -> str:
    """Parts of a document below its first one, each folded below its heading."""
    first, *parts = re.split(r"(?=<h2 )", page)
    heading = re.compile(r"<h2 (.*?)>(.*?)</h2>(.*)", re.S)
    return first + "".join(
        heading.sub(r"<details \1>\n<summary>\2</summary>\3</details>\n", part) for part in parts
    )


@lru_cache(maxsize=4096)
def definitions(pairs: tuple[tuple[str, str], ...]) -> Markup:
    r"""Names and values as a definition list, every text escaped.

    Long lists are put together here: a template takes five times as long. Most come again on
    hundreds of pages.

    Example:
        >>> str(definitions((("a", "<b>"),)))
        '<dl class="pairs">\n<div><dt>a</dt><dd>&lt;b&gt;</dd></div>\n</dl>'
    """
    lines = (
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>"
        for name, value in pairs
    )
    return Markup("\n".join(['<dl class="pairs">', *lines, "</dl>"]))


@cache
def template(name: str) -> Template:
    """A template, compiled, by its file name, which may be without ``.html``."""
    return environment().get_template(name if "." in name else f"{name}.html")


def render(name: str, **values: Any) -> str:
    """A page, by the file name of its template; see :func:`template`.

    Its context would outlive it, in a ring of macros, with all boards: of 5,000 records the search
    for such rings takes a second.
    """
    context = template(name).new_context(values)
    try:
        return "".join(template(name).root_render_func(context))
    finally:
        context.parent.clear()
        context.vars.clear()


@cache
def environment() -> Environment:
    """The environment that all templates share."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,  # a look at the files for each page costs
        finalize=_shown,
    )
    made.filters |= {
        "embed": embed,
        "definitions": lambda pairs: definitions(tuple(pairs)),
        "block": _block,
        "notes": lambda table: Markup(html.notes(table)),
        "method_href": method_href,
        "metric": lambda key: numbers.metric(key).label,
        "kind": KINDS.__getitem__,
        "classes": CLASSES.__getitem__,
    }
    return made


def _shown(value: Any) -> Any:
    """Text with its control characters shown, and no number at a line's end without its unit."""
    return printable(value).replace(" %", "\u00a0%") if type(value) is str else value


def _block(table: TextTable, classes: str = "", i: int = 0) -> Markup:
    """One block of a table, escaped by its renderer."""
    return Markup(html.block(table, i, classes=classes))
