"""Refusals of a track, and the plan of every protocol on every track without its data."""

import re

import pytest
from support.command import call
from support.protocol_files import NEW, OLD, write

from benchmark.config import registry
from benchmark.config.loading import load_protocol
from benchmark.config.overrides import expand
from benchmark.config.split_sizes import size
from benchmark.errors import BenchError
from benchmark.harness.requests import make_request as request


def test_a_group_that_is_not_taken_cannot_become_thinner(tmp_path):
    def thin(groups):
        old = {"name": "old", "groups": groups, "thinned": {"scarce": 0.5}}
        return write(tmp_path, generations=[old, NEW])

    assert request(["bct"], thin(["home"]), "glyphs").setup, "Greek is among the letters"
    assert request(["bct"], thin([]), "toy").setup
    with pytest.raises(BenchError, match=r"generations\[0\]: thinned.scarce: expected .* got also"):
        request(["bct"], thin(["home"]), "toy")


@pytest.mark.parametrize("at", [0, 1])
def test_a_generation_without_data_is_no_plan(at, tmp_path):
    empty = {"classes": [0, 0.0001]}
    both = [{"name": n, **(empty if i == at else {})} for i, n in enumerate(("old", "new"))]
    with pytest.raises(BenchError) as caught:
        request(["bct"], write(tmp_path, generations=both), "imagenet", without_data=True)
    where = f"mine.yaml: generations[{at}] '{'new' if at else 'old'}': classes [0, 0.0001]"
    line = str(caught.value)
    assert line.startswith(where) and "1,000: expected at least one" in line
    for track in ("imagenet", "glyphs", "toy"):
        with pytest.raises(BenchError, match=r"extended-class.yaml: generations\[0\] 'old': cl"):
            request(["bct"], "extended-class", track, without_data=True,
                    settings={"old.classes": [0, 0.0001]})  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generations": [{**OLD, "images": [0, 0.01]}, NEW]},
         r"generations\[0\] 'old': images \[0, 0.01\] of each class's 24: .* got none on track"),
        ({"generations": [{**OLD, "images": [0, 0.01], "groups": ["scarce"]}, NEW]},
         r"generations\[0\] 'old': images \[0, 0.01\] of each class's 24: expected at least one"),
        ({"generations": [{**OLD, "groups": ["home"], "classes": [0, 0.0001]}, NEW]},
         r"generations\[0\] 'old': classes \[0, 0.0001\] of 1,300: expected at least one"),
        ({"generations": [{**OLD, "classes": [0, 0.001]}, NEW]},
         r"generations\[0\] 'old': classes \[0, 0.001\] of 1,300: expected two classes or more"),
        ({"generations": [OLD, {**NEW, "groups": ["scarce"], "thinned": {"scarce": 0.0001}}]},
         r"generations\[1\] 'new': thinned to 0.01 % of scarce: expected at least one class"),
        ({"evaluation": {"classes": [0, 0.5]}},
         r"evaluation: classes \[0, 0.5\] of those trained on: expected .* 'test' .* got none"),
        ({"evaluation": {"ranges": 4}}, r"evaluation: ranges 4 of those trained on: expected"),
        ({"evaluation": {"part": "seen", "classes": [0, 0.0001]}},
         r"evaluation: classes \[0, 0.0001\] of 1,300: expected at least one, got none on track"),
    ],
)  # fmt: skip
def test_what_surely_has_nothing_is_no_plan(tmp_path, changes, words):
    with pytest.raises(BenchError, match=rf"^mine.yaml: {words}"):
        request(["bct"], write(tmp_path, **changes), "glyphs")


def test_re_identification_data_rules_plain_retrieval_out(tmp_path):
    with pytest.raises(BenchError, match=r"tasks\[0\]: dataset market1501 .* rules retrieval out"):
        request(["bct"], write(tmp_path), "market1501", without_data=True)
    path = write(tmp_path, tasks=["reidentification"])
    assert request(["bct"], path, "market1501", without_data=True).setup


TASKS = [name for name in registry.tasks() if name != "reidentification"]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_but_one_is_ruled_out_where_there_is_junk(task, tmp_path):
    """Junk has one label: to others it is a class, and one person of many templates."""
    texts = [{"name": "old", "queries": "texts"}, NEW] if task == "text_retrieval" else [OLD, NEW]
    beside = [task, "identification"] if task == "backfilling" else [task]

    def asked(part):
        return write(tmp_path, generations=texts, tasks=beside, evaluation={"part": part})

    assert request(["bct"], asked("test"), "glyphs").setup
    words = rf"mine.yaml: tasks\[0\]: .* rules {task} out on its evaluation set 'across': "
    with pytest.raises(BenchError, match=words):
        request(["bct"], asked("across"), "glyphs")
    with pytest.raises(BenchError, match=r"market1501.yaml: tasks\[0\]: .* rules"):
        request(["bct"], "market1501", "glyphs", settings={"protocol.tasks": ["retrieval"]})
    assert request(["bct"], "market1501", "glyphs").setup.part == "across"


# --- every protocol on every track

METHODS = ["independent", "bct"]
PROTOCOLS = [s.id for name in registry.protocol_files() for s in expand(load_protocol(name))]
REASONS = {
    "no templates": r"tasks\[\d+\]: \w+ needs templates, which dataset",
    "no cameras": r"tasks\[\d+\]: reidentification needs cameras, which dataset",
    "no texts": r"tasks\[\d+\]: text_retrieval needs texts, which dataset",
    "no group": r"track [\w-]+ has no group 'home'; it names none|has no group '\w+'",
    "no groups": r"has no groups$|tasks\[\d+\]: groups needs groups, which dataset",
    "no set": r"evaluation: part: dataset \w+ of track [\w-]+ has no evaluation set 'seen'",
    "no model": r"model: track [\w-]+ has no model '[\w-]+'",
    "ruled out": r"tasks\[\d+\]: dataset \w+ of track [\w-]+ rules \w+ out on its evaluation set ",
}


def outcome(protocol, track):
    """``plan``, or the reason why there is none."""
    try:
        asked = request(METHODS, protocol, track, without_data=True)
        plan = asked.plan()
    except BenchError as error:
        text = str(error)
        assert "\n" not in text and re.match(r"[\w-]+\.yaml: ", text), text
        found = [name for name, pattern in REASONS.items() if re.search(pattern, text)]
        assert len(found) == 1, text
        return found[0]
    assert len(plan.results) == len(METHODS)
    assert any(result.evaluation is not None for result in plan.results[1:])
    assert all(result.reason for result in plan.results if result.evaluation is None)
    return "plan"


@pytest.fixture(scope="module")
def matrix():
    # Tracks that change glyphs serve what it serves.
    return {(p, t): outcome(p, t) for p in PROTOCOLS for t in UNSUITED}


DOMAINS = dict.fromkeys(["out-of-domain", "disjoint"], "no group")
NO_GROUPS = DOMAINS | {"bias": "no group"}
NO_SEEN = dict.fromkeys(["unseen", "class-range"], "no set")
PICTURES = NO_GROUPS | {"market1501": "no cameras"}
UNSUITED = {
    "toy": {},
    "glyphs": {},
    "omniglot": NO_GROUPS | {"modality": "no texts"},
    "cifar100": PICTURES,
    "imagenet": PICTURES,
    "places365": PICTURES,
    "vggface2": DOMAINS | NO_SEEN | {"market1501": "no cameras", "modality": "no texts"},
    "ms1mv3-ijbc": PICTURES | NO_SEEN | {"modality": "no texts"},
    "market1501": NO_GROUPS
    | dict.fromkeys(["ijbc-1v1", "ijbc-1vn"], "no templates")
    | dict.fromkeys(["backfill", "modality"], "ruled out")
    | NO_SEEN
    | dict.fromkeys(["sequential-architectures", "arch-change:transformer"], "no model"),
}
"""Track -> protocol or setting -> why it does not run there. All else does."""


@pytest.mark.parametrize("track", UNSUITED)
def test_what_runs_where(matrix, track):
    reasons = UNSUITED[track]
    wanted = {p: reasons.get(p, reasons.get(p.partition(":")[0], "plan")) for p in PROTOCOLS}
    assert {p: matrix[p, track] for p in PROTOCOLS} == wanted


def planned(matrix, track):
    """The protocols that run on a track, as they are there."""
    for name in PROTOCOLS:
        if matrix[name, track] == "plan":
            yield request(["bct"], name, track, without_data=True).setup.protocol


def test_items_are_ranked_only_where_that_means_something(matrix):
    """Market-1501 has cameras and junk; IJB-C's 469,375 images are for templates alone."""
    for protocol in planned(matrix, "market1501"):
        assert protocol.tasks == ("reidentification",), protocol.id
    for protocol in planned(matrix, "ms1mv3-ijbc"):
        assert not {"retrieval", "reidentification"} & {*protocol.tasks}, protocol.id
        assert {"verification", "identification"} & {*protocol.tasks}, protocol.id


def generations(protocol, track):
    """Of each generation its backbone and head, and how many classes it sees."""
    setup = request(["independent"], protocol, track, without_data=True).setup
    facts = dict(setup.track.facts)
    seen = [size(g, facts).classes for g in setup.protocol.generations]
    return [(m.backbone, m.head, n) for m, n in zip(setup.models, seen, strict=True)], setup


def test_four_architectures_of_bt2():
    """Section 4.8: AlexNet, VGG, ResNet, ViT; the papers' optimisers."""
    found, setup = generations("sequential-architectures", "imagenet")
    names = ["timm:vgg13_bn", "timm:resnet50", "timm:vit_base_patch16_224"]
    assert found == [(name, "softmax", 1000) for name in ["torchvision:alexnet", *names]]
    recipes = [setup.recipe(i) for i in range(4)]
    assert [(r.optimizer, r.lr, r.batch_size) for r in recipes[:2]] == [
        ("adam", 1e-3, 2048), ("adam", 1e-3, 1024),
    ]  # fmt: skip
    assert [m.dim for m in setup.models] == [128] * 4
    assert [setup.recipe(i).epochs for i in range(4)] == [100, 100, 100, 25]
    found, setup = generations("sequential-architectures", "ms1mv3-ijbc")
    assert [head for _, head, _ in found] == ["arcface"] * 4
    assert found[3][0] == "vit-s" and setup.recipe(3).optimizer == "sgd"  # MixBCT's, as all others


def test_architectures_behind_frozen_embedders():
    """Vectors of tokens, transformers of 3, 6 and 12 layers; photographs have one family."""
    found, setup = generations("sequential-architectures", "banking77")
    names = ["wordllama-256", "minilm-l3", "minilm-l6", "bge-small"]
    assert found == [(f"text:{name}", "arcface", 77) for name in names]
    assert all(model.frozen and model.dim == 128 for model in setup.models)
    found, _ = generations("arch-change:transformer", "banking77")
    assert [name for name, *_ in found] == ["text:wordllama-256", "text:bge-small"]
    found, _ = generations("arch-change:deeper", "grocery")
    assert [name[-5:] for name, *_ in found] == ["lite0", "lite2"]
    for name in ("sequential-architectures", "arch-change:family", "arch-change:transformer"):
        with pytest.raises(BenchError, match="track grocery has no model '"):
            generations(name, "grocery")


def test_everything_changes_as_in_mixbct():
    """Appendix C.4, Table 9: the top 30, 70 and 100 % of the people."""
    found, setup = generations("sequential-mixed", "ms1mv3-ijbc")
    assert found == [
        ("iresnet-18", "softmax", 28029), ("iresnet-18", "arcface", 65402),
        ("iresnet-50", "arcface", 93431),
    ]  # fmt: skip
    assert (setup.protocol.order, setup.protocol.old_head) == ("dataset", "discarded")
    assert setup.protocol.tasks == ("verification", "identification")
    found, setup = generations("sequential-mixed", "imagenet")
    assert [n for *_, n in found] == [300, 700, 1000] and setup.protocol.order == "seeded"
    assert [(b, h) for b, h, _ in found] == [
        ("timm:resnet18", "softmax"), ("timm:resnet18", "arcface"), ("timm:resnet50", "arcface"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("track", "protocol", "classes"),
    [
        ("ms1mv3-ijbc", "open-class", [28_029, 65_402]),  # MixBCT Table 1
        ("ms1mv3-ijbc", "extended-class", [28_029, 93_431]),
        ("places365", "extended-class", [182, 365]),  # Places-182, FCT section 4.1
        ("places365", "dimension:size-x1", [182, 365]),
        ("vggface2", "extended-class", [863, 8_631]),  # VGGFace2-863
        ("vggface2", "data-share:first-10", [863, 8_631]),
        ("vggface2", "dimension:size-x1", [863, 8_631]),
        ("imagenet", "extended-class", [500, 1_000]),  # ImageNet-500
        ("imagenet", "data-share:first-50", [500, 1_000]),
        ("imagenet", "sequential", [250, 500, 1_000]),  # FCT section 4.4
        ("imagenet", "unseen:seen", [250, 500]),  # FastFill appendix C.3
        ("cifar100", "extended-class", [50, 100]),
        ("cifar100", "sequential-six", [50, 60, 70, 80, 90, 100]),  # FCT appendix H
        ("market1501", "data-share:first-50", [376, 751]),
    ],
)
def test_published_numbers_of_classes(track, protocol, classes):
    found, setup = generations(protocol, track)
    assert [n for *_, n in found] == classes and setup.protocol.order == "dataset"


def test_the_command_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    words = ("run", "-m", "bct", "-t", "imagenet", "-p")
    code, out, _ = call(*words, "extended-class", "--dry-run", "--store", tmp_path)
    assert code == 0
    assert "500 of 1,000 classes, about 640,584 of 1,281,167 images" in out
    assert "to do   train old model (seed 0)\n" in out and "give --data-root" in out
    code, _, err = call(*words, "market1501", "--dry-run")
    needs = "bench: market1501.yaml: tasks[0]: reidentification needs cameras"
    assert code == 2 and err.startswith(needs)
    assert "needs --data-root" in call(*words, "extended-class")[2]
