"""Methods that make nothing of the old classifier: shared trainings, and nothing left unread."""

from __future__ import annotations

import pytest
from support.toy_runs import ONE_EPOCH, run_toy

from benchmark.config import registry
from benchmark.harness.planner import make_plan
from benchmark.harness.requests import make_request
from benchmark.models.heads import cosine_scale

KEPT = {"protocol.old_head": "kept", "data.classes": 16}
UNREAD = [m for m in registry.method_files() if not registry.method(m).reads_old_head]


def updates(protocol: str, method: str) -> set[str]:
    request = make_request([method], protocol, "toy", seeds=[0])
    plan = make_plan(request.setup, [method], [0])
    result = next(r for r in plan.results if r.label == method)
    return {stage.name for stage in result.updates}


@pytest.mark.parametrize(("method", "shared"), [("l2", True), ("mixbct", True), ("bct", False)])
def test_a_training_is_shared_with_protocols_that_discard_the_old_classifier(
    method, shared
) -> None:
    assert (updates("extended-class", method) == updates("backfill", method)) == shared


def test_who_says_so() -> None:
    assert set(UNREAD) >= {"fct", "l2", "linear", "mixbct", "procrustes"}
    assert not {"bct", "bct-extra", "bt2", "fastfill", "lwf", "nccl"} & set(UNREAD)


@pytest.mark.parametrize(("head", "second"), [("softmax", "kept"), ("arcface", "discarded")])
def test_a_map_in_a_chain_asks_if_old_embeddings_have_lengths(head, second) -> None:
    """FCT normalises what comes in after an update that normalised what it gave (D.7)."""
    heads = {f"{model}.head": head for model in ("v1", "v2", "v3")}
    request = make_request(["fct"], "sequential", "toy", seeds=[0], settings=heads)
    plan = make_plan(request.setup, ["fct"], [0])
    result = next(r for r in plan.results if r.label == "fct")
    found = {stage.title: stage.work.old_head for stage in result.updates}
    assert found == {"fit fct v1-v2 (seed 0)": "discarded", "fit fct v2-v3 (seed 0)": second}


# A training and a closed form here, every other one among the slow tests.
FAST = ("l2", "procrustes")
EACH = [m if m in FAST else pytest.param(m, marks=pytest.mark.slow) for m in UNREAD]


@pytest.mark.parametrize("method", EACH)
def test_the_old_classifier_changes_nothing(method, tmp_path, monkeypatch) -> None:
    spared = run_toy([method], tmp_path, **ONE_EPOCH, **KEPT)[method]
    kind = type(registry.method(method))
    monkeypatch.setattr(kind, "reads_old_head", True)
    given = run_toy([method], tmp_path / "given", **ONE_EPOCH, **KEPT)[method]
    assert given.scores == spared.scores


@pytest.mark.parametrize(("head", "scale"), [("softmax", None), ("arcface", 16.0)])
def test_a_softmax_classifier_has_no_scale_of_its_own(head, scale, tmp_path, monkeypatch) -> None:
    """Cosines to class means are scaled by the classes there, not by the scale of margin heads."""
    kind, seen = type(registry.method("bct")), []
    prepare = kind.prepare
    monkeypatch.setattr(kind, "prepare", lambda *of: seen.append(prepare(*of)) or seen[-1])
    run_toy(["bct"], tmp_path, **ONE_EPOCH, **{"new.head": head, "data.classes": 16})
    (classifier,) = seen
    assert classifier.scale == pytest.approx(scale or cosine_scale(len(classifier.weight)))


def test_stages_whose_cosines_a_softmax_classifier_scales_have_names_of_their_own() -> None:
    def cosines(method: str, **settings: object) -> list[object]:
        request = make_request([method], "open-class", "toy", seeds=[0], settings=settings)
        plan = make_plan(request.setup, [method], [0])
        result = next(r for r in plan.results if r.label == method)
        return [stage.work.params().get("cosines", False) for stage in result.updates]

    for method in ("bct", "bct-linear", "bt2", "matryoshka-bct", "oca", "unibct"):
        assert cosines(method, **{"new.head": "softmax"}) == [True], method
        assert cosines(method) == [False], method
    for method in ("l2", "mixbct", "contrast", "fct"):
        assert cosines(method, **{"new.head": "softmax"}) == [False], method
