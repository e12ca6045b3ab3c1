"""Recommendations: for the commonest upgrade, for each board, and for the chooser.

Nothing here mixes boards, and nothing that hurts new/new beyond the interval is recommended.
"""

from collections.abc import Sequence
from typing import Any, Literal

from benchmark.metrics.cost_model import Assumptions
from benchmark.metrics.estimate import Estimate
from benchmark.report import numbers, select
from benchmark.report.costs import bill_words, money_words
from benchmark.report.effects import Effect, keeps, models_words
from benchmark.report.ranks import apart
from benchmark.report.scenarios import CLASSES
from benchmark.report.tables import backfilling
from leaderboard.names import method_href
from leaderboard.rank.boards import NO_SCORE, RankedBoard, compared, rounded
from leaderboard.read.methods import MethodInfo

Way = Literal["train", "convert", "query", "lists"]
WAYS: dict[Way, str] = {
    "train": "trains the new model to fit the stored index, which stays as it is",
    "convert": "a map of the stored vectors, fitted on pairs; no image of the index is needed",
    "query": "a map of each new query to the old vectors; the stored index stays as it is",
    "lists": "one list of both models' answers to each query; the stored vectors stay as they are",
}
"""Ways to update -> what happens."""
HELD = {
    "the old classifier": "the old model's classifier",
    "the new classifier": "the new model's classifier",
    "labels": "labels of the pairs",
    "side-information": "side-information that was stored with each item",
    "a first generation of its own": "an old model trained by the same method",
    "longer": "room for a longer embedding",
    "the old model on all queries": "time to run the old model, too, on every query",
    "new embeddings": "time to embed stored pictures anew within every query",
}
"""Needs of methods beside pictures and vectors, in the chooser's words."""
ASSUMED = Assumptions()
"""Defaults of the chooser."""
_COMMON = ("extended-class", "open-class")
_COSTS = ("training_cost", "fit_multiply_adds", "convert_multiply_adds")


def way(info: MethodInfo) -> Way | None:
    """The way in which a method updates; None for bounds, controls and what is not installed."""
    if info.family == "compatible training":
        return "train"
    if info.family == "transformation":
        one_list = info.indexes == 1 and not info.new_embeddings
        return "convert" if "gallery" in info.changes else "query" if one_list else "lists"
    return None


def held(info: MethodInfo) -> list[str]:
    """Keys of :data:`HELD` that a method needs."""
    longer = ["longer"] if "dimension" in info.changes else []
    embeds = ["new embeddings"] if info.new_embeddings else []
    return [*(need for need in info.needs if need in HELD), *longer, *embeds]


def update_hours(board: RankedBoard, method: str) -> float:
    """Hours of an update under the chooser's defaults."""
    info = board.info[method]
    trains = way(info) == "train"
    return ASSUMED.updating(board.update_costs(method), trains=trains, fitted=info.fitted)


def update_words(board: RankedBoard, method: str) -> str:
    """Hours and money of an update, and of each query after it."""
    bill = bill_words(update_hours(board, method), ASSUMED)
    return " and ".join(filter(None, (bill, query_words(board.info[method]))))


def query_words(info: MethodInfo) -> str:
    """Money of what the new model embeds while queries wait; empty where that is nothing."""
    if not info.new_embeddings:
        return ""
    money = money_words(ASSUMED.money(ASSUMED.embedding(1e6 * info.new_embeddings)))
    return f"{money} a million queries, {info.new_embeddings} items embedded anew for each"


def commonest(boards: Sequence[RankedBoard]) -> RankedBoard | None:
    """Board of the commonest upgrade: photographs, more classes learned, unseen ones judged.

    The question and the number of old models choose it, never what came out.
    """
    plain = [b for b in compared(boards) if not b.of_setting]
    if not plain:
        return None

    def order(board: RankedBoard) -> tuple[Any, ...]:
        protocol = board.first.protocol
        place = _COMMON.index(protocol) if protocol in _COMMON else len(_COMMON)
        seen = board.scenario.classes == "seen"
        return board.scenario.place, place, seen, -board.models, -len(board.stored)

    return min(plain, key=order)


def candidates(board: RankedBoard) -> list[str]:
    """Methods above doing without that do not hurt new/new: of enough models, then by share."""
    if board.unpaid:
        return []
    found = board.standing.effects
    fit = [
        m for m, e in found.items()
        if way(board.info[m]) and m not in board.unranked and e.share.value is not None
        and not e.hurts and e.share.value > 0 and not board.standing.below(m)
    ]  # fmt: skip
    return sorted(fit, key=lambda m: (not found[m].enough, -(found[m].share.value or 0.0), m))


def advice(board: RankedBoard, ways: Sequence[Way], who: str) -> dict[str, Any] | None:
    """The first candidate of some ways that needs nothing beside pictures and vectors.

    Returns:
        In words: ``who`` it is for, what ``happens``, its ``bill``, the ``runner_up``, what would
        keep ``more``, and all that :func:`_option` has.
    """
    possible = [m for m in candidates(board) if way(board.info[m]) in ways]
    fit = [m for m in possible if not _lacks(board, m, ways)]
    if not fit:
        return None
    method, *others = fit
    mine = way(board.info[method]) or "train"
    return _option(board, method, fits=True) | {
        "who": who, "href": method_href(method), "happens": WAYS[mine],
        "bill": update_words(board, method), "runner_up": _runner_up(board, method, others),
        "runner_up_href": method_href(others[0]) if others else "",
        # The first of the methods before it, and its needs.
        "more": "" if possible[0] == method else _costly(board, ways, possible[0]),
    }  # fmt: skip


def _lacks(board: RankedBoard, method: str, ways: Sequence[Way]) -> list[str]:
    """Needs of a method that who can go some ways need not have."""
    given = {"the new classifier", "labels"} if "train" in ways else set()
    return [need for need in held(board.info[method]) if need not in given]


def _costly(board: RankedBoard, ways: Sequence[Way], method: str) -> str:
    needs = " and ".join(HELD[need] for need in _lacks(board, method, ways))
    return f"{method} {keeps(board.standing.effects[method])}, but needs {needs}"


def costly(board: RankedBoard, ways: Sequence[Way]) -> str:
    """The first candidate of some ways, where each needs more than pictures and vectors."""
    possible = [m for m in candidates(board) if way(board.info[m]) in ways]
    return _costly(board, ways, possible[0]) if possible else ""


def _runner_up(board: RankedBoard, method: str, others: Sequence[str]) -> str:
    if not others:
        return ""
    both, of = (method, others[0]), board.standing
    enough = all(of.effects[m].enough for m in both)
    tied = enough and not apart(*(of.values[m] for m in both))
    return f"{others[0]} {keeps(of.effects[others[0]])}" + ", which cannot be told apart" * tied


def score_words(board: RankedBoard, effect: Effect) -> str:
    """The score, and those of the old model and of the new one alone."""
    return (
        f"{board.standing.criterion.words} {board.words(effect.value.value)}; the old model "
        f"{board.bound_words('lower')}, the new one alone {board.bound_words('upper')}"
    )


def worst_words(board: RankedBoard, effect: Effect) -> str:
    """The worst moment in words."""
    moment = "while it is backfilled" if board.curved else "right after the update"
    value = board.words(effect.worst.value)
    return f"{value} {moment}, where the old model has {board.bound_words('lower')}"


def board_answer(board: RankedBoard) -> dict[str, Any]:
    """The first lines of a board: the best that does not hurt, and what else must be known."""
    if board.unpaid:
        why = f"Training does not pay here: {board.unpaid}. No method has a rank."
        return {"method": None, "lines": [why], "sure": True}
    fit, direct = candidates(board), direct_words(board)
    effects, lines = board.standing.effects, []
    if not fit:
        lines += none_words(board, direct=bool(direct))
    else:
        best = fit[0]
        place = board.standing.place(best)
        others = "1 other" if place.tied == 1 else f"{place.tied} others"
        tied = f" Tied with {others}." if place.rank and place.tied else ""
        effect = effects[best]
        lines.append(f"{keeps(effect)}.{tied} {score_words(board, effect)}.")
        if needs := [HELD[need] for need in held(board.info[best])]:
            lines.append(f"It needs {' and '.join(needs)}.")
            if other := next((m for m in fit if not held(board.info[m])), None):
                beyond = board.beyond(other)
                doubt = beyond.ends is not None and not beyond.is_above(0)
                same = ", which cannot be told from doing without any method" * doubt
                lines.append(
                    f"With pictures and vectors alone, {other} {keeps(effects[other])}{same}."
                )
        lines.append(f"Worst moment: {worst_words(board, effect)}.")
    lines += direct
    plain = plain_words(board, fit[0] if fit else None)
    half = half_words(board)
    lines += [words for words in (plain, half) if words]
    hurting = [m for m in board.standing.in_order if effects[m].hurts and board.info[m].ranked]
    if hurting:
        lines.append(
            f"Hurts new/new: {', '.join(hurting[:6])}{' and others' if len(hurting) > 6 else ''}."
        )
    return {"method": fit[0] if fit else None, "lines": lines, "sure": board.enough}


def none_words(board: RankedBoard, *, direct: bool) -> list[str]:
    """That no method keeps a share; which ones are better than none all the same.

    One that is made to fit the first model of a chain, ``direct``, is told elsewhere.
    """
    of = board.standing
    above = [
        m for m in of.in_order if board.info[m].ranked and m not in board.unranked
        and of.effects[m].value.value is not None and not of.below(m)
    ]  # fmt: skip
    fine = [m for m in above if not of.effects[m].hurts]
    if not fine:
        no = "Updated one after the other, no" if direct else "No"
        but = ", unless it hurts new/new" if above else ""
        return [f"{no} method that was measured here is better than doing without any{but}."]
    scores = ", ".join(f"{m} {board.words(of.effects[m].value.value)}" for m in fine)
    why = unknown_words(board)
    unknown = [f"No share of the upgrade can be told: {why}."] if why else []
    today = board.bound_words("lower")
    return [*unknown, f"Better than doing without any: {scores}; the old model {today}."]


def unknown_words(board: RankedBoard) -> str:
    """A reason that no method's share of the upgrade is known; empty where one is."""
    if any(e.share.value is not None for e in board.standing.effects.values()):
        return ""
    if select.text_queries(board.records):
        return "the new model alone was measured on other queries than the old one"
    old, new = (board.bound(kind, board.metric) or 0.0 for kind in ("lower", "upper"))
    better = new > old if board.standing.criterion.higher else new < old
    return (
        f"by {numbers.metric(board.metric).label} the new model alone "
        f"({board.bound_words('upper')}) is {'hardly' if better else 'no'} better than the old one "
        f"({board.bound_words('lower')})"
    )


def direct_words(board: RankedBoard) -> list[str]:
    """The best of a chain where each model is made to fit the first one, not the one before it."""
    case, metric = f"{board.cross} direct", board.metric
    if board.standing.criterion.kind != "chain" or case not in board.table.cases:
        return []
    rows = {row.method: row.cells.get((metric, case), NO_SCORE) for row in board.methods}
    known = {
        m: s for m, s in rows.items()
        if s.value is not None and board.info[m].ranked and m not in board.unranked
    }  # fmt: skip
    today = board.bound("lower", metric)
    best = max(known, key=lambda m: (known[m].known, m), default=None)
    if best is None or today is None or known[best].known <= today:
        return []
    sure = known[best].is_above(today)
    return [
        f"Without the models between ({case}) {best} has {board.words(known[best].value)}, the old "
        f"model {board.words(today)}"
        f"{'' if sure else ', which cannot be told apart'}."
    ]


def plain_words(board: RankedBoard, best: str | None) -> str:
    """A sentence on plain baselines that the best method is not above, beyond the interval.

    They are what hardly any work already gives: keeping the old model, which keeps nothing of the
    upgrade, and methods that declare so. The interval is of the difference in shares of the
    upgrade, over the seeds of both; fewer than three say nothing. Empty where the best is above.
    """
    shares = board.standing.shares
    plain = {"keeping the old model": dict.fromkeys(shares.get(best or "", {}), 0.0)}
    plain |= {
        words: dict(shares.get(method, {}))
        for method, info in board.info.items()
        if (words := info.baseline) and method not in board.unranked
    }
    if best is None or best in board.unranked:
        return ""
    matched = [w for w, of in plain.items() if board.standing.above(best, of) is False]
    if not matched:
        return ""
    *others, last = matched
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"{best}, the best method, is not above {listed}, beyond the interval."


def half_words(board: RankedBoard) -> str:
    """The best when half of the gallery is backfilled, in the order that each method brings."""
    if not board.curved:
        return ""
    names = {r.method: backfilling.order_name(r) for r in board.records if r.orders}
    scores: dict[str, Estimate] = {}
    for row in backfilling.order_scores(board.records):
        if names.get(row.method) == row.order and (50, board.metric) in row.budgets:
            scores[row.method] = row.budgets[50, board.metric]
    rivals = {
        m: s.value for m, s in scores.items() if m in candidates(board) and s.value is not None
    }
    if not rivals:
        return ""
    best = max(rivals, key=lambda m: (rivals[m], m))
    alone = scores.get("independent", Estimate(None)).value
    beside = f"; no method in random order {numbers.number(alone)}" if alone is not None else ""
    label = numbers.metric(board.metric).label
    value = numbers.number(rivals[best])
    return f"Half of the gallery backfilled: {best} has {label} {value}{beside}."


def chooser_data(boards: Sequence[RankedBoard]) -> list[dict[str, Any]]:
    """Per board its methods in the order in which they are recommended, for the chooser."""
    chosen = []
    for board in boards:
        fit = candidates(board)
        rest = [m for m in board.standing.in_order if way(board.info[m]) and m not in fit]
        if not fit and not rest:
            continue
        classes = board.scenario.classes
        chosen.append({
            "slug": board.slug, "title": board.scenario.title,
            "group": CLASSES[classes] or "other classes",
            "today": board.bound_words("lower"), "alone": board.bound_words("upper"),
            "unknown": unknown_words(board), "metric": numbers.metric(board.metric).label,
            "curve": board.curved,
            "rows": [_option(board, m, fits=m in fit) for m in (*fit, *rest)],
        })  # fmt: skip
    return chosen


def _option(board: RankedBoard, method: str, *, fits: bool) -> dict[str, Any]:
    effect, info = board.standing.effects[method], board.info[method]
    costs, low = board.update_costs(method), effect.share.low
    may_not = "By its interval it may be no better than keeping the old model."
    return {
        "method": method, "way": way(info), "held": held(info), "fits": fits,
        "rewrites": "gallery" in info.changes, "fitted": info.fitted,
        "embeds": info.new_embeddings,
        "hurts": effect.hurts, "models": models_words(effect.models), "sure": effect.enough,
        "share": rounded(effect.share.value), "keeps": keeps(effect),
        "caveat": "" if low is None or low > 0 else may_not, "score": score_words(board, effect),
        "worst": worst_words(board, effect),
        "costs": {key: costs[key] for key in _COSTS if key in costs},
    }  # fmt: skip
