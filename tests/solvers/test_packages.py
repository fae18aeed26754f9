"""HiGHS prints nothing, and the standard output of all others is as usual."""

import ctypes
import subprocess
import sys

import pytest
import scipy.optimize

from solvers import available_backends, optimize_mask_sizes, optimize_masks_and_energy
from solvers.packages import quiet_highs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="HiGHS may print there")
LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 1e9, "kappa": 1e-28}
SIZES = [[3.1e4], [1.7e4], [2.3e4]], [[3e6], [5e6], [2e6]], 1e9, 1e6, 17
SOLVE = """
from solvers import optimize_mask_sizes

print("before", flush=True)
optimize_mask_sizes([1.0, 2.0, 3.0], 30, backend="cvxpy")
print("after")
"""


def test_lines_for_the_developers_of_highs_are_discarded(capfd, monkeypatch):
    """They are in the buffer of C's standard output, perhaps behind lines of other libraries."""
    library, milp, calls = ctypes.CDLL(None), scipy.optimize.milp, []

    def talkative(*arguments, **options):
        calls.append(library.printf(b"tmpSolver.run();\n"))
        return milp(*arguments, **options)

    monkeypatch.setattr("scipy.optimize.milp", talkative)
    for solve in (
        lambda: optimize_mask_sizes([1.0, 2.0, 3.0], 30, backend="highs"),
        lambda: optimize_masks_and_energy(*SIZES, weights=(1.0, 1.0), **LIMITS),
    ):
        library.printf(b"another library\n")
        solve()
        library.fflush(None)
        assert calls
        assert capfd.readouterr().out == "another library\n"
        calls.clear()


@pytest.mark.thorough
def test_cvxpy_prints_no_banner():
    """HiGHS prints it once per process, before it reads the option that turns it off."""
    if available_backends()["cvxpy"]:
        pytest.skip("cvxpy is not installed")
    done = subprocess.run([sys.executable, "-c", SOLVE], capture_output=True, text=True, check=True)
    assert done.stdout == "before\nafter\n"


def test_the_output_returns_when_the_last_thread_has_left(capfd):
    """Others write to it all the time: Python, also in other threads, and child processes."""
    library = ctypes.CDLL(None)
    with quiet_highs:
        with quiet_highs:
            library.printf(b"banner\n")
        library.printf(b"still inside\n")
        print("python", flush=True)
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    library.printf(b"outside\n")
    library.fflush(None)
    assert capfd.readouterr().out == "python\nchild\noutside\n"
