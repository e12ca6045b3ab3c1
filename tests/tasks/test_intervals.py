"""Units of each task's intervals, with thresholds drawn too."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmark.data.base import Evaluation
from benchmark.metrics.intervals import mean_interval, mean_spread
from benchmark.tasks.groups import Groups
from benchmark.tasks.identification import Identification
from benchmark.tasks.reidentification import Reidentification
from benchmark.tasks.retrieval import Retrieval
from benchmark.tasks.text_retrieval import TextRetrieval
from benchmark.tasks.verification import Verification, _other_pairs

OPTIONS = {"distance": "cosine"}


@pytest.fixture(scope="module")
def problem():
    """Classes of unequal noise, so that queries of one share its luck."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), 12)
    noise = np.exp(0.6 * rng.standard_normal(40))[labels, None]
    x = rng.standard_normal((40, 8))[labels] + noise * rng.standard_normal((480, 8))
    enrolled = np.arange(0, 480, 12)
    items = Evaluation.of(
        np.zeros((480, 1, 1, 1), np.uint8), labels, camera=np.arange(480) % 3,
        group=labels % 2, group_names=("even", "odd"),
        probes=np.setdiff1d(np.arange(480), enrolled), galleries=(enrolled[:20], enrolled[20:]),
    )  # fmt: skip
    return x.astype(np.float32), items


@pytest.mark.parametrize(
    ("task", "over"),
    [(Retrieval(), "classes"), (Reidentification(), "identities"), (TextRetrieval(), "classes")],
)
def test_ranked_scores_are_over_classes(problem, task, over) -> None:
    x, items = problem
    got = task.evaluate(x, x, items, OPTIONS)
    for name, values in got.per_query.items():
        assert got.intervals[name] == mean_interval(values, got.identities[name])
        assert got.over[name] == over
        assert set(got.identities[name]) <= set(items.labels)
    if over == "classes" and len(got.per_query["map"]) == 480:
        low, high = got.intervals["map"]
        alone = mean_interval(got.per_query["map"])
        assert high - low > 1.5 * (alone[1] - alone[0])


def test_a_group_is_over_its_classes(problem) -> None:
    x, items = problem
    got = Groups().evaluate(x, x, items, OPTIONS)
    hits = Retrieval().evaluate(x, x, items, OPTIONS).per_query["cmc_at_1"]
    even = items.labels % 2 == 0
    expected = mean_interval(hits[even], items.labels[even])
    assert got.intervals["group_even__cmc_at_1"] == expected
    assert got.over["group_even__cmc_at_1"] == "classes"


def test_a_threshold_that_thirty_impostors_decide_widens_tar(problem) -> None:
    """The interval of the score at the threshold as it is leaves out how the threshold moves."""
    x, items = problem
    n = 440 * 39
    far = [k / n for k in (10, 30, 5000)]
    got = Verification().evaluate(x, x, items, {"far": far})
    names = list(got.scores)
    assert got.intervals[names[0]] is None and got.draws[names[0]] is None
    assert set(got.over.values()) == {"identities, impostors among them"}
    ratios = []
    for name in names[1:]:
        low, high = got.intervals[name]
        assert low <= got.scores[name] <= high
        kept = mean_spread(got.per_query[name], got.identities[name]).interval()
        ratios.append((high - low) / (kept[1] - kept[0]))
    assert ratios[0] > 1.1 and ratios[1] < ratios[0]


def test_each_gallery_draws_its_own_thresholds(problem) -> None:
    x, items = problem
    n = 20 * 11
    got = Identification().evaluate(x, x, items, {"fpir": [20 / n, 40 / n]})
    few, enough = (name for name in got.scores if name.startswith("tpir"))
    for name in (few, f"g1_{few}", f"g2_{few}"):
        assert got.intervals[name] is None and got.over[name].startswith("identities, impostors")
    drawn = (got.draws[f"g1_{enough}"] + got.draws[f"g2_{enough}"]) / 2
    np.testing.assert_allclose(got.draws[enough], drawn)
    low, high = got.intervals[enough]
    assert low <= got.scores[enough] <= high
    assert got.over["rank_1"] == "identities"
    assert got.intervals["rank_1"] == mean_interval(
        got.per_query["rank_1"], got.identities["rank_1"]
    )


def test_listed_pairs_draw_as_all_pairs_do(problem) -> None:
    """Every pair, listed in the order of all pairs, gives the very same interval."""
    x, items = problem
    enrolled = np.concatenate(items.galleries)
    columns = {
        name: getattr(items, name)
        for name in ("template", "media", "labels", "weight", "probes", "galleries")
    }
    pairs = np.stack(np.meshgrid(items.probes, enrolled, indexing="ij"), -1).reshape(-1, 2)
    listed = SimpleNamespace(**columns, pairs=pairs)
    far = {"far": [100 / (440 * 39)]}
    (one,), (other,) = (
        Verification().evaluate(x, x, each, far).intervals.values() for each in (items, listed)
    )
    assert one == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_places_of_impostor_pairs(seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 4, 9), rng.integers(0, 4, 7)
    rows, columns = np.nonzero(left[:, None] != right)
    got = _other_pairs(left, right, np.arange(len(rows)))
    np.testing.assert_array_equal(got, (rows, columns))
