"""FedTune: its moves against the rule written as a loop over rounds, number by number."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels.streams import Stream
from experiments.codesign.fedtune import FedTune
from wirelessfl import RoundSettings
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.rounds.redesign import Cost, SoFar

NAMES = ("comp_t", "trans_t", "comp_l", "trans_l")


class Oracle:
    """The rule as a server would apply it, one round after another."""

    def __init__(self, weights, clients, steps, limits, penalty, gain, slope):
        self.weights = dict(zip(NAMES, weights, strict=True))
        self.clients, self.steps, self.limits = clients, steps, limits
        self.penalty, self.gain = penalty, gain
        self.eta, self.zeta = dict.fromkeys(NAMES, slope), dict.fromkeys(NAMES, slope)
        self.sums, self.score, self.history = dict.fromkeys(NAMES, 0.0), 0.0, []

    def round(self, score):
        costs = (self.steps, 1.0, self.steps * self.clients, self.clients)
        for name, cost in zip(NAMES, costs, strict=True):
            self.sums[name] += cost
        if score - self.score <= self.gain:
            return
        per = {name: total / (score - self.score) for name, total in self.sums.items()}
        self.history.append((per, self.clients, self.steps))
        self.score, self.sums = score, dict.fromkeys(NAMES, 0.0)
        if len(self.history) > 1:
            self.move()

    def move(self):
        now, clients, steps = self.history[-1]
        last, clients_before, steps_before = self.history[-2]
        older = self.history[-3][0] if len(self.history) > 2 else dict.fromkeys(NAMES, 0.0)
        worse = sum(self.weights[n] * (now[n] - last[n]) / now[n] for n in NAMES) > 0
        helped = {
            "eta": ("comp_t", "trans_t") if clients > clients_before else ("comp_l", "trans_l"),
            "zeta": ("trans_t", "trans_l") if steps > steps_before else ("comp_t", "comp_l"),
        }
        for kind, names in helped.items():
            slopes = getattr(self, kind)
            for name in NAMES:
                if name in names and last[name] != older[name]:
                    slopes[name] = abs(now[name] - last[name]) / abs(last[name] - older[name])
                elif name not in names and worse:
                    slopes[name] *= self.penalty
        change = {n: self.weights[n] * abs(now[n] - last[n]) / now[n] for n in NAMES}
        more = sum(self.eta[n] * change[n] * s for n, s in zip(NAMES, (1, 1, -1, -1), strict=True))
        longer = sum(
            self.zeta[n] * change[n] * s for n, s in zip(NAMES, (-1, 1, -1, 1), strict=True)
        )
        low, high = self.limits[0]
        self.clients = min(max(clients + (1 if more > 0 else -1), low), high)
        low, high = self.limits[1]
        self.steps = min(max(steps + (5 if longer > 0 else -5), low), high)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "weights", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0.5, 0.5), (0.25, 0.25, 0.25, 0.25)]
)
def test_moves_are_those_of_the_rule(seed, weights):
    random = Stream(seed, ("fedtune",)).generator()
    scores = np.maximum.accumulate(1 - np.exp(-0.06 * np.arange(1, 40))) * 0.9
    scores = scores + 0.02 * random.standard_normal(len(scores))
    limits = (2, 12), (5, 60)
    tuner = FedTune(weights, *limits, step=5)
    oracle = Oracle(weights, 6, 20, limits, tuner.penalty, tuner.least_gain, tuner.slope)
    settings, rows, moves = RoundSettings(20, clients_per_round=6), [], 0
    rows.append({"round": 0, "local_steps": 20, "clients_per_round": 6, "validation_accuracy": 0.1})
    for number, score in enumerate(scores, 1):
        rows.append(
            {
                "round": number,
                "local_steps": settings.local_steps,
                "clients_per_round": settings.clients_per_round,
                "validation_accuracy": score,
            }
        )
        run = SoFar(number, rows, [(0, settings)], lambda _: Cost(1, 1))
        found = tuner.decide(run)
        oracle.round(score)
        assert (found.clients_per_round, found.local_steps) == (oracle.clients, oracle.steps)
        moves += found != settings
        settings = found
    assert moves > 5


def test_preferences_decide_the_direction():
    """After the first window, least load wants fewer clients, least transmission time more."""
    rows = [
        {"round": i, "local_steps": 20, "clients_per_round": 6, "validation_accuracy": accuracy}
        for i, accuracy in enumerate((0.1, 0.3, 0.4))
    ]
    now = RoundSettings(20, clients_per_round=6)
    run = SoFar(2, rows, [(0, now)], lambda _: Cost(1, 1))
    found = {
        weights: FedTune(weights, (2, 12), (5, 60), step=5).decide(run)
        for weights in ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
    }
    assert {w: (s.clients_per_round - 6, s.local_steps - 20) for w, s in found.items()} == {
        (1, 0, 0, 0): (1, -5),
        (0, 1, 0, 0): (1, 5),
        (0, 0, 1, 0): (-1, -5),
        (0, 0, 0, 1): (-1, 5),
    }


def test_a_tuned_run_resumes(tmp_path, monkeypatch):
    """Participants and steps move within their limits, and an interruption changes nothing."""
    monkeypatch.chdir(tmp_path)
    tuner = FedTune((0.25, 0.25, 0.25, 0.25), (3, 8), (2, 30))

    def settings(out, **flags):
        small = {"clients": 8, "clients_per_round": 4, "local_steps": 4, "rounds": 6, "lr": 0.02}
        same = {"validation_fraction": 0.2, "threads": 1, "chunk": 4, "out": out}
        return wirelessfl.Config.from_flags("fedavg", **small, **same, **flags)

    def halt(row):
        if row["round"] == 4:
            raise KeyboardInterrupt

    whole = wirelessfl.run(settings("whole"), redesign=tuner)
    assert len({(row["clients_per_round"], row["local_steps"]) for row in whole.rows}) > 2
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings("cut", checkpoint_seconds=0), redesign=tuner, on_row=halt)
    again = wirelessfl.resume("cut", redesign=tuner)
    for one, other in zip(whole.rows, again.rows, strict=True):
        assert one | {"wall_seconds": 0} == other | {"wall_seconds": 0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"preferences": (1, 1, 0, 0)}, "sum to 1"),
        ({"clients": (5, 3)}, r"clients is \(5, 3\)"),
        ({"local_steps": (0, 3)}, r"local_steps is \(0, 3\)"),
        ({"step": 0}, "step is 0"),
    ],
)
def test_wrong_arguments_are_named(change, words):
    with pytest.raises(ConfigError, match=words):
        replace(FedTune((1, 0, 0, 0), (1, 5), (1, 5)), **change)
