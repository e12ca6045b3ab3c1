"""The table of side-information: what each kind costs, what it is by itself, what it gives.

Source: FCT Table 6 and section 5.3. Rows are kinds; beside each method that stores one stands the
same method without.
"""

from collections.abc import Iterable, Iterator, Sequence

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.statistics import mean_score
from benchmark.records.record import Record
from benchmark.report import notes, numbers, select
from benchmark.report.scores import by_method, case_score, named_groups
from benchmark.report.tables.results import COLUMNS
from benchmark.report.text_table import TextCell, TextTable, score_cell, score_cells, simple_table
from benchmark.training.side_kinds import SIDES

_METRICS = {"cmc_at_1", "cmc_at_5", "map"}
_ALONE = "cmc_at_1"


def make_tables(records: Iterable[Record], metrics: select.Names = None) -> list[TextTable]:
    """A table for each protocol and track where something is stored beside the embedding.

    By default the metrics are CMC@1, CMC@5 and mAP.
    """
    return [
        _table(members, slug, keys)
        for slug, members in named_groups(records)
        if any(record.side for record in members) and (keys := _metrics(members, metrics))
    ]


def _metrics(members: Sequence[Record], chosen: select.Names) -> list[str]:
    """Those that the cross-test has."""
    case = select.cross_case(members)
    scored = {key for record in members for key in record.scores.get(case, {})}
    # Faces are verified and identified, not ranked.
    main = numbers.ordered(scored & _METRICS) if chosen is None else []
    return main or [k for k in select.some(select.metrics, members, chosen) if k in scored]


def _table(members: Sequence[Record], slug: str, keys: Sequence[str]) -> TextTable:
    case, old = select.cross_case(members), select.generations(members)[0]
    families = {r.method.partition(":")[0] for r in members if r.side}
    shown = [r for r in members if r.status == "done" and (r.side or r.method in families)]
    kinds = {None: 0} | {kind: i for i, kind in enumerate(SIDES, 1)}
    methods = dict(
        sorted(by_method(shown).items(), key=lambda item: kinds.get(_kind(item[1]), len(kinds)))
    )
    rivals = select.rivals(shown)
    columns = [
        score_cells({m: case_score(of, case, key) for m, of in methods.items()}, key, rivals)
        for key in keys
    ]
    changed = notes.changed_words(shown[0])
    lines: list[list[str | TextCell]] = []
    values: list[list[object]] = []
    for method, of_method in methods.items():
        stored = [r.side.generations.get(old) if r.side else None for r in of_method]
        size = stored[0].bytes if stored[0] else 0.0
        cka = mean_score([each.cka if each else None for each in stored])
        alone = mean_score([each.scores.get(_ALONE) if each else None for each in stored])
        kind = _kind(of_method)
        title = "none" if kind is None else SIDES[kind].title if kind in SIDES else kind
        costs = score_cell(cka, "coefficient", spread=False), f"{size:g}"
        scores = (column[method] for column in columns)
        lines.append([title, method, *scores, *costs, score_cell(alone, spread=False)])
        seeds = " ".join(str(record.seed) for record in of_method)
        told = notes.untold(any(record.diverged for record in of_method))
        head = [shown[0].protocol, shown[0].track, "side", method, seeds, "done", told]
        for metric, score in ((_ALONE, alone), ("cka", cka), ("bytes", Estimate(size))):
            if kind is not None and score.value is not None:
                ends = score.value, score.low, score.high
                values.append([*head, f"side/side of {old}", metric, *ends, "", "", "", changed])
    return simple_table(
        f"{notes.title(shown)}: side-information",
        f"{slug}-side",
        ("side-information", "method"),
        (*(numbers.metric(key).label for key in keys), "CKA", "bytes", "by itself"),
        lines,
        notes=tuple(_notes(case, old, shown, keys)),
        compact=True,
        columns=COLUMNS,
        values=tuple(values),
    )


def _kind(records: Sequence[Record]) -> str | None:
    return records[0].side.kind if records[0].side else None


def _notes(case: str, old: str, records: Sequence[Record], keys: Sequence[str]) -> Iterator[str]:
    best = notes.rival_words(select.seeds_of(records), select.rivals(records))
    yield (
        f"Percent of {case}; {notes.interval_words(records, keys)}. "
        f"* is the best of a column{best}."
    )
    yield (
        f"bytes: of what the {old} generation stores of an item beside its embedding. CKA: "
        "linear, with that embedding on the gallery (FCT 5.3). by itself: CMC@1 of "
        "side-information queries in a gallery of side-information."
    )
    kinds = {r.side.kind for r in records if r.side and r.side.kind in SIDES}
    if any(SIDES[kind].data == "other" for kind in kinds):
        yield "Other domain: learned on another dataset, the track's other_domain (FCT 4.3)."
    yield from notes.few_seeds(records)
