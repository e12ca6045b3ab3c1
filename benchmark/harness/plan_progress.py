"""Progress of a plan: the results that are whole, and what is left out, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from benchmark.errors import RefusedError
from benchmark.harness.graph import Result, Stage, unique_stages

OnResult = Callable[[Result], None]


@dataclass
class _Open:
    """A result, and the names of the stages that it waits for."""

    result: Result
    bounds: set[str]  # without which there is no record
    own: set[str]  # of its evaluation alone


class PlanProgress:
    """Follow the stages of a plan; hand over each result as soon as nothing of it is missing.

    A method that refuses at work gives a result without an evaluation, which says why. Where a
    bound refuses, its results are given up and the others go on: what they cost is not lost.
    Results that wait for no stage are handed over first.
    """

    def __init__(
        self, results: Iterable[Result], missing: Iterable[Stage], on_result: OnResult
    ) -> None:
        names = {stage.name for stage in missing}
        self._failed: list[str] = []
        self._on_result = on_result
        self._open = []
        for result in results:
            bounds = {s.name for s in unique_stages(result.bound, result.upper)} & names
            own = {s.name for s in unique_stages(result.evaluation)} & names
            self._open.append(_Open(result, bounds, own - bounds))
        self._hand_over()

    def left_out(self, stage: Stage) -> bool:
        """Tell if a stage is not to run: no result that is still waited for needs it."""
        return not any(stage.name in each.bounds | each.own for each in self._open)

    def done(self, stage: Stage) -> None:
        """A stage has ended well."""
        for each in self._open:
            each.bounds.discard(stage.name)
            each.own.discard(stage.name)
        self._hand_over()

    def refused(self, stage: Stage, reason: str) -> None:
        """A stage was refused; one that failed with a stage before it changes nothing."""
        if self.left_out(stage):
            return
        if any(stage.name in each.bounds for each in self._open):
            self._failed.append(f"{stage.title}: {reason}")
        self._open = [each for each in self._open if stage.name not in each.bounds]
        for each in self._open:
            if stage.name in each.own:
                each.own.clear()
                each.result = replace(each.result, evaluation=None, updates=(), reason=reason)
        self._hand_over()

    def check(self) -> None:
        """Raise RefusedError if a bound was refused, which leaves its results without a record."""
        if self._failed:
            more = len(self._failed) - 1
            raise RefusedError(self._failed[0] + (f"; and {more} more like it" if more else ""))

    def _hand_over(self) -> None:
        whole = [each for each in self._open if not each.bounds and not each.own]
        self._open = [each for each in self._open if each.bounds or each.own]
        for each in whole:
            self._on_result(each.result)
