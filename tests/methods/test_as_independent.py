"""Methods that equal the independent model to rounding, through the real loop and harness."""

import dataclasses

import pytest
import torch
from support.objects import changed
from support.toy_runs import run_toy
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from benchmark.config import registry
from benchmark.contract.bases import CompatibleTraining
from benchmark.contract.method import Generation
from benchmark.training.embedding import train_embedding
from methods.advbct import AdvBCT
from methods.bct import BCT
from methods.bct_extra import BCTExtra
from methods.bt2 import BT2
from methods.contrast import Contrast
from methods.l2 import L2
from methods.lwf import LwF
from methods.matryoshka_bct import MatryoshkaBCT
from methods.mixbct import MixBCT
from methods.nccl import NCCL
from methods.unibct import UniBCT

# Those that must equal it, and that each of them would differ if its idea were at work.
OFF = {
    "bct": BCT(weight=0.0),
    "lwf": LwF(weight=0.0),
    "l2": L2(weight=0.0),
    "l2, denoised": L2(weight=0.0, drop=0.1),
    "contrast": Contrast(weight=0.0),
    "contrast, top 10": Contrast(weight=0.0, tau=0.01, hardest=10),
    "nccl": NCCL(features=0.0, logits=0.0),
    "unibct": UniBCT(weight=0.0),
    "advbct": AdvBCT(adversarial=0.0, border=0.0),
    "mixbct, none": MixBCT(ratio=0.0),
    "mixbct, rounds to none": MixBCT(ratio=0.06),
}
ON = {
    "bct": BCT(),
    "lwf": LwF(),
    "l2": L2(),
    "mixbct": MixBCT(),
    "contrast": Contrast(),
    "nccl": NCCL(size=20),
    # Once, at the start: nothing after a kill makes prototypes that were not kept anew.
    "unibct": UniBCT(warmup=0.0, refinements=1),
    "advbct": AdvBCT(),
}
# Those that have tests of their own for the rest.
OTHERS = {"bct-extra": BCTExtra(extra=3), "bt2": BT2(extra=3)}


def update_of(method, toy_job, folder=None):
    """The update of a method on toy images, with all that it needs."""
    job = toy_job(folder, kept="old_head" in method.needs)
    if "independent" not in method.needs:
        return job
    teacher = Generation(job.new_model()[0].eval(), None, torch.zeros(len(job.data), 8))
    return changed(job, independent=teacher)


def train_alone(job):
    encoder, head = job.new_model()
    train_embedding(encoder, head, job.data, job.trainer)
    return encoder.state_dict(), head.state_dict()


@pytest.fixture(scope="module")
def alone(toy_job):
    return train_alone(toy_job())


def watched(train, job):
    """Learning rate, momentum and weight decay of each step, and what the training leaves."""
    steps = []

    def note(optimizer, *_):
        names = ("lr", "momentum", "weight_decay")
        steps.append([[group[name] for name in names] for group in optimizer.param_groups])

    handle = register_optimizer_step_pre_hook(note)
    try:
        return steps, train(job)
    finally:
        handle.remove()


@pytest.fixture(scope="module")
def baseline(toy_job):
    return watched(train_alone, toy_job())[0]


def equal(update, alone):
    """Bit for bit: of the same operations done twice."""
    return all(torch.equal(v, wanted) for v, wanted in weights(update, alone))


def weights(update, alone):
    for part, wanted in zip((update.model, update.head), alone, strict=True):
        yield from ((v, wanted[k]) for k, v in part.state_dict().items())


# A term that is switched off may leave other products behind, and a processor may round these
# otherwise. Weights that begin a last bit (6e-8 of themselves) apart end 1.2e-6 apart after these
# eight steps; a term at work moves one by 0.3 at least.
ROUNDING, AT_WORK = 1e-4, 0.03


@pytest.mark.parametrize("name", OFF)
def test_switched_off(name, toy_job, alone):
    for got, wanted in weights(OFF[name].update(update_of(OFF[name], toy_job)), alone):
        torch.testing.assert_close(got, wanted, atol=ROUNDING, rtol=0)


# Another method, with what is added to it left out.
SAME = {
    "bct-extra": (BCTExtra(extra=0), BCT()),
    "bct-extra:old": (BCTExtra(extra=0, unknown="old"), BCT(unknown="old")),
    "bct-extra:distill": (BCTExtra(extra=0, unknown="distill"), BCT(unknown="distill")),
    "matryoshka-bct": (MatryoshkaBCT(extra=0, halvings=0), BCT()),
}


@pytest.mark.parametrize("name", SAME)
def test_with_nothing_added(name, toy_job):
    made, plain = (each.update(update_of(each, toy_job)) for each in SAME[name])
    for got, wanted in weights(made, (plain.model.state_dict(), plain.head.state_dict())):
        torch.testing.assert_close(got, wanted, atol=ROUNDING, rtol=0)
    assert made.query_view is None and made.convert is None


@pytest.mark.parametrize("name", ON)
def test_switched_on(name, toy_job, alone):
    made = ON[name].update(update_of(ON[name], toy_job))
    apart = max((got - wanted).abs().max().item() for got, wanted in weights(made, alone))
    assert apart > AT_WORK


@pytest.mark.parametrize("name", [*ON, *OTHERS])
def test_trained_as_the_independent_model(name, toy_job, baseline):
    """Traps: a classifier of more classes, or another schedule, than those it is compared with."""
    method = {**ON, **OTHERS}[name]
    job = update_of(method, toy_job)
    steps, update = watched(method.update, job)
    assert torch.equal(update.head.classes, job.data.classes)
    assert len(update.head.weight) == len(job.data.classes)
    assert steps == baseline
    recipe = job.trainer.recipe
    assert len(steps) == recipe.epochs * (len(job.data) // recipe.batch_size)


@pytest.mark.parametrize("name", [*ON, *OTHERS])
def test_a_killed_update_ends_the_same(name, toy_job, tmp_path):
    method = {**ON, **OTHERS}[name]
    wanted = method.update(update_of(method, toy_job))

    class Dies(type(method)):
        def refresh(self, state, job, epoch):
            if epoch.number == 1:
                raise KeyboardInterrupt
            super().refresh(state, job, epoch)

    with pytest.raises(KeyboardInterrupt):
        Dies(**dataclasses.asdict(method)).update(update_of(method, toy_job, tmp_path))
    got = method.update(update_of(method, toy_job, tmp_path))
    assert equal(got, (wanted.model.state_dict(), wanted.head.state_dict()))


@dataclasses.dataclass(frozen=True)
class WithLayers(CompatibleTraining[nn.Module]):
    """Something with weights of its own that train along."""

    def prepare(self, job):
        return nn.Linear(8, 8)

    def loss(self, batch, head, state):
        return head(batch.new, batch.labels) + (state(batch.new) - batch.old).square().mean()


def test_what_prepare_draws_comes_from_the_seed(toy_job):
    states, made = [], []
    for seed, stray in ((5, 1), (5, 2), (6, 1)):
        torch.manual_seed(stray)

        class Kept(WithLayers):
            def prepare(self, job):
                states.append(super().prepare(job))
                states[-1].first = states[-1].weight.detach().clone()
                return states[-1]

        made.append(Kept().update(toy_job(seed=seed)))
    assert torch.equal(states[0].first, states[1].first)
    assert not torch.equal(states[0].first, states[2].first)
    assert not torch.equal(states[0].first, states[0].weight), "it trains along"
    assert equal(made[0], (made[1].model.state_dict(), made[1].head.state_dict()))


# A loss, and a mixture: of the harness, which hands the same job to every training.
HARNESS = {"bct": "bct.weight", "mixbct": "mixbct.ratio"}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return run_toy(
        [*HARNESS], tmp_path_factory.mktemp("run"), **dict.fromkeys(HARNESS.values(), 0.0)
    )


@pytest.mark.parametrize("name", HARNESS)
def test_switched_off_in_the_harness(records, name):
    for case, scores in records["independent"].scores.items():
        if case == "old/old":  # one model, embedded once
            assert records[name].scores[case] == scores
        # A last bit of a weight may turn a near tie round, one of 96 queries or two.
        assert records[name].scores[case] == pytest.approx(scores, abs=2.5 / 96), case


def test_every_method_declares_itself():
    for name in registry.method_files():
        made = registry.method(name)
        assert made.paper and (made.changes or name in ("independent", "keep-old", "random"))
        for variant in made.variants:
            registry.method(f"{name}:{variant}")
