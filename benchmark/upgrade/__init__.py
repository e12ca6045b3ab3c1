"""A user's own vectors: files, conversion, and the report on an upgrade.

The package can be called: ``benchmark.upgrade(old_gallery, new_gallery, queries, ...)`` is
:func:`benchmark.upgrade.run.upgrade`.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call :func:`benchmark.upgrade.run.upgrade`; loaded here, as it needs torch."""
        from benchmark.upgrade.run import upgrade

        return upgrade(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
