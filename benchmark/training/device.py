"""Devices to train on, and their precision."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from benchmark.errors import BenchError, unknown

if TYPE_CHECKING:
    import torch

ACCELERATORS = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Device:
    """Place to train: an accelerator as Fabric names it, and the number of devices."""

    accelerator: str = "auto"
    devices: int = 1


def parse_device(text: str) -> Device:
    """Read ``auto``, ``cpu``, ``cuda`` or ``cuda:2`` (two devices), else raise a BenchError."""
    name, colon, count = text.partition(":")
    if name not in ACCELERATORS:
        raise unknown("device", text, ACCELERATORS)
    if colon and not (count.isdecimal() and len(count) < 10 and int(count) >= 1):
        raise BenchError(f"--device: expected a number of devices after ':', got '{text:.60}'")
    most = max(2, os.cpu_count() or 1)
    if name == "cpu" and colon and int(count) > most:
        raise BenchError(f"--device: expected at most cpu:{most} on this machine, got '{text}'")
    if name == "auto" and colon and int(count) > 1:
        raise BenchError(f"--device: expected cpu, cuda or mps before ':{count}', got '{text}'")
    return Device(name, int(count) if colon else 1)


def require_here(device: Device) -> None:
    """Raise a BenchError where this machine has not so many GPUs, before processes begin."""
    import torch

    here = torch.cuda.device_count()
    if device.accelerator == "cuda" and device.devices > here:
        raise BenchError(f"--device: expected cuda:{device.devices}, this machine has {here} of it")


def make_fabric(device: Device, **options: Any) -> Any:
    """A Lightning Fabric on these devices; BenchError if they are not here, or not so many."""
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    from lightning_fabric import Fabric
    from lightning_fabric.utilities.exceptions import MisconfigurationException

    options["strategy"] = "ddp" if device.devices > 1 else "auto"
    try:
        return Fabric(accelerator=device.accelerator, devices=device.devices, **options)
    except (RuntimeError, MisconfigurationException) as error:
        wanted = f"{device.devices} of {device.accelerator}"
        reason = " ".join(str(error).split())
        raise BenchError(f"--device: expected {wanted}, not on this machine: {reason}") from error


@cache
def torch_device(device: Device) -> torch.device:
    """The torch device of this process, as Fabric chooses it."""
    chosen: torch.device = make_fabric(device).device
    return chosen


def effective_precision(requested: str, device: str) -> str:
    """The precision that training has on ``cpu``, ``cuda``, ... of this machine.

    Fabric has bfloat16 in the place of float16 on a CPU. One without bfloat16 instructions takes
    twice as long in it as in float32, for less: there either is ``32-true``.
    """
    if device != "cpu" or requested == "32-true":
        return requested
    import torch

    requested = "bf16-mixed"

    # x86 names its instructions; where torch does not know, the recipe stands.
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    if known.get("architecture") != "x86_64" or "avx512_bf16" not in known:
        return requested
    return requested if known["avx512_bf16"] or known.get("amx_bf16") else "32-true"


def device_name(device: Device) -> str:
    """``cpu`` and the like, or the number and name of the GPUs; ``2 x cpu`` of two processes."""
    chosen = torch_device(device)
    if chosen.type != "cuda":
        return chosen.type if device.devices == 1 else f"{device.devices} x {chosen.type}"
    import torch

    return f"{device.devices} x {torch.cuda.get_device_name(chosen)}"
