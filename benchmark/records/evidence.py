"""Committed files beside the records: the core board, the claims, what counts as transfer."""

from pathlib import Path

from benchmark.errors import AbsentError


def evidence_file(name: str) -> Path:
    """``results/<name>`` here, or in the checkout that this package runs from.

    Raises:
        AbsentError: If there is none.
    """
    here = Path("results") / name
    for path in (here, Path(__file__).parents[2] / here):
        if path.is_file():
            return path
    raise AbsentError(f"{here}: no such file here; name one, or change to a checkout")
