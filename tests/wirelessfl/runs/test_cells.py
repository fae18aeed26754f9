"""Runs with asynchronous cells: rows at simulated times, one process only."""

from types import SimpleNamespace

import pytest

from channels import Network
from wirelessfl.base.errors import ConfigError
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.directory import RunDirectory
from wirelessfl.training.workers.shards import Shards


@pytest.fixture
def uneven():
    """A network of four cells with unequal speed."""
    cpu_hz = [1e9, 2e9, 1.1e9, 3e8, 4e8, 7e8, 9e8]
    return Network.from_snr([0, 0, 0, 1, 1, 2, 3], cpu_hz=cpu_hz, snr_db=20)


def under(buffer):
    return {"schedule": "buffered", "buffer": buffer}


def go(setup, directory, on_row=None):
    """Start or resume the run in this folder."""
    engine = Engine(setup)
    Execution(engine, directory, on_row).run()
    return SimpleNamespace(rows=directory.rows(), params=engine.params())


def test_rows_and_end_at_simulated_times(config, toy, uneven):
    """There are rows at multiples of eval_seconds and at max_seconds, where the run ends."""

    def rows(**flags):
        made = config("hfedavg", network=True, **under(1), **flags)
        setup = build(made, data=toy, network=uneven)
        return setup, go(setup, RunDirectory.create(made.run.out, setup.config)).rows

    setup, ticks = rows(rounds=99, max_seconds=0.045, eval_seconds=0.01)
    assert [row["sim_seconds"] for row in ticks] == pytest.approx(
        [0, 0.01, 0.02, 0.03, 0.04, 0.045]
    )
    assert ticks[-1]["round"] == sum(setup.handler.rounds_done) > 1
    _, every = rows(rounds=7, eval_every=3)
    assert [row["round"] for row in every] == [0, 3, 6, 7]


def test_several_processes_are_refused(config, toy):
    with pytest.raises(ConfigError, match=r'3 processes, .* "hfedavg" with schedule .* needs one'):
        build(config("hfedavg", **under(2)), data=toy, shards=Shards(0, 3))
