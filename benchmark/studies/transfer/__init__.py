"""Orders of methods on one track beside those on another, or in a paper."""

from benchmark.studies.transfer.compare import Transfer, compare_all, transfers
from benchmark.studies.transfer.orders import (
    MethodOrder,
    TransferRules,
    measured_orders,
    published_orders,
    read_rules,
)

__all__ = [
    "MethodOrder", "Transfer", "TransferRules", "compare_all", "measured_orders",
    "published_orders", "read_rules", "transfers",
]  # fmt: skip
