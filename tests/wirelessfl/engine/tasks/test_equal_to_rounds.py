"""Merging one request of every client in each version equals a synchronous round."""

import numpy as np
import pytest
import torch

from channels.streams import Stream
from wirelessfl.air.delays import Wireless
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.engine.events import Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.training.steps import StepCounts

CLIENTS, MERGES = 4, 3
WHOLE = {"capacities": (1.0,)}
AIR = {"uplink": "aircomp", "snr_db": 0.0, "beamformer_starts": 1}
SGD = {
    "fedavg": {},
    "fedavg, momentum": {"momentum": 0.5},
    "fedavg, poly": {"lr_schedule": "poly"},
    "fedprox": {"mu": 0.3},
    "scaffold": {},
    "scaffold-m": {},
    "fedacg": {},
    "ram-fed": WHOLE,
    "moon": {"mu": 2.0},
    "fa-nt": {},
    "heterofl": {"capacities": (1.0, 0.5, 0.3)},
    "fedrolex": {"capacities": (0.7, 0.5, 0.3)},
    "ra-fed": {"capacities": (0.7, 0.5, 0.3), "masks": "covered"},
    "ram-fed, submodels": {"capacities": (0.7, 0.5, 0.3), "masks": "random"},
    "fedavg-small": {"capacities": (1.0, 0.5)},
}
ADAM = {
    "fadamgc": {"lr": 0.01},
    "local-adam": {"lr": 0.01, "vhat": "carried"},
    "fedadam": {"server_lr": 0.01},
}


def rounds_of(setup, number):
    """Model and metrics after each of the first ``number`` synchronous rounds."""
    found = []
    for round_ in range(number):
        setup.learner.learn(setup.planner.plan(round_), setup.learner.server.cloud)
        found.append((setup.learner.server.cloud["params"].clone(), dict(setup.learner.metrics)))
    return found


def asynchronous(made, learner):
    for version in range(MERGES):
        numbers = [version * CLIENTS + client for client in range(CLIENTS)]
        for client, number in enumerate(numbers):
            made.issue(learner, number, client)
        for number in numbers:
            learner.came_back(number)
        learner.merge_updates(numbers, [0] * CLIENTS)
        yield learner.server.cloud["params"], learner.metrics


def common_rounds(made, learner):
    for _ in range(MERGES):
        learner.train_round(np.arange(CLIENTS))
        yield learner.server.cloud["params"], learner.metrics


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", SGD | ADAM)
def test_merges_of_all_clients_equal_rounds(task, case):
    """Requests and task rounds both give the models and metrics of synchronous rounds."""
    name, flags = case.partition(",")[0], (SGD | ADAM)[case]
    made = task(clients=CLIENTS, flags=(name, flags))
    expected = rounds_of(made.rounds, MERGES)
    moved = float((expected[-1][0] - made.model.start).norm())
    assert moved > 0.01
    for handler in (asynchronous, common_rounds):
        found = handler(made, made.learner(lr_share=made.rounds.planner.lr_share))
        for (params, metrics), (wanted, metrics_wanted) in zip(found, expected, strict=True):
            if case in ADAM:
                apart = float((params - wanted).norm() / (wanted - made.model.start).norm())
                assert apart <= 1e-4
            else:
                torch.testing.assert_close(params, wanted, rtol=0, atol=1e-6)
            assert metrics == pytest.approx(metrics_wanted)
    assert ("coverage" in expected[0][1]) == ("capacities" in flags)


@pytest.mark.parametrize("name", ["fedavg", "scaffold"])
def test_merge_times_equal_those_of_rounds(task, name):
    """With a separate link for each client, merges occur at the times at which rounds end.

    SCAFFOLD sends two vectors in each direction.
    """
    flags = {"uplink": "fixed", "rate_mbps": 0.5, "cycles_per_step": 1e7}
    made = task(clients=CLIENTS, flags=(name, flags))
    planner, learner, clock = made.rounds.planner, made.learner(), Clock()
    network = made.rounds.network
    seconds = np.broadcast_to(network.cycles_per_step / network.cpu_hz, CLIENTS)
    delays = Wireless(
        network,
        UPLINKS.find("fixed")(rate_mbps=0.5),
        [StepCounts(made.steps)],
        [seconds],
        [Traffic.of(planner.algorithm, made.model.objective.spec)],
        5e5,
        Stream(1),
    )
    requests = Requests(clock, delays, CLIENTS, Stream(2), choose=lambda number: number % CLIENTS)
    handler, merges = Asynchronous([learner], requests), []
    merge = learner.merge_updates

    def noted(numbers, staleness, *, draw=None):
        merge(numbers, staleness, draw=draw)
        merges.append((clock.now, learner.server.cloud["params"].clone()))

    learner.merge_updates = noted
    schedule = BufferedScheduler(
        [TaskPlan(CLIENTS, CLIENTS, MERGES)], answers_at_merge=True, report_every=None
    )
    clock.after(0.0, Started())
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
    ends = np.cumsum([planner.plan(number).price.seconds.max() for number in range(MERGES)])
    assert [now for now, _ in merges] == pytest.approx(ends.tolist())
    for (_, params), (wanted, _) in zip(merges, rounds_of(made.rounds, MERGES), strict=True):
        torch.testing.assert_close(params, wanted, rtol=0, atol=1e-6)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "flags"),
    [("fedavg", {}), ("scaffold", {}), ("heterofl", {"capacities": (0.7, 0.5, 0.3)})],
)
def test_noise_over_the_air_equals_that_of_rounds(task, name, flags):
    """With the same channel draws, models and metrics agree: noise depends on the version only."""
    made = task(clients=CLIENTS, flags=(name, {**flags, **AIR}))
    expected, uplink = rounds_of(made.rounds, MERGES), made.rounds.learner.server.uplink
    learners = [made.learner(uplink=uplink) for _ in range(2)]
    for version, (wanted, metrics) in enumerate(expected):
        draw, (rounds, requests) = made.rounds.planner.plan(version).draw(0), learners
        rounds.train_round(np.arange(CLIENTS), draw=draw)
        numbers = [version * CLIENTS + client for client in range(CLIENTS)]
        for client, number in enumerate(numbers):
            made.issue(requests, number, client)
            requests.came_back(number)
        requests.merge_updates(numbers, [0] * CLIENTS, draw=draw)
        for learner in learners:
            found = learner.server.cloud["params"]
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
            assert learner.metrics == pytest.approx(metrics, rel=1e-4)
        assert metrics["air_error"] > 0
