"""Who takes part in planned rounds: prices of all other choices, losses, and budgets of energy."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wirelessfl
from channels import Network
from channels.arrays import IntArray
from channels.fading import Rayleigh
from channels.streams import Stream
from tests.wirelessfl.conftest import make_dataset
from wirelessfl.air.batteries import Charges, EnergyLimits
from wirelessfl.air.participants import Participants, PresentClients
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.runs.build import build
from wirelessfl.training.evaluation import ClientLosses, evaluate

UPLINKS = {
    "slots": {"uplink": "tdma"},
    "ready": {"uplink": "tdma", "order": "ready"},
    "equal bands": {"uplink": "ofdma"},
    "optimal bands": {"uplink": "ofdma", "allocation": "optimal"},
    "fixed": {"uplink": "fixed"},
    "over the air": {"uplink": "aircomp", "beamformer": "random"},
}


def network(sizes=(4, 3), **others):
    rng = Stream(8).generator()
    cell_of = np.repeat(np.arange(len(sizes)), sizes)
    speeds = rng.uniform(1e9, 3e9, len(cell_of))
    return Network.from_snr(cell_of, cpu_hz=speeds, snr_db=5.0, cycles_per_step=2e6, **others)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("uplink", UPLINKS)
def test_no_other_participants_end_sooner(uplink, config, toy):
    """All pairs of the first cell, and all clients of the second, are priced."""
    flags = {"clients_per_round": 3, "select": "soonest", "coherence": "round", "edge_rounds": 2}
    if uplink == "fixed":
        del flags["coherence"]
    settings = config("hfedavg", network=True, **flags, **UPLINKS[uplink])
    planner = build(settings, data=toy, network=network()).planner
    for number in range(3):
        plan = planner.plan(number)
        count = np.bincount(plan.node, minlength=2)
        whole = planner.network.draws(planner.stream.child("channel"), [number])
        pairs = itertools.combinations(range(4), count[0])
        seconds = []
        for chosen in itertools.product(pairs, itertools.combinations(range(4, 7), count[1])):
            clients: IntArray = np.concatenate(chosen).astype(np.int64)
            who = Participants(clients, np.ones(3, dtype=bool))
            price = planner.pricing.price(number, whole, who, plan.submodels, None, Stream(0))
            seconds.append(price.seconds)
        assert plan.price.seconds == pytest.approx(np.min(seconds, 0), rel=1e-9)


def test_submodels_of_clients_count(config, toy):
    """Clients that train a quarter of the neurons end sooner than twice as fast ones."""
    settings = config(
        "ra-fed", network=True, clients_per_round=2, select="soonest", uplink="fixed",
        capacities=(0.25, 1.0), masks="static", rate_mbps=1e4,
    )  # fmt: skip
    speeds = [1e8, 2e8, 1e8, 2e8, 1e8, 2e8]
    made = Network.from_snr([0] * 6, cpu_hz=speeds, snr_db=5.0, cycles_per_step=1e9)
    planner = build(settings, data=toy, network=made).planner
    plan = planner.plan(0)
    lengths = plan.client_submodels.lengths
    assert (lengths < 0.5 * planner.model.spec.size).all()


def test_the_first_channels_of_a_round_decide(config, toy):
    settings = config(
        "hfedavg", network=True, clients_per_round=3, select="best-channel", edge_rounds=3,
        coherence="edge-round",
    )  # fmt: skip
    planner = build(settings, data=toy, network=network()).planner
    plan = planner.plan(2)
    gain = planner.network.draw(planner.stream.child("channel"), 6).gain
    cell_of = planner.network.cell_of
    for cell, count in enumerate(np.bincount(plan.node)):
        mine = np.flatnonzero(cell_of == cell)
        best = mine[np.argsort(-gain[mine])[:count]]
        assert_array_equal(plan.clients[plan.node == cell], np.sort(best))
    assert plan.draws.h.shape[0] == 3


def test_only_present_clients_are_selected_and_tracking_is_drawn(config, toy):
    settings = config(
        "fadamgc", clients=9, clients_per_round=4, tracking_clients=2, select="round-robin"
    )
    planner = build(settings, data=toy).planner
    present, ledger = PresentClients(np.arange(9) % 3 > 0), Ledger(9)
    for expected in ([1, 2, 4, 5], [1, 2, 7, 8], [1, 2, 4, 5], [1, 2, 7, 8]):
        plan = planner.plan(ledger.rounds, present, ledger=ledger)
        assert plan.clients.tolist() == expected
        assert plan.tracking.sum() == 2
        ledger.add(plan.clients, None, np.ones(4, dtype=bool))


@dataclass(frozen=True)
class OfFirstCell(Rayleigh):
    """Channels of zero from client 4 on."""

    def draw(self, stream, index, clients, root):
        return super().draw(stream, index, clients, root) * (clients < 4)[:, None]


def test_a_cell_without_a_channel_is_named(config, toy):
    settings = config("hfedavg", network=True, clients_per_round=3, select="soonest")
    silent = network(fading=OfFirstCell())
    with pytest.raises(ConfigError, match=r"no client of cell 1 can be reached in round 1: the"):
        build(settings, data=toy, network=silent)


def test_losses_of_clients(config, toy):
    """Those of each client alone; of few samples, evenly spaced ones."""
    setup = build(config("fedavg", clients_per_round=2, select="power-of-choice"), data=toy)
    params = setup.learner.server.cloud["params"]
    measured = setup.learner.client_losses
    assert isinstance(measured, ClientLosses)
    clients = np.array([1, 4])
    for count in (None, 3):
        found = measured.of(params, clients, count)
        for loss, client in zip(found, clients, strict=True):
            rows = setup.model.client_samples[client]
            if count is not None:
                rows = rows[[0, len(rows) // 3, 2 * len(rows) // 3]]
            data = setup.model.data
            own = evaluate(
                setup.model.objective, params, data.train_inputs[rows], data.train_labels[rows]
            )
            assert loss == pytest.approx(own[1], rel=1e-5)
    assert measured.of(params, clients[:0]).shape == (0,)


def test_power_of_choice_takes_the_largest_losses(config, toy):
    settings = config(
        "fedavg", clients_per_round=2, select="power-of-choice", loss_candidates=6, rounds=2
    )
    setup = build(settings, data=toy)
    training = setup.learner
    for number in range(2):
        losses = training.losses(np.arange(6), None)
        plan = setup.planner.plan(number, ledger=setup.one_model.ledger, losses=training.losses)
        assert plan.clients.tolist() == sorted(np.argsort(-losses)[:2])
        training.learn(plan, training.server.cloud)


def test_a_biased_selection_is_noted(config, toy):
    notes = []
    for select in ("age", "round-robin"):
        settings = config("fedavg", clients_per_round=2, select=select, rounds=1)
        wirelessfl.run(settings, data=toy, on_note=notes.append)
    (note,) = (note for note in notes if "biased" in note)
    assert note.startswith('select "age" is biased: clients take part unequally often')


def test_clients_with_energy_left():
    joules = np.array([0.0, 2.0, 1.0, 0.5])

    def able(limit, present):
        return EnergyLimits(limit).able(4, joules, Charges(), 0.0, present)

    assert able(3.0, None) is None
    present = PresentClients(np.array([True, True, False, False]))
    assert able(3.0, present) is present
    assert able(1.0, None).at(np.arange(2)).tolist() == [0, 3]
    assert able(1.0, present).at(np.arange(1)).tolist() == [0]
    assert able(np.array([1.0, 3.0, 1.0, 0.5]), None).at(np.arange(2)).tolist() == [0, 1]


BUDGET = {"clients_per_round": 3, "rounds": 40, "client_joules": 4e-3, "cycles_per_step": 1e6}


@pytest.mark.parametrize("select", ["random", "soonest"])
def test_a_client_stops_when_it_has_spent_its_energy(config, toy, select):
    """In its last round it passes its budget; the run ends when all have."""
    limited = build(config("fedavg", **BUDGET, select=select), data=toy)
    free = build(config("fedavg", **BUDGET | {"client_joules": None}, select=select), data=toy)
    ledger, planner = Ledger(6), limited.planner
    equal = True
    while planner.exhausted(None, ledger) is None:
        plan = planner.plan(ledger.rounds, ledger=ledger)
        able = np.flatnonzero(ledger.joules < 4e-3)
        assert np.isin(plan.clients, able).all()
        assert len(plan.clients) == min(3, len(able))
        if len(able) == 6:  # as without budgets
            assert_array_equal(plan.clients, free.planner.plan(ledger.rounds).clients)
        else:
            equal = False
        ledger.add(plan.clients, plan.price.client_joules, np.ones(len(plan.clients), dtype=bool))
    assert not equal
    assert (ledger.joules >= 4e-3).all()
    with pytest.raises(ConfigError, match=r"has no client: all clients have spent client_joules="):
        planner.plan(ledger.rounds, ledger=ledger)
    settings = config("fedavg", **BUDGET, select=select, eval_every=100)
    run = wirelessfl.run(settings, data=toy)
    assert [row["round"] for row in run.rows] == [0, ledger.rounds]
    assert run.rows[-1]["joules"] == pytest.approx(ledger.joules.mean())
    text = f"ended after round {ledger.rounds} of 40: all clients have spent client_joules=0.004"
    assert run.ended == run.summary()["ended"] == text
    assert wirelessfl.resume(run.directory).ended == text
    prices = wirelessfl.price(settings.changed(), data=make_dataset())
    assert len(prices) == ledger.rounds
    assert prices.ended == "all clients have spent client_joules=0.004"
    assert "ended after round" in prices.summary()


def test_every_round_has_one_row(config, toy):
    """Also the last one, which ends the run."""
    run = wirelessfl.run(config("fedavg", **BUDGET), data=toy)
    assert [row["round"] for row in run.rows] == [*range(len(run.rows))]
    assert run.ended is not None
    enough = wirelessfl.run(config("fedavg", **BUDGET | {"rounds": 2}), data=toy)
    assert enough.ended is None
    assert "ended" not in enough.summary()


def test_sessions_end_where_no_present_client_has_energy(config, toy):
    """Group 0 spends all in session 0, and group 1 in session 1: session 2 does not open."""
    flags = {"sessions": 4, "clients_per_round": 3, "rounds": 6, "warm_start": "previous"}
    flags |= {
        "cpu_hz": (1e9, 1e9),
        "cycles_per_step": 1e9,
    }
    budget = 2.5 * 3 * 1e9 * 1e-28 * 1e18  # 3 steps in each of 2.5 rounds
    run = wirelessfl.run(config("fedavg", **flags, client_joules=budget), data=toy)
    assert [(row["session"], row["session_round"]) for row in run.rows] == [
        *((0, number) for number in range(4)),
        *((1, number) for number in range(4)),
    ]
    assert run.ended.startswith("ended after round 6 of 24: all clients have spent client_joules=")
    prices = wirelessfl.price(config("fedavg", **flags, client_joules=budget), data=toy)
    assert len(prices) == 6


def test_prices_that_need_training_or_joules_are_refused(config):
    settings = config("fedavg", clients_per_round=2, select="power-of-choice")
    with pytest.raises(ConfigError, match='select "power-of-choice" has no price without training'):
        wirelessfl.price(settings)
    with pytest.raises(ConfigError, match=r"client_joules=1\.0 conflicts with joules=False"):
        wirelessfl.price(config("fedavg", client_joules=1.0), joules=False)


def test_trial_rounds_select_by_the_losses_of_their_own_model(config, toy):
    """The trial model differs from the cloud's, and trial rounds count in the ledger."""
    settings = config(
        "fedavg", sessions=2, clients_per_round=2, rounds=1, warm_start="proposed",
        trial_rounds=2, select="power-of-choice", uplink="fixed",
    )  # fmt: skip
    setup = build(settings, data=toy)
    training, twin = setup.learner, setup.learner.branch(Stream(1))
    twin.server.begin(training.server.cloud["params"] + 0.5)
    clients = np.arange(6)
    expected = training.client_losses.of(twin.server.cloud["params"], clients)
    assert_array_equal(twin.losses(clients, None), expected)
    assert not np.array_equal(training.losses(clients, None), expected)
    run = wirelessfl.run(settings, data=toy)
    assert run.rows[-1]["round"] == 2
