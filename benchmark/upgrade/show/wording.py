"""The report's words and numbers, the same on the terminal and on the page."""

from collections.abc import Mapping
from typing import Any

from benchmark.report import numbers
from benchmark.upgrade.read.request import KEEP, MIXED, REEMBED
from benchmark.upgrade.search.strategies import NAMES

Document = Mapping[str, Any]
DASH = numbers.DASH
_LARGER = 10  # times the searched gallery from which on a deployment is another matter
_BY = {"queries": "queries' own old vectors", "pairs": "held-out pairs' own old vectors"}
_TAKEN = {"request": "asked for", "file": "what the file says", "default": "taken by default"}
_HITS = {
    "qrels": "a relevant item is among the ten nearest, or no longer",
    "labels": "the nearest item is relevant, or no longer",
}


def percent(share: float) -> str:
    """A share without decimals.

    Example:
        >>> percent(0.934)
        '93 %'
    """
    return f"{round(100 * share)} %"


def kept(share: Mapping[str, float | None] | None, *, whole: bool = False) -> str:
    """The share of the upgrade that is kept, with its interval if ``whole``.

    Shares beyond all of it and below none are said so: how far beyond is no share.

    Example:
        >>> kept({"value": 0.9, "low": 0.85, "high": None}, whole=True)
        '90 % (85 % or more)'
        >>> kept({"value": 1.06, "low": 0.96, "high": 1.17}, whole=True)
        '> 100 % (96 % or more)'
        >>> kept({"value": -0.2, "low": -0.4, "high": -0.1}, whole=True)
        '< 0 %'
    """
    if share is None or share["value"] is None:
        return numbers.DASH
    value, low, high = share["value"], share["low"], share["high"]
    text = "> 100 %" if value > 1.005 else "< 0 %" if value <= -0.005 else percent(value)
    if not whole or low == high == value:
        return text
    low = None if low is None or low < 0 else low
    high = None if high is None or high > 1 else high
    if (low is None and high is None) or (high or 0) < 0 or (low or 0) > 1:
        return text
    if low is None or high is None:
        end = f"{percent(low)} or more" if low is not None else f"at most {percent(high or 0)}"
        return f"{text} ({end})"
    return f"{text} ({percent(low)} to {percent(high)})"


def score(estimate: Mapping[str, float | None]) -> str:
    """A score, or a difference of two, in percent."""
    return numbers.number(estimate["value"])


def signed(estimate: Mapping[str, float | None]) -> str:
    """A difference of scores in points, with its sign."""
    return numbers.number(estimate["value"], signed=True)


def around(estimate: Mapping[str, float | None]) -> str:
    """The ends of its interval, in percent; nothing where one is missing.

    Example:
        >>> around({"value": 0.003, "low": 0.001, "high": 0.005})
        '0.1 to 0.5'
    """
    if estimate["low"] is None or estimate["high"] is None:
        return ""
    ends = (numbers.number(estimate[key]) for key in ("low", "high"))
    return " to ".join(ends)


def bracketed(estimate: Mapping[str, float | None]) -> str:
    """The ends of its interval in brackets, after a space; nothing where one is missing.

    Example:
        >>> bracketed({"low": 0.001, "high": 0.005}), bracketed({"low": None, "high": None})
        (' (0.1 to 0.5)', '')
    """
    ends = around(estimate)
    return f" ({ends})" if ends else ""


def spanned(estimate: Mapping[str, float | None]) -> str:
    """A score with its interval."""
    return f"{score(estimate)}{bracketed(estimate)}"


def gap(estimate: Mapping[str, float | None] | None) -> str:
    """A difference of scores in points with its interval; a dash for none."""
    return DASH if estimate is None else f"{signed(estimate)}{bracketed(estimate)}"


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


def money(value: float, document: Document) -> str:
    """Money with its sign, whole above a hundred.

    Example:
        >>> [money(x, {"assumed": {"currency": "$"}}) for x in (0, 0.001, 0.2, 12345.6)]
        ['$0', '< $0.01', '$0.20', '$12,346']
    """
    sign = document["assumed"]["currency"]
    if not value:
        return f"{sign}0"
    if value < 0.01:
        return f"< {sign}0.01"
    return f"{sign}{value:,.0f}" if value >= 100 else f"{sign}{value:,.2f}"


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


def of(document: Document, name: str | None) -> Mapping[str, Any] | None:
    """A strategy by its name; None where there is none of it."""
    return next((s for s in document["strategies"] if s["name"] == name), None)


def metric_label(key: str) -> str:
    """A metric as it is printed."""
    return numbers.metric(key).label


def label(document: Document) -> str:
    """The deciding metric as it is printed; agreement with its depth in the whole gallery."""
    if document["inputs"]["judge"] == "agreement":
        return f"agreement@{document['inputs']['agreement_at']:,}"
    return numbers.metric(document["metric"]).label


def titled(document: Document, name: str) -> str:
    """A strategy in words, with its name where that says more."""
    title = str((of(document, name) or {"title": name})["title"])
    return title if name in (KEEP, REEMBED) else f"{title} ({name})"


def headline(document: Document) -> str:
    """The recommendation, in a line."""
    verdict = document["verdict"]
    name = verdict["strategy"]
    if name is None:
        none = "Nothing can be done under these constraints"
        return none if verdict["decided"] else "Not decided: keep the old model while it runs"
    title = (lower := titled(document, name))[0].upper() + lower[1:]
    if document["models"] is not None and name != KEEP:
        title = lower = f"{document['models']['taken']}: {lower}"
    if verdict["decided"]:
        return title
    judged = document["inputs"]["judge"] != "agreement"
    if not judged or not of(document, KEEP):
        lacks = "queries by the old model" if judged else "judgements"
        then = "For now" if name == KEEP else "If it is"
        share = (of(document, name) or {"kept": None})["kept"]
        if judged and share is not None and share["value"] < document["wanted"]:
            then = "Keep the old model while it runs; after that"
        return f"Not known without {lacks}: is the new model better? {then}: {lower}"
    return f"Not decided: {lower} for now" if name == KEEP else f"Likely, but not decided: {lower}"


def reasons(document: Document) -> list[str]:
    """The grounds of the verdict, a sentence each."""
    verdict = document["verdict"]
    old, new = of(document, KEEP), of(document, REEMBED)
    name = verdict["strategy"]
    chosen = of(document, name)
    lines = [f"{verdict['reason'][0].upper()}{verdict['reason'][1:]}."]
    if document["alignment"] is not None:
        lines += alignment(document)
    if chosen is None:
        return lines
    if new is None:
        parts = [f"{score(chosen['score'])} with this"] if name != KEEP else []
        parts += [f"{score(old['score'])} with the old model"] if old else []
        lines.append(f"{label(document)}: {', '.join(parts)}.")
        if (gain := chosen["to_keep"]) is not None:
            lines.append(f"To the old model: {signed(gain)} points{bracketed(gain)}.")
        return lines
    if name not in (KEEP, REEMBED):
        lines.append(f"It keeps {kept(chosen['kept'], whole=True)} of {verdict['share_of']}.")
    parts = [f"{score(old['score'])} with the old model"] if old else []
    parts += [f"{score(chosen['score'])} with this"] if name not in (KEEP, REEMBED) else []
    parts.append(f"{score(new['score'])} with everything embedded again")
    lines.append(f"{label(document)}{_own(document)}: {', '.join(parts)}.")
    if document["inputs"]["judge"] == "agreement":
        lines.append(
            f"That is how many of the first {document['inputs']['agreement_at']:,} are those of "
            "re-embedding, which agrees with itself whatever the new model is: it is not accuracy. "
            "Judgements (--qrels) or labels would tell which model is better."
        )
    elif old is None and document["constraints"]["old_model"]:
        lines.append("Queries by the old model (--old-queries) would tell which model is better.")
    if (upgrade := new["to_keep"]) is not None:
        lines.append(
            f"The upgrade: {signed(upgrade)} points{bracketed(upgrade)}; "
            f"{100 * document['worthwhile']:g} are worthwhile."
        )
    if document["models"] is not None:
        lines += models(document)
    return lines


def _own(document: Document) -> str:
    """The queries of the figures, where the model that is taken has others than all models."""
    found, n = document["models"], document["inputs"]["judged_queries"]
    if found is None or n == found["queries"]:
        return ""
    return f" on the {n:,} judged queries of {found['taken']}"


def models(document: Document) -> list[str]:
    """The grounds of the ranks of several new models, and which of them cannot be told apart."""
    found = document["models"]
    taken, places = found["taken"], {each["name"]: each for each in found["places"]}
    others = [each for name, each in places.items() if name != taken]
    kept = [each["name"] for each in others if each["strategy"] == KEEP and each["rank"] == 1]
    if not others:
        said = "no other model can be followed"
    elif places[taken]["strategy"] == KEEP:
        said = f"the old model is kept with all; embedding again is best with {taken}"
    elif found["tied"]:
        said = f"{taken} cannot be told from {', '.join(found['tied'])}"
    elif not kept:
        said = f"{taken} surely beats the others"
    else:
        said = f"only {taken} is an upgrade; with {', '.join(kept)} the old model would be kept"
    lines = [f"On the {found['queries']:,} judged queries that all models have, {said}."]
    if found["left_out"]:
        lines.append(f"Models have up to {found['left_out']:,} more, which are left out of this.")
    return lines


def alignment(document: Document) -> list[str]:
    """Do both spaces align, and how sure is it, in a sentence of the best map."""
    found = document["alignment"]
    if not found:
        refused = (f"{n}: {why}" for n, why in document["left_out"].items() if n not in NAMES)
        return [f"No map could be fitted ({'; '.join(refused)})."]
    best = max(found, key=lambda each: (each["found"] or {"value": 0.0})["value"])
    said = "align" if best["aligned"] else "do not align, so no map is taken"
    grounds = []
    if best["found"] is not None:
        ends = bracketed(best["found"])
        grounds.append(
            f"{best['map']} finds {score(best['found'])} %{ends} of the {_BY[best['by']]} among "
            f"{best['among']:,} vectors"
        )
    if best["attempts"]:
        grounds.append(f"{best['agree']} of {best['attempts']} attempts without pairs agree")
    sure = "" if best["sure"] else ", which is not sure"
    return [f"The spaces {said}{sure}: {'; '.join(grounds)}."]


def costs(document: Document) -> list[str]:
    """Costs of the recommended strategy and of embedding everything again."""
    name = document["verdict"]["strategy"]
    items = f"{document['assumed']['items']:,} items"
    lines = []
    for each in (name, REEMBED) if name != REEMBED else (REEMBED,):
        if (found := of(document, each)) is None:
            continue
        cost = found["cost"]
        parts = [f"{hours(cost['hours'])} of one machine", money(cost["money"], document)]
        parts.append(f"{size(cost['index_bytes'])} of vectors for {items}")
        parts.append("the index is built anew" if cost["rebuild"] else "the index stays")
        parts.append(a_query(cost, document))
        lines.append(f"{each}: {', '.join(parts)}.")
    chosen = of(document, name)
    if chosen is not None and chosen["cost"]["rebuild"]:
        lines.append(_meanwhile(document, chosen["cost"]))
    return lines


def meanwhile(progress: Mapping[str, Any]) -> str:
    """The way to find items while others are embedded again: a conversion, or a mixed index."""
    start = str(progress["start"])
    return f"mixed, {start}" if start in MIXED else f"after {start}"


def a_query(cost: Mapping[str, Any], document: Document) -> str:
    """The models that run on a query, and the items that are embedded while it waits."""
    models = f"{cost['runs']} model run{'s' if cost['runs'] > 1 else ''} a query"
    if not cost["embedded"]:
        return models
    spent = money(cost["money_per_1000_queries"], document)
    return f"{models} and {cost['embedded']} items embedded ({spent} per 1,000 queries)"


def _meanwhile(document: Document, cost: Mapping[str, Any]) -> str:
    serves, its = document["verdict"]["meanwhile"], "the old index is"
    line = f"serves: {titled(document, serves)}" if serves else "nothing serves that can be had"
    if serves == KEEP:
        line, its = "the old model and index serve", "they are"
    if cost["old_bytes"] and serves:
        line += f"; {its} the way back while {size(cost['old_bytes'])} are kept beside"
    return f"Until then {line}."


def risks(document: Document) -> list[str]:
    """Risks: queries that lose, what the answer hangs on, doubts about the inputs."""
    verdict, inputs = document["verdict"], document["inputs"]
    chosen = of(document, verdict["strategy"])
    lines = [line for line in inputs["told"] if line.startswith("Warning: ")]
    lines += _odd_vectors(document)
    if chosen is not None and chosen["broken"] is not None and verdict["strategy"] != KEEP:
        lines.append(
            f"Against the old model, of {inputs['judged_queries']:,} queries: {chosen['broken']:,} "
            f"broken, {chosen['fixed']:,} fixed ({_HITS[inputs['judge']]})."
        )
    lines += slice_warnings(document)
    items = document["assumed"]["items"]
    if items >= _LARGER * inputs["rows"]:
        lines.append(
            f"Warning: scores are of a gallery of {inputs['rows']:,} items, costs of "
            f"{items:,}: among more items every strategy finds less."
        )
    if chosen is not None and chosen["estimated"]:
        lines.append(f"Its score is estimated: another sample would move {moved(document)}.")
    if second := of(document, verdict["runner_up"]):
        share = ""
        if second["kept"] is not None and second["kept"]["value"]:
            share = f", {kept(second['kept'])} of {verdict['share_of']}"
        lines.append(f"Without it: {titled(document, second['name'])}{share}.")
    return lines


def _odd_vectors(document: Document) -> list[str]:
    """A line for each finding about vectors, and one for all about their lengths."""
    odd = [each for each in document["vectors"] if each["odd"]]
    ways = [each for each in odd if each["what"] in ("dot", "l2")]
    lines = [f"Warning: {each['of']}: {each['words']}." for each in odd if each not in ways]
    if ways:
        names = ", ".join(dict.fromkeys(each["of"] for each in ways))
        said = document["inputs"]
        its = min(ways, key=lambda each: (each["what"] != said["distance"], each["value"]))
        text = f"of many lengths. Of the ten nearest by cosine {its['what']} finds "
        text += f"{percent(its['value'])}; {said['distance']} is {_TAKEN[said['distance_by']]}"
        lines.append(f"Warning: {names}: {text}: is it right?")
    return lines


def changes(document: Document) -> list[str]:
    """Changes of the constraints that would change the answer."""
    found = document["verdict"]["changes"]
    return [f"{each['if'][0].upper()}{each['if'][1:]}: {each['strategy']}" for each in found]


def moved(document: Document) -> str:
    """By how much redrawing the sample moves the estimate of re-embedding."""
    new = of(document, REEMBED)
    off = None if new is None else new["score"].get("sampling")
    if off is None:
        return "no score"
    return f"{REEMBED}'s {label(document)} by some {100 * off:.1f} points"


def slice_warnings(document: Document) -> list[str]:
    """Slices that surely lose by the recommended strategy."""
    found = document["slices"]["slices"] if document["slices"] else []
    return [
        f"Warning: {each['name']} ({each['queries']:,} queries) loses "
        f"{numbers.number(-each['gain']['value'])} points ({around(each['gain'])})."
        for each in found if each["loses"] and document["verdict"]["strategy"] != KEEP
    ][:3]  # fmt: skip
