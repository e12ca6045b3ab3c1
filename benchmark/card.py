"""The card of a method: what it needs and changes, its parameters, and what it costs."""

from __future__ import annotations

import dataclasses
import inspect
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark import registry

if TYPE_CHECKING:
    from benchmark.method import Method

MEASURED = Path(__file__).resolve().parents[1] / "results" / "measured"
_NEEDS = {"old_head": "the old classifier", "independent": "the independent new model"}


def method_card(name: str, measured: Path = MEASURED) -> dict[str, Any]:
    """The card of ``bct`` or ``bct:distill``.

    Args:
        name: A method.
        measured: Folder of committed records, from which the cost comes; it may be missing.
    """
    made = registry.method(name)
    file = registry.method_file(name)
    notes = field_notes(inspect.getsource(type(made)))
    parameters = {
        f.name: f"{getattr(made, f.name)!r}{'  # ' + notes[f.name] if f.name in notes else ''}"
        for f in dataclasses.fields(made)
    }
    return {
        "method": name,
        "summary": file.summary,
        "idea": inspect.cleandoc(type(made).__doc__ or ""),
        "paper": made.paper,
        "needs": _needs(made) or ["nothing but the old model"],
        "changes": list(made.changes),
        "trains": "a new model" if made.own_model else "no model: the new one is the independent",
        "parameters": parameters,
        "variants": {k: dict(v) for k, v in made.variants.items()},
        **_costs(name, measured),
        "file": f"methods/{file.path.name}",
    }


def _needs(made: Method) -> list[str]:
    words = [_NEEDS.get(n, n.replace("side:", "side-information ")) for n in made.needs]
    return [*words, *(["a first generation of its own"] if made.own_first else [])]


def field_notes(source: str) -> dict[str, str]:
    """The comment beside each field of a class: where its default comes from."""
    notes = {}
    for line in source.splitlines():
        code, mark, comment = line.partition("  # ")
        if mark and ":" in code and "=" in code:
            notes[code.strip().partition(":")[0]] = comment.strip()
    return notes


def _costs(name: str, measured: Path) -> dict[str, str]:
    """Added parameters and training time by the committed records of this very variant."""
    from benchmark.record import read_records

    folders = sorted(measured.glob(f"*/*/{name.replace(':', '+')}"))
    records = [r for folder in folders for r in read_records(folder) if r.status == "done"]
    if not records:
        return {"cost": "not measured yet"}
    added = sorted({int(r.cost["added_parameters"]) for r in records})
    costs = {
        "added parameters": " to ".join(f"{n:,}" for n in dict.fromkeys((added[0], added[-1])))
    }
    found = (record.run.get("training_cost") for record in records)
    shares = [share for share in found if share is not None]
    if shares:
        middle = statistics.median(shares)
        of = f"median of {len(shares)} records, {min(shares):.2f} to {max(shares):.2f}"
        costs["training cost"] = f"{middle:.2f} of the independent model's ({of})"
    return costs
