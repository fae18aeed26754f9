"""A network that a run is given: what it costs on it."""

import numpy as np
import pytest

import wirelessfl
from channels import Network
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.runs.build_tasks import build_delays, build_tasks


@pytest.mark.parametrize("algorithm", ["fedavg", "sync-st", "fedast"])
def test_a_step_costs_what_the_given_network_says(config, toy, algorithm):
    """The first update, by hand: H V_0 / F + 2 32 P / rate seconds, H V_0 kappa F^2 joules each."""
    network = Network(
        np.zeros(5, dtype=int), cpu_hz=2e9, snr_db=20, cycles_per_step=4e8,
        switched_capacitance=3e-28,
    )  # fmt: skip
    own = {"requests": 1, "buffer": 1, "eval_every": 1} if algorithm == "fedast" else {}
    settings = config(algorithm, network=True, uplink="fixed", rate_mbps=8, rounds=1, **own)
    result = wirelessfl.run(settings, data=toy, network=network)
    size = sum(value.numel() for value in result.params.values())
    row = result.rows[-1]
    assert row["sim_seconds"] == pytest.approx(3 * 4e8 / 2e9 + 2 * 32 * size / 8e6)
    trainings = 1 if algorithm == "fedast" else 5
    assert row["joules"] == pytest.approx(trainings / 5 * 3 * 4e8 * 3e-28 * 4e18)


def test_tasks_have_step_costs_of_their_own(tmp_path, toy):
    """Seconds of a step over each client's CPU speed, or as the table says."""
    cycles, seconds = "digits,name=b,cycles_per_step=1e8", "digits,name=c,step_seconds=.3"
    flags = {"clients": 4, "local_steps": 5, "threads": 1, "chunk": 2}
    for shared, tables, expected in (
        ({}, [cycles, seconds], lambda cpu_hz: [1e6 / cpu_hz, 1e8 / cpu_hz, 0.3]),
        ({"cycles_per_step": 2e7}, [cycles], lambda cpu_hz: [2e7 / cpu_hz, 1e8 / cpu_hz]),
        ({"step_seconds": 0.2}, [seconds], lambda cpu_hz: [0.2, 0.3]),
    ):
        tasks = ["digits,name=a", *tables]
        parts = build_tasks(Config.from_flags("fedast", **flags, **shared, task=tasks))
        network = parts.network
        delays = build_delays(parts.config, parts.tasks, network, parts.elements, parts.stream)
        for client, cpu_hz in enumerate(network.cpu_hz):
            found = [delays.seconds(task, client, 0) for task in range(len(tasks))]
            assert found == pytest.approx([5 * step for step in expected(cpu_hz)])
    with pytest.raises(ConfigError, match=r"cycles_per_step=1e8 conflicts with step_seconds=0\.2"):
        Config.from_flags("fedast", **flags, step_seconds=0.2, task=["digits", cycles])
