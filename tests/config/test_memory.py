"""Memory of freed arrays: kept, and given back."""

import platform
import subprocess
import sys

import pytest


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such knob")
def test_memory_of_freed_arrays_is_kept_until_it_is_asked_back():
    """Pages that are touched for the first time: once for all arrays, not once for each."""
    script = """if True:
        import resource
        import numpy as np
        from benchmark.config.memory import keep_freed_memory

        def faults(n):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(n):
                np.ones(2**23)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        keep_freed_memory()
        print(faults(1), faults(8), resident(), keep_freed_memory() or resident())
    """
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    once, more, kept, given_back = map(int, found.stdout.split())
    assert more < once / 4
    assert kept - given_back > 2**25  # half of an array
