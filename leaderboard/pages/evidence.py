"""The pages of evidence: claims by our records, orders that transfer, papers' numbers, factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.config.grouping import grouped
from benchmark.errors import AbsentError, BenchError
from benchmark.records.files import STUDIES, StoredRecord, evidence_file, study_records
from benchmark.records.published import Number, Published
from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.effects import models_words
from benchmark.report.outcome import RAW
from benchmark.report.scenarios import KINDS
from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.studies.claims import answers, read_claims
from benchmark.studies.claims import tables as claim_tables
from benchmark.studies.claims.verdicts import LEAST_SEEDS
from benchmark.studies.factors import tables as of_factors
from benchmark.studies.factors.model import FILE, Factors, FactorStudy, fit, read_study
from benchmark.studies.lengths.shares import Lengths, compare_lengths, with_usual
from benchmark.studies.lengths.shares import tables as length_tables
from benchmark.studies.transfer import compare_all, networks, read_rules
from benchmark.studies.transfer import tables as transfer_tables
from benchmark.studies.transfer.compare import Agreement, agree, paper_tables
from leaderboard.names import file_name
from leaderboard.pages.claims import claims_pages, tell
from leaderboard.rank.boards import RankedBoard
from leaderboard.read.records import skip

FIGURES = "assets/figures"
_MOST_COLUMNS = 8
_Line = tuple[str, ...]
NAME = "pays"
"""Of the study."""


def has_evidence(records: Sequence[Record]) -> bool:
    """Something can be told: three seeds of a method, and the committed files are here."""
    try:
        for name in ("claims.yaml", "transfer.yaml"):
            evidence_file(name)
    except AbsentError:
        return False
    seeds = Counter((r.protocol, r.track, r.method) for r in records if not r.changed)
    return max(seeds.values(), default=0) >= LEAST_SEEDS


def evidence_page(
    stored: Sequence[StoredRecord], published: Published, roots: Sequence[Path] = ()
) -> dict[str, Any]:
    """Values of the template, ``claims_pages`` by address, and ``figures``: file -> its bytes.

    Studies are read in or beside the ``roots`` of the records; ``skipped`` is what is damaged
    there, and so was passed over.
    """
    from benchmark.report.plots import style  # matplotlib takes a second
    from benchmark.studies.share_plots import lengths_drawings
    from benchmark.studies.transfer import plot as transfer_plots

    records = [each.record for each in stored]
    claims, damaged = read_claims(), list[BenchError]()
    asked_for = study_records(roots, "claims", damaged.append)
    found = answers(claims, [*records, *(each.record for each in asked_for)])
    told, rules = tell(found, claims), read_rules()
    compared = compare_all(records, published, rules)
    carried = networks.carried(compared, rules)
    lengths = _lengths(stored, study_records(roots, "lengths", damaged.append), damaged.append)
    kept = dict(style.files(lengths_drawings(lengths), ["svg"]))
    orders = dict(style.files(transfer_plots.drawings(compared, rules), ["svg"]))
    return {
        "told": told,
        "words": {answer.name: claim_tables.list_words(answer) for answer in found},
        "claims_pages": claims_pages(found, told),
        "decided": [*claim_tables.decided_words(found)],
        "changed": [*networks.changed_words(carried), *claim_tables.differing_words(found)],
        "networks": networks.carried_table(carried) if carried else None,
        "transfer": transfer_tables.tables(compared, rules),
        "lengths": length_tables(lengths),
        "length_figures": kept,
        "transfer_figures": orders,
        "figures": orders | kept,
        "skipped": [skip(error, roots) for error in damaged],
    }


def _lengths(
    stored: Sequence[StoredRecord], longer: Sequence[StoredRecord],
    on_damaged: Callable[[BenchError], None],
) -> list[Lengths]:  # fmt: skip
    """Methods by length of training, of studies beside the board's records of the usual length."""
    try:
        return compare_lengths(with_usual(longer, stored), ["cmc_at_1"]) if longer else []
    except AbsentError:  # one length only so far
        return []
    except BenchError as error:  # damaged details
        on_damaged(error)
        return []


def make_tables(published: Sequence[Number], *, paper: bool = False) -> list[TextTable]:
    """A table for each protocol and dataset, whose lines name their papers if ``paper``."""
    groups = grouped((f"{number.protocol} on {number.dataset}", number) for number in published)
    return [_table(title, members, paper) for title, members in groups.items()]


def _table(title: str, members: Sequence[Number], paper: bool) -> TextTable:
    """Metrics side by side, or cases, whichever is shorter."""
    pivots = {by: _pivot(members, by, paper) for by in ("metric", "case")}
    names = {by: list(dict.fromkeys(getattr(n, by) for n in members)) for by in pivots}
    narrow = [by for by in pivots if len(names[by]) <= _MOST_COLUMNS] or ["metric"]
    by = min(narrow, key=lambda by: len(pivots[by]))
    other = "case" if by == "metric" else "metric"
    words = ["table", "method", "variant", "models", other]
    heads = [TextColumn(_label(name, by) or "value") for name in names[by]]
    lines = []
    for line, values in pivots[by].items():
        cells = [TextCell(word) for word in (*line[:4], _label(line[4], other))]
        cells[3] = TextCell(line[3], look="wide")
        notes = dict.fromkeys(n.note for n in values.values() if n.note)
        printed = [_printed(values.get(name)) for name in names[by]]
        lines.append([*cells, *printed, TextCell("; ".join(notes), look="note")])
    # Words that no line has are left out; table and method are always known.
    kept = [i for i in range(len(lines[0])) if any(cells[i].text for cells in lines)]
    kept = sorted({0, 1, *range(5, 5 + len(heads))} | set(kept))
    every: list[str | TextColumn] = [*words, *heads, TextColumn("note", words=True)]
    n = sum(i < 5 for i in kept)
    return simple_table(
        title,
        "",
        [words[i] for i in kept[:n]],
        [every[i] for i in kept[n:]],
        [[cells[i] for i in kept] for cells in lines],
    )


def _pivot(members: Sequence[Number], by: str, paper: bool) -> dict[_Line, dict[str, Number]]:
    """Words of a line -> column -> number; what is printed twice has two lines."""
    lines: dict[_Line, dict[str, Number]] = {}
    for number in members:
        table = f"{number.paper}, {number.table}" if paper else number.table
        other = number.case if by == "metric" else number.metric
        words = (table, number.method, number.variant, number.models, other)
        column, turn = getattr(number, by), 0
        while column in lines.setdefault((*words, str(turn)), {}):
            turn += 1
        lines[*words, str(turn)][column] = number
    return lines


def _label(name: str, kind: str) -> str:
    return numbers.metric(name).label if kind == "metric" and name else name


def _printed(number: Number | None) -> TextCell:
    if number is None:
        return TextCell(sort="", look="value")
    return TextCell(number.words, sort=repr(number.value), look="value")


@dataclass(frozen=True)
class PaperBeside:
    """A table of a paper beside a board."""

    found: Agreement
    title: str  # of the paper
    board: RankedBoard

    @property
    def kind(self) -> str:
        """Kind of the board's pictures."""
        return self.board.scenario.kind

    @property
    def metric(self) -> str:
        """The metric in words."""
        return numbers.metric(self.found.metric).label

    @property
    def measured(self) -> list[tuple[str, str]]:
        """Methods, best first, with their scores as printed."""
        unit = numbers.metric(self.found.metric).unit
        return [(m, numbers.number(score, unit)) for m, score in self.found.measured]

    @property
    def on(self) -> str:
        """Pictures and number of models of the board."""
        return f"{KINDS[self.kind]}, {models_words(self.board.models)}"


def papers_beside(published: Published, boards: Sequence[RankedBoard]) -> list[PaperBeside]:
    """Every table of cross-tests with at least two methods that a board of its protocol has too."""
    pairs = [
        (mine, board, metric)
        for (*_, protocol, metric), mine in paper_tables(published).items()
        for board in boards
        if board.current and board.first.protocol == protocol and metric in board.metrics
    ]
    return [
        PaperBeside(found, published.papers[found.paper].title, board)
        for mine, board, metric in pairs
        if (found := agree(mine, _scores(board, metric))) is not None
    ]


def _scores(board: RankedBoard, metric: str) -> dict[str, float]:
    cells = ((row.method, row.cells.get((metric, board.cross))) for row in board.rows(metric))
    return {m: score.value for m, score in cells if score and score.value is not None}


def pairs_table(found: Sequence[PaperBeside]) -> TextTable:
    """Numbers of pairs of methods that stand in each paper's order, by the kind of our pictures."""
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in found)]
    lines: list[list[str | TextCell]] = []
    for paper, title in dict.fromkeys((each.found.paper, each.title) for each in found):
        of = [each for each in found if each.found.paper == paper]
        name = TextCell(title, href=f"published/{file_name(paper)}.html")
        lines.append([name, *(_counted([e for e in of if e.kind == kind]) for kind in kinds)])
    heads = [f"on {KINDS[kind]}" for kind in kinds]
    return simple_table("Pairs of methods in the paper's order", "", ("paper",), heads, lines)


def _counted(found: Sequence[PaperBeside]) -> str:
    same, pairs = sum(each.found.same for each in found), sum(each.found.pairs for each in found)
    return f"{same} of {pairs}" if pairs else ""


def factors_page(
    roots: Sequence[Path], damaged: Callable[[BenchError], None]
) -> dict[str, Any] | None:  # fmt: skip
    """Values of the template; None before the study's records. ``damaged`` is told of what is."""
    folders = [place / STUDIES / NAME for root in roots for place in (root, root.parent)]
    folder = next((each for each in folders if (each / FILE).is_file()), None)
    if folder is None:
        return None
    try:
        study = read_study(folder)
        records = [each.record for each in study_records(roots, NAME, damaged)]
        found = [fit(study, records, metric) for metric in study.metrics]
    except AbsentError:
        return None
    except BenchError as error:
        damaged(error)
        return None
    from benchmark.report.plots import style  # matplotlib takes a second
    from benchmark.studies.share_plots import factors_drawings

    return {
        "study": study, "found": [of_factors.summary(each) for each in found],
        "answers": [of_factors.answer(study, each) for each in found],
        "raw": RAW if any(e.method == RAW for each in found for e in each.effects) else "",
        "factors": [_factor(study, found, name) for name in study.factors],
        "figures": dict(style.files(factors_drawings(study, found[:1]), ["svg"])),
    }  # fmt: skip


def _factor(study: FactorStudy, found: Sequence[Factors], name: str) -> dict[str, Any]:
    return {
        "title": study.factors[name].title, "name": name,
        "told": [
            (numbers.metric(each.metric).label, of_factors.sentence(study, each, name))
            for each in found
        ],
        "figure": f"factors-{name}-{found[0].metric}.svg",
        "tables": [t for each in found for t in of_factors.tables(study, [each]) if name in t.slug],
    }  # fmt: skip
