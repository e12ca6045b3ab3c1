"""Tables of transfer: correlations with their verdicts, pairs by gap, regret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark.report import numbers
from benchmark.report.text_table import TextTable, simple_table
from benchmark.studies.transfer.compare import GapShare, Regret, Transfer, gap_shares, least_gap
from benchmark.studies.transfer.orders import MethodOrder, TransferRules


def tables(found: Sequence[Transfer], rules: TransferRules) -> list[TextTable]:
    """All of them: tracks beside tracks, tracks beside papers, gaps, regret."""
    measured = [t for t in found if not t.left.published]
    papers = [t for t in found if t.left.published]
    shown = [
        tau_table(measured, rules, "Orders on two tracks", "transfer"),
        tau_table(papers, rules, "Orders in papers and on tracks", "transfer-papers"),
        gap_table(found, rules),
        regret_table(
            measured, rules, "Regret of taking the winner along, points", "transfer-regret"
        ),
        regret_table(
            papers, rules, "Regret between papers and tracks, points", "transfer-papers-regret"
        ),
    ]
    return [table for table in shown if table.rows]


def tau_table(found: Sequence[Transfer], rules: TransferRules, title: str, slug: str) -> TextTable:
    """A line for each pair: correlation, ceiling, compatibility, verdict."""
    heads = ["protocol", "places", "score", "verdict"]
    columns = ["methods", "tau-b", "weighted", "ceiling", "alike"]
    lines = [_line(t) for t in found]
    return simple_table(
        title, slug, heads, columns, lines, [_data(t) for t in found], notes=tuple(_notes(rules))
    )


def _line(t: Transfer) -> list[str]:
    score = score_words(t.left)
    words = [t.left.protocol, f"{t.left.place} and {t.right.place}", score, verdict(t)]
    same = "" if t.compatible is None else "{} of {} ({:.1f})".format(*t.compatible)
    ceiling = numbers.DASH if t.ceiling is None else f"{t.ceiling:.2f}"
    taus = map(numbers.with_ends, (t.tau, t.weighted))
    return [*words, str(len(t.methods)), *taus, ceiling, same or numbers.DASH]


def score_words(order: MethodOrder) -> str:
    """By what methods are ordered, in words."""
    metric = numbers.metric(order.metric).label
    return metric if order.value == "cross-test" else f"{metric}, {order.value}"


def verdict(t: Transfer) -> str:
    """The verdict, and why it is open."""
    return f"{t.verdict}: {t.reason}" if t.reason else t.verdict


def _notes(rules: TransferRules) -> Iterator[str]:
    yield (
        f"Transfers: tau-b of at least {rules.tau:g} whose 95 % interval lies above "
        f"{rules.above:g}; does not: the whole interval is below {rules.tau:g}; else open, as with "
        f"fewer than {rules.seeds} seeds or {rules.methods} methods. Written down before the core "
        "board was computed, in results/transfer.yaml."
    )
    yield "Intervals: seeds of each side and methods drawn again. Left out: " + ", ".join(
        rules.left_out
    ) + "."  # fmt: skip
    yield (
        "Ceiling: mean tau of two repetitions of one board with other seeds, the lower of both. "
        "Alike: methods of which both places say the same of new/old > old/old (by chance)."
    )


def gap_table(found: Sequence[Transfer], rules: TransferRules) -> TextTable:
    """Share of pairs of methods that are in the same order on the target, by their gap."""
    shares = gap_shares(found, rules)
    kinds = list(dict.fromkeys((s.source, s.target) for s in shares))
    lines, notes = [], []
    for source, target in kinds:
        mine = [s for s in shares if (s.source, s.target) == (source, target)]
        shown = (f"{s.agree} of {s.pairs}" if s.pairs else numbers.DASH for s in mine)
        lines.append([f"{source} to {target}", *shown])
        notes.append(f"{source.capitalize()} to {target}: {least_words(mine, rules)}.")
    heads = [_gap(s) for s in shares[: len(rules.gaps)]]
    return simple_table(
        "Pairs of methods in the same order, by their gap in points", "transfer-gaps",
        ["from and to"], heads, lines, notes=tuple(notes),
    )  # fmt: skip


def least_words(shares: Sequence[GapShare], rules: TransferRules) -> str:
    """From which gap on pairs agree, in words."""
    least = least_gap(shares, rules)
    share = f"{100 * rules.agreement:g} % of the pairs agree"
    if least is None:
        return f"no difference that was measured transfers, as nowhere {share}"
    if least == rules.gaps[0]:
        return f"differences of any size transfer: {share}"
    if not any(s.pairs for s in shares if s.low < least):
        return f"differences from {100 * least:g} points on transfer, smaller ones were not there"
    return f"differences under {100 * least:g} points do not transfer; from there on {share}"


def _gap(share: GapShare) -> str:
    low = f"{100 * share.low:g}"
    return f"{low} and more" if share.high is None else f"{low} to {100 * share.high:g}"


def regret_table(
    found: Sequence[Transfer], rules: TransferRules, title: str, slug: str
) -> TextTable:
    """The loss of taking one place's winner to another, in points."""
    rows = [(t, regret) for t in found for regret in t.regrets]
    lines = [_regret_line(t, regret) for t, regret in rows]
    heads = ["protocol", "from and to", "score", "winner"]
    return simple_table(
        title, slug, heads, ["lost", "random", rules.baseline], lines,
        [
            {"protocol": t.left.protocol, "value": t.left.value, "metric": t.left.metric}
            | vars(regret)
            for t, regret in rows
        ],
        notes=(
            "Lost: the target's best score less that of the source's winner; of the mean method, "
            f"and of {rules.baseline}.",
        ),
    )  # fmt: skip


def _regret_line(t: Transfer, regret: Regret) -> list[str]:
    score = score_words(t.left)
    words = [t.left.protocol, f"{regret.source} to {regret.target}", score, regret.winner]
    return [*words, *map(numbers.number, (regret.chosen, regret.random, regret.baseline))]


def _data(t: Transfer) -> dict[str, object]:
    left, right = t.left, t.right
    same, of, chance = t.compatible or (None, None, None)
    return {
        "protocol": left.protocol, "left": left.place, "right": right.place,
        "left_pictures": left.pictures, "right_pictures": right.pictures,
        "published": left.published, "value": left.value, "metric": left.metric,
        "methods": len(t.methods), "left_seeds": left.n_seeds, "right_seeds": right.n_seeds,
        "tau": t.tau.value, "tau_low": t.tau.low, "tau_high": t.tau.high,
        "weighted": t.weighted.value, "weighted_low": t.weighted.low,
        "weighted_high": t.weighted.high, "ceiling": t.ceiling, "compatible_same": same,
        "compatible_of": of, "compatible_chance": chance, "verdict": t.verdict, "reason": t.reason,
    }  # fmt: skip
