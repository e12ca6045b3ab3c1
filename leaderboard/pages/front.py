"""The first page, the list of all scenarios, and two methods beside each other on each board."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmark.metrics.cost_model import LEAST_EXTRA, Assumptions
from benchmark.metrics.estimate import Estimate
from benchmark.pairs.records import PairRecord
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.effects import Effect, keeps, models_words, percent
from benchmark.report.scenarios import SHORT_KINDS
from benchmark.report.text_table import (
    TextBlock,
    TextCell,
    TextColumn,
    TextRow,
    TextTable,
    simple_table,
)
from leaderboard.names import method_href, record_href
from leaderboard.pages.claims import Told
from leaderboard.pages.pairs import real_models
from leaderboard.pages.tables import SettingsFamily, method_cell, paper_cells
from leaderboard.rank import answers
from leaderboard.rank.boards import RankedBoard, compared, unpaid
from leaderboard.rank.heatmap import heatmap, side_by_side
from leaderboard.read.methods import MethodInfo

QUESTIONS = (
    ("Verification, 1:1", "ijbc-1v1"),
    ("A chain of updates", "sequential"),
    ("Half of the gallery is backfilled", "backfill"),
)
"""Questions of readers that a board answers, and its protocol."""
_FAMILIES = ("compatible training", "transformation", "baseline", "control", "unknown")
TEXT = "text"
"""Tab of scenarios whose queries are text."""
_TAB_WORDS = {"unknown": "not installed here"}
_VENDOR: tuple[answers.Way, ...] = ("convert", "query", "lists")
"""Ways of those who did not train the new model."""
_READERS: tuple[tuple[tuple[answers.Way, ...], str], ...] = (
    (_VENDOR, "You use a model that you did not train"),
    (("train",), "You train the new model yourself"),
)


def index(
    boards: Sequence[RankedBoard], methods: Iterable[str], *, real: bool = False
) -> dict[str, Any]:
    """Values of the first page: the answer for the commonest upgrade, the heatmap, the chooser."""
    current = compared(boards)
    single = [board for board in current if not board.of_setting]
    board = answers.commonest(boards)
    # The commonest upgrade comes first: rows are in its order.
    columns = [b for b in single if b is board] + [b for b in single if b is not board]
    return {
        "board": board,
        "advice": [
            found for ways, who in _READERS if board and (found := answers.advice(board, ways, who))
        ],
        "costly": "" if board is None else answers.costly(board, _VENDOR),
        "heat": heatmap(columns or current),
        "tracks": None if board is None else side_by_side(single, board.first.protocol),
        "questions": _questions(single, real=real),
        "assumed": Assumptions(),
        "data": {
            "chooser": answers.chooser_data(columns or current),
            "ways": answers.WAYS, "held": answers.HELD, "least_extra": LEAST_EXTRA,
            "pages": {method: method_href(method) for method in methods},
        },
    }  # fmt: skip


def _questions(boards: Sequence[RankedBoard], *, real: bool) -> list[tuple[str, str, str]]:
    """Questions of readers: words, address, what the chooser is set to; some of ``real`` models."""
    found = [
        ("My vendor retires a model", "#which", "vendor"),
        ("I train my own and cannot touch the index", "#which", "own"),
    ]
    for words, protocol in QUESTIONS:
        of = [board for board in boards if board.first.protocol == protocol]
        if of:  # of photographs, and of the most old models
            board = max(of, key=lambda b: (b.scenario.kind == "photographs", b.models))
            found.append((_asked(words, board), f"boards/{board.slug}.html", ""))
    found.append(("This method or that one, and how sure", "compare.html", ""))
    if real:
        found.append(("Does it hold beyond small pictures", "pairs.html#found", ""))
    return found


def _asked(words: str, board: RankedBoard) -> str:
    """A question of readers, with what it was measured on where that is no photograph."""
    models = "" if board.enough else f", {models_words(board.models)}"
    subject = board.scenario.subject
    return words if board.scenario.kind == "photographs" else f"{words} (on {subject}{models})"


def method_tables(infos: Iterable[MethodInfo], told: Told) -> dict[str, Any]:
    """The methods of each family, with their papers, the claims of these, and their sources."""
    rows: dict[str, list[TextRow]] = {family: [] for family in _FAMILIES}
    for info in infos:
        words = (
            info.difference or info.summary or "not installed here",
            ", ".join(info.needs) or "nothing but new data",
            ", ".join(info.changes) or "nothing in the gallery",
        )
        paper, *code = paper_cells(info) or (TextCell(),)
        claims = told.claimed(info)
        parts = (TextCell("claims", href=claims),) if claims else ()
        cells = (*map(TextCell, words), paper._replace(parts=(*code, *parts)))
        cells = (*cells, TextCell(info.fidelity or numbers.DASH))
        about = {"class": "item", "data-kind": info.family}
        rows[info.family].append(TextRow((method_cell(info.method),), (cells,), "", about))
    labels = (TextColumn("method", heading=True),)
    heads = ("idea", "needs", "changes", "paper", "built from")
    block = TextBlock("", tuple(TextColumn(head, words=True) for head in heads))
    shown = {family: of for family, of in rows.items() if of}
    return {
        "families": [TextTable(f, "", labels, (block,), tuple(of)) for f, of in shown.items()],
        "tabs": [(f, _TAB_WORDS.get(f, f), len(of)) for f, of in shown.items()],
        "n": sum(map(len, shown.values())),
    }


def scenarios(
    boards: Sequence[RankedBoard], families: Sequence[SettingsFamily], pairs: Sequence[PairRecord]
) -> dict[str, Any]:
    """Every board: those of three models or more, the others apart, and what was changed.

    ``kinds`` are those of their tabs: key, words, number of boards.
    """
    current = [board for board in compared(boards) if not board.of_setting]
    of_families = [board for family in families for board in family.boards.values()]
    apart = unpaid(boards)
    shown = {board.slug for board in (*current, *of_families, *apart)}
    lines = [_card(board) for board in current]
    tabs = Counter(kind for line in lines for kind in line["kinds"])
    tabs.update(family.kind for family in families)
    real = real_models(pairs)
    tabs.update(real["kinds"] if pairs else ())
    words = {**SHORT_KINDS, TEXT: "text"}
    return {
        "tabs": [(kind, words[kind], tabs[kind]) for kind in words if tabs[kind]],
        "n": len(lines) + len(families) + bool(pairs),
        "real": real,
        "several": [line for line in lines if line["board"].enough],
        "single": [line for line in lines if not line["board"].enough],
        "families": families,
        "unpaid": apart,
        "changed": [board for board in boards if board.slug not in shown],
    }


def _card(board: RankedBoard) -> dict[str, Any]:
    """A board with its question, the kinds that its tabs are of, and its best method."""
    text = (TEXT,) if select.text_queries(board.records) else ()
    fit = answers.candidates(board)
    return {
        "board": board, "question": notes.question(board.first),
        "kinds": (board.scenario.kind, *text), "best": fit[0] if fit else "",
        "keeps": keeps(board.standing.effects[fit[0]]) if fit else "",
    }  # fmt: skip


def newest(records: Sequence[Record], boards: Sequence[RankedBoard]) -> TextTable:
    """The newest records."""
    homes = {id(record): board for board in boards for record in board.records}
    lines = []
    for record in records:
        board = homes[id(record)]
        href = record_href(board.slug, record)
        words = (board.scenario.title, str(record.seed), record.run.finished or "unknown")
        lines.append([TextCell(record.method, href=href), *map(TextCell, words)])
    return simple_table("Newest records", "", ("method", "scenario", "seed", "finished"), (), lines)


_NARROW = 5
"""Columns at a time on a narrow screen."""
_WIDEST = 16
"""At most so many methods have a row and a column: more have no room."""


def compare(boards: Sequence[RankedBoard]) -> dict[str, Any]:
    """Values of the page: boards with ranks, methods by the boards they are on, the matrix."""
    shown = [b for b in compared(boards) if b.enough and not b.of_setting]
    every = dict.fromkeys(m for b in shown for m in b.standing.effects if _takes_part(b, m))
    methods = sorted(every, key=lambda m: (-sum(_takes_part(b, m) for b in shown), m))
    main = [m for m in methods if ":" not in m][:_WIDEST]
    pairs = {(a, b): _pair(shown, a, b) for a in methods for b in methods if a < b}
    return {
        "main": main, "width": _NARROW,
        "parts_of": [", ".join(main[i : i + _NARROW]) for i in range(0, len(main), _NARROW)],
        "matrix": [(a, method_href(a), [_cell(pairs, a, b) for b in main]) for a in main],
        "data": {
            "methods": methods, "pages": {m: method_href(m) for m in methods},
            "boards": [[b.slug, b.scenario.title] for b in shown],
            "shares": {m: [_share(b, m) for b in shown] for m in methods},
            "differences": {
                f"{a} {b}": [None if d is None else _ends(d) for d in of]
                for (a, b), of in pairs.items()
            },
        },
    }  # fmt: skip


def _takes_part(board: RankedBoard, method: str) -> bool:
    """Tell a method that may have a rank there, on enough models, with a share that is known."""
    effect: Effect | None = board.standing.effects.get(method)
    ranked = board.info[method].ranked if method in board.info else False
    known = effect is not None and effect.enough and effect.share.value is not None
    return ranked and method not in board.unranked and known


def _share(board: RankedBoard, method: str) -> str:
    return percent(board.standing.effects[method].share) if _takes_part(board, method) else ""


def _pair(boards: Sequence[RankedBoard], left: str, right: str) -> list[Estimate | None]:
    """Share of the upgrade of one method minus that of another, over the seeds of both."""
    return [
        b.standing.margin(left, b.standing.shares[right])
        if _takes_part(b, left) and _takes_part(b, right)
        else None
        for b in boards
    ]


def _cell(pairs: dict[tuple[str, str], list[Estimate | None]], left: str, right: str) -> TextCell:
    """Wins and losses of a row's method against a column's, beyond the intervals."""
    if left == right:
        return TextCell("", look="na")
    known = [d for d in pairs[min(left, right), max(left, right)] if d is not None]
    above, below = sum(d.is_above(0.0) for d in known), sum(d.is_below(0.0) for d in known)
    wins, losses = (above, below) if left < right else (below, above)
    if not known:
        return TextCell("·", look="unknown", hint="no board has both")
    look = "p2" if wins > losses else "m1" if losses > wins else "open"
    hint = f"{left} is above {right} on {wins} of {len(known)} boards, below on {losses}"
    return TextCell(f"{wins}:{losses}", look=look, hint=hint)


def _ends(difference: Estimate) -> list[int | None]:
    """Whole percent: the difference and the ends of its interval; and which side is surely above.

    1 the first, -1 the second, 0 none: rounded ends would tell fewer.
    """
    ends = (difference.value, difference.low, difference.high)
    side = int(difference.is_above(0.0)) - int(difference.is_below(0.0))
    return [*(None if end is None else round(100 * end) for end in ends), side]
