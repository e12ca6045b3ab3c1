"""Ways of readers in a terminal: one command, one screen, the right answer by the records."""

import re

import numpy as np
import pytest
from scipy import stats
from support.command import call
from support.ways import RESULTS, UNSEEN, half_filled, records

from benchmark.pairs.records import read_record
from benchmark.studies.claims import read_claims

pytestmark = pytest.mark.slow  # all records are read

SCREEN = 40


@pytest.fixture
def ask(monkeypatch):
    """Run a command as a reader does; the lines of its first screen."""
    monkeypatch.chdir(RESULTS.parent)
    monkeypatch.setenv("COLUMNS", "120")

    def run(command):
        code, out, err = call(*command.split())
        assert code == 0, err
        return out.splitlines()[:SCREEN]

    return run


def row(lines, name):
    """Numbers of the first line that begins with a name."""
    found = [line for line in lines if line.startswith(f"{name} ")]
    assert found, lines
    return [float(n) for n in re.findall(r"(?<![\w±-])[+-]?\d+\.\d+(?!\d)", found[0][len(name) :])]


def points(protocol, track, method, case, metric="cmc_at_1"):
    """A score in percent as tables print it: the mean over the seeds."""
    found = [r.scores[case][metric] for r in records(protocol, track, method)]
    return pytest.approx(100 * np.mean(found), abs=0.0501)


@pytest.mark.parametrize("methods", [
    ("fct", "linear", "local-drift", "procrustes"),  # a vendor's user has maps alone
    ("bct", "mixbct", "bt2"),  # who trains and cannot touch the index
])  # fmt: skip
def test_a_terminal_says_that_nothing_fits_the_index(ask, methods):
    command = "table results -p {} -t {} --metrics cmc_at_1 -m {}"
    lines = ask(command.format(*UNSEEN, ",".join(methods)))
    for method in methods:
        value = row(lines, method)[0]
        assert value == points(*UNSEEN, method, "new/old")
        assert value < row(lines, "lower bound")[0] == points(*UNSEEN, method, "old/old")
    assert any("none of these methods beats keeping the old model" in line for line in lines)


def test_a_terminal_answers_when_half_is_backfilled(ask):
    lines = ask("table results -p backfill -t cifar100-open -m cascade,fct,fct:simclr "
                "--metrics cmc_at_1")  # fmt: skip
    place = next(i for i, line in enumerate(lines) if "a part of the gallery is backfilled" in line)
    for method in ("cascade", "fct", "fct:simclr"):
        half = [100 * half_filled(method, "cifar100-open")]
        assert row(lines[place : place + 8], method)[2:3] == pytest.approx(half, abs=0.0501)


def test_a_terminal_says_what_became_of_fastfills_claims(ask):
    """Of fastfill-1, area by area: it is before FCT, and FCT before BCT."""
    lines = ask("claims results --only fastfill")
    told = dict(re.findall(r"^(fastfill-\d) +(?:\w+: )?(\w+(?: \w+)?) ", "\n".join(lines), re.M))
    claims = {name for name in read_claims().claims if name.startswith("fastfill-")}
    assert told.keys() == claims
    assert told["fastfill-1"] == "disagrees"
    areas = {
        (method, metric): np.array([
            (r.orders.get("priority") or r.orders["random"]).area[metric]
            for r in sorted(records("backfill", "cifar100-small", method), key=lambda r: r.seed)
        ])
        for method in ("fastfill", "fct", "bct") for metric in ("cmc_at_1", "map")
    }  # fmt: skip
    pairs = (("fastfill", "fct"), ("fct", "bct"))
    margins = [areas[a, m] - areas[b, m] for a, b in pairs for m in ("cmc_at_1", "map")]
    weakest = min(margins, key=np.mean)
    mean = 100 * np.mean(weakest)
    spans = [stats.t.interval(0.95, len(m) - 1, np.mean(m), stats.sem(m)) for m in margins]
    verdict = "agrees" if all(low > 0 for low, _ in spans) else "cannot tell"
    verdict = "disagrees" if any(high < 0 for _, high in spans) else verdict
    end = next(line.index("frozen, pretrained") for line in lines if "frozen, pretrained" in line)
    of_small = " ".join(" ".join(line[:end] for line in lines).split())
    assert f"cifar100-small {verdict} {mean:+.1f} " in of_small


def test_a_terminal_says_what_holds_of_real_models(ask):
    """Maps from MiniLM-L6 to mpnet: on the worst corpus, of re-embedding's score."""
    lines = ask("pairs table --show claims")
    kept = []
    for path in sorted((RESULTS / "pairs").glob("*/minilm-l6--mpnet-base.json")):
        reports = read_record(path).reports

        def score(name, size=None, reports=reports):
            values = [
                np.average([r.value(name, part) for part in ("same", "other")], weights=r.queries)
                for r in reports if size in (None, r.size)
            ]  # fmt: skip
            return np.mean(values)

        maps = [score(name, 1000) for name in ("procrustes:query", "linear:query")]
        kept.append(max(maps) / score("re-embed"))
    assert len(kept) > 3
    assert row(lines, "real-8")[-1:] == pytest.approx([min(kept)], abs=0.00051)
