"""Whether the order of methods on one track is that on another, or in a paper."""

from benchmark.report.transfer.compare import Transfer, compare_all, transfers
from benchmark.report.transfer.orders import Order, measured_orders, published_orders
from benchmark.report.transfer.rules import TransferRules, read_rules

__all__ = [
    "Order", "Transfer", "TransferRules", "compare_all", "measured_orders", "published_orders",
    "read_rules", "transfers",
]  # fmt: skip
