"""Work of stages: parameters and inputs by role, moved to folders; titles that are read back."""

from pathlib import Path

import pytest
from support.made_stages import of_folders

from benchmark.harness.requests import make_request
from benchmark.harness.work import FirstWork, WorkOnData
from benchmark.records.stage_titles import StageTitle

ROLES = ("vectors0", "vectors1", "vectors2", "update2", "direct0-2", "side1", "head_new")


def test_inputs_have_a_role_by_generation() -> None:
    work = of_folders({role: Path(role) for role in ROLES}, generations=["a", "b", "c"])
    assert work.inputs() == {"data": Path(), **{role: Path(role) for role in ROLES}}
    moved = work.at(lambda path: path / "there")
    assert moved.inputs() == {role: path / "there" for role, path in work.inputs().items()}
    assert moved.params() == work.params()


def test_frozen_features_are_by_backbone_and_view() -> None:
    work = WorkOnData(data="d", frozen=(("a", "b"), ("c",)))
    assert work.inputs() == {"data": "d", "frozen0.0": "a", "frozen0.1": "b", "frozen1.0": "c"}


def test_parameters_are_what_determines_the_output() -> None:
    usual = {"spec": {}, "recipe": {"epochs": 2}, "splits": [], "seed": 3, "old_head": "kept"}
    own = {"method": "bct", "config": {}, "source": "s", "distance": "l2"}
    work = FirstWork(data="d", where="x.yaml: old", weights="w.safetensors", **usual, **own)
    assert work.params() == usual | own
    assert "narrow" not in of_folders({}, generations=()).params()
    assert of_folders({}, generations=(), narrow={"ranges": 2}).params()["narrow"] == {"ranges": 2}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("dataset toy, another domain", StageTitle("dataset", "toy, another domain")),
        ("train side-information mixup of old (seed 12)",
         StageTitle("train", "mixup of old", 12, side=True)),
        ("embed test images: bct, new", StageTitle("embed", "test images: bct, new")),
        ("evaluate fct:simclr (seed 0)", StageTitle("evaluate", "fct:simclr", 0)),
    ],
)  # fmt: skip
def test_titles_are_read_as_they_were_made(text, title) -> None:
    assert (str(title), StageTitle.parse(text)) == (text, title)


@pytest.mark.parametrize("protocol", ["sequential", "side-information", "open-class"])
def test_every_title_of_a_plan_is_read_back(protocol) -> None:
    stages = make_request(["bct", "d-simplex", "fct:simclr-other"], protocol, "toy").plan().stages
    assert [StageTitle.parse(stage.title) for stage in stages] == [s.about for s in stages]


def test_pictures_are_drawn_of_the_seed_whose_records_keep_them():
    request = make_request(["bct"], "extended-class", "toy", seeds=[0, 1])
    plan = request.plan(["bct"], [0, 1])
    assert {each.evaluation.work.drawn for each in plan.results if each.seed == 0} == {True}
    assert {each.evaluation.work.drawn for each in plan.results if each.seed == 1} == {False}
