"""Cards of methods, kept from one build to the next: making one imports torch."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.config.files import write_json
from benchmark.errors import BenchError
from benchmark.harness.store import default_store

_BENCHMARK = Path(registry.__file__).parents[1]
# What a card is made of beside the adapter's own file.
_SHARED = (
    "report/card.py", "contract/method.py", "contract/bases.py", "contract/pairs.py",
    "contract/fitting.py", "contract/maps.py", "contract/classifiers.py",
)  # fmt: skip


def card(name: str) -> dict[str, Any]:
    """The card of ``bct`` or ``bct:distill`` without its costs, as ``bench info`` shows it.

    Raises:
        BenchError: If the method or the variant is unknown.
    """
    kept = default_store() / "cards" / f"{_digest(name)}.json"
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if isinstance(found, dict) and found.get("method") == name:
        return found
    from benchmark.report.card import method_card

    # The costs on a site come from its own records, not from those of the checkout.
    made = method_card(name, Path("no-such-folder"))
    made.pop("cost", None)
    # A cache that cannot be written costs time alone.
    with contextlib.suppress(OSError, BenchError):
        write_json(kept, made)
    loaded: dict[str, Any] = json.loads(json.dumps(made))
    return loaded


def _digest(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass"))
    digest.update(registry.method_file(name).source)
    for file in _SHARED:
        digest.update((_BENCHMARK / file).read_bytes())
    return digest.hexdigest()[:24]
