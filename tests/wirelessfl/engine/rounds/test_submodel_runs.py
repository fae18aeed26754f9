"""Runs with client submodels: over-the-air uplink, compression, invalid settings."""

import math
import re

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.small import flat, model
from wirelessfl.base.errors import ConfigError
from wirelessfl.data import Dataset
from wirelessfl.models import FCNN, build_model
from wirelessfl.runs.build import build


def test_aircomp_without_noise_equals_error_free_links(config, toy):
    flags = {"rounds": 4, "capacities": (0.7, 0.5, 0.2), "clients_per_round": 4}
    wired = wirelessfl.run(config("ra-fed", **flags), data=toy, model=model((9, 8)))
    flags |= {"uplink": "aircomp"}
    for convention in ("published", "physical"):
        quiet, loud = (
            wirelessfl.run(
                config("ra-fed", convention=convention, snr_db=snr, **flags),
                data=toy,
                model=model((9, 8)),
            )
            for snr in (200.0, 0.0)
        )
        assert torch.allclose(flat(quiet), flat(wired), atol=1e-5)
        assert not torch.allclose(flat(loud), flat(wired), atol=1e-3)
        assert quiet.rows[-1]["coverage"] == wired.rows[-1]["coverage"]


def test_noise_variance_by_covering_weight(config, toy):
    """The noise variance of a coordinate is inversely proportional to its squared covering weight.

    At least 1000 coordinates have each weight, so the variance has a standard error of 4.5 %.
    """
    flags = {"clients": 4, "rounds": 1, "masks": "partition", "mask_overlap": 1.0}
    flags |= {"weighting": "samples", "split": "dirichlet", "min_samples": 5}
    wide = {"uplink": "aircomp", "snr_db": 10.0, "capacities": (1.0,), "local_steps": 1}
    loud, clear = (
        build(config("ra-fed", **flags | wide | own), data=toy, model=model((400,)))
        for own in ({}, {"snr_db": 250.0})
    )
    plan = loud.planner.plan(0)
    for setup in (loud, clear):
        setup.learner.learn(setup.planner.plan(0), setup.learner.server.cloud)
    error = (loud.learner.server.cloud["params"] - clear.learner.server.cloud["params"]).double()
    masks = plan.client_submodels.covers(np.arange(4)).double()
    weights = torch.from_numpy(loud.learner.server.weights.in_means(np.arange(4)))
    weight = (weights[:, None] * masks).sum(0)
    levels = [own for own in weight.unique().tolist() if own < 1 - 1e-6]
    assert len(levels) == 4
    assert max(levels) > 2 * min(levels)
    assert int(masks.sum(0).max()) == 4, "outputs are covered by all"
    spread = {}
    for own in levels:
        here = weight == own
        assert int(here.sum()) > 1000
        spread[own] = float(error[here].square().mean()) * own**2
        assert abs(float(error[here].mean())) < 0.15 * math.sqrt(spread[own]) / own
    mean = sum(spread.values()) / 4
    for value in spread.values():
        assert value == pytest.approx(mean, rel=0.14)
    predicted = loud.learner.metrics["air_error_predicted"] * 0.1**2  # in units of gamma = 0.1
    assert mean == pytest.approx(predicted, rel=0.14)


def test_uncovered_coordinates_receive_no_noise(config, toy):
    """Uncovered coordinates do not change, and the reported error excludes them."""
    flags = {"uplink": "aircomp", "capacities": (0.3,), "rounds": 1}
    flags |= {"convention": "physical"}
    loud, clear = (
        build(config("heterofl", snr_db=snr, **flags), data=toy, model=model((9, 8)))
        for snr in (0.0, 250.0)
    )
    before = loud.learner.server.cloud["params"].clone()
    for setup in (loud, clear):
        setup.learner.learn(setup.planner.plan(0), setup.learner.server.cloud)
    covered = loud.planner.plan(0).client_submodels.covers(np.arange(6)).any(0)
    moved = loud.learner.server.cloud["params"] != before
    assert not moved[~covered].any()
    assert moved[covered].all()
    error = (loud.learner.server.cloud["params"] - clear.learner.server.cloud["params"])[
        covered
    ].double()
    told = loud.learner.metrics["air_error"] * 0.1**2  # in units of gamma = 0.1
    assert float(error.square().mean()) == pytest.approx(told, rel=1e-3)
    assert 0.5 < loud.learner.metrics["uncovered"] < 1


COMPRESSED = {
    "8 bits": ({"downlink_compression": "quantisation", "downlink_compression_bits": 8}, 0.0, 0.01),
    "3 bits": ({"downlink_compression": "quantisation", "downlink_compression_bits": 3}, 0.05, 0.5),
    "half": (
        {"downlink_compression": "top-k", "downlink_compression_keep": 0.5},
        0.1,
        math.sqrt(0.5),
    ),
    "a tenth": (
        {"downlink_compression": "top-k", "downlink_compression_keep": 0.1},
        0.5,
        math.sqrt(0.9),
    ),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["fedavg", "ra-fed", "hist"])
def test_compression_error_is_within_its_bounds(config, toy, name):
    """Top-k's error is at most sqrt(1 - k/P); quantisation's decreases with the bits."""
    flags = {"rounds": 2 if name == "hist" else 3}
    flags |= {"capacities": (1.0, 0.5)} if name == "ra-fed" else {}
    clear = wirelessfl.run(config(name, **flags), data=toy, model=model((9, 8)))
    assert "compression_error" not in clear.rows[-1]
    same_again = wirelessfl.run(
        config(name, downlink_compression="none", **flags), data=toy, model=model((9, 8))
    )
    assert torch.equal(flat(same_again), flat(clear))
    gaps = {}
    for kind, (own, least, most) in COMPRESSED.items():
        result = wirelessfl.run(config(name, **flags, **own), data=toy, model=model((9, 8)))
        assert "compression_error" not in result.rows[0]
        for row in result.rows[1:]:
            assert least < row["compression_error"] <= most, kind
            assert row["downlink_mib"] < clear.rows[row["round"]]["downlink_mib"]
            assert row["uplink_mib"] == clear.rows[row["round"]]["uplink_mib"]
        gaps[kind] = float((flat(result) - flat(clear)).norm() / flat(clear).norm())
    assert 0 < gaps["8 bits"] < 0.25 * gaps["3 bits"]
    assert gaps["half"] < gaps["a tenth"]


def test_clients_start_from_the_compressed_model(config, toy):
    """Clients start from C(theta) (.) m_n, and the server adds their changes from there."""
    flags = {"capacities": (1.0, 0.5), "local_steps": 1, "downlink_compression": "top-k"}
    setup = build(
        config("ra-fed", downlink_compression_keep=0.4, **flags), data=toy, model=model((9, 8))
    )
    training, spec, seen = setup.learner, setup.model.objective.spec, []
    real = training.local.executor.train

    def train(job):
        seen.append(job)
        return real(job)

    training.local.executor.train = train
    before = training.server.cloud["params"].clone()
    plan = setup.planner.plan(0)
    training.learn(plan, training.server.cloud)
    count = round(0.4 * spec.size)
    least = before.abs().sort(descending=True).values[count - 1]
    expected = torch.where(before.abs() >= least, before, 0.0)
    for job in seen:
        rows = np.flatnonzero(np.isin(plan.clients, job.clients))
        held = plan.client_submodels.of(rows).gather(expected)
        assert torch.equal(job.servers["params"], held)
    error = (before - expected).norm() / before.norm()
    assert training.metrics["compression_error"] == pytest.approx(float(error), rel=1e-6)


def test_models_without_hidden_neurons_raise(config, toy):
    """The message names the model or its unsupported layer, and no run folder is created."""
    letters = torch.arange(400).view(-1, 4) % 5
    texts = Dataset("letters", letters, letters[:, 0], letters[:20], letters[:20, 0], 5)
    lstm = build_model("lstm", (4,), 5, dropout=0, stream=Stream(1), hidden=(6,))
    for module, data, words in (
        (torch.nn.Linear(12, 4), toy, "model Linear has no hidden neurons"),
        (
            lstm,
            texts,
            r"model LSTM cannot be narrowed as a whole: layer 'layers\.0' cannot be traced",
        ),
    ):
        settings = config("ra-fed")
        with pytest.raises(ConfigError, match=f"^{words}") as caught:
            wirelessfl.run(settings, data=data, model=module)
        assert "\n" not in str(caught.value)
        assert not settings.run.out.exists()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("capacities", [(0.125, 1.0), (1.0, 0.25), (0.25, 0.5)])
def test_a_model_that_keeps_activations_is_refused_for_unequal_widths(config, toy, capacities):
    """Torch sums gradients to the shapes of the earlier submodel, whose graph is still alive."""
    kept, module = {}, model((9, 8))
    layer = next(layer for layer in module.modules() if isinstance(layer, torch.nn.Linear))
    hook = layer.register_forward_hook(lambda layer, inputs, output: kept.update(last=output))
    settings = config("heterofl", executor="vmap", chunk=1, capacities=capacities)
    with pytest.raises(ConfigError, match=r"model FCNN keeps activations .* or choose executor"):
        wirelessfl.run(settings, data=toy, model=module)
    assert not settings.run.out.exists()
    hook.remove()
    layer.register_forward_hook(lambda layer, inputs, output: kept.update(last=output.detach()))
    wirelessfl.run(settings, data=toy, model=module)


def test_a_model_that_recomputes_activations_has_no_submodels(config, toy):
    class Recomputing(FCNN):
        def forward(self, x):
            return checkpoint(super().forward, x, use_reentrant=False)

    for algorithm in ("ra-fed", "hist"):
        with pytest.raises(ConfigError, match="cannot run with fewer neurons") as caught:
            wirelessfl.run(config(algorithm), data=toy, model=Recomputing((12,), 4, hidden=(9, 8)))
        assert "\n" not in str(caught.value)
        assert re.search(r"[^.]\. Choose another model, or an algorithm", str(caught.value))


WIDTHS = {"capacities": (1.0, 0.5, 0.2)}
LATE = r"^deadline is 1e-06: in round 1 client 1 needs 8\.\d+e-05 seconds for the smallest"
POOR = "^neurons 15 to 29 of layer 'layers.1' are covered by only 2 of the 6 clients of round 1"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            {"budget": "fastest", "min_coverage": 7, "masks": "covered"},
            "round 1: .*coverage 7 needs",
        ),
        ({"budget": "deadline", "deadline": 1e-6}, LATE),
        ({"min_coverage": 7, "masks": "covered", **WIDTHS}, "min_coverage is 7"),
        ({"min_coverage": 3, "masks": "ordered", **WIDTHS}, POOR),
        (
            {"budget": "bytes", "capacities": (0.01,)},
            "capacities: the smallest submodel .* of the model's bytes, more than 0.01",
        ),
    ],
)
def test_infeasible_budgets_raise_before_anything_is_written(config, toy, flags, words):
    settings = config("ra-fed", **flags)
    with pytest.raises(ConfigError, match=words) as caught:
        wirelessfl.run(settings, data=toy, model=model((30,)))
    assert "\n" not in str(caught.value)
    assert not settings.run.out.exists()


NARROW = (1.0,) * 8 + (0.1,)


@pytest.mark.parametrize(
    ("flags", "number"),
    [
        ({"clients": 7, "capacities": (1.0,)}, "1"),
        # In the first round every participant gets at least one of the six channels.
        (
            {"clients": 9, "clients_per_round": 4, "rounds": 9, "capacities": NARROW, "seed": 2},
            "[2-9]",
        ),
    ],
)
def test_partitions_without_a_channel_raise_before_anything_is_written(config, flags, number):
    """With some participants, a client gets no channels of a convolution; the error names both."""
    x = torch.zeros(36, 1, 28, 28)
    data = Dataset("images", x, torch.arange(36) % 4, x[:4], torch.arange(4), 4)
    lenet = build_model("lenet5", (1, 28, 28), 4, dropout=0, stream=Stream(1))
    settings = config("ra-fed", masks="partition", split="iid", **flags)
    words = f"in round {number} client . gets none of the 6 channels of layer 'features.0'"
    with pytest.raises(ConfigError, match=words):
        wirelessfl.run(settings, data=data, model=lenet)
    assert not settings.run.out.exists()
