"""Kinds of side-information: what is stored beside an old embedding for the sake of later updates.

Source: FCT section 3.4 and 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class SideKind:
    """How one kind is made.

    Attributes:
        module: ``benchmark.training.side_<module>``; its ``train(spec, data, trainer, **options)``
            gives the model and its training curve.
        options: Options of ``train``.
        data: Whose images it is trained on: the generation's own, or also, without labels, those
            of the next one.
        bits: Bits a number that is stored.
    """

    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Literal["own", "next"] = "own"
    bits: int = 32


SIDES: Mapping[str, SideKind] = {"simclr": SideKind("simclr", {"dim": 64})}
