"""The report on upgrades whose outcome is known beforehand."""

import itertools
import re
from dataclasses import fields, replace
from typing import get_type_hints

import numpy as np
import pytest
from support.upgrades import all_scores, ndcg, noise, planted, studied
from typer.main import get_command

import benchmark
from benchmark import BenchError
from benchmark.cli.app import app
from benchmark.metrics.intervals import mean_interval
from benchmark.report.renderers.terminal import plain
from benchmark.upgrade import run
from benchmark.upgrade.decide.gate import Condition
from benchmark.upgrade.decide.verdict import Evidence, decide
from benchmark.upgrade.fit.maps import fit
from benchmark.upgrade.formats.rows import ArrayRows
from benchmark.upgrade.measure import list_estimate
from benchmark.upgrade.measure.study import queries_between, rotation, saved, seen_pairs
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.request import KEEP, REEMBED, Constraints, UpgradeRequest, missing
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.tables import basis, tables
from benchmark.upgrade.show.wording import headline, reasons

quiet = lambda words: None  # noqa: E731
ALL_DRAWS = list_estimate.DRAWS


@pytest.fixture(scope="module")
def made():
    return planted(q=400)


@pytest.fixture(scope="module")
def sampled(made):
    """The report from a sample of the gallery, and the study that it is of.

    By all draws: what is planted is found in their mean.
    """
    kept, study = [], run.study
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(list_estimate, "DRAWS", ALL_DRAWS)
        patch.setattr(run, "study", lambda *given: kept.append(study(*given)) or kept[-1])
        report = benchmark.upgrade(**made.arguments(made.sample(800)), items=1_000_000, price=0.5)
    (only,) = kept
    return report, only


@pytest.fixture(scope="module")
def report(sampled):
    """From a sample of the gallery."""
    return sampled[0]


@pytest.fixture(scope="module")
def studies(made, sampled):
    """From the sample, and from everything embedded again."""
    return sampled[1], studied(made.arguments(np.arange(len(made.new))))


def by_name(report):
    return {each["name"]: each for each in report.document["strategies"]}


def test_a_planted_rotation_is_recommended_with_the_right_loss(made, report):
    """The true rotation in place of the fitted one says what is lost."""
    assert report.recommended in ("procrustes", "procrustes:query", "linear")
    old, new = (
        ndcg(all_scores(*pair), made.relevant).mean()
        for pair in ((made.old_queries, made.old), (made.queries, made.new))
    )
    turned = ndcg(all_scores(made.queries @ made.rotation, made.old), made.relevant).mean()
    kept = by_name(report)[report.recommended]["kept"]
    assert kept["low"] <= (turned - old) / (new - old) <= kept["high"]
    assert kept["value"] == pytest.approx((turned - old) / (new - old), abs=0.04)
    assert 0.85 <= kept["low"] < kept["high"] - 0.005
    assert by_name(report)[KEEP]["score"]["value"] == pytest.approx(old, abs=1e-12)
    assert report.conversion.method == report.recommended.partition(":")[0]


def test_queries_between_both_models_can_be_had(studies):
    """By the conversion that a report saves, turned by all pairs that the scored ones saw."""
    for each in studies:
        made, inputs = saved(each, "midpoint", quiet), each.inputs
        mine = made.view(inputs.queries, inputs.old_queries)
        turned = rotation(inputs, seen_pairs(each.saved_on))
        expected = queries_between(inputs, turned)["midpoint"]
        np.testing.assert_allclose(mine, expected, atol=1e-5)
        assert saved(each, "slerp", quiet).params["share"] == each.first.shares[2]
        assert saved(each, KEEP, quiet) is None


def test_a_saved_map_has_seen_all_that_the_scored_ones_saw(studies):
    for each in studies:
        sample = each.saved_on
        seen = np.any([fold.sample.fitted for fold in each.folds], axis=0)
        np.testing.assert_array_equal(sample.fitted, seen)
        assert sample.fitted.sum() > max(fold.sample.fitted.sum() for fold in each.refits)
        mine = saved(each, "linear", quiet)
        again = fit("linear", sample.old[seen], sample.new[seen], "cosine", 0).conversion
        np.testing.assert_array_equal(mine.convert(sample.old), again.convert(sample.old))


def test_a_saved_map_is_as_good_as_it_was_told():
    """Few pairs for so many numbers, half of them relevant: the first fit has too few of them."""
    made = planted(noise=1.0, n=400, q=190, dim=96)
    worse = 2.5 * np.random.default_rng(5).standard_normal(made.old_queries.shape)
    made = replace(made, old_queries=(made.old_queries + worse).astype(np.float32))
    report = benchmark.upgrade(**made.whole(maps="linear"), wanted=0.2, old_model=False)
    assert report.recommended == "linear"
    told = by_name(report)["linear"]["score"]
    items = report.conversion.convert(made.old)
    mine = ndcg(all_scores(made.queries, items), made.relevant).mean()
    assert mine >= told["value"] - 0.005
    fitted, saved_on = (report.document["inputs"][name] for name in ("fitted", "saved_on"))
    assert (fitted, saved_on) == (299, 400)
    assert "A map that is saved is fitted on 400." in " ".join(basis(report.document))


def test_scores_of_a_sample_are_those_of_everything_embedded(studies):
    sample, everything = studies
    assert {n for n, o in sample.outcomes.items() if o.estimated} == {
        "rrf", "cascade", "cascade-mapped", REEMBED,
    }  # fmt: skip
    assert not any(o.estimated for o in everything.outcomes.values())
    for name, outcome in sample.outcomes.items():
        for metric in ("ndcg_at_10", "recall_at_1", "map"):
            truth = everything.outcomes[name].scores[metric].mean()
            low, high = mean_interval(np.clip(outcome.scores[metric], 0, 1))
            assert low - 0.01 <= truth <= high + 0.01, (name, metric)
        if name != "slerp":  # each chooses its own share of the way
            truth = everything.outcomes[name].scores["ndcg_at_10"].mean()
            assert outcome.scores["ndcg_at_10"].mean() == pytest.approx(truth, abs=0.04), name


def test_no_map_has_seen_a_relevant_item(studies, made):
    for each in studies:
        sample = each.first.sample
        assert not np.isin(sample.rows[sample.fitted], made.relevant).any()
        assert not (sample.fitted & sample.held).any()


def test_every_item_is_scored_by_maps_that_have_not_seen_it(studies):
    """Four fits, each without another quarter of the relevant items and of the others."""
    for each in studies:
        assert len(each.refits) == 4
        for rows in (each.first.sample.fitted, each.first.sample.held):
            seen = np.array([fold.sample.fitted[rows] for fold in each.refits])
            assert (seen.sum(axis=0) == 3).all()
            assert np.ptp(seen.sum(axis=1)) <= 0.1 * rows.sum()


@pytest.mark.slow
def test_maps_are_as_good_as_those_of_items_outside_the_gallery():
    """Of classes with many relevant items each, most of them in the sample."""
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        labels, asked = rng.integers(0, 20, 2100), rng.integers(0, 20, 100)
        centre, views = rng.normal(size=(20, 32)), rng.normal(size=(2, 32, 64)) / 6
        texts = [centre[of] + rng.normal(size=(len(of), 32)) for of in (labels, asked)]
        old, old_queries = (x @ views[0] + 0.9 * rng.normal(size=(len(x), 64)) for x in texts)
        new, queries = (x @ views[1] + 0.3 * rng.normal(size=(len(x), 64)) for x in texts)
        part = np.sort(rng.permutation(1500)[:300])
        given = {
            "old_gallery": old[:1500], "new_gallery": new[part], "queries": queries,
            "old_queries": old_queries, "labels": (asked, labels[:1500]),
            "ids": {"old_gallery": np.arange(1500), "new_gallery": part},
        }  # fmt: skip
        given |= {k: given[k].astype(np.float32) for k in ("old_gallery", "new_gallery", "queries")}
        found = studied(given | {"maps": "linear,linear:query,procrustes"}).outcomes
        same = asked[:, None] == labels[None, :1500]
        known = np.isin(np.arange(1500), part)
        for label in ("linear", "linear:query", "procrustes"):
            true = []
            for k in range(2):
                rows = 1500 + np.random.default_rng(k).permutation(600)[:225]
                pairs = (x[rows].astype(np.float32) for x in (old, new))
                made = fit(label, *pairs, "cosine", 0).conversion
                items = given["old_gallery"]
                items = items if label.endswith("query") else made.convert(items)
                scores = all_scores(made.view(given["queries"]), items)
                scores[same & ~known] = -np.inf
                for row, wanted in zip(scores, same & known, strict=True):
                    hit = wanted[np.argsort(-row)]
                    true.append((np.cumsum(hit)[hit] / (np.flatnonzero(hit) + 1)).mean())
            gaps.append(found[label].scores["map"].mean() - np.nanmean(true))
    assert abs(np.mean(gaps)) < 0.015


def test_pure_noise_recommends_embedding_again():
    made = noise(900)
    report = benchmark.upgrade(**made.arguments(made.sample(450)))
    found = by_name(report)
    assert report.recommended == REEMBED and report.conversion is None
    assert found["procrustes"]["score"]["high"] < 0.1 < found[REEMBED]["score"]["low"]
    truth = ndcg(all_scores(made.queries, made.new), made.relevant).mean()
    assert found[REEMBED]["score"]["value"] == pytest.approx(truth, abs=0.05)
    assert any(line.startswith("Warning: rows that are near") for line in
               report.document["inputs"]["told"])  # fmt: skip


def test_nothing_is_recommended_that_cannot_be_done(studies):
    """Every set of constraints: the strategy, the next one and the others that are named."""
    sample, _ = studies
    evidence = Evidence.of(sample.outcomes, sample.metric, sample.groups)
    recommended = set()
    for flags in itertools.product([True, False], repeat=5):
        constraints = Constraints(*flags)
        for wanted in (0.5, 0.9, 0.999):
            decision = decide(evidence, constraints, wanted)
            for name in (decision.name, decision.runner_up):
                if name is not None:
                    assert not missing(sample.outcomes[name].strategy.needs, constraints)
            recommended.add(decision.name)
            assert decision.name != decision.runner_up
    assert {"procrustes:query", REEMBED} <= recommended


def test_a_dead_old_model():
    """Its recorded queries still give the lower bound, which nobody can have."""
    made = planted(n=700, q=60)
    report = benchmark.upgrade(**made.arguments(made.sample(300)), old_model=False, wanted=1.0)
    assert report.recommended == REEMBED
    needing = {n for n, each in by_name(report).items() if "old_model" in each["needs"]}
    assert needing == {KEEP, "midpoint", "slerp", "rrf", "rrf-converted", "cascade"}
    assert all("old model is gone" in report.document["left_out"][name] for name in needing)
    verdict = report.document["verdict"]
    assert verdict["runner_up"] not in needing


def test_without_old_queries_shares_are_of_the_new_score():
    made = planted(n=700, q=60)
    given = made.arguments(made.sample(300)) | {"old_queries": None}
    report = benchmark.upgrade(**given)
    found = by_name(report)
    assert KEEP not in found and "no queries by the old model" in report.document["left_out"][KEEP]
    ratio = found["linear"]["score"]["value"] / found[REEMBED]["score"]["value"]
    assert found["linear"]["kept"]["value"] == pytest.approx(ratio, abs=0.01)
    assert report.document["verdict"]["meanwhile"] == KEEP  # it runs, though nothing scores it
    unknown = "Queries by the old model (--old-queries) would tell which model is better."
    assert unknown in reasons(report.document)
    assert not report.document["verdict"]["decided"]
    title = "Not known without queries by the old model: is the new model better? If it is: "
    assert headline(report.document).startswith(title)
    assert title in str(report).replace("\n", " ") and title in render(report.document)
    stuck = benchmark.upgrade(**given | {"maps": "procrustes"}, index=False).document
    assert stuck["verdict"]["strategy"] is None  # naive, alone, finds nothing
    assert headline(stuck) == "Not decided: keep the old model while it runs"
    only = given | {"maps": "procrustes:query", "wanted": 0.9999}
    stuck = benchmark.upgrade(**only, index=False).document
    assert stuck["verdict"]["strategy"] == "procrustes:query"
    assert stuck["verdict"]["reason"].endswith(
        "the old model, which still runs, may well be better"
    )
    assert "Keep the old model while it runs; after that: " in headline(stuck)
    gone = benchmark.upgrade(**given, old_model=False).document
    assert gone["verdict"]["decided"] and "Not known" not in headline(gone)
    assert gone["verdict"]["meanwhile"] in found
    assert gone["verdict"]["meanwhile"].endswith(":query")
    assert unknown not in reasons(gone)  # there is nothing to be better than


def test_without_judgements_it_is_agreement_and_no_upgrade_is_announced(tmp_path):
    """The new model knows nothing of the items, and agrees with itself all the same."""
    made = noise(700)
    given = made.arguments(np.arange(len(made.new))) | {
        "old_gallery": made.new, "new_gallery": made.old, "queries": made.old_queries,
        "old_queries": made.queries, "compressed": True, "transition": True,
    }  # fmt: skip
    judged = benchmark.upgrade(**given)
    assert judged.document["verdict"]["decided"] and judged.recommended == KEEP
    slices = tmp_path / "slices.tsv"
    slices.write_text("id\tslice\n" + "".join(f"{q}\tall\n" for q in range(80)))
    report = benchmark.upgrade(**given | {"qrels": None, "slices": slices})
    document, found = report.document, by_name(report)
    assert document["metric"] == "agreement_at_10"
    assert list(found["linear"]["metrics"]) == ["agreement_at_10"]
    assert found[REEMBED]["score"]["value"] == 1.0
    assert not document["verdict"]["decided"]
    assert document["verdict"]["share_of"] == "re-embedding's results"
    for each in (*found.values(), *document["compressed"]):
        assert each["to_keep"] is None
    assert all(each["fixed"] is each["broken"] is None for each in found.values())
    share = found["linear"]["kept"]["value"]  # is agreement itself
    assert share == pytest.approx(found["linear"]["score"]["value"])
    assert document["worst"]["against"] == REEMBED
    shown = plain(tables(document, every=True)).replace("\n", " ")
    assert "Not known without judgements: is the new model better?" in shown
    assert "A gain is one of agreement" in shown and "not accuracy" in shown
    assert not re.search("upgrade: |worthwhile|are broken|beats the old model", shown)
    assert Condition.parse("upgrade<0.02").holds(document)
    (chance,) = (line for line in document["inputs"]["told"] if "by chance" in line)
    assert "the old model shares" in chance and "swapped" not in str(report)


def test_rows_in_another_order_are_matched_by_id_or_refused():
    made = planted(n=600, q=30)
    rows = made.sample(300)
    reports = [benchmark.upgrade(**made.arguments(order)) for order in (rows, np.sort(rows))]
    scores = [{n: s["metrics"] for n, s in by_name(r).items()} for r in reports]
    assert rows.tolist() != np.sort(rows).tolist() and scores[0] == scores[1]
    shuffled = np.random.default_rng(0).permutation(len(made.new))
    with pytest.raises(BenchError, match="same order"):
        benchmark.upgrade(made.old, made.new[shuffled], made.queries, maps="procrustes")


def test_queries_that_are_items_are_left_out_for_themselves():
    """Without it every query finds itself first."""
    made = planted(n=600, q=60)
    rows, items = np.arange(len(made.new)), made.relevant
    given = made.arguments(rows) | {
        "queries": made.new[items], "old_queries": made.old[items], "maps": "procrustes",
        "qrels": {int(a): {int(b): 1.0} for a, b in itertools.pairwise(items)},
        "queries_are_items": True,
    }  # fmt: skip
    given["ids"] |= {"queries": items, "old_queries": items}
    relevant = studied(given).relevant
    assert relevant.counted.sum() == len(items) - 1 == relevant.n_queries - 1
    assert relevant.row[~relevant.counted].tolist() == items.tolist()


def test_costs_are_those_of_the_users_numbers(report):
    found = by_name(report)
    again = found[REEMBED]["cost"]
    hours = 1e6 / 500 / 3600
    assert again["hours"] == pytest.approx(hours) and again["money"] == pytest.approx(0.5 * hours)
    assert again["index_bytes"] == 1e6 * 24 * 4 and again["rebuild"]
    assert again["old_bytes"] == 1e6 * 24 * 4
    linear = found["linear"]
    assert linear["cost"]["hours"] == pytest.approx(1e6 / linear["rows_per_s"] / 3600)
    assert found["rrf"]["cost"]["index_bytes"] == 2 * again["index_bytes"]
    assert (found["cascade"]["cost"]["runs"], found["cascade"]["cost"]["embedded"]) == (2, 200)
    assert found["procrustes:query"]["cost"]["hours"] == 0


def test_pairs_and_backfilling(sampled):
    report, study = sampled
    curve = report.document["pairs"]
    assert [p["pairs"] for p in curve["points"]] == [study.first.sample.fitted.sum()]
    (order,) = report.document["backfilling"]
    scores = [p["value"] for p in order["points"]]
    assert order["worst"]["value"] == min(scores)
    assert scores[-1] == curve["bounds"][REEMBED]["value"]


def test_worst_queries_are_those_that_lose_most(report, made):
    worst = report.document["worst"]["queries"]
    lost = [q["after"] - q["before"] for q in worst]
    assert lost == sorted(lost) and all(x < 0 for x in lost) and len(worst) <= 20
    for each in worst:
        assert int(each["item"]) == made.relevant[int(each["id"])]
        assert each["rank_after"] > each["rank_before"]


def test_judgements_of_several_items_and_long_names(made):
    """A mapping whose queries share items, by ids as long as people have them."""
    names = np.array([f"a-rather-long-name-of-an-item-{k}" for k in range(len(made.new))])
    rows = np.arange(len(made.new))
    given = made.arguments(rows)
    qrels = {
        q: {str(names[row]): 1.0, str(names[made.relevant[0]]): 2.0}
        for q, row in enumerate(made.relevant)
    }
    ids = {"old_gallery": names, "new_gallery": names[rows]}
    qrels = read_inputs(UpgradeRequest(**given | {"qrels": qrels, "ids": ids})).qrels
    assert len(qrels.rows) == 2 * len(made.relevant) - 1
    first = made.relevant[0]
    assert qrels.rows[0] == first and qrels.gains[0] == 2.0
    for q, row in enumerate(made.relevant[1:], 1):
        a, b = qrels.offset[q : q + 2]
        assert sorted(qrels.rows[a:b]) == sorted([first, row])


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("qrels", [True, False])
def test_the_gallery_is_read_at_most_three_times(complete, qrels, monkeypatch):
    """Once to look at all vectors and to draw the sample, once to search, once to rescore."""
    read, vectors = [], ArrayRows.vectors
    monkeypatch.setattr(
        ArrayRows, "vectors", lambda self, *a, **k: read.append(self.name) or vectors(self, *a, **k)
    )
    made = planted(n=600, q=60)
    given = made.arguments(np.arange(len(made.new)) if complete else made.sample(300))
    benchmark.upgrade(**given | {"rescoring": True} | ({} if qrels else {"qrels": None}))
    assert read.count("old_gallery") == (3 if qrels else 1)
    assert read.count("new_gallery") == 1


def test_every_option_has_the_help_of_its_field():
    """One description of a request, for the command and for Python."""
    options = {each.name: each for each in get_command(app).commands["upgrade"].params}
    hints = get_type_hints(UpgradeRequest, include_extras=True)
    for each in fields(UpgradeRequest):
        (help_,) = hints[each.name].__metadata__
        assert (each.name in options) == (help_.cli is not None)
        if each.name in options:
            assert options[each.name].help == help_.text
    assert options["throughput"].default == UpgradeRequest.throughput
