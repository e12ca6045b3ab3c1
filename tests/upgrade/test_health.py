"""``bench upgrade doctor``: what is odd is told, and nothing where all is well."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.command import call
from support.upgrades import unit
from support.vector_files import write

import benchmark
from benchmark.upgrade.formats.rows import ArrayRows
from benchmark.upgrade.read.demo import demo_arguments
from benchmark.upgrade.read.health import VectorTally, compare, examine, look, look_at
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.mixture import mixture
from benchmark.upgrade.read.request import UpgradeRequest
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.wording import risks

REAL = Path(__file__).parents[3] / "shared" / "data" / "vectors"


def found(vectors, stored="float32"):
    return {f.what: f for f in examine(look(ArrayRows("v", vectors)), "v", stored)}


def compared(stored, fresh):
    """The last finding about vectors of the same items."""
    names = np.arange(len(stored))
    return list(compare(ArrayRows("old", stored, names), ArrayRows("fresh", fresh, names)))[-1]


def models(corpus):
    """Directions of a real corpus by each of its models."""
    with np.load(REAL / f"{corpus}.npz") as file:
        names = [k for k in file.files if k.endswith(".docs") and k != "ids.docs"]
        return {k: directions(file[k].astype(np.float32)) for k in names}


def directions(x):
    return unit(x).astype(np.float32)


def demo():
    given = demo_arguments()
    return (directions(given[name].astype(np.float32)) for name in ("old_gallery", "new_gallery"))


def mixed(old, new, share, rng, n=4000):
    """Some rows of one model, and a share of them by another."""
    rows = rng.permutation(len(old))[:n]
    out, k = old[rows].copy(), round(share * n)
    out[:k] = new[rng.permutation(len(new))[:k]]
    return out


def test_an_index_with_a_tenth_of_another_model_is_told():
    """Glyphs by two models of one size: every draw with, none without."""
    old, new = demo()
    for draw in range(4):
        rng = np.random.default_rng(draw)
        told = mixture(mixed(old, new, 0.1, rng))
        assert told.odd and told.share == pytest.approx(0.1, abs=0.03), draw
        assert not mixture(mixed(old, new, 0.0, rng)).odd, draw


@pytest.mark.skipif(not (REAL / "npl.npz").is_file(), reason="vectors of real models are not here")
@pytest.mark.parametrize("corpus", ["cranfield", pytest.param("npl", marks=pytest.mark.slow)])
def test_texts_by_two_models_are_told_from_texts_of_two_kinds(corpus):
    mine, others = models(corpus), models("npl" if corpus == "cranfield" else "cranfield")
    rng = np.random.default_rng(0)
    for a, old in mine.items():
        n = min(4000, len(old))
        assert not mixture(mixed(old, old, 0.0, rng, n)).odd
        if a in others:  # a tenth of other texts by the same model
            assert not mixture(mixed(old, others[a], 0.1, rng, n)).odd
        for b, new in mine.items():
            if a != b and old.shape[1] == new.shape[1]:
                assert mixture(mixed(old, new, 0.1, rng, n)).odd, (a, b)


@pytest.mark.parametrize("dim", [8, 16, 31, 32])
def test_vectors_of_few_numbers_tell_no_models(dim):
    """Topics by one model: eight numbers were told as several in a draw of four."""
    odd = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        topics = rng.normal(size=(60, 16))[rng.integers(60, size=1218)]
        x = (topics + 0.8 * rng.normal(size=(1218, 16))) @ rng.normal(size=(16, dim))
        told = mixture(directions(x))
        odd.append(told.odd)
        assert (told.share is None) == (dim < 32)
    assert not any(odd)
    if dim < 32:
        assert found(x)["models"].words == (
            "too few to tell whether they are of one model "
            f"({dim} numbers a vector, expected 32 or more)"
        )


@pytest.mark.parametrize("size", [1e30, 1e19, 1e-30])
@pytest.mark.filterwarnings("error")
def test_vectors_too_extreme_to_be_compared(size):
    """Squares of float32 overflow or vanish: they are counted, and the others looked at."""
    x = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    mixed = x.copy()
    mixed[1] *= np.float32(size)
    assert [*found(x * np.float32(size))] == ["rows", "extreme"]
    told = found(mixed)
    assert (told["extreme"].value, told["extreme"].odd) == (1, True)
    assert str(told["extreme"]).startswith("LOOK  1 vector of a length below 1e-12 or above 1e+18")
    assert told["dot"].value > 0.4 and "lengths" in told
    (_, last) = compare(ArrayRows("old", x), ArrayRows("new", x * np.float32(size)))
    assert last.words == "0 of the items can be compared on both sides: too few"


def test_one_of_a_kind_is_no_plural():
    x = np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32)
    x[1] = x[0]
    assert found(x)["doubles"].words == "1 vector is a copy of another, 0.33 %"
    x[2] = x[0]
    assert found(x)["doubles"].words.startswith("2 vectors are copies of others")
    assert found(x[:1])["rows"].words == "1 vector of 16 numbers, float32"


def test_nothing_is_told_of_few_or_of_noise():
    rng = np.random.default_rng(0)
    for seed in range(5):  # round clusters on a sphere lack the direction of their own centre
        planted = np.random.default_rng(seed)
        centres = planted.standard_normal((20, 32))[planted.integers(0, 20, 1500)]
        round_ = mixture(directions(centres + planted.standard_normal((1500, 32))))
        assert not round_.odd, (seed, round_)
    few = mixture(directions(rng.standard_normal((200, 16))))
    noise = mixture(directions(rng.standard_normal((4000, 64))))
    assert few.share is None and noise.share is None and not noise.odd


def test_counts_whatever_the_blocks():
    """NaN, infinity, zeros and doubles, by hand."""
    x = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    x[5, 2], x[6, 0], x[7], x[8] = np.nan, np.inf, 0, 0
    x[10:13] = x[9]
    whole, cut = VectorTally(8), VectorTally(8)
    whole.add(x)
    for a in range(0, 300, 7):
        cut.add(x[a : a + 7])
    for tally in (whole, cut):
        assert (tally.rows, tally.broken, tally.zeros, tally.doubles) == (300, 2, 2, 3)
        assert len(tally.part) == 296
    assert sorted(map(tuple, whole.part)) == sorted(map(tuple, cut.part))
    told = found(x)
    assert told["broken"].odd and told["zeros"].odd and told["doubles"].odd


def test_one_vector_and_none_to_compare_with_are_told():
    told = found(np.ones((1, 8), np.float32))
    assert set(told) == {"rows", "lengths", "models"}
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 50, 8)).astype(np.float32)
    for rows in (0, 1):
        broken = np.full_like(new, np.nan)
        broken[:rows] = new[:rows]
        *_, last = compare(ArrayRows("old", old), ArrayRows("new", broken))
        assert last.odd and last.words.startswith(f"{rows} of the items can be compared")
    assert "anisotropy" not in found(broken)


def test_lengths():
    x = directions(np.random.default_rng(0).standard_normal((2000, 16)))
    ramp = np.linspace(0.5, 2, 2000)[:, None].astype(np.float32)
    two = np.where(np.arange(2000) % 4 == 0, 14.0, 1.0)[:, None].astype(np.float32)
    for vectors, said, odd in [
        (x, "all of length 1", False), (3 * x, "all about the same", False),
        (x.astype(np.float16).astype(np.float32) * 1.01, "almost 1", False),
        (x * ramp, "not of one length", False),
        (x * two, "in two groups: 75 % around 1, 25 % around 14", True),
    ]:  # fmt: skip
        told = found(vectors)["lengths"]
        assert said in told.words and told.odd == odd
    assert "dot" not in found(x) and found(x * ramp)["dot"].odd


def test_the_scale_of_whole_numbers():
    x = directions(np.random.default_rng(0).standard_normal((500, 32)))
    for factor, said in [(127 / x.max(), "fits"), (600, "cuts them off"), (60, "less than half")]:
        stored = np.clip(np.round(x * factor), -127, 127)
        assert said in found(stored, "int8")["scale"].words


def test_fresh_vectors_of_the_old_model_say_what_still_agrees():
    old, new = (each[:2000] for each in demo())
    stored = old.copy()
    stored[:500] = new[:500]
    told = compared(stored, old)
    assert (told.what, told.odd) == ("fresh", True) and told.value == pytest.approx(0.75, abs=0.01)
    own = compared(stored, stored)
    assert own.what == "fresh" and not own.odd
    assert compared(stored, np.roll(new, 1, axis=0)).what == "agreement"


def test_ids_of_other_items_are_asked_for():
    old, new = (each[:2000] for each in demo())
    for stored in (np.roll(old, 1, axis=0), np.roll(np.round(1000 * old), 7, axis=0)):
        told = compared(stored, old)
        assert (told.what, told.odd) == ("ids", True) and told.value > 0.99
        assert told.words.endswith("do the ids name the same items?")
    few = new.copy()
    few[:100] = old[100:200]
    assert compared(few, old).what == "agreement"
    other = np.random.default_rng(0).permutation(2000)
    shuffled = compared(old[other, 1:], new)  # of another size: no vector of one is in the other
    assert shuffled.what == "agreement" and shuffled.odd
    assert shuffled.words.endswith("do the ids name the same items?")


@pytest.mark.skipif(not (REAL / "npl.npz").is_file(), reason="vectors of real models are not here")
@pytest.mark.parametrize(
    "corpus", ["cranfield", "cisi", pytest.param("npl", marks=pytest.mark.slow)]
)
def test_a_direction_that_all_vectors_share_makes_no_model_of_another(corpus):
    """Two random texts have a cosine of 0.69 by one of them: it proves no common model."""
    mine, rng = models(corpus), np.random.default_rng(0)
    for name, fresh in mine.items():
        turn = np.linalg.qr(rng.standard_normal((fresh.shape[1],) * 2))[0].astype(np.float32)
        mean, scale = fresh.mean(axis=0), 127 / np.abs(fresh).max()
        for stored, said in [
            (fresh.astype(np.float16).astype(np.float32), "fresh"),
            (np.round(fresh * scale), "fresh"),
            (np.round(fresh * scale / 18), "lost"), (np.sign(fresh), "lost"),
            (np.where(fresh > 0, 1, 0).astype(np.float32), "lost"),
            (fresh[rng.permutation(len(fresh))], "ids"),
            (np.round(fresh * scale)[rng.permutation(len(fresh))], "ids"),
            (mean + (fresh - mean) @ turn, "agreement"),
            *((other, "agreement") for its, other in mine.items()
              if its != name and other.shape == fresh.shape),
        ]:  # fmt: skip
            assert compared(stored, fresh).what == said, (name, said)


def test_the_command(tmp_path):
    old, new = (each[:1500] for each in demo())
    old[3, 1] = np.nan
    write(tmp_path / "old.npy", old, np.arange(1500))
    write(tmp_path / "new.parquet", new, np.arange(1500))
    words = "upgrade", "doctor", tmp_path / "old.npy", tmp_path / "new.parquet"
    code, out, err = call(*words, "--json", tmp_path / "found.json")
    assert (code, err) == (0, "")
    findings = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert len(out.splitlines()) == len(findings) + 3
    assert "LOOK  1 vector with NaN or infinity" in out
    assert {"rows", "broken", "lengths", "models", "agreement"} <= {f["what"] for f in findings}
    for wrong, said in [
        (("upgrade", "docter", "x.npy"), "expected 'doctor OLD [NEW]'"),
        (("upgrade", "doctor", tmp_path / "no.npy"), "no.npy: cannot be read: No such file"),
        (("upgrade", "doctor", "a.npy", "b.npy", "c.npy"), "expected 'doctor OLD [NEW]'"),
    ]:  # fmt: skip
        code, _, err = call(*wrong)
        assert code == 2 and err.count("\n") == 1 and said in err


def test_ids_of_one_file_are_read(tmp_path):
    """As of two, and as the report reads them: they are named, or refused."""
    x = np.random.default_rng(0).standard_normal((120, 8)).astype(np.float32)
    names = np.array([f"d{k}" for k in range(120)])
    for name, ids in (("text", names), ("numbers", np.arange(120)), ("none", None)):
        write(tmp_path / f"{name}.parquet", x, ids)
    np.savez(tmp_path / "same.npz", vectors=x, ids=np.array(["same"] * 120))
    for name, said in (
        ("text", "ok    ids: 120, text, each once"), ("none", "ok    no ids: rows are known by"),
        ("numbers", "ok    ids: 120, whole numbers, each once"),
    ):  # fmt: skip
        code, out, _ = call("upgrade", "doctor", tmp_path / f"{name}.parquet")
        assert code == 0 and said in out
    for name, column, said in (
        ("text.parquet", "nosuch", "expected a column of ids, got the name 'nosuch'"),
        ("text.parquet", "queries=zz", "expected a column of old-gallery, got 'queries=zz'"),
        ("same.npz", "ids", "ids: expected each once, got 'same' in rows 0 and 1"),
    ):
        code, out, err = call("upgrade", "doctor", tmp_path / name, "--id-column", column)
        assert (code, out) == (2, "") and err.count("\n") == 1 and said in err


def test_the_report_opens_with_it(tmp_path):
    """A gallery of which a tenth is by the new model: told as a risk, with its share."""
    given = demo_arguments()
    asked = given["ids"]["queries"][::12]
    names = given["ids"] | {"queries": asked, "old_queries": asked}
    given |= {name: given[name][::12] for name in ("queries", "old_queries")} | {"ids": names}
    given["labels"] = given["labels"][0][::12], given["labels"][1]
    old, new = (given[name] for name in ("old_gallery", "new_gallery"))
    at = np.flatnonzero(np.isin(given["ids"]["old_gallery"], given["ids"]["new_gallery"]))
    assert len(at) == len(new)
    stored = old.copy()
    ids = given["ids"]["old_gallery"][at].tolist()
    place = [ids.index(each) for each in given["ids"]["new_gallery"]]
    stored[at[place[::3]]] = new[::3]  # a third of the sample
    sound = look_at(read_inputs(UpgradeRequest(**given)))
    assert [each.odd for each in sound if each.what == "models"] == [False, False]
    mine = given | {"old_gallery": stored, "maps": "procrustes"}
    document = benchmark.upgrade(**mine).document
    assert [f["odd"] for f in document["vectors"] if f["what"] == "models"] == [True, False]
    assert any("of another model or version" in line for line in risks(document))
    assert "of another model" in render(document)
