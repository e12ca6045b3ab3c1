"""The report as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.upgrade.read.request import KEEP, REEMBED
from benchmark.upgrade.show import sections, wording

AGREEMENT = "agreement_at_10"
FEW = 8
"""Rows of the short table of strategies."""
_YES_NO = {True: "yes", False: "no"}


def tables(document: Mapping[str, Any], *, every: bool = False) -> list[TextTable]:
    """The verdict and the strategies that matter; all strategies and tables, if ``every``."""
    out = [verdict(document, every=every), _scores(document, every=every)]
    asked = {
        "alignment": alignment, "models": models, "slices": slices, "thresholds": thresholds,
        "compressed": compressed, "cascade": cascade, "index": _index,
    }  # fmt: skip
    out += [make(document) for name, make in asked.items() if document[name] is not None]
    if document["backfilling"] and (every or document["cascade"] is not None):
        out.append(backfilling(document))
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


def ordered(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Strategies, the best score first."""
    return sorted(document["strategies"], key=lambda s: -s["score"]["value"])


def few(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Strategies that matter: what is recommended, bounds, what comes next, the best of others."""
    said = document["verdict"]
    first = (said["strategy"], KEEP, REEMBED, said["runner_up"])
    found = ordered(document)
    rest = sorted(found, key=lambda s: (s["name"] not in first, bool(s["missing"])))
    names = {s["name"] for s in rest[:FEW]}
    return [s for s in found if s["name"] in names]


def verdict(document: Mapping[str, Any], *, every: bool = False) -> TextTable:
    """The recommendation with its grounds, cost and risks."""
    lines = []
    for head, found in (
        ("why", wording.reasons(document)), ("cost", wording.costs(document)),
        ("risk", wording.risks(document)), ("unless", wording.changes(document)),
        ("pairs", [sections.pairs(document)] if document["pairs"] else []),
    ):  # fmt: skip
        lines += [(head * (not i), text) for i, text in enumerate(found)]
    return simple_table(
        "What to do",
        "verdict",
        ("take", wording.headline(document)),
        (),
        lines,
        notes=tuple(sections.basis(document) if every else sections.told(document)),
    )


def _scores(document: Mapping[str, Any], *, every: bool) -> TextTable:
    chosen, lines = document["verdict"]["strategy"], []
    strategies = ordered(document) if every else few(document)
    changes = all(each["broken"] is not None for each in strategies)
    for each in strategies:
        cost, score = each["cost"], wording.score(each["score"]) + " est." * each["estimated"]
        name = each["name"] + " (no)" * (each["name"] in document["left_out"])
        lines.append([
            name, TextCell(score, best=each["name"] == chosen),
            wording.around(each["score"]), whole(document, each),
            *([f"{each['fixed']:,} / {each['broken']:,}"] if changes else []),
            wording.hours(cost["hours"]), wording.money(cost["money"], document),
        ])  # fmt: skip
    metric = wording.label(document)
    heads: list[str | TextColumn] = [
        metric, "95 %", whole_head(document), *(["fixed / broken"] if changes else []), "time",
        "money",
    ]  # fmt: skip
    no = "the constraints do not allow"
    if document["alignment"] is not None:
        no += ", or what rests on spaces that do not align"
    notes = [f"* is what is recommended; (no) is what {no}."]
    if others := len(document["strategies"]) - len(lines):
        notes.append(f"{others} strategies more, all metrics, costs and what was left out: --all.")
    return simple_table("Strategies", "strategies", ("strategy",), heads, lines, notes=tuple(notes))


def whole_head(document: Mapping[str, Any]) -> str:
    """The heading of the share that is kept; of the gain, where nothing can be embedded again."""
    gone = document["alignment"] is not None
    return "to old (95 %)" if gone else f"of {document['verdict']['share_of']}"


def whole(document: Mapping[str, Any], strategy: Mapping[str, Any]) -> str:
    """The share that a strategy keeps; its gain, where nothing can be embedded again."""
    if document["alignment"] is None:
        return wording.kept(strategy["kept"], whole=True)
    return wording.gap(strategy["to_keep"])


def alignment(document: Mapping[str, Any]) -> TextTable:
    """Maps of other texts: do they bring the spaces together?"""
    lines = []
    for each in document["alignment"]:
        found = each["found"]
        lines.append([
            each["map"], each["by"],
            wording.DASH if found is None else wording.spanned(found),
            f"{each['among']:,}" if each["among"] else wording.DASH,
            f"{each['agree']} of {each['attempts']}" if each["attempts"] else wording.DASH,
            f"{'yes' if each['aligned'] else 'no'}{'' if each['sure'] else ', not sure'}",
        ])  # fmt: skip
    heads = ["told by", "finds % (95 %)", "among", "attempts agree", "aligned"]
    return simple_table(
        "Do the spaces align?", "alignment", ("map",), heads, lines,
        notes=(sections.ALIGNMENT,),
    )  # fmt: skip


def models(document: Mapping[str, Any]) -> TextTable:
    """Several new models, each with what is recommended for it, the best rank first."""
    found = document["models"]
    to_taken = {d["of"]: d for d in found["differences"] if d["to"] == found["taken"]}
    lines = []
    for each in found["places"]:
        taken, score = each["name"] == found["taken"], wording.score(each["score"])
        lines.append([
            each["name"], each["strategy"], str(each["rank"]), TextCell(score, best=taken),
            wording.around(each["score"]), wording.score(each["again"]),
            wording.gap(each["to_old"]), wording.gap(to_taken.get(each["name"])),
            wording.hours(each["hours"]), wording.money(each["money"], document),
            wording.size(each["index_bytes"]),
        ])  # fmt: skip
    heads: list[str | TextColumn] = [
        "rank", wording.label(document), "95 %", REEMBED, "to old (95 %)",
        f"to {found['taken']} (95 %)", "time", "money", "vectors",
    ]  # fmt: skip
    return simple_table(
        "New models", "models", ("model", "way"), heads, lines,
        notes=tuple(wording.models(document)), compact=True,
    )  # fmt: skip


def slices(document: Mapping[str, Any]) -> TextTable:
    """Scores by slice, those that gain least first."""
    found = document["slices"]
    other = found["strategy"] != REEMBED
    lines = [
        [
            each["name"], f"{each['queries']:,}",
            wording.DASH if each["old"] is None else wording.score(each["old"]),
            wording.score(each["new"]), *([wording.score(each["chosen"])] if other else []),
            wording.signed(each["gain"]), wording.around(each["gain"]),
            "loses" if each["loses"] else "",
        ]
        for each in found["slices"]
    ]  # fmt: skip
    heads = ["queries", "old", REEMBED, *[found["strategy"]] * other, "gain", "95 %", ""]
    return simple_table(
        f"Slices, {wording.label(document)}", "slices", ("slice",), heads, lines,
        notes=tuple(sections.slices(document)),
    )  # fmt: skip


def compressed(document: Mapping[str, Any]) -> TextTable:
    """Scores and bytes of vectors in fewer bits, and cut to fewer numbers."""
    lines = [
        [
            each["strategy"], each["form"], wording.size(each["index_bytes"]),
            wording.score(each["score"]), wording.gap(each["lost"]), wording.gap(each["to_keep"]),
        ]
        for each in document["compressed"]
    ]  # fmt: skip
    label = wording.label(document)
    heads = ["vectors", label, "to whole (95 %)", "to old (95 %)"]
    return simple_table(
        "In fewer bits, and shorter", "compressed", ("strategy", "as"), heads, lines,
        notes=tuple(sections.compressed(document)),
    )  # fmt: skip


def thresholds(document: Mapping[str, Any]) -> TextTable:
    """New cut-offs of the strategies that matter."""
    names, lines = {s["name"] for s in few(document)}, []
    for each in document["thresholds"]["cutoffs"]:
        if each["strategy"] not in names or each["strategy"] == KEEP:
            continue
        new, after = each["new"], each["true_after"]
        true = wording.DASH
        if after is not None:
            true = f"{wording.score({'value': each['true_before']})} to {wording.score(after)} %"
        lines.append([
            each["strategy"], each["rule"], f"{each['old']:g}",
            f"{new['value']:.3f} ({new['low']:.3f} to {new['high']:.3f})",
            f"{100 * each['rate']:.3g} %", true,
        ])  # fmt: skip
    heads = ["today's", "new (95 %)", "accepts", "true pairs, then"]
    return simple_table(
        "Cut-offs", "thresholds", ("strategy", "keeps the"), heads, lines,
        notes=tuple(sections.thresholds(document)), compact=True,
    )  # fmt: skip


def _metrics(document: Mapping[str, Any]) -> TextTable:
    strategies = ordered(document)
    keys = list(strategies[0]["metrics"])
    lines = [[s["name"], *(wording.score(s["metrics"][key]) for key in keys)] for s in strategies]
    heads = [wording.metric_label(key) + "*" * (key == AGREEMENT) for key in keys]
    held = f"* among {document['inputs']['held']:,} held-out items, others in the whole gallery."
    return simple_table("All metrics", "metrics", ("strategy",), heads, lines, notes=(held,))


def _costs(document: Mapping[str, Any]) -> TextTable:
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
        sections.assumed(document),
        "Models run, and items are embedded, for each query; money for these items.",
    )
    return simple_table(
        "Costs", "costs", ("strategy", "what is done"), heads, lines, notes=notes, compact=True
    )


def _index(document: Mapping[str, Any]) -> TextTable:
    lines = []
    for each in document["index"]["rows"]:
        seconds = each["seconds"]
        lines.append([
            each["strategy"], each["index"], wording.score(each["found"]),
            wording.score(each["exact"]), wording.score(each["score"]),
            wording.spanned(each["lost"]),
            wording.hours(seconds / 3600) if seconds else "-",
        ])  # fmt: skip
    metric = wording.label(document)
    heads = ["finds", f"{metric} exact", "behind it", "lost", "building"]
    title = f"Behind an index ({document['index']['settings']['kind']})"
    return simple_table(
        title, "index", ("strategy", "the index is"), heads, lines,
        notes=(*sections.index(document), sections.BEHIND),
    )  # fmt: skip


def backfilling(document: Mapping[str, Any]) -> TextTable:
    """Scores while items are embedded again, by their order and by what serves meanwhile."""
    lines = []
    for each in document["backfilling"]:
        points = {p["filled"]: p for p in each["points"]}
        shown = [wording.score(points[p]) for p in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)]
        worst = each["worst"]
        at = f"{wording.score(worst)} at {wording.percent(worst['filled'])}"
        lines.append([each["order"], wording.meanwhile(each), *shown, at])
    heads = ["0 %", "10 %", "30 %", "50 %", "70 %", "100 %", "worst moment"]
    return simple_table(
        f"While embedding again, {wording.label(document)} in "
        f"{document['inputs']['held']:,} held-out items",
        "backfilling", ("order", "meanwhile"), heads, lines,
        notes=tuple(sections.backfilling(document)),
    )  # fmt: skip


def cascade(document: Mapping[str, Any]) -> TextTable:
    """Cascades by depth: scores, and items embedded for a query when they are kept."""
    lines = [
        [
            found["strategy"], f"{each['depth']:,}", wording.score(each["score"]),
            wording.kept(each["share"], whole=True), f"{each['embedded']:.1f}",
            f"{each['last']:.1f}", wording.percent(each["filled"]),
        ]
        for found in document["cascade"] for each in found["depths"]
    ]  # fmt: skip
    heads = [
        wording.label(document), "of re-embedding's score", "embedded a query", "last quarter",
        "of the gallery",
    ]  # fmt: skip
    return simple_table(
        "Cascades by depth", "cascade", ("strategy", "depth"), heads, lines,
        notes=tuple(sections.cascade(document)),
    )  # fmt: skip
