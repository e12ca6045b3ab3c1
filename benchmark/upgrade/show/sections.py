"""The report's sections that are asked for, each a table with its notes."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.report.text_table import TextCell, TextColumn, TextTable, simple_table
from benchmark.upgrade.formats.checks import several
from benchmark.upgrade.read.request import FOUND, KEEP, MIXED, REEMBED
from benchmark.upgrade.show import wording
from benchmark.upgrade.show.wording import Document

FEW = 8
"""Strategies of the short tables."""
_FEW_SLICES = 20
_APART = 0.01  # difference of scores from which on it is odd that no query is fixed or broken
_NOT_CHANGED = {
    "qrels": "no query loses all its relevant items among the first ten, or gains a first one",
    "labels": "no query's nearest item is relevant by one model alone",
}


def ordered(document: Document) -> list[Mapping[str, Any]]:
    """Strategies, the best score first."""
    return sorted(document["strategies"], key=lambda s: -s["score"]["value"])


def unchanged(document: Document, strategies: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line where a score differs from the old model's while no query is fixed or broken."""
    same = [
        each for each in strategies
        if each["fixed"] == each["broken"] == 0 and each["to_keep"] is not None
        and abs(each["to_keep"]["value"]) >= _APART
    ]  # fmt: skip
    if not same:
        return []
    words = _NOT_CHANGED[document["inputs"]["judge"]]
    return [f"fixed / broken 0 / 0: {words}. {wording.label(document)} tells more than that."]


def marked(document: Document, name: str) -> str:
    """The name of a strategy, with a no where it is left out."""
    return name + " (no)" * (name in document["left_out"])


def refused(document: Document) -> str:
    """Strategies with a no beside them, in words."""
    words = "the constraints do not allow"
    if document["alignment"] is not None:
        words += ", or what rests on spaces that do not align"
    return words


def few(document: Document) -> list[Mapping[str, Any]]:
    """Strategies that matter: what is recommended, bounds, what comes next, the best of others."""
    said = document["verdict"]
    first = (said["strategy"], KEEP, REEMBED, said["runner_up"])
    found = ordered(document)
    rest = sorted(found, key=lambda s: (s["name"] not in first, bool(s["missing"])))
    names = {s["name"] for s in rest[:FEW]}
    return [s for s in found if s["name"] in names]


def alignment(document: Document) -> TextTable:
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
    note = (
        "A map of new vectors must find the old vector of the same text among others: of "
        f"{100 * FOUND['queries']:.0f} % of the queries, or of {100 * FOUND['pairs']:.0f} % of "
        "held-out pairs; without any pair most attempts must end in one map."
    )
    return simple_table("Do the spaces align?", "alignment", ("map",), heads, lines, notes=(note,))


def models(document: Document) -> TextTable:
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


def shortened(document: Document) -> Document:
    """The document with slices and cut-offs as a screen takes them."""
    found, cut = document["slices"], document["thresholds"]
    if found is not None and (more := len(found["slices"]) - _FEW_SLICES) > 0:
        found = {**found, "slices": found["slices"][:_FEW_SLICES], "more": more}
    if cut is not None:
        names = {s["name"] for s in few(document)}
        cut = {**cut, "cutoffs": [each for each in cut["cutoffs"] if each["strategy"] in names]}
    return {**document, "slices": found, "thresholds": cut}


def slices(document: Document) -> TextTable:
    """Scores by slice, sure losses first, then those that gain least."""
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
    notes = [
        "Queries are in a slice by their own id, or by that of a relevant item; a loss is sure by "
        "one-sided tests at 5 %, corrected for all slices."
    ]
    if document["inputs"]["judge"] == "agreement":
        notes.append("A gain is one of agreement with the new model, which is not accuracy.")
    if found["both"]:
        notes.append(
            f"Warning: {several(found['both'], 'line names', 'lines name')} a query and an item, "
            "too: the query is meant; ids of either side alone would say which."
        )
    if not found["slices"]:
        notes.append("No slice has a judged query.")
    if found.get("more"):
        notes.append(
            f"{several(found['more'], 'slice')} more, with those without an interval last: --all."
        )
    if found["unknown"]:
        lines_are = several(found["unknown"], "line is", "lines are")
        notes.append(f"{lines_are} of no judged query or its items.")
    return simple_table(
        f"Slices, {wording.label(document)}", "slices", ("slice",), heads, lines, notes=tuple(notes)
    )


def thresholds(document: Document) -> TextTable:
    """New cut-offs of strategies."""
    found, lines = document["thresholds"], []
    for each in found["cutoffs"]:
        if each["strategy"] == KEEP:
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
    notes = [
        "A new cut-off accepts the same share of all pairs of a query and an item, or of those "
        "that do not belong together; told from held-out items, for other queries and items."
    ]
    if found["left_out"]:
        shown = ", ".join(f"{each:g}" for each in found["left_out"])
        notes.append(f"Today's {shown} accept no pair, or every one, of the old model here.")
    rare = sorted({each["old"] for each in found["cutoffs"] if each["few"]})
    if rare:
        shown = ", ".join(f"{each:g}" for each in rare)
        notes.append(f"Warning: {shown} accept hardly a pair here: more queries would say more.")
    return simple_table(
        "Cut-offs", "thresholds", ("strategy", "keeps the"), heads, lines,
        notes=tuple(notes), compact=True,
    )  # fmt: skip


def compressed(document: Document) -> TextTable:
    """Scores and bytes of vectors in fewer bits, and cut to fewer numbers."""
    lines = [
        [
            each["strategy"], each["form"], wording.size(each["index_bytes"]),
            f"{each['among']:,}", wording.score(each["score"]), wording.gap(each["lost"]),
            wording.gap(each["to_keep"]),
        ]
        for each in document["compressed"]
    ]  # fmt: skip
    label = wording.label(document)
    heads = ["vectors", "among", label, "to whole (95 %)", "to old (95 %)"]
    notes = [
        "among: items that are searched. int8 by one scale, binary by sign (of queries, too) and "
        "the first 100 rescored by int8, cuts keep the first numbers."
    ]
    if len({each["among"] for each in document["compressed"]}) > 1:
        notes.append(
            "Only a sample has new vectors: among few items all find more, so read what is lost "
            "there, not the score."
        )
    in_bits = [
        each["strategy"] for each in document["compressed"] if each["form"].startswith("binary")
    ]
    if {each["strategy"] for each in document["compressed"]} - {*in_bits}:
        notes.append("Bits are left out where few items are searched: the first 100 are many then.")
    whole = next((e for e in document["compressed"] if e["strategy"] == KEEP), None)
    better = [
        each for each in document["compressed"]
        if whole is not None and each["to_keep"] is not None and each["strategy"] != KEEP
        and (each["to_keep"]["low"] or 0) > 0 and each["index_bytes"] < whole["index_bytes"]
    ]  # fmt: skip
    if better and whole is not None:
        least = min(better, key=lambda each: float(each["index_bytes"]))
        share = wording.percent(least["index_bytes"] / whole["index_bytes"])
        notes.append(
            f"{least['strategy']} as {least['form']} beats the old model whole at {share} of the "
            "bytes."
        )
    return simple_table(
        "In fewer bits, and shorter", "compressed", ("strategy", "as"), heads, lines,
        notes=tuple(notes),
    )  # fmt: skip


def cascade(document: Document) -> TextTable:
    """Cascades by depth: scores, and items embedded for a query when they are kept."""
    lines = [
        [
            marked(document, found["strategy"]), f"{each['depth']:,}",
            wording.score(each["score"]),
            wording.kept(each["share"], whole=True), f"{each['embedded']:.1f}",
            f"{each['last']:.1f}", wording.percent(each["filled"]),
        ]
        for found in document["cascade"] for each in found["depths"]
    ]  # fmt: skip
    heads = [
        wording.label(document), "of re-embedding's score", "embedded a query", "last quarter",
        "of the gallery",
    ]  # fmt: skip
    notes = []
    for found in document["cascade"]:
        parts = []
        for each in found["needed"]:
            depth, surely = each["depth"], each["surely"]
            words = "none of these" if depth is None else f"the first {depth:,}"
            sure = "none surely" if surely is None else f"surely {surely:,}"
            parts.append(f"{wording.percent(each['share'])}: {words} ({sure})")
        name = marked(document, found["strategy"])
        notes.append(f"{name}, for re-embedding's score: {'; '.join(parts)}.")
    if any(found["strategy"] in document["left_out"] for found in document["cascade"]):
        notes.append(f"(no) is what {refused(document)}.")
    notes.append(
        "Queries come in the file's order and what is embedded is kept: new items a query over all "
        "of them and over the last quarter, and the share of the gallery embedded at the end."
        if notes else "No cascade: there are no queries by the old model, and no map of queries."
    )  # fmt: skip
    if not document["constraints"]["index"]:
        notes.append("No mixed index, as the index stays as it is.")
    return simple_table(
        "Cascades by depth", "cascade", ("strategy", "depth"), heads, lines, notes=tuple(notes)
    )


def index(document: Document) -> TextTable:
    """Results behind an approximate index, and maps after which it must be built anew."""
    found, lines = document["index"], []
    for each in found["rows"]:
        seconds = each["seconds"]
        lines.append([
            each["strategy"], each["index"], wording.score(each["found"]),
            wording.score(each["exact"]), wording.score(each["score"]),
            wording.spanned(each["lost"]),
            wording.hours(seconds / 3600) if seconds else "-",
        ])  # fmt: skip
    metric = wording.label(document)
    heads = ["finds", f"{metric} exact", "behind it", "lost", "building"]
    kind = found["settings"]["kind"]
    return simple_table(
        f"Behind an index ({kind})", "index", ("strategy", "the index is"), heads, lines,
        notes=tuple(_notes_of_index(document, kind)),
    )  # fmt: skip


def _notes_of_index(document: Document, kind: str) -> list[str]:
    """Notes on the search, on when the index must be built anew, and on what is not judged so."""
    found = document["index"]
    notes = [
        f"A gallery of {found['items']:,} items behind an {kind.upper()} index, beside exact "
        "results."
    ]
    pairs, every = found["judged_pairs"], document["inputs"]["judged_pairs"]
    if found["refitted"]:
        of = f"by the {pairs:,} of {every:,} relevant pairs that it has not seen"
        seen = "which has seen some of the gallery's items"
        notes.append(
            "Maps were fitted several times; these are of the first fit, "
            f"{of if pairs < every else seen}."
        )
    whole = found["lists"] is not None and found["probes"] == found["lists"]
    if whole:
        its = "Its one list is" if found["lists"] == 1 else f"All {found['lists']:,} lists are"
        notes.append(f"{its} searched, which finds everything, by lists of old vectors, too.")
    anew = [name for name, each in found["build_anew"].items() if each["needed"]]
    kept = [name for name, each in found["build_anew"].items() if not each["needed"]]
    if anew and not whole:
        notes.append(f"Build the index anew after: {', '.join(anew)}; kept, it may find less.")
    if kept and not whole:
        notes.append(
            f"The old links or lists serve on after: {', '.join(kept)}; building anew would find a "
            "hundredth more at most."
        )
    strategies = {each["strategy"] for each in found["rows"]}
    left_out = [name for name in found["left_out"] if name not in strategies]
    if left_out:
        notes.append(
            f"Not judged so: {', '.join(left_out)}, of two lists or of new vectors that not all "
            "items have."
        )
    notes.append(
        "finds: share of the exact ten nearest items. Scores are of the first 100 results, in this "
        "gallery: compare them with each other, not with those above."
    )
    if found["asked"] > 100:
        notes.append(
            f"Scores are of searches for {found['asked']}, as items are left out that maps have "
            "seen or queries are; of searches for 100, as those of finds, more is lost."
        )
    if found["shortened"]:
        queries = several(found["shortened"], "query", "queries")
        notes.append(
            f"More than 100 items are left out for {queries}: results, exact ones and "
            "those of the index, may be fewer."
        )
    return notes


def backfilling(document: Document) -> TextTable:
    """Scores while items are embedded again, by their order and by what serves meanwhile."""
    lines = []
    for each in document["backfilling"]:
        points = {p["filled"]: p for p in each["points"]}
        shown = [wording.score(points[p]) for p in (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)]
        worst = each["worst"]
        at = f"{wording.score(worst)} at {wording.percent(worst['filled'])}"
        lines.append([each["order"], wording.meanwhile(each), *shown, at])
    heads = ["0 %", "10 %", "30 %", "50 %", "70 %", "100 %", "worst moment"]
    note = (
        "A mixed index keeps old vectors until they are embedded again. It is asked by the new "
        "query alone, or by both, each for its part, merged by scores as they are or scaled to one "
        "mean and deviation."
    )
    return simple_table(
        f"While embedding again, {wording.label(document)} in "
        f"{document['inputs']['held']:,} held-out items",
        "backfilling", ("order", "meanwhile"), heads, lines,
        notes=(note,) if any(e["start"] in MIXED for e in document["backfilling"]) else (),
    )  # fmt: skip


ASKED = {
    "alignment": alignment, "models": models, "slices": slices, "thresholds": thresholds,
    "compressed": compressed, "cascade": cascade, "index": index,
}  # fmt: skip
"""Section of the document -> its table, in the order of the terminal."""
