"""Runs with asynchronous cells: resuming, rows at simulated times, one process only."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from channels import Network
from wirelessfl.errors import ConfigError
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.setup import build
from wirelessfl.training.shards import Shards


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


RESUMED = [
    ("hist", {"local": "fadamgc", "lr": 0.01}),
    ("hist", {"local": "scaffold", "client_states": "disk", "hidden_biases": "local"}),
    ("hfedavg", {"local": "fedadam", "uplink": "aircomp", "beamformer": "random"}),
    ("hist", {"submodel_scale": "width"}),
    ("hfedavg", {"rounds": 99, "max_seconds": 0.2, "eval_seconds": 0.03}),
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("case", "name", "flags"), [(i, *one) for i, one in enumerate(RESUMED)])
def test_resumed_at_save_points(config, toy, uneven, same, halt_at, case, name, flags):
    """A run interrupted at every other row but the last is resumed bit for bit.

    Half of the cases are interrupted at even rows, the others at odd ones.
    """

    def setup():
        made = config(name, network=True, checkpoint_seconds=0, **under(2), **{"rounds": 4} | flags)
        return build(made, data=toy, network=uneven)

    whole = setup()
    reference = go(whole, RunDirectory.create(whole.config.run.out, whole.config))
    assert max(row["staleness_max"] for row in reference.rows) > 0
    for place in range(case % 2, len(reference.rows) - 1, 2):
        halted = setup()
        directory = RunDirectory.create(halted.config.run.out, halted.config)
        with pytest.raises(KeyboardInterrupt):
            go(halted, directory, halt_at(place))
        again = replace(setup(), config=halted.config)
        same(go(again, directory), reference)


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
