"""Training narrow submodels takes less memory; measured in processes of their own."""

import pytest

MEASURE = """
import ctypes, resource, sys
from pathlib import Path
import torch
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build

if hasattr(libc := ctypes.CDLL(None), "mallopt"):
    libc.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD: freed tensors are returned, and do not count

def peak():
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would include the parent process
        line = next(l for l in status.read_text().splitlines() if l.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )

def prepared(hidden):
    x, y = torch.rand(80, 500), torch.arange(80) % 4
    data = Dataset("toy", x, y, x, y, 4)
    config = Config.from_flags(
        sys.argv[1], cells=4, clients=8, local_steps=2, edge_rounds=1, chunk=8
    )
    return build(config, data=data, model=FCNN((500,), 4, hidden=(hidden,)))

warm = prepared(8)  # one-time costs: libraries, threads
warm.learner.learn(warm.planner.plan(0), warm.learner.server.cloud)
setup = prepared(4000)
if Path("/proc/self/clear_refs").exists():
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak after the preparation
before = peak()
setup.learner.learn(setup.planner.plan(0), setup.learner.server.cloud)
print(peak() - before)
"""


@pytest.mark.thorough
def test_a_submodel_costs_the_memory_of_a_submodel(tmp_path, launcher):
    """Training quarter submodels adds less than 0.45 of the full model's peak memory."""
    script, added = tmp_path / "script.py", {}
    script.write_text(MEASURE)
    for algorithm in ("hfedavg", "hist"):
        shown, errors = launcher.start(algorithm, script=script).communicate()
        assert not errors
        added[algorithm] = int(shown)
    eight_clients = 8 * 4 * (505 * 4000 + 4)
    assert added["hfedavg"] > eight_clients
    assert added["hist"] < 0.45 * added["hfedavg"]
