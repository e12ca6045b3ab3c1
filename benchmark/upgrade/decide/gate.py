"""Conditions under which the command fails, for a gate in continuous integration."""

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmark.errors import BenchError, unknown
from benchmark.upgrade.read.request import SCORE

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_FIGURES = {
    "share": ("kept", "value"), "score": ("score", "value"), "upgrade": ("to_keep", "value"),
    "hours": ("cost", "hours"), "money": ("cost", "money"),
    "money_per_1000_queries": ("cost", "money_per_1000_queries"),
}  # fmt: skip
"""Places in a strategy of the document; ``upgrade`` is the difference to the old model, of
re-embedding where no strategy is named."""
DECIDED = "decided"
"""Figure of the verdict, of no strategy: 1 where the queries decide it, else 0."""
_OF_ONE = ("share", "score")  # not in percent
_MOST = 1.5  # beyond which none of these is: a share of the upgrade may be above 1
_LARGEST = 0.5  # beyond which no upgrade is asked for: it would be one in points
_CONDITION = re.compile(r"(?:([\w:.-]+)\.)?(\w+)\s*(<=|>=|<|>)\s*([\d.eE+-]+)")


@dataclass(frozen=True)
class Condition:
    """A figure of a strategy that is compared with a number."""

    strategy: str  # its name; empty for the one that is recommended
    figure: str  # ``DECIDED`` or one of ``_FIGURES``; scores and shares between 0 and 1
    sign: str
    number: float

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Read ``share<0.9`` or ``linear:query.score < 0.4``.

        Raises:
            BenchError: If it is something else.
        """
        found = _CONDITION.fullmatch(text.strip())
        if found is None:
            raise BenchError(f"--fail-if: expected a condition as 'share<0.9', got '{text:.60}'")
        strategy, figure, sign, number = found.groups()
        if figure not in (known := [*_FIGURES, DECIDED]):
            raise BenchError(f"--fail-if: {unknown('figure', figure, known)}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BenchError(f"--fail-if: expected a finite number, got '{number:.30}'")
        got = f"{figure}{sign}{number:.30}"
        if figure in _OF_ONE and value > _MOST:
            raise BenchError(f"--fail-if: expected a share, as 0.9 for 90 percent, got '{got}'")
        if figure == "upgrade" and abs(value) > _LARGEST:
            raise BenchError(
                f"--fail-if: expected an upgrade from -{_LARGEST} to {_LARGEST}, where 0.02 is 2 "
                f"points, got '{got}'"
            )
        if figure == DECIDED and strategy:
            raise BenchError(
                f"--fail-if: expected '{got}', as the verdict is of no strategy, got "
                f"'{strategy:.60}.{got}'"
            )
        if figure == DECIDED and not 0 <= value <= 1:
            raise BenchError(f"--fail-if: expected '{DECIDED}<1', as it is 1 or 0, got '{got}'")
        return cls(strategy or "", figure, sign, value)

    def __str__(self) -> str:
        """The condition as it is written."""
        return f"{self.strategy}{'.' * bool(self.strategy)}{self.figure}{self.sign}{self.number:g}"

    def figure_in(self, document: Mapping[str, Any]) -> float | None:
        """The figure in a report; None where it has none.

        A strategy that is left out has none: of several models one may have it.

        Raises:
            BenchError: If the report does not know the strategy.
        """
        if self.figure == DECIDED:
            return float(document["verdict"]["decided"])
        by_name = {each["name"]: each for each in document["strategies"]}
        name = self.strategy or document["verdict"]["strategy"]
        if self.figure == "upgrade" and not self.strategy:
            name = "re-embed"
        require_known([self], by_name.keys() | document["left_out"].keys())
        if name not in by_name:
            return None
        if self.figure == "share" and document["verdict"]["share_of"] == SCORE:
            return None  # there is no upgrade of which it would be one
        part, key = _FIGURES[self.figure]
        value: float | None = (by_name[name][part] or {}).get(key)
        return value

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Tell whether a report meets it, as :meth:`figure_in`; a figure that is not there does."""
        value = self.figure_in(document)
        return value is None or _COMPARE[self.sign](value, self.number)

    def said_of(self, document: Mapping[str, Any]) -> str:
        """The condition beside the figure of a report."""
        value = self.figure_in(document)
        return f"{self} (the report has no such figure)" if value is None else f"{self} ({value:g})"


def require_known(conditions: Iterable[Condition], names: Collection[str]) -> None:
    """Raise a BenchError where the strategy of a condition is not among these."""
    for each in conditions:
        if each.strategy and each.strategy not in names:
            raise BenchError(f"--fail-if: {unknown('strategy', each.strategy, names)}")


def require_there(conditions: Iterable[Condition], left_out: Mapping[str, str]) -> None:
    """Raise a BenchError where the strategy of a condition is left out."""
    for each in conditions:
        if each.strategy in left_out:
            why = left_out[each.strategy]
            raise BenchError(f"--fail-if: {each.strategy} is left out: {why}")
