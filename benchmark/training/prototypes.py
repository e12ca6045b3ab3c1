"""Prototypes and cones of the classes of an embedding space."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.errors import BenchError


def class_means(features: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Mean feature of each class, ``[n_classes, d]``."""
    sums = torch.zeros(n_classes, features.shape[1], dtype=features.dtype, device=features.device)
    sums.index_add_(0, labels, features)
    return sums / torch.bincount(labels, minlength=n_classes).clamp_min(1)[:, None]


def refined_prototypes(
    old: Tensor, new: Tensor, labels: Tensor, n_classes: int, share: float, tau: float,
    block: int = 2048,
) -> Tensor:  # fmt: skip
    """Mean direction ``[n_classes, d_old]`` of each class's old features, spread by the new ones.

    In a class, E is the row-wise softmax of n(f) n(f)^T / tau without the diagonal and
    A = (1 - a)(I - a E)^-1; the prototype is the direction of the mean row of A n(O), O the old
    features ``[n, d_old]``, f the new ones ``[n, d]``, a the ``share`` in [0, 1). A class of more
    items than ``block`` is spread block by block. The result is float32.

    Source:
        UniBCT, structural prototype refinement.
    """
    sums = torch.zeros(n_classes, old.shape[1], dtype=torch.float64)
    order = labels.argsort(stable=True)
    counts = torch.bincount(labels, minlength=n_classes)
    for label, rows in enumerate(torch.split(order, counts.tolist())):
        for part in torch.split(rows, block):
            weights = _column_sums(F.normalize(new[part].double()), share, tau)
            sums[label] += weights @ F.normalize(old[part].double())
    return F.normalize(sums).float()


def _column_sums(unit: Tensor, share: float, tau: float) -> Tensor:
    """Weight of each item: the column sums of A. With a softmax of columns all were 1."""
    n = len(unit)
    if n < 2:
        return torch.ones(n, dtype=unit.dtype)
    edges = (unit @ unit.T / tau).fill_diagonal_(-torch.inf).softmax(dim=1)
    system = torch.eye(n, dtype=unit.dtype) - share * edges
    return (1 - share) * torch.linalg.solve(system.T, torch.ones(n, dtype=unit.dtype))


class ClassBorders(nn.Module):
    """The border of each class: its mean direction, and the smallest cosine of a member to it.

    Features are ``[n, d]``, their labels 0 to ``n_classes`` - 1.

    Source:
        Meng et al., Learning Compatible Embeddings (2021); published code, main.py.
    """

    centre: Tensor
    lowest: Tensor

    def __init__(self, features: Tensor, labels: Tensor, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("centre", class_directions(features, labels, n_classes))
        lowest = torch.ones(n_classes)
        lowest.scatter_reduce_(0, labels, self.cosines(features, labels), "amin")
        self.register_buffer("lowest", lowest)

    def cosines(self, features: Tensor, labels: Tensor) -> Tensor:
        """Cosine of each feature to the direction of its class, ``[n]``."""
        return (F.normalize(features) * self.centre[labels]).sum(dim=1)

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        """Mean cosine that features lack to the border of their class, a scalar."""
        return (self.lowest[labels] - self.cosines(features, labels)).clamp_min(0).mean()


class CentreAlignment(nn.Module):
    """Squared error of what a map makes of the centres of classes, which is to be ``target``.

    A centre is the class's mean direction at its mean length; classes without features have none.
    Features are ``[n, d]``, their labels rows of ``target``, ``[n_classes, d_new]``. The error is
    between unit vectors, averaged over classes and dimensions; without ``unit_output`` the map's
    output keeps its length. A BenchError if there are items of one class alone, whose centre batch
    norm cannot take.

    Source:
        Meng et al. (2021); published code, main.py: there centres have length 1, the target is the
        rows of the classifier, and the output keeps its length.
    """

    centre: Tensor
    target: Tensor

    def __init__(
        self, features: Tensor, labels: Tensor, target: Tensor, *, unit_output: bool = True
    ) -> None:
        super().__init__()
        self.unit_output = unit_output
        known = torch.bincount(labels, minlength=len(target)) > 0
        if known.count_nonzero() < 2:
            raise BenchError("alignment: expected items of two classes or more, got one class")
        lengths = class_means(features.norm(dim=1, keepdim=True), labels, len(target))
        centre = class_directions(features, labels, len(target)) * lengths
        self.register_buffer("centre", centre[known])
        self.register_buffer("target", F.normalize(target.detach())[known])

    def forward(self, map: nn.Module) -> Tensor:
        """Error of a map that takes vectors and side-information, a scalar."""
        out = map(self.centre, None)[0]
        return F.mse_loss(F.normalize(out) if self.unit_output else out, self.target)


def class_directions(features: Tensor, labels: Tensor, n_classes: int) -> Tensor:
    """Direction of the mean unit feature of each class, ``[n_classes, d]``; 0 for one without."""
    return F.normalize(class_means(F.normalize(features), labels, n_classes))


class ClassCones(nn.Module):
    """The cone of each class: its mean direction, and the angle that holds its usual members.

    Features are ``[n, d]``, their labels 0 to ``n_classes`` - 1.

    Source:
        Pan et al., AdvBCT (2023): published code, where LCE is re-implemented so (the largest
        angle up to 1.5 inter-quartile ranges above the third quartile; classes of one image have
        no cone, and do not count).
    """

    centre: Tensor
    theta: Tensor

    def __init__(self, features: Tensor, labels: Tensor, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("centre", class_means(F.normalize(features), labels, n_classes))
        members = angles(features, self.centre[labels])
        own = [members[labels == c] for c in range(n_classes)]
        usual = [largest_usual(values) if len(values) > 1 else 0.0 for values in own]
        self.register_buffer("theta", torch.tensor(usual))

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        """Mean angle by which features lie outside the cone of their class, a scalar; 0 of none."""
        outside = (angles(features, self.centre[labels]) - self.theta[labels]).clamp_min(0)
        bounded = self.theta[labels] > 0
        return outside[bounded].sum() / max(1, int(bounded.sum()))


def angles(left: Tensor, right: Tensor) -> Tensor:
    """Angles between rows, ``[n]``, in radians; the gradient is finite at 0 and at pi."""
    left, right = F.normalize(left), F.normalize(right)
    # An arccosine has an infinite slope at 1, just where a class of one image has its member.
    return 2 * torch.atan2((left - right).norm(dim=1), (left + right).norm(dim=1))


def largest_usual(values: Tensor) -> float:
    """The largest value up to 1.5 inter-quartile ranges above the third quartile; 0 of none."""
    if not len(values):
        return 0.0
    low, high = values.double().quantile(torch.tensor([0.25, 0.75], dtype=torch.float64))
    return float(values[values <= high + 1.5 * (high - low) + 1e-9].max())
