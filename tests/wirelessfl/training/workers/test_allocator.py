"""Freed memory stays with the process during a run, and returns to the system afterwards."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, torch
from wirelessfl.training.workers.processes import freed_memory_kept

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def used():
    before = faults()
    for _ in range(20):
        torch.zeros(12 << 20)  # 48 MiB, above the thresholds of malloc
    return faults() - before

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

used()
apart = used()
with freed_memory_kept:
    used()
    kept, inside = used(), resident()
print(apart, kept, inside - resident())
"""


@pytest.mark.thorough
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs malloc of glibc")
def test_blocks_are_used_again_and_returned_at_the_end():
    ran = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    apart, kept, returned = map(int, ran.stdout.split())
    assert apart > 200  # a fault per page, or per huge page
    assert kept < apart / 4
    assert returned > 40 << 20
