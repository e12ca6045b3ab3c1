"""Looking at an installation."""

from collections.abc import Callable, Collection, Iterator

import numpy as np

from benchmark.config import registry
from benchmark.config.files import default_store, writable
from benchmark.config.loading import load_protocol, load_track
from benchmark.errors import BenchError
from benchmark.records.provenance import hardware, packages


def diagnose() -> Iterator[tuple[str, str, bool]]:
    """Parts of this installation: name, state, and whether that is sound."""
    for name, state in (packages() | hardware()).items():
        yield name, state, True
    yield _tried("device", _device)
    yield from _loaded("method", registry.method_files(), lambda name: registry.method(name, {}))
    yield from _loaded("protocol", registry.protocol_files(), load_protocol)
    yield from _loaded("track", registry.track_files(), load_track)
    for reason in registry.broken():
        yield "passed over", reason, False
    yield _tried("store", _store)
    yield _tried("ranking kernel", _kernel)


def _loaded(
    kind: str, names: Collection[str], load: Callable[[str], object]
) -> Iterator[tuple[str, str, bool]]:
    """Those that can be loaded, then each that cannot, with the reason."""
    broken = {}
    for name in names:
        try:
            load(name)
        except BenchError as error:
            broken[name] = str(error)
    sound = [name for name in names if name not in broken]
    yield f"{kind}s", ", ".join(sound), bool(sound)
    for name, reason in broken.items():
        yield "passed over", f"{kind} {name}: {reason}", False


def _tried(name: str, attempt: Callable[[], str]) -> tuple[str, str, bool]:
    try:
        return name, attempt(), True
    except BenchError as error:
        return name, str(error), False
    except Exception as error:  # whatever a broken driver or compiler raises
        return name, f"{type(error).__name__}: {error}", False


def _device() -> str:
    from benchmark.training.device import Device, device_name

    return device_name(Device())


def _store() -> str:
    writable(default_store(), "store")
    return f"{default_store()} can be written"


def _kernel() -> str:
    from benchmark.ranking.ranks import rank

    vectors = np.eye(4, dtype=np.float32)
    labels = np.array([0, 0, 1, 1])
    ranks = rank(vectors, vectors, labels, labels).first_rank
    if (ranks != 1).any():
        raise BenchError(f"wrong ranks {ranks}")
    return "compiles and ranks"
