"""Memory that freed arrays leave behind."""

import ctypes
import os
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT, _KEPT_OLD = 2**30, 2**25  # bytes of an array; older versions of glibc take no more


def keep_freed_memory() -> None:
    """Let the process keep the memory of freed arrays from now on; what it holds now goes back.

    The C library gives large arrays back to the system at once, and each layer of a network, each
    block of scores asks for them anew, as empty pages that threads get one after the other.
    Elsewhere than with glibc nothing happens.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_MMAP_THRESHOLD, _KEPT) or libc.mallopt(_MMAP_THRESHOLD, _KEPT_OLD)
        libc.mallopt(_TRIM_THRESHOLD, _KEPT)
    give_back_memory()


def give_back_memory() -> None:
    """Give the system back what the process keeps, before its memory is measured."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


def _glibc() -> Any:
    """The C library where it is glibc; else None."""
    libc = ctypes.CDLL(None) if os.name == "posix" else None
    return libc if hasattr(libc, "malloc_trim") else None
