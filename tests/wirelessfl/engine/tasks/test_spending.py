"""The energy of each client in runs of tasks, and its checkpoint."""

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.engine.server.ledger import Spending
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create


def test_a_checkpoint_holds_only_clients_that_have_used_energy():
    """Of a million clients, three have; the restored values have the same bits."""
    clients, joules = [7, 3, 999_999], Stream(1).generator().random(9)
    spent = Spending.none(1_000_000)
    for number, each in enumerate(joules):
        spent.add(clients[number % 3], float(each))
    tensors = spent.tensors()
    assert max(tensor.numel() for tensor in tensors.values()) == 3
    again = Spending.none(1_000_000)
    again.add(5, 1.0)
    again.restore(tensors)
    assert again.total == spent.total == sum(joules.tolist())
    assert np.array_equal(again.each, spent.each)
    assert again.each[clients] == pytest.approx(joules.reshape(3, 3).sum(0))
    assert again.most == joules.reshape(3, 3).sum(0).max()


def test_a_group_adds_its_members_and_its_total():
    """A part of a transmission takes its part of each member's energy and of the total."""
    spent = Spending(np.array([1.0, 2.0, 4.0]), 7.0)
    spent.include(np.array([2, 0]), Spending(np.array([0.5, 8.0]), 8.5).part(1.0, 4.0))
    assert spent.each.tolist() == [3.0, 2.0, 4.125]
    assert spent.total == 7.0 + 8.5 / 4


REQUESTS = {"schedule": "buffered", "requests": 5, "buffer": 2}
ROUNDS = {"schedule": "simultaneous"}
AIR = {"uplink": "aircomp", "beamformer": "random"}
CASES = {
    "requests, tdma": REQUESTS | {"uplink": "tdma", "drop_out": 0.3},
    "requests, ofdma": REQUESTS | {"uplink": "ofdma"},
    "requests, over the air": REQUESTS | AIR | {"drop_out": 0.3},
    "rounds, tdma": ROUNDS | {"uplink": "tdma", "first": 3},
    "rounds, fixed": ROUNDS | {"uplink": "fixed", "drop_out": 0.3},
    "rounds, over the air": ROUNDS | AIR | {"first": 3, "drop_out": 0.1},
    "no radio": REQUESTS | {"delays": "shifted-exponential"},
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", CASES)
def test_joules_of_clients_sum_to_the_mean_of_rows(config, toy, name):
    """``joules_max`` of every row is that of the largest client, and never decreases."""
    settings = config("fedavg", rounds=4, eval_every=1, step_seconds=0.01, **CASES[name])
    engine = Engine(build(settings, data=toy))
    seen, row = [], engine.row

    def watched(report):
        found = row(report)
        seen.append(engine.setup.handler.ledger.spent.each.copy())
        return found

    engine.row = watched
    directory = create(settings.run.out, settings)
    Execution(engine, directory, None).run()
    rows = directory.rows()
    assert len(rows) == len(seen) == 5
    for row, each in zip(rows, seen, strict=True):
        assert row["joules_max"] == each.max()
        assert each.mean() == pytest.approx(row["joules"], rel=1e-12)
    assert (np.diff(seen, axis=0) >= 0).all()
    assert (rows[-1]["joules_max"] > rows[-1]["joules"] > 0) == (name != "no radio")
