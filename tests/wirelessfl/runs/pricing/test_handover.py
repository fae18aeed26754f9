"""Clients that are handed over, in prices, plans, designs, client logs and runs."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch

import channels
import wirelessfl
from channels.streams import Stream
from wirelessfl.air.batteries import Charges, EnergyLimits
from wirelessfl.base.errors import ConfigError
from wirelessfl.designs.choices import Family
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.folder.identity import network_hash
from wirelessfl.runs.pricing.radio import repriced
from wirelessfl.runs.pricing.round_timeline import draw_rounds, round_timeline

RADIO = {
    "antennas": 2, "uplink": "ofdma", "cpu_hz": (1e9, 2e9), "path_loss": "umi", "fading": "rician",
}  # fmt: skip
FAST = {"dataset": "digits", "hidden": (8,), "local_steps": 2, "workers": 1, "chunk": 6}
FAST |= {"edge_rounds": 2, "rounds": 4}
GRID = RADIO | {"layout": "hexagonal", "inter_site_distance_m": 150.0, "cells": 3, "clients": 9}
WALKS = {"mobility": "waypoint", "speed_kmh": 200.0, "block_seconds": 5.0}
HANDOVER = WALKS | {"handover": "strongest"}


def config(algorithm="hfedavg", **flags):
    values = {name: value for name, value in (FAST | flags).items() if value is not None}
    return wirelessfl.Config.from_flags(algorithm, **values)


def rows_of(run):
    return [{**row, "wall_seconds": 0} for row in run.rows]


def street(tmp_path, cell, *walk):
    """Two edge servers 300 m apart; client 1, at 40 m, was placed in ``cell``, and may walk."""
    layout, trace = tmp_path / f"street{cell}.csv", tmp_path / "walk.csv"
    rows = ["base_station,0,0,", "base_station,300,0,", "client,20,20,0", f"client,40,0,{cell}"]
    rows += ["client,270,30,1", "client,310,30,1"]
    layout.write_text("\n".join(["kind,x_m,y_m,cell", *rows]))
    trace.write_text("\n".join(["client,round,x_m,y_m", *walk]))
    flags = {"layout": "file", "layout_file": layout, "cells": 2, "clients": 4}
    return RADIO | flags | {"mobility": "trace", "positions": trace}


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("hfedavg", {"weighting": "samples", "split": "dirichlet", "local": "fedprox"}),
        ("hist", {"failures": "outage", "csi_error": 0.1, "split": "iid"}),
    ],
)
def test_a_client_trains_with_its_serving_cell_as_if_it_belonged_to_it(tmp_path, algorithm, more):
    """It stands near the other edge server: rows, models and logs are those of this cell."""
    stands, runs = ("1,1,280,0",), []
    for cell, rule in ((0, "strongest"), (1, "none")):
        flags = street(tmp_path, cell, *stands) | more | {"handover": rule, "client_log": True}
        runs.append(wirelessfl.run(config(algorithm, **flags, out=tmp_path / rule)))
    assert rows_of(runs[0]) == rows_of(runs[1])
    models = [run.model().state_dict() for run in runs]
    assert all(torch.equal(models[0][name], value) for name, value in models[1].items())
    logs = [wirelessfl.read_client_log(tmp_path / rule) for rule in ("strongest", "none")]
    for name, column in logs[0].columns.items():
        assert np.array_equal(column, logs[1][name], equal_nan=True), name
    assert logs[0]["cell"][:4].tolist() == [0, 1, 1, 1]


def test_rounds_of_a_walk_cost_what_they_cost_in_its_serving_cell(tmp_path):
    """From x = 40 m to 280 m in 5 rounds: in cell 0, and then, past 150 m, in cell 1."""
    walk = ("1,1,40,0", "1,5,280,0")
    planners = [
        planner_without_data(config(**street(tmp_path, cell, *walk), handover=rule))
        for cell, rule in ((0, "strongest"), (0, "none"), (1, "none"))
    ]
    plans = [[planner.plan(number) for planner in planners] for number in range(5)]
    homes = []
    for moving, *fixed in plans:
        assert moving.clients.tolist() == [0, 1, 2, 3]
        homes.append(int(moving.node[1]))
        expected = fixed[homes[-1]].price
        assert np.allclose(moving.price.seconds, expected.seconds, rtol=1e-12, atol=0)
        assert np.allclose(moving.price.client_joules, expected.client_joules, rtol=1e-12, atol=0)
    assert homes[0] == 0
    assert homes[-1] == 1
    assert homes == sorted(homes)
    assert not np.allclose(plans[4][0].price.seconds, plans[4][1].price.seconds, rtol=1e-3)


def test_seconds_in_the_serving_cell_by_hand(tmp_path):
    """Download-free rounds without fading: bits over an equal share of the band, and the steps."""
    flags = street(tmp_path, 0, "1,1,280,0") | {
        "fading": f"{__name__}:Unfaded",
        "mobility": "trace",
    }
    planner = planner_without_data(
        config(**flags | {"line_of_sight": "always", "shadowing_db": 0.0}, handover="strongest")
    )
    plan, model = planner.plan(2), channels.Umi()
    loss = model.loss_db([np.hypot(20, 20), 20, np.hypot(30, 30), np.hypot(10, 30)], True)
    band = np.array([9e6, 3e6, 3e6, 3e6])
    noise_w = 10 ** ((planner.network.noise_dbm_per_hz + 5.0 - 30) / 10) * band
    rate = band * np.log2(1 + 2 * 0.1 * 10 ** (-loss / 10) / noise_w)
    steps = 2 * planner.network.cycles_per_step / planner.network.cpu_hz
    seconds = 2 * (steps + 32 * planner.model.spec.size / rate)
    assert np.allclose(plan.price.client_seconds, seconds, rtol=1e-6)  # h has single precision
    assert np.allclose(plan.price.seconds, [seconds[0], seconds[1:].max()], rtol=1e-6)


class Unfaded(wirelessfl.extend.FadingModel):
    """All channels are 1."""

    def build(self):
        return _Ones()


class _Ones:
    def draw(self, stream, index, clients, root):
        return np.ones((len(clients), len(root)), dtype=np.complex64)


@pytest.mark.parametrize("algorithm", ["hfedavg", "hist"])
def test_clients_that_stand_in_their_strongest_cell_have_the_rows_of_no_handover(algorithm):
    flags = GRID | {"association": "strongest"} | WALKS | {"speed_kmh": 0.0}
    prices = [
        wirelessfl.price(config(algorithm, **flags, handover=h)) for h in ("none", "strongest")
    ]
    assert prices[0].rows == prices[1].rows


CASES = {
    "some": ("hfedavg", {"clients_per_round": 5}),
    "air": ("hist", {"uplink": "aircomp", "csi_error": 0.1, "antennas": 3}),
    "masks": ("hist", {"mask_sizes": "optimized", "coherence": "edge-round"}),
    "submodels": ("hfedavg", {"local": "heterofl", "capacities": (1.0, 0.5), "lr": 0.01}),
    "failures": ("hfedavg", {"failures": "outage", "csi_error": 0.1, "local_epochs": 1.0,
                             "local_steps": None}),
    "batteries": ("hfedavg", {"battery_joules": (1e-3, 4e-3), "recharge": "constant",
                              "recharge_watts": 1e-3, "clients_per_round": 6}),
    "sessions": ("hfedavg", {"sessions": 2, "presence": "labels", "warm_start": "previous"}),
    "compressed": ("hfedavg", {"uplink_compression": "top-k", "error_feedback": True}),
    "devices": ("hfedavg", {"devices": "mixed", "cpu_hz": None}),
    "selective": ("hfedavg", {"delay_spread_ns": 300.0, "subcarriers": 8, "fading": "rayleigh"}),
}  # fmt: skip


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("case", CASES)
def test_prices_are_those_of_the_run_which_can_be_resumed(case, tmp_path):
    algorithm, more = CASES[case]
    flags = GRID | HANDOVER | more
    if case in ("devices", "failures"):
        flags |= {"split": "iid"}
    settings = config(algorithm, **flags, client_log=True, out=tmp_path / "run")
    run = wirelessfl.run(settings)
    price = wirelessfl.price(config(algorithm, **flags))
    for name in ("sim_seconds", "joules", "joules_max"):
        assert [row[name] for row in price.rows] == [row[name] for row in run.rows]
    log = wirelessfl.read_client_log(tmp_path / "run")
    assert log.handovers > 0
    assert f"handovers: {log.handovers}" in log.lines()
    plain = wirelessfl.price(config(algorithm, **flags | {"handover": "none"}))
    assert price.rows[-1] != plain.rows[-1]
    if case == "sessions":
        return
    wirelessfl.run(config(algorithm, **flags | {"rounds": 2}, out=tmp_path / "part"))
    more = wirelessfl.resume(tmp_path / "part", rounds=4)
    assert rows_of(more) == rows_of(run)


def test_handovers_are_counted_between_the_rounds_of_a_client():
    timeline = round_timeline(config(**GRID, **HANDOVER), rounds=4)
    planner = planner_without_data(config(**GRID, **HANDOVER))
    cells = []
    for number in range(4):
        served = planner.network.served(number)
        cells.append(served.cell_of[served.places(np.arange(9))])
    assert timeline.log.handovers == np.count_nonzero(np.diff(cells, axis=0)) > 0


def test_ends_of_edge_rounds_are_drawn_at_the_clients_that_the_cell_serves():
    timeline = round_timeline(config(**GRID, **HANDOVER), rounds=3)
    (panel,) = draw_rounds(timeline.laps, 9, 3, timeline.seconds).axes
    names = [int(label.get_text().split()[-1]) for label in panel.get_yticklabels()]
    height_of = dict(zip(names, panel.get_yticks(), strict=True))
    lines = [line.get_xydata() for line in panel.lines if line.get_color() == "0.35"]
    for lap in timeline.laps:
        ends = lap.begin + lap.costs.cell_seconds[0]
        for client, cell in zip(lap.costs.clients, lap.costs.cell, strict=True):
            at = height_of[int(client)]
            over = {x for (x, low), (_, high) in lines if low < at < high and x in ends}
            assert over == {ends[cell]}


def test_a_design_hands_over_in_the_blocks_of_its_sample():
    """A sampled round has the participants, cells and seconds of the plan at its positions."""
    settings = config(**GRID, **HANDOVER | {"speed_kmh": 100.0, "rounds": 50})
    planner = planner_without_data(settings)
    sample = Family("hfedavg", settings, planner, None).sample(None, 3)
    for number, (who, draws) in enumerate(sample.rounds):
        served = planner.network.served(int(50 * ((5**0.5 - 1) / 2 * number % 1)))
        assert who.clients.tolist() == served.numbers.tolist()
        assert draws.network.cell_of.tolist() == served.cell_of.tolist()
    uplink = sample.planner.links.uplink
    together = sample.of(uplink, [2], [2])
    alone = [sample.planned(uplink, 2, 2, number).price.seconds.max() for number in range(3)]
    assert np.allclose(np.ravel(together.seconds), alone, rtol=1e-12)


def test_networks_are_priced_one_by_one_and_their_hash_tells_the_handover():
    values = {"cells": 2, "clients": 6, "cpu_hz": 1e9, "block_seconds": 5.0}
    objects = [
        channels.placed_network(
            channels.Hexagonal(150.0), channels.Umi(), stream=Stream(number), handover="strongest",
            mobility=channels.RandomWaypoint(200.0), **values,
        )
        for number in range(3)
    ]  # fmt: skip
    plain = wirelessfl.Config.from_flags("hfedavg", rounds=4, uplink="ofdma")
    together = wirelessfl.price(plain, network=objects)
    for number, network in enumerate(objects):
        alone = wirelessfl.price(plain, network=network)
        assert np.allclose(together.seconds[number, 1:], alone.seconds.cumsum(), rtol=1e-12)
    fading = replace(objects[0].fading, handover=False)
    of = [network_hash(n, Stream(1)) for n in (objects[0], replace(objects[0], fading=fading))]
    assert of[0] != of[1]
    with pytest.raises(ConfigError, match='handover of the network conflicts with local="scaffo'):
        wirelessfl.price(plain.changed(local="scaffold"), network=objects[0])


def test_ledgers_and_batteries_take_clients_in_the_order_of_their_serving_cells():
    ledger, charges = Ledger(9), Charges()
    limits = EnergyLimits(capacity=10.0)
    expected = np.zeros(9)
    for clients in ([7, 0, 5], [8, 5, 1, 7]):
        joules = np.arange(1.0, len(clients) + 1)
        ledger.add(np.array(clients), joules, np.ones(len(clients), dtype=np.bool_))
        charges = limits.after(charges, np.array(clients), 0.0, spent=joules)
        expected[clients] += joules
    assert ledger.joules.tolist() == expected.tolist()
    assert charges.clients.tolist() == [0, 1, 5, 7, 8]
    assert charges.of(np.array([8, 0, 7])).tolist() == (10 - expected[[8, 0, 7]]).tolist()


def test_a_run_has_no_price_over_a_network_with_handover():
    """Given as an object; settings with handover are a reason of their own."""
    fixed, moving = (
        channels.placed_network(
            channels.Hexagonal(), channels.Umi(), cells=2, clients=4, stream=Stream(1), cpu_hz=1e9,
            mobility=channels.RandomWaypoint(50.0), handover=rule,
        )
        for rule in ("none", "strongest")
    )  # fmt: skip
    plain = config(clients=None)
    marked, objects = configured_call(repriced, plain, {"network": moving})
    with pytest.raises(ConfigError, match="a network with handover decides with whom clients tr"):
        repriced([{"round": 0}], marked, marked, network=fixed, objects=objects)


@pytest.mark.parametrize(
    ("algorithm", "flags", "words"),
    [
        ("fedavg", {"cells": None}, "which is a star with one server"),
        ("hfedavg", {"local": "scaffold"}, "keep means over the clients of their cell"),
        ("hfedavg", {"select": "best-channel"}, "compares the clients of the cells in which they"),
        ("hfedavg", {"schedule": "buffered"}, "has no synchronous rounds of one model"),
        ("hfedavg", {"reuse_factor": 1}, "clients that were placed in other cells"),
        ("hfedavg", dict.fromkeys(WALKS), "needs clients that move: set mobility"),
    ],
)
def test_refusals(algorithm, flags, words):
    flags = GRID | HANDOVER | flags
    if algorithm == "fedavg":
        flags["edge_rounds"] = None
    if "select" in flags:
        flags["clients_per_round"] = 3
    with pytest.raises(ConfigError, match=words):
        config(algorithm, **flags)


def test_a_single_cell_is_refused():
    with pytest.raises(ConfigError, match='handover is "strongest", and there is one cell'):
        wirelessfl.price(config(**GRID | HANDOVER | {"cells": 1}))


def test_work_of_a_round_follows_its_participants():
    """Ten times the clients take no more memory in the plan of a round."""
    peaks = []
    for clients in (20_000, 200_000):
        flags = GRID | HANDOVER | {"clients": clients, "clients_per_round": 12, "dataset": "digits"}
        planner = planner_without_data(config(**flags))
        planner.plan(1)
        tracemalloc.start()
        planner.plan(2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 180_000 / 4, "less than a quarter of a byte per client"
