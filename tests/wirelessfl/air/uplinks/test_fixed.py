"""Fixed-rate links: seconds and bytes for the downlink and uplink payloads of each algorithm."""

import numpy as np
import pytest

import wirelessfl
from wirelessfl.runs.build import build

TRANSFERS = {
    "fedavg": (1, 1),
    "fedprox": (1, 1),
    "fedadam": (1, 1),
    "fedams": (1, 1),
    "fedyogi": (1, 1),
    "fedadagrad": (1, 1),
    "fedacg": (1, 1),
    "moon": (1, 1),
    "local-adam": (1, 1),
    "fedavg-m": (2, 1),
    "scaffold": (2, 2),
    "scaffold-m": (3, 2),
    "fa-nt": (2, 2),
    "fadamgc": (2, 2),
}
"""Number of vectors that a client receives and sends in a round."""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", TRANSFERS)
def test_seconds_and_bytes_by_hand(config, toy, name):
    """Seconds are K t_grad + (down + up) 32 P / rate; MiB are divided by the number of clients."""
    settings = config(name, clients_per_round=2, uplink="fixed", rate_mbps=8, step_seconds=0.25)
    setup = build(settings, data=toy)
    down, up = TRANSFERS[name]
    size = setup.model.objective.spec.size
    cost = setup.planner.plan(0).price
    assert cost.seconds == pytest.approx(3 * 0.25 + (down + up) * 32 * size / 8e6)
    assert cost.uplink_mib == pytest.approx(up * 4 * size / 2**20 / 3)
    assert cost.downlink_mib == pytest.approx(down * 4 * size / 2**20 / 3)


@pytest.mark.parametrize(("wait", "up"), [("mean", 1.25), ("slowest", 2)])
def test_selective_tracking_sends_less(config, toy, wait, up):
    """If one of four clients tracks, the mean is 1.25 uploads and the maximum 2."""
    settings = config(
        "fadamgc", clients_per_round=4, tracking_clients=1, uplink="fixed", wait=wait,
        rate_mbps=8, step_seconds=0.25,
    )  # fmt: skip
    setup = build(settings, data=toy)
    size = setup.model.objective.spec.size
    cost = setup.planner.plan(0).price
    assert cost.seconds == pytest.approx(0.75 + (2 + up) * 32 * size / 8e6)
    assert cost.uplink_mib == pytest.approx(5 / 6 * 4 * size / 2**20), (
        "exact number of sent vectors"
    )


def test_mean_upload_is_per_cell(config, toy):
    """With one tracker in two cells of two clients, the cells have 3.5 and 3 mean transfers."""
    settings = config(
        "hfedavg", local="fadamgc", cells=2, clients_per_round=4, tracking_clients=1,
        edge_rounds=1, uplink="fixed", rate_mbps=8, step_seconds=1e-9,
    )  # fmt: skip
    setup = build(settings, data=toy)
    transfers = setup.planner.plan(0).price.seconds / (32 * setup.model.objective.spec.size / 8e6)
    assert sorted(transfers) == pytest.approx([3.0, 3.5], abs=1e-3)


def test_separate_downlink_rate(config, toy):
    flags = {"uplink": "fixed", "rate_mbps": 8, "step_seconds": 1e-9}
    size = build(config("fedavg", **flags), data=toy).model.objective.spec.size
    slow = build(config("fedavg", **flags, downlink_mbps=2), data=toy)
    assert slow.planner.plan(0).price.seconds == pytest.approx(32 * size * (1 / 8e6 + 1 / 2e6))


@pytest.mark.parametrize("uplink", ["tdma", "ofdma", "aircomp"])
def test_cost_of_tracking_over_wireless_uplinks(config, toy, uplink):
    """Sending two vectors doubles seconds and joules; clients that do not track send one."""
    flags = {"uplink": uplink, "cpu_hz": (1e15, 1e15), "switched_capacitance": 0}
    one = build(config("local-adam", **flags), data=toy).planner.plan(0).price
    two = build(config("fadamgc", **flags), data=toy).planner.plan(0).price
    some = build(config("fadamgc", **flags, tracking_clients=3), data=toy).planner.plan(0).price
    assert two.seconds == pytest.approx(2 * one.seconds, rel=1e-4)
    assert two.joules == pytest.approx(2 * one.joules, rel=1e-4)
    assert some.uplink_mib == pytest.approx(1.5 * one.uplink_mib)
    assert one.joules < some.joules < two.joules
    assert one.seconds < some.seconds <= two.seconds


def test_only_participants_share_the_band(config, toy):
    """With half of the clients participating, TDMA uploads take half as long."""
    flags = {"snr_db": 30, "cpu_hz": (1e15, 1e15), "antennas": 64}
    all_of_them = build(config("fedavg", **flags), data=toy).planner.plan(0).price.seconds
    half = build(config("fedavg", **flags, clients_per_round=3), data=toy).planner
    seconds = np.mean([half.plan(t).price.seconds for t in range(20)])
    assert seconds == pytest.approx(all_of_them / 2, rel=0.05)


def test_rows_accumulate_costs(config, toy):
    settings = config("fadamgc", uplink="fixed", clients_per_round=3, rounds=4)
    setup = build(settings, data=toy)
    rows = wirelessfl.run(settings, data=toy).rows
    costs = [setup.planner.plan(t).price for t in range(4)]
    assert rows[-1]["sim_seconds"] == pytest.approx(sum(c.seconds.max() for c in costs))
    assert rows[-1]["uplink_mib"] == pytest.approx(sum(c.uplink_mib for c in costs))
    assert rows[-1]["joules"] == pytest.approx(sum(c.joules for c in costs)), "computation only"
