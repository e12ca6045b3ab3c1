"""Provenance of numbers: versions, commit, machine."""

import os
import platform
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmark.records.record import CodeVersion

_VECTORS = ("avx512f", "avx2", "avx", "sse4_2", "sve", "asimd")
"""As Linux names them, the widest first."""
_NUMBERS = {"cpu family": "family", "model": "model", "CPU implementer": "by", "CPU part": "part"}
"""Of a processor's generation as Linux names them, on Intel and AMD or on Arm -> our words."""
PROCESSOR = ("cpu", "cpu_model", "instructions")
"""Keys of an environment that tell kinds of processors apart; earlier records lack some."""
_CODE = ("benchmark", "methods", "protocols", "leaderboard", "pyproject.toml")
COMPUTING = ("torch", "torchvision", "timm", "numpy", "numba", "scipy", "scikit-learn")
"""Packages that compute numbers of a record."""
_PACKAGES = (*COMPUTING, "lightning-fabric", "safetensors", "matplotlib")


@cache
def packages() -> dict[str, str]:
    """Versions of everything that computes, read once a process."""
    versions = {"python": platform.python_version(), "compatbench": version("compatbench")}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def code_version() -> CodeVersion:
    """Commit of the checkout this package runs from, and whether it was clean."""
    folder, release = Path(__file__).parents[1], version("compatbench")
    # An installed wheel inside somebody's checkout must not report that checkout's commit.
    if not (folder.parent / "pyproject.toml").is_file():
        return CodeVersion(version=release)
    commit = _git(folder, "rev-parse", "HEAD")
    # New records in the checkout do not make its code another one.
    status = _git(folder.parent, "status", "--porcelain", "--", *_CODE)
    dirty = None if status is None else bool(status)
    return CodeVersion(version=release, commit=commit or None, dirty=dirty)


def _git(folder: Path, *words: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(
            ["git", *words], cwd=folder, stderr=subprocess.DEVNULL, text=True, timeout=10
        ).strip()
    return None


def hardware() -> dict[str, str]:
    """The machine in plain words; no name of a host."""
    info = Path("/proc/cpuinfo")
    said = processor(info.read_text()) if info.exists() else {}
    usual = {"cpu": platform.processor() or platform.machine()}
    return usual | said | {"cores": str(os.cpu_count()), "system": platform.system()}


def processor(cpuinfo: str) -> dict[str, str]:
    """Facts of Linux about the first processor, if it names them: those of ``PROCESSOR``.

    ``instructions`` are the widest vectors that it computes with. ``cpu_model`` are the numbers of
    its generation, which rented machines often leave out of its name. Libraries sum in another
    order on each, which changes the last bits of each step of a training, and so its end.
    """
    lines = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    facts = {name.strip(): value.strip() for name, _, value in lines}
    flags = (facts.get("flags") or facts.get("Features") or "").split()
    widest = next(filter(flags.count, _VECTORS), None)
    numbers = [f"{words} {facts[key]}" for key, words in _NUMBERS.items() if key in facts]
    found = {
        "cpu": facts.get("model name"), "cpu_model": ", ".join(numbers), "instructions": widest,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}
