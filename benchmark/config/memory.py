"""Memory that freed arrays leave behind."""

import ctypes
import os
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT, _USUAL = 2**30, 2**25  # bytes; the latter is where glibc ends by itself


def keep_freed_memory() -> None:
    """Let the process keep the memory of freed arrays from now on; what it holds now goes back.

    The C library gives large arrays back to the system at once, and each layer of a network, each
    block of scores asks for them anew, as empty pages that threads get one after the other.
    Elsewhere than with glibc nothing happens.
    """
    _hold(_KEPT)


def give_back_memory() -> None:
    """Keep nothing any more, so that the memory of what follows is its own."""
    _hold(_USUAL)


def _hold(size: int) -> None:
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(libc, "malloc_trim"):  # glibc's alone
        # Older versions take no more than the usual.
        libc.mallopt(_MMAP_THRESHOLD, size) or libc.mallopt(_MMAP_THRESHOLD, _USUAL)
        libc.mallopt(_TRIM_THRESHOLD, size)
        libc.malloc_trim(0)
