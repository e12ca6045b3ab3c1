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
    libc: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(libc, "malloc_trim"):  # glibc's alone
        libc.mallopt(_MMAP_THRESHOLD, _KEPT) or libc.mallopt(_MMAP_THRESHOLD, _KEPT_OLD)
        libc.mallopt(_TRIM_THRESHOLD, _KEPT)
        libc.malloc_trim(0)
