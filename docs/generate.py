"""Generated parts of Markdown files: ``python docs/generate.py FILE ...``.

The comment that opens a part says what generates it, ``<!-- end -->`` closes it::

    <!-- bench table results -p open-class -f markdown -->
    <!-- end -->

``bench ...`` is a command that prints Markdown; ``docs NAME ...`` is one of ``GENERATORS``, which
read protocols, tracks, adapters, the metric catalogue and pydantic models; ``records NAME ...``
reads records, and ``plans NAME ...`` plans runs or builds networks, which takes its time.
"""

import csv
import importlib
import inspect
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from benchmark.cli import catalog
from benchmark.cli.app import app
from benchmark.config import registry
from benchmark.config.loading import load_protocol, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.reading import Model
from benchmark.config.tracks import Track
from benchmark.errors import UnsuitedError
from benchmark.harness.board_runs import seconds_spent
from benchmark.metrics.backfill_orders import ORDERS
from benchmark.metrics.catalog import describe, examples
from benchmark.records.files import read_selection
from benchmark.records.record import Record
from benchmark.report import render
from benchmark.report.card import method_card
from benchmark.report.outcome import RAW
from benchmark.report.text_table import simple_table
from benchmark.training.side_kinds import SIDES

_PART = re.compile(r"(<!-- (bench|docs|records|plans) (.+?) -->\n)(.*?)(<!-- end -->)", re.S)
_KINDS = ("bench", "docs", "records", "plans")


def renew(text: str, kinds: Sequence[str] = _KINDS) -> str:
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
        body = command_output(words) if kind == "bench" else _generated(*words)
        return f"{opening}{body.strip()}\n{closing}"

    return _PART.sub(generate, text)


def command_output(words: list[str]) -> str:
    """Standard output of ``bench``.

    Raises:
        ValueError: If it fails.
    """
    result = CliRunner().invoke(app, words)
    if result.exit_code != 0:
        raise ValueError(f"bench {shlex.join(words)}: {result.stderr or result.exception}")
    return result.stdout


def _generated(name: str, *arguments: str) -> str:
    if name not in GENERATORS:
        raise ValueError(f"docs {name}: expected one of {', '.join(GENERATORS)}")
    return "\n".join(GENERATORS[name](*arguments))


def _table(heads: str, *rows: Sequence[str]) -> list[str]:
    """A table of words; heads are separated by ``|``."""
    lines = [[cell.replace("``", "`") for cell in row] for row in rows]
    return [render(simple_table("", "", heads.split("|"), (), lines), "markdown").strip()]


def _codes(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _markdown(docstring: str) -> str:
    """A docstring's paragraphs: code in single backticks, angle brackets as text."""
    parts = re.sub(r":\w+:`", "`", docstring.replace("``", "`")).split("`")
    return "`".join(p if i % 2 else p.replace("<", r"\<") for i, p in enumerate(parts))


def _protocols() -> list[str]:
    rows = [(f"`{p.id}`", p.question, p.source) for p in catalog.protocols()]
    return _table("protocol|question|source", *rows)


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


def _tracks() -> list[str]:
    rows = [
        (
            f"`{t.id}`", catalog.summary(t), f"`{t.dataset}`, set `{t.evaluation}`",
            ", ".join(f"`{t.models[m].backbone}` {t.models[m].dim}" for m in ("old", "new")),
            "needed" if t.needs_root else "",
        )
        for t in catalog.tracks()
    ]  # fmt: skip
    return _table("track|what|dataset|models|`--data-root`", *rows)


def _suits() -> list[str]:
    """Protocols that run on each track, as a dry run says it."""
    tracks = catalog.tracks()
    rows = []
    for protocol in catalog.protocols():
        settings = list(expand(protocol))
        counts = [sum(_suited(setting, track) for setting in settings) for track in tracks]
        words = {0: "", len(settings): "yes"}
        rows.append((f"`{protocol.id}`", *(words.get(count, "some") for count in counts)))
    return _table("|".join(["protocol", *(f"`{track.id}`" for track in tracks)]), *rows)


def _suited(protocol: Protocol, track: Track) -> bool:
    try:
        set_up(protocol, track, {}, ["independent"])
    except UnsuitedError:
        return False
    return True


def _methods() -> Iterator[str]:
    """A table of all adapters, then each one's card without its costs."""
    cards = [method_card(name, Path("no-records")) for name in registry.method_files()]
    rows = [
        (
            f"`{c['method']}`", _codes(c["variants"]), c["summary"], c["paper"],
            c["fidelity"].partition(":")[0],
        )
        for c in cards
    ]  # fmt: skip
    yield from _table("method|variants|idea|source|read", *rows)
    for card in cards:
        yield f"\n### `{card['method']}`\n\n{_markdown(card['idea'])}\n"
        yield f"- Source: {card['paper']}."
        yield f"- Fidelity: {card['fidelity']}."
        yield f"- Needs: {', '.join(card['needs'])}."
        yield f"- Changes: {', '.join(card['changes']) or 'nothing'}. Trains: {card['trains']}."
        if "variant of" in card:
            yield f"- A variant of `{card['variant of']}`."
        if "a query takes" in card:
            yield f"- A query takes: {card['a query takes']}."
        for name, text in card["parameters"].items():
            default, _, note = text.partition("  # ")
            yield f"- `{name} = {default}`{': ' if note else ''}{_markdown(note)}"
        for name, values in card["variants"].items():
            changed = _codes(f"{key} = {value!r}" for key, value in values.items())
            yield f"- Variant `{card['method']}:{name}`: {changed}"


def _metrics() -> list[str]:
    better = {True: "higher", False: "lower", None: "neither"}
    metrics = sorted(map(describe, examples()), key=lambda metric: metric.key)
    rows = [(f"`{m.key}`", m.label, better[m.higher_is_better], m.unit, m.rules) for m in metrics]
    return _table("key|label|better|unit|rules", *rows)


def _tasks() -> list[str]:
    rows = []
    for name, module in registry.tasks().items():
        task = registry.task(name)
        summary = (importlib.import_module(module).__doc__ or "").partition("\n")[0]
        rows.append((f"`{name}`", summary, _codes(task.scores), _codes(task.needs)))
    return _table("task|what|scores|needs of the dataset", *rows)


def _orders() -> list[str]:
    rows = [(f"`{name}`", _codes(order.needs)) for name, order in ORDERS.items()]
    return _table("order|needs", *rows)


def _sides() -> list[str]:
    rows = [(f"`{name}`", s.title, s.data, str(s.bits)) for name, s in SIDES.items()]
    return _table("kind|what|training images|bits of a number", *rows)


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
        yield from _table("field|type|default|meaning", *rows)


def _field(key: str, schema: Mapping[str, Any]) -> tuple[str, str, str, str]:
    # The defaults of a nested model stand at its own fields.
    default = "" if "$ref" in schema else f"`{schema['default']!r}`" if "default" in schema else ""
    return f"`{key}`", _type(schema), default, schema.get("description", "")


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
        return f"name to {_type(schema['additionalProperties'])}"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or schema['prefixItems'][0])}"
    return str(schema.get("type", "any"))


def _evidence(folder: str) -> list[str]:
    """Number of methods and seeds, and the time that computing them took, by protocol and track."""
    places: dict[tuple[str, str], list[Record]] = {}
    for record in (stored.record for stored in read_selection([Path(folder)], status=["done"])):
        places.setdefault((record.protocol, record.track), []).append(record)
    rows = []
    for (protocol, track), records in sorted(places.items()):
        seeds = Counter(record.method for record in records)
        three = sum(n >= 3 for n in seeds.values())
        precisions = ", ".join(sorted({r.environment.get("precision", "unknown") for r in records}))
        hours = f"{seconds_spent(records) / 3600:.1f}"
        rows.append((f"`{protocol}`", f"`{track}`", str(len(seeds)), str(three), precisions, hours))
    heads = "protocol|track|methods and variants|of these with 3 seeds|precision|hours"
    return _table(heads, *rows)


def _reliability(folder: str) -> Iterator[str]:
    """Campaigns of ``tests/reliability``, from the figures that their runs have written."""
    figures = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    rows = []
    for figure in figures:
        counts = figure["counts"]
        sums = [sum(counts.get(kind, 0) for kind in kinds) for kinds in _FINDINGS.values()]
        commit = (figure["code"]["commit"] or "none")[:7] + "*" * bool(figure["code"]["dirty"])
        numbers = [counts["tried"], counts.get("told", 0), *sums, figure["seconds"]]
        rows.append((f"`{figure['campaign']}`", *map(str, numbers), commit, figure["date"]))
    yield from _table(
        "|".join(["campaign", "tried", "told", *_FINDINGS, "s", "commit", "date"]), *rows
    )
    commands = dict.fromkeys(figure["command"] for figure in figures)
    if figures:
        machine = figures[-1]["hardware"]
        yield f"\nOn {machine['cores']} cores of {machine['cpu']}. Commands: {_codes(commands)}."


_FINDINGS = {
    "wrong result": ("wrong", "silent", "kept", "torn", "left"),
    "traceback or crash": ("traceback", "crash"),
    "ran or wrote outside": ("ran", "outside"),
    "reached a page or terminal": ("leaked", "escaped"),
    "over 10 s or 1 GiB": ("slow", "large"),
}
"""Column -> kinds of findings that it counts."""


def _scripts() -> list[str]:
    """Published scripts and what is computed here."""
    from published_scripts import ROWS, comparisons

    return _table(ROWS, *comparisons())


def _coverage() -> list[str]:
    """Share of intervals that hold the true score, from the figures of ``bench perf coverage``."""
    path = Path(__file__).parent / "figures" / "coverage.json"
    found: dict[tuple[Any, ...], dict[str, str]] = {}
    document = json.loads(path.read_text(encoding="utf-8"))
    for row in document["rows"]:
        known = row["coverage"] is not None
        key = (f"`{row['metric']}`", row["impostors"], row["level"] if known else "any")
        cell = f"{100 * row['coverage']:.1f} at {100 * row['score']:.1f}" if known else "none"
        found.setdefault(key, {})[f"{row['classes']} x {row['items']}"] = cell
    designs = list(dict.fromkeys(design for cells in found.values() for design in cells))
    nominal = f"{100 * document['rows'][0]['nominal']:.0f}"
    rows = [
        (metric, f"{impostors or ''}", level, nominal, *(cells.get(d, "") for d in designs))
        for (metric, impostors, level), cells in sorted(found.items(), key=lambda f: _place(f[0]))
    ]
    return _table("|".join(["metric", "impostors", "level", "nominal", *designs]), *rows)


def _differences() -> list[str]:
    """Intervals where few queries differ, from the figures of ``bench perf differences``."""
    path = Path(__file__).parent / "figures" / "differences.json"
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        cell = f"{100 * row['coverage']:.1f}, ±{100 * row['half']:.2g}"
        key = (row["differences"], f"{100 * row['differing']:g}")
        found.setdefault(key, {})[f"{row['queries']:,} queries"] = cell
    sizes = list(next(iter(found.values())))
    rows = [(*key, *(cells[size] for size in sizes)) for key, cells in found.items()]
    return _table("|".join(["differences", "of the queries, %", *sizes]), *rows)


def _output(*words: str) -> list[str]:
    """Standard output of ``bench``, as a terminal shows it."""
    return ["```text", *command_output([*words]).rstrip().splitlines(), "```"]


def _upgrade(name: str, *arguments: str) -> Iterable[str]:
    """Parts of the guide to ``bench upgrade``."""
    from upgrade_parts import PARTS

    return PARTS[name](*arguments)


def _core_tracks(folder: str, protocol: str) -> Iterable[str]:
    from core_tracks import lines

    return lines(folder, protocol)


def _study(name: str) -> Iterable[str]:
    """Findings of a study of ``results/studies``."""
    lines: Iterable[str] = importlib.import_module(f"{name}_study").lines()
    return lines


def _sweep(*names: str) -> list[str]:
    """The cross-test of each point of a sweep, from the CSVs that ``bench run --sweep`` writes."""
    return _points(names, ("new/old",), lambda method: method not in ("independent", RAW))


def _both(*names: str) -> list[str]:
    """The cross-test and the self-test of each point of a sweep: what one gains the other loses."""
    return _points(names, ("new/old", "new/new"), lambda method: method not in ("independent", RAW))


def _bounds(*names: str) -> list[str]:
    """Old/old and new/new of the independent models at each point of a sweep."""
    return _points(names, ("old/old", "new/new"), lambda method: method == "independent")


def _points(names: Iterable[str], cases: Sequence[str], wanted: Callable[[str], bool]) -> list[str]:
    read = [_rows(name) for name in names]
    keys = [fields[1 : fields.index("metric")] for fields in (list(rows[0]) for rows in read)]
    # The same parameter of several methods is one column.
    axes = [
        same[0] if len({*same}) == 1 else same[0].rpartition(".")[2]
        for same in zip(*keys, strict=True)
    ]
    lines = [
        (line, [line[key] for key in its])
        for rows, its in zip(read, keys, strict=True) for line in rows
    ]  # fmt: skip
    known = {line["metric"] for line, _ in lines}
    columns = [(c, metric) for c in cases for metric in ("cmc_at_1", "map") if metric in known]
    found: dict[tuple[str, ...], dict[tuple[str, str], str]] = {}
    for line, values in lines:
        column = line["case"], line["metric"]
        if column in columns and wanted(line["method"]):
            value, low, high = (f"{100 * float(line[k]):.1f}" for k in ("value", "low", "high"))
            point = (f"`{line['method']}`", *values)
            found.setdefault(point, {})[column] = f"{value} ({low} to {high})"
    labels = [(f"{c} " if len(cases) > 1 else "") + describe(m).label for c, m in columns]
    heads = ["method", *(f"`{axis}`" for axis in axes), *labels]
    return _table(
        "|".join(heads), *((*p, *(cells[c] for c in columns)) for p, cells in found.items())
    )


def _rows(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / "figures" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _place(key: tuple[Any, ...]) -> tuple[Any, ...]:
    metric, impostors, level = key
    return metric, impostors or 0, ("low", "middle", "high", "any").index(level)


def _paper(name: str) -> list[str]:
    """Tables and figures of a paper with their commands."""
    from paper_tables import table

    return _table("|".join(["in the paper", "shows", "hours", "state", "command"]), *table(name))


def _backbones() -> list[str]:
    from backbones import rows

    heads = "backbone|input to output|source|its parameters|ours"
    return _table(heads, *rows())


def _shares(*names: str) -> list[str]:
    from shares import rows

    heads, *found = rows(*names)
    return _table("|".join(heads), *found)


def _commands() -> Iterable[str]:
    from commands import commands

    return commands()


def _batch() -> list[str]:
    from adding import batch_rows

    return _table("in a loss|what it holds", *batch_rows())


def _first_run() -> list[str]:
    from adding import first_run_lines

    return first_run_lines()


GENERATORS: Mapping[str, Callable[..., Iterable[str]]] = {
    "protocols": _protocols, "protocol": _protocol, "tracks": _tracks, "suits": _suits,
    "methods": _methods, "metrics": _metrics, "tasks": _tasks, "orders": _orders, "sides": _sides,
    "fields": _fields, "evidence": _evidence, "reliability": _reliability,
    "scripts": _scripts, "coverage": _coverage, "differences": _differences, "output": _output,
    "sweep": _sweep, "both": _both, "bounds": _bounds, "upgrade": _upgrade, "paper": _paper,
    "backbones": _backbones, "commands": _commands, "shares": _shares, "batch": _batch,
    "first-run": _first_run,
    "study": _study, "core-tracks": _core_tracks,
}  # fmt: skip
"""Name in a comment -> lines of Markdown."""


def main(names: list[str]) -> None:
    """Renew files in place."""
    for path in map(Path, names):
        path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
