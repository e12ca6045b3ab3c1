"""Texts and values that do not belong where they are put."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

from support.hostile import TOKEN

TEXTS: Mapping[str, str] = {
    "script": f"<script>{TOKEN}()</script>",
    "image": f"<img src=x{TOKEN} onerror={TOKEN}()>",
    "svg": f"<svg/onload={TOKEN}()>",
    "element": f"</p></td></div><{TOKEN}>",
    "end-of-script": f"</script><script>{TOKEN}()</script>",
    "end-of-comment": f"--><script>{TOKEN}()</script><!--",
    "end-of-title": f"</title></style></textarea><script>{TOKEN}()</script>",
    "double-quote": f'" onmouseover="{TOKEN}()" x="',
    "single-quote": f"' onmouseover='{TOKEN}()' x='",
    "back-quote": f"` onmouseover=`{TOKEN}()` x=`",
    "address": f"javascript:{TOKEN}()",
    "address-in-disguise": f" \tJaVaScRiPt:{TOKEN}()",
    "data-address": f"data:text/html,<script>{TOKEN}()</script>",
    "entities": f"&lt;script&gt;{TOKEN}()&lt;/script&gt;&#60;img src=x{TOKEN}&#62;",
    "template": f"{{{{ {TOKEN}.__class__ }}}}{{% raw %}}${{{TOKEN}}}",
    "markdown": f"[x](javascript:{TOKEN}()) | `a` | **b** | <{TOKEN}>",
    "latex": f"\\input{{/etc/passwd}}\\write18{{touch {TOKEN}}} % $ & _ # ^ ~",
    "rich-markup": f"[bold red]{TOKEN}[/bold red] [/] [link=file:///etc/passwd]x[/link] [[",
    "spreadsheet": f"=cmd|' /C {TOKEN}'!A0",
    "format": f"{{0.__class__}} %s %n %(x)s {TOKEN}",
    "clear-screen": f"a\x1b[2J\x1b[H{TOKEN}",
    "window-title": f"\x1b]0;{TOKEN}\x07",
    "terminal-link": f"\x1b]8;;http://x/{TOKEN}\x1b\\a\x1b]8;;\x1b\\",
    "c1-control": f"\x9b2J\x9d0;{TOKEN}\x9c",
    "bells": "\x07\x08\x0b\x0c\x7f\x00",
    "carriage-return": f"good\rbad {TOKEN}",
    "line-break": f"a\nbench: {TOKEN}\n\tTraceback-like",
    "line-separators": f"a\u2028b\u2029c\x85{TOKEN}",
    "right-to-left": f"\u202e{TOKEN}\u202c\u2066x\u2069",
    "zero-width": f"b\u200bc\u200dt\ufeff\u00ad{TOKEN}",
    "lone-surrogate": f"\ud800{TOKEN}\udfff",
    "noncharacters": f"\uffff\U0010ffff\ufdd0{TOKEN}",
    "combining": "z" + "\u0300\u0323" * 500 + TOKEN,
    "tags": "\U000e0041\U000e0042" + TOKEN,
    "parent": f"../../../outside/{TOKEN}",
    "absolute": f"/tmp/{TOKEN}",
    "backslashes": f"..\\..\\{TOKEN}",
    "dots": "..",
    "dot": ".",
    "dash": f"--out={TOKEN}",
    "spaces": "   ",
    "nothing": "",
    "null": f"a\x00{TOKEN}",
    "device-name": "CON",
    "name-of-300": "n" * 300,
    "name-of-100000": TOKEN + "n" * 100_000,
    "colon": "bct:a:b:c",
    "plus": "a+b+c",
    "looks-like-a-file": "seed-0.json",
    "proto": "__proto__",
    "dunder": "__class__.__init__.__globals__",
}  # fmt: skip

WRONG: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus-one": -1,
    "half": 0.5,
    "text": "seven",
    "number-as-text": "7",
    "list": [],
    "mapping": {},
    "list-of-null": [None],
    "nested-list": [[[[1]]]],
    "long-list": [0] * 50_000,
    "mapping-of-mapping": {"": {"": {"": {}}}},
    "2-to-63": 2**63,
    "2-to-64": 2**64,
    "10-to-400": 10**400,
    "1e308": 1e308,
    "tiny": 5e-324,
    "nan": math.nan,
    "inf": math.inf,
    "minus-inf": -math.inf,
    "negative-zero": -0.0,
}


def paths(value: Any, most: int = 2, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of values in nested mappings and lists; of longer lists the first ``most``."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield (*at, key)
            yield from paths(each, most, (*at, key))
    elif isinstance(value, list):
        for i, each in enumerate(value[:most]):
            yield (*at, i)
            yield from paths(each, most, (*at, i))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The value at a place."""
    for part in path:
        value = value[part]
    return value


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at a place."""
    made = copy.deepcopy(value)
    at(made, path[:-1])[path[-1]] = new
    return made


def removed(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy without what stands at a place."""
    made = copy.deepcopy(value)
    del at(made, path[:-1])[path[-1]]
    return made


def poisoned(value: Any, text: str) -> Any:
    """A copy with every text and every free key followed by another one."""
    if isinstance(value, str):
        return value + text
    if isinstance(value, list):
        return [poisoned(each, text) for each in value]
    if isinstance(value, Mapping):
        return {key: poisoned(each, text) for key, each in value.items()}
    return value


def name(path: tuple[Any, ...]) -> str:
    """A place in words that may stand in a file's name."""
    return ".".join(str(part).replace("/", "-over-") for part in path)


def rotating(items: Mapping[str, Any], start: int, n: int) -> list[tuple[str, Any]]:
    """Some of the items, other ones for each start: all places together see them all."""
    every = list(items.items())
    return [every[(start * n + i) % len(every)] for i in range(n)]
