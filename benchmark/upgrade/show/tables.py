"""The report as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.upgrade.formats.checks import several
from benchmark.upgrade.show import sections, wording
from benchmark.upgrade.show.sections import few, marked, ordered, refused
from benchmark.upgrade.show.wording import Document

AGREEMENT = "agreement_at_10"
_YES_NO = {True: "yes", False: "no"}


def tables(document: Document, *, every: bool = False) -> list[TextTable]:
    """The verdict and the strategies that matter; all strategies and tables, if ``every``."""
    out = [verdict(document, every=every), _scores(document, every=every)]
    shown = document if every else sections.shortened(document)
    out += [make(shown) for name, make in sections.ASKED.items() if document[name]]
    if document["backfilling"] and (every or document["cascade"] is not None):
        out.append(sections.backfilling(document))
    if not every:
        return out
    out.append(_costs(document))
    if document["metric"] != AGREEMENT:
        out.append(_metrics(document))
    words = ((each["of"], "look: " * each["odd"] + each["words"]) for each in document["vectors"])
    heads = ("vectors", "a random part of them")
    out.append(simple_table("The vectors", "vectors", heads, (), list(words)))
    if document["left_out"]:
        lines = [(name, why) for name, why in document["left_out"].items()]
        out.append(simple_table("Left out", "left-out", ("strategy", "because"), (), lines))
    return out


def verdict(document: Document, *, every: bool = False) -> TextTable:
    """The recommendation with its grounds, cost and risks."""
    lines = []
    for head, found in (
        ("why", wording.reasons(document)), ("cost", wording.costs(document)),
        ("risk", wording.risks(document)), ("unless", wording.changes(document)),
        ("pairs", [pairs(document)] if document["pairs"] else []),
    ):  # fmt: skip
        lines += [(head * (not i), text) for i, text in enumerate(found)]
    return simple_table(
        "What to do",
        "verdict",
        ("take", wording.headline(document)),
        (),
        lines,
        notes=tuple(basis(document) if every else told(document)),
    )


def _scores(document: Document, *, every: bool) -> TextTable:
    chosen = document["verdict"]["strategy"]
    lines: list[list[str | TextCell]] = []
    strategies = ordered(document) if every else few(document)
    changes = all(each["broken"] is not None for each in strategies)
    for each in strategies:
        cost, score = each["cost"], wording.score(each["score"]) + " est." * each["estimated"]
        lines.append([
            marked(document, each["name"]), TextCell(score, best=each["name"] == chosen),
            wording.around(each["score"]), whole(document, each),
            *([f"{each['fixed']:,} / {each['broken']:,}"] if changes else []),
            wording.hours(cost["hours"]), wording.money(cost["money"], document),
        ])  # fmt: skip
    metric = wording.label(document)
    heads: list[str | TextColumn] = [
        metric, "95 %", whole_head(document), *(["fixed / broken"] if changes else []), "time",
        "money",
    ]  # fmt: skip
    names = {each["name"] for each in strategies}
    marks = ["* is what is recommended"] * (chosen in names)
    marks += [f"(no) is what {refused(document)}"] * (not names.isdisjoint(document["left_out"]))
    notes = [f"{'; '.join(marks)}."] if marks else []
    notes += sections.unchanged(document, strategies)
    if others := len(document["strategies"]) - len(lines):
        more = several(others, "strategy", "strategies")
        notes.append(f"{more} more, all metrics, costs and what was left out: --all.")
    return simple_table("Strategies", "strategies", ("strategy",), heads, lines, notes=tuple(notes))


def whole_head(document: Document) -> str:
    """The heading of the share that is kept; of the gain, where nothing can be embedded again."""
    gone = document["alignment"] is not None
    return "to old (95 %)" if gone else f"of {document['verdict']['share_of']}"


def whole(document: Document, strategy: Mapping[str, Any]) -> str:
    """The share that a strategy keeps; its gain, where nothing can be embedded again."""
    if document["alignment"] is None:
        return wording.kept(strategy["kept"], whole=True)
    return wording.gap(strategy["to_keep"])


def _metrics(document: Document) -> TextTable:
    strategies = ordered(document)
    keys = list(strategies[0]["metrics"])
    lines = [
        [s["name"], *(wording.score(s["metrics"][key]) + estimated(s, key) for key in keys)]
        for s in strategies
    ]
    heads = [metric_head(document, key) for key in keys]
    notes = tuple(metric_notes(document))
    return simple_table("All metrics", "metrics", ("strategy",), heads, lines, notes=notes)


def estimated(strategy: Mapping[str, Any], key: str) -> str:
    """The mark of a metric that is estimated; agreement is measured among held-out items."""
    return " est." * (strategy["estimated"] and key != AGREEMENT)


def metric_head(document: Document, key: str) -> str:
    """The heading of a metric; agreement with the first items of all that it stands for."""
    if key != AGREEMENT:
        return wording.metric_label(key)
    return f"Agreement@{document['inputs']['agreement_at']:,}*"


def metric_notes(document: Document) -> list[str]:
    """Notes on metrics beside the one that decides."""
    lines = []
    if AGREEMENT in document["strategies"][0]["metrics"]:
        held = document["inputs"]["held"]
        lines.append(f"* among {held:,} held-out items, others in the whole gallery.")
    if any(s["estimated"] for s in document["strategies"]):
        lines.append(
            f"est.: of these {wording.label(document)} alone was held against the truth on real "
            "corpora. Where few random items were embedded, others may be several points too high."
        )
    return lines


def _costs(document: Document) -> TextTable:
    lines = []
    for each in ordered(document):
        cost = each["cost"]
        lines.append([
            each["name"], each["title"], wording.size(cost["index_bytes"]), str(cost["runs"]),
            str(cost["embedded"]), wording.money(cost["money_per_1000_queries"], document),
            _YES_NO[cost["rebuild"]],
        ])  # fmt: skip
    heads = ["vectors", "models", "items", "1,000 queries", "rebuild"]
    notes = (
        assumed(document),
        "Models run, and items are embedded, for each query; money for these items.",
    )
    return simple_table(
        "Costs", "costs", ("strategy", "what is done"), heads, lines, notes=notes, compact=True
    )


def told(document: Document) -> list[str]:
    """The evaluation in a line, and what was found while reading."""
    inputs = document["inputs"]
    judge = {
        "qrels": "judged relevance", "labels": "class labels",
        "agreement": f"agreement with the first {inputs['agreement_at']:,} of the new model, "
        "which is not accuracy",
    }[inputs["judge"]]  # fmt: skip
    return [
        f"{inputs['judged_queries']:,} of {inputs['queries']:,} queries, by {judge}, in a gallery "
        f"of {inputs['judged_in']:,} items; the same for every strategy.",
        *_left_out(document),
        *(line for line in inputs["told"] if not line.startswith("Warning: ")),
    ]


def _left_out(document: Document) -> list[str]:
    """The relevant pairs that do not count, where there are any."""
    inputs = document["inputs"]
    if inputs["judged_pairs"] == inputs["pairs"] or document["alignment"] is not None:
        return []
    return [
        f"{inputs['judged_pairs']:,} of {inputs['pairs']:,} relevant pairs count: the other items "
        "have no new vector, or maps saw them; they are left out for every strategy, so scores "
        "are lower or higher than with all of them."
    ]


def basis(document: Document) -> list[str]:
    """The queries, items and criterion of the evaluation, and its limits."""
    inputs, (first, *others) = document["inputs"], told(document)
    if document["alignment"] is not None:
        fitted = "no map could be fitted"
        if document["alignment"]:
            fitted = f"maps were fitted on {inputs['fitted']:,} vectors of other texts"
        return [first, f"The items are gone: {fitted}, and no item has a new vector.", *others]
    more = ""
    if inputs["saved_on"] > inputs["fitted"]:
        more = f" A map that is saved is fitted on {inputs['saved_on']:,}."
    lines = [
        first,
        f"{inputs['embedded']:,} items have vectors by both models: maps were fitted on "
        f"{inputs['fitted']:,} of them, and no item counts as relevant by a map that saw it.{more}",
    ]
    if inputs["judge"] == "agreement":
        nearest = "nearest" if inputs["nearest"] == 1 else f"{inputs['nearest']} nearest"
        lines.append(
            f"Only items outside the fit are searched. Their {nearest} stand for the first "
            f"{inputs['agreement_at']:,} of all; two lists are cut off in the same proportion."
            + " A single one agrees somewhat less than these would."
            * (inputs["nearest"] == 1)
        )
    elif not inputs["complete"]:
        lines.append(
            "Scores marked est. need new vectors of all items, of which only the sample has some: "
            "how many of the others stand above each relevant item is estimated. "
            f"Another sample as large would move {wording.moved(document)}."
        )
    if inputs["judge"] != "agreement":
        lines.append(
            f"Agreement@{inputs['agreement_at']:,} is told of held-out items, whose "
            + ("nearest stands" if inputs["nearest"] == 1 else f"nearest {inputs['nearest']} stand")
            + f" for the first {inputs['agreement_at']:,} of all."
        )
    return [*lines, *others]


def assumed(document: Document) -> str:
    """The deployment that costs are counted for."""
    found = document["assumed"]
    price = wording.money(found["price"], document)
    return (
        f"{found['items']:,} items, {found['throughput']:g} embedded a second, "
        f"{price} for an hour of the machine; conversions as fast as on this machine."
    )


def pairs(document: Document) -> str:
    """The number of pairs that suffices."""
    curve = document["pairs"]
    most = curve["points"][-1]["pairs"]
    if curve["enough"] is None:
        return (
            f"Among held-out items {curve['map']} may lose a point or more with fewer than "
            f"{most:,} pairs, and gain with more."
        )
    return f"{curve['map']} fitted on {curve['enough']:,} pairs is within a point of {most:,}."
