"""Limits of JSON that others wrote: a record, the header of a details file.

What is within them can be read, compared, printed and drawn in seconds, whatever it says.
"""

import re
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from benchmark.errors import BenchError

MOST_VALUES = 40_000
"""Values of one document; the largest committed record has 6,592."""
DEEPEST = 20
"""Mappings and lists within each other."""
LONGEST_KEY = 200
LONGEST_TEXT = 10_000
_LARGEST_WHOLE = 2**63
_LARGEST = 1e100
"""Sums and squares of such numbers are finite."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line feed, and lone surrogates."""


def parse_json(text: bytes, where: str | Path) -> Any:
    """The value of a JSON document of somebody else's.

    Raises:
        BenchError: If it is not JSON, too large or nested too deeply, or has a number out of range,
            a control character in a text, or a key that does not print on one line.
    """
    try:
        value = from_json(text, allow_inf_nan=False)  # JSON has no NaN
    except ValueError as error:
        raise BenchError(f"{where}: not valid JSON: {error}") from error
    _check(value, str(where))
    return value


def _check(document: Any, where: str) -> None:
    n = 0
    todo: list[tuple[dict[str, Any] | list[Any], str, int]] = [({"": document}, "", 0)]
    while todo:
        part, place, depth = todo.pop()
        n += len(part)
        if n > MOST_VALUES:
            raise BenchError(f"{where}: expected at most {MOST_VALUES} values")
        if depth > DEEPEST:
            raise BenchError(f"{where}: nested more than {DEEPEST} deep at {place:.60}")
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(key, str) and not (len(key) <= LONGEST_KEY and key.isprintable()):
                raise BenchError(
                    f"{where}: {place:.60}: expected a key of at most {LONGEST_KEY} printable "
                    f"characters, got {key!r:.60}"
                )
            if isinstance(value, dict | list):
                todo.append((value, f"{place}.{key}".strip("."), depth + 1))
            elif wrong := _wrong(value):
                name = f"{place}.{key}".strip(".")
                raise BenchError(f"{where}: {name:.200}: {wrong}, got {value!r:.60}")


def _wrong(value: Any) -> str:
    """Expected form of a text or a number that is out of range; else nothing."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"expected at most {LONGEST_TEXT} characters"
        if not value.isprintable() and _CONTROL.search(value):
            return "expected text without control characters"
    elif isinstance(value, int):
        if not -_LARGEST_WHOLE <= value < _LARGEST_WHOLE:
            return "expected a whole number of at most 64 bits"
    elif value is not None and not -_LARGEST <= value <= _LARGEST:
        return f"expected a number within ±{_LARGEST:g}"
    return ""
