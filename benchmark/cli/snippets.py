"""Generated parts of Markdown files: ``python -m benchmark.cli.snippets FILE ...``.

The comment that opens a part says what generates it, ``<!-- end -->`` closes it::

    <!-- bench table results -p open-class -f markdown -->
    <!-- end -->

``bench ...`` is a command that prints Markdown; ``rows: bench ...`` keeps the rows of its tables
and leaves out titles and notes. ``docs NAME ...`` is one of ``GENERATORS``, which read protocols,
tracks, adapters, the metric catalogue, pydantic models and records.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.reading import Model
from benchmark.config.tracks import Track
from benchmark.errors import UnsuitedError

if TYPE_CHECKING:
    from benchmark.records.record import Record

_PART = re.compile(r"(<!-- (rows: bench|bench|docs) (.+?) -->\n)(.*?)(<!-- end -->)", re.S)


def renew(text: str, kinds: Sequence[str] = ("rows: bench", "bench", "docs")) -> str:
    """A file's text with its generated parts as they are now.

    Args:
        text: Markdown; commands read folders from the working directory.
        kinds: How the comments begin whose parts are renewed; other parts stay as they are.

    Raises:
        ValueError: If a command fails, with its message, or a generator is unknown.
    """

    def generate(part: re.Match[str]) -> str:
        opening, kind, command, _, closing = part.groups()
        if kind not in kinds:
            return part[0]
        words = shlex.split(command)
        body = _generated(words) if kind == "docs" else command_output(words)
        if kind == "rows: bench":
            body = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)^(?!\|).*$", "", body))
        return f"{opening}{body.strip()}\n{closing}"

    return _PART.sub(generate, text)


def command_output(words: list[str]) -> str:
    """Standard output of ``bench``.

    Raises:
        ValueError: If it fails.
    """
    from typer.testing import CliRunner

    from benchmark.cli.app import app

    result = CliRunner().invoke(app, words)
    if result.exit_code != 0:
        raise ValueError(f"bench {shlex.join(words)}: {result.stderr or result.exception}")
    return result.stdout


def _generated(words: Sequence[str]) -> str:
    name, *arguments = words
    if name not in GENERATORS:
        raise ValueError(f"docs {name}: expected one of {', '.join(GENERATORS)}")
    return "\n".join(GENERATORS[name](*arguments))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table whose cells hold Markdown, such as code, which tables of scores escape."""
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield "| " + " | ".join(" ".join(cell.replace("|", r"\|").split()) for cell in row) + " |"


def _codes(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _markdown(docstring: str) -> str:
    """A docstring's paragraphs: code in single backticks, angle brackets as text."""
    parts = docstring.replace("``", "`").split("`")
    return "`".join(p if i % 2 else p.replace("<", r"\<") for i, p in enumerate(parts))


def _protocols() -> Iterator[str]:
    every = [load_protocol(name) for name in registry.protocol_files()]
    rows = [(f"`{p.id}`", p.question, p.source) for p in every]
    yield from _table(("protocol", "question", "source"), rows)


def _protocol(name: str) -> Iterator[str]:
    protocol = load_protocol(name)
    yield f"**`{name}`** (version {protocol.version}; {protocol.source}). *{protocol.question}*"
    yield ""
    order = "a seeded order" if protocol.order == "seeded" else "the dataset's own order"
    yield f"- Classes count in {order}; the old classifier is {protocol.old_head}."
    yield f"- Tasks: {_codes(protocol.tasks)}."
    if protocol.settings:
        settings = (f"`{name}:{s.name}` {s.title or s.name}" for s in protocol.settings)
        yield f"- Settings: {'; '.join(settings)}."


def _tracks() -> Iterator[str]:
    every = [load_track(name) for name in registry.track_files()]
    heads = ("track", "what", "dataset", "models", "`--data-root`")
    rows = [
        (
            f"`{t.id}`", f"{t.title}. {t.note}", f"`{t.dataset}`, set `{t.evaluation}`",
            ", ".join(f"`{t.models[m].backbone}` {t.models[m].dim}" for m in ("old", "new")),
            "needed" if t.needs_root else "",
        )
        for t in every
    ]  # fmt: skip
    yield from _table(heads, rows)


def _suits() -> Iterator[str]:
    """Which protocols run on which tracks, as a dry run says it."""
    tracks = [load_track(name) for name in registry.track_files()]
    rows = []
    for name in registry.protocol_files():
        settings = list(expand(load_protocol(name)))
        counts = [sum(_suited(setting, track) for setting in settings) for track in tracks]
        words = {0: "", len(settings): "yes"}
        rows.append((f"`{name}`", *(words.get(count, "some") for count in counts)))
    yield from _table(("protocol", *(f"`{track.id}`" for track in tracks)), rows)


def _suited(protocol: Protocol, track: Track) -> bool:
    try:
        set_up(protocol, track, {}, ["independent"])
    except UnsuitedError:
        return False
    return True


def _methods() -> Iterator[str]:
    """A table of all adapters, then each one's card without its costs."""
    from benchmark.report.card import method_card

    cards = [method_card(name, Path("no-records")) for name in registry.method_files()]
    rows = [
        (f"`{c['method']}`", _codes(c["variants"]), _markdown(c["summary"]), c["paper"])
        for c in cards
    ]
    yield from _table(("method", "variants", "idea", "source"), rows)
    for card in cards:
        yield f"\n### `{card['method']}`\n\n{_markdown(card['idea'])}\n"
        yield f"- Source: {card['paper']}."
        yield f"- Needs: {', '.join(card['needs'])}."
        yield f"- Changes: {', '.join(card['changes']) or 'nothing'}. Trains: {card['trains']}."
        for name, text in card["parameters"].items():
            default, _, note = text.partition("  # ")
            yield f"- `{name} = {default}`{': ' if note else ''}{_markdown(note)}"
        for name, values in card["variants"].items():
            changed = _codes(f"{key} = {value!r}" for key, value in values.items())
            yield f"- Variant `{card['method']}:{name}`: {changed}"


def _metrics() -> Iterator[str]:
    from benchmark.metrics.catalog import describe, examples

    better = {True: "higher", False: "lower", None: "neither"}
    every = [describe(key) for key in examples()]
    rows = [(f"`{m.key}`", m.label, better[m.higher_is_better], m.unit, m.rules) for m in every]
    yield from _table(("key", "label", "better", "unit", "rules"), rows)


def _tasks() -> Iterator[str]:
    rows = []
    for name, module in registry.tasks().items():
        task = registry.task(name)
        summary = (importlib.import_module(module).__doc__ or "").partition("\n")[0]
        rows.append((f"`{name}`", summary, _codes(task.scores), _codes(task.needs)))
    yield from _table(("task", "what", "scores", "needs of the dataset"), rows)


def _orders() -> Iterator[str]:
    from benchmark.metrics.backfill_orders import ORDERS

    rows = [(f"`{name}`", _codes(order.needs)) for name, order in ORDERS.items()]
    yield from _table(("order", "needs"), rows)


def _sides() -> Iterator[str]:
    from benchmark.training.side_kinds import SIDES

    rows = [(f"`{name}`", s.title, s.data, str(s.bits)) for name, s in SIDES.items()]
    yield from _table(("kind", "what", "training images", "bits of a number"), rows)


def _fields(module: str) -> Iterator[str]:
    """Fields of the pydantic models that a module of ``benchmark`` declares."""
    for name, model in vars(importlib.import_module(f"benchmark.{module}")).items():
        if not (inspect.isclass(model) and issubclass(model, Model)):
            continue
        if model.__module__ != f"benchmark.{module}" or not inspect.get_annotations(model):
            continue
        properties = model.model_json_schema(by_alias=True)["properties"]
        own = [key for key in inspect.get_annotations(model) if key in model.model_fields]
        keys = [model.model_fields[key].alias or key for key in own]
        yield f"\n**`{name}`**: {_markdown(inspect.getdoc(model) or '')}\n"
        rows = [_field(key, properties[key]) for key in keys]
        yield from _table(("field", "type", "default", "meaning"), rows)


def _field(key: str, schema: Mapping[str, Any]) -> tuple[str, str, str, str]:
    # The defaults of a nested model stand at its own fields.
    default = "" if "$ref" in schema else f"`{schema['default']!r}`" if "default" in schema else ""
    meaning = _markdown(" ".join(schema.get("description", "").split()))
    return f"`{key}`", _type(schema), default, meaning


def _type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema's type in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return "any" if name == "JsonValue" else f"`{name}`"
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        return _codes(values)
    if isinstance(schema.get("additionalProperties"), dict):
        return f"name -> {_type(schema['additionalProperties'])}"
    if schema.get("type") == "array":
        items = schema.get("items") or schema["prefixItems"][0]
        return f"list of {_type(items)}"
    return str(schema.get("type", "any"))


def _evidence(folder: str) -> Iterator[str]:
    """How many methods have how many seeds, by protocol and track."""
    from benchmark.records.selection import read_selection

    places: dict[tuple[str, str], list[Record]] = {}
    for stored in read_selection([Path(folder)]):
        record = stored.record
        if record.status == "done":
            places.setdefault((record.protocol, record.track), []).append(record)
    rows = []
    for (protocol, track), records in sorted(places.items()):
        seeds = Counter(record.method for record in records)
        three = sum(n >= 3 for n in seeds.values())
        precision = sorted({r.environment.get("precision", "unknown") for r in records})
        counts = (str(len(seeds)), str(three), ", ".join(precision))
        rows.append((f"`{protocol}`", f"`{track}`", *counts))
    heads = ("protocol", "track", "methods and variants", "of these with 3 seeds", "precision")
    yield from _table(heads, rows)


GENERATORS: Mapping[str, Callable[..., Iterator[str]]] = {
    "protocols": _protocols, "protocol": _protocol, "tracks": _tracks, "suits": _suits,
    "methods": _methods, "metrics": _metrics, "tasks": _tasks, "orders": _orders, "sides": _sides,
    "fields": _fields, "evidence": _evidence,
}  # fmt: skip
"""Name in a comment -> lines of Markdown."""


def main(names: list[str]) -> None:
    """Renew files in place."""
    for path in map(Path, names):
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
