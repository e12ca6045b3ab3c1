"""A gallery in shards: the ranking of the whole, to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import examples, problems, same_bits

from benchmark.ranking import spread
from benchmark.ranking.ranks import Shard, rank


class Here:
    """Machines that are all this process."""

    def __init__(self, n):
        self.n, self.used = n, 0

    def __len__(self):
        return self.n

    def hold(self, shards):
        self.used += 1
        return [Shard(*arguments, **options) for arguments, options in shards]

    def matches(self, held):
        return [shard.matches for shard in held]

    def counts(self, held, thresholds):
        return [shard.count(thresholds) for shard in held]


@examples(40)
@given(p=problems(), n=st.integers(2, 5))
def test_shards_add_up_to_the_whole(p, n):
    machines = Here(min(n, len(p.g)))
    with pytest.MonkeyPatch.context() as patch, spread.spread_over(machines):
        patch.setattr(spread, "LEAST", 0)
        spreaded = spread.rank_anywhere(p.q, p.g, p.ql, p.gl, **p.rules())
    assert machines.used == (len(machines) > 1)
    same_bits(rank(p.q, p.g, p.ql, p.gl, **p.rules()), spreaded)


def test_small_galleries_stay_here():
    x, labels, machines = np.eye(4), np.array([0, 0, 1, 1]), Here(2)
    with spread.spread_over(machines):
        spread.rank_anywhere(x, x, labels, labels)
    assert not machines.used


@pytest.mark.slow
def test_on_ray_the_same_bits(monkeypatch, tmp_path):
    pytest.importorskip("ray")
    from benchmark.harness.ray import Machines

    rng = np.random.default_rng(0)
    q, g = (rng.normal(size=(n, 16)).astype(np.float32) for n in (50, 3000))
    ql, gl = rng.integers(0, 20, 50), rng.integers(0, 20, 3000)
    rules = {"query_ids": np.arange(50), "gallery_ids": np.arange(3000), "junk": gl == 3}
    monkeypatch.setattr(spread, "LEAST", 1000)
    with spread.spread_over(Machines(3)):
        there = spread.rank_anywhere(q, g, ql, gl, **rules)
    same_bits(rank(q, g, ql, gl, **rules), there)


@pytest.mark.slow
def test_conversion_on_ray_writes_the_same_file(tmp_path):
    pytest.importorskip("ray")
    from benchmark.config import registry
    from benchmark.upgrade.formats.convert import convert

    rng = np.random.default_rng(0)
    old, new = (rng.normal(size=(400, 6)).astype(np.float32) for _ in range(2))
    conversion = registry.method("linear").fit(old, new)
    np.save(tmp_path / "in.npy", rng.normal(size=(5000, 6)).astype(np.float32))
    for engine in ("local", "ray"):
        convert(
            conversion, tmp_path / "in.npy", tmp_path / f"{engine}.npy", batch=700, engine=engine
        )
    assert (tmp_path / "ray.npy").read_bytes() == (tmp_path / "local.npy").read_bytes()
