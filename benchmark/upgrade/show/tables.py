"""The report as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.upgrade.show import wording

_YES_NO = {True: "yes", False: "no"}


def tables(document: Mapping[str, Any]) -> list[TextTable]:
    """The verdict, strategies with their scores and costs, backfilling, what is left out."""
    out = [_verdict(document), _scores(document), _costs(document)]
    if document["metric"] != "agreement_at_10":
        out.insert(2, _metrics(document))
    if document["backfilling"]:
        out.append(_backfilling(document))
    if document["index"] is not None:
        out.append(_index(document))
    if document["left_out"]:
        lines = [(name, why) for name, why in document["left_out"].items()]
        out.append(simple_table("Left out", "left-out", ("strategy", "because"), (), lines))
    return out


def ordered(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Strategies, the best score first."""
    return sorted(document["strategies"], key=lambda s: -s["score"]["value"])


def _verdict(document: Mapping[str, Any]) -> TextTable:
    lines = [("", text) for text in wording.summary(document)]
    lines += [("cost" * (not i), text) for i, text in enumerate(wording.costs(document))]
    runner_up = document["verdict"]["runner_up"]
    if runner_up:
        lines.append(("next", runner_up))
    lines += [("unless" * (not i), text) for i, text in enumerate(wording.changes(document))]
    if pairs := wording.pairs(document):
        lines.append(("pairs", pairs))
    return simple_table(
        "What to do",
        "verdict",
        ("take", wording.headline(document)),
        (),
        lines,
        notes=tuple(wording.basis(document)),
    )


def _scores(document: Mapping[str, Any]) -> TextTable:
    chosen = document["verdict"]["strategy"]
    lines = []
    for each in ordered(document):
        shown = TextCell(
            wording.score(each["score"]), wording.around(each["score"]), each["name"] == chosen
        )
        broken, fixed = (
            TextCell("-" if each[key] is None else f"{each[key]:,}") for key in ("broken", "fixed")
        )
        agreement = each["metrics"].get("agreement_at_10")
        lines.append([
            TextCell(each["name"]), shown, TextCell("est." if each["estimated"] else ""),
            TextCell(wording.kept(each["kept"], whole=True)), broken, fixed,
            TextCell("-" if agreement is None else wording.score(agreement)),
            TextCell("no" if each["missing"] else "yes"),
        ])  # fmt: skip
    metric = wording.label(document)
    heads: list[str | TextColumn] = [
        metric, "", f"of {document['verdict']['share_of']}", "broken", "fixed", "agree@10",
        "possible",
    ]  # fmt: skip
    return simple_table(
        f"Strategies, {metric} with 95 % intervals", "strategies", ("strategy",), heads, lines,
        notes=("* is what is recommended.",),
    )  # fmt: skip


def _metrics(document: Mapping[str, Any]) -> TextTable:
    strategies = ordered(document)
    keys = list(strategies[0]["metrics"])
    lines = [[s["name"], *(wording.score(s["metrics"][key]) for key in keys)] for s in strategies]
    heads = [wording.metric_label(key) for key in keys]
    return simple_table("All metrics", "metrics", ("strategy",), heads, lines)


def _costs(document: Mapping[str, Any]) -> TextTable:
    lines = []
    for each in ordered(document):
        cost = each["cost"]
        lines.append([
            each["name"], each["title"], wording.hours(cost["hours"]), wording.money(cost["money"]),
            wording.size(cost["index_bytes"]), f"{cost['runs']} x", _YES_NO[cost["rebuild"]],
            _YES_NO[cost["way_back"]],
        ])  # fmt: skip
    assumed = document["assumed"]
    heads = ["time", "money", "vectors", "runs", "rebuild", "way back"]
    note = (
        f"{assumed['items']:,} items, {assumed['throughput']:g} embedded a second, an hour of the "
        f"machine for {assumed['price']:g} in money; conversions as fast as on this machine. "
        "Runs are of models, for a query, items that are embedded meanwhile among them."
    )
    return simple_table(
        "Costs", "costs", ("strategy", "what is done"), heads, lines, notes=(note,), compact=True
    )


def _index(document: Mapping[str, Any]) -> TextTable:
    lines = []
    for each in document["index"]["rows"]:
        seconds = each["seconds"]
        lines.append([
            each["strategy"], each["index"], wording.score(each["found"]),
            wording.score(each["exact"]), wording.score(each["score"]),
            TextCell(wording.score(each["lost"]), wording.around(each["lost"])),
            wording.hours(seconds / 3600) if seconds else "-",
        ])  # fmt: skip
    metric = wording.label(document)
    heads = ["finds", f"{metric} exact", "behind it", "lost", "building"]
    title = f"Behind an index ({document['index']['settings']['kind']})"
    return simple_table(
        title, "index", ("strategy", "the index is"), heads, lines,
        notes=(*wording.index(document), "finds: share of the exact ten nearest items."),
    )  # fmt: skip


def _backfilling(document: Mapping[str, Any]) -> TextTable:
    lines = []
    for each in document["backfilling"]:
        points = {p["filled"]: p for p in each["points"]}
        shown = [wording.score(points[p]) for p in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)]
        worst = each["worst"]
        at = f"{wording.score(worst)} at {wording.percent(worst['filled'])}"
        lines.append([each["order"], f"after {each['start']}", *shown, at])
    heads = ["0 %", "10 %", "30 %", "50 %", "70 %", "100 %", "worst moment"]
    return simple_table(
        f"Backfilling, {wording.label(document)} in {document['inputs']['held']:,} held-out items",
        "backfilling", ("order", "converted first"), heads, lines,
    )  # fmt: skip
