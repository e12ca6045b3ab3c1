"""Kinds of side-information: what is stored beside an old embedding for the sake of later updates.

Source: FCT (Ramanujan et al., 2022) sections 3.4 and 5.1, appendices D.4 and G.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class SideKind:
    """How one kind is made.

    Attributes:
        title: A few words for tables.
        module: ``benchmark.training.side_<module>``; its ``train(spec, data, trainer, **options)``
            gives the model and its training curve.
        options: Options of ``train``.
        data: Whose images it is trained on: the generation's own; also, without labels, those of
            the next one (FCT 5.2); or only those of the track's ``other_domain`` (FCT 4.3).
        epochs: How long: the track's ``side_epochs``, or as long as an embedding model, where the
            kind is one more of them (FCT 5.1: trained as the old model was).
        bits: Bits a number that is stored.
    """

    title: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Literal["own", "next", "other"] = "own"
    epochs: Literal["side", "model"] = "side"
    bits: int = 32

    def bytes(self, dim: int) -> float:
        """Bytes that an item of ``dim`` numbers takes.

        Example:
            >>> SIDES["simclr-binary"].bytes(128), SIDES["simclr-128"].bytes(128)
            (16.0, 512.0)
        """
        return self.bits * dim / 8


# A change of a kind that is there already raises ``TRAINING`` in benchmark/harness/graph.py.
# Small side-information has the size of SimCLR's smaller one; FCT prints none for the autoencoder.
# Two local crops an image cost a fifth of a SimCLR training; DINO's eight would double it.
SIDES: Mapping[str, SideKind] = {
    "autoencoder": SideKind("autoencoder", "autoencoder", {"dim": 64}),
    "alternative": SideKind("another old model", "alternative", epochs="model"),
    "mixup": SideKind("another old model, mixup", "alternative", {"mixup": 0.2}, epochs="model"),
    "simclr": SideKind("SimCLR", "simclr", {"dim": 64, "crops": 2}),
    "simclr-128": SideKind("SimCLR, 128 numbers", "simclr", {"dim": 128, "crops": 2}),
    "simclr-next": SideKind(
        "SimCLR, new images too", "simclr", {"dim": 64, "crops": 2}, data="next"
    ),
    "simclr-binary": SideKind("SimCLR, 128 bits", "binary", {"dim": 128, "crops": 2}, bits=1),
    "simclr-other": SideKind(
        "SimCLR, other domain", "simclr", {"dim": 64, "crops": 2}, data="other"
    ),
}
