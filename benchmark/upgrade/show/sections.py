"""Words about what was judged, and about the report's sections."""

from benchmark.upgrade.read.request import FOUND, KEEP
from benchmark.upgrade.show import wording
from benchmark.upgrade.show.wording import Document


def told(document: Document) -> list[str]:
    """The evaluation in a line, and what was found while reading."""
    inputs = document["inputs"]
    judge = {
        "qrels": "judged relevance", "labels": "class labels",
        "agreement": "agreement with the new model's own ten nearest, which is not accuracy",
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
    inputs = document["inputs"]
    if document["alignment"] is not None:
        return [
            told(document)[0],
            f"The items are gone: maps were fitted on {inputs['fitted']:,} vectors of other texts, "
            "and no item has a new vector.",
            *told(document)[1:],
        ]
    lines = [
        told(document)[0],
        f"{inputs['embedded']:,} items have vectors by both models: maps were fitted on "
        f"{inputs['fitted']:,} of them, and no item they saw counts as relevant.",
    ]
    if inputs["judge"] == "agreement":
        lines.append("Only items outside the fit are searched: in a larger gallery all agree less.")
    elif not inputs["complete"]:
        lines.append(
            "Scores marked est. need new vectors of all items, of which only the sample has some: "
            "how many of the others stand above each relevant item is estimated. "
            f"Another sample as large would move {wording.moved(document)}."
        )
    if inputs["judge"] != "agreement":
        lines.append("Agreement@10 is told of held-out items alone: a smaller gallery.")
    return [*lines, *told(document)[1:]]


def assumed(document: Document) -> str:
    """The deployment that costs are counted for."""
    found = document["assumed"]
    price = wording.money(found["price"], document)
    return (
        f"{found['items']:,} items, {found['throughput']:g} embedded a second, "
        f"{price} for an hour of the machine; conversions as fast as on this machine."
    )


ALIGNMENT = (
    "A map of new vectors must find the old vector of the same text among others: of "
    f"{100 * FOUND['queries']:.0f} % of the queries, or of {100 * FOUND['pairs']:.0f} % of "
    "held-out pairs; without any pair most attempts must end in one map."
)


BEHIND = (
    "finds: share of the exact ten nearest items. Scores are of the first 100 results, in this "
    "gallery: compare them with each other, not with those above."
)


def index(document: Document) -> list[str]:
    """Results behind an approximate index, and maps after which it must be built anew."""
    found = document["index"]
    if found is None:
        return []
    kind, rows = found["settings"]["kind"].upper(), found["rows"]
    lines = [f"A gallery of {found['items']:,} items behind an {kind} index, beside exact results."]
    pairs, every = found["judged_pairs"], document["inputs"]["judged_pairs"]
    if pairs < every:
        lines.append(
            f"Maps were fitted twice; these are of the first fit, by the {pairs:,} of {every:,} "
            "relevant pairs that it has not seen."
        )
    anew = [name for name, each in found["build_anew"].items() if each["needed"]]
    kept = [name for name, each in found["build_anew"].items() if not each["needed"]]
    if anew:
        lines.append(f"Build the index anew after: {', '.join(anew)}; kept, it finds less.")
    if kept:
        lines.append(
            f"The old links or lists serve on after: {', '.join(kept)}; building anew would find a "
            "hundredth more at most."
        )
    strategies = {each["strategy"] for each in rows}
    left_out = [name for name in found["left_out"] if name not in strategies]
    if left_out:
        lines.append(
            f"Not judged so: {', '.join(left_out)}, of two lists or of new vectors that not all "
            "items have."
        )
    return lines


def pairs(document: Document) -> str:
    """The number of pairs that suffices."""
    curve = document["pairs"]
    if curve is None:
        return ""
    most = curve["points"][-1]["pairs"]
    if curve["enough"] is None:
        return (
            f"{curve['map']} was fitted on {most:,} pairs; with fewer it may lose a point or more, "
            "and more may gain."
        )
    return f"{curve['map']} fitted on {curve['enough']:,} pairs is within a point of {most:,}."


def slices(document: Document) -> list[str]:
    """The grounds of slices."""
    found = document["slices"]
    lines = [
        "Queries are in a slice by their own id, or by that of a relevant item; a loss is sure by "
        "one-sided tests at 5 %, corrected for all slices."
    ]
    if document["inputs"]["judge"] == "agreement":
        lines.append("A gain is one of agreement with the new model, which is not accuracy.")
    if found["both"]:
        lines.append(
            f"Warning: {found['both']:,} lines name a query and an item, too: they are taken for "
            "the query; ids of either side alone would say which."
        )
    if not found["slices"]:
        lines.append("No slice has a judged query.")
    if found["unknown"]:
        lines.append(f"{found['unknown']:,} lines are of no judged query or its items.")
    return lines


def thresholds(document: Document) -> list[str]:
    """The grounds of cut-offs, and those that say nothing."""
    found = document["thresholds"]
    lines = [
        "A new cut-off accepts the same share of all pairs of a query and an item, or of those "
        "that do not belong together; told from held-out items, for other queries and items."
    ]
    if found["left_out"]:
        shown = ", ".join(f"{each:g}" for each in found["left_out"])
        lines.append(f"Today's {shown} accept no pair, or every one, of the old model here.")
    few = sorted({each["old"] for each in found["cutoffs"] if each["few"]})
    if few:
        shown = ", ".join(f"{each:g}" for each in few)
        lines.append(f"Warning: {shown} accept hardly a pair here: more queries would say more.")
    return lines


def cascade(document: Document) -> list[str]:
    """The depths that targets need, and the grounds of what repeats."""
    lines = []
    for found in document["cascade"]:
        parts = []
        for each in found["needed"]:
            depth, surely = each["depth"], each["surely"]
            words = "none of these" if depth is None else f"the first {depth:,}"
            sure = "none surely" if surely is None else f"surely {surely:,}"
            parts.append(f"{wording.percent(each['share'])}: {words} ({sure})")
        lines.append(f"{found['strategy']}, for re-embedding's score: {'; '.join(parts)}.")
    lines.append(
        "Queries come in the file's order and what is embedded is kept: new items a query over all "
        "of them and over the last quarter, and the share of the gallery embedded at the end."
        if lines else "No cascade: there are no queries by the old model, and no map of queries."
    )  # fmt: skip
    if not document["constraints"]["index"]:
        lines.append("No mixed index, as the index stays as it is.")
    return lines


def backfilling(document: Document) -> list[str]:
    """The ways to ask an index while it is filled."""
    if document["cascade"] is None:
        return []
    return [
        "A mixed index keeps old vectors until they are embedded again. It is asked by the new "
        "query alone, or by both, each for its part, merged by scores as they are or scaled to one "
        "mean and deviation."
    ]


def compressed(document: Document) -> list[str]:
    """The grounds of compressed vectors, and those that beat the old model at fewer bytes."""
    held = document["inputs"]["held"]
    lines = [
        f"Judged in {held:,} held-out items; queries stay whole. int8 by one scale, binary by sign "
        "and the first 100 rescored by int8, cuts keep the first numbers."
    ]
    whole = next((e for e in document["compressed"] if e["strategy"] == KEEP), None)
    better = [
        each for each in document["compressed"]
        if whole is not None and each["to_keep"] is not None and each["strategy"] != KEEP
        and (each["to_keep"]["low"] or 0) > 0 and each["index_bytes"] < whole["index_bytes"]
    ]  # fmt: skip
    if better and whole is not None:
        least = min(better, key=lambda each: float(each["index_bytes"]))
        share = wording.percent(least["index_bytes"] / whole["index_bytes"])
        lines.append(
            f"{least['strategy']} as {least['form']} beats the old model whole at {share} of the "
            "bytes."
        )
    return lines
