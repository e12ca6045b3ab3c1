"""Every protocol is carried out on the toy track, not only planned: what each generation sees, what
is scored, with a method that converts nothing and one that maps."""

import itertools

import pytest

from benchmark.api import run
from benchmark.config.loading import load_protocol
from benchmark.config.overrides import expand
from benchmark.config.registry import protocol_files
from benchmark.harness.execution import Compute
from benchmark.records.stage_titles import old_model

HALF, OTHERS = [20, 40], ["retrieval", "verification", "identification"]
RUNS = {
    # Classes of each generation, of 40 of which each second one is in a group; tasks.
    "arch-change:transformer": (HALF, OTHERS),
    "arch-change:longer": (HALF, OTHERS),
    "loss-change:relu": (HALF, OTHERS),
    "data-share:first-10": ([4, 40], OTHERS),
    "dimension:size-x16": (HALF, ["retrieval"]),
    "dimension:extra-8": (HALF, ["retrieval"]),
    "capacity:width-512": (HALF, ["retrieval"]),
    "bias": (None, ["retrieval", "groups", "backfilling"]),
    "class-range": (HALF, ["retrieval", "groups"]),
    "unseen:unseen": ([10, 20], ["retrieval", "backfilling"]),
    "disjoint": ([20, 20], ["retrieval"]),
    "out-of-domain:away": ([10, 20], ["retrieval"]),
    "market1501": ([12, 28], ["reidentification"]),
    "backfill": ([12, 40], ["retrieval", "identification", "backfilling"]),
    "sequential-six": ([20, 24, 28, 32, 36, 40], ["retrieval"]),
    "sequential-identities": ([10, 20, 40], OTHERS),
    "sequential-mixed": ([12, 28, 40], OTHERS),
    "sequential-architectures": ([40, 40, 40, 40], ["retrieval"]),
}
KEYS = {
    "retrieval": "cmc_at_5", "reidentification": "minp", "groups": "group_gap",
    "verification": "tar_at_far_1e-1", "identification": "tpir_at_fpir_1e-1",
}  # fmt: skip


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory):
    """Records of a protocol; all runs share a store, so that each model is trained once."""
    folder = tmp_path_factory.mktemp("protocols")

    def of(name):
        return run(
            ["independent", "procrustes"], name, "toy", store=folder / "store",
            out=folder / "out", compute=Compute("cpu"),
            settings={"recipe.epochs": 1, "recipe.transform_steps": 2},
        )  # fmt: skip

    return of


SETTINGS = [
    each.id for name in protocol_files() if name != "modality"  # its cases are its own: beside
    for each in expand(load_protocol(name))
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_carried_out(carried_out, name):
    seen, tasks = RUNS.get(name, (None, None))
    independent, mapped = carried_out(name)
    assert independent.status == mapped.status == "done"
    assert old_model(mapped) == old_model(independent) is not None
    about = mapped.as_json()["dataset"]["generations"]
    assert list(about) == [g.name for g in load_protocol(name).generations]
    if seen is not None:
        assert [about[g]["classes"] for g in about] == seen
    pairs = [f"{n}/{o}" for o, n in itertools.combinations_with_replacement(about, 2)]
    assert {*pairs} <= set(mapped.scores)
    assert {p for p in pairs if len({*p.split("/")}) == 1} <= set(independent.scores)
    if tasks is None:
        return
    expected = {KEYS[task] for task in tasks if task in KEYS}
    if "reidentification" in tasks:  # it names its scores as retrieval does
        expected.add(KEYS["retrieval"])
    for case in pairs:
        assert set(KEYS.values()) & set(mapped.scores[case]) == expected, case
    assert ("backfilling" in tasks) == bool(mapped.orders)


@pytest.mark.slow
def test_the_evaluated_items_are_the_protocols(carried_out):
    """20 classes of 8 items are evaluated; half of them are in a group."""
    counts = {name: carried_out(name)[1].counts["new/old"]["n_query"] for name in (
        "arch-change:transformer", "disjoint", "out-of-domain:away", "class-range",
        "unseen:unseen",
    )}  # fmt: skip
    assert counts == {
        "arch-change:transformer": 160, "disjoint": 80, "out-of-domain:away": 80,
        "class-range": 320, "unseen:unseen": 160,
    }  # fmt: skip


@pytest.mark.slow
def test_a_thinned_group_keeps_a_tenth_of_its_classes(carried_out):
    about = carried_out("bias")[0].as_json()["dataset"]["generations"]
    assert 10 < about["old"]["classes"] < 20 and about["new"]["classes"] == 40
    assert about["old"]["images"] == 8 * about["old"]["classes"]
