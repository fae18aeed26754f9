"""Costs of trial rounds and teachers: seconds by (17) and bytes, computed client by client."""

import math

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.engine.events import Report
from wirelessfl.engine.loop import simulate
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine

P = 12 * 7 + 7 + 4 * 7 + 4  # parameters with 7 hidden neurons
VECTOR = 4 * P / 2**20
DOWN_BPS, BACKHAUL_BPS = 2e5, 3e5
FLAGS = {
    "sessions": 4, "clients": 8, "rounds": 2, "split": "iid", "seed": 2, "uplink": "tdma",
    "downlink_mbps": DOWN_BPS / 1e6,
}  # fmt: skip


@pytest.fixture
def finished(config, toy):
    """A factory that runs engines to the end and returns each with its rows."""

    def make(algorithm, *, watch=lambda engine: None, **flags):
        settings = config(algorithm, **FLAGS | flags)
        engine = Engine(build(settings, data=toy, model=FCNN((12,), 4, hidden=(7,))))
        watch(engine)
        rows = []

        def report(decision: Report):
            rows.append(engine.row(decision)[0])

        engine.start()
        simulate(
            engine.setup.schedule, engine.setup.handler, engine.setup.clock, report, lambda: None
        )
        return engine, rows

    return make


def round_seconds(network, channel, number, present, *, edge_rounds=1):
    """Seconds of a round by (17) and (18), with TDMA among the present clients of a cell."""
    h = network.draw(channel, number).h.astype(complex)
    cells = []
    for cell in range(network.cells):
        own = [c for c in present if network.cell_of[c] == cell]
        slowest = 0.0
        for client in own:
            snr = 10 ** (network.snr_db[client] / 10) * float((np.abs(h[client]) ** 2).sum())
            upload = len(own) * 32 * P / (network.bandwidth_hz[cell] * math.log2(1 + snr))
            compute = 3 * network.cycles_per_step / network.cpu_hz[client]
            slowest = max(slowest, 32 * P / DOWN_BPS + compute + upload)
        cells.append(edge_rounds * slowest)
    backhaul = 2 * 32 * P / BACKHAUL_BPS if network.cells > 1 else 0.0
    return max(cells) + backhaul


@pytest.mark.parametrize("cells", [1, 2])
def test_costs_of_trial_rounds(finished, cells):
    """Each session but the first has a trial round of E edge rounds, with other channel draws."""
    edge_rounds = cells
    more = {"cells": cells, "edge_rounds": 2, "backhaul_mbps": BACKHAUL_BPS / 1e6}
    flags = {"warm_start": "proposed"}
    engine, rows = (
        finished("hfedavg", **flags, **more) if cells > 1 else finished("fedavg", **flags)
    )
    last, network = rows[-1], engine.setup.handler.planner.network
    group_of, stream = engine.setup.model.groups.group_of, Stream(2)
    groups = int(group_of.max()) + 1
    trial, whole = 0.0, 0.0
    for session in range(4):
        present = np.flatnonzero(group_of == session % groups).tolist()
        assert len(present) == 4
        args = {"edge_rounds": edge_rounds}
        if session:
            channel = stream.child("trial", "channel")
            trial += round_seconds(network, channel, session, present, **args)
        for number in (2 * session, 2 * session + 1):
            whole += round_seconds(network, stream.child("channel"), number, present, **args)
    assert last["extra_rounds"] == last["extra_broadcasts"] == 3
    assert last["extra_uploads"] == 3 * 4 * edge_rounds
    assert last["extra_seconds"] == pytest.approx(trial, rel=1e-5)
    assert last["sim_seconds"] == pytest.approx(trial + whole, rel=1e-5)
    # Half of the clients are present; bytes are means over all clients.
    assert last["extra_mib"] == pytest.approx(3 * edge_rounds * (VECTOR / 2 + VECTOR / 2))
    assert last["uplink_mib"] == pytest.approx((8 + 3) * edge_rounds * VECTOR / 2)
    assert last["downlink_mib"] == pytest.approx((8 + 3) * edge_rounds * VECTOR / 2)
    assert last["backhaul_mib"] == pytest.approx((8 + 3) * 2 * VECTOR if cells > 1 else 0.0)


@pytest.mark.parametrize("cells", [1, 2])
def test_costs_of_teachers(finished, cells):
    """Each session but the first broadcasts one teacher to the edge servers and present clients."""
    more = {"cells": cells, "edge_rounds": 2, "backhaul_mbps": BACKHAUL_BPS / 1e6}
    flags = {"warm_start": "continuous"}
    engine, rows = (
        finished("hfedavg", **flags, **more) if cells > 1 else finished("fedavg", **flags)
    )
    last, network = rows[-1], engine.setup.handler.planner.network
    group_of = engine.setup.model.groups.group_of
    groups = int(group_of.max()) + 1
    send = 32 * P / DOWN_BPS + (32 * P / BACKHAUL_BPS if cells > 1 else 0.0)
    now, times = 0.0, []
    for session in range(4):
        present = np.flatnonzero(group_of == session % groups).tolist()
        times.append(now)
        for index in range(2):
            now += send if session and not index else 0.0
            number = 2 * session + index
            now += round_seconds(
                network, Stream(2).child("channel"), number, present, edge_rounds=cells
            )
            times.append(now)
    assert [row["sim_seconds"] for row in rows] == pytest.approx(times, rel=1e-5)
    assert last["extra_broadcasts"] == 3
    assert last["extra_rounds"] == last["extra_uploads"] == 0
    assert last["extra_seconds"] == pytest.approx(3 * send)
    assert last["extra_mib"] == pytest.approx(3 * VECTOR / 2)
    assert last["uplink_mib"] == pytest.approx(8 * cells * VECTOR / 2)
    assert last["downlink_mib"] == pytest.approx((8 * cells + 3) * VECTOR / 2)
    assert last["backhaul_mib"] == pytest.approx((8 * 2 + 3) * VECTOR if cells > 1 else 0.0)


def test_clients_that_leave_during_a_trial_are_counted(finished, trace):
    """The client's update is dropped, but uploads, bytes and seconds do not change."""
    flags = {"warm_start": "proposed", "presence": "trace", "sessions": 2}
    _, whole = finished("fedavg", **flags, trace=trace(*[(c, 0, "") for c in range(8)]))
    ends = [row for row in whole if row["session"] == 0][-1]["sim_seconds"]
    middle = ends + whole[-1]["extra_seconds"] / 2
    stays = trace(*[(c, 0, middle if c == 3 else "") for c in range(8)])
    _, rows = finished("fedavg", **flags, trace=stays)
    last = rows[-1]
    assert (last["dropped"], last["present"]) == (1, 7)
    for name in ("extra_rounds", "extra_uploads", "extra_seconds", "extra_mib"):
        assert last[name] == whole[-1][name], name
    assert last["extra_uploads"] == 8
    assert last["extra_mib"] == pytest.approx(2 * VECTOR)


def test_warm_starts_receive_the_labels_of_the_previous_session(finished):
    """The labels are those in the samples of the previous session's clients."""
    told = []

    def watch(engine):
        warm_start = engine.setup.handler.model.warm_start
        penalties = warm_start.penalties

        def heard(session, labels):
            told.append((session, labels))
            return penalties(session, labels)

        object.__setattr__(warm_start, "penalties", heard)

    engine, _ = finished("fedavg", warm_start="continuous", watch=watch)
    group_of, labels = engine.setup.model.groups.group_of, engine.setup.model.data.train_labels
    groups = int(group_of.max()) + 1
    expected = [(0, ())]
    for session in range(1, 4):
        present = np.flatnonzero(group_of == (session - 1) % groups)
        own = {
            int(labels[row])
            for client in present
            for row in engine.setup.model.client_samples[client]
        }
        expected.append((session, tuple(sorted(own))))
    assert told == expected
    assert len({labels for _, labels in told}) == 3
