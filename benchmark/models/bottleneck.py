"""Residual bottlenecks: the map from old to new embeddings of Wang et al.

Source: Wang et al., Unified Representation Learning for Cross Model Compatibility (2020).
"""

from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.models.module import Portable


class Bottlenecks(Portable):
    """Blocks ``x + up(PReLU(BN(down x)))``, one after another.

    Side by side, such blocks would only be one that is as wide as all of them. Each narrows its
    input to ``width``; between unequal dimensions a linear layer comes first. ``normalise`` is of
    the output, ``normalise_old`` of the input.
    """

    def __init__(
        self, dim_old: int, dim_new: int, blocks: int, width: int, normalise: bool,
        normalise_old: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalise, self.normalise_old = normalise, normalise_old
        self.first = nn.Identity() if dim_old == dim_new else nn.Linear(dim_old, dim_new)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(dim_new, width), nn.BatchNorm1d(width), nn.PReLU(width),
                nn.Linear(width, dim_new),
            )
            for _ in range(blocks)
        )  # fmt: skip

    def forward(self, vectors: Tensor, side: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Stored vectors ``[n, dim_old]`` to ``[n, dim_new]``; side-information is kept."""
        x = self.first(F.normalize(vectors) if self.normalise_old else vectors).float()
        for block in self.blocks:
            x = x + block(x).float()
        return (F.normalize(x) if self.normalise else x), side
