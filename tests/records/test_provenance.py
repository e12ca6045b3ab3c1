"""Origin of the numbers."""

import platform

import pytest

from benchmark.records.provenance import hardware, processor

X86 = """processor\t: 0
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC 7763
flags\t\t: fpu sse4_2 avx {more}

processor\t: 1
model name\t: another
flags\t\t: fpu
"""


@pytest.mark.parametrize(
    ("more", "widest"), [("", "avx"), ("avx2 fma", "avx2"), ("avx2 avx512f", "avx512f")]
)
def test_the_widest_instructions_are_told(more, widest) -> None:
    assert processor(X86.format(more=more)) == {
        "cpu": "AMD EPYC 7763", "cpu_model": "family 25, model 1", "instructions": widest,
    }  # fmt: skip


def test_what_is_not_said_is_left_out() -> None:
    """Arm names features, and no model in words."""
    arm = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
    assert processor(arm) == {"cpu_model": "by 0x41, part 0xd0c", "instructions": "sve"}
    assert processor("") == {}


def test_this_machine() -> None:
    known = hardware()
    assert known["cpu"] and known["system"] == platform.system()
    assert list(known)[-2:] == ["cores", "system"]
