"""The page of a method: what it is good for, its numbers, parameters and sensitivity."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmark.metrics.cost_model import Assumptions
from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers
from benchmark.report.costs import COSTS, cost_text
from benchmark.report.effects import Effect, models_words, percent
from benchmark.report.text_table import (
    NOT_APPLICABLE,
    TextCell,
    TextColumn,
    TextTable,
    score_cell,
    simple_table,
)
from leaderboard.names import record_href
from leaderboard.pages.tables import answer_cell, hurts_cell, models_cell, rank_cell, share_cell
from leaderboard.rank.answers import HELD, held, update_words, way
from leaderboard.rank.boards import NO_SCORE, NO_VERDICT, RankedBoard, compared
from leaderboard.rank.heatmap import Heatmap, heatmap
from leaderboard.read.methods import MethodInfo, bibtex

# What of a card is shown elsewhere on the page, or not at all.
_ELSEWHERE = (
    "method", "summary", "idea", "family", "parameters", "variants", "added parameters",
    "training cost", "baseline", "indexes", "new embeddings", "fitted",
)  # fmt: skip
_PARAMETERS = ("name", "value", "where it is from")
# The metrics that a board shows first.
_SHOWN = 4
_MOST = 2
_GOOD = 0.05
"""Of the upgrade beyond what no method keeps: from here on it is said to be good for something."""


def method_page(
    info: MethodInfo, boards: Sequence[RankedBoard], known: Mapping[str, MethodInfo]
) -> dict[str, Any]:
    """Values of the template of a method; ``known`` are the methods that have a page."""
    of_method = [board for board in boards if info.method in board.info]
    plain = [board for board in of_method if not board.first.changed] or of_method
    name = info.method.partition(":")[0]
    variants = [f"{name}:{variant}" for variant in info.card.get("variants", {})]
    current = compared(plain)
    parameters = [
        [TextCell(key, code=True), TextCell(value, code=True), note]
        for key, text in info.card.get("parameters", {}).items()
        for value, _, note in [text.partition("  # ")]
    ]
    card = [
        (key, (", ".join(value) if isinstance(value, list) else str(value)) or "nothing")
        for key, value in info.card.items()
        if key not in _ELSEWHERE
    ]
    return {
        "info": info,
        "idea": paragraphs(str(info.card.get("idea", ""))),
        "card": [*card, *_costs(info.method, plain)],
        "sentences": sentences(info, current),
        "heat": _heat(info, [b for b in current if not b.of_setting]),
        "settings": _heat(info, _touched([b for b in current if b.of_setting], info.method)),
        "standings": [(b, _standings(info.method, b)) for b in plain if not b.unpaid],
        "sensitivity": sensitivity(info.method, boards),
        "parameters": simple_table("Parameters", "", _PARAMETERS, (), parameters),
        "variants": [(v, known[v].difference if v in known else "") for v in variants],
        "known": frozenset(known),
        "bibtex": bibtex(info.method, str(info.card.get("paper", ""))),
        "records": [(b.scenario.title, record_links(b, info.method)) for b in of_method],
    }


def _heat(info: MethodInfo, boards: Sequence[RankedBoard]) -> Heatmap | None:
    """Shares of one method on some boards; None where it may have no rank, or none is known."""
    found = heatmap(boards, "../", [info.method]) if info.ranked and boards else None
    return found if found and found.columns else None


def _touched(boards: Sequence[RankedBoard], method: str) -> list[RankedBoard]:
    """Boards of settings without those that do not touch a method: of equal effect, the first."""
    found: dict[Any, RankedBoard] = {}
    for board in boards:
        about, effect = board.first, board.standing.effects.get(method)
        same = (about.protocol.partition(":")[0], about.track, effect)
        found.setdefault(same if effect else board.slug, board)
    return [*found.values()]


def record_links(board: RankedBoard, method: str) -> list[tuple[str, int]]:
    """Address and seed of each record of a method on a board."""
    return [
        (record_href(board.slug, record), record.seed)
        for record in board.records
        if record.method == method
    ]


def paragraphs(text: str) -> list[list[tuple[str, bool]]]:
    r"""Paragraphs of a docstring, each as pieces, and whether a piece is code.

    Example:
        >>> paragraphs("As in the\npaper.\n\nSee ``side``.")
        [[('As in the paper.', False)], [('See ', False), ('side', True), ('.', False)]]
    """
    split = [
        re.split(r"``(.+?)``", " ".join(block.split()))
        for block in re.split(r"\n\s*\n", text.strip())
        if block
    ]
    return [[(piece, i % 2 == 1) for i, piece in enumerate(p) if piece] for p in split]


def _costs(method: str, boards: Sequence[RankedBoard]) -> list[tuple[str, str]]:
    """Costs, from the least to the most of the boards."""
    lines = []
    for key, label in COSTS.items():
        known = [board.costs[method][key] for board in boards if key in board.costs[method]]
        ends = [cost_text(key, end(known)) for end in (min, max) if known]
        lines += [(label, " to ".join(dict.fromkeys(ends)))] if ends else []
    return lines


def _standings(method: str, board: RankedBoard) -> TextTable:
    """The method's numbers on one board, a metric a row."""
    lines = [_standing(board, method, key) for key in board.metrics[:_SHOWN]]
    heads = (
        "rank", "keeps", TextColumn("old/old", "lower bound"), "cross-test", "self-test",
        "upper bound", "compatible", "hurts", "models",
    )  # fmt: skip
    return simple_table(board.scenario.title, "", ("metric",), heads, lines)


def _standing(board: RankedBoard, method: str, metric: str) -> list[TextCell]:
    row = board.row(method)
    about = numbers.metric(metric)
    own = board.by_metric[metric]
    effect = own.effects.get(method)
    verdict = row.verdicts.get(metric, NO_VERDICT)
    lower, upper = (Estimate(board.bound(kind, metric)) for kind in ("lower", "upper"))
    tests = [row.cells.get((metric, case), NO_SCORE) for case in (board.cross, board.own)]
    tests = [score if effect and effect.enough else Estimate(score.value) for score in tests]
    return [
        TextCell(about.label),
        TextCell(NOT_APPLICABLE, sort="") if row.reason else rank_cell(own.place(method)),
        share_cell(effect),
        *(score_cell(score, about.unit) for score in (lower, *tests, upper)),
        TextCell()
        if verdict.compatible is None
        else answer_cell(verdict.compatible, NO_SCORE if effect is None else effect.first_day),
        TextCell() if effect is None else hurts_cell(effect),
        models_cell(len(row.seeds)) if row.seeds else TextCell(),
    ]


def sensitivity(
    method: str, boards: Sequence[RankedBoard]
) -> list[tuple[TextTable, dict[str, Any]]]:
    """Table and chart of each parameter changed alone; the default is of the plain track."""
    sweeps: dict[tuple[str, str, str], list[tuple[Any, RankedBoard]]] = {}
    for board in boards:
        changes = list(board.first.changed.items())
        for key, value in changes if len(changes) == 1 and method in board.info else ():
            if key.rpartition(".")[0] in (method, method.partition(":")[0]):
                place = (board.first.protocol, board.first.track, key)
                sweeps.setdefault(place, []).append((value, board))
    return [
        _sweep(method, place[2], points, _default(method, place, boards))
        for place, points in sweeps.items()
    ]


def _default(
    method: str, place: tuple[str, str, str], boards: Sequence[RankedBoard]
) -> tuple[Any, RankedBoard] | None:
    """The value of a parameter on the unmodified track, and its board."""
    protocol, track, key = place
    field = key.rpartition(".")[2]
    values = (
        (record.config[field], board)
        for board in boards
        for record in board.records
        if (record.protocol, record.track, record.method) == (protocol, track, method)
        if board.current and field in record.config
    )
    return next(values, None)


def _sweep(
    method: str,
    key: str,
    points: list[tuple[Any, RankedBoard]],
    default: tuple[Any, RankedBoard] | None,
) -> tuple[TextTable, dict[str, Any]]:
    if default is not None and default[0] not in [value for value, _ in points]:
        points = [*points, default]
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v, _ in points)
    points.sort(key=lambda point: point[0] if numeric else str(point[0]))
    board = points[0][1]
    about = numbers.metric(board.metric)
    title = f"{key}: {board.scenario.happens}, on {board.scenario.subject}"
    data, lines = [], []
    for value, other in points:
        cells = other.row(method).cells
        cases = {"cross": other.cross, "own": other.own}
        scores = {name: cells.get((board.metric, c), NO_SCORE) for name, c in cases.items()}
        ends = {name: (score.value, score.low, score.high) for name, score in scores.items()}
        data.append({"value": value, "text": str(value), **ends})
        small = "default" if default is not None and other is default[1] else ""
        name = TextCell(str(value), small=small, href=f"../boards/{other.slug}.html")
        lines.append([name, *(score_cell(score, about.unit) for score in scores.values())])
    table = simple_table(title, "", (key,), (f"{about.label}, cross-test", "self-test"), lines)
    return table, {
        "key": key, "label": about.label, "numeric": numeric, "title": title,
        "lower": board.bound("lower", board.metric), "points": data,
    }  # fmt: skip


def sentences(info: MethodInfo, boards: Sequence[RankedBoard]) -> list[tuple[str, list[str]]]:
    """``Good for``, ``Bad for`` and ``Costs`` with their words; none of a method without scores."""
    found = [
        _Kept(board, effect, board.beyond(info.method))
        for board in boards
        if (effect := board.standing.effects.get(info.method)) is not None
        if effect.share.value is not None
    ]
    if not found:
        return []
    return [
        ("Good for", _good(found)),
        ("Bad for", _bad(found)),
        ("Costs", [_cost_words(info, boards)]),
    ]


class _Kept(NamedTuple):
    """A method on a board."""

    board: RankedBoard
    effect: Effect
    beyond: Estimate  # the share that it keeps beyond doing without any method

    @property
    def more(self) -> float:
        """The share beyond; 0 where it is unknown."""
        return self.beyond.value or 0.0

    @property
    def is_good(self) -> bool:
        """True if it keeps more than doing without, beyond the interval where there is one."""
        sure = self.beyond.low is None or self.beyond.is_above(0)
        return sure and not self.effect.hurts and self.more >= _GOOD

    @property
    def is_bad(self) -> bool:
        """True if it keeps no more than doing without, beyond the interval if there is one."""
        sure = self.beyond.high is None or self.beyond.is_below(0)
        return sure and self.more <= 0


def _good(found: Sequence[_Kept]) -> list[str]:
    """The boards on which it keeps most beyond doing without, those of enough models first."""
    kept = [each for each in found if each.is_good]
    best = sorted(kept, key=lambda each: (not each.effect.enough, -each.more))
    if not best:
        return [
            f"nothing that was measured here: nowhere does it keep {100 * _GOOD:.0f} % of the "
            "upgrade more than no method, beyond its interval and without hurting new/new."
        ]
    return [_on(each) for each in best[:_MOST]]


def _bad(found: Sequence[_Kept]) -> list[str]:
    """The boards on which doing without is better, or new/new suffers; otherwise the least good.

    Better is beyond the interval; boards without one, of few models, come last.
    """
    hurting = [each for each in found if each.effect.hurts]
    losing = [each for each in found if each.is_bad]
    losing.sort(key=lambda each: (not each.effect.enough, each.more))
    parts = []
    if hurting:
        parts.append(f"new/new, which it lowers on {len(hurting)} of {len(found)} boards.")
    parts += [_on(each) for each in losing[: _MOST - bool(hurting)]]
    if not parts:
        least = min(found, key=lambda each: each.more)
        unsure = " beyond its interval" if least.more <= 0 else ""
        return [f"nothing that was measured here{unsure}; least good:", _on(least)]
    return parts


def _on(kept: _Kept) -> str:
    """The share that it keeps, then the board."""
    board, effect, _ = kept
    without = board.without
    beside = f", where no method keeps {100 * without:.0f} %" if without else ""
    few = "" if effect.enough else f" ({models_words(effect.models)})"
    below = "" if (effect.share.value or 0.0) >= 0 else " below the old model"
    share = percent(effect.share).removeprefix("-")
    return f"{share} of the upgrade{below}{beside}{few}: {board.scenario.title}."


def _cost_words(info: MethodInfo, boards: Sequence[RankedBoard]) -> str:
    """Training, conversion and storage, as the first of its boards counted them."""
    board = next((b for b in boards if b.costs.get(info.method)), None)
    if board is None or way(info) is None:
        return "what the new model costs."
    known = board.update_costs(info.method)
    items = f"{Assumptions().items / 1e6:g} million items"
    parts = [f"{update_words(board, info.method)} beside the new model, for {items}"]
    if "training_cost" in known and way(info) == "train":
        parts.append(f"{cost_text('training_cost', known['training_cost'])} of a plain training")
    if "bytes_before" in known:
        parts.append(f"{cost_text('bytes_before', known['bytes_before'])} bytes an item")
    needs = [HELD[need] for need in held(info)]
    words = ", ".join(parts) + "."
    return words + (f" It needs {', '.join(needs)}." if needs else "")
