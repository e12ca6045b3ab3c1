"""Which column or array of a file holds the ids of its vectors."""

from collections.abc import Callable, Sequence

from benchmark.errors import BenchError, nearest
from benchmark.upgrade.formats.checks import cut, likely_ids, listed
from benchmark.upgrade.formats.ids import Ids

ROWS = "-"
"""In place of a column's name: rows are known by their number, whatever the file has."""


def pick(
    wanted: str, usual: str | None, others: Sequence[str], read: Callable[[str], Ids]
) -> tuple[Ids | None, str]:
    """Ids, and the name of what they are read from where that has to be told.

    Args:
        wanted: The name that a user gives, :data:`ROWS`, or nothing.
        usual: The name that the format's convention has for ids; None if there is none of it.
        others: Names of what else has one whole number or text a row.
        read: Reads ids; a BenchError if they are none, or one comes twice.

    Raises:
        BenchError: If there is no such name, or what it names holds no ids; naming them all, if
            several might be meant.
    """
    if wanted == ROWS:
        return None, ""
    known = [*([usual] if usual else []), *others]
    if wanted:
        if wanted not in known:
            hint = nearest(cut(wanted), map(cut, known[:20])) or "; there is none"
            raise BenchError(f"expected a column of ids, got the name '{cut(wanted)}'{hint}")
        return read(wanted), ""
    if usual:
        return read(usual), ""
    likely = [name for name in others if likely_ids(name)]
    found: dict[str, Ids] = {}
    refused: list[BenchError] = []
    for name in likely or others:
        try:
            found[name] = read(name)
        except BenchError as error:
            refused.append(error)
        if len(found) > 1:
            raise BenchError(
                f"ids: expected one column of them, got {listed(likely or others)}: --id-column "
                f"names one, or '{ROWS}' for row numbers"
            )
    if found:
        ((name, ids),) = found.items()
        return ids, name
    if likely:
        raise BenchError(
            f"{refused[0]}; --id-column names another column, or '{ROWS}' for row numbers"
        )
    return None, ""
