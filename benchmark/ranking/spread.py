"""One large gallery ranked on several machines: each has a shard, and the counts add up exactly."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from benchmark.ranking import arrays
from benchmark.ranking.ranks import Matches, Ranking, RankOptions, join, rank, ranking_of

LEAST = 100_000
"""Items of a gallery from which on it is spread."""
_OF_ITEMS = ("gallery_ids", "gallery_cameras", "junk")


class MachinePool(Protocol):
    """Something that holds a shard on each of several machines."""

    def hold(self, shards: Sequence[tuple[tuple[Any, ...], RankOptions]]) -> Any:
        """Make a ``Shard`` of each of these arguments, wherever."""

    def matches(self, held: Any) -> list[Matches]:
        """The ``matches`` of each."""

    def counts(self, held: Any, thresholds: Matches) -> list[Any]:
        """The ``count`` of each."""

    def __len__(self) -> int:
        """Number of machines."""


_chosen: ContextVar[MachinePool | None] = ContextVar("machines", default=None)


@contextmanager
def spread_over(machines: MachinePool) -> Iterator[None]:
    """Rank galleries of :data:`LEAST` items and more on these machines."""
    token = _chosen.set(machines)
    try:
        yield
    finally:
        _chosen.reset(token)


def rank_anywhere(
    query: Any, gallery: Any, query_labels: Any, gallery_labels: Any, **options: Any
) -> Ranking:
    """As :func:`benchmark.ranking.ranks.rank`, to the last bit, on the chosen machines."""
    machines, n = _chosen.get(), len(gallery)
    if machines is None or len(machines) < 2 or n < LEAST:
        return rank(query, gallery, query_labels, gallery_labels, **options)
    given = {name: options[name] for name in _OF_ITEMS if options.get(name) is not None}
    columns = {name: arrays.plain(column) for name, column in given.items()}
    vectors, labels = arrays.plain(gallery), arrays.plain(gallery_labels)
    shards = []
    for rows in np.array_split(np.arange(n), len(machines)):
        here = slice(int(rows[0]), int(rows[-1]) + 1)
        own = options | {name: column[here] for name, column in columns.items()}
        shards.append(((query, vectors[here], query_labels, labels[here]), own))
    held = machines.hold(shards)  # type: ignore[arg-type]
    joined = join(machines.matches(held))
    return ranking_of(joined.scores, sum(machines.counts(held, joined)))
