"""Several new models, judged side by side on the same queries."""

import json

import numpy as np
import pytest
from support.command import call
from support.upgrades import all_scores, ndcg, planted, write_upgrade
from support.vector_files import write

import benchmark
from benchmark import BenchError
from benchmark.metrics.intervals import mean_difference
from benchmark.upgrade.show import wording
from benchmark.upgrade.show.sections import models as table
from benchmark.upgrade.show.wording import reasons, risks


@pytest.fixture(scope="module")
def made():
    return planted(n=700, q=120)


def blurred(vectors, by, seed=5):
    rng = np.random.default_rng(seed)
    return vectors + by * rng.standard_normal(vectors.shape).astype(np.float32)


@pytest.fixture(scope="module")
def given():
    """Arguments of a report: a good model, one that is hardly another, and a bad one."""
    made = planted(n=600, q=60)
    found = made.arguments(made.sample(300)) | {"maps": "procrustes,procrustes:query"}
    new, queries = found.pop("new_gallery"), found.pop("queries")
    pairs = {
        name: (blurred(new, by), blurred(queries, by, 6))
        for name, by in (("good", 0.0), ("alike", 0.02), ("bad", 0.8))
    }
    return found | {"models": pairs}


@pytest.fixture(scope="module")
def report(given):
    return benchmark.upgrade(**given)


def test_models_that_cannot_be_told_apart_share_a_rank(report):
    found = report.document["models"]
    places = {each["name"]: each for each in found["places"]}
    ranks = {name: each["rank"] for name, each in places.items()}
    assert ranks == {"good": 1, "alike": 1, "bad": 3}
    assert {found["taken"], *found["tied"]} == {"good", "alike"}
    assert places["bad"]["strategy"] == "keep-old" and places["bad"]["to_old"] is None
    assert places["good"]["sure"] and not places["bad"]["sure"]
    assert f"{found['taken']}: " in str(report) and "cannot be told from" in str(report)


def test_scores_and_differences_are_those_of_reports_on_each_model(report, given):
    """The verdicts, too; and the difference is of the same queries, one by one."""
    alone, values = {}, {}
    for name, (new, queries) in given["models"].items():
        rest = {key: value for key, value in given.items() if key != "models"}
        alone[name] = benchmark.upgrade(**rest, new_gallery=new, queries=queries)
    found = report.document["models"]
    for each in found["places"]:
        document = alone[each["name"]].document
        assert document["verdict"]["strategy"] == each["strategy"]
        its = {s["name"]: s for s in document["strategies"]}
        assert its[each["strategy"]]["score"]["value"] == pytest.approx(each["score"]["value"])
        assert its["re-embed"]["score"]["value"] == pytest.approx(each["again"]["value"])
        values[each["name"]] = each["score"]["value"]
    for each in found["differences"]:
        assert each["value"] == pytest.approx(values[each["of"]] - values[each["to"]])
        opposite = next(
            d for d in found["differences"] if (d["of"], d["to"]) == (each["to"], each["of"])
        )
        assert (each["low"], each["high"]) == pytest.approx((-opposite["high"], -opposite["low"]))


def test_differences_are_paired(made):
    """Everything is embedded, so the interval is that of the queries' own differences."""
    rows = np.arange(len(made.new))
    given = made.arguments(rows) | {"maps": "procrustes:query", "wanted": 1.0}
    new, queries = given.pop("new_gallery"), given.pop("queries")
    other = blurred(queries, 0.5)
    found = benchmark.upgrade(**given, models={"a": (new, queries), "b": (new, other)})
    values = {}
    for name, asked in (("a", queries), ("b", other)):
        values[name] = ndcg(all_scores(asked, new), made.relevant)
    expected = mean_difference(values["a"] - values["b"], None, 0.0)
    models = found.document["models"]
    assert {each["strategy"] for each in models["places"]} == {"re-embed"}
    (said,) = (d for d in models["differences"] if d["of"] == "a")
    assert said["value"] == pytest.approx(expected.value, abs=1e-6)
    assert (said["low"], said["high"]) == pytest.approx(expected.interval(), abs=1e-4)


def test_samples_and_queries_need_not_be_the_same(tmp_path):
    """Items that all models have count; queries go by their id, in any order."""
    made = planted(n=600, q=60)
    rows, rng = made.sample(350), np.random.default_rng(3)
    fewer, order = rng.permutation(rows)[:-60], rng.permutation(len(made.queries))
    names = np.arange(len(made.queries))
    files = {}
    for name, items, asked in (("a", rows, names), ("b", fewer, order[:-5])):
        sides = ("new", made.new[items], items), ("q", made.queries[asked], asked)
        for side, vectors, ids in sides:
            files[name, side] = tmp_path / f"{side}-{name}.npy"
            write(files[name, side], vectors, ids)
    given = made.arguments(rows) | {"maps": "procrustes:query"}
    del given["new_gallery"], given["queries"]
    given["ids"] = {"old_gallery": np.arange(len(made.old)), "old_queries": names}
    found = benchmark.upgrade(
        **given, models={n: (files[n, "new"], files[n, "q"]) for n in ("a", "b")}
    )
    assert found.document["inputs"]["embedded"] == len(fewer)
    (said,) = (line for line in str(found).splitlines() if "another model" in line)
    assert f"a: 60 of the {len(rows)} items" in said and "estimates" not in said
    models = found.document["models"]
    both = set(made.relevant[order[:-5]]) & set(fewer)
    assert models["queries"] == len(both) and models["left_out"] > 0
    # It is the same model; what is not embedded is estimated from other queries.
    assert all(abs(d["value"]) < 0.02 for d in models["differences"])


def test_a_complete_model_is_estimated_because_another_is_not(made, tmp_path):
    given = made.arguments(np.arange(len(made.old))) | {"maps": "procrustes"}
    new, queries = given.pop("new_gallery"), given.pop("queries")
    for name in ("all", "some"):
        rows = np.arange(len(new) - 9 * (name == "some"))
        write(tmp_path / f"{name}.npy", new[rows], rows)
    given["ids"] = {"old_gallery": np.arange(len(made.old))}
    found = benchmark.upgrade(
        **given, models={n: (tmp_path / f"{n}.npy", queries) for n in ("all", "some")}
    )
    said = " ".join(str(found).split())
    assert f"all: 9 of the {len(new)} items" in said and "scores estimates" in said


def test_a_damaged_model_is_found_before_the_first_is_measured(made):
    given = made.arguments(made.sample(350)) | {"maps": "procrustes:query"}
    new, queries = given.pop("new_gallery"), given.pop("queries")
    damaged, heard = queries.copy(), []
    damaged[3, 2] = np.nan
    models = {"a": (new, queries), "b": (new, damaged)}
    with pytest.raises(BenchError, match=r"queries: .*NaN"):
        benchmark.upgrade(**given, models=models, tell=heard.append)
    assert heard == ["a: reading", "b: reading"]


@pytest.fixture(scope="module")
def unlike(made, tmp_path_factory):
    """A good model with all queries, and noise with half of them, under ids."""
    found = made.arguments(np.arange(len(made.new))) | {"maps": "procrustes"}
    names = np.arange(len(made.queries))
    del found["new_gallery"], found["queries"]
    rng, files = np.random.default_rng(8), {}
    noise = [rng.standard_normal(x.shape).astype(np.float32) for x in (made.new, made.queries)]
    noise[0] *= rng.lognormal(0, 1, (len(noise[0]), 1)).astype(np.float32)
    found["ids"] = {"old_gallery": np.arange(len(made.old)), "old_queries": names}
    folder = tmp_path_factory.mktemp("models")
    for name, new, queries, n in (
        ("good", made.new, made.queries, 120), ("noise", *noise, 60),
    ):  # fmt: skip
        for side, vectors, ids in (
            ("new", new, np.arange(len(new))), ("q", queries[:n], names[:n]),
        ):  # fmt: skip
            files[name, side] = folder / f"{side}-{name}.npy"
            write(files[name, side], vectors, ids)
    models = {name: (files[name, "new"], files[name, "q"]) for name in ("good", "noise")}
    return benchmark.upgrade(**found, models=models).document


def test_figures_say_which_queries_they_are_of(unlike, report):
    again = next(s for s in unlike["strategies"] if s["name"] == "re-embed")
    (said,) = (line for line in reasons(unlike) if line.startswith("nDCG@10"))
    assert said.startswith("nDCG@10 on the 120 judged queries of good: ")
    assert f"{100 * again['score']['value']:.1f} with everything embedded again" in said
    lines = wording.models(unlike)
    assert (
        lines[0] == "On the 60 judged queries that all models have, good surely beats the others."
    )
    assert lines[1].startswith("Models have up to 60 more")
    place = next(each for each in unlike["models"]["places"] if each["name"] == "good")
    assert place["again"]["value"] != again["score"]["value"]
    # Of the same queries nothing is said.
    assert any(line.startswith("nDCG@10: ") for line in reasons(report.document))
    assert len(wording.models(report.document)) == 1


def test_each_model_is_warned_of(unlike):
    told = [line for line in risks(unlike) if line.startswith("Warning: ")]
    noise = [line for line in told if line.startswith("Warning: noise: ")]
    assert sum("not measurably more than a random order" in line for line in noise) == 1
    assert sum("rows that are near in" in line for line in noise) == 1
    assert sum("of many lengths" in line and "noise: " in line for line in told) == 1
    assert not any(line.startswith("Warning: good") for line in told)


def test_what_holds_for_all_models_is_warned_of_once(given):
    same = given | {"old_queries": np.ones_like(given["old_queries"]), "maps": "procrustes"}
    told = benchmark.upgrade(**same).document["inputs"]["told"]
    assert told.count("Warning: all vectors of the old queries are the same: "
                      "nothing can be told from them") == 1  # fmt: skip
    assert not any("of the old queries" in line and ": good" in line for line in told)


def test_the_command(made, tmp_path):
    words = write_upgrade(tmp_path, made, without=("new-gallery", "queries"))
    files, page = f"{tmp_path}/new-gallery.npy,{tmp_path}/queries.npy", tmp_path / "page.html"
    words += ["--new", f"a={files}", "--new", f"b={files}"]
    code, out, err = call(*words, "--report", page)
    assert (code, err) == (0, "")
    document = json.loads(page.with_suffix(".json").read_text())
    assert [p["rank"] for p in document["models"]["places"]] == [1, 1]
    assert "New models" in out and "<h2>New models</h2>" in page.read_text()
    assert len(table(document).rows) == 2
    for word, said in (("a=x.npy", "NAME=SAMPLE,QUERIES"), (f"a={files}", "each name once")):
        code, _, err = call(*words, "--new", word)
        assert code == 2 and said in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"qrels": None}, "compares no models"),
        ({"models": {"a": (np.eye(3), np.eye(3))}}, "two or more"),
        ({"queries": np.eye(3)}, "expected them alone"),
        ({"models": None}, "expected vectors by the new model"),
    ],
)
def test_what_cannot_be_compared(given, change, said):
    with pytest.raises(BenchError, match=said) as error:
        benchmark.upgrade(**given | change)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("by", "strategy"), [(0.65, "procrustes"), (0.8, "keep-old")])
def test_a_worthless_model_changes_nothing_that_is_said_of_another(by, strategy):
    """One is likely better than the old model, or not told from it; the other is noise."""
    made = planted(noise=0.45, n=600, q=60)
    given = made.arguments(np.arange(600)) | {"maps": "procrustes"}
    new, queries = given.pop("new_gallery"), given.pop("queries")
    good = blurred(new, by), blurred(queries, by, 6)
    alone = benchmark.upgrade(**given, new_gallery=good[0], queries=good[1]).document["verdict"]
    assert alone["strategy"] == strategy and not alone["decided"]
    noise = np.random.default_rng(0).normal(size=(2, 660, 24)).astype(np.float32)
    models = {"good": good, "noise": (noise[0, :600], noise[1, :60])}
    for order in (models, dict(reversed(models.items()))):
        report = benchmark.upgrade(**given, models=order)
        verdict, found = report.document["verdict"], report.document["models"]
        assert (found["taken"], found["tied"]) == ("good", [])
        assert {key: verdict[key] for key in ("strategy", "reason", "decided")} == {
            key: alone[key] for key in ("strategy", "reason", "decided")
        }
        text = " ".join(str(report).split())
        all_kept = "the old model is kept with all; embedding again is best with good"
        assert (all_kept in text) == (strategy == "keep-old") and "cannot be told" not in text
