"""Linear layers of a training by oneDNN against torch's own, in double precision."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from benchmark.training import onednn

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch without oneDNN"
)


@pytest.fixture
def everywhere(monkeypatch):
    monkeypatch.setattr(onednn, "helps", lambda: True)
    monkeypatch.setattr(onednn, "_LEAST", 1)


def leaves(generator, n, inputs, outputs, has_bias):
    shapes = [(n, inputs), (outputs, inputs), *([(outputs,)] if has_bias else [])]
    return [torch.randn(s, generator=generator).requires_grad_() for s in shapes]


@given(
    n=st.integers(1, 70), inputs=st.integers(1, 70), outputs=st.integers(1, 70),
    has_bias=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
@settings(deadline=None, max_examples=40, derandomize=True)
def test_values_and_gradients_are_torchs(n, inputs, outputs, has_bias, seed):
    given_ = leaves(torch.Generator().manual_seed(seed), n, inputs, outputs, has_bias)
    exact = [t.detach().double().requires_grad_() for t in given_]
    ours = onednn.Linear.apply(*given_, *[None] * (3 - len(given_)))
    theirs = F.linear(*exact)
    above = torch.randn(ours.shape, generator=torch.Generator().manual_seed(seed + 1))
    ours.backward(above)
    theirs.backward(above.double())
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    for mine, true in zip(given_, exact, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("everywhere")
def test_no_operand_has_gaps(monkeypatch):
    seen = []
    made = onednn.product
    monkeypatch.setattr(onednn, "product", lambda *t: seen.extend(t[:2]) or made(*t))
    wide, weight = torch.randn(4, 9, requires_grad=True), torch.randn(5, 9, requires_grad=True)
    out = onednn.Linear.apply(wide[:, 2:5], weight[:, 2:5], None)
    out.backward(torch.ones(1, 1).expand(4, 5))
    assert len(seen) == 6 and all(t.is_contiguous() or t.T.is_contiguous() for t in seen)
    torch.testing.assert_close(weight.grad[:, 2:5], wide[:, 2:5].sum(0).expand(5, 3))


@pytest.mark.usefixtures("everywhere")
def test_a_layer_within_it_runs_by_onednn():
    layer, x = torch.nn.Linear(3, 4), torch.randn(2, 3)
    with onednn.LinearByOneDNN():
        inside = layer(x)
    assert inside.grad_fn.name() == "LinearBackward" != layer(x).grad_fn.name()
    torch.testing.assert_close(inside, layer(x))


@pytest.mark.parametrize("case", ["double", "three dimensions", "autocast", "no mode"])
@pytest.mark.usefixtures("everywhere")
def test_other_layers_stay_torchs(case):
    layer, x = torch.nn.Linear(3, 4), torch.randn(2, 3)
    if case == "double":
        layer, x = layer.double(), x.double()
    if case == "three dimensions":
        x = x[None]
    with torch.autocast("cpu", torch.bfloat16, enabled=case == "autocast"):
        if case == "no mode":
            out = layer(x)
        else:
            with onednn.LinearByOneDNN():
                out = layer(x)
    assert out.grad_fn.name() != "LinearBackward"


def test_small_layers_stay_torchs(monkeypatch):
    monkeypatch.setattr(onednn, "helps", lambda: True)
    with onednn.LinearByOneDNN():
        assert torch.nn.Linear(3, 4)(torch.randn(2, 3)).grad_fn.name() != "LinearBackward"


def test_intels_processors_keep_torchs(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    for maker, helped in (("GenuineIntel", False), ("AuthenticAMD", True)):
        (tmp_path / "cpuinfo").write_text(f"vendor_id : {maker}\n")
        monkeypatch.setattr(onednn, "Path", lambda _: tmp_path / "cpuinfo")
        onednn.helps.cache_clear()
        assert onednn.helps() is (helped and torch.backends.mkldnn.is_available())
    onednn.helps.cache_clear()
