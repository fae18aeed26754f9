"""An algorithm with a chosen assigner equals the preset that combines the two, bit for bit."""

import pytest
import torch

import wirelessfl
from wirelessfl import Config
from wirelessfl.algorithms import assigner_of
from wirelessfl.algorithms.assigners import ASSIGNERS, Assigner
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.models import FCNN

WIDTHS = {"capacities": (1.0, 0.5, 0.25), "lr": 0.1, "rounds": 3}
REQUESTS = {"schedule": "buffered", "requests": 3, "buffer": 2}
CELLS = {"cells": 2, "edge_rounds": 2}
# Algorithm and assigner; the preset; settings of both; settings of the preset alone.
SAME = [
    ("fedavg", "nested", "heterofl", {"submodel_scale": "width"}, {}),
    ("fedavg", "rolling", "fedrolex", {"clients_per_round": 4}, {}),
    ("fedavg", "rolling", "fedrolex", REQUESTS, {}),
    ("fedavg", "smallest", "fedavg-small", {}, {}),
    ("fedavg", "smallest", "fedavg-small", REQUESTS, {}),
    *(
        ("fedavg", kind, "ra-fed", {"min_coverage": 1, "uplink": "ofdma"}, {"masks": kind})
        for kind in ("static", "covered", "crossed")
    ),
    ("fedavg", "random", "ra-fed", {"momentum": 0.5}, {}),
    ("fedavg", "covered", "ra-fed", REQUESTS, {"masks": "covered"}),
    ("hfedavg", "covered", "hfedavg", CELLS, {"masks": "covered", "local": "ra-fed"}),
    *(
        ("hfedavg", "partition", "hist", CELLS | {"capacities": None} | more, {})
        for more in (
            {"mask_overlap": 0.5},
            {"mask_sizes": "optimized", "submodel_scale": "width"},
            {"local": "fadamgc", "hidden_biases": "local"},
            {"schedule": "buffered", "buffer": 2, "cells": 3},
        )
    ),
]


def trained(config, algorithm, toy, **flags):
    """Rows and final parameters of a run."""
    torch.manual_seed(3)
    flags = {key: value for key, value in (WIDTHS | flags).items() if value is not None}
    result = wirelessfl.run(
        config(algorithm, **flags), data=toy, model=FCNN((12,), 4, hidden=(10,))
    )
    rows = [{k: v for k, v in row.items() if k != "wall_seconds"} for row in result.rows]
    return rows, torch.cat([value.reshape(-1) for value in result.params.values()])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("algorithm", "assigner", "preset", "both", "own"), SAME)
def test_a_preset_is_its_rule_with_its_assigner(
    config, toy, algorithm, assigner, preset, both, own
):
    rows, params = trained(config, algorithm, toy, assigner=assigner, **both)
    expected_rows, expected = trained(config, preset, toy, **both, **own)
    assert torch.equal(params, expected)
    assert rows == expected_rows


def test_fadamgc_trains_covered_submodels(config, toy):
    """A round sends fewer bytes than with full models, and its model differs."""
    whole, full = trained(config, "fadamgc", toy, capacities=None, lr=None)
    rows, params = trained(config, "fadamgc", toy, assigner="covered", lr=None)
    assert rows[-1]["uplink_mib"] < 0.7 * whole[-1]["uplink_mib"]
    assert rows[-1]["coverage"] < whole[-1].get("coverage", 6)
    assert not torch.equal(params, full)


def test_runs_without_an_assigner_store_none():
    """Names and settings of stored runs do not change."""
    plain = Config.from_flags("fedavg")
    assert plain.assigner is None
    assert Config.from_flags("fedavg", assigner="none") == plain
    assert "assigner" not in plain.to_toml()


def test_every_assigner_has_a_preset_or_a_run():
    assert {name for _, name, *_ in SAME} == ASSIGNERS.classes().keys() - {"none"}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("client_submodels", "an assigner: derive it from one"),
        ("remembers", "ServerMemory"),
        ("uses_mean", r"payloads, as Payload\(..., mean=False\)"),
        ("combine", "HFedAvg"),
    ],
)
def test_an_algorithm_cannot_define_what_nothing_reads(name, place):
    """It would be ignored."""
    message = f"Own defines {name}, which would be ignored: it belongs to {place}"
    with pytest.raises(ConfigError, match=message):
        type("Own", (FedAvg,), {name: None, "__module__": __name__})


def test_an_algorithm_that_derives_from_an_assigner_brings_it():
    class Whole(Assigner, FedAvg):
        def client_submodels(self, context):
            return None

    assert assigner_of(Whole()).client_submodels(None) is None
