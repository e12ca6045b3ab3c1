"""Checks of the options of every verb, beside what Click looks at.

Of an option that is given twice Click takes the last value, in silence, and it takes ``nan`` for a
number: here lists add up, and anything else is refused.
"""

import math
from typing import Any

from typer.core import TyperCommand, TyperGroup

from benchmark.cli.options import PANELS
from benchmark.errors import BenchError

LISTS = frozenset({
    "methods", "protocols", "tracks", "datasets", "papers", "metrics", "cases", "seeds", "only",
    "maps", "pairs", "corpora",
})  # fmt: skip
"""Parameters of verbs whose values are words between commas."""


class Verbs(TyperGroup):
    """The verbs of ``bench``, in the order of their groups."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Names: those that measure first, those that maintain last."""
        panels = {
            name: PANELS.index(getattr(of, "rich_help_panel", ""))
            for name, of in self.commands.items()
        }
        return sorted(panels, key=panels.__getitem__)


class Command(TyperCommand):
    """A verb whose repeated options add up or are refused, and whose numbers are finite."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        rest: list[str] = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BenchError(f"{_named(param)}: expected a finite number, got {value}")
        return rest

    def make_parser(self, ctx: Any) -> Any:
        """The parser, which sees every value of an option."""
        parser: Any = super().make_parser(ctx)
        for option in {**parser._long_opt, **parser._short_opt}.values():
            if option.obj.name in LISTS:
                option.action = "append"
        once = parser.parse_args

        def parse(args: list[str]) -> Any:
            values, rest, order = once(args)
            for name in LISTS & values.keys():
                if isinstance(values[name], list):
                    values[name] = ",".join(values[name])
            _require_once(order)
            return values, rest, order

        parser.parse_args = parse
        return parser


def _require_once(order: list[Any]) -> None:
    """BenchError if an option that takes one value is among these twice."""
    seen = set()
    for param in order:
        repeats = (
            param.multiple or param.name in LISTS if param.param_type_name == "option" else True
        )
        is_switch = getattr(param, "is_flag", False) and not param.secondary_opts
        if param.name in seen and not repeats and not is_switch:
            raise BenchError(f"{_named(param)}: expected once, got it twice")
        seen.add(param.name)


def _named(param: Any) -> str:
    return str(max(param.opts, key=len))
