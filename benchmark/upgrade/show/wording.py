"""The report's words and numbers, the same on the terminal and on the page."""

from collections.abc import Mapping
from typing import Any

from benchmark.report import numbers
from benchmark.upgrade.search.strategies import KEEP, REEMBED

Document = Mapping[str, Any]


_HITS = {
    "qrels": "a relevant item is among the ten nearest, or no longer",
    "labels": "the nearest item is relevant, or no longer",
    "agreement": "they agree more with the new model, or less",
}


def percent(share: float) -> str:
    """A share without decimals.

    Example:
        >>> percent(0.934)
        '93 %'
    """
    return f"{100 * share:.0f} %"


def kept(share: Mapping[str, float | None] | None, *, whole: bool = False) -> str:
    """The share of the upgrade that is kept, with its interval if ``whole``.

    Example:
        >>> kept({"value": 0.9, "low": 0.85, "high": None}, whole=True)
        '90 % (85 % or more)'
    """
    if share is None or share["value"] is None:
        return numbers.DASH
    text = percent(share["value"])
    low, high = share["low"], share["high"]
    if not whole or (low is None and high is None) or low == high == share["value"]:
        return text
    if low is None or high is None:
        end = f"{percent(low)} or more" if low is not None else f"at most {percent(high or 0)}"
        return f"{text} ({end})"
    return f"{text} ({percent(low)} to {percent(high)})"


def score(estimate: Mapping[str, float | None]) -> str:
    """A score, or a difference of two, in percent."""
    return numbers.number(estimate["value"]).replace("-0.0", "0.0")


def around(estimate: Mapping[str, float | None]) -> str:
    """The wider side of its interval."""
    return numbers.spread(estimate["value"], estimate["low"], estimate["high"])


def hours(value: float) -> str:
    """A time.

    Example:
        >>> hours(0.0), hours(0.001), hours(0.5), hours(55.5), hours(720)
        ('0', '4 s', '30 min', '55.5 h', '30 days')
    """
    seconds = value * 3600
    for least, unit, word in ((86400 * 10, 86400, "days"), (3600, 3600, "h"), (120, 60, "min")):
        if seconds >= least:
            shown = f"{seconds / unit:,.1f}" if unit == 3600 else f"{seconds / unit:,.0f}"
            return f"{shown} {word}"
    return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s" if seconds else "0"


def money(value: float) -> str:
    """Money, whole above a hundred.

    Example:
        >>> money(0), money(0.2), money(12345.6)
        ('0', '0.20', '12,346')
    """
    return "0" if not value else f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def size(n_bytes: float) -> str:
    """Bytes in units of a thousand.

    Example:
        >>> size(1234567), size(61.4e9)
        ('1.2 MB', '61 GB')
    """
    for unit, word in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            value = n_bytes / unit
            return f"{value:.0f} {word}" if value >= 10 else f"{value:.1f} {word}"
    return f"{n_bytes:.0f} B"


def of(document: Document, name: str) -> Mapping[str, Any] | None:
    """A strategy by its name."""
    return next((s for s in document["strategies"] if s["name"] == name), None)


def metric_label(key: str) -> str:
    """A metric as it is printed."""
    return numbers.metric(key).label


def label(document: Document) -> str:
    """The deciding metric as it is printed."""
    return numbers.metric(document["metric"]).label


def headline(document: Document) -> str:
    """The recommendation, in a line."""
    name = document["verdict"]["strategy"]
    chosen = None if name is None else of(document, name)
    if chosen is None:
        return "Nothing can be done under these constraints"
    title = str(chosen["title"])
    named = "" if name in (KEEP, REEMBED) else f" ({name})"
    return f"{title[0].upper()}{title[1:]}{named}"


def summary(document: Document) -> list[str]:
    """The grounds of the verdict, a sentence each."""
    verdict, inputs = document["verdict"], document["inputs"]
    old, new = of(document, KEEP), of(document, REEMBED)
    name = verdict["strategy"]
    chosen = None if name is None else of(document, name)
    if chosen is None or new is None:
        return []
    lines = [f"Reason: {verdict['reason']}."]
    if name not in (KEEP, REEMBED):
        lines.append(f"It keeps {kept(chosen['kept'], whole=True)} of {verdict['share_of']}.")
    parts = [f"{score(new['score'])} with everything embedded again"]
    if name not in (KEEP, REEMBED):
        parts.insert(0, f"{score(chosen['score'])} with this")
    if old:
        parts.insert(0, f"{score(old['score'])} with the old model")
    lines.append(f"{label(document)}: {', '.join(parts)}.")
    if chosen["broken"] is not None and name != KEEP:
        lines.append(
            f"Of {inputs['judged_queries']:,} queries {chosen['fixed']:,} are fixed and "
            f"{chosen['broken']:,} broken against the old model: {_HITS[inputs['judge']]}."
        )
    return lines


def costs(document: Document) -> list[str]:
    """Costs of the recommended strategy and of embedding everything again."""
    name = document["verdict"]["strategy"]
    items = f"{document['assumed']['items']:,} items"
    lines = []
    for each in (name, REEMBED) if name != REEMBED else (REEMBED,):
        found = None if each is None else of(document, each)
        if found is None:
            continue
        cost = found["cost"]
        parts = [f"{hours(cost['hours'])} for {items}", f"{money(cost['money'])} in money"]
        parts.append(f"{size(cost['index_bytes'])} of vectors")
        parts.append("the index is built anew" if cost["rebuild"] else "the index stays")
        parts.append("the way back is open" if cost["way_back"] else "no way back")
        lines.append(f"{each}: {', '.join(parts)}.")
    return lines


def changes(document: Document) -> list[str]:
    """Changes of the constraints that would change the answer."""
    verdict = document["verdict"]
    lines = [f"{each['if']}: {each['strategy']}" for each in verdict["changes"]]
    return [f"{line[0].upper()}{line[1:]}" for line in lines]


def basis(document: Document) -> list[str]:
    """The queries, items and criterion of the evaluation, and its limits."""
    inputs = document["inputs"]
    judge = {
        "qrels": "judged relevance", "labels": "class labels",
        "agreement": "agreement with the new model's own ten nearest, which is not accuracy",
    }[inputs["judge"]]  # fmt: skip
    lines = [
        f"{inputs['judged_queries']:,} of {inputs['queries']:,} queries, by {judge}, in a gallery "
        f"of {inputs['judged_in']:,} items; the same for every strategy.",
        f"{inputs['embedded']:,} items have vectors by both models: maps were fitted on "
        f"{inputs['fitted']:,} of them, and no item they saw counts as relevant.",
    ]
    if inputs["judged_pairs"] < inputs["pairs"]:
        lines.append(
            f"{inputs['judged_pairs']:,} of {inputs['pairs']:,} relevant pairs count: the other "
            "items have no new vector, or maps saw them; they are left out for every strategy, so "
            "scores are lower or higher than with all of them."
        )
    if inputs["judge"] == "agreement":
        lines.append("Only items outside the fit are searched: in a larger gallery all agree less.")
    elif not inputs["complete"]:
        lines.append(
            "Scores marked est. need new vectors of all items, of which only the sample has some: "
            "how many of the others stand above each relevant item is estimated. "
            f"Another sample as large would move {moved(document)}."
        )
    return [*lines, *inputs["told"]]


def moved(document: Document) -> str:
    """By how much redrawing the sample moves the estimate of re-embedding."""
    new = of(document, REEMBED)
    off = None if new is None else new["score"].get("sampling")
    return (
        "no score"
        if off is None
        else f"{REEMBED}'s {label(document)} by some {100 * off:.1f} points"
    )


def index(document: Document) -> list[str]:
    """Results behind an approximate index, and maps after which it must be built anew."""
    found = document["index"]
    if found is None:
        return []
    kind, rows = found["settings"]["kind"].upper(), found["rows"]
    lines = [f"A gallery of {found['items']:,} items behind an {kind} index, beside exact results."]
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
        return f"{curve['map']}: fewer than {most:,} pairs may lose a point or more; more may gain."
    return f"{curve['map']}: {curve['enough']:,} pairs do as well as {most:,}, within a point."
