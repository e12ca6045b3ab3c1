"""Items that are gone: maps of other texts, with pairs and without; spaces that do not align."""

import json

import numpy as np
import pytest
from support.command import call
from support.upgrades import all_scores, ndcg, planted, write_upgrade
from support.vector_files import write

import benchmark
from benchmark import BenchError
from benchmark.report.renderers.terminal import plain
from benchmark.upgrade.read.order import likeness
from benchmark.upgrade.read.request import KEEP
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.tables import tables


@pytest.fixture(scope="module")
def made():
    return planted(q=100)


@pytest.fixture(scope="module")
def given(made):
    """Of everything but what maps are fitted on."""
    found = made.arguments(np.arange(len(made.new)))
    del found["new_gallery"]
    return found | {"ids": {"old_gallery": np.arange(len(made.old))}}


def others(made, n=600):
    """Rows that no query looks for: their vectors stand for other texts."""
    return np.setdiff1d(np.arange(len(made.new)), made.relevant)[:n]


@pytest.fixture(scope="module")
def report(made, given):
    rows = others(made)
    return benchmark.upgrade(**given, pairs_old=made.old[rows], pairs_new=made.new[rows])


def test_a_planted_rotation_is_bridged(made, report):
    """Scores are those of brute force, and that of the true rotation is near."""
    found = {each["name"]: each for each in report.document["strategies"]}
    old, turned, mapped = (
        ndcg(all_scores(queries, made.old), made.relevant).mean()
        for queries in (
            made.old_queries, made.queries @ made.rotation, report.conversion.view(made.queries)
        )
    )  # fmt: skip
    assert found[KEEP]["score"]["value"] == pytest.approx(old, abs=1e-12)
    assert found["procrustes:query"]["score"]["value"] == pytest.approx(turned, abs=0.02)
    assert report.recommended == "procrustes:query"
    assert found["procrustes:query"]["score"]["value"] == pytest.approx(mapped, abs=1e-9)
    for name in ("re-embed", "cascade", "rrf"):
        assert name not in found and name in report.document["left_out"]
    assert not report.document["constraints"]["sources"]


def test_queries_that_are_items_do_not_find_themselves(made, given):
    """Queries are the first hundred items, each of which is looked for by the one before it."""
    rows = others(made)
    q = np.arange(100)
    own = given | {
        "queries": made.new[:100], "old_queries": made.old[:100],
        "qrels": {int(k): {int(k) + 1: 1.0} for k in q},
        "pairs_old": made.old[rows], "pairs_new": made.new[rows], "maps": "procrustes",
    }  # fmt: skip
    scores = all_scores(made.old[:100], made.old)
    for left_out in (False, True):
        if left_out:
            scores[q, q] = -np.inf
        found = benchmark.upgrade(**own, queries_are_items=left_out).document["strategies"]
        old = next(each for each in found if each["name"] == KEEP)
        assert old["score"]["value"] == pytest.approx(ndcg(scores, q + 1).mean(), abs=1e-12)


def test_partners_are_counted_as_brute_force_does(made, report):
    (its,) = (a for a in report.document["alignment"] if a["map"] == "procrustes:query")
    assert its["by"] == "queries" and its["aligned"] and its["sure"]
    assert its["among"] == len(made.queries) + 1000
    assert its["found"]["value"] > 0.8
    assert "The spaces align: " in " ".join(str(report).split())


def test_held_out_pairs_say_it_where_no_query_has_an_old_vector(made, given):
    rows = others(made)
    found = benchmark.upgrade(
        **given | {"old_queries": None}, pairs_old=made.old[rows], pairs_new=made.new[rows]
    )
    assert {a["by"] for a in found.document["alignment"]} == {"pairs"}
    assert {a["among"] for a in found.document["alignment"]} == {1000}
    assert all(a["aligned"] for a in found.document["alignment"])
    assert found.recommended is not None and KEEP not in found.document["strategies"]


def test_few_pairs_tell_no_more_than_many():
    """A share of found texts is of as many vectors, so that few pairs make no spaces align."""
    made = planted(q=100, n=8000, noise=1.3)
    given = made.arguments(np.arange(len(made.new)))
    del given["new_gallery"]
    shares = []
    for n in (500, 5000):
        rows = np.random.default_rng(n).permutation(others(made, 5000))[:n]
        pairs = {"pairs_old": made.old[rows], "pairs_new": made.new[rows]}
        found = benchmark.upgrade(
            **given | {"old_queries": None, "maps": "procrustes:query"}, **pairs
        )
        (its,) = found.document["alignment"]
        assert (its["by"], its["among"]) == ("pairs", 1000)
        shares.append(its["found"]["value"])
    assert 0.5 < shares[1] < 0.8
    assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_unrelated_models_are_refused(made, given):
    """Their pairs bring nothing together: no map is taken, the old model is kept."""
    rows, rng = others(made), np.random.default_rng(3)
    blurred = made.old[rows] + 6 * rng.standard_normal((len(rows), 24)).astype(np.float32)
    found = benchmark.upgrade(**given, pairs_old=blurred, pairs_new=made.new[rows])
    alignment, left_out = found.document["alignment"], found.document["left_out"]
    assert alignment and not any(each["aligned"] for each in alignment)
    assert all(left_out[each["map"]] == "the spaces do not align" for each in alignment)
    assert found.recommended == KEEP and "do not align, so no map is taken" in str(found)
    rows_shown = {row.split("  ")[0].strip() for row in str(found).splitlines()}
    assert {"procrustes:query (no)", "midpoint (no)", KEEP} <= rows_shown
    page = render(found.document)
    assert page.count('<span class="tag no">no</span> <small>the spaces do not align</small>') > 2
    assert page.count('<span class="tag no">') == len(found.document["strategies"]) - 1
    assert "no: what the constraints do not allow, or what rests on spaces that do not" in page
    assert "Wanted: " not in page
    with pytest.raises(BenchError, match="no more alike than shuffled"):
        shuffled = rng.permutation(made.new[rows])
        benchmark.upgrade(**given, pairs_old=made.old[rows], pairs_new=shuffled)


def test_the_gallery_and_the_pairs_are_looked_at_under_their_own_names(made, given):
    """Doubles among the old pairs, and a gallery with vectors of two lengths."""
    rows = others(made)
    old, new = made.old[rows], made.new[rows]
    old[1:200:2] = old[:200:2]
    stored = made.old.copy()
    stored[::3] *= 40
    found = benchmark.upgrade(
        **given | {"old_gallery": stored, "maps": "procrustes"}, pairs_old=old, pairs_new=new
    ).document["vectors"]
    assert {each["of"]: each["value"] for each in found if each["what"] == "rows"} == {
        "old_gallery": 1500, "pairs_old": 600, "pairs_new": 600,
    }  # fmt: skip
    odd = {(each["of"], each["what"]) for each in found if each["odd"]}
    assert ("old_gallery", "lengths") in odd and ("pairs_old", "doubles") in odd
    assert not {("old_gallery", "doubles"), ("pairs_old", "lengths")} & odd


def test_of_vectors_that_rounding_alone_tells_apart_no_order_is_told():
    """As those of one text on a processor that rounds the mean otherwise."""
    rng = np.random.default_rng(0)
    other = rng.normal(size=(60, 8)).astype(np.float32)
    same = np.full((60, 8), 0.3, np.float32)
    same += rng.choice([0, np.spacing(np.float32(0.3))], same.shape).astype(np.float32)
    assert likeness(other, same, rng) == likeness(same, other, rng) == np.inf
    assert likeness(other, 2 * other, rng) < np.inf


@pytest.mark.parametrize("name", ["old_gallery", "pairs_old", "pairs_new"])
def test_constant_vectors_are_told_by_their_own_name(made, given, name):
    rows = others(made)
    its = {"old_gallery": made.old, "pairs_old": made.old[rows], "pairs_new": made.new[rows]}
    its[name] = np.full_like(its[name], 0.3)
    told = benchmark.upgrade(**given | its | {"maps": "procrustes"}).document["inputs"]["told"]
    assert [line.split(" are the same")[0] for line in told if "are the same:" in line] == [
        f"Warning: all vectors of {name}"
    ]


def test_where_no_map_is_fitted_no_table_of_them_is_shown(report):
    """Not one without a row."""
    document = report.document | {"alignment": []}
    shown = [table.title for table in tables(document, every=True)]
    assert "Do the spaces align?" not in shown
    assert "Do the spaces align?" in [table.title for table in tables(report.document)]


@pytest.mark.slow
def test_without_a_pair_most_attempts_must_agree(made, given):
    rows = others(made)
    found = benchmark.upgrade(**given, pairs_new=made.new[rows])
    (its,) = found.document["alignment"]
    assert its["attempts"] == 3 and its["agree"] >= 2 and its["by"] == "queries"
    reason = "only with new vectors of stored items, or pairs"  # not: only for cosine
    assert found.document["left_out"]["midpoint"] == reason
    noise = np.random.default_rng(5).standard_normal((500, 24)).astype(np.float32)
    found = benchmark.upgrade(**given | {"old_queries": None}, pairs_new=noise)
    (its,) = found.document["alignment"]
    assert its["by"] == "attempts" and not its["aligned"]
    assert found.recommended is None and "do not align" in str(found)


def test_no_map_of_two_sizes_without_a_pair_says_why(made, given):
    longer = {"queries": np.tile(made.queries, 2), "pairs_new": np.tile(made.new[:300], 2)}
    found = benchmark.upgrade(**given | longer)
    assert found.document["alignment"] == []
    why = "needs embeddings of one size, got 48 and 24"
    assert f"No map could be fitted (mini-vec2vec:query: {why})." in " ".join(str(found).split())
    whole = plain(tables(found.document, every=True)) + render(found.document)
    assert "gone: no map could be fitted, and no item" in whole and "maps were fitted" not in whole


def test_the_command(made, tmp_path):
    words, rows = write_upgrade(tmp_path, made, without=["new-gallery"]), others(made)
    for side, vectors in (("old", made.old), ("new", made.new)):
        write(tmp_path / f"pairs-{side}.npy", vectors[rows], None)
        words += [f"--pairs-{side}", tmp_path / f"pairs-{side}.npy"]
    page = tmp_path / "page.html"
    code, _, err = call(*words, "--report", page)
    assert code == 0, err
    document = json.loads(page.with_suffix(".json").read_text())
    assert document["verdict"]["strategy"] == "procrustes"
    assert (tmp_path / "page.map").is_dir()
    text = page.read_text()
    assert "Do the spaces align?" in text and "to old (95 %)" in text


def test_columns_of_pairs_are_named_as_those_of_the_gallery(made, given, tmp_path):
    """Two columns could be ids, and two vectors: each is named for the pairs alone."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, files = others(made), {}
    order = np.random.default_rng(0).permutation(len(rows))
    for name, vectors, some in (("old", made.old, rows), ("new", made.new, rows[order])):
        columns = {
            "doc": some,
            "page": some * 0,
            "emb": list(vectors[some]),
            "x": list(vectors[some]),
        }
        files[f"pairs_{name}"] = tmp_path / f"{name}.parquet"
        parquet.write_table(pa.table(columns), files[f"pairs_{name}"])
    with pytest.raises(BenchError, match=r"expected a column .vector."):
        benchmark.upgrade(**given, **files)
    named = {
        "id_column": dict.fromkeys(files, "doc"), "vector_column": dict.fromkeys(files, "emb"),
    }  # fmt: skip
    by_id = benchmark.upgrade(**given, **files, **named)
    arrays = {"pairs_old": made.old[rows], "pairs_new": made.new[rows[order]]}
    ids = given["ids"] | {"pairs_old": rows, "pairs_new": rows[order]}
    plain = benchmark.upgrade(**given | {"ids": ids}, **arrays)
    scores = [[each["score"] for each in r.document["strategies"]] for r in (by_id, plain)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs_new": None}, "expected pairs_new, too"),
        ({"new_gallery": np.eye(3)}, "without new vectors of items"),
        ({"qrels": None}, "qrels or labels"),
        ({"compressed": True}, "compressed: expected new vectors"),
        ({"threshold": [0.5]}, "threshold: expected new vectors"),
        ({"queries": None}, "queries: expected vectors"),
        ({"pairs_new": np.ones((200, 3), np.float32)}, "24 numbers|3 numbers|of 3"),
        ({"pairs_new": np.ones((20, 24), np.float32)}, "expected 20 rows"),
    ],
)
def test_what_is_refused(made, given, change, said):
    rows = others(made)
    its = {"pairs_old": made.old[rows], "pairs_new": made.new[rows]}
    with pytest.raises(BenchError, match=said) as error:
        benchmark.upgrade(**given | its | change)
    assert "\n" not in str(error.value)


def test_queries_that_speak_against_spaces_that_do_not_align():
    """Old queries are noisy: no map finds them, and new ones find more by a map than they do."""
    made = planted(noise=0.8, n=2000, q=300)
    given = made.arguments(np.arange(len(made.new))) | {"ids": {"old_gallery": np.arange(2000)}}
    del given["new_gallery"]
    noise = np.random.default_rng(0).normal(size=made.old_queries.shape)
    given["old_queries"] = (made.old_queries + 2 * noise).astype(np.float32)
    rows = others(made, 900)
    report = benchmark.upgrade(**given, pairs_old=made.old[rows], pairs_new=made.new[rows])
    verdict = report.document["verdict"]
    assert not any(each["aligned"] for each in report.document["alignment"])
    assert verdict["strategy"] == KEEP and not verdict["decided"]
    assert verdict["reason"].startswith("spaces do not align, so no map is taken; but on these")
