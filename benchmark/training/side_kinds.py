"""Kinds of side-information: vectors stored beside old embeddings for later updates.

Source: FCT (Ramanujan et al., 2022) sections 3.4 and 5.1, appendices D.4 and G.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class SideKind:
    """A kind of side-information and its training.

    Attributes:
        title: A few words for tables.
        module: ``benchmark.training.side_<module>``; its ``train(spec, data, trainer, **options)``
            takes the old model's spec, the training data of the generation and the loop, and gives
            the model and its training curve.
        data: Training images: the generation's own; also, without labels, those of the next one
            (FCT 5.2); or only those of the track's ``other_domain`` (FCT 4.3).
        epochs: The track's ``side_epochs``, or as many as of an embedding model, where the kind
            is one more of them (FCT 5.1: trained as the old model was).
        bits: Bits of a stored number.
    """

    title: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Literal["own", "next", "other"] = "own"
    epochs: Literal["side", "model"] = "side"
    bits: int = 32

    def bytes(self, dim: int) -> float:
        """Bytes of an item of ``dim`` numbers.

        Example:
            >>> SIDES["simclr-binary"].bytes(128), SIDES["simclr"].bytes(128)
            (16.0, 512.0)
        """
        return self.bits * dim / 8

    @property
    def needs_pixels(self) -> bool:
        """Tell whether it is learned on pixels, or on views without end: not on stored features."""
        return self.module != "alternative"

    @property
    def contrastive(self) -> bool:
        """Tell whether it is trained as SimCLR is, with what the recipe's ``simclr`` changes."""
        return self.module in ("simclr", "binary")


# A change of a kind that is there already raises ``TRAINING`` in benchmark/harness/graph.py.
# SimCLR's has FCT's size; FCT prints none for the autoencoder, which has that of the smaller one.
# Two local crops an image cost a fifth of a SimCLR training; DINO's eight would double it.
_USUAL, _SMALL = {"dim": 128, "crops": 2}, {"dim": 64, "crops": 2}
SIDES: Mapping[str, SideKind] = {
    "autoencoder": SideKind("autoencoder", "autoencoder", {"dim": 64}),
    "alternative": SideKind("another old model", "alternative", epochs="model"),
    "mixup": SideKind("another old model, mixup", "alternative", {"mixup": 0.2}, epochs="model"),
    "simclr": SideKind("SimCLR", "simclr", _USUAL),
    "simclr-64": SideKind("SimCLR, 64 numbers", "simclr", _SMALL),
    "simclr-next": SideKind("SimCLR, new images too", "simclr", _USUAL, data="next"),
    "simclr-binary": SideKind("SimCLR, 128 bits", "binary", _USUAL, bits=1),
    "simclr-other": SideKind("SimCLR, other domain", "simclr", _USUAL, data="other"),
}
