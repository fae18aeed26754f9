"""Runs that merge the updates of all clients equal synchronous rounds, row by row."""

import pytest
import torch

from wirelessfl.config import Config
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create

CLIENTS, MERGES = 6, 4
FLAGS = {
    "clients": CLIENTS,
    "rounds": MERGES,
    "local_steps": 3,
    "batch_size": 8,
    "step_seconds": 0.01,
    "uplink": "fixed",
    "rate_mbps": 0.5,
    "eval_every": 1,
    "chunk": 4,
    "threads": 1,
}
ALL_CLIENTS = {
    "rounds": {},
    "buffered": {"requests": CLIENTS, "buffer": CLIENTS},
    "simultaneous": {},
}
ADAM = ("fadamgc", "fa-nt", "local-adam")
SGD = ("fedavg", "fedprox", "scaffold", "scaffold-m", "moon", "fedacg", "fedadam", "ram-fed")


def ran(algorithm, schedule, data, out, **flags):
    """Run to the end; return the rows, and the final and initial parameters.

    Buffered request r is sent to client r modulo the number of clients.
    """
    torch.manual_seed(3)
    model = FCNN((12,), 4, hidden=(10,))
    own = ALL_CLIENTS[schedule]
    config = Config.from_flags(algorithm, schedule=schedule, **FLAGS | own | flags, out=out)
    setup = build(config, model=model, data=data)
    if schedule == "buffered":
        setup.handler.requests.choose = lambda number: number % CLIENTS
    engine, directory = Engine(setup), create(out, setup.config)
    start = torch.cat([value.detach().reshape(-1) for value in model.parameters()])
    Execution(engine, directory, None).run()
    params = torch.cat([value.reshape(-1) for value in engine.params().values()])
    return directory.rows(), params, start


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "compression"),
    [
        *((name, "none") for name in (*SGD, *ADAM)),
        ("fedavg", "quantisation"),
        ("fadamgc", "top-k"),
        ("ram-fed", "top-k"),
    ],
)
def test_merges_of_all_clients_equal_rounds(algorithm, compression, toy, tmp_path):
    """Rows agree to 1e-12 and parameters to 1e-6.

    With Adam clients, the parameters' error is at most 1e-4 of their total change.
    """
    flags = {"lr": 0.005 if algorithm in ADAM else 0.05}
    flags |= (
        {"downlink_compression": compression, "downlink_mbps": 1.0} if compression != "none" else {}
    )
    flags |= {"capacities": (1.0,)} if algorithm == "ram-fed" else {}
    rounds, wanted, start = ran(algorithm, "rounds", toy, tmp_path / "rounds", **flags)
    assert rounds[-1]["sim_seconds"] > 0
    for schedule in ("buffered", "simultaneous"):
        rows, params, _ = ran(algorithm, schedule, toy, tmp_path / schedule, **flags)
        assert [row["round"] for row in rows] == [*range(MERGES + 1)]
        for row, other in zip(rows, rounds, strict=True):
            for field in ("sim_seconds", "uplink_mib", "downlink_mib", "joules", "joules_max"):
                assert row[field] == pytest.approx(other[field], rel=1e-12), field
            if compression != "none" and row["round"]:
                error = row["compression_error"]
                assert 0 < error < 1
                assert error == pytest.approx(other["compression_error"], rel=1e-5)
        difference = (params - wanted).norm()
        if algorithm in ADAM:
            assert difference <= 1e-4 * (wanted - start).norm()
        else:
            torch.testing.assert_close(params, wanted, rtol=0, atol=1e-6)
            assert (wanted - start).norm() > 1e-3
