"""The gate: results of many small runs, stored before a change and compared to the bit after it."""

import os

# Before numpy and torch are loaded: with more threads, sums round differently on other machines.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
