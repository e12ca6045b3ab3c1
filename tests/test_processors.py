"""The fast suite's numerical part as other processors compute it: fewer instructions, more threads.

Libraries choose their kernels by the processor; these variables let them choose those of a lesser
one. What no processor at hand can show stays unseen, as kernels for AMX or 16-bit products.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
PARTS = (
    "ranking", "metrics", "models", "training", "contract", "methods", "tasks",
    "harness/evaluation", "upgrade/test_search.py",
    "upgrade/test_maps.py", "upgrade/test_two_lists.py",
)  # fmt: skip
INSTRUCTIONS = {
    "none beyond SSE": {
        "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem", "NUMBA_CPU_NAME": "generic",
    },
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell",
    },
    "AVX-512": {
        "ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "OPENBLAS_CORETYPE": "SkylakeX", "NUMBA_CPU_NAME": "skylake-avx512",
    },
    "its own": {},
}  # fmt: skip
NEEDS = {"AVX2": ("AVX2", "AVX512"), "AVX-512": ("AVX512",)}
"""Torch's names of the processors that can compute with them."""
THREADS = "COMPATBENCH_TEST_THREADS"


def test_parts_are_there():
    assert not [part for part in PARTS if not Path(ROOT, "tests", part).exists()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instructions", "threads"),
    [("none beyond SSE", 1), ("AVX2", 1), ("AVX2", 2), ("AVX-512", 1), ("its own", 2)],
)
def test_fast_tests_pass_with_other_instructions(instructions, threads, tmp_path):
    here = torch.backends.cpu.get_cpu_capability()
    if here not in NEEDS.get(instructions, (here,)):
        pytest.skip(f"the processor has no {instructions}")
    environment = {
        **os.environ, **INSTRUCTIONS[instructions], THREADS: str(threads),
        "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE",
    }  # fmt: skip
    # Kernels are compiled once, before two workers would both do it, as `make test` does.
    ranking, *others = (f"tests/{part}" for part in PARTS)
    for paths, workers in (([ranking], "0"), (others, "2" if threads == 1 else "0")):
        words = ["-m", "pytest", "-n", workers, "--dist", "loadfile", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [sys.executable, *words, "-m", "not slow and not gpu", *paths],
            env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_variables_are_heard():
    """Else every case would be the same one: torch says what it computes with."""
    words = "import torch; print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())"
    environment = {**os.environ, **INSTRUCTIONS["none beyond SSE"], "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["DEFAULT", "2"]
