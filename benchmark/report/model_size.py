"""The size of a method's model beside that of the independent one."""

from benchmark.records.record import Record


def added_parameters(record: Record, alone: Record | None) -> int | None:
    """Parameters that a method adds: its parts', and its model's beyond the independent one's.

    ``alone`` is the record of ``independent`` beside it; without one, models count as alike. A
    negative result means that the method's model is the smaller one. None where the other record
    has other backbones: one of an earlier version may stand beside a newer one.
    """
    if alone is not None and _backbones(alone) != _backbones(record):
        return None
    parts = record.cost.added_parameters or 0
    independent = None if alone is None else alone.cost.parameters
    return parts if independent is None else parts + (record.cost.parameters or 0) - independent


def _backbones(record: Record) -> dict[str, str | None]:
    return {name: model.backbone for name, model in record.models.items()}
