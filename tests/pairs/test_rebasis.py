"""Another tool's decisions beside the reports that saw the same vectors."""

import math
import sys

import pytest
from pairs.test_analysis import RESULTS
from support.command import call

from benchmark.errors import BenchError
from benchmark.pairs import rebasis
from benchmark.pairs.records import read_records


def probe(decision, bridge=0.45, pair="minilm-l3:minilm-l6", whole=False):
    cost = rebasis.ProcessCost(seconds=1.0, memory=2**20)
    return rebasis.Probe(
        corpus="one", pair=pair, size=1000, draw=0, decision=decision, provisional=False,
        adapter="ridge", bridge=bridge, cost=cost, own=None if whole else cost, whole=whole,
    )  # fmt: skip


def test_regret_is_beside_the_best_of_both_tools(one):
    """Its bridge (45) is better than re-embedding (42), the verdict here, and keeping (32)."""
    (report,) = one.reports
    found = {name: rebasis.both(probe(name), report) for name in rebasis.TAKEN}
    assert found["bridge_sufficient"] == pytest.approx((0.0, 0.03))
    assert found["full_reindex"] == pytest.approx((0.03, 0.03))
    assert found["no_upgrade_needed"] == pytest.approx((0.13, 0.03))
    assert math.isnan(found["caution"][0])
    assert rebasis.both(probe("bridge_and_migrate", 0.2), report) == pytest.approx((0.22, 0.0))


def test_tables_count_what_recommends_nothing(one):
    probed = [
        probe("caution"), probe("full_reindex"), probe("caution", pair="bge-small:x"),
        probe("caution", whole=True),
    ]  # fmt: skip
    assert len(rebasis.pairs_of(probed, [one])) == 3  # the third has no record
    tools = rebasis.tools_table([one], probed)
    assert [values[2] for values in tools.values] == ["1", "1", "0"]
    decisions = {v[0]: v for v in rebasis.decisions_table([one], probed).values}
    assert decisions["full_reindex"][3] == "1" and decisions["caution"][1] == "1"


def test_a_python_without_it_is_told(tmp_path):
    with pytest.raises(BenchError, match=r"ended with 1: ModuleNotFoundError: .*'rebasis'"):
        rebasis._process([sys.executable, "-I", rebasis.rebasis_probe.__file__, "x"], tmp_path)
    with pytest.raises(BenchError, match="no-such-python"):
        rebasis._process([str(tmp_path / "no-such-python")], tmp_path)


def test_what_is_committed_stands_beside_records():
    records, probed = read_records(RESULTS), rebasis.read_probes(RESULTS)
    assert len(rebasis.pairs_of(probed, records)) == len(probed) >= 80 * 2
    assert {p.decision for p in probed} <= set(rebasis.TAKEN)


def test_the_command_shows_both_tables(tmp_path):
    code, out, _ = call("pairs", "rebasis", "--out", RESULTS, "-f", "markdown")
    assert code == 0 and "recommends nothing" in out and "its regret" in out
    code, out, _ = call("pairs", "rebasis", "--out", RESULTS, "-f", "csv", "--show", "tools")
    assert code == 0 and "recommends nothing" in out and "its regret" not in out
    code, out, err = call("pairs", "rebasis", "--out", RESULTS, "-f", "csv")
    assert (code, out) == (2, "") and "choose one with --show" in err
    code, _, err = call("pairs", "rebasis", "--out", RESULTS, "--show", "tool")
    assert code == 2 and "unknown table 'tool'; did you mean 'tools'?" in err
    (tmp_path / "c").mkdir()
    code, _, err = call("pairs", "rebasis", "--out", tmp_path)
    assert code == 2 and "expected records of pairs" in err
