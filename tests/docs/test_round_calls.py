"""The picture of a round has the calls that a round makes, in their order."""

import inspect

import wirelessfl
from channels import EqualBands, Rayleigh
from tests.docs.__main__ import LOOPS, RECORDS, ROUND
from wirelessfl import extend
from wirelessfl.air.failures import Waterfall
from wirelessfl.engine.selection.built_in import BestChannel
from wirelessfl.models.losses.built_in import CrossEntropy
from wirelessfl.models.metrics.built_in import ClassAccuracy

BUILT_IN = {
    "Selection": BestChannel,
    "Fading": Rayleigh,
    "Assigner": extend.Nested,
    "Access": EqualBands,
    "Failures": Waterfall,
    "Uplink": extend.Uplink,
    "Algorithm": extend.FedAvg,
    "HFedAvg": extend.HFedAvg,
    "Loss": CrossEntropy,
    "Reception": extend.Reception,
    "Metric": ClassAccuracy,
    "Observer": extend.Observer,
}
"""A part of each kind in the picture."""


def test_the_picture_names_public_methods():
    for call in ROUND:
        assert inspect.isfunction(inspect.getattr_static(getattr(extend, call.kind), call.name))
    names = [call.name for call in ROUND]
    assert len(names) == len(set(names))
    assert {*RECORDS, *(name for first, last, *_ in LOOPS for name in (first, last))} <= {*names}


def test_a_round_makes_the_calls_of_the_picture(tmp_path, monkeypatch):
    """In a run with cells, client momentum, submodels, failures, a selection and an observer."""
    calls = []

    def record(kind, name):
        method = inspect.getattr_static(kind, name)

        def recorded(*args, **kwargs):
            calls.append(name)
            return method(*args, **kwargs)

        monkeypatch.setattr(kind, name, recorded)

    for call in ROUND:
        record(BUILT_IN[call.kind], call.name)
    config = wirelessfl.Config.from_flags(
        "hfedavg", momentum=0.5, label_smoothing=0.1, assigner="nested", capacities=(1.0, 0.5),
        select="best-channel", uplink="ofdma", failures="waterfall", metric="class-accuracy",
        clients=8, cells=2, clients_per_round=4, edge_rounds=1, local_steps=1, rounds=2,
        out=tmp_path / "run",
    )  # fmt: skip
    wirelessfl.run(config, observers=[extend.Observer()])
    start, end = [place for place, name in enumerate(calls) if name == "row"][-2:]
    assert list(dict.fromkeys(calls[start + 1 : end + 1])) == [call.name for call in ROUND]
