"""Cards of methods, protocols and tracks as lines: all fields, or as many as a screen has."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH, HEIGHT = 80, 24
_LABEL = 15
_FIRST = ("method", "id", "title", "summary", "question", "scenario", "note", "subject")
_LAST = ("about_the_data", "data_options", "idea", "groups", "protocols", "set", "file")
_WORDS = 3  # lines of a text
_ENTRIES = 7  # lines of a field with fields


def long_lines(card: Mapping[str, Any]) -> Iterator[str]:
    """Every field, those within fields below them."""
    for key, value in card.items():
        yield from _field(key, value)


def _field(key: str, value: Any, indent: str = "") -> Iterator[str]:
    label = f"{indent}{key.replace('_', ' ')}:"
    value = _named(value)
    if isinstance(value, dict) and value:
        yield label
        for k, v in value.items():
            yield from _field(str(k), v, indent + "  ")
        return
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    if value is None or value in ({}, ""):
        value = "none"
    first, *others = textwrap.wrap(str(value), 88) or [""]
    yield f"{label:<14} {first}"
    yield from (f"{'':<14} {line}" for line in others)


def _named(value: Any) -> Any:
    """A protocol's generations and settings by their names, as a track's models are."""
    if isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value):
        return {each["name"]: {k: v for k, v in each.items() if k != "name"} for each in value}
    return value


def short_lines(card: Mapping[str, Any], name: str) -> list[str]:
    """Lines that say most of a card, on a screen of 24 lines of 80 characters; ``name`` is its own.

    Fields that are empty, none or off are left out; fields within fields stand in one line.
    """
    known = {key: _named(value) for key, value in card.items() if _says(value)}
    middle = [key for key in known if key not in (*_FIRST, *_LAST)]
    order = [*(k for k in _FIRST if k in known), *middle, *(k for k in _LAST if k in known)]
    lines = [line for key in order for line in _short_field(key, known[key])]
    room = HEIGHT - 3  # the line below, the command's own and the next prompt
    whole = len(lines) <= room and not any(line.endswith("…") for line in lines)
    return [*lines[:room], f"Everything: bench info {name} --all"] if not whole else lines


def _says(value: Any) -> bool:
    return value not in (None, "", False, 0, {}, [], ())


def _short_field(key: str, value: Any) -> Iterator[str]:
    label = f"{key.replace('_', ' ')}:".ljust(_LABEL - 1) + " "
    every = key == "variants"  # a variant may turn something off
    if isinstance(value, dict) and any(map(_has_more, value.values())):
        entries = [(str(k), v) for k, v in value.items()]
        for i, (name, fields) in enumerate(entries[:_ENTRIES]):
            more = f" (and {len(entries) - _ENTRIES} more) …" if i == _ENTRIES - 1 else ""
            words = f"{name}: {_one_line(fields, every)}".removesuffix(": ")
            rest = more if len(entries) > _ENTRIES else ""
            yield _cut(f"{label if i == 0 else ' ' * _LABEL}{words}", WIDTH - len(rest)) + rest
        return
    words = _one_line(value) if isinstance(value, dict) else _plain(value)
    lines = textwrap.wrap(words, WIDTH - _LABEL) or [""]
    if len(lines) > _WORDS:
        lines = [*lines[: _WORDS - 1], _cut(" ".join(lines[_WORDS - 1 :]), WIDTH - _LABEL)]
    yield f"{label}{lines[0]}"
    yield from (f"{'':<{_LABEL}}{line}" for line in lines[1:])


def _has_more(value: Any) -> bool:
    """Tell fields, and a value with a note: they take a line each."""
    return isinstance(value, dict) or "  # " in str(value)


def _one_line(fields: Any, every: bool = False) -> str:
    """Fields, those that say something if not ``every``, with their values."""
    if not isinstance(fields, dict):
        return _plain(fields)
    told = {k: v for k, v in fields.items() if every or _says(v)}
    return ", ".join(f"{k.replace('_', ' ')} {_one_line(v)}" for k, v in told.items())


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return " ".join(str(value).split())


def _cut(words: str, width: int) -> str:
    return words if len(words) <= width else words[: width - 1].rstrip() + "…"
