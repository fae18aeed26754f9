"""Trained runs over other networks: equal to runs that are trained there, and to single prices."""

from dataclasses import replace

import numpy as np
import pytest

import channels
import wirelessfl
from channels.fading import Rician
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.results import Runs
from wirelessfl.runs.build import planners

SMALL = {"dataset": "digits", "rounds": 3, "local_steps": 1, "hidden": (8,), "threads": 1}
CELLS = {"cells": 2, "clients": 6, "edge_rounds": 2, "backhaul_mbps": 1.0, "downlink_mbps": 9.0}
OPTIMAL = {"name": "ofdma", "allocation": "optimal"}
UPLINKS = {
    "slots": {"name": "tdma"},
    "ready": {"name": "tdma", "order": "ready"},
    "equal": {"name": "ofdma"},
    "optimal": OPTIMAL,
    "fixed": {"name": "fixed"},
    "deadline": {"name": "ofdma", "round_deadline": 9.0},
    "weight": {"name": "ofdma", "energy_weight": 0.3},
}
RUNS = {
    "hist": ("hist", CELLS | {"coherence": "edge-round"}),
    "partial": ("scaffold", {"clients": 6, "clients_per_round": 3, "eval_every": 2}),
    "flops": ("hfedavg", CELLS | {"cycles_per_flop": 1.5}),
    "sessions": ("fedavg", {"clients": 6, "sessions": 2, "warm_start": "proposed"}),
}


def settings(name, **changes):
    algorithm, flags = RUNS[name]
    return Config.from_flags(algorithm, **(SMALL | flags | changes))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: wirelessfl.run(settings(name, out=folder / name)) for name in RUNS}


def networks(name, count=3):
    """Networks that differ in gains, powers, bands, CPUs, noise, path gains and interference."""
    cells, clients = (2, 6) if "cells" in RUNS[name][1] else (1, 6)
    found = []
    for number in range(count):
        draw = np.random.default_rng(number)
        base = channels.section_vi_c(cells, clients, stream=channels.Stream(number))
        own = replace(
            base,
            bandwidth_hz=draw.uniform(1e6, 9e6, cells),
            cpu_hz=draw.uniform(1e8, 1e9, clients),
            transmit_power_w=draw.uniform(0.01, 0.2, clients),
            switched_capacitance=draw.uniform(1e-28, 1e-27, clients),
            path_gain_db=draw.uniform(-3, 0, clients),
            cycles_per_step=draw.uniform(1e5, 1e6),
        )
        found.append(own)
    heard = channels.Interference(
        gain=np.full((clients, cells), 1e-10),
        ends=np.cumsum(found[0].cell_sizes),
        band_of=np.zeros(cells, dtype=int),
    )
    rician = replace(found[1], fading=Rician(3.0))
    return [*found, replace(found[0], interference=heard), rician]


def assert_same(found, wanted):
    """Rows equal, seconds and joules up to rounding, everything else exactly."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        one, other = ({k: v for k, v in r.items() if k != "wall_seconds"} for r in (one, other))
        assert one.keys() == other.keys()
        for name, value in other.items():
            if name in ("sim_seconds", "extra_seconds") or "joules" in name or "_seconds" in name:
                assert one[name] == pytest.approx(value, rel=1e-12, abs=0), name
            else:
                assert one[name] == value, name


@pytest.fixture
def no_data(monkeypatch):
    def refused(*_):
        raise AssertionError("data are read")

    monkeypatch.setattr(planners.Loaded, "dataset", refused)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RUNS)
def test_prices_are_the_rows_of_runs_over_these_networks(name, runs, tmp_path):
    """A run that is trained over each network; the networks are priced together."""
    some = networks(name)
    found = wirelessfl.price(runs[name], network=some, uplink=OPTIMAL)
    assert isinstance(found, wirelessfl.PricedNetworks)
    places = (0, 3) if name == "hist" else (1,)
    radio = ("cells", "clients", "cycles_per_flop")
    flags = {k: v for k, v in (SMALL | RUNS[name][1]).items() if k not in radio}
    for place in places:
        config = Config.from_flags(
            RUNS[name][0], **flags, out=tmp_path / str(place), uplink="ofdma", allocation="optimal"
        )
        trained = wirelessfl.run(config, network=some[place])
        assert_same(found[place].rows, trained.rows)
        np.testing.assert_allclose(
            found.seconds[place], [row["sim_seconds"] for row in trained.rows], rtol=1e-12
        )


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("uplink", UPLINKS)
def test_networks_together_are_the_networks_one_by_one(uplink, runs, no_data):
    slow = uplink == "weight"  # all cells of a network together
    both = uplink in ("equal", "optimal")
    for name in ("hist", "partial") if both else ("partial",) if slow else ("hist",):
        some = networks(name)[2:] if slow else networks(name)
        found = wirelessfl.price(runs[name], network=some, uplink=UPLINKS[uplink])
        for place, network in enumerate(some):
            alone = wirelessfl.price(runs[name], network=network, uplink=UPLINKS[uplink])
            assert_same(found[place].rows, alone.rows)
            assert found[place].settings == alone.settings
        assert len(np.unique(found.joules[:, -1])) >= 3


def test_settings_a_folder_and_an_import_path_are_the_same_network(runs, tmp_path, monkeypatch):
    run = runs["hist"]
    (tmp_path / "own_cells.py").write_text(
        "from channels import section_vi_c\n"
        "def cells(stream):\n    return section_vi_c(2, 6, stream=stream)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for network in (
        {"snr_db": 3.0},
        {"layout": "hexagonal", "path_loss": "umi"},
        "own_cells:cells",
    ):
        found = wirelessfl.price(run.directory, network=network, uplink="ofdma")
        assert found.rows == wirelessfl.price(run, network=network, uplink="ofdma").rows
        together = wirelessfl.price(run, network=[network, {"antennas": 4}], uplink="ofdma")
        assert_same(together[0].rows, found.rows)
        assert together[1].rows[-1]["sim_seconds"] != found.rows[-1]["sim_seconds"]
    assert [row["round"] for row in wirelessfl.price(run, 2, uplink="ofdma").rows] == [0, 1, 2]


def test_the_own_network_gives_the_rows_of_the_run(runs, no_data):
    for run in runs.values():
        again = wirelessfl.price(run, uplink="tdma")
        assert again.rows == run.rows
        assert again.changes == {}


def test_what_a_user_sees_of_a_price(runs):
    run = runs["hist"]
    found = wirelessfl.price(run, uplink=OPTIMAL, network={"bandwidth_hz": 2e6})
    assert found.changes["network.bandwidth_hz"] == (9e6, 2e6)
    trained, now = found.costs(target=0.01)
    assert trained["seconds_to_target"] == run.rows[0]["sim_seconds"]
    assert now["seconds"] == found.rows[-1]["sim_seconds"]
    assert "bandwidth_hz 2e+06 instead of 9e+06" in found.differences()
    assert found.table(2.0).count("not reached") == 6
    assert "ofdma, allocation optimal, bandwidth_hz 2e+06, priced from" in repr(found)
    table = Runs([run, found]).table("bandwidth_hz")
    assert [row["bandwidth_hz"] for row in table.rows] == [2e6, 9e6]
    assert found.params.keys() == run.params.keys()
    moved = wirelessfl.price(run, network=networks("hist")[0])
    assert "another network, priced from" in repr(moved)
    assert "network 6 clients in 2 cells" in moved.differences()


def test_targets_of_many_networks(runs):
    run = runs["hist"]
    found = wirelessfl.price(run, network=networks("hist"), uplink="ofdma")
    best = max(row["accuracy"] for row in run.rows)
    hit = next(place for place, row in enumerate(run.rows) if row["accuracy"] >= best)
    np.testing.assert_array_equal(found.seconds_to(best), found.seconds[:, hit])
    np.testing.assert_array_equal(found.joules_to(best), found.joules[:, hit])
    assert np.isinf(found.seconds_to(1.1)).all()
    free = wirelessfl.price(run, network=networks("hist"), uplink="ofdma", joules=False)
    np.testing.assert_array_equal(free.seconds, found.seconds)
    assert "joules" not in free[0].rows[-1]
    with pytest.raises(ConfigError, match="joules=True"):
        free.joules_to(best)


def test_many_networks_of_settings_without_a_run():
    """Also where submodels depend on the radio: then each network is simulated."""
    for uplink, changes in (("ofdma", {}), ("tdma", {"mask_sizes": "optimized"})):
        config = settings("hist", **changes)
        some = networks("hist", 2)[:3]
        found = wirelessfl.price(config, network=some, uplink=uplink)
        free = {k: v for k, v in (SMALL | RUNS["hist"][1]).items() if k not in ("cells", "clients")}
        for place, network in enumerate(some):
            own = Config.from_flags("hist", **free, **changes, uplink=uplink)
            assert_same(found.rows_of(place), wirelessfl.price(own, network=network).rows)


@pytest.mark.parametrize("schedule", ["rounds", "simultaneous"])
def test_traffic_that_depends_on_the_network_is_that_of_each(schedule):
    """Clients that are late over one network are not over another."""
    config = Config.from_flags("fedavg", **SMALL, schedule=schedule, cutoff_seconds=4e-4)
    some = [channels.umi(cells=1, clients=6, stream=channels.Stream(seed)) for seed in range(3)]
    prices = wirelessfl.price(config, network=some)
    for place, network in enumerate(some):
        assert prices.rows_of(place) == wirelessfl.price(config, network=network).rows
    assert len(np.unique(prices.fields["uplink_mib"][:, -1])) > 1


class Silent(channels.Rayleigh):
    """Fading that leaves nothing of the first client's channel."""

    def draw(self, stream, index, clients, root):
        return super().draw(stream, index, clients, root) * (clients > 0)[:, None]


def far(network):
    """The network with one client whom the server hardly hears."""
    snr = np.array(network.snr_db)
    snr[-1] = -290.0
    return network.with_snr(snr)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"uplink": "aircomp"}, "depends on it: uplink=aircomp.*Train it there"),
        ({"uplink": "ofdmaa"}, "ofdma"),
        ({"uplink": 3}, "uplink is 3: give the name of an uplink, or its settings"),
        ({"uplink": {"allocation": "optimal"}}, "allocation"),
        ({"network": {"cells": 3}}, r"cells=3 changes the training.*run --config .* --cells 3"),
        ({"network": {"mask_sizes": "optimized"}}, "mask_sizes=optimized changes the training"),
        ({"network": {"on_idle": "drop"}}, "unknown setting 'on_idle'"),
        ({"network": {"given": 3}}, "unknown setting 'given'"),
        ({"network": {"bandwith_hz": 3}}, "bandwidth_hz"),
        ({"network": 3}, "network is 3"),
        ({"network": []}, "network is an empty sequence"),
        ({"rounds": 9, "uplink": "ofdma"}, "rounds is 9, but the run has 3.*resume"),
        ({"rounds": 0, "uplink": "ofdma"}, "rounds is 0: give an integer >= 1"),
        (
            {"data": (np.zeros((4, 2)), np.arange(4), np.zeros((4, 2)), np.arange(4))},
            "data=... is given, but the run has",
        ),
        ({"uplink": {"name": "ofdma", "round_deadline": 1e-6}}, "round_deadline is 1e-06"),
    ],
)
def test_wrong_arguments_are_named(arguments, message, runs):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.price(runs["hist"], **arguments)


def test_networks_that_have_no_price_are_named(runs):
    run, some = runs["hist"], networks("hist")
    more = channels.section_vi_c(2, 7, stream=channels.Stream(1))
    for wrong, message in (
        ([some[0], more], r"over network\[1\], clients are in other cells"),
        ([*some, replace(some[0], fading=Silent())], r"network\[5\]: round 1 takes inf"),
        ([some[0], {"seed": 2}], r"network\[1\]: seed=2 changes the training"),
        ([some[0], 3], r"network\[1\]: network is 3"),
    ):
        with pytest.raises(ConfigError, match=message):
            wirelessfl.price(run, network=wrong, uplink="ofdma")
    late = {"name": "ofdma", "round_deadline": 0.5}
    with pytest.raises(ConfigError, match=r"network\[5\]: .*round_deadline"):
        wirelessfl.price(run, network=[*some, far(some[0])], uplink=late)


@pytest.mark.parametrize(
    ("algorithm", "flags", "name"),
    [
        ("fedavg", {"clients": 4, "clients_per_round": 2, "select": "soonest"}, "select=soonest"),
        ("fedavg", {"clients": 4, "max_seconds": 9.0}, "max_seconds=9"),
        ("hist", {"cells": 2, "clients": 4, "mask_sizes": "optimized"}, "mask_sizes=optimized"),
        ("fedavg", {"clients": 4, "cutoff_seconds": 0.2}, "cutoff_seconds=0.2"),
        (
            "hfedavg",
            {"cells": 2, "clients": 4, "schedule": "buffered", "buffer": 1},
            "schedule=buffered",
        ),
    ],
)
def test_runs_whose_radio_changes_the_training_are_refused(algorithm, flags, name, tmp_path):
    config = Config.from_flags(algorithm, **SMALL, **flags)
    run = wirelessfl.RunResult(config, [], {}, tmp_path)
    with pytest.raises(ConfigError, match=f"its model depends on it: {name}"):
        wirelessfl.price(run, network={"snr_db": 3.0})
