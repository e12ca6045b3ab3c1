"""Records that are compared with each other."""

from support.records import make_record

from benchmark.records.record import AdapterVersion, Run
from benchmark.records.stage_titles import old_model
from benchmark.report.comparable import comparable, mixed_settings, of_another_old_model
from benchmark.report.notes import notes
from benchmark.report.select import unranked

HERE, THERE = (
    {"cpu": cpu, "cpu_model": "family 6, model 1", "instructions": "avx512f"}
    for cpu in ("AMD", "Intel")
)


def names(records) -> list[str]:
    return [record.method for record in records]


def test_of_the_newest_version() -> None:
    records = [make_record("bct", 0.5), make_record("fct", 0.5, track_version=0)]
    assert names(comparable(records)) == ["bct"]
    assert comparable([]) == []


def test_of_one_old_model_a_seed() -> None:
    """Independent says which, whatever most have; without it most do."""
    others = [make_record(method, 0.5, lower=0.4) for method in ("bct", "l2", "bt2")]
    own = [make_record(method, 0.5, lower=0.3) for method in ("fct", "lce")]
    assert names(comparable([*others, *own])) == ["bct", "l2", "bt2"]
    alone = make_record("independent", 0.1, lower=0.3)
    assert names(comparable([*others, *own, alone])) == ["fct", "lce", "independent"]
    assert comparable([others[0], own[0]]) == [], "nobody knows which"
    elsewhere = make_record("bct", 0.5, seed=1, lower=0.9)
    assert names(comparable([*own, alone, elsewhere])) == ["fct", "lce", "independent", "bct"]


def test_of_one_data_set_a_seed() -> None:
    """Pictures that changed between two runs: those of independent count."""
    made = [make_record(method, 0.5) for method in ("independent", "bct", "l2")]
    other = made[1].dataset.model_copy(update={"fingerprint": "of other pictures"})
    made[1] = made[1].model_copy(update={"dataset": other})
    assert names(comparable(made)) == ["independent", "l2"]
    assert names(of_another_old_model(made)) == ["bct"]


def test_a_first_record_of_other_data_flags_itself_alone() -> None:
    """One old model and other data: a name before `independent` decides nothing."""
    made = [make_record(method, 0.5) for method in ("bct", "fct", "independent", "l2")]
    other = made[0].dataset.model_copy(update={"fingerprint": "of other pictures"})
    made[0] = made[0].model_copy(update={"dataset": other})
    assert names(of_another_old_model(made)) == ["bct"]
    assert names(of_another_old_model([*made[:2], made[3]])) == ["bct"], "most others"
    assert unranked(made) == {"bct": "another old model or other data"}


def test_changes_may_train_another_old_model() -> None:
    changed = make_record("bct", 0.5, lower=0.6, changed={"recipe.length": 2})
    assert len(comparable([make_record("independent", 0.1, lower=0.4), changed])) == 2
    other = make_record("l2", 0.5, lower=0.7, changed={"recipe.length": 2})
    assert names(of_another_old_model([changed, changed, other])) == ["l2"]


def test_seeds_of_other_networks_are_not_compared() -> None:
    """A track's networks changed, and its version did not: the last record says which count."""
    first, second = (make_record("independent", 0.1, seed=seed) for seed in (0, 1))
    spec = next(iter(first.models.values()))
    wide = {"old": spec.model_copy(update={"dim": 2 * spec.dim})}
    earlier = first.model_copy(update={"models": wide, "run": Run(finished="2026-11-01")})
    later = second.model_copy(update={"run": Run(finished="2026-11-02")})
    assert comparable([later, earlier]) == [later]
    assert of_another_old_model([earlier, later]) == [earlier]


def test_old_models_are_compared_by_hash_and_not_by_scores() -> None:
    """Another processor's embeddings have other last bits, and so the same model other scores."""
    alone = make_record("independent", 0.1, lower=0.4, old="a", environment=HERE)
    elsewhere = make_record("bct", 0.5, lower=0.4001, old="a", environment=THERE)
    another = make_record("l2", 0.5, lower=0.4, old="b", environment=HERE)
    assert names(comparable([alone, elsewhere, another])) == ["independent", "bct"]
    assert names(of_another_old_model([alone, elsewhere, another])) == ["l2"]
    silent = make_record("bt2", 0.5, lower=0.4, checkpoints={})
    assert names(of_another_old_model([alone, silent])) == ["bt2"]


def test_an_old_model_of_another_processor_is_the_same_by_its_scores() -> None:
    """AMD's and Intel's products differ in their last digits, and so do the weights' hashes."""
    alone = make_record("independent", 0.1, lower=0.4, old="a", environment=HERE)
    near = make_record("bct", 0.5, lower=0.4004, old="b", environment=THERE)
    far = make_record("l2", 0.5, lower=0.4006, old="c", environment=THERE)
    same = make_record("fct", 0.5, lower=0.4, old="d", environment=HERE)
    assert names(of_another_old_model([alone, near, far, same])) == ["l2", "fct"]
    # A rented machine's "AMD EPYC" may be of any generation, of which earlier records say nothing.
    silent = HERE | {"cpu_model": ""}
    old, new = (each.model_copy(update={"environment": silent}) for each in (alone, same))
    assert not of_another_old_model([old, new])


def test_a_first_generation_of_its_own_is_beside_the_shared_one() -> None:
    shared, own = "train old model (seed 0)", "train d-simplex old (seed 0)"
    alone = make_record("independent", 0.1, checkpoints={shared: "sha256:a"})
    other = make_record("d-simplex", 0.5, checkpoints={own: "sha256:b", shared: "sha256:a"})
    assert names(comparable([alone, other])) == ["independent", "d-simplex"]
    apart = make_record(
        "bct", 0.5, first_seed=7, checkpoints={"train old model (seed 7)": "sha256:c"}
    )
    assert old_model(apart) == "sha256:c"


def test_a_record_may_lack_a_metric() -> None:
    both = make_record("independent", {"cmc_at_1": 0.1, "map": 0.1}, {"cmc_at_1": 0.8, "map": 0.5})
    assert names(comparable([both, make_record("bct", 0.5)])) == ["independent", "bct"]
    assert names(comparable([both, make_record("bct", 0.5, lower=0.4)])) == ["independent"]


def test_what_a_method_refuses_is_kept() -> None:
    refused = make_record("bct", 0.5, reason="not here", bounds={})
    assert len(comparable([make_record("independent", 0.1), refused])) == 2


def test_seeds_of_several_versions_are_told() -> None:
    """A mean over two weights, or two versions of a method's code, is of neither."""
    made = [make_record("bct", 0.5, seed=seed) for seed in range(3)]
    assert mixed_settings([*made, make_record("fct", 0.5)]) == []
    heavy = made[0].model_copy(update={"config": {"weight": 5.0}})
    (line,) = mixed_settings([heavy, *made[1:], make_record("fct", 0.5)])
    assert line.startswith("Warning: seeds of bct are of several versions of its code, or of sev")
    code = AdapterVersion(module="methods.bct", package="compatbench", source="another")
    (line,) = mixed_settings([made[0].model_copy(update={"adapter": code}), *made[1:]])
    assert "seeds of bct" in line
    swept = [r.model_copy(update={"changed": {"bct.weight": 5}}) for r in (heavy, made[1])]
    assert mixed_settings([swept[0], made[0]]) == []


def test_another_budget_is_told() -> None:
    """Of a training among all; of a map's training among methods that have one."""
    made = [make_record(method, 0.5) for method in ("independent", "bct", "fct", "fastfill")]
    recipe = made[0].recipe.model_copy(update={"transform_steps": 90})
    longer = [record.model_copy(update={"recipe": recipe}) for record in made]
    assert mixed_settings([*longer[:2], *made[2:]]) == [], "these train no map"
    (line,) = mixed_settings([*made[:3], longer[3]])
    assert "not all of one recipe (transform_steps 600 and 90)" in line
    recipe = made[0].recipe.model_copy(update={"epochs": 12})
    (line,) = mixed_settings([*made[:3], made[3].model_copy(update={"recipe": recipe})])
    assert "(epochs 1 and 12)" in line
    assert any("epochs 1 and 12" in each for each in notes([
        *made[:3], made[3].model_copy(update={"recipe": recipe}),
    ], ["cmc_at_1"]))  # fmt: skip
