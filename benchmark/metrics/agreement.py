"""Do two scores order the same items alike?"""

from __future__ import annotations

from typing import Any

from benchmark.metrics import arrays


def kendall_tau(left: Any, right: Any) -> float | None:
    """Kendall's tau-b of two scores of the same items, ties allowed.

    Args:
        left: Scores, ``[n]``, n >= 2: the predicted order, say.
        right: Scores, ``[n]``: the true one.

    Returns:
        A coefficient in [-1, 1]; None where one side is constant.

    Raises:
        ValueError: If the lengths differ, are below 2, or a score is NaN.

    Source:
        Kendall 1945; FastFill figure 2c and appendix E compare orders so.

    Example:
        >>> kendall_tau([1.0, 2.0, 3.0], [30.0, 20.0, 10.0])
        -1.0
    """
    from scipy.stats import kendalltau

    x, y = arrays.scores("left", left), arrays.scores("right", right)
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"right: expected {max(len(x), 2)} scores, got {len(y)}")
    if (x == x[0]).all() or (y == y[0]).all():
        return None
    return float(kendalltau(x, y).statistic)
