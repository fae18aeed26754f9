"""Durations of requests, and what their clients spend."""

import numpy as np
import pytest

from channels import Network
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import traffic_of
from wirelessfl.air.delays import ShiftedExponential, Wireless, client_speeds
from wirelessfl.air.durations import TOGETHER
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.theory import ShiftedExponential as Law
from wirelessfl.training.steps import StepCounts


def test_shifted_exponential_durations():
    """Durations have mean 3 beta and the published distribution function.

    50,000 draws: the standard error of the mean is 0.3 %.
    """
    speeds = client_speeds(8, Stream(1))
    assert sorted(speeds.tolist()) == [0.7, 0.7, 1.0, 1.0, 1.0, 1.0, 1.3, 1.3]
    delays = ShiftedExponential([2.0, 4.0], np.array([1.0, 1.3]), Stream(9))
    drawn = np.array([delays.seconds(1, 1, number) for number in range(50_000)])
    law = Law(4.0 * 1.3)
    assert drawn.mean() == pytest.approx(law.mean_seconds, rel=0.012)
    assert drawn.min() >= 5.2
    for share in (0.1, 0.5, 0.9):
        # The standard error of a fraction is at most 0.0022.
        assert (drawn <= law.quantile(share)).mean() == pytest.approx(share, abs=0.007)
    assert delays.seconds(1, 1, 7) == drawn[7]  # by number, not by order
    assert delays.seconds(0, 0, 7) == pytest.approx(drawn[7] / 2.6)
    assert delays.compute_joules(1, 1, 9.0) == 0  # energy is not modelled


def test_values_of_clients_with_any_number():
    """Values that are computed for several clients together are those of each client."""
    clients = 2 * TOGETHER + 3
    step = np.linspace(0, 1, clients)
    network = Network(
        np.zeros(clients, dtype=int),
        gain_db=-100 - 20 * step,
        path_gain_db=-step,
        transmit_power_w=0.1 + step,
        cpu_hz=1e9 * (1 + step),
        switched_capacitance=1e-28 * (1 + step),
    )
    delays = Wireless(network, Tdma(), [StepCounts(1)], [step], [traffic_of(10)], None, Stream(0))
    for client in (clients - 1, 0, TOGETHER - 1, TOGETHER, 0):
        values = delays.client(client)
        assert values.snr == pytest.approx(10 ** (network.mean_snr_db[client] / 10), rel=1e-12)
        assert values.sending_watts == network.transmit_power_w[client]
        assert values.cpu_hz == network.cpu_hz[client]
        power = network.switched_capacitance[client] * network.cpu_hz[client] ** 3
        joules = delays.compute_joules(0, client, 2.0)
        assert joules == pytest.approx(power * step[client], rel=1e-12)
