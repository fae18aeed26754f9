"""``wirelessfl.combinations``: the configurations of the command, from Python."""

import itertools

import pytest

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config

POINTS = [{"cells": 2, "bandwidth_hz": 10e6}, {"cells": 3, "bandwidth_hz": 5e6}]


def test_all_values_are_combined_with_all_points():
    """Each configuration is that of ``Config.from_flags`` with the values of its combination."""
    found = wirelessfl.combinations(
        "hist,hfedavg", {"seed": [1, 2], "cpu_hz": (1e9, 2e9)}, coupled=POINTS
    )
    assert found == [
        Config.from_flags(algorithm, seed=seed, cpu_hz=(1e9, 2e9), **point)
        for algorithm, seed, point in itertools.product(("hist", "hfedavg"), (1, 2), POINTS)
    ]


def test_settings_are_left_out_where_they_do_not_apply(tmp_path):
    """Here ``cells`` and ``local`` of a star, and ``mu`` of all algorithms but FedProx."""
    file = tmp_path / "base.toml"
    file.write_text("[training]\nrounds = 3\n")
    hist, fedprox = wirelessfl.combinations(
        ["hist", "fedprox"], {"cells": 2, "local": "fadamgc", "mu": 0.5}, base=file
    )
    assert hist == Config.from_flags("hist", cells=2, local="fadamgc", rounds=3)
    assert fedprox == Config.from_flags("fedprox", mu=0.5, rounds=3)


def test_a_point_may_name_the_choice_that_has_its_settings():
    found = wirelessfl.combinations(
        "fedavg",
        coupled=[{"split": "dirichlet", "alpha": 0.3}, {"split": "iid"}],
        base={"training": {"rounds": 2}},
    )
    assert [config.split for config in found] == [
        Config.from_flags("fedavg", split="dirichlet", alpha=0.3).split,
        Config.from_flags("fedavg", split="iid").split,
    ]


def test_points_may_name_algorithms():
    """For example with a step size for each."""
    points = [{"algorithm": "fedavg", "lr": 0.1}, {"algorithm": "fedprox", "lr": 0.2}]
    found = wirelessfl.combinations(settings={"seed": [1, 2]}, coupled=points)
    assert [(config.run.seed, config.named("algorithm")) for config in found] == [
        (seed, point["algorithm"]) for seed in (1, 2) for point in points
    ]
    assert [config.algorithm.lr for config in found] == [0.1, 0.2, 0.1, 0.2]


@pytest.mark.parametrize(
    ("settings", "coupled", "message"),
    [
        ({"cells": [2]}, POINTS, "cells is given both alone and in coupled settings: give it in"),
        ({"seed": []}, [], r"seed is \[\]: give at least one value\."),
        ({"seed": {1, 2}}, [], r"seed is \{1, 2\}, without .*: give a list, such as \[1, 2, 3\]\."),
        ({"seed": (n for n in [1, 2])}, [], r"seed is .*: give a list, such as \[1, 2, 3\]\."),
        ({"seed": "1,2,3"}, [], "or wirelessfl.combinations with a list"),
        ({"algorithm": "hist"}, [], "algorithm is in settings: give it as the first argument"),
        ({"mu": 1.0}, [], 'mu=1.0 is a setting of algorithm "fedprox" or "moon"'),
        ({"local": "fedprox"}, [], r'local=.fedprox. is a setting of algorithm "hfedavg" or "hist'),
        ({}, [{"sed": 1}], "unknown setting 'sed' of algorithm 'fedavg'.*Do you mean 'seed'"),
        ({}, [{"seed": 1}, {"mu": 1}], 'mu=1 is a setting of algorithm "fedprox" or "moon"'),
    ],
)
def test_settings_that_say_nothing_are_refused(settings, coupled, message):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.combinations("fedavg,scaffold", settings, coupled=coupled)
