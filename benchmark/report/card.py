"""The card of a method: what it needs and changes, its parameters, and what it costs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import statistics
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.declarations import FIDELITIES
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.config.declarations import DatasetDeclaration, MethodDeclaration

MEASURED = Path(__file__).resolve().parents[2] / "results" / "measured"
_TRAINS = {True: "a new model", False: "no model: the new one is the independent"}
_NEEDS = {"old_head": "the old classifier", "independent": "the independent new model"}
_FIELD = re.compile(
    r'^    (\w+): [^\n]*?=[^\n]*?(?:  # ([^\n]*))?\n(?:    """(.*?)""")?', re.MULTILINE | re.DOTALL
)
_BELOW = "this and what follows "


def method_card(name: str, measured: Path = MEASURED) -> dict[str, Any]:
    """The card of ``bct`` or ``bct:distill``; its cost by committed records, if any are there."""
    method = registry.method(name)
    file = registry.method_file(name)
    said = file.fidelity(name.partition(":")[2])
    return {
        "method": name,
        "summary": file.summary,
        "idea": inspect.cleandoc(type(method).__doc__ or ""),
        "paper": method.paper,
        "fidelity": f"{said}: {FIDELITIES[said]}" if said else "not declared",
        "needs": _needs(method) or ["nothing but new data"],
        "changes": list(method.changes),
        "trains": method.trains or _TRAINS[method.own_model],
        **_query_costs(method),
        "parameters": option_notes(method),
        **({"variant of": file.variant_of} if file.variant_of else {}),
        "variants": {k: dict(v) for k, v in method.variants.items()},
        **_costs(name, measured, any(n.startswith("side:") for n in method.needs)),
        "file": f"{file.module.replace('.', '/')}.py",
    }


def _query_costs(method: MethodDeclaration) -> dict[str, str]:
    """The cost of a query that takes more than one model run in one index."""
    if (method.model_runs, method.indexes, method.new_embeddings) == (1, 1, 0):
        return {}
    indexes = "index" if method.indexes == 1 else "indexes"
    words = [f"{method.model_runs} model runs", f"{method.indexes} {indexes}"]
    if method.new_embeddings:
        words.append(f"at most {method.new_embeddings} new embeddings")
    return {"a query takes": ", ".join(words)}


def option_notes(declared: MethodDeclaration | DatasetDeclaration) -> dict[str, str]:
    """Value of each field of a method or dataset, and what its class says of it."""
    notes: dict[str, str] = {}
    for cls in reversed(type(declared).__mro__):
        if "__dataclass_fields__" in vars(cls):
            notes |= _class_notes(cls)
    return {
        f.name: f"{getattr(declared, f.name)!r}{'  # ' + notes[f.name] if f.name in notes else ''}"
        for f in dataclasses.fields(declared)
    }


@cache
def _class_notes(cls: type) -> dict[str, str]:
    """Notes of one class: variants and what derives from it ask again."""
    return field_notes(inspect.getsource(cls))


def _needs(method: MethodDeclaration) -> list[str]:
    words = [_NEEDS.get(n, n.replace("side:", "side-information ")) for n in method.needs]
    words += method.uses
    if "dimension" in method.changes:
        extra = getattr(method, "extra", None)
        words.append(
            "an embedding of its own size" if extra is None else f"{extra} extra dimensions"
        )
    return [*words, "a first generation of its own"] if method.own_first else words


def field_notes(source: str) -> dict[str, str]:
    """The comment beside each field of a class, or the text below it: where its default is from.

    One that begins with ``this and what follows`` also stands for the fields below without any.
    """
    notes, below = {}, ""
    for name, comment, text in _FIELD.findall(source):
        note = comment.strip() or " ".join(text.split())
        if note.startswith(_BELOW):
            below = note = note.removeprefix(_BELOW)
        if note or below:
            notes[name] = note or below
    return notes


def _costs(name: str, measured: Path, beside: bool) -> dict[str, str]:
    """Added parameters and training time by the committed records of this very variant.

    ``beside``: side-information has a model of its own, which neither counts.
    """
    paths = sorted(measured.glob(f"*/*/{name.replace(':', '+')}/seed-*.json"))
    values = {path: value for path in paths if (value := _done(path)) is not None}
    if not values:
        return {"cost": "not measured yet"}
    boards = {path.parent: path for path in values}  # seeds differ in no size
    added = sorted({n for path in boards.values() if (n := _added(path)) is not None})
    words = _range(added[0], added[-1]) if added else "not measured yet"
    costs = {"added parameters": words}
    told = [value.get("run", {}).get("training_cost") for value in values.values()]
    shares = [share for share in told if share is not None]
    costs["training cost"] = "not measured yet"
    if shares:
        middle = statistics.median(shares)
        of = f"median of {len(shares)} records, {min(shares):.2f} to {max(shares):.2f}"
        more = "; its side-information's model is not counted" if beside else ""
        costs["training cost"] = f"{middle:.2f} of the independent model's ({of}){more}"
    return costs


def _range(least: int, most: int) -> str:
    """Parameters beside the independent model's, over networks of several tracks.

    Example:
        >>> _range(0, 0), _range(10, 2000), _range(-2000, -10)
        ('0', '10 to 2,000', '10 to 2,000 fewer than the independent model')
        >>> _range(-2000, 10)
        '2,000 fewer to 10 more than the independent model'
    """
    than = "than the independent model"
    if least < 0 <= most:
        return f"{-least:,} fewer to {most:,} more {than}"
    ends = " to ".join(f"{n:,}" for n in sorted({abs(least), abs(most)}))
    return ends if least >= 0 else f"{ends} fewer {than}"


def _added(path: Path) -> int | None:
    from benchmark.records.files import read_record
    from benchmark.report.costs import added_parameters

    alone = path.parents[1] / "independent" / path.name
    try:
        return added_parameters(read_record(path), read_record(alone))
    except BenchError:
        return None


def _done(path: Path) -> dict[str, Any] | None:
    """A record's own file, of a method that could be applied; None where there is none."""
    from benchmark.records.files import read_value

    try:
        value = read_value(path)
    except BenchError:
        return None
    return value if value.get("status") == "done" else None
