"""Uplink aircomp: received values and costs match formulas and other uplinks."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels import Network, section_vi_c, transmit_scales
from channels.streams import Stream
from solvers import optimize_beamformer
from wirelessfl.air.uplinks import Transmission
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.rounds.mask_sizes import model_mask_sizes
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.training.rules import Payload
from wirelessfl.training.workers.shards import Shards

SIZES = (4, 2, 3)
NODE = np.repeat(np.arange(3), SIZES)
ELEMENTS = 4000


def air_round(*, exchanged=None, unit=0.5, seed=1, snr_db=10.0, path_gain_db=0.0):
    network = Network.from_snr(
        NODE, cpu_hz=1e9, snr_db=snr_db, antennas=4, path_gain_db=path_gain_db
    )
    weights = Stream(3).generator().uniform(0.5, 2, len(NODE))
    weights /= np.bincount(NODE, weights=weights)[NODE]
    return Transmission(
        nodes=3,
        node=NODE,
        clients=np.arange(len(NODE)),
        weights=weights,
        each=frozenset(),
        exchanged=exchanged,
        units={"update": unit},
        draw=network.draw(Stream(seed)),
        stream=Stream(seed, ("air",)),
    )


def updates(seed=0):
    dice = Stream(seed, ("updates",)).generator()
    size = dice.uniform(0.1, 2, (len(NODE), 1))
    return torch.from_numpy(size * dice.standard_normal((len(NODE), ELEMENTS))).float()


def received(uplink, air, sent, chunk=4):
    reception = uplink.receive(air)
    for first in range(0, len(sent), chunk):
        part = slice(first, min(first + chunk, len(sent)))
        reception.add(part, {"update": sent[part].clone()})
    reception.finish(Shards(), ["update"], torch.zeros(air.nodes, sent.shape[1]))
    return reception.result()


def exact(air, sent):
    weights = torch.from_numpy(air.weights).float()[:, None]
    parts = [weights[air.node == n] * sent[air.node == n] for n in range(3)]
    return torch.stack([part.sum(0) for part in parts])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("convention", ["published", "physical"])
def test_cells_receive_their_mean_plus_the_noise_of_their_beamformer(convention, monkeypatch):
    """A cell's noise variance is that of its optimal beamformer; the standard error is 2.2 %."""
    monkeypatch.setattr("solvers.beamforming.anneal._LAST_POLISH", 8)  # the default
    air, sent = air_round(), updates()
    got = received(AirComp(convention=convention), air, sent)
    error = (got.mean["update"] - exact(air, sent)).double().numpy()
    predicted = []
    for node in range(3):
        own = air.node == node
        rms = np.sqrt((sent[own].double() ** 2).mean(1).numpy()) / 0.5
        scales = transmit_scales(air.weights[own], rms, snr_db=10.0, convention=convention)
        best = optimize_beamformer(air.draw.h[own], scales=scales, certificate="exact")
        noise = 1 / best.objective if convention == "published" else 0.5 / best.objective
        assert error[node].var() == pytest.approx(0.25 * noise, rel=0.08)
        assert abs(error[node].mean()) < 0.06 * error[node].std()
        predicted.append(noise)
    assert got.metrics["air_error_predicted"] == pytest.approx(np.mean(predicted), rel=1e-3)
    assert got.metrics["air_error"] == pytest.approx((error**2).mean() / 0.25, rel=1e-5)


def test_noise_scales_with_the_unit_only_in_the_published_convention():
    sent = updates()
    for convention, ratio in (("published", 100.0), ("physical", 1.0)):
        errors = [
            (received(AirComp(convention=convention), air, sent).mean["update"] - exact(air, sent))
            for air in (air_round(unit=0.1), air_round(unit=1.0))
        ]
        assert (errors[1].var() / errors[0].var()).item() == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"convention": "physical"},
        {"convention": "physical", "elements_per_symbol": 2, "csi_error": 0.01},
        {"csi_error": 0.02, "phase_error_deg": 10.0},
    ],
)
def test_results_do_not_depend_on_the_chunks(options):
    air, sent = air_round(), updates()
    results = [received(AirComp(**options), air, sent, chunk) for chunk in (1, 4, 9)]
    for result in results[1:]:
        assert torch.allclose(result.mean["update"], results[0].mean["update"], atol=1e-5)
        assert result.metrics == pytest.approx(results[0].metrics, rel=1e-4)


def test_unsent_elements_are_received_as_zero():
    mask = torch.ones(3, ELEMENTS, dtype=torch.bool)
    mask[0, 100:300], mask[2, ::2] = False, False
    for options in ({}, {"convention": "physical", "csi_error": 0.1, "phase_error_deg": 5.0}):
        air, sent = air_round(exchanged=mask), updates()
        got = received(AirComp(**options), air, sent)
        assert (got.mean["update"][~mask] == 0).all()
        error = (got.mean["update"] - exact(air, sent) * mask).double()
        each = (error**2).sum(1) / mask.sum(1)
        assert got.metrics["air_error"] == pytest.approx(each.mean().item() / 0.25, rel=1e-5)


@pytest.mark.thorough
def test_predicted_error_equals_the_mean_over_many_uploads():
    """The mean error of 60 uploads with imperfect CSI is predicted within 3 standard errors."""
    uplink = AirComp(
        convention="physical",
        elements_per_symbol=2,
        csi_error=0.01,
        phase_error_deg=8.0,
        beamformer_starts=1,
    )
    mask = torch.arange(ELEMENTS) % 3 > 0
    sent, got = updates(), []
    for seed in range(60):
        air = air_round(exchanged=mask.expand(3, -1))
        air = Transmission(**{**vars(air), "stream": Stream(seed, ("air",))})
        got.append(received(uplink, air, sent).metrics)
    realised = np.array([metrics["air_error"] for metrics in got])
    standard = realised.std() / np.sqrt(len(realised))
    predicted = got[0]["air_error_predicted"]
    assert standard < 0.09 * predicted
    assert realised.mean() == pytest.approx(predicted, abs=3 * standard)


def test_zero_updates():
    air = air_round()
    for options in ({}, {"convention": "physical"}, {"convention": "physical", "csi_error": 0.1}):
        got = received(AirComp(**options), air, torch.zeros(len(NODE), 10))
        if options:
            assert (got.mean["update"] == 0).all()
            assert got.metrics["air_error"] == 0
    some = updates()
    some[NODE == 1] = 0
    got = received(AirComp(convention="physical"), air, some)
    assert (got.mean["update"][1] == 0).all()
    assert torch.isfinite(got.mean["update"]).all()


def test_vanishing_and_diverged_updates():
    """A tiny update gives the same errors as a zero update; an update with NaN gives NaN."""
    uplink = AirComp(convention="physical")
    faint, air = updates(), air_round()
    faint[1] *= 1e-30
    got = received(uplink, air, faint)
    zero = faint.clone()
    zero[1] = 0
    assert got.metrics == pytest.approx(received(uplink, air, zero).metrics, rel=1e-2)
    lost = updates()
    lost[0] = torch.nan
    for options in ({}, {"beamformer": "random"}):
        got = received(AirComp(convention="physical", **options), air, lost)
        assert torch.isnan(got.mean["update"][0]).all()
        assert torch.isfinite(got.mean["update"][1:]).all()
        assert np.isnan(got.metrics["air_error"])


def test_a_zero_channel_raises():
    air = air_round()
    h = air.draw.h.copy()
    h[5] = 0
    broken = Transmission(**{**vars(air), "draw": type(air.draw)(air.draw.network, h)})
    where = r"cell 1 \(clients 4 to 5\): client 1 has \|a\^H h\| = 0"
    with pytest.raises(ConfigError, match=where):
        received(AirComp(), broken, updates())


def test_seconds_and_bytes(config):
    """Seconds are |p_j| t_s / (B / Delta_f), (34); ``physical`` adds 4 bytes for the scale."""
    plans = {}
    for name, options in (
        ("tdma", {}),
        ("aircomp", {}),
        ("aircomp", {"convention": "physical"}),
        ("aircomp", {"convention": "physical", "elements_per_symbol": 2}),
    ):
        made = config("hist", uplink=name, cycles_per_step=1.0, **options)
        setup = build(made)
        key = (name, *options.values())
        plans[key] = setup.planner.plan(0), setup
    plan, setup = plans["aircomp",]
    lengths = plan.submodels.lengths
    np.testing.assert_allclose(plan.price.seconds, 5 * lengths / 14e3 / 600, rtol=1e-4)
    assert plan.draws.h.shape[0] == 5  # one channel draw per edge round
    assert plans["tdma",][0].draws.h.shape[0] == 1
    assert plan.price.uplink_mib == plans["tdma",][0].price.uplink_mib
    physical = plans["aircomp", "physical"][0].price.uplink_mib
    assert physical - plan.price.uplink_mib == pytest.approx(5 * 4 / 2**20)
    slow = build(config("hist", uplink="aircomp", cycles_per_step=1e9)).planner.plan(0)
    network = setup.planner.network
    slowest = [network.cpu_hz[network.cell_of == cell].min() for cell in range(3)]
    size = setup.model.objective.spec.size
    work = 3 * slow.submodels.lengths / size * 1e9 / slowest  # (35), H = 3
    np.testing.assert_allclose(slow.price.seconds, 5 * (work + lengths / 14e3 / 600), rtol=1e-9)
    twice = plans["aircomp", "physical", 2][0].price.seconds
    np.testing.assert_allclose(twice, plan.price.seconds / 2, rtol=1e-3)


def test_mask_sizes_over_the_air():
    """Costs are c_j = max_i H V_0 / (F_i d) + t_s / (B / Delta_f), (36), for each parameter."""
    draw = section_vi_c(4, 60, stream=Stream(1)).draw(Stream(2))
    problem = model_mask_sizes(FCNN((784,), 10), draw, uplink="aircomp", local_steps=20)
    network, d, g = draw.network, 238_510, 784 + 1 + 10
    slowest = [network.cpu_hz[network.cell_of == j].min() for j in range(4)]
    c = [20 * 1e6 / (f * d) + 1 / 14e3 / 600 for f in slowest]
    sizes = np.array([[75, 80, 10, 3], [76, 81, 11, 4]])
    before, after = problem.seconds(sizes)
    np.testing.assert_allclose(after - before, 5 * g * np.array(c), rtol=1e-9)
    sizes = problem.solve().value
    assert sizes.sum() == 300
    assert sizes[:2].max() < sizes[2:].min()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["hist", "hfedavg", "fedavg"])
def test_runs_report_their_error_and_are_reproducible(algorithm, config, toy, same):
    flags = {"uplink": "aircomp", "snr_db": 0.0, "convention": "physical", "rounds": 4}
    flags["beamformer"] = "random"
    whole = wirelessfl.run(config(algorithm, **flags), data=toy)
    again = wirelessfl.run(config(algorithm, **flags), data=toy)
    same(whole, again)
    for row in whole.rows[1:]:
        assert row["air_error"] == pytest.approx(row["air_error_predicted"], rel=0.5)
    assert "air_error" not in whole.rows[0]
    quiet = wirelessfl.run(config(algorithm, **flags | {"snr_db": 200.0}), data=toy)
    draws = {} if algorithm == "fedavg" else {"coherence": "edge-round"}
    clear = wirelessfl.run(config(algorithm, uplink="tdma", rounds=4, **draws), data=toy)
    for name, value in quiet.params.items():
        assert torch.allclose(value, clear.params[name], atol=1e-5), name
        assert not torch.allclose(whole.params[name], value, atol=1e-5), name


def test_padding_stays_zero_under_noise(config, toy):
    """With 20 neurons in three cells, submodels are padded; the padding receives no noise."""
    flags = {"uplink": "aircomp", "snr_db": 10.0, "hidden": (20,), "rounds": 2}
    setup = build(config("hist", **flags), data=toy)
    plan = setup.planner.plan(0)
    padding = plan.submodels.index < 0
    assert padding.any()
    merged = []
    combine = setup.learner.server.algorithm.combine

    class Watch(type(setup.learner.server.algorithm)):
        def combine(self, cloud, nodes, submodels, weights):
            merged.append(nodes["params"])
            return combine(cloud, nodes, submodels, weights)

    setup.learner.server.algorithm = Watch()
    setup.learner.learn(plan, setup.learner.server.cloud)
    assert (merged[0][padding] == 0).all()
    assert (merged[0][~padding] != 0).any()


class NeedsEach(FedAvg):
    """An algorithm whose server needs each client's update."""

    payloads = (Payload("update", each=True),)


def test_a_beamformer_without_its_solver_raises_when_the_config_is_read(monkeypatch):
    monkeypatch.setattr("wirelessfl.air.uplinks.aircomp.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="beamformer is 'sdr': it needs cvxpy"):
        Config.from_flags("fedavg", uplink="aircomp", beamformer="sdr")


@pytest.mark.parametrize(
    ("algorithm", "flags", "message"),
    [
        (f"{__name__}:NeedsEach", {}, 'needs each client\'s update, and uplink "aircomp" gives'),
    ],
)
def test_invalid_settings_raise_when_the_config_is_read(algorithm, flags, message):
    with pytest.raises(ConfigError, match=message):
        Config.from_flags(algorithm, uplink="aircomp", **flags)


def test_run_from_the_command_line(tmp_path, capsys):
    from wirelessfl.cli.main import main

    words = "run hist --uplink aircomp --snr-db=-5 --antennas 4 --beamformer mirror_prox "
    words += "--convention physical --rounds 1 --clients 8 --local-steps 1 --workers 1 --out"
    assert main([*words.split(), str(tmp_path / "run")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "rows.jsonl").read_text().splitlines()]
    assert rows[1]["air_error"] > 0
    assert wirelessfl.Config.from_toml(tmp_path / "run" / "config.toml").tables["uplink"] == {
        "name": "aircomp",
        "convention": "physical",
        "beamformer": "mirror_prox",
        "beamformer_starts": None,
        "threshold": 0.0,
        "elements_per_symbol": 1,
        "csi_error": 0.0,
        "phase_error_deg": 0.0,
        "time_offset": None,
        "subcarrier_hz": 15e3,
        "symbol_seconds": 1e-3 / 14,
    }


def test_the_power_limit_holds_while_a_client_sends():
    """Clients that send half of their node's elements send them with twice the power per element.

    With the power limit over their own symbols, the noise is twice that of clients that send the
    same energy over all of them.
    """
    sent, uplink = updates(), AirComp(convention="physical", beamformer_starts=2)
    whole = received(uplink, air_round(), sent).metrics
    half = replace(air_round(), lengths=np.full(len(NODE), ELEMENTS // 2))
    found = received(uplink, half, sent).metrics
    assert found["air_error_predicted"] == pytest.approx(2 * whole["air_error_predicted"])
    full = replace(air_round(), lengths=np.full(len(NODE), ELEMENTS))
    assert received(uplink, full, sent).metrics == whole
