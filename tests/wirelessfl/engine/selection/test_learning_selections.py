"""Selections that learn: bandits against their regret, utilities by hand, history and state."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wirelessfl
from channels import Network, Stream
from tests.wirelessfl.engine.selection.test_selections import CLIENTS, First, candidates
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.selection import Ucb, Utility
from wirelessfl.engine.server.ledger import ENTRIES, Ledger
from wirelessfl.runs.build import build
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.training.trainer import ClientTraining, Trained, Trainer

ALL = np.ones(3, dtype=bool)


def ledger_of(*rounds, clients=12):
    """A ledger of rounds (clients, seconds)."""
    ledger = Ledger(clients)
    for some, seconds in rounds:
        some = np.array(some)
        ledger.add(some, 2.0 * np.array(seconds), some != 6, np.array(seconds))
    return ledger


def test_the_history_of_candidates_by_hand():
    """Client 6 is never heard; client 11 has not taken part; losses are known of 2 and 11."""
    ledger = ledger_of(([0, 2, 6], [1.0, 2.0, 3.0]), ([2, 6], [5.0, 1.0]), ([0], [7.0]))
    ledger.know(np.array([11, 2]), np.array([0.5, 3.0]))
    ledger.know(np.array([2, 2]), np.array([1.0, 9.0]))
    past = ledger.history(np.array([11, 0, 2, 6]))
    assert past.seconds.tolist() == [0, 8, 7, 4]
    assert past.joules.tolist() == [0, 16, 14, 8]
    assert_array_equal(past.last_seconds, [np.nan, 7, 5, 1])
    assert_array_equal(past.last_joules, [np.nan, 14, 10, 2])
    assert past.times_chosen.tolist() == [0, 2, 2, 2]
    assert past.times_heard.tolist() == [0, 2, 2, 0]
    assert past.since_chosen.tolist() == [5, 1, 2, 2]
    assert past.since_heard.tolist() == [5, 1, 2, 5]
    assert_array_equal(past.loss, [0.5, np.nan, 1, np.nan])
    assert_array_equal(past.loss_change, [np.nan, np.nan, -2, np.nan])
    assert ledger.chosen[[11, 0, 2, 6]].tolist() == [0, 3, 2, 2]


def upper_bounds(rounds, delays, bonus):
    """Clients that UCB1 plays, one in each round: a loop over means, as in the paper."""
    sums, counts, played = np.zeros(len(delays)), np.zeros(len(delays), dtype=int), []
    for number in range(rounds):
        if number < len(delays):
            arm = number
        else:
            means = sums / counts
            radius = np.sqrt(bonus * np.log(number) / counts)
            arm = int(np.argmax(1 - means / means.max() + radius))
        sums[arm] += delays[arm] if np.ndim(delays) == 1 else delays[arm, number]
        counts[arm] += 1
        played.append(arm)
    return played, counts


def chosen_by(select, network, config, toy, rounds=300, **flags):
    """The client of each round, and the seconds of every round of each client."""
    settings = config("fedavg", network=True, clients_per_round=1, select=select, **flags)
    planner = build(settings, data=toy, network=network, trained=False).planner
    ledger = Ledger(network.clients)
    played = []
    for number in range(rounds):
        plan = planner.plan(number, ledger=ledger)
        ledger.count(plan)
        played += plan.clients.tolist()
    return played, ledger


@pytest.mark.parametrize("bonus", [2.0, 0.1])
def test_ucb_plays_as_ucb1_and_within_its_bound(config, toy, bonus):
    """Delays are constant; UCB1 plays an arm of gap g at most 8 ln n / g^2 + 1 + pi^2 / 3 times."""
    speeds = 1e9 / np.array([1.0, 0.9, 0.4, 0.7, 0.3])
    network = Network.from_snr([0] * 5, cpu_hz=speeds, snr_db=20.0, cycles_per_step=1e9)
    flags = {"uplink": "fixed", "rate_mbps": 1e6, "ucb_bonus": bonus}
    played, ledger = chosen_by("ucb", network, config, toy, **flags)
    delays = ledger.history(np.arange(5)).last_seconds
    expected, counts = upper_bounds(300, delays, bonus)
    assert played == expected
    assert_array_equal(ledger.history(np.arange(5)).times_chosen, counts)
    gaps = (delays - delays.min()) / delays.max()
    limit = 8 * np.log(300) / np.maximum(gaps, 1e-9) ** 2 + 1 + np.pi**2 / 3
    assert (counts <= limit).all()
    assert counts.argmax() == 4
    if bonus < 1:  # the best arm is played most of the time
        assert counts[4] > 200


def test_ucb_learns_delays_over_fading_channels(config, toy):
    """The client with the best channel on average is played most, without its channels."""
    network = Network.from_snr([0] * 4, cpu_hz=1e10, snr_db=[0.0, 2.0, 4.0, 12.0])
    played, _ = chosen_by("ucb", network, config, toy, uplink="tdma", ucb_bonus=0.1)
    assert played[:4] == [0, 1, 2, 3]
    assert np.bincount(played).argmax() == 3
    assert np.bincount(played[150:], minlength=4)[3] > 100


def test_ucb_ranks_the_clients_of_each_cell():
    ledger = ledger_of((CLIENTS[:4], [1.0, 2, 3, 4]), (CLIENTS[4:7], [9.0, 1, 5]))
    chosen = Ucb(ucb_bonus=0.0).select(candidates((2, 2), ledger=ledger))
    assert sorted(chosen) == [0, 2, 8, 11]  # 11 is tried first


def test_utilities_by_hand():
    """Two tried clients of cell 0 and one of cell 1 in round 4; client 5 is slow."""
    ledger = ledger_of(([0, 5, 8], [1.0, 4.0, 2.0]), ([5], [4.0]), ([0], [1.0]))
    ledger.know(np.array([0, 5, 8]), np.array([9.0, 0.8, 0.5]))
    asked = []

    def losses(clients, samples):
        asked.append((clients.tolist(), samples))
        return np.full(len(clients), 0.4)

    weights = np.array([2.0, 1, 1, 3, 1, 1, 1, 1])
    here = candidates(ledger=ledger, weights=weights, losses=losses)
    selection = Utility(preferred_quantile=0.0, slow_penalty=2.0, utility_samples=7)
    tried = here.history.times_chosen > 0
    values = selection.utilities(here, tried)
    assert asked == [([0], 7)]  # it took part in the last round
    bonus = np.sqrt(0.1 * np.log(4) / np.array([3, 2, 1]))
    by_hand = (np.array([0.8 / 2.4, 1.0, 1.0]) + bonus) * np.array([1.0, 1 / 16, 1.0])
    assert_allclose(values, by_hand, rtol=1e-12)
    best = Utility(explore=0.0, explore_min=0.0, preferred_quantile=0.0, utility_samples=7)
    assert sorted(best.select(candidates((1, 1), ledger=ledger, losses=losses))) == [0, 8]


def test_a_share_of_untried_clients_decays():
    """One of two participants is untried in 2 x share of the rounds, with shares 0.5, 0.25, 0.1."""
    ledger = ledger_of((CLIENTS[:3], [1.0, 1.0, 1.0]))
    losses = lambda clients, _: np.ones(len(clients))  # noqa: E731
    for number, share in ((0, 0.5), (1, 0.25), (5, 0.1)):
        new = 0
        for seed in range(200):
            here = candidates(
                (2, 0), ledger=ledger, losses=losses, round=number, stream=Stream(seed)
            )
            chosen = Utility(explore=0.5, explore_decay=0.5, explore_min=0.1).select(here)
            new += np.count_nonzero(chosen == 5)
        # One of cell 0 is untried; the standard error is below 0.035.
        expected = 1.0 if 2 * share >= 1 else 2 * share
        assert abs(new / 200 - expected) < 0.11


@dataclass(frozen=True)
class Remembering(First):
    """Counts its calls."""

    def select(self, candidates):
        self.change(candidates.state)
        return candidates.smallest(candidates.clients)


@pytest.mark.parametrize("value", [1, np.zeros(2, dtype=np.complex128), [1.0]])
def test_a_state_of_other_things_is_refused(value):
    selection = Remembering(change=lambda state: state.update(mine=value))
    with pytest.raises(ConfigError, match=r"candidates\.state\['mine'\] = .* Return the clients, "):
        selection.select(candidates())


def test_a_state_is_kept_when_the_round_is_merged(config, toy):
    """A plan that is made twice, as after a resume, changes it once."""

    def count(state):
        state["calls"] = state.get("calls", np.zeros(1, dtype=np.int64)) + 1

    settings = config("fedavg", clients_per_round=2, select="power-of-choice")
    setup = build(settings, data=toy)
    ledger, planner = setup.one_model.ledger, setup.planner
    object.__setattr__(planner.participation, "selection", Remembering(change=count))
    for number in range(3):
        planner.plan(number, ledger=ledger)
        plan = planner.plan(number, ledger=ledger)
        assert ledger.state.get("calls", [0])[0] == number
        ledger.count(plan)
    twin = Ledger(6)
    twin.restore(ledger.tensors())
    assert twin.state["calls"].tolist() == [3]


def test_losses_that_are_asked_for_are_known_later(config, toy):
    settings = config("fedavg", clients_per_round=2, select="power-of-choice", loss_candidates=3)
    setup = build(settings, data=toy)
    ledger = setup.one_model.ledger
    plan = setup.planner.plan(0, ledger=ledger, losses=lambda clients, _: 1.0 + clients)
    [(asked, _)] = plan.learnt.losses
    assert np.isnan(ledger.history(np.arange(6)).loss).all()
    ledger.count(plan)
    loss = ledger.history(np.arange(6)).loss
    assert_array_equal(np.flatnonzero(~np.isnan(loss)), np.sort(asked))
    assert_array_equal(loss[asked], 1.0 + asked)


class Reporting(ClientTraining):
    """Client k reports the loss k."""

    def received(self, params):
        return params.clone()

    def train(self, client, received, lr, number):
        return Trained(received + lr, None, {"train_loss": float(client)})

    def states(self):
        return {}

    def restore(self, states):
        pass


@dataclass
class Reports(Trainer):
    title: str = "reports"
    code: object = "version 1"

    def begin(self, module, spec, clients):
        return Reporting()


def test_losses_that_trainers_report_are_known(config, toy):
    settings = config("fedavg", clients_per_round=2, select="round-robin", rounds=2)
    run = wirelessfl.run(settings, data=toy, trainer=Reports())
    assert [row.get("train_loss") for row in run.rows] == [None, 0.5, 2.5]
    tensors, _ = RunFolder(run.directory).load()
    ledger = Ledger(6)
    ledger.restore(tensors)
    assert_array_equal(ledger.history(np.arange(6)).loss, [0, 1, 2, 3, np.nan, np.nan])


def test_a_million_registered_clients_take_memory_of_those_seen(config, toy):
    network = Network.from_snr([0] * 10**6, cpu_hz=1e9, snr_db=10.0)
    _, ledger = chosen_by("ucb", network, config, toy, rounds=3, uplink="fixed")
    stored = sum(tensor.nbytes for tensor in ledger.tensors().values())
    assert stored == 3 * 8 * (len(ENTRIES) + 1) + 8
