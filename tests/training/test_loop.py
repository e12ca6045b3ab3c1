"""The training loop: what it visits, what it draws, and that a kill changes nothing."""

import io
import math
import os
import socket
from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision
from torch import nn

from benchmark.config.recipes import Recipe
from benchmark.errors import BenchError, RefusedError
from benchmark.training import loop
from benchmark.training.device import Device, device_name, effective_precision
from benchmark.training.loop import Budget, Trainer, _digest, rate


class Recorder(nn.Module):
    """Remembers the rows it was asked for; its loss is a parabola."""

    def __init__(self, value=lambda rows: 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.drop = nn.Dropout(0.5)
        self.batches: list[list[int]] = []
        self.rates: list[float] = []
        self.value = value

    def forward(self, rows):
        assert self.training
        self.batches.append(rows.tolist())
        return self.drop(self.weight).square().sum() * self.value(rows)


def epochs_of(batches, per_epoch):
    return [batches[i : i + per_epoch] for i in range(0, len(batches), per_epoch)]


@given(n=st.integers(1, 50), batch=st.integers(1, 20), steps=st.integers(1, 15))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_what_an_epoch_visits(n, batch, steps):
    module = Recorder()
    trainer = Trainer(Recipe(epochs=1, lr=0.01), 0, Device("cpu"))
    curve = trainer.run(module, n, Budget(steps, batch))
    size = min(batch, n)
    assert len(module.batches) == steps
    assert all(len(rows) == size for rows in module.batches)
    assert curve.steps_an_epoch == max(1, n // size)
    for visited in epochs_of(module.batches, curve.steps_an_epoch):
        rows = [r for b in visited for r in b]
        assert len(set(rows)) == len(rows)
        assert set(rows) <= set(range(n))
    assert len(curve.loss) == len(curve.lr) == math.ceil(steps / curve.steps_an_epoch)


def test_epochs_differ_in_order(trainer):
    module = Recorder()
    trainer().run(module, 32, Budget(6, 16))
    first, second, third = epochs_of(module.batches, 2)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(32))
    assert first != second != third


def test_all_rows_get_their_turn(trainer):
    """Images that one epoch leaves out of its incomplete batch, others visit."""
    module = Recorder()
    trainer().run(module, 21, Budget(30, 8))
    assert set(chain(*module.batches)) == set(range(21))


def test_evaluation_mode_afterwards(trainer):
    module = Recorder()
    trainer().run(module, 8, Budget(2, 4))
    assert not module.training and not module.drop.training


def test_a_callback_that_evaluates_does_not_stop_the_training_mode(trainer):
    module = Recorder()  # asserts that it trains
    trainer().run(module, 8, Budget(4, 4), on_epoch=lambda *_: module.eval())


@pytest.mark.parametrize(("n", "steps"), [(5000, 350), (40, 90), (3000, 600)])
def test_progress_is_told_within_epochs(n, steps):
    """Maps of many pairs end within their first epoch, large models stay in one for hours."""
    within, ends = [], []
    trainer = Trainer(Recipe(epochs=1, lr=0.01), 0, progress=ends.append, within=within.append)
    curve = trainer.run(Recorder(), n, Budget(steps, 10))
    assert len(ends) == len(curve.loss) and ends[-1] == 1.0
    told = sorted(within + ends)
    assert within == sorted(within) and len(within) == len(set(within))
    assert not set(within) & set(ends), "an epoch's end is told once, after its checkpoint"
    assert max(b - a for a, b in pairwise([0.0, *told])) < 0.05 + 1 / steps
    assert len(within) <= 200 * len(ends)


def test_callback_hears_progress_and_streams(trainer):
    heard, shares = [], []

    def draw(epoch, progress, rng):
        heard.append((epoch, progress, torch.rand(1, generator=rng).item()))

    trainer(progress=shares.append).run(Recorder(), 8, Budget(5, 4), on_epoch=draw)
    assert [(e, p) for e, p, _ in heard] == [(0, 0.0), (1, 0.4), (2, 0.8)]
    assert len({x for _, _, x in heard}) == 3
    assert shares == [0.4, 0.8, 1.0]


# --- the schedule


def wanted_rate(progress, schedule, warmup):
    if progress < warmup:
        return progress / warmup
    done = (progress - warmup) / (1 - warmup)
    if schedule == "constant":
        return 1.0
    return 1 - done if schedule == "linear" else (1 + math.cos(math.pi * done)) / 2


@given(
    progress=st.floats(0, 1),
    schedule=st.sampled_from(["linear", "cosine", "constant"]),
    warmup=st.sampled_from([0.0, 0.05, 0.3, 0.9]),
)
@settings(max_examples=60, derandomize=True)
def test_rate(progress, schedule, warmup):
    assert rate(progress, schedule, warmup) == pytest.approx(
        wanted_rate(progress, schedule, warmup), abs=1e-12
    )


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_rate_ends_at_zero_and_starts_whole(schedule):
    assert rate(0.0, schedule, 0.0) == 1.0
    assert rate(1.0, schedule, 0.0) == pytest.approx(0.0, abs=1e-15)
    assert rate(0.5, schedule, 0.0) == pytest.approx(0.5)


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("warmup", [0.0, 0.25])
def test_a_linear_rate_to_a_power_is_insightface_s(power, warmup):
    """Its rule multiplies the last rate; over 20 steps, the warm-up among them."""
    total, warm, last = 20, round(20 * warmup), 1.0
    for step in range(warm + 1, total):
        last *= (
            (1 - (step - warm) / (total - warm)) / (1 - (step - 1 - warm) / (total - warm))
        ) ** power
        assert rate(step / total, "linear", warmup, power) == pytest.approx(last)


def test_the_rate_falls_at_milestones():
    """BCT: 16 epochs, a tenth after 8, 12 and 14."""
    drops = (8 / 16, 12 / 16, 14 / 16)
    rates = [rate(e / 16, "steps", 0.0, milestones=drops) for e in range(16)]
    assert rates == pytest.approx([1.0] * 8 + [0.1] * 4 + [0.01] * 2 + [0.001] * 2)
    assert rate(0.1, "steps", 0.2, milestones=drops) == 0.5


def test_long_gradients_are_cut(trainer):
    """Plain SGD at rate 1 then moves the weights by the limit."""

    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))

        def forward(self, rows):
            return self.weight @ torch.tensor([3.0, 4.0])

    for clip, moved in ((0.0, 5.0), (2.0, 2.0), (9.0, 5.0)):
        module = Steep()
        made = trainer(
            epochs=1,
            lr=1.0,
            momentum=0.0,
            weight_decay=0.0,
            schedule="constant",
            warmup=0.0,
            clip=clip,
        )
        made.run(module, 4, Budget(1, 4))
        assert module.weight.norm().item() == pytest.approx(moved, rel=1e-5)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_the_loop_uses_the_schedule_step_by_step(trainer, schedule):
    """Plain SGD on a loss of slope 1 moves the weight by the rate of each step."""

    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))
            self.seen = []

        def forward(self, rows):
            self.seen.append(self.weight.item())
            return self.weight * 1.0

    module = Slope()
    made = trainer(schedule=schedule, warmup=0.25, lr=0.3, momentum=0.0, weight_decay=0.0)
    curve = made.run(module, 8, Budget(9, 2))
    places = [*module.seen, module.weight.item()]
    moved = [a - b for a, b in pairwise(places)]
    wanted = [0.3 * wanted_rate(step / 9, schedule, 0.25) for step in range(9)]
    assert moved == pytest.approx(wanted, abs=1e-7)
    assert curve.lr == pytest.approx([wanted[0], wanted[4], wanted[8]])


def test_frozen_parameters_stay(trainer):
    module = Recorder()
    module.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    trainer(weight_decay=0.5).run(module, 8, Budget(4, 4))
    assert torch.equal(module.frozen, torch.ones(2))


# --- divergence


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_diverging_loss_is_one_clear_line(trainer, value):
    module = Recorder(lambda rows: value)
    with pytest.raises(BenchError, match=r"training 'mine' diverged.*epoch 0.*lr") as caught:
        trainer().run(module, 8, Budget(4, 4), name="mine")
    assert "\n" not in str(caught.value)


def test_what_diverged_is_not_kept(trainer, tmp_path):
    module = Recorder(lambda rows: math.nan)
    with pytest.raises(BenchError, match=r"in epoch 0; lower recipe\.lr$"):
        trainer(folder=tmp_path).run(module, 8, Budget(4, 4))
    assert not list(tmp_path.iterdir())


def test_divergence_is_seen_within_an_epoch(trainer):
    """An epoch may take hours; what is lost is some steps."""
    module = Recorder(lambda rows: math.nan if len(module.batches) == 10 else 1.0)
    with pytest.raises(RefusedError, match="epoch 0"):
        trainer().run(module, 4000, Budget(1000, 4))
    assert len(module.batches) <= 100


def _diverge(rank, port, folder, at):
    """Train as one of two processes, of which the second has a loss of NaN in step ``at``."""
    os.environ |= {
        "LOCAL_RANK": str(rank), "RANK": str(rank), "NODE_RANK": "0", "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    module = Recorder(lambda rows: math.nan if rank and len(module.batches) == at else 1.0)
    try:
        Trainer(Recipe(epochs=1, lr=0.01), 0, Device("cpu", 2)).run(module, 400, Budget(100, 4))
    except RefusedError as error:
        (folder / str(rank)).write_text(f"{len(module.batches)} {error}")


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 100])  # after the last step no gradient tells the other
def test_all_devices_stop_where_one_diverges(tmp_path, at):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(_diverge, (port, tmp_path, at), nprocs=2)
    said = [(tmp_path / str(rank)).read_text() for rank in range(2)]
    assert said[0] == said[1] and "diverged" in said[0]
    assert int(said[0].split()[0]) <= max(50, at)


# --- kills


class Killed(Exception):
    pass


def noisy(trainer, folder=None, kill_at=None, seed=5):
    """Train with dropout, momentum and draws of the callback; maybe die before an epoch."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
    items = torch.randn(40, 4)

    class System(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = module
            self.register_buffer("memory", torch.zeros(4))
            self.noise = 0.0

        def forward(self, rows):
            self.memory.mul_(0.9).add_(items[rows].mean(0))
            return (self.net(items[rows]) - self.memory.sum() - self.noise).square().mean()

        def start(self, epoch, progress, rng):
            if epoch == kill_at:
                raise Killed
            self.noise = torch.rand(1, generator=rng).item()

    system = System()
    made = trainer(folder=folder, seed=seed, optimizer="adam", schedule="cosine")
    curve = made.run(system, 40, Budget(17, 8), on_epoch=system.start)
    return system.state_dict(), curve


def same(a, b):
    return all(torch.equal(a[k], b[k]) for k in a) and a.keys() == b.keys()


@pytest.fixture(autouse=True)
def every_epoch(monkeypatch):
    """Checkpoints as where an epoch takes long."""
    monkeypatch.setattr(loop, "_SAVE_EVERY_S", 0.0)


def test_short_epochs_are_not_all_written(trainer, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_SAVE_EVERY_S", 1e6)
    written = []
    monkeypatch.setattr(loop, "_save", lambda checkpoint, path: written.append(path))
    noisy(trainer, tmp_path)
    assert len(written) == 1  # the last one, which ends the training


@pytest.mark.parametrize("kills", [[0], [1], [3], [1, 1, 2, 3]])
def test_a_kill_changes_nothing(trainer, tmp_path, kills):
    wanted, wanted_curve = noisy(trainer)
    for kill_at in kills:
        with pytest.raises(Killed):
            noisy(trainer, tmp_path, kill_at)
    got, curve = noisy(trainer, tmp_path)
    assert same(got, wanted)
    assert curve == wanted_curve


@pytest.mark.filterwarnings("ignore:Detected call of")  # a step that is passed over is none
def test_a_kill_does_not_reset_the_scale_of_the_loss(trainer, tmp_path, monkeypatch):
    """float16 begins at a scale whose steps overflow and are passed over, until it is small."""

    def made(device, precision):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
        return Fabric(accelerator="cpu", plugins=MixedPrecision("16-mixed", "cpu", scaler))

    monkeypatch.setattr(loop, "make_fabric", made)
    wanted, _ = noisy(trainer)
    with pytest.raises(Killed):
        noisy(trainer, tmp_path, 2)
    assert same(noisy(trainer, tmp_path)[0], wanted)


def test_a_finished_training_is_not_repeated(trainer, tmp_path):
    wanted, _ = noisy(trainer, tmp_path)
    got, _ = noisy(trainer, tmp_path, kill_at=0)
    assert same(got, wanted)


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: b"rubbish", lambda c: c[:-1], lambda c: c + b"0", flipped]
)
def test_with_a_damaged_checkpoint_the_training_begins_anew(trainer, tmp_path, caplog, damage):
    wanted, curve = noisy(trainer)
    with pytest.raises(Killed):
        noisy(trainer, tmp_path, 1)
    path = tmp_path / "main.checkpoint.pt"
    path.write_bytes(damage(path.read_bytes()))
    got, got_curve = noisy(trainer, tmp_path)
    assert same(got, wanted) and got_curve == curve
    assert "damaged checkpoint; the training begins anew" in caplog.text


def test_the_checkpoint_of_another_training_is_not_taken_up(trainer, tmp_path, caplog):
    """It has the same shapes: only where it lies tells the two apart."""
    for seed, folder in ((5, "a"), (6, "b")):
        (tmp_path / folder).mkdir()
        with pytest.raises(Killed):
            noisy(trainer, tmp_path / folder, 1, seed=seed)
    (tmp_path / "b/main.checkpoint.pt").replace(tmp_path / "a/main.checkpoint.pt")
    got, _ = noisy(trainer, tmp_path / "a", seed=5)
    assert same(got, noisy(trainer, seed=5)[0])
    assert "damaged checkpoint" in caplog.text


def test_the_checkpoint_of_another_model_is_refused(trainer, tmp_path):
    trainer(folder=tmp_path).run(Recorder(), 8, Budget(2, 4))
    with pytest.raises(BenchError, match=r"main\.checkpoint\.pt: cannot be taken up"):
        noisy(trainer, tmp_path)


def test_a_checkpoint_with_code_in_it_is_refused(trainer, tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, ("raise SystemExit('ran')",))

    path, content = tmp_path / "main.checkpoint.pt", io.BytesIO()
    torch.save({"system": Evil()}, content)
    path.write_bytes(_digest(path, content.getvalue()) + content.getvalue())
    with pytest.raises(BenchError, match="cannot be taken up"):
        noisy(trainer, tmp_path)


# --- seeds


def test_another_seed_gives_other_weights(trainer):
    a, _ = noisy(trainer, seed=5)
    b, _ = noisy(trainer, seed=6)
    assert not same(a, b)


def test_device_in_words():
    assert device_name(Device("cpu")) == "cpu"


def test_a_device_that_is_not_there_is_one_line():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BenchError, match=r"^--device: expected 2 of cuda, not .+$"):
        device_name(Device("cuda", 2))


@pytest.mark.parametrize(
    ("has", "asked", "device", "used"),
    [
        ({"avx512_bf16": False, "amx_bf16": False}, "bf16-mixed", "cpu", "32-true"),
        ({"avx512_bf16": False}, "bf16-mixed", "cuda", "bf16-mixed"),
        ({"avx512_bf16": False}, "16-mixed", "cuda", "16-mixed"),
        ({"avx512_bf16": False}, "16-mixed", "cpu", "32-true"),
        ({"avx512_bf16": True}, "16-mixed", "cpu", "bf16-mixed"),
        ({"avx512_bf16": True}, "bf16-mixed", "cpu", "bf16-mixed"),
        ({"avx512_bf16": False, "amx_bf16": True}, "bf16-mixed", "cpu", "bf16-mixed"),
        ({}, "bf16-mixed", "cpu", "bf16-mixed"),
    ],
)
def test_precision(monkeypatch, has, asked, device, used):
    known = {"architecture": "x86_64", **has}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    assert effective_precision(asked, device) == used


def test_precision_where_torch_does_not_know(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert effective_precision("bf16-mixed", "cpu") == "bf16-mixed"
