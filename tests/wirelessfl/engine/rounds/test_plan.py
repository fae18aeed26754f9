"""Costs of a round by hand ((17), (18), traffic, energy), and optimised mask sizes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from channels import Access, Service, edge_round_seconds, tdma_seconds_per_bit
from channels.streams import Stream
from solvers import EnergyWithinDeadline
from wirelessfl.air.links import Links, TrainingSettings
from wirelessfl.air.participants import Participants
from wirelessfl.air.plan import WholeModel
from wirelessfl.air.uplinks import Uplink
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.rounds.mask_sizes import MaskSizing, mask_size_problem, model_mask_sizes
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.selection.selection import Participation
from wirelessfl.models import FCNN, LeNet5
from wirelessfl.models.submodels import ParamSpec, make_partition
from wirelessfl.runs.build import build
from wirelessfl.runs.build.network import build_network
from wirelessfl.training.rules import Payload


def planner(algorithm, module, down=None, back=None, tracking=None, **flags):
    config = Config.from_flags(algorithm, **({"clients": 12, "local_steps": 7} | flags))
    stream, spec = Stream(config.run.seed), ParamSpec.of(module)
    links = Links(
        build_network(config.network, stream, config),
        config.uplink,
        coherence=config.network.coherence,
        downlink_bps=down,
        backhaul_bps=back,
    )
    whole = WholeModel(spec, lambda scheme: make_partition(module, spec, scheme), neurons=None)
    settings = TrainingSettings(config.training.local_steps, config.training.edge_rounds)
    some = Participation(tracking=tracking)
    return Planner(config.algorithm, links, whole, settings, stream, some)


@pytest.mark.parametrize("uplink", ["tdma", "ofdma"])
@pytest.mark.parametrize("sizes", ["uniform", "optimized"])
def test_latency_equals_17_and_18_client_by_client(uplink, sizes):
    """Latencies equal scalar Python for LeNet-5, in which cells share 3,506 parameters."""
    plan_maker = planner("hist", LeNet5((1, 28, 28), 10), cells=4, uplink=uplink, mask_sizes=sizes)
    network = plan_maker.network
    for number in range(3):
        plan = plan_maker.plan(number)
        expected = []
        for cell in range(4):
            trained = int(plan.submodels.lengths[cell])
            assert (trained - 3506) % 341 == 0
            slowest = 0.0
            for client in range(12):
                if network.cell_of[client] != cell:
                    continue
                gain = float((np.abs(plan.draws.h[0, client].astype(complex)) ** 2).sum())
                snr = 10 ** (network.snr_db[client] / 10)
                if uplink == "tdma":
                    upload = 3 * 32 * trained / (9e6 * np.log2(1 + snr * gain))
                else:
                    upload = 32 * trained / (9e6 / 3 * np.log2(1 + 3 * snr * gain))
                compute = 7 * 1e6 / network.cpu_hz[client] * trained / 44_426
                slowest = max(slowest, compute + upload)
            expected.append(5 * slowest)
        assert plan.price.seconds == pytest.approx(expected, rel=1e-5)


def test_traffic_by_hand():
    """HIST sends E submodels, with shared layers, per round; HFedAvg sends E full models."""
    lenet = LeNet5((1, 28, 28), 10)
    hist = planner("hist", lenet, cells=2).plan(0).price
    assert hist.uplink_mib == pytest.approx(5 * 4 * (3506 + 60 * 341) / 2**20)
    full = planner("hfedavg", lenet, cells=2).plan(0).price
    assert full.uplink_mib == pytest.approx(5 * 4 * 44_426 / 2**20)
    assert full.downlink_mib == full.uplink_mib
    assert full.backhaul_mib == pytest.approx(2 * 4 * 44_426 / 2**20)
    star = planner("fedavg", lenet).plan(0).price
    assert star.uplink_mib == pytest.approx(4 * 44_426 / 2**20)
    assert star.backhaul_mib == 0.0


@pytest.mark.parametrize(
    ("algorithm", "flags", "edge_rounds"),
    [("hfedavg", {"cells": 2}, 5), ("scaffold", {}, 1), ("scaffold", {"tracking": 5}, 1)],
)
def test_energy_by_hand(algorithm, flags, edge_rounds):
    """Clients that track send two vectors, the others one."""
    maker = planner(algorithm, FCNN((12,), 4, hidden=(10,)), **flags)
    plan = maker.plan(0)
    network, size = maker.network, maker.model.spec.size
    assert plan.tracking.sum() == flags.get("tracking", 12)
    joules = []
    for client in range(12):
        snr = 10 ** (network.snr_db[client] / 10)
        rate = 9e6 * np.log2(1 + snr * plan.draws.gain[0, client])
        vectors = 2 if algorithm == "scaffold" and plan.tracking[client] else 1
        sending = 0.1 * 32 * vectors * size / rate
        joules.append(1e-28 * network.cpu_hz[client] ** 2 * 7e6 + sending)
    assert plan.price.joules == pytest.approx(edge_rounds * np.mean(joules))


@pytest.mark.parametrize(("down", "back"), [(None, None), (4e6, None), (None, 1e7), (4e6, 1e7)])
@pytest.mark.parametrize(("algorithm", "flags"), [("hfedavg", {"cells": 2}), ("fedavg", {})])
def test_a_broadcast_outside_of_rounds_takes_each_link_once(algorithm, flags, down, back):
    """Downlink, and backhaul if there are edge servers, of the full model."""
    maker = planner(algorithm, FCNN((12,), 4, hidden=(10,)), down, back, **flags)
    links = [down, back] if algorithm == "hfedavg" else [down]
    bits = 32 * (13 * 10 + 11 * 4)
    assert maker.broadcast_seconds() == pytest.approx(sum(bits / rate for rate in links if rate))


def test_links_with_a_rate_take_time():
    """Each round adds E downlink transfers, and one backhaul transfer in each direction."""
    module = FCNN((12,), 4, hidden=(10,))
    free = planner("hfedavg", module, cells=2).plan(0).price.seconds
    slow = planner("hfedavg", module, cells=2, down=1e5, back=2e5).plan(0).price.seconds
    bits = 32 * ParamSpec.of(module).size
    assert slow - free == pytest.approx(5 * bits / 1e5 + 2 * bits / 2e5)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("hidden", [(40,), (40, 30, 20), (24, 10, 24, 7)])
def test_optimized_masks_are_never_slower(hidden):
    module = FCNN((12,), 4, hidden=hidden)
    faster = []
    for number in range(10):
        uniform = planner("hist", module, cells=4).plan(number)
        best = planner("hist", module, cells=4, mask_sizes="optimized").plan(number)
        assert best.price.seconds.max() <= uniform.price.seconds.max() * (1 + 1e-9)
        faster.append(best.price.seconds.max() / uniform.price.seconds.max())
        assert int((best.submodels.index >= 0).sum(1).min()) > 0
    assert np.mean(faster) < 0.9


def test_optimized_masks_take_slow_links_into_account():
    """If backhaul latency is the same for all cells and dominates, all cells get equal sizes."""
    module = FCNN((12,), 4, hidden=(40,))
    slow = planner("hist", module, cells=4, mask_sizes="optimized", back=1e3)
    plan = slow.plan(0)
    neurons = (plan.submodels.lengths - 4) // 17
    assert sorted(neurons) == [10, 10, 10, 10]
    fast = planner("hist", module, cells=4, mask_sizes="optimized").plan(0)
    assert max((fast.submodels.lengths - 4) // 17) > 11


@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize(
    "flags", [{}, {"uplink": "ofdma", "allocation": "optimal"}, {"order": "ready"}]
)
def test_optimized_sizes_are_the_fastest_of_all(scheme, flags):
    """For every access and partition, no sizes of 3 cells beat the plan: brute force over all."""
    module = FCNN((12,), 4, hidden=(12, 12, 12))
    maker = planner(
        "hist", module, cells=3, mask_sizes="optimized", partition=scheme, back=1e6, **flags
    )
    plan = maker.plan(0)
    partition = make_partition(module, maker.model.spec, scheme)
    who = Participants(plan.clients, plan.tracking)
    splits = np.array([[a, b, 12 - a - b] for a in range(1, 7) for b in range(max(1, 6 - a), 7)])
    splits = splits[(splits >= 1).all(1) & (splits <= 6).all(1)]
    seconds = maker.pricing.node_seconds(plan.draws, who, partition.lengths(splits)).max(1)
    assert plan.price.seconds.max() == pytest.approx(seconds.min(), rel=1e-9)
    assert seconds.max() > 1.1 * seconds.min()
    assert int(plan.submodels.lengths.sum()) <= maker.model.spec.size + 2 * 4 + 2 * 24


def test_optimized_sizes_do_not_count_biases_that_stay_at_the_cells(monkeypatch):
    """The seconds that sizes are chosen by are those of the plan."""
    module, found = FCNN((1,), 1, hidden=(12,)), {}
    maker = planner("hist", module, cells=3, mask_sizes="optimized", hidden_biases="local")
    solve = MaskSizing.solve

    def solved(problem):
        found["seconds"] = solve(problem).objective
        return solve(problem)

    monkeypatch.setattr(MaskSizing, "solve", solved)
    plan = maker.plan(0)
    assert int(plan.submodels.lengths.sum()) == 2 * 12 + 3 * 1  # two weights per neuron, one bias
    assert plan.price.seconds.max() == pytest.approx(found["seconds"], rel=1e-12)


@dataclass(frozen=True)
class Short(Uplink):
    """An uplink whose access cannot serve large submodels, or loses an update."""

    name = "short"
    seconds: float = 1e-4

    @property
    def access(self):
        return EnergyWithinDeadline(self.seconds)


@pytest.mark.parametrize(
    ("algorithm", "flags", "text"),
    [
        ("hist", {"cells": 3, "mask_sizes": "optimized"}, "deadline_seconds is 0.0001: cell 0"),
        ("ra-fed", {"budget": "deadline", "deadline": 1.0}, "deadline_seconds is 0.0001: cell 0"),
        ("hfedavg", {"cells": 3}, "deadline_seconds is 0.0001: cell 0"),
    ],
)
def test_what_the_access_cannot_serve_is_one_error_that_names_the_uplink(
    config, algorithm, flags, text
):
    made = config(algorithm, uplink=f"{__name__}:Short", **flags)
    with pytest.raises(ConfigError, match=f"^uplink '{__name__}:Short'.*{text}"):
        build(made).planner.plan(0)


def test_lengths_of_sizes():
    """Parameters of submodels, counted by hand: one partitioned axis, or two in ``all``."""
    module = FCNN((6,), 2, hidden=(8, 8))
    spec = ParamSpec.of(module)  # 6 x 8 + 8, 8 x 8 + 8, 8 x 2 + 2
    every = make_partition(module, spec, "all")
    assert every.lengths([2, 8]).tolist() == [7 * 2 + 2 * 2 + 2 + 2 * 2 + 2, spec.size]
    some = make_partition(module, spec)
    assert some.lengths(np.array([[4]])).tolist() == [[7 * 4 + 4 * 8 + 8 + 8 * 2 + 2]]


def test_granularity_divides_all_partitioned_layers():
    """With layers of 40 and 10 neurons, the granularity is 4 (1 in the second layer)."""
    module = FCNN((12,), 4, hidden=(40, 9, 10))
    partition = make_partition(module, ParamSpec.of(module))
    assert [layer.width for layer in partition.layers] == [40, 10]
    problem = mask_size_problem(partition, partition.lengths, 3, size_cap=1.5)
    assert problem.granularity == 4
    value = problem.solve().value
    assert (np.asarray(value) % 4 == 0).all()
    shared = partition.lengths(0)
    assert partition.lengths(value).sum() == pytest.approx(ParamSpec.of(module).size + 2 * shared)


def test_impossible_sizes_name_the_constraint():
    """The error names the cap of 2, with which four cells cannot hold ten neurons."""
    module = FCNN((12,), 4, hidden=(10,))
    with pytest.raises(ConfigError, match=r"mask sizes: .*cap.*2"):
        planner("hist", module, cells=4, mask_sizes="optimized", size_cap=1.0).plan(0)


def test_channels_depend_only_on_the_round_number():
    maker = planner("hist", FCNN((12,), 4), cells=2)
    draws = [maker.plan(t).draw(0).h for t in (0, 1, 0)]
    assert not np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[0], draws[2])
    assert torch.is_tensor(maker.plan(0).submodels.index)


def test_coherence_interval_is_a_round_or_an_edge_round():
    """With one draw per edge round, a cell's seconds are the sum over E different channels."""
    module = FCNN((12,), 4, hidden=(10,))
    flags = {"cells": 2, "edge_rounds": 3}
    slow = planner("hfedavg", module, **flags).plan(4)
    fast = planner("hfedavg", module, coherence="edge-round", **flags).plan(4)
    assert len(slow.draws.h) == 1
    assert np.array_equal(slow.draw(0).h, slow.draw(2).h)
    assert len(fast.draws.h) == 3
    assert not np.array_equal(fast.draw(0).h, fast.draw(2).h)
    expected = np.zeros(2)
    for edge_round in range(3):
        draw = fast.draw(edge_round)
        expected += edge_round_seconds(
            draw,
            float(ParamSpec.of(module).size),
            model_parameters=ParamSpec.of(module).size,
            local_steps=7,
            seconds_per_bit=tdma_seconds_per_bit(draw),
        )
    assert fast.price.seconds == pytest.approx(expected)
    assert fast.price.seconds != pytest.approx(slow.price.seconds, rel=1e-3)


def test_cost_of_two_payloads():
    """Two payloads double the uplink traffic, and do not change the downlink."""
    module = FCNN((12,), 4, hidden=(10,))
    one = planner("hfedavg", module, cells=2, down=1e5)

    class Twice(FedAvg):
        payloads = (Payload("update"), Payload("drift"))

    two = replace(one, algorithm=replace(one.algorithm, local=Twice()))
    free, free_two = (
        replace(each, links=replace(each.links, downlink_bps=None)) for each in (one, two)
    )
    bits = 32 * one.model.spec.size
    for limited, unlimited in ((one, free), (two, free_two)):
        extra = limited.plan(0).price.seconds - unlimited.plan(0).price.seconds
        assert extra == pytest.approx([5 * bits / 1e5] * 2)
    assert two.plan(0).price.uplink_mib == pytest.approx(2 * one.plan(0).price.uplink_mib)
    assert two.plan(0).price.downlink_mib == one.plan(0).price.downlink_mib


def test_model_mask_sizes_equal_those_of_the_planner():
    """For the same channel draw, ``model_mask_sizes`` gives the planner's sizes.

    ``neurons`` converts sizes into neurons per layer.
    """
    module = LeNet5((1, 28, 28), 10)
    maker = planner("hist", module, cells=4, mask_sizes="optimized", uplink="ofdma")
    plan = maker.plan(2)
    problem = model_mask_sizes(module, plan.draw(0), uplink="ofdma", local_steps=7)
    solution = problem.solve()
    assert solution.objective == pytest.approx(plan.price.seconds.max())
    neurons = problem.neurons(solution.value)
    assert neurons == {"fc1": solution.value.tolist()}
    assert sorted(3506 + 341 * n for n in neurons["fc1"]) == sorted(plan.submodels.lengths)
    two_layers = FCNN((12,), 4, hidden=(40, 9, 10))
    sizes = model_mask_sizes(two_layers, plan.draw(0)).neurons([20, 12, 4, 4])
    assert sizes == {"layers.1": [20, 12, 4, 4], "layers.7": [5, 3, 1, 1]}


def test_granularity_is_one_if_it_is_too_coarse_for_the_cap():
    """With granularity 12 and cap 20, nine cells could have only 9 x 12 < 120 neurons."""
    module = FCNN((12,), 4, hidden=(120, 20, 50))
    partition = make_partition(module, ParamSpec.of(module))
    problem = mask_size_problem(partition, partition.lengths, 9, size_cap=1.5)
    assert (problem.granularity, problem.cap) == (1, 20)
    assert problem.solve().value is not None
    assert mask_size_problem(partition, partition.lengths, 2, size_cap=1.5).granularity == 12


@dataclass(frozen=True)
class Wire(Uplink):
    """An uplink that ignores the channel, so that its times have no axis for blocks."""

    name = "wire"

    @property
    def access(self):
        return Cable()


class Cable(Access):
    def serve(self, load, draw):
        seconds = load.ready_seconds(draw.network) + 1e-9 * load.bits
        return Service(seconds, np.zeros_like(seconds), np.ones_like(seconds, bool))


@pytest.mark.parametrize("coherence", ["round", "edge-round"])
def test_cost_with_an_uplink_that_ignores_the_channel(coherence, config):
    made = config("hist", uplink=f"{__name__}:Wire", coherence=coherence, cycles_per_step=1e9)
    setup = build(made)
    plan, network = setup.planner.plan(0), setup.planner.network
    slowest = [network.cpu_hz[network.cell_of == cell].min() for cell in range(3)]
    lengths = plan.submodels.lengths
    work = 3 * lengths / setup.model.objective.spec.size * 1e9 / slowest
    np.testing.assert_allclose(plan.price.seconds, 5 * (work + 32e-9 * lengths), rtol=1e-9)


@pytest.mark.parametrize("coherence", ["round", "edge-round"])
def test_slowdown_applies_to_the_first_half_of_the_cells(coherence):
    """The first 2 of 5 cells take ten times as long; the times of the others are unchanged."""
    module, flags = FCNN((12,), 4, hidden=(10,)), {"cells": 5, "coherence": coherence}
    even = planner("hfedavg", module, **flags).plan(3).price.seconds
    slow = planner("hfedavg", module, slowdown=10.0, **flags).plan(3).price.seconds
    assert slow == pytest.approx(even * [10, 10, 1, 1, 1])
    with pytest.raises(
        ConfigError, match=r"slowdown=10.0 conflicts with .*a star.*leave slowdown out"
    ):
        planner("fedavg", module, slowdown=10.0)
