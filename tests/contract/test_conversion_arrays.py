"""Fitting, converting and ordering on plain arrays."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import benchmark
from benchmark.cli import app
from benchmark.config import registry
from benchmark.config.recipes import Recipe
from benchmark.contract import VectorMap
from benchmark.contract.arrays import BLOCK, apply, apply_part
from benchmark.contract.conversion import Conversion, Dims
from benchmark.contract.fitting import RECIPE, make_trainer
from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.models.parts import Affine
from benchmark.training.device import Device
from benchmark.training.loop import Trainer

QUICK = Recipe(epochs=1, transform_steps=8, transform_batch=32)
N, OLD, NEW, SIDE = 120, 6, 5, 3


@dataclass(frozen=True)
class WithoutCurves(VectorMap):
    """A map alone, where its training curves belong beside it."""

    def fit_vectors(self, source, target, trainer):
        return Affine.of(torch.zeros(target.shape[1], source.shape[1]))


def test_a_map_without_curves_is_told(arrays):
    with pytest.raises(BenchError, match=r"fit_vectors: expected two things, .* got Affine"):
        WithoutCurves().fit(arrays["old"], arrays["new"])


@dataclass(frozen=True)
class WithListedCurves(VectorMap):
    """Losses as a list, where a curve belongs."""

    def fit_vectors(self, source, target, trainer):
        return Affine.of(torch.zeros(target.shape[1], source.shape[1])), {"loss": [1.0, 2.0]}


def test_a_curve_that_is_none_is_told(arrays):
    with pytest.raises(BenchError, match="curve 'loss': expected Curve, got list"):
        WithListedCurves().fit(arrays["old"], arrays["new"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:-1], f"{BLOCK - 1} rows for {BLOCK} items"),
        (lambda x: torch.cat([x, x]), f"{2 * BLOCK} rows for {BLOCK} items"),
        (lambda x: x.sum(), f"1 rows for {BLOCK} items"),
        (lambda x: x.numpy(), "ndarray, expected a Tensor"),
        (lambda x: x.to("meta"), "on meta, expected one on the CPU"),
        (lambda x: x.to_sparse(), "expected a dense tensor of real numbers"),
        (lambda x: x.to(torch.complex64), "expected a dense tensor of real numbers"),
        (lambda x: (x, [1]), "list, expected a Tensor"),
    ],
)
@pytest.mark.parametrize("n", [3, BLOCK + 3])
def test_what_a_module_gives_is_a_row_an_item(change, words, n):
    class Changed(Portable):
        def forward(self, x):
            return change(x)

    with pytest.raises(BenchError, match=f"wrong output: .*{words}"):
        apply(Changed(), np.ones((n, 4), np.float32))


# --- the same as in the harness


@pytest.mark.parametrize("side", [False, True])
def test_fit_is_learn(arrays, side, fitted, fct):
    made = fitted(arrays, side=side, seed=3)
    tensors = {k: torch.from_numpy(arrays[k]) for k in ("old", "new", "side")}
    pairs = Pairs(tensors["old"], tensors["new"], side=tensors["side"] if side else None)
    there = fct().learn(pairs, Trainer(QUICK, 3, Device("cpu"))).convert
    beside = arrays["side"] if side else None
    with torch.inference_mode():
        wanted = there(tensors["old"], pairs.side)[0].numpy()
    np.testing.assert_allclose(made.convert(arrays["old"], beside), wanted, atol=1e-5)
    assert made.method == "fct" and made.params["width"] == 16
    assert made.dims == Dims(old=OLD, new=NEW, side=SIDE if side else 0)
    assert set(made.parts) == {"convert"} and not made.maps_side
    assert made.curves["map"].loss


def test_tensors_and_other_types_are_arrays(arrays, plain, fct):
    old, new = (torch.from_numpy(arrays[k]).double().requires_grad_(True) for k in ("old", "new"))
    made = fct().fit(old, new, recipe=QUICK, device="cpu")
    wanted = plain.convert(arrays["old"])
    np.testing.assert_array_equal(made.convert(arrays["old"].tolist()), wanted)
    np.testing.assert_array_equal(made.convert(old), wanted)
    half = made.convert(arrays["old"].astype(np.float16))
    np.testing.assert_allclose(half, wanted, atol=0.05)
    assert half.dtype == np.float32


def test_a_recipe_may_be_a_mapping_of_what_is_other(arrays, plain, fct):
    old, new = arrays["old"], arrays["new"]
    fields = {"transform_steps": QUICK.transform_steps, "transform_batch": QUICK.transform_batch}
    made = fct().fit(old, new, recipe=fields, device="cpu")
    np.testing.assert_array_equal(made.convert(old), plain.convert(old))
    linear = registry.method("linear")  # in closed form, which reads none of it
    for method in (fct(), linear):
        with pytest.raises(BenchError, match=r"^recipe: .*'transform_step'.*'transform_steps'"):
            method.fit(old, new, recipe={"transform_step": 5})
        with pytest.raises(BenchError, match=r"^recipe: expected fields such as .*, got 'short'$"):
            method.fit(old, new, recipe="short")


def test_what_a_method_gets(arrays, monkeypatch, fct):
    seen = []
    cls = registry.method_class("fct")
    real = cls.learn
    monkeypatch.setattr(cls, "learn", lambda *a: seen.append(a[1:]) or real(*a))
    head = Head("arcface", NEW, range(4))
    for given in (head, (arrays["weight"], np.ones(4)), arrays["weight"]):
        fct().fit(
            arrays["old"], arrays["new"], arrays["labels"], arrays["side"], given, recipe=QUICK,
            distance="l2", seed=7, new_side=arrays["side"], old_head=arrays["old"][:2],
        )  # fmt: skip
    assert make_trainer(None, 0, "cpu").recipe == RECIPE
    for pairs, trainer in seen:
        assert trainer.seed == 7 and trainer.recipe == QUICK and pairs.distance == "l2"
        assert torch.equal(pairs.labels, torch.from_numpy(arrays["labels"]))
        assert torch.equal(pairs.new_side, torch.from_numpy(arrays["side"]))
        assert pairs.old_head.dim == OLD
        assert not any(p.requires_grad for p in pairs.head.parameters())
    own, biased, bare = (pairs.head for pairs, _ in seen)
    assert own is not head and torch.equal(own.weight, head.weight) and head.weight.requires_grad
    x = torch.randn(3, NEW)
    wanted = x @ torch.from_numpy(arrays["weight"]).T
    torch.testing.assert_close(bare.logits(x), wanted)
    torch.testing.assert_close(biased.logits(x), wanted + 1)


def test_side_information_is_mapped_where_the_method_does(arrays, fitted):
    made = fitted(arrays, side=True, new_side=arrays["side"][:, :2])
    assert made.maps_side
    vectors, side = made.convert(arrays["old"], arrays["side"])
    assert vectors.shape == (N, NEW) and side.shape == (N, 2)


def test_queries(arrays, plain):
    np.testing.assert_array_equal(plain.view(arrays["new"]), arrays["new"])
    back = benchmark.get_method("procrustes:query").fit(arrays["old"], arrays["new"])
    assert back.view(arrays["new"]).shape == (N, OLD)
    np.testing.assert_array_equal(back.convert(arrays["old"]), arrays["old"])


def test_order(with_priority):
    made = with_priority()
    rows = np.zeros((9, OLD))
    rows[:, 0] = [1, 3, 1, 5, 3, 0, 5, 1, 5]
    np.testing.assert_array_equal(made.priority(rows), rows[:, 0] * 2)
    assert made.order(rows).tolist() == [3, 6, 8, 1, 4, 0, 2, 7, 5]
    ids = [f"{9 - i}" for i in range(9)]
    assert made.order(rows, ids=ids).tolist() == [8, 6, 3, 4, 1, 7, 2, 0, 5]
    assert made.order(rows).dtype == np.int64


@pytest.mark.parametrize("n", [1, BLOCK, BLOCK + 1])
def test_an_item_is_converted_alone(sided, n):
    rng = np.random.default_rng(1)
    old, side = (rng.standard_normal((700, d)).astype(np.float32) for d in (OLD, SIDE))
    whole = sided.convert(old, side)
    rows = rng.permutation(700)[:n]
    np.testing.assert_array_equal(sided.convert(old[rows], side[rows]), whole[rows])


def test_what_is_given_stays_as_it_is(arrays, plain):
    before = arrays["old"].copy()
    before.flags.writeable = False
    plain.convert(before)
    np.testing.assert_array_equal(before, arrays["old"])


# --- folders


# --- what an adapter cannot know


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"new": np.zeros((N - 1, NEW))}, r"new: expected \[120, dim\] as many rows as old"),
        ({"side": np.zeros((N, SIDE))}, "side: procrustes has no use for side-information"),
        ({"new_side": np.zeros((N, SIDE))}, "new_side: expected together with side"),
        ({"old": np.zeros(N)}, r"old: expected \[n, dim\], got \[120\]"),
        ({"old": np.zeros((0, 3))}, r"old: expected \[n, dim\], got \[0, 3\]"),
        ({"old": [["a", "b"]]}, "old: expected numbers"),
        ({"old": [[1, 2], [3]]}, "old: expected numbers"),
        ({"old": None}, "old, new: expected vectors"),
        ({"old": np.ones((1, 3)), "new": np.ones((1, 3))}, "old: expected at least 2 pairs"),
        ({"old": np.full((N, OLD), np.nan)}, "old: expected finite numbers, .* row 0"),
        ({"new": np.full((N, NEW), np.inf)}, "new: expected finite numbers, .* row 0"),
        ({"new": np.full((N, NEW), 1e300)}, "new: expected finite numbers"),
        ({"labels": np.zeros(3, int)}, r"labels: expected \[120\]"),
        ({"labels": np.zeros(N)}, "labels: expected whole numbers, got float64"),
        ({"labels": np.full(N, -1)}, "labels: expected .* 0 or more, got -1"),
        ({"labels": np.full(N, 4), "head": np.ones((4, NEW))}, "labels: expected .* 0 to 3, got 4"),
        ({"head": np.ones((4, NEW + 1))}, "head: expected 5 dimensions as new, got 6"),
        ({"head": (np.ones((4, NEW)), np.ones(3))}, r"head bias: expected \[n, 4\]"),
        ({"head": (np.ones((4, NEW)),)}, "head: expected weights, or weights and biases, got 1"),
        ({"labels": [[0], [1, 2]]}, "labels: expected whole numbers"),
        ({"labels": np.zeros((N, 2), int)}, r"labels: expected \[120\]"),
        ({"old_ids": 3, "new_ids": 3}, r"old_ids: expected one id an item, \[n\], got \[\]"),
        (
            {"old_ids": range(N), "new_ids": np.zeros((N, 2))},
            r"new_ids: expected one id an item, \[n\], got \[120, 2\]",
        ),
        ({"old_ids": [[1], [2, 3]], "new_ids": range(N)}, "old_ids: expected one id an item"),
        ({"distance": "cosin"}, "distance: expected .* got 'cosin'"),
        ({"distance": "dot"}, "distance: expected cosine or l2, which serves dot, too, got 'dot'"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"old_ids": range(N)}, "new_ids: expected the ids of both"),
        ({"old_ids": range(N), "new_ids": range(N - 1)}, "new_ids: expected 120 as old_ids"),
        ({"old_ids": range(5), "new_ids": range(5)}, "old_ids: expected 120 as old, got 5"),
        (
            {"old_ids": list("ab") + ["c"] * (N - 2), "new_ids": list("ba") + ["c"] * (N - 2)},
            "new_ids: expected the order of old_ids, got 'b' for 'a' in row 0",
        ),
        (
            {"old_ids": np.arange(N), "new_ids": np.arange(N)[::-1]},
            "new_ids: expected the order of old_ids, got 119 for 0 in row 0",
        ),
    ],
)
def test_bad_pairs(arrays, change, said):
    given = {"old": arrays["old"], "new": arrays["new"], "device": "cpu", **change}
    with pytest.raises(BenchError, match=said) as caught:
        benchmark.get_method("procrustes").fit(**given)
    assert "\n" not in str(caught.value)


def test_the_same_ids_in_the_same_order(arrays):
    ids = [f"item {i}" for i in range(N)]
    made = benchmark.get_method("procrustes").fit(
        arrays["old"], arrays["new"], old_ids=ids, new_ids=np.array(ids)
    )
    assert made.convert(arrays["old"]).shape == (N, NEW)


def test_what_a_method_needs(arrays, fct):
    with pytest.raises(BenchError, match="side: fct needs side-information"):
        fct(side="simclr").fit(arrays["old"], arrays["new"])
    with pytest.raises(BenchError, match="BCT makes no map"):
        benchmark.get_method("bct").fit(arrays["old"], arrays["new"])
    with pytest.raises(BenchError, match="unknown key 'widht'; did you mean 'width'"):
        benchmark.get_method("fct", widht=3)
    with pytest.raises(BenchError, match="method: expected a name, got None"):
        benchmark.get_method(None)
    with pytest.raises(BenchError, match="unknown method 'fcd'; did you mean 'fct'"):
        benchmark.get_method("fcd")


@pytest.mark.parametrize("label", ["fct", "fastfill"])
def test_every_transformation_with_side_information(arrays, label, tmp_path):
    made = benchmark.get_method(label, width=16).fit(
        arrays["old"], arrays["new"], arrays["labels"], arrays["side"], arrays["weight"],
        recipe=QUICK, device="cpu", new_side=arrays["side"][:, :2],
    )  # fmt: skip
    made.save(tmp_path / "kept")
    back = Conversion.load(tmp_path / "kept")
    vectors, side = back.convert(arrays["old"], arrays["side"])
    assert vectors.shape == (N, NEW) and side.shape == (N, 2)
    assert set(back.parts) == ({"convert", "priority"} if label == "fastfill" else {"convert"})
    with pytest.raises(BenchError, match=r"side: expected \[120, 3\], got no"):
        back.convert(arrays["old"])


@pytest.mark.parametrize("label", ["lce", "lce:mlp", "rbt", "rbt:kl", "procrustes", "linear:query"])
def test_side_information_without_use_is_refused(arrays, label):
    """Else a gallery could not be converted without it, though the map never read it."""
    with pytest.raises(BenchError, match="has no use for side-information"):
        benchmark.get_method(label).fit(
            arrays["old"], arrays["new"], arrays["labels"], arrays["side"], arrays["weight"]
        )


@pytest.mark.parametrize("label", ["fct", "fastfill", "lce", "lce:mlp", "rbt", "rbt:kl"])
def test_every_transformation(arrays, label, tmp_path):
    """On plain arrays, with a classifier and without one."""
    name, _, variant = label.partition(":")
    made = benchmark.get_method(label).fit(
        arrays["old"], arrays["new"], arrays["labels"], None, arrays["weight"],
        recipe=Recipe(epochs=1, transform_steps=2, transform_batch=32), device="cpu",
    )  # fmt: skip
    made.save(tmp_path / "kept")
    back = Conversion.load(tmp_path / "kept")
    assert back.convert(arrays["old"]).shape == (N, NEW)
    assert back.method == name
    if "priority" in back.parts:
        assert sorted(back.order(arrays["old"])) == list(range(N))
        np.testing.assert_array_equal(
            back.priority(arrays["old"][:7]), back.priority(arrays["old"])[:7]
        )
    assert ("priority" in back.parts) == (name == "fastfill")
    if name in ("fastfill", "lce") or variant == "kl":
        with pytest.raises(BenchError, match=r"head|classifier|labels") as caught:
            benchmark.get_method(label).fit(arrays["old"], arrays["new"], device="cpu")
        assert "\n" not in str(caught.value)


def test_bad_galleries(arrays, plain, sided, with_priority):
    old, side = arrays["old"], arrays["side"]

    def refused(said, call, *given):
        with pytest.raises(BenchError, match=said) as caught:
            call(*given)
        assert "\n" not in str(caught.value)

    refused(r"side: expected \[120, 3\], got no", sided.convert, old)
    refused("side: expected no side-information", plain.convert, old, side)
    refused(r"side: expected \[120, 3\], got \[120, 2\]", sided.convert, old, side[:, :2])
    refused(r"side: expected \[120, 3\], got \[7, 3\]", sided.convert, old, side[:7])
    refused(r"vectors: expected \[120, 6\], got \[120, 5\]", plain.convert, old[:, :5])
    refused(r"vectors: expected \[n, dim\], got \[6\]", plain.convert, old[0])
    refused(r"vectors: expected \[n, dim\], got \[0, 6\]", plain.convert, old[:0])
    bad = old.copy()
    bad[7, 1] = np.nan
    refused("vectors: expected finite numbers, got NaN or infinity in row 7", plain.convert, bad)
    bad_side = side.copy()
    bad_side[8, 0] = np.inf
    refused("side: expected finite numbers.* row 8", sided.convert, old, bad_side)
    refused(r"queries: expected \[n, 5\], got \[120, 6\]", plain.view, old)
    refused("queries: expected finite numbers", plain.view, np.full((3, NEW), np.nan))
    refused("priority: method fct gives none", plain.priority, old)
    refused("priority: method fct gives none", plain.order, old)
    order = with_priority().order
    refused("ids: expected .*120", order, old, None, [1, 2, 3])
    refused("ids: expected 120 different ones, got 1", order, old, None, [7] * N)
    for ids in (np.zeros((N, 2)), 5, [[1], [2, 3]]):
        refused("ids: expected one id an item", order, old, None, ids)


def test_the_harness_refuses_in_one_line_too(sided, tmp_path, monkeypatch, capsys):
    """A stored map that lacks its side-information ends the command with code 2."""
    sided.save(tmp_path / "kept")

    def call(**_):
        apply_part(tmp_path / "kept", "convert", np.ones((3, OLD), np.float32), None)

    monkeypatch.setattr(app, "app", call)
    with pytest.raises(SystemExit) as end:
        app.main([])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("bench: side-information: fitted with 3")
    assert len(said.splitlines()) == 1


def test_pairs_in_the_harness_are_checked_too():
    old = torch.ones(4, 3)
    with pytest.raises(BenchError, match="new: expected finite numbers"):
        Pairs(old, F.pad(old, (0, 1), value=float("nan")))
    with pytest.raises(BenchError, match="as many rows as old"):
        Pairs(old, old[:3])


@pytest.mark.parametrize("name", ["old", "new"])
def test_zeros_have_no_direction(arrays, name, tmp_path):
    """Compared by cosine they would become NaN, or be like everything."""
    damaged = {key: arrays[key].copy() for key in ("old", "new")}
    damaged[name][[7, 30]] = 0
    method = benchmark.get_method("linear")
    with pytest.raises(BenchError, match=f"^{name}: expected a direction, .* zeros in row 7$"):
        method.fit(damaged["old"], damaged["new"])
    method.fit(damaged["old"], damaged["new"], distance="l2")


@pytest.mark.parametrize(("scale", "distance"), [(1e20, "cosine"), (1e-14, "cosine"), (1e20, "l2")])
def test_lengths_whose_squares_float32_does_not_hold(arrays, scale, distance):
    """As of files: sums of their squares are infinite or nothing, and what is fitted is wrong."""
    old, new = arrays["old"], arrays["new"]
    method, said = benchmark.get_method("linear"), f"expected lengths of .* for {distance}, got"
    with pytest.raises(BenchError, match=f"^old: {said} .* in row 0$"):
        method.fit(old * scale, new, distance=distance)
    with pytest.raises(BenchError, match=f"^vectors: {said} .* in row 0$"):
        method.fit(old, new, distance=distance).convert(old * scale)


def test_what_is_no_real_number(arrays):
    method, old, new = benchmark.get_method("linear"), arrays["old"], arrays["new"]
    for wrong in (old > 0, old + 1j):
        with pytest.raises(BenchError, match=r"^old: expected numbers \[n, dim\], got others"):
            method.fit(wrong, new)


def test_zeros_are_not_converted(arrays):
    damaged = arrays["old"].repeat(8, axis=0)
    damaged[700] = 0
    conversion = benchmark.get_method("linear").fit(arrays["old"], arrays["new"])
    with pytest.raises(BenchError, match=r"^vectors: expected a direction, .* row 700$"):
        conversion.convert(damaged)
    with pytest.raises(BenchError, match=r"^queries: expected a direction, .* row 1$"):
        conversion.view(np.eye(2, NEW) * [[1], [0]])


def test_a_fit_tells_its_progress(arrays, fct):
    heard = []
    fct().fit(arrays["old"], arrays["new"], recipe=QUICK, device="cpu", progress=heard.append)
    assert len(heard) >= QUICK.transform_steps / 2 and heard[-1] == 1.0
    assert heard == sorted(heard)
