"""The engine of mutations: what a sound file becomes where values, texts or bytes of it are wrong.

A :class:`Form` takes a file apart into plain values and puts it together again, with checksums
that fit: what is wrong is then looked for behind them. :func:`other_values` and
:func:`other_bytes` go over all places of a file, and at each to the next of the wrong values, so
that all places together see them all.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.hostile import TOKEN

Path = tuple[Any, ...]
Files = Iterator[tuple[str, bytes]]

TEXTS: Mapping[str, str] = {
    "script": f"<script>{TOKEN}()</script>", "image": f"<img src=x{TOKEN} onerror={TOKEN}()>",
    "svg": f"<svg/onload={TOKEN}()>", "element": f"</p></td></div><{TOKEN}>",
    "end-of-script": f"</script><script>{TOKEN}()</script>",
    "end-of-comment": f"--><script>{TOKEN}()</script><!--",
    "end-of-title": f"</title></style></textarea><script>{TOKEN}()</script>",
    "double-quote": f'" onmouseover="{TOKEN}()" x="',
    "single-quote": f"' onmouseover='{TOKEN}()' x='",
    "back-quote": f"` onmouseover=`{TOKEN}()` x=`", "address": f"javascript:{TOKEN}()",
    "address-in-disguise": f" \tJaVaScRiPt:{TOKEN}()",
    "data-address": f"data:text/html,<script>{TOKEN}()</script>",
    "entities": f"&lt;script&gt;{TOKEN}()&lt;/script&gt;&#60;img src=x{TOKEN}&#62;",
    "template": f"{{{{ {TOKEN}.__class__ }}}}{{% raw %}}${{{TOKEN}}}",
    "markdown": f"[x](javascript:{TOKEN}()) | `a` | **b** | <{TOKEN}>",
    "latex": f"\\input{{/etc/passwd}}\\write18{{touch {TOKEN}}} % $ & _ # ^ ~",
    "rich-markup": f"[bold red]{TOKEN}[/bold red] [/] [link=file:///etc/passwd]x[/link] [[",
    "spreadsheet": f"=cmd|' /C {TOKEN}'!A0", "format": f"{{0.__class__}} %s %n %(x)s {TOKEN}",
    "clear-screen": f"a\x1b[2J\x1b[H{TOKEN}", "window-title": f"\x1b]0;{TOKEN}\x07",
    "terminal-link": f"\x1b]8;;http://x/{TOKEN}\x1b\\a\x1b]8;;\x1b\\",
    "c1-control": f"\x9b2J\x9d0;{TOKEN}\x9c", "bells": "\x07\x08\x0b\x0c\x7f\x00",
    "carriage-return": f"good\rbad {TOKEN}", "line-break": f"a\nbench: {TOKEN}\n\tTraceback-like",
    "line-separators": f"a\u2028b\u2029c\x85{TOKEN}",
    "right-to-left": f"\u202e{TOKEN}\u202c\u2066x\u2069",
    "zero-width": f"b\u200bc\u200dt\ufeff\u00ad{TOKEN}", "lone-surrogate": f"\ud800{TOKEN}\udfff",
    "noncharacters": f"\uffff\U0010ffff\ufdd0{TOKEN}", "tags": "\U000e0041\U000e0042" + TOKEN,
    "combining": "z" + "\u0300\u0323" * 500 + TOKEN, "parent": f"../../../outside/{TOKEN}",
    "absolute": f"/tmp/{TOKEN}", "backslashes": f"..\\..\\{TOKEN}", "dots": "..", "dot": ".",
    "dash": f"--out={TOKEN}", "spaces": "   ", "nothing": "", "null": f"a\x00{TOKEN}",
    "device-name": "CON", "name-of-300": "n" * 300, "name-of-100000": TOKEN + "n" * 100_000,
    "colon": "bct:a:b:c", "plus": "a+b+c", "looks-like-a-file": "seed-0.json",
    "proto": "__proto__", "dunder": "__class__.__init__.__globals__", "digits": "9" * 5000,
    "arabic-digits": "٣٣", "command": f"__import__('os').system('touch {TOKEN}')",
}  # fmt: skip
WRONG: Mapping[str, Any] = {
    "null": None, "true": True, "zero": 0, "minus-one": -1, "half": 0.5, "text": "seven",
    "number-as-text": "7", "list": [], "mapping": {}, "list-of-null": [None],
    "nested-list": [[[[1]]]], "long-list": [0] * 50_000,
    "mapping-of-mapping": {"": {"": {"": {}}}}, "2-to-63": 2**63, "2-to-64": 2**64,
    "a-million": 10**6, "10-to-12": 10**12, "10-to-400": 10**400, "1e308": 1e308, "tiny": 5e-324,
    "nan": math.nan, "inf": math.inf, "minus-inf": -math.inf, "negative-zero": -0.0,
}  # fmt: skip
TOKENS = (
    b"", b"\0", b"\xff", b"\n", b" ", b"-1", b"0", b"1e999", b"NaN", b"null", b"[]", b"{}", b'"',
    b"'", b"[", b"]", b"{", b"}", b",", b":", b"&a ", b"*a", b"<<: ", b"!!int ", b"!!binary ",
    b"- ", b"? ", b"%", b"\\u0000", b"\\ud800", b"9" * 400, b"\x1b[2J", b"\xe2\x80\xae",
    b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"2024-13-45", b"__proto__", b"a" * 300,
    b"[" * 2000, b"{\"a\":" * 2000,
)  # fmt: skip
"""Bytes that are put into files."""
_NUMBERS = (b"\xff\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"\x01\0\0\0")
_DEPTHS = (900, 100_000)
_HERE = "@here@"


@dataclass(frozen=True)
class Form:
    """A format of files.

    Attributes:
        loads: A sound file as mappings, lists and plain values.
        dumps: The inverse, whatever is among the values, with checksums that fit.
        repair: Mend the checksums of a file some bytes of which are others.
        many: Entries of a list or mapping that has very many: so many that quadratic time shows,
            and so few that a list of images is no honest work of gigabytes.
    """

    loads: Callable[[bytes], Any] = json.loads
    dumps: Callable[[Any], bytes] = lambda value: json.dumps(value).encode()
    repair: Callable[[bytes], bytes] = bytes
    many: int = 10_000


JSON = Form()


def paths(value: Any, most: int = 2, at: Path = ()) -> Iterator[Path]:
    """Paths of values in nested mappings and lists; of longer lists the first ``most``."""
    parts = list(enumerate(value[:most])) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, Mapping) else parts:
        yield (*at, key)
        yield from paths(each, most, (*at, key))


def at(value: Any, path: Path) -> Any:
    """The value at a place."""
    for part in path:
        value = value[part]
    return value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy with another value at a place."""
    if not path:
        return new
    made = copy.deepcopy(value)
    at(made, path[:-1])[path[-1]] = new
    return made


def removed(value: Any, path: Path) -> Any:
    """A copy without what stands at a place."""
    made = copy.deepcopy(value)
    del at(made, path[:-1])[path[-1]]
    return made


def spread(items: Sequence[Any], n: int) -> list[Any]:
    """So many of the items, evenly from all of them; of fewer each several times."""
    return [items[i * len(items) // n] for i in range(n)] if items else []


def named(items: Mapping[str, Any], number: int) -> tuple[str, Any]:
    """One of the items; each in turn as the number grows."""
    return list(items.items())[number % len(items)]


def other_values(
    raw: bytes, form: Form = JSON, most: int = 80, tokens: Mapping[str, str] | None = None
) -> Files:
    """A sound file, and it with each of its values otherwise.

    Args:
        raw: The sound file.
        form: Its format.
        most: Values of a wrong type; half as many hostile texts, a quarter each of values that are
            missing, mappings with another key, lists and mappings of many entries.
        tokens: What stands for a value as it is, beside deep lists and mappings.
    """
    value = form.loads(raw)
    places = list(paths(value))
    texts = [path for path in places if isinstance(at(value, path), str)]
    inner = [p for p in [(), *places] if isinstance(at(value, p), (dict, list)) and at(value, p)]
    keyed = [path for path in inner if isinstance(at(value, path), dict)]
    changes: list[tuple[str, Callable[[], Any]]] = [("sound", lambda: value)]

    def add(path: Path, what: str, change: Callable[..., Any], *more: Any) -> None:
        where = ".".join(map(str, path)).replace("/", "-over-")[:60] or "all"
        changes.append((f"{where}-{what}", lambda: change(value, path, *more)))

    for i, path in enumerate(spread(places, most)):
        name, wrong = named(WRONG, i)
        add(path, f"is-{name}", replaced, wrong)
    for i, path in enumerate(spread(texts, most // 2)):
        name, text = named(TEXTS, i)
        add(path, f"is-{name}", replaced, text)
    for i, path in enumerate(spread(keyed, most // 4)):
        name, text = named(TEXTS, 5 * i)
        add(path, f"has-key-{name}", _keyed, text)
    for path in spread(places, most // 4):
        add(path, "missing", removed)
    for path in spread(inner, most // 4):
        add(path, "many", _many, form.many)
    yield from _dumped(changes, form)
    brackets = {f"lists-{n}-deep": "[" * n + "]" * n for n in _DEPTHS} | {
        f"mappings-{n}-deep": '{"a":' * n + "1" + "}" * n for n in _DEPTHS
    }  # fmt: skip
    leaves = [path for path in places if path not in inner]
    for i, (name, token) in enumerate((brackets | dict(tokens or {})).items()):
        path = leaves[i % len(leaves)]
        made = form.dumps(replaced(value, path, _HERE))
        for mark in (f'"{_HERE}"', f"'{_HERE}'", _HERE):
            made = made.replace(mark.encode(), token.encode("utf-8", "surrogatepass"))
        yield f"token-{name}", made


def _keyed(value: Any, path: Path, key: str) -> Any:
    found = at(value, path)
    return replaced(value, path, {**found, key: next(iter(found.values()))})


def _many(value: Any, path: Path, n: int) -> Any:
    """A copy with very many of what is there once."""
    found = at(value, path)
    if isinstance(found, list):
        return replaced(value, path, [found[0]] * n)
    key, first = next(iter(found.items()))
    return replaced(value, path, found | {f"{key}{i}": first for i in range(n)})


def _dumped(changes: list[tuple[str, Callable[[], Any]]], form: Form) -> Files:
    seen = set()
    for name, change in changes:
        try:
            made = form.dumps(change())
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
            continue  # the format has no such file
        if name not in seen:
            yield name, made
        seen.add(name)


def other_bytes(raw: bytes, form: Form = JSON, most: int = 40) -> Files:
    """A sound file cut, doubled, overwritten and added to, at so many places."""
    for share in (0.1, 0.5, 0.9):
        yield f"cut-at-{share}", raw[: int(len(raw) * share)]
    yield "without-last-byte", raw[:-1]
    yield "twice", raw + raw
    yield "more-behind", raw + bytes(64)
    for i in range(most):
        place = i * len(raw) // most
        number, token = _NUMBERS[i % len(_NUMBERS)], TOKENS[i % len(TOKENS)]
        over = raw[:place] + number + raw[place + 4 :]
        yield f"number-{i % len(_NUMBERS)}-at-{place}-{i}", form.repair(over)
        if token:
            yield (
                f"token-{i % len(TOKENS)}-at-{place}-{i}",
                form.repair(raw[:place] + token + raw[place:]),
            )
