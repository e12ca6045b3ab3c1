"""The command's work as calls: run methods, load records, take a method's adapter."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.config import registry
from benchmark.config.setup import Precision
from benchmark.errors import BenchError, nearest
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.published_models import parse_published
from benchmark.harness.requests import make_requests
from benchmark.harness.runs import Existing, carry_out
from benchmark.records.files import read_selection
from benchmark.records.record import Record

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from benchmark.contract.conversion import Conversion
    from benchmark.upgrade.formats.convert import Converted


def run(
    methods: Iterable[str], protocol: str, track: str = "glyphs", *,
    data_root: str | Path | Mapping[str, str | Path] | None = None, seeds: Iterable[int] = (0,),
    settings: Mapping[str, Any] | None = None, first_seed: int | None = None,
    existing: Existing = "skip", store: str | Path | None = None, out: str | Path = "runs",
    compute: Compute | None = None, reporter: Reporter | None = None,
    precision: Precision = "recipe", published: str | Path | None = None,
) -> list[Record]:  # fmt: skip
    """Run methods under a protocol; what is stored already is not computed again.

    Args:
        methods: ``bct``, ``bct:distill``, ...; ``independent`` is added.
        protocol: Protocol id, or the path of a YAML file; ``arch-change:deeper`` is one of the
            settings that ``arch-change`` runs. Those that do not suit the track are left out,
            with a warning.
        track: Track id, or the path of a YAML file.
        data_root: Folder of the images, for tracks that need one; of several datasets by name.
        seeds: One record for each.
        settings: Changes such as ``{"old.head": "arcface", "bct.weight": 2.0}``.
        first_seed: Fixes the first generation's seed apart from the others'.
        existing: ``skip`` answers from records of the same work; ``missing`` keeps any record
            that is there; ``overwrite`` computes everything again.
        store: Folder of stage outputs.
        out: Folder of records.
        compute: Device and engine.
        reporter: Progress callbacks.
        precision: Of trainings: what recipes say, or ``32-true`` on every machine.
        published: Folder of published models, which are taken instead of trained; by default
            ``results/models`` of the checkout, if there is one. ``none`` trains all.

    Returns:
        Records by setting, seed, then method.

    Raises:
        BenchError: On bad input, an output folder that cannot be written, or a full disk.
    """
    requests = make_requests(
        methods, protocol, track, data_root=data_root, seeds=seeds, settings=settings,
        first_seed=first_seed, precision=precision,
    )  # fmt: skip
    models = parse_published(published)
    return carry_out(requests, existing, store, Path(out), compute, reporter, models)


def load(root: str | Path | Iterable[str | Path] = "runs", **where: Any) -> pd.DataFrame:
    """Records as a pandas frame: a row for each record, case and metric.

    Its columns are protocol, track, method, seed, status, case, metric, value, low, high, gain,
    compatible, changed (what was set, as ``key=value``) and diverged. What is no record that can be
    read is left out, with a warning.

    Args:
        root: A folder of records, a record, or several of them.
        **where: Keep only rows with these values: ``protocol="open-class"``, or one of several:
            ``metric=["map", "cmc_at_1"]``.

    Raises:
        BenchError: If there is no record, a column is unknown or no row has a value.
    """
    from benchmark.report.frame import frame

    roots = [root] if isinstance(root, str | Path) else root
    selection = read_selection(
        map(Path, roots), on_damaged=lambda e: warnings.warn(str(e), stacklevel=4)
    )
    everything = frame(stored.record for stored in selection)
    table = everything
    for column, value in where.items():
        if column not in table:
            raise BenchError(f"load: unknown column '{column}'{nearest(column, map(str, table))}")
        values = list(value) if isinstance(value, list | tuple | set) else [value]
        for each in values:
            there = everything[column]
            if not (there == each).any():
                known = nearest(str(each), map(str, there.dropna().unique()))
                raise BenchError(f"load: no row has {column} '{each}'{known}")
        table = table[table[column].isin(values)]
    return table.reset_index(drop=True)


def get_method(label: str, **params: Any) -> Any:
    """The adapter ``fct`` or ``fct:simclr`` with its parameters.

    Raises:
        BenchError: On an unknown method, variant or parameter.
    """
    if not isinstance(label, str):
        raise BenchError(f"method: expected a name, got {label!r:.60}")
    return registry.method(label, params)


def read_vectors(
    path: str | Path, *, id_column: str = "", vector_column: str = ""
) -> tuple[NDArray[Any] | None, NDArray[np.float32]]:
    """Vectors of a file in any of the formats people have, for ``fit`` and the like.

    Args:
        path: A file or folder of any format that ``bench convert`` reads, by its ending (numpy's,
            parquet, Arrow, HDF5, ``.fvecs``, ``.bvecs``, safetensors, JSON, CSV, ``COPY``, faiss,
            Chroma, LanceDB, VDF); ``FILE:NAME`` is one array of several.
        id_column: Array or column of ids, ``-`` for none; by default ``id`` or the like, else the
            only one that may hold some, which a warning tells.
        vector_column: Array or column of vectors, as ``FILE:NAME``.

    Returns:
        Ids, whole numbers or text ``[n]``, None where there are none; and vectors ``[n, dim]``.

    Raises:
        BenchError: If there are no vectors, an id comes twice, a number is not finite, or the
            file is damaged; if the format's package is missing.
    """
    from benchmark.upgrade.formats import open_vectors

    source = open_vectors(path, vector_column, id_column)
    ids = source.ids
    for line in source.told:
        warnings.warn(line, stacklevel=2)
    return ids, source.read()


def convert_file(
    conversion: Conversion | str | Path, source: str | Path, target: str | Path, *,
    side: str | Path | None = None, side_target: str | Path | None = None, id_column: str = "",
    vector_column: str = "", dtype: str = "float32", force: bool = False,
    progress: Callable[[float], object] = lambda share: None,
) -> Converted:  # fmt: skip
    """Convert stored vectors from disk to disk; memory does not grow with them.

    Args:
        conversion: A fitted map, or the folder of a saved one.
        source: Vectors as :func:`read_vectors` takes them; ids come along.
        target: File of the converted ones; its ending says the format.
        side: Side-information, for a map that was fitted with it; joined by ids.
        side_target: File of the new side-information, for a map that gives it.
        id_column: As of :func:`read_vectors`, for both.
        vector_column: Likewise.
        dtype: Of the numbers written, ``float32`` or ``float16``.
        force: Write over files that exist.
        progress: Called with the share that is done.

    Returns:
        What was done; as text one line. The files are there whole, or the call raised.

    Raises:
        BenchError: If something is missing, damaged, in the way or does not fit the map.
    """
    from benchmark.upgrade.formats.convert import convert

    return convert(
        conversion, source, target, side=side, side_target=side_target, id_column=id_column,
        vector_column=vector_column, dtype=dtype, force=force, progress=progress,
    )  # fmt: skip
