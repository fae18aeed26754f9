"""Widths of requests and of rounds of tasks by a client's seconds: formula, runs, refusals."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import wirelessfl
from channels import Network
from channels.streams import Stream
from wirelessfl.air.delays import Delays, ShiftedExponential, WirelessDelays
from wirelessfl.algorithms.widths import HeteroFL
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build

WIDTH, STEPS, CLIENTS = 24, 3, 6
PARAMETERS = 17 * np.arange(WIDTH + 1) + 4  # of 12 inputs, w hidden neurons and 4 classes
SHARES = PARAMETERS / PARAMETERS[-1]
CPUS = {"cpu_hz": (2e8, 2e9), "cycles_per_step": 1e6}
RADIO = {
    "path_gain_db": (-10.0, 5.0),
    "snr_db": 3.0,
    "antennas": 3,
    "bandwidth_hz": 1e6,
}
REQUESTS = {"schedule": "buffered", "requests": 4, "buffer": 2}


def module():
    torch.manual_seed(3)
    return FCNN((12,), 4, hidden=(WIDTH,))


def by_formula(setup, deadline, upload, down=0.0):
    """Widest submodel of each client: s (down + H C / F + upload) <= deadline, s its share."""
    compute = STEPS * setup.network.cycles_per_step / setup.network.cpu_hz
    seconds = SHARES[1:, None] * (down + compute) + upload
    return (seconds <= deadline).sum(0)


def alone(network):
    """Seconds to send [neurons, clients] in the whole band, over a channel of mean power."""
    snr = 10 ** (network.snr_db / 10) * network.antennas * 10 ** (network.path_gain_db / 10)
    rate = network.bandwidth_hz[0] * np.log2(1 + snr)
    return SHARES[1:, None] * 32 * PARAMETERS[-1] / rate


def at_rate(network):
    return SHARES[1:, None] * 32 * PARAMETERS[-1] / 1e6


def over_the_air(network):
    """A symbol of 1 ms per element of the full model, on 1e6 / 1e4 subcarriers."""
    return PARAMETERS[-1] * 1e-3 / 100


UPLINKS = {
    "tdma": (0.01, alone, 0.0, {}),
    "tdma in order": (0.01, alone, 0.0, {"order": "ready"}),
    "ofdma": (0.01, alone, 0.0, {"uplink": "ofdma"}),
    "downlink": (0.012, alone, 32 * PARAMETERS[-1] / 4e6, {"downlink_mbps": 4.0}),
    "fixed": (
        0.02,
        at_rate,
        32 * PARAMETERS[-1] / 1e6,
        {"uplink": "fixed", "rate_mbps": 1.0},
    ),
    "over the air": (
        0.008,
        over_the_air,
        0.0,
        {"uplink": "aircomp", "subcarrier_hz": 1e4, "symbol_seconds": 1e-3},
    ),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("schedule", [REQUESTS, {"schedule": "simultaneous"}])
@pytest.mark.parametrize("name", UPLINKS)
def test_widths_are_the_widest_whose_seconds_alone_meet_the_deadline(config, toy, name, schedule):
    deadline, upload, down, more = UPLINKS[name]
    flags = schedule | CPUS | ({} if name == "fixed" else RADIO) | more
    flags |= {"budget": "deadline", "deadline": deadline}
    setup = build(config("heterofl", **flags), data=toy, model=module())
    widths = by_formula(setup, deadline, upload(setup.network), down)
    assert 0 < widths.min() < WIDTH
    assert len(set(widths.tolist())) > 2
    submodels, clients = setup.learners[0].submodels, range(CLIENTS)
    for version in (0, 5):
        requests = submodels.of_requests(clients, [version] * CLIENTS).chosen
        assert [len(neurons) for (neurons,) in requests] == widths.tolist()
        together = submodels.of_round(np.arange(1, 4), version).chosen
        assert [len(neurons) for (neurons,) in together] == widths[1:4].tolist()


def test_random_durations_count_with_their_mean(task):
    """A request of tau steps takes 3 tau beta seconds on average; the draw has no effect."""
    speeds, beta = np.array([1.3, 1.0, 0.7, 2.0]), 0.5
    delays = ShiftedExponential([beta], speeds, Stream(4))
    draws = [delays.seconds(0, 0, number) for number in range(4000)]
    assert np.mean(draws) == pytest.approx(3 * 1.3 * beta, rel=0.05)
    learner = task(hidden=(WIDTH,)).learner(
        HeteroFL(budget="deadline", deadline=1.2), delays=delays
    )
    widest = (SHARES[1:, None] * 3 * beta * speeds <= 1.2).sum(0)
    assert len(set(widest.tolist())) == 4
    assert learner.shares(np.arange(4)).tolist() == SHARES[widest].tolist()
    assert [learner.share(client) for client in range(4)] == SHARES[widest].tolist()


def test_a_slower_client_gets_a_narrower_submodel(config, toy):
    """Clients with slower CPUs, or weaker channels, train fewer neurons."""
    for slow in ({"cpu_hz": [4e9, 1e9, 3e8]}, {"cpu_hz": 4e9, "snr_db": [10.0, 0.0, -10.0]}):
        network = Network.from_snr([0] * 3, **({"snr_db": 10.0, "bandwidth_hz": 1e6} | slow))
        flags = {"budget": "deadline", "deadline": 0.005, **REQUESTS, "requests": 3}
        setup = build(
            config("heterofl", network=True, **flags), data=toy, model=module(), network=network
        )
        first, second, third = (setup.learners[0].share(client) for client in range(3))
        assert first > second > third


@dataclass(frozen=True)
class NoFading:
    """Channels of mean power."""

    def draw(self, stream, index, clients, root):
        return np.ones((len(clients), len(root)), dtype=np.complex64)


def test_a_client_alone_on_the_air_meets_the_deadline(config, toy):
    """With one request at a time and no fading, each takes most of the deadline, and no more."""
    network = Network.from_snr(
        [0] * 4,
        cpu_hz=[1e9, 5e8, 1.5e9, 7e8],
        snr_db=[0.0, 5.0, -5.0, 3.0],
        bandwidth_hz=1e6,
        antennas=2,
        fading=NoFading(),
    )
    flags = {"budget": "deadline", "deadline": 0.004, "eval_every": 1, "rounds": 12}
    one = {"schedule": "buffered", "requests": 1, "buffer": 1}
    found = wirelessfl.run(
        config("heterofl", network=True, **flags, **one),
        data=toy,
        model=module(),
        network=network,
    )
    each = SHARES[:, None] * STEPS * network.cycles_per_step / network.cpu_hz
    each[1:] += alone(network)
    wanted = [np.sort(one[one <= 0.004])[-1] for one in each.T]
    assert max(wanted) < each[-1].min(), "all submodels are narrow"
    seconds = np.diff([row["sim_seconds"] for row in found.rows])
    assert len(seconds) >= 11
    assert (seconds <= 0.004 * (1 + 1e-6)).all()
    served = np.isclose(seconds[:, None], wanted, rtol=1e-6)
    assert (served.sum(1) == 1).all()
    assert served.any(0).sum() > 2


def test_each_task_has_its_own_seconds(config):
    """A task with more local steps leaves less time for the submodel's size."""
    shared = "digits,model=fcnn,step_seconds=0.01,requests=3,buffer=2"
    flags = {
        "budget": "deadline",
        "task": (f"{shared},local_steps=2", f"{shared},name=long,local_steps=20"),
        "schedule": "buffered",
    }
    setup = build(config("ra-fed", deadline=0.1, **flags))
    short, long = (learner.shares(np.arange(CLIENTS)) for learner in setup.learners)
    assert (long < short).all()
    neurons = setup.learners[0].submodels.model.neurons()
    smallest = neurons.parameters([1]) / neurons.spec.size
    with pytest.raises(ConfigError, match="in a request of task long client"):
        build(config("ra-fed", deadline=0.1 * smallest, **flags))


def test_the_slowest_client_is_refused_before_training(config, toy):
    network = Network.from_snr([0] * 4, cpu_hz=[1e9, 1e9, 1e8, 1e9], snr_db=10.0)
    flags = {"budget": "deadline", "deadline": 0.001, **REQUESTS}
    made = config("heterofl", network=True, **flags)
    words = (
        "deadline is 0.001: in a request of task .* client 2 needs .* seconds for the smallest "
        "submodel. Raise deadline, bandwidth_hz or cpu_hz."
    )
    with pytest.raises(ConfigError, match=words):
        build(made, data=toy, model=module(), network=network)
    flags |= {"delays": "shifted-exponential", "step_seconds": 0.1}
    with pytest.raises(ConfigError, match="Raise deadline, or lower local_steps"):
        build(config("heterofl", **flags), data=toy, model=module())


class Slow(Delays):
    """A latency model of a user, whose requests take a second."""

    def __init__(self, means):
        self.means = means

    def seconds(self, task, client, number):
        return 1.0

    def mean_seconds(self, task, clients, shares):
        return None if self.means is None else self.means * shares


@dataclass(frozen=True)
class NoMeans(WirelessDelays):
    def build(self, scene):
        return Slow(None)


@dataclass(frozen=True)
class Means(WirelessDelays):
    def build(self, scene):
        return Slow(2.0)


@dataclass(frozen=True)
class WrongMeans(WirelessDelays):
    def build(self, scene):
        return Slow(np.ones((2, 1, 1)))


def test_latency_models_of_users_need_mean_seconds(config, toy):
    def learner(name, **flags):
        own = f"{__name__}:{name}"
        made = config("heterofl", delays=own, **REQUESTS, **flags)
        return build(made, data=toy, model=module()).learners[0]

    within = {"budget": "deadline", "deadline": 1.0}
    assert learner("NoMeans").share(0) > 0  # capacities need no means
    with pytest.raises(
        ConfigError, match=r"NoMeans' gives no mean seconds .*Slow\.mean_seconds, or"
    ):
        learner("NoMeans", **within)
    assert learner("Means", **within).share(0) == SHARES[SHARES <= 0.5].max()
    with pytest.raises(ConfigError, match=r"mean_seconds returned float64 \[2, .*as the shares"):
        learner("WrongMeans", **within)
