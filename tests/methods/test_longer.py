"""A new embedding longer than the old one, through the harness (BCT section 3.6)."""

import pytest
from support.toy_runs import ONE_EPOCH, run_toy

LONGER = ["bct", "bct:distill", "bct-extra", "lwf", "unibct", "bt2", "bct-linear", "matryoshka-bct"]
SAME = ["l2", "mixbct", "contrast", "nccl", "advbct", "bct:old", "asymmetric", "csd"]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The old and new data of open-class share no class; the old classifier is kept."""
    # Of 16 old dimensions phi_5 mixes 12: with the default of 32 there would be none to mix.
    settings = {
        "new.dim": 24, "protocol.old_head": "kept", "bt2.extra": 4, "bct-extra.extra": 4,
        "matryoshka-bct.extra": 4, "data.classes": 16,
    }  # fmt: skip
    return run_toy([*LONGER, *SAME], tmp_path_factory.mktemp("run"), **settings, **ONE_EPOCH)


@pytest.mark.parametrize("name", LONGER)
def test_the_beginning_is_compared(records, name):
    record = records[name]
    assert record.status == "done", record.reason
    for case in ("new/old", "new/new"):
        assert record.scores[case]["map"] > 0
    assert record.scores["old/old"] == records["independent"].scores["old/old"]


@pytest.mark.parametrize("name", SAME)
def test_refused(records, name):
    record = records[name]
    assert record.status == "not-applicable"
    wanted = "knows no class" if name == "bct:old" else "embeddings of one size, got 16 and 24"
    assert wanted in record.reason
