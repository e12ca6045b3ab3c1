"""What a page says of a method: its card, its family, what it needs and changes, its cost."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmark.errors import BenchError
from benchmark.records.record import Record, added_parameters
from leaderboard import cards

Family = Literal["compatible training", "transformation", "baseline", "control", "unknown"]

_OPTIONAL = " where it is kept"
_COSTS = {
    "training_cost": "training cost",
    "added_parameters": "added parameters",
    "bytes_before": "bytes an item",
    "bytes_after": "bytes after the update",
    "convert_multiply_adds": "multiply-adds to convert",
    "query_multiply_adds": "added multiply-adds a query",
    "multiply_adds": "multiply-adds an image",
}


@dataclass(frozen=True)
class Facts:
    """A method in words.

    Attributes:
        needs: What it cannot do without, in the card's words; what it uses where it is kept is not
            among them.
        changes: ``training``, ``gallery``, ``queries``, ``dimension``.
        card: As ``bench info`` shows it; empty where this installation does not know the method.
        why: Why there is no card.
    """

    method: str
    family: Family
    summary: str
    needs: tuple[str, ...]
    changes: tuple[str, ...]
    card: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def ranked(self) -> bool:
        """May it have a rank? Bounds and controls may not."""
        return self.family not in ("baseline", "control")


def method_facts(name: str) -> Facts:
    """The facts of ``bct`` or ``bct:distill``; ``unknown`` where it is not installed here."""
    try:
        card = cards.card(name)
    except BenchError as error:
        return Facts(name, "unknown", "", (), (), why=str(error))
    needs = [_plain(word) for word in card["needs"] if not word.endswith(_OPTIONAL)]
    changes = tuple(word for word in card["changes"] if word != "training")
    return Facts(
        name, _family(name, card), card["summary"], tuple(dict.fromkeys(filter(None, needs))),
        changes, card,
    )  # fmt: skip


def _plain(word: str) -> str:
    """``side-information simclr`` is side-information; extra dimensions are among the changes."""
    if word.startswith("side-information"):
        return "side-information"
    return "" if word == "nothing but new data" or "extra dimensions" in word else word


def _family(name: str, card: Mapping[str, Any]) -> Family:
    if name == "independent":
        return "baseline"
    if card["summary"].startswith("Control"):
        return "control"
    return "compatible training" if card["trains"] == "a new model" else "transformation"


def costs(records: Sequence[Record], alone: Sequence[Record] = ()) -> dict[str, float]:
    """What a method costs beside its scores: the median over its records of each number known.

    Args:
        records: Its records.
        alone: Those of ``independent``, whose model says how many parameters are added.
    """
    beside = {(r.seed, str(r.changed)): r for r in alone if r.status == "done"}
    found: dict[str, list[float]] = {}
    for record in records:
        if record.status != "done":
            continue
        cost = record.cost.model_dump(exclude_none=True)
        ratio = record.run.training_cost
        known = {"training_cost": ratio, "bytes_before": _bytes(record), **cost}
        if "added_parameters" in known:
            same = beside.get((record.seed, str(record.changed)))
            known["added_parameters"] = added_parameters(record, same)
        for key, value in known.items():
            if value is not None:
                found.setdefault(key, []).append(float(value))
    return {key: statistics.median(found[key]) for key in _COSTS if key in found}


def _bytes(record: Record) -> float:
    """What the gallery stores of an item before the update; records of schema 1 do not say."""
    name, model = next(iter(record.models.items()))
    side = record.side.generations.get(name) if record.side else None
    return 4.0 * model.dim + (side.bytes if side else 0)


def costs_in_order(keys: Iterable[str]) -> list[str]:
    """Costs in reading order."""
    return [key for key in _COSTS if key in set(keys)]


def cost_label(key: str) -> str:
    """A cost in words."""
    return _COSTS.get(key, key.replace("_", " "))


def cost_text(key: str, value: float) -> str:
    """A cost as people read it.

    Example:
        >>> cost_text("training_cost", 1.234), cost_text("added_parameters", 5553216.0)
        ('1.23x', '5.6 M')
    """
    if key == "training_cost":
        return f"{value:.2f}x"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size or (abs(value) >= size and unit != "k"):
            return f"{value / size:.1f} {unit}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def bibtex(name: str, paper: str) -> str:
    """An entry made of ``Authors, Title, Venue Year``; empty for anything else.

    Example:
        >>> print(bibtex("fct", "Ramanujan et al., Forward Compatible Training, CVPR 2022"))
        @inproceedings{fct2022,
          author    = {Ramanujan and others},
          title     = {{Forward Compatible Training}},
          booktitle = {CVPR},
          year      = {2022}
        }
    """
    found = re.match(r"(?P<who>[^,]+), (?P<title>.+?), (?P<venue>[^,\d]*?) ?(?P<year>\d{4})", paper)
    if found is None or paper.startswith(("Control", "Baseline")):
        return ""
    who = found["who"].removesuffix(" et al.")
    author = f"{who} and others" if who != found["who"] else who
    kind, where = ("inproceedings", "booktitle") if found["venue"] else ("misc", "")
    lines = [f"@{kind}{{{name.partition(':')[0].replace('-', '')}{found['year']},"]
    lines += [f"  author    = {{{author}}},", f"  title     = {{{{{found['title']}}}}},"]
    lines += [f"  {where} = {{{found['venue']}}},"] if where else []
    return "\n".join([*lines, f"  year      = {{{found['year']}}}", "}"])
