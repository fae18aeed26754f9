"""Warm starts: weights by formula, history, equivalent runs, and costs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.engine.sessions.full_batch import full_batch_round
from wirelessfl.algorithms.warm_starts import WARM_STARTS
from wirelessfl.algorithms.warm_starts.proposed import (
    Proposed,
    inner_product,
    plain_two_norm,
    softmax_weights,
    two_norm,
)
from wirelessfl.algorithms.warm_starts.warm_start import Opening, Past
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.loop import simulate
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine

SPEC = ParamSpec({"fc1.weight": (2, 3), "fc1.bias": (2,), "fc2.weight": (1, 2)})
FLAGS = {"sessions": 5, "clients": 8, "split": "iid", "rounds": 4, "lr": 0.1}


def vectors(count, seed=0):
    return torch.from_numpy(Stream(seed, ("v",)).generator().standard_normal((count, 10))).float()


def opening(past, gradient=None, latest=None):
    latest = torch.zeros(10) if latest is None else latest
    return Opening(9, past, latest, gradient, SPEC, lambda number: torch.full((10,), float(number)))


def past_of(models, gradients, pilot=None):
    past = Past(pilot=pilot)
    for session, (model, gradient) in enumerate(zip(models, gradients, strict=True), 1):
        past = past.with_session(session, model, gradient)
    return past


def test_distances_against_numpy():
    """Distances per normalised tensor without biases, and of whole vectors, equal NumPy's."""
    one, two = (v.double().numpy() for v in vectors(2))
    norms, products = [], []
    for part in (slice(0, 6), slice(8, 10)):  # 6:8 are biases
        g, h = (v[part] / np.linalg.norm(v[part]) for v in (one, two))
        norms.append(np.linalg.norm(g - h))
        products.append(g @ h)
    pair = (*vectors(2), SPEC)
    assert two_norm(*pair) == pytest.approx(np.mean(norms), rel=1e-6)
    assert inner_product(*pair) == pytest.approx(-np.mean(products), rel=1e-6)
    assert plain_two_norm(*pair) == pytest.approx(np.linalg.norm(one - two), rel=1e-6)


def test_distances_of_a_zero_gradient_are_finite():
    zero = torch.zeros(10)
    assert two_norm(zero, vectors(1)[0], SPEC) == pytest.approx(1.0)
    assert two_norm(zero, zero, SPEC) == 0.0


@given(st.lists(st.floats(0, 5), min_size=1, max_size=6), st.floats(0, 50))
def test_weights_are_a_softmax_of_distances(distances, scale):
    weights = softmax_weights(distances, scale)
    whole = math.fsum(math.exp(-scale * (d - min(distances))) for d in distances)
    for weight, distance in zip(weights, distances, strict=True):
        assert weight == pytest.approx(
            math.exp(-scale * (distance - min(distances))) / whole, abs=1e-9
        )
    # The nearest session has a weight of at least 1/k.
    assert weights[int(np.argmin(distances))] >= 1 / len(distances) - 1e-12


def test_non_finite_distances_have_weight_zero():
    assert softmax_weights([1.0, math.nan, 1.0, math.inf], 3.0) == [0.5, 0.0, 0.5, 0.0]
    assert softmax_weights([math.nan, math.nan], 3.0) == [0.0, 0.0]


@pytest.mark.parametrize("name", ["proposed", "average"])
def test_diverged_sessions_are_ignored(name):
    """A model with NaNs gets no weight; if all models have NaNs, the latest model is used."""
    models, gradients, latest = vectors(3, 1), vectors(3, 2), vectors(1, 4)[0]
    models[0, 3] = math.nan
    start = WARM_STARTS.find(name)()
    found = start.initial(opening(past_of(models, gradients), gradients[0], latest))
    assert bool(found.params.isfinite().all())
    assert found.weights.keys() == {2, 3}
    lost = past_of(models[:1], gradients[:1])
    assert torch.equal(start.initial(opening(lost, gradients[0], latest)).params, latest)


@pytest.mark.parametrize("similarity", ["two_norm", "plain_two_norm", "inner_product"])
def test_a_large_scale_selects_the_nearest_session_and_scale_zero_the_mean(similarity):
    models, gradients = vectors(4, 1), vectors(4, 2)
    past = past_of(models, gradients)
    near = gradients[2] + 1e-3 * vectors(1, 3)[0]
    sharp = Proposed(similarity=similarity, similarity_scale=1e7).initial(opening(past, near))
    assert torch.equal(sharp.params, models[2])
    assert sharp.weights == {1: 0.0, 2: 0.0, 3: 1.0, 4: 0.0}
    flat = Proposed(similarity=similarity, similarity_scale=0).initial(opening(past, near))
    average = WARM_STARTS.find("average")().initial(opening(replace(past, gradients=())))
    assert torch.equal(flat.params, average.params)
    torch.testing.assert_close(flat.params, models.mean(0))


def test_a_session_with_the_same_clients_has_the_largest_weight():
    """A session with distance 0 has the largest weight, and so more than 1/k."""
    models, gradients = vectors(5, 1), vectors(5, 2)
    found = Proposed().initial(opening(past_of(models, gradients), gradients[3]))
    assert found.weights[4] == max(found.weights.values()) > 1 / 5


def test_pilot_is_the_mean_of_the_first_models():
    start = Proposed(pilot_sessions=3)
    models, past = vectors(4, 1), Past()
    for session in range(3):
        past = start.remember(past, session, models[session], None)
        assert past.stored_bytes == 4 * 10 * (session + 1 if session < 2 else 1)
    torch.testing.assert_close(past.pilot, models[:3].mean(0))
    assert past.sessions == ()
    assert [start.trials(session) for session in range(5)] == [0, 0, 0, 1, 1]
    past = start.remember(past, 3, models[3], vectors(1)[0])
    assert past.stored_bytes == 4 * 10 * 3  # the pilot model, and model and gradient of session 3


def test_history_keeps_the_latest_or_the_most_diverse_sessions():
    models = vectors(4, 1)
    east, north, west = torch.zeros(3, 10)
    east[0], north[1], west[0] = 1.0, 1.0, -1.0
    gradients = [east, 2 * east + 0.01 * north, north, west]
    pasts = {}
    for keep in ("latest", "diverse"):
        start = Proposed(history=3, history_keep=keep)
        past = Past(pilot=torch.zeros(10))
        for session, (model, gradient) in enumerate(zip(models, gradients, strict=True), 1):
            past = start.remember(past, session, model, gradient)
            assert len(past.sessions) <= 3
        pasts[keep] = past.sessions
    assert pasts["latest"] == (2, 3, 4)
    # Of the two vectors to the east, the one tilted to the north is closer to the others.
    assert pasts["diverse"] == (1, 3, 4)


def test_past_is_restored_from_a_checkpoint():
    for past in (
        Past(),
        Past(pilot=torch.ones(10)),
        past_of(vectors(2, 1), vectors(2, 2), torch.ones(10)),
    ):
        again = Past.of(past.tensors(), torch.device("cpu"))
        assert again.sessions == past.sessions
        assert (again.pilot is None) == (past.pilot is None)
        for one, two in zip(
            (*again.models, *again.gradients), (*past.models, *past.gradients), strict=True
        ):
            assert torch.equal(one, two)


def test_zero_scale_is_average(config, toy):
    """With R = 0, rounds equal those of "average"; the trial rounds add their cost."""
    proposed = wirelessfl.run(
        config("fedavg", **FLAGS, warm_start="proposed", similarity_scale=0), data=toy
    )
    average = wirelessfl.run(config("fedavg", **FLAGS, warm_start="average"), data=toy)
    for one, two in zip(proposed.rows, average.rows, strict=True):
        assert one["accuracy"] == two["accuracy"]
        assert one["loss"] == two["loss"]
    assert proposed.rows[-1]["extra_rounds"] == 4
    assert average.rows[-1]["extra_rounds"] == 0
    assert proposed.rows[-1]["sim_seconds"] == pytest.approx(
        average.rows[-1]["sim_seconds"] + proposed.rows[-1]["extra_seconds"]
    )


def test_every_warm_start_runs_with_its_trial_rounds(config, toy):
    for name in WARM_STARTS.classes():
        result = wirelessfl.run(config("fedavg", **FLAGS, warm_start=name), data=toy)
        rows, last = result.rows, result.rows[-1]
        assert [(r["session"], r["session_round"]) for r in rows] == [
            (s, t) for s in range(5) for t in range(5)
        ]
        trial = name in ("proposed", "random-pilot")
        assert (last["extra_rounds"], last["extra_uploads"]) == ((4, 16) if trial else (0, 0))
        assert last["extra_broadcasts"] == (4 if trial or name == "continuous" else 0)
        assert last["round"] == 20


class Spy(Exception):
    """Interrupts a run for inspection."""


def test_one_trial_round_is_one_round_of_fedavg(config, toy):
    """V = 1 trains exactly one round of full batches from the pilot model."""
    module = FCNN((12,), 4, hidden=(10,))
    settings = config(
        "fedavg", **FLAGS | {"local_steps": 1, "rounds": 2}, batch_size=1000, warm_start="proposed"
    )
    setup = build(settings, data=toy, model=module)
    run, spec = Engine(setup), setup.model.objective.spec
    handler = setup.handler
    rows = []

    def report(decision):
        rows.append(decision.status)
        if decision.status == {"session": 1, "session_round": 0}:
            raise Spy

    run.start()
    with pytest.raises(Spy):
        simulate(setup.schedule, handler, setup.clock, report, lambda: None)
    pilot = handler.model.past.pilot
    torch.testing.assert_close(
        setup.learner.server.cloud["params"], pilot
    )  # no past: the latest model
    present = np.flatnonzero(setup.model.groups.group_of == 1)
    after = full_batch_round(setup.learner, spec, module, toy, pilot, present, 0.1)
    torch.testing.assert_close(handler.model.gradient, after - pilot, rtol=1e-4, atol=1e-7)
    assert handler.extras.extra_rounds == 1
    assert handler.extras.extra_uploads == 4


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", ["scaffold", "moon", "fedacg", "fadamgc"])
def test_trial_rounds_do_not_change_the_training(config, toy, tmp_path, monkeypatch, name):
    """Runs with and without trial rounds have the same rows and parameters."""
    (tmp_path / "tried_and_gone.py").write_text(
        "from wirelessfl.extend import Previous\n"
        "class Tried(Previous):\n"
        "    def trials(self, session):\n"
        "        return session % 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain = wirelessfl.run(config(name, **FLAGS), data=toy)
    tried = wirelessfl.run(config(name, **FLAGS, warm_start="tried_and_gone:Tried"), data=toy)
    assert tried.rows[-1]["extra_rounds"] == 0 + 1 + 2 + 0 + 1
    for key in ("accuracy", "loss", "round", "session"):
        assert [row[key] for row in tried.rows] == [row[key] for row in plain.rows], key
    for key, value in plain.params.items():
        assert torch.equal(value, tried.params[key])


def test_trial_rounds_use_the_initial_step_size(config, toy):
    """With decaying step sizes, a trial round uses the initial one, regardless of its number."""
    steps = {"local_steps": 1, "rounds": 4, "batch_size": 1000, "warm_start": "proposed"}
    gradients = []
    for decay in ({"lr_schedule": "poly", "lr_ratio": 0.1}, {}):
        settings = config("fedavg", **FLAGS | steps | decay)
        setup = build(settings, data=toy, model=FCNN((12,), 4, hidden=(10,)))
        engine = Engine(setup)

        def report(decision, engine=engine):
            if decision.status["session"] == 1:
                raise Spy

        engine.start()
        # Both use the pilot model of the run with decaying step sizes.
        if gradients:
            start = setup.handler.model.warm_start
            object.__setattr__(start, "trial_model", lambda opening: gradients[0][0])
        with pytest.raises(Spy):
            simulate(
                setup.schedule,
                setup.handler,
                setup.clock,
                report,
                lambda: None,
            )
        gradients.append((setup.handler.model.past.pilot, setup.handler.model.gradient))
    torch.testing.assert_close(gradients[0][1], gradients[1][1], rtol=1e-4, atol=1e-7)


def test_teachers_use_the_downlink(config, toy):
    """Each session but the first costs the MiB and seconds of one additional downlink model."""
    rows = {}
    for name in ("previous", "continuous"):
        settings = config("fedavg", **FLAGS, warm_start=name, downlink_mbps=0.1)
        rows[name] = wirelessfl.run(settings, data=toy).rows[-1]
    more, less = rows["continuous"], rows["previous"]
    vector = 4 * sum(
        v.numel() for v in wirelessfl.run(config("fedavg", rounds=1), data=toy).params.values()
    )
    assert more["extra_broadcasts"] == 4
    assert more["extra_mib"] == pytest.approx(4 * vector / 2 / 2**20)
    assert more["downlink_mib"] - less["downlink_mib"] == pytest.approx(more["extra_mib"])
    assert more["extra_seconds"] == pytest.approx(4 * vector * 8 / 0.1e6)
    assert more["sim_seconds"] - less["sim_seconds"] == pytest.approx(more["extra_seconds"])


@pytest.mark.thorough
def test_distillation_changes_the_training(config, toy):
    """Both kinds of distillation change the losses of all sessions except the first."""
    ends = {}
    for flags in (
        {"warm_start": "previous"},
        {"warm_start": "continuous", "kl_weight": 0.0},
        {"warm_start": "continuous", "distillation": "csrd"},
        {"warm_start": "continuous", "distillation": "logits"},
    ):
        result = wirelessfl.run(config("fedavg", **FLAGS, **flags), data=toy)
        ends[tuple(flags.values())] = [row["loss"] for row in result.rows]
    previous, none, csrd, logits = ends.values()
    assert none == pytest.approx(previous, rel=1e-6)
    first = [4 + 1 + 1]  # rows of the first session, and of the start of the second
    assert csrd[: first[0]] == pytest.approx(previous[: first[0]], rel=1e-6)
    assert len({round(own[-1], 6) for own in (previous, csrd, logits)}) == 3


def test_a_given_model_cannot_be_redrawn(config, toy):
    with pytest.raises(ConfigError, match="draws new models"):
        wirelessfl.run(
            config("fedavg", **FLAGS, warm_start="fresh"), data=toy, model=FCNN((12,), 4)
        )


OWN = """
import torch
from wirelessfl.extend import Contrast, Initial, Past, WarmStart
class Base(WarmStart):
    def initial(self, opening):
        return Initial(opening.latest)
class Bare(Base):
    def initial(self, opening):
        return opening.latest
class Short(Base):
    def initial(self, opening):
        return Initial(opening.latest[:5])
class Double(Base):
    def initial(self, opening):
        return Initial(opening.latest.double())
class Half(Base):
    def trials(self, session):
        return 0.5
class Forgetful(Base):
    def remember(self, past, session, last, gradient):
        return None
class Strange(Base):
    def penalties(self, session, labels_before):
        return (1, 2)
class Trial(Base):
    def trials(self, session):
        return 1
    def trial_model(self, opening):
        return None
class Features(Base):
    def penalties(self, session, labels_before):
        return (Contrast(1.0, 1.0),) if session else ()
"""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Bare", "initial returned torch.float32 .* Return a value of type Initial"),
        ("Short", r"initial returned Initial|initial returned torch.float32 \[5\]"),
        ("Double", "initial returned torch.float64"),
        ("Half", "trials returned 0.5. Return an integer >= 0"),
        ("Forgetful", "remember returned None. Return a value of type Past"),
        ("Strange", "penalties returned 1. Return entries of type Penalty"),
        ("Trial", "trial_model returned None"),
        (
            "Features",
            'executor "stacked" cannot compare .* warm_start "own_starts:Features" requires',
        ),
    ],
)
def test_return_values_of_custom_warm_starts_are_checked(
    config, toy, tmp_path, monkeypatch, name, message
):
    (tmp_path / "own_starts.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    settings = config(
        "fedavg", **FLAGS, warm_start=f"own_starts:{name}",
        executor="stacked" if name == "Features" else "auto",
    )  # fmt: skip
    with pytest.raises(ConfigError, match=message):
        wirelessfl.run(settings, data=toy)
