"""Slices by ids of queries or items: gains and losses."""

import numpy as np
import pytest
from support.command import call
from support.upgrades import ndcg, planted, unit, write_upgrade

import benchmark
from benchmark.errors import BenchError
from benchmark.upgrade.show import sections, tables
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.wording import risks


@pytest.fixture(scope="module")
def made():
    """The new model knows nothing of what a sixth of the queries ask for."""
    made = planted(noise=0.3, n=900, q=240, dim=16)
    queries = made.queries.copy()
    queries[:40] = np.random.default_rng(1).standard_normal((40, 16))
    return made.__class__(
        made.new, queries, made.old, made.old_queries, made.relevant, made.rotation
    )


def write(path, made):
    """Queries by their own ids, and some by their items'."""
    lines = [f"{q}\t{'french' if q < 40 else 'english'}" for q in range(200)]
    lines += [f"item-{made.relevant[q]}\tspanish" for q in range(200, 240)]
    lines += ["nobody\tgerman", "item-1000000\tgerman"]
    path.write_text("id\tslice\n" + "\n".join(lines) + "\n")
    return path


def report(made, tmp_path, slices=None):
    ids = [f"item-{k}" for k in range(len(made.new))]
    return benchmark.upgrade(**made.whole(
        qrels={str(q): {f"item-{row}": 1.0} for q, row in enumerate(made.relevant)},
        ids={"old_gallery": ids, "new_gallery": ids, "queries": np.arange(240),
             "old_queries": np.arange(240)},
        slices=slices or write(tmp_path / "slices.tsv", made),
    )).document  # fmt: skip


def test_a_slice_that_loses_is_a_risk_though_the_whole_gains(made, tmp_path):
    document = report(made, tmp_path)
    found = {each["name"]: each for each in document["slices"]["slices"]}
    assert {name: each["queries"] for name, each in found.items()} == {
        "french": 40, "english": 160, "spanish": 40,
    }  # fmt: skip
    assert document["slices"]["unknown"] == 2
    assert document["verdict"]["strategy"] != "keep-old"
    assert found["french"]["loses"] and found["french"]["gain"]["high"] < 0
    assert not found["english"]["loses"] and found["english"]["gain"]["low"] > 0
    assert document["slices"]["slices"][0]["name"] == "french"
    said = [line for line in risks(document) if "french (40 queries) loses" in line]
    assert len(said) == 1 and said[0].startswith("Warning: ")
    assert "french" in render(document)
    # The slices of queries by their own ids and the rest make up the whole.
    whole = sum(each["queries"] * each["new"]["value"] for each in found.values()) / 240
    again = next(s for s in document["strategies"] if s["name"] == "re-embed")
    assert whole == pytest.approx(again["score"]["value"])


def test_a_query_that_nobody_judged_is_no_item_of_its_name(made, tmp_path):
    """Query 7 has no judgements, item 7 is relevant to query 8."""
    path = tmp_path / "slices.tsv"
    path.write_text("7\ta\n9\tb\n900\tc\n")
    qrels = {q: {int(row): 1.0} for q, row in enumerate(made.relevant) if q != 7}
    qrels[8] = {7: 1.0}
    ids = {"old_gallery": np.arange(900), "new_gallery": np.arange(900)}
    document = benchmark.upgrade(**made.whole(qrels=qrels, slices=path, ids=ids)).document
    found = document["slices"]
    assert [(each["name"], each["queries"]) for each in found["slices"]] == [("b", 1)]
    assert (found["unknown"], found["both"]) == (2, 2)
    told = sections.slices(document).notes
    assert any(line.startswith("Warning: 2 lines name a query and an item") for line in told)


def test_row_numbers_beyond_the_queries_are_of_items(made, tmp_path):
    """A file of all items puts each query into its item's slice alone."""
    path = tmp_path / "slices.tsv"
    path.write_text("".join(f"{k}\t{'odd' if k % 2 else 'even'}\n" for k in range(900)))
    qrels = {q: {int(row): 1.0} for q, row in enumerate(made.relevant)}
    found = benchmark.upgrade(**made.whole(qrels=qrels, slices=path)).document["slices"]
    few = {q: gains for q, gains in qrels.items() if {*gains} & {k for k in range(900) if k % 2}}
    of_few = benchmark.upgrade(**made.whole(qrels=few, slices=path)).document["slices"]
    assert [each["name"] for each in of_few["slices"]] == ["odd"] and of_few["unknown"] == 450
    odd = int((np.asarray(made.relevant) % 2).sum())
    counts = {each["name"]: each["queries"] for each in found["slices"]}
    assert counts == {"even": 240 - odd, "odd": odd} and found["unknown"] == 0


def test_the_command_and_damaged_files(made, tmp_path):
    words = write_upgrade(tmp_path, made)
    path = write(tmp_path / "slices.tsv", made)
    path.write_text(path.read_text().replace("item-", ""))
    code, out, err = call(*words, "--slices", path)
    assert code == 0 and "Slices, nDCG@10" in out and "french" in out
    for content, said in [
        ("", "expected 1 to 1000 slices, got 0"), ("a\n", "line 1: expected 2 columns (id, slice)"),
        ("a\tb\tc\n", "expected 2 columns"), ("a\t\n", "slice: expected 1 to 1024 letters"),
        ("\n".join(f"{k}\ts{k}" for k in range(1001)), "expected 1 to 1000 slices, got 1001"),
        ("nobody\ta\n-1\tb\n", "expected ids of queries or items, got none, the first is 'nobody'"),
    ]:  # fmt: skip
        path.write_text(content)
        code, out, err = call(*words, "--slices", path)
        assert (code, out) == (2, "") and said in err and err.count("\n") == 1
    with pytest.raises(BenchError, match=r"no\.tsv"):
        benchmark.upgrade(*map(str, words[2:9:2]), slices=tmp_path / "no.tsv")


@pytest.mark.slow
def test_estimates_are_less_sure_of_fewer_queries(tmp_path):
    """Sixty slices of five queries each against the whole of new vectors, which the report lacks.

    If they were as certain as the mean of all, few of them would lie within their 95 %.
    """
    made, path = planted(noise=0.5, n=3000, q=300, dim=16), tmp_path / "slices.tsv"
    path.write_text("".join(f"q{q}\t{q // 5}\n" for q in range(300)))
    given = made.arguments(made.sample(700)) | {"slices": path, "maps": "procrustes"}
    given["ids"]["queries"] = given["ids"]["old_queries"] = [f"q{q}" for q in range(300)]
    given["qrels"] = {f"q{q}": judged for q, judged in made.qrels.items()}
    document = benchmark.upgrade(**given).document
    truth = ndcg(unit(made.queries) @ unit(made.new).T, made.relevant).reshape(60, 5).mean(axis=1)
    found = {int(each["name"]): each["new"] for each in document["slices"]["slices"]}
    assert len(found) == 60
    within = [abs(one["value"] - truth[k]) <= one["sampling"] for k, one in found.items()]
    assert np.mean(within) >= 0.85
    short, whole = (tables.tables(document, every=every) for every in (False, True))
    rows = [next(len(t.rows) for t in made if t.slug == "slices") for made in (short, whole)]
    assert rows == [20, 60]
    (said,) = (note for t in short if t.slug == "slices" for note in t.notes if "more" in str(note))
    assert str(said).startswith("40 slices more")


def test_sure_losses_and_what_has_an_interval_come_first(made, tmp_path):
    """Many slices of one query lose most, by luck."""
    path = write(tmp_path / "slices.tsv", made)
    with path.open("a") as file:
        file.writelines(f"{q}	q{q}\n" for q in range(40, 200))
    found = report(made, tmp_path, path)["slices"]["slices"]
    assert found[0]["name"] == "french" and found[0]["loses"]
    known = [each["gain"]["low"] is not None for each in found]
    assert known == sorted(known, reverse=True) and {*known} == {True, False}


def test_slices_of_no_judged_query_say_so(made, tmp_path):
    path = tmp_path / "slices.tsv"
    path.write_text(f"{np.setdiff1d(np.arange(240, 900), made.relevant)[0]}\ta\n")
    code, out, _ = call(*write_upgrade(tmp_path, made), "--slices", path)
    assert code == 0 and "No slice has a judged query." in out


def test_where_the_old_model_is_kept_slices_tell_of_re_embedding(made, tmp_path):
    old = planted(noise=0.0, n=900, q=240, dim=16)
    same = old.__class__(
        old.new, old.queries, old.old, old.queries @ old.rotation, old.relevant, old.rotation
    )
    document = report(same, tmp_path, write(tmp_path / "slices.tsv", same))
    assert document["verdict"]["strategy"] == "keep-old"
    assert document["slices"]["strategy"] == "re-embed"
