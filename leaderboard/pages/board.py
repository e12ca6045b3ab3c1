"""The page of a board, its rows as files, and the values that its charts are drawn from."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from benchmark.metrics.backfill_orders import is_oracle
from benchmark.records import published
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.colours import DASHES, MOST, hue
from benchmark.report.costs import COSTS
from benchmark.report.effects import PARTS
from benchmark.report.ranks import front
from benchmark.report.renderers import csv
from benchmark.report.scores import by_method, case_score
from benchmark.report.tables import backfilling, sequence, side_information
from benchmark.report.text_table import TextColumn, TextTable
from leaderboard.pages import tables
from leaderboard.pages.evidence import make_tables as published_tables
from leaderboard.pages.method import record_links
from leaderboard.pages.record import command, versions
from leaderboard.rank import answers
from leaderboard.rank.boards import FIRST_DAY, RankedBoard, number_rows, rounded
from leaderboard.read.methods import method_bibtex

_rounded = partial(rounded, digits=5)
_UNITS = {"training_cost": " (a plain training is 1)"}
_GROUPS = 40
"""At most so many groups have a share shown: a chart of more says nothing."""
_MOST = 3
"""At most so many parts of old models: each single one, or the worse, the middle and the better."""
_MOST_ROWS = 200
"""With more methods and metrics than this the main metrics must do: pages are to stay small."""
_MILLION = 1_000_000
"""Scores have six decimals."""
Rows = Sequence[Mapping[str, Any]]


def downloads(board: RankedBoard, rows: Rows) -> dict[str, bytes]:
    """The rows of every metric's table as JSON and CSV, and BibTeX: ending -> content."""
    lines = (json.dumps(row, allow_nan=False) for row in rows)
    columns = tuple(rows[0])
    values = tuple([_safe(value) for value in row.values()] for row in rows)
    table = TextTable("", "", (), (), (), columns=columns, values=values)
    texts = {
        "json": "[\n" + ",\n".join(lines) + "\n]\n",
        "csv": csv.render([table]),
        "bib": method_bibtex(board.info.values()),
    }
    return {ending: text.encode("utf-8", "replace") for ending, text in texts.items()}


def _safe(value: Any) -> Any:
    """A text that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def board_page(
    board: RankedBoard, rows: Rows, boards: Sequence[RankedBoard],
    families: Sequence[tables.SettingsFamily], numbers_of_papers: published.Published,
) -> dict[str, Any]:  # fmt: skip
    """Values of the template of a board; ``rows`` are those of ``number_rows``."""
    records = board.records
    beside = published.beside(numbers_of_papers, records)
    labels = (TextColumn("case", heading=True),)
    old_models = old_models_data(board)
    shared, lines = pack([rows, *(part["rows"] for part in old_models)], board.cost_keys)
    data = board_data(board, boards) | shared | {"rows": lines[0]}
    data["old_models"] = [
        part | {"rows": own} for part, own in zip(old_models, lines[1:], strict=True)
    ]
    return {
        "board": board,
        "answer": answers.board_answer(board),
        "question": notes.question(board.first),
        "sizes": notes.training_sizes(board.first),
        "elsewhere": select.ELSEWHERE in board.unranked.values(),
        "note": next(notes.track_lines(board.first), ""),
        "rendered": board.scenario.kind == "rendered",
        "rankings": [tables.ranking(board, key) for key in board.metrics],
        "bounds": tables.bounds(board),
        "siblings": _siblings(board, boards),
        "family": next((f for f in families if f.has(board)), None),
        "notes": tables.ranking_notes(board),
        "backfilling": tables.curve_tables(board),
        "sequence": [replace(table, labels=labels) for table in sequence.make_tables(records)],
        "sides": side_information.make_tables(records),
        "published": published_tables(beside, paper=True),
        "command": command(records),
        "records": [(method, record_links(board, method)) for method in board.info],
        "versions": versions(records),
        "bibtex": method_bibtex(board.info.values()),
        "data": data,
    }


def _siblings(board: RankedBoard, boards: Sequence[RankedBoard]) -> list[tuple[RankedBoard, str]]:
    """Boards of the same protocol with other old models, and the quality of these."""
    same = _alike(board, boards)
    if len(same) < 2 or all(other is not board for other in same):
        return []
    return [(other, numbers.number(other.bound("lower", board.metric))) for other in same]


def _alike(board: RankedBoard, boards: Iterable[RankedBoard]) -> list[RankedBoard]:
    """Boards of the same protocol and kind of classes, with nothing changed but the old model."""
    place = board.first.protocol, board.scenario.classes
    return [b for b in boards if b.comparable and (b.first.protocol, b.scenario.classes) == place]


def board_data(board: RankedBoard, boards: Sequence[RankedBoard]) -> dict[str, Any]:
    """Values that the charts and filters of a board's page read beside its rows."""
    return {
        "slug": board.slug,
        "title": board.scenario.title,
        "metrics": [metric_data(board, key) for key in board.metrics],
        "cross": board.cross,
        "own": board.own,
        "parts": [PARTS[part] for part in board.standing.criterion.own_parts],
        "cases": board.shown_cases,
        "shares": [PARTS["above"], PARTS["average"]],
        "first_day": FIRST_DAY,
        "hues": {method: hue(method) for method in board.info},
        "dashes": DASHES,
        "top": _top(board),
        "costs": [{"key": k, "label": COSTS[k] + _UNITS.get(k, "")} for k in board.cost_keys],
        "methods": {method: about.filters for method, about in board.info.items()},
        "quality": _quality(board, boards),
        "backfilling": _backfilling(board.records),
        "sequence": _sequence(board.records),
    }


def _top(board: RankedBoard) -> list[str]:
    """The methods that plots show in colour: those of the front, then the best; at most eight."""
    best = [m for m in board.standing.in_order if board.info[m].ranked and m not in board.unranked]
    if board.enough:
        best = [m for m in best if board.standing.effects[m].enough]
    edge = [m for m in metric_data(board, board.metric)["front"] if m in best]
    return list(dict.fromkeys([*best[:1], *edge, *best]))[:MOST]


def metric_data(board: RankedBoard, key: str) -> dict[str, Any]:
    """A metric: how it is printed, its bounds, and the methods on the Pareto front."""
    about = numbers.metric(key)
    higher = about.higher_is_better is not False
    points = {}
    some = {row.method for row in board.table.rivals}
    for row in board.methods:
        scores = (row.cells.get((key, board.own)), row.cells.get((key, board.cross)))
        x, y = (None if score is None else score.value for score in scores)
        may_win = board.info[row.method].ranked and row.method in some
        if x is not None and y is not None and may_win:
            points[row.method] = float(x), float(y)
    return {
        "key": key,
        "label": about.label,
        "share": about.unit == "share",
        "unit": about.unit,
        "higher": higher,
        "lower": board.bound("lower", key),
        "upper": board.bound("upper", key),
        "front": front(points, higher=higher),
    }


def _quality(board: RankedBoard, boards: Iterable[RankedBoard]) -> list[dict[str, Any]]:
    """Cross-tests under the same protocol on every track: score against the old model's quality."""
    tracks = []
    for other in (each for each in _alike(board, boards) if each.cross == board.cross):
        rows = [row for row in other.methods if other.info[row.method].ranked]
        metrics = {}
        for key in (key for key in other.metrics if key in board.metrics):
            cells = {row.method: row.cells.get((key, other.cross)) for row in rows}
            scores = {m: _rounded(c.value) for m, c in cells.items() if c and c.value is not None}
            metrics[key] = {"lower": _rounded(other.bound("lower", key)), "scores": scores}
        tracks.append({
            "slug": other.slug, "label": other.track, "data": other.first.dataset.name,
            "metrics": metrics, "current": other is board,
        })  # fmt: skip
    return tracks if len(tracks) > 1 else []


def _backfilling(records: Sequence[Record]) -> dict[str, Any] | None:
    """Backfilling curves: metric -> method -> order -> steps at even points."""
    keys = backfilling.curve_metrics(records)
    if not keys:
        return None
    return {
        "metrics": [{"key": key, "label": numbers.metric(key).label} for key in keys],
        "curves": {
            key: {
                method: {name: _steps(curve) for name, curve in orders.items()}
                for method, orders in backfilling.curves(records, key).items()
            }
            for key in keys
        },
        "offline": {
            key: {end: _rounded(value) for end, value in ends.items()}
            for key, ends in backfilling.offline_ends(records).items()
        },
        "areas": {
            f"{row.method}\n{row.order}": {key: _rounded(s.value) for key, s in row.areas.items()}
            for row in backfilling.order_scores(records)
        },
        "oracles": [order for order in backfilling.orders(records) if is_oracle(order)],
        "groups": _groups(records),
    }


def _steps(curve: Sequence[float]) -> list[int]:
    """A curve of percent as its first value and the steps between points, in hundredths.

    Half as long as the values themselves, which were most of a page.

    Example:
        >>> _steps([50.0, 50.126, 49.9])
        [5000, 13, -23]
    """
    whole = [round(100 * value) for value in curve]
    return [value - before for value, before in zip(whole, [0, *whole], strict=False)]


def _groups(records: Sequence[Record]) -> dict[str, Any] | None:
    """Shares backfilled and scores of each group along the curve, of each method's first seed."""
    methods: dict[str, Any] = {}
    names: list[str] = []
    for record in records:
        scores = record.backfilling
        if scores is None or not scores.orders or record.method in methods:
            continue
        names = names or list(scores.groups)[:_GROUPS]
        orders = {}
        for order, curves in scores.orders.items():
            parts = (curves.groups.share, curves.groups.cmc_at_1)
            if all(len(part) >= len(names) for part in parts):
                orders[order] = [[_rounded(v) for v in part[: len(names)]] for part in parts]
        if names and orders and list(scores.groups)[:_GROUPS] == names:
            methods[record.method] = orders
    return {"names": names, "methods": methods} if methods else None


def _sequence(records: Sequence[Record]) -> dict[str, Any] | None:
    """Scores of every pair of generations: metric -> method -> [query, gallery, value, direct]."""
    methods = by_method(records)
    if len(records[0].models) < 3 or not methods:
        return None
    scores: dict[str, dict[str, list[Any]]] = {}
    keys = select.metrics(records, "all")
    for case, key, method in product(sequence.cases(records), keys, methods):
        query, _, gallery = case.partition("/")
        value = _rounded(case_score(methods[method], case, key).value)
        direct = gallery.endswith(" direct")
        cell = [query, gallery.removesuffix(" direct"), value, direct]
        scores.setdefault(key, {}).setdefault(method, []).append(cell)
    return {"generations": list(records[0].models), "scores": scores}


def old_models_data(board: RankedBoard) -> list[dict[str, Any]]:
    """Name, seeds, metrics and rows of the worst old models, the next, ...; of one none."""
    quality: dict[int, float] = {}
    # The bound of a seed is the same in all its records; the independent model's comes first.
    for record in sorted(board.records, key=lambda record: record.method != "independent"):
        value = record.bounds.get("lower", {}).get(board.metric)
        if value is not None:
            quality.setdefault(record.seed, value)
    seeds = sorted(quality, key=lambda seed: (quality[seed], seed))
    n = min(len(seeds), _MOST) if len(seeds) > 1 else 0
    parts = [seeds[len(seeds) * i // n : len(seeds) * (i + 1) // n] for i in range(n)]
    return [_part(board, part, (quality[part[0]], quality[part[-1]])) for part in parts]


def _part(board: RankedBoard, seeds: Sequence[int], quality: tuple[float, float]) -> dict[str, Any]:
    unit = numbers.metric(board.metric).unit
    ends = dict.fromkeys(numbers.number(value, unit) for value in quality)
    some = _some(board, seeds)
    metrics = {key: metric_data(some, key) for key in some.metrics}
    return {
        "label": f"{' to '.join(ends)} ({notes.seed_words(sorted(seeds))})",
        "metrics": {
            key: {name: about[name] for name in ("lower", "upper", "front")}
            for key, about in metrics.items()
        },
        "rows": number_rows(some),
    }


def _some(board: RankedBoard, seeds: Sequence[int]) -> RankedBoard:
    """The board of the records of some seeds; with fewer than three nothing has a rank."""
    stored = tuple(each for each in board.stored if each.record.seed in seeds)
    many = len(board.methods) * len(board.metrics) > _MOST_ROWS
    shown = set(select.metrics(board.records)) if many else set(board.metrics)
    known = shown & set(select.metrics([each.record for each in stored], "all"))
    metrics = tuple(key for key in board.metrics if key in known)
    return RankedBoard(board.slug, stored, board.latest, board.info, board, metrics)


def pack(parts: Sequence[Rows], exact: Container[str] = ()) -> tuple[dict[str, Any], list[Any]]:
    """Rows of the same columns as lines of whole numbers, for ``assets/kit.js``.

    A score stands in millionths, empty where there is none; anything else is a place in ``words``.

    Args:
        parts: Tables.
        exact: Columns whose numbers are no scores.

    Returns:
        ``columns``, ``scores`` (1 of a column of scores, else 0) and ``words``; then the lines of
        each table.

    Example:
        >>> pack([[{"method": "bct", "map": 0.5}, {"method": "bct", "map": None}]])
        ({'columns': ['method', 'map'], 'scores': [0, 1], 'words': ['bct']}, [['0|500000', '0|']])
    """
    columns = list(parts[0][0])
    scores = [
        column not in exact
        and all(row[column] is None or type(row[column]) is float for rows in parts for row in rows)
        for column in columns
    ]
    places: dict[tuple[type, Any], int] = {}

    def text(value: Any, is_score: bool) -> str:
        if not is_score:
            return str(places.setdefault((type(value), value), len(places)))
        return "" if value is None else str(round(_MILLION * value))

    lines = [["|".join(map(text, row.values(), scores)) for row in rows] for rows in parts]
    words = [value for _, value in places]
    return {"columns": columns, "scores": [int(s) for s in scores], "words": words}, lines
