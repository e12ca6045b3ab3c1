"""Maps of 2023 to 2026 and the two baselines of vectors: equations in float64, identities."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from support.losses import slope, unit
from support.training import map_trainer

from benchmark.api import get_method
from benchmark.contract import drawing_from
from benchmark.contract.pairs import Pairs
from benchmark.errors import BenchError, RefusedError
from benchmark.models.basis import Rotation
from benchmark.models.parts import Affine
from methods import mini_vec2vec
from methods.class_mean import ClassMean
from methods.lambda_orthogonal_full import LambdaOrthogonalFull, Maps
from methods.linear_500 import Linear500
from methods.mini_vec2vec_restarts import MiniVec2VecRestarts
from methods.relative import Relative

trainer = partial(map_trainer, precision="32-true")


def turned(n=300, dim=8, noise=0.0, seed=0, classes=6):
    """Clustered vectors off the origin, the same turned about it with noise, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    old = rng.standard_normal((classes, dim))[labels] + 0.4 * rng.standard_normal((n, dim)) + 0.5
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    new = old @ turn + noise * rng.standard_normal((n, dim))
    return old.astype(np.float32), new.astype(np.float32), labels, turn


# --- relative


def test_relative_is_the_cosines_to_the_same_items():
    old, new, *_ = turned(60, noise=0.3)
    made = get_method("relative", anchors=7).fit(old, new, seed=3)
    found = made.convert(old[:20]), made.view(new[:20])
    assert found[0].shape == found[1].shape == (20, 7)
    for vectors, got in ((old, found[0]), (new, found[1])):
        x = unit(vectors.astype(np.float64))
        x = unit(x - x.mean(0))
        # An anchor is where an item's cosine is 1: the same seven items in both spaces.
        anchors = made.parts["query_view"].anchors.weight.detach().numpy()
        rows = (unit(unit(new) - unit(new).mean(0)) @ anchors.T).argmax(0)
        assert len(set(rows)) == 7
        np.testing.assert_allclose(got, unit(x[:20] @ x[rows].T), atol=1e-5)


def test_relative_of_a_turned_space_is_the_same():
    """Cosines do not change by a rotation: new queries find their own old vectors."""
    old, new, *_ = turned(80)
    made = get_method("relative").fit(old, new * 3)
    assert made.convert(old).shape == (80, 80)  # no more anchors than pairs
    np.testing.assert_allclose(made.convert(old), made.view(new), atol=1e-5)


def test_relative_refuses_a_sequence():
    old, new, *_ = turned(20)
    with pytest.raises(RefusedError, match="sequence"):
        Relative().learn(Pairs(torch.tensor(old), torch.tensor(new), chained=True), trainer())


# --- the baselines


def test_linear_500_is_a_ridge_of_500_pairs():
    old, new, *_ = turned(900, noise=0.5)
    made, _ = Linear500(share=0.1).fit_vectors(torch.tensor(old), torch.tensor(new), trainer())
    rows = _drawn(trainer(), 900)
    assert len(set(rows.tolist())) == 500
    a, b = old[rows].astype(np.float64), new[rows].astype(np.float64)
    wanted = Ridge(alpha=0.1 * a.var(axis=0).mean() * 500).fit(a, b)
    np.testing.assert_allclose(made.linear.weight.detach(), wanted.coef_, atol=1e-5)
    everything = get_method("linear", share=0.1).fit(old, new, distance="l2")
    assert np.abs(made(torch.tensor(old)).detach().numpy() - everything.convert(old)).max() > 1e-3


def _drawn(trainer, n):
    with drawing_from(trainer.seed, "pairs"):
        return torch.randperm(n)[:500]


def test_with_few_pairs_it_is_linear():
    old, new, *_ = turned(100, noise=0.5)
    few, whole = (get_method(name).fit(old, new) for name in ("linear-500", "linear"))
    np.testing.assert_allclose(few.convert(old), whole.convert(old), atol=1e-5)


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_class_mean_by_a_loop(distance):
    old, new, labels, _ = turned(90, noise=0.3)
    labels = 2 * labels + 1  # rows of a classifier that has more classes
    made = get_method("class-mean").fit(old, new, labels, distance=distance)
    cosine = distance == "cosine"
    a, b = (unit(x.astype(np.float64)) if cosine else x.astype(np.float64) for x in (old, new))
    names = np.unique(labels)
    means = [np.array([x[labels == c].mean(0) for c in names]) for x in (a, b)]
    before, after = (unit(m) if cosine else m for m in means)
    for item, got in zip(a, made.convert(old), strict=True):
        distances = [np.linalg.norm(item - m) for m in before]
        c = int(np.argmin(distances))
        among = np.mean([(item @ m) * n for m, n in zip(before, after, strict=True)], axis=0)
        wanted = after[c] + 0.01 * among
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_items_of_one_label_do_not_tie():
    """They are in the order of their similarity to the query, as far as class means tell it."""
    old, new, labels, _ = turned(90)
    made = get_method("class-mean").fit(old, new, labels)
    got = unit(made.convert(old).astype(np.float64))
    alike = np.abs(got[:, None] - got[None]).max(2) < 0.05
    groups = {tuple(np.flatnonzero(row)) for row in alike}
    assert len(groups) == 6 and sum(map(len, groups)) == 90
    for rows in groups:
        scores = got[list(rows)] @ unit(new).T
        assert np.diff(np.sort(scores, axis=0), axis=0).min() > 0
        nearer = [np.corrcoef(s, unit(old)[list(rows)] @ unit(old)[i])[0, 1]
                  for i, s in enumerate(scores.T)]  # fmt: skip
        assert np.mean(nearer) > 0.3


def test_class_mean_needs_labels():
    old, new, *_ = turned(20)
    with pytest.raises(BenchError, match="class-mean needs labels"):
        ClassMean().fit(old, new)


# --- lambda-orthogonal, whole


def by_hand(w, v, b, old, new, labels, method):
    """Eq. 10 in float64, loop by loop; B f = W f, F o = V o + b."""
    turned_, mapped = new @ w.T, old @ v.T + b
    d = min(old.shape[1], new.shape[1])
    forth = np.mean([np.sum((p - q) ** 2) for p, q in zip(mapped, turned_, strict=True)])
    backward = np.mean([np.sum((p[:d] - q[:d]) ** 2) for p, q in zip(turned_, old, strict=True)])

    def c(anchors, others):
        total = 0.0
        for i, a in enumerate(anchors):
            scores = np.array([a @ x / np.linalg.norm(a) / np.linalg.norm(x) for x in others])
            logs = scores / method.tau - np.log(np.sum(np.exp(scores / method.tau)))
            mine = [j for j in range(len(others)) if i == j or labels[i] == labels[j]]
            total -= np.mean(logs[mine])
        return total / len(anchors)

    both = c(mapped, turned_) + c(mapped[:, :d], old[:, :d])
    penalty = 0.0
    if method.back == "relaxed":
        norm = np.sqrt(np.sum((w @ w.T - np.eye(len(w))) ** 2))
        penalty = norm / (1 + np.exp(-method.alpha * (norm - method.threshold)))
    weights = method.forth, method.backward, method.contrast, method.penalty
    return float(np.dot(weights, (forth, backward, both, penalty)))


@pytest.mark.parametrize(("d_old", "d_new"), [(5, 5), (4, 6), (6, 4)])
@pytest.mark.parametrize("back", ["strict", "relaxed"])
@pytest.mark.parametrize("positives", ["class", "item"])
def test_the_whole_loss(d_old, d_new, back, positives):
    rng = np.random.default_rng(d_old + d_new)
    old, new = rng.standard_normal((9, d_old)), rng.standard_normal((9, d_new))
    labels = np.arange(9) if positives == "item" else np.arange(9) % 4
    torch.manual_seed(0)
    method = LambdaOrthogonalFull(
        back=back, positives=positives, forth=0.7, backward=1.3, contrast=0.4, tau=0.3,
        penalty=2.0, threshold=1.0, alpha=3.0,
    )  # fmt: skip
    square = Rotation(d_new) if back == "strict" else Affine.of(torch.randn(d_new, d_new))
    maps = Maps(square, Affine(d_old, d_new))
    w, v = maps.back_matrix()[0], maps.forth.linear.weight
    b = maps.forth.linear.bias
    given = torch.tensor(labels) if positives == "class" else None
    args = torch.tensor(old).float(), torch.tensor(new).float(), given
    wanted = by_hand(*(x.detach().double().numpy() for x in (w, v, b)), old, new, labels, method)
    assert method.loss(maps, *args).item() == pytest.approx(wanted, rel=1e-5)
    # Matrix products in bfloat16 would lose W W^T - I.
    with torch.autocast("cpu", torch.bfloat16):
        assert method.loss(maps, *args).item() == pytest.approx(wanted, rel=1e-5)


def test_the_gradient_of_the_loss():
    rng = np.random.default_rng(1)
    old, new, labels = rng.standard_normal((7, 3)), rng.standard_normal((7, 3)), np.arange(7) % 3
    method = LambdaOrthogonalFull(back="relaxed", threshold=0.5, alpha=2.0, tau=0.5)
    torch.manual_seed(0)
    maps = Maps(Affine.of(torch.randn(3, 3)), Affine(3, 3))
    args = torch.tensor(old).float(), torch.tensor(new).float(), torch.tensor(labels)
    method.loss(maps, *args).backward()
    v, b = (x.detach().double().numpy() for x in (maps.forth.linear.weight, maps.forth.linear.bias))
    w = maps.back.linear.weight.detach().double().numpy().copy()
    wanted = slope(lambda each: by_hand(each, v, b, old, new, labels, method), w)
    np.testing.assert_allclose(maps.back.linear.weight.grad, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("label", ["strict", "relaxed"])
def test_it_starts_at_the_solution_of_a_turned_space(label):
    """Both maps meet new vectors that are turned old ones exactly, before any training."""
    old, new, *_ = (torch.tensor(x) for x in turned(100))
    method = LambdaOrthogonalFull(back=label, contrast=0.0, threshold=1.0)
    maps = method.start(old, new)
    assert method.loss(maps, old, new, None).item() < 1e-3
    torch.testing.assert_close(maps.back(new), old, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("d_old", "d_new"), [(8, 8), (6, 8), (8, 6)])
def test_trained_b_stays_orthogonal_and_meets_f(d_old, d_new):
    old, new, labels, _ = turned(200, noise=0.2)
    old, new = old[:, :d_old], new[:, :d_new]
    made = get_method("lambda-orthogonal-full").fit(
        old, new, labels, recipe=trainer(60).recipe, device="cpu"
    )
    weight = made.parts["query_view"].map.linear.weight.detach().double().numpy()
    np.testing.assert_allclose(weight @ weight.T, np.eye(d_new), atol=1e-5)
    queries, stored = unit(made.view(new)), unit(made.convert(old))
    assert queries.shape == stored.shape == (200, d_new)
    # Filled items, as f, score as B f and B f would.
    np.testing.assert_allclose(queries @ queries.T, unit(new) @ unit(new).T, atol=1e-5)
    hits = labels[(queries @ stored.T).argmax(1)] == labels
    assert hits.mean() > 0.9
    assert made.curves["map"].loss[-1] < made.curves["map"].loss[0]


def test_the_priority_is_the_distance_to_a_class_mean():
    old, new, labels, _ = turned(120, noise=0.2)
    made = get_method("lambda-orthogonal-full").fit(
        old, new, labels, recipe=trainer(5).recipe, device="cpu"
    )
    mapped = made.convert(old).astype(np.float64)
    means = np.array([mapped[labels == c].mean(0) for c in range(6)])
    wanted = [min(np.linalg.norm(x - m) for m in means) for x in mapped]
    np.testing.assert_allclose(made.priority(old), wanted, rtol=1e-4, atol=1e-5)
    assert made.order(old)[0] == int(np.argmax(made.priority(old)))


def test_without_labels():
    old, new, *_ = turned(60, noise=0.2)
    with pytest.raises(BenchError, match="needs labels; the variant 'pairs'"):
        get_method("lambda-orthogonal-full").fit(old, new)
    made = get_method("lambda-orthogonal-full:pairs").fit(
        old, new, recipe=trainer(5).recipe, device="cpu"
    )
    assert "priority" not in made.parts
    with pytest.raises(RefusedError, match="sequence"):
        LambdaOrthogonalFull().learn(
            Pairs(torch.tensor(old), torch.tensor(new), torch.zeros(60).long(), chained=True),
            trainer(),
        )


# --- mini-vec2vec


def test_no_swap_makes_a_match_better():
    """And the gain of a swap, which the search is made of, is what the swap brings."""
    rng = np.random.default_rng(0)
    a, b = ((z := rng.standard_normal((7, 7))) + z.T for _ in range(2))

    def worth(order):
        return sum(a[i, j] * b[order[i], order[j]] for i in range(7) for j in range(7))

    for _ in range(5):
        found = mini_vec2vec._swapped(a, b, rng.permutation(7))
        for i, j in itertools.combinations(range(7), 2):
            other = found.copy()
            other[[i, j]] = other[[j, i]]
            assert worth(other) <= worth(found) + 1e-9


def test_match_finds_a_turned_and_shuffled_set():
    rng = np.random.default_rng(1)
    left = rng.standard_normal((12, 6)) * np.linspace(0.3, 2, 6)
    turn, order = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.permutation(12)
    found = mini_vec2vec.match(left, left[order] @ turn, 20, rng)
    np.testing.assert_allclose(found, left @ turn, atol=1e-12)


def test_near_mean_by_sorting():
    rng = np.random.default_rng(2)
    scores, y = rng.standard_normal((5, 20)), rng.standard_normal((20, 3))
    wanted = [y[np.argsort(-row)[:4]].mean(0) for row in scores]
    np.testing.assert_allclose(mini_vec2vec.near_mean(scores, y, 4), wanted, atol=1e-12)


def unpaired(seed, n):
    """Old and new vectors of other items around ``n`` centres, and pairs to judge by."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n, 12)) * np.linspace(0.4, 1.6, 12)
    shares = rng.dirichlet(np.full(n, 3.0))
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    old, new, judged = (
        centres[rng.choice(n, k, p=shares)] + 0.25 * rng.standard_normal((k, 12)) + 0.3
        for k in (700, 800, 300)
    )
    sets = old, new @ turn - 0.2, judged, judged @ turn - 0.2
    return [each.astype(np.float32) for each in sets]


def test_the_rotation_is_found_without_a_pair():
    """Rows that do not belong together, and are not as many."""
    old, new, judged, wanted = unpaired(3, 30)
    quick = {"disjoint": False, "runs": 6, "refinements": 20, "k": 20}
    method = get_method("mini-vec2vec", **quick)
    made = method.fit(old, new, distance="l2")
    got = made.convert(judged)
    error = np.linalg.norm(got - wanted, axis=1).mean()
    assert error < 0.25 * np.linalg.norm(wanted - wanted.mean(0), axis=1).mean()
    weight = made.parts["convert"].map.map.linear.weight.detach().double().numpy()
    gram = weight @ weight.T
    np.testing.assert_allclose(gram, np.eye(12) * gram[0, 0], atol=1e-5)  # a rotation and a scale
    np.testing.assert_array_equal(got, method.fit(old, new, distance="l2").convert(judged))
    other = method.fit(old, new, distance="l2", seed=1).convert(judged)
    assert not np.array_equal(got, other)


def top_1(got, wanted):
    a, b = (unit(x - x.mean(axis=0)) for x in (got, wanted))
    return np.mean((a @ b.T).argmax(axis=1) == np.arange(len(a)))


def test_restarts_leave_local_optima_by_their_own_objective():
    """A single attempt with few draws often ends in one here."""
    old, new, judged, wanted = unpaired(2, 20)
    quick = {"disjoint": False, "runs": 1, "refinements": 10, "k": 20}

    def found(label, seed, **more):
        fitted = get_method(label, **quick, **more).fit(old, new, distance="l2", seed=seed)
        return fitted.convert(judged)

    one = [found("mini-vec2vec", seed) for seed in range(2)]
    several = [found("mini-vec2vec-restarts", seed, attempts=4) for seed in range(2)]
    assert min(top_1(got, wanted) for got in one) < 0.5, "else there is nothing to leave"
    assert min(top_1(got, wanted) for got in several) > 0.95
    first = found("mini-vec2vec-restarts", 1, attempts=1)
    assert top_1(first, one[1]) > 0.99, "its first attempt is that of mini-vec2vec"


def test_what_an_attempt_is_judged_by_needs_no_pair():
    """The nearness of a mapped item to items of the other space, in no order; by plain loops."""
    old, new, *_ = unpaired(2, 20)
    method = MiniVec2VecRestarts(k=3)
    x, y = torch.from_numpy(old[:40]), torch.from_numpy(new[:50])
    turn = Affine.of(torch.from_numpy(np.linalg.qr(new[:12])[0].T).float(), torch.zeros(12))
    mean = y.double().mean(0).numpy()
    mapped, there = (unit(z.double().numpy() - mean) for z in (turn(x).detach(), y))
    total = 0.0
    for row in mapped:
        best = sorted(there, key=lambda other: -row @ other)[:3]
        total += row @ unit(np.mean(best, axis=0)) / len(mapped)
    assert method.nearness(turn, x, y) == pytest.approx(total, rel=1e-6)
    shuffled = y[torch.randperm(50, generator=torch.Generator().manual_seed(0))]
    assert method.nearness(turn, x, shuffled) == pytest.approx(total, rel=1e-6)


def test_attempts_see_halves_of_other_items(monkeypatch):
    old, _, *_ = turned(60)
    seen, same = [], Affine.of(torch.eye(8), torch.zeros(8))
    monkeypatch.setattr(
        mini_vec2vec.MiniVec2Vec, "fit_vectors",
        lambda self, x, y, trainer: seen.append((x, y)) or (same, {}),
    )  # fmt: skip
    vectors = torch.tensor(old)
    MiniVec2VecRestarts(attempts=2).fit_vectors(vectors, vectors, trainer())
    assert len(seen) == 2 and seen[0][0].equal(seen[1][0]) and seen[0][1].equal(seen[1][1])
    x, y = seen[0]
    assert len(x) == len(y) == 30 and not (x[:, None] == y[None]).all(2).any()


def test_pairs_are_not_used():
    """With halves of other items, the order of the new rows is all that a pairing could be."""
    old, new, *_ = turned(60)
    method = mini_vec2vec.MiniVec2Vec(runs=1, restarts=1, refinements=1, clusters=4)
    seen = []
    object.__setattr__(method, "rotation", lambda x, y, rng: seen.append((x, y)) or np.eye(8))
    method.fit_vectors(torch.tensor(old), torch.tensor(old), trainer())
    x, y = seen[0]
    assert len(x) == len(y) == 30
    # Both spaces are one here: no centred row of one side is a row of the other.
    assert np.abs(x[:, None] - y[None]).max(2).min() > 1e-3
    assert len(new) == 60


def test_it_needs_one_size():
    old, new, *_ = turned(30)
    with pytest.raises(RefusedError, match="one size, got 8 and 5"):
        mini_vec2vec.MiniVec2Vec().fit(old, new[:, :5])
