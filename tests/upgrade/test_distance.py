"""Cosine, dot product and l2: what a deployment compares by decides, and maps respect it."""

import h5py
import numpy as np
import pytest
from support.command import call
from support.upgrades import all_scores, ndcg, planted, write_upgrade
from support.vector_files import write

import benchmark
from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors
from benchmark.upgrade.formats.checks import metric_of
from benchmark.upgrade.show.wording import risks


@pytest.fixture(scope="module")
def made():
    return planted(n=700, q=60, dim=12)


@pytest.mark.parametrize("distance", ["cosine", "dot", "l2"])
def test_every_score_is_that_of_brute_force(made, distance):
    """Items of lengths of their own, which a dot product and l2 see, a cosine does not."""
    length = np.random.default_rng(5).uniform(0.4, 2.5, (len(made.new), 1)).astype(np.float32)
    old, new = made.old * length, made.new * length
    report = benchmark.upgrade(**made.whole(
        old_gallery=old, new_gallery=new, maps="procrustes,linear:query", distance=distance
    ))  # fmt: skip
    found = {s["name"]: s["score"]["value"] for s in report.document["strategies"]}
    pairs = {
        "keep-old": (made.old_queries, old), "re-embed": (made.queries, new),
        "naive": (made.queries, old),
    }  # fmt: skip
    for name, pair in pairs.items():
        expected = ndcg(all_scores(*pair, distance), made.relevant).mean()
        assert found[name] == pytest.approx(expected, abs=1e-9), name
    # A rotation of vectors as they are keeps what the lengths say.
    turned = all_scores(made.queries @ made.rotation, old, distance)
    turned = ndcg(turned, made.relevant).mean()
    assert found["procrustes"] == pytest.approx(turned, abs=0.03)
    assert found["linear:query"] == pytest.approx(turned, abs=0.08)
    assert report.document["inputs"]["distance"] == distance
    assert ("midpoint" in found) == (distance == "cosine")


def test_lengths_decide_where_a_dot_product_compares(made):
    """The relevant items are long: by dot products all of them are found, by cosine few."""
    length = np.ones((len(made.new), 1), np.float32)
    length[made.relevant] = 20.0
    found = {}
    for distance in ("cosine", "dot"):
        document = benchmark.upgrade(**made.whole(
            old_gallery=made.old * length, new_gallery=made.new * length, maps="linear",
            distance=distance,
        )).document  # fmt: skip
        found[distance] = {s["name"]: s["score"]["value"] for s in document["strategies"]}
    for name in ("linear", "re-embed", "keep-old"):
        assert found["dot"][name] > found["cosine"][name] + 0.05, name


def test_what_a_file_says(made, tmp_path):
    """ann-benchmarks' files name their distance; an option goes before it, and is told."""
    words = write_upgrade(tmp_path, made)
    with h5py.File(tmp_path / "old.hdf5", "w") as file:
        file.attrs["distance"] = "euclidean"
        file["train"], file["train_ids"] = made.old, np.arange(len(made.old))
    assert open_vectors(tmp_path / "old.hdf5").metric == "l2"
    words[words.index("--old-gallery") + 1] = tmp_path / "old.hdf5"
    code, out, err = call(*words)
    assert (code, err) == (0, "") and "vectors compare by l2, as" in " ".join(out.split())
    code, _, err = call(*words, "--distance", "dot")
    assert code == 0 and "says that its vectors compare by l2, not dot" in err
    write(tmp_path / "plain.npy", made.old, None)
    assert open_vectors(tmp_path / "plain.npy").metric == ""


@pytest.mark.parametrize(("asked", "stored", "said"), [
    (None, "", "cosine is taken by default: is it right?"),
    (None, "euclidean", "l2 is what the file says: is it right?"),
    ("cosine", "euclidean", "cosine is asked for: is it right?"),
])  # fmt: skip
def test_who_said_how_vectors_of_many_lengths_compare(made, tmp_path, asked, stored, said):
    length = np.random.default_rng(5).uniform(0.2, 4, (len(made.new), 1)).astype(np.float32)
    with h5py.File(tmp_path / "old.hdf5", "w") as file:
        file.attrs["distance"] = stored
        file["train"] = made.old * length
    document = benchmark.upgrade(
        **made.whole(old_gallery=tmp_path / "old.hdf5", distance=asked)
    ).document
    assert [line for line in risks(document) if line.endswith(said)]


def test_words_of_distances():
    for word, metric in [
        ("COSINE", "cosine"), ("vector_ip_ops", "dot"), ("Dot", "dot"), ("vector_l2_ops", "l2"),
        ("jaccard", ""), (None, ""), (3, ""),
    ]:  # fmt: skip
        assert metric_of(word) == metric
    with pytest.raises(BenchError, match=r"unknown distance 'l1'|distance: .*l1"):
        benchmark.upgrade(1, 2, 3, distance="l1")
