"""The gate: stores results of many small runs before a change, and compares them afterwards."""

import os

# Must be set before numpy and torch are loaded. With more threads, the rounding of sums would
# depend on the number of cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
