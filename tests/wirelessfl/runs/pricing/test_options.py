"""`wirelessfl plan`: each option has the costs of its own price, found without data."""

import json

import numpy as np
import pytest

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.build import planners

SMALL = {"dataset": "fashion-mnist", "clients": 4, "cells": 2, "hidden": (8,), "edge_rounds": 1}


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    def refused(*_):
        raise AssertionError("data are read")

    monkeypatch.setattr(planners.Loaded, "dataset", refused)


def test_each_option_is_its_own_price():
    """Means of the rounds that `wirelessfl.price` gives for its flags."""
    found = wirelessfl.plan(Config.from_flags("hist", **SMALL), 2, air_joules=True)
    assert [option.settings["mask_sizes"] for option in found] == ["uniform", "optimized"] * 7
    for option in found:
        prices = wirelessfl.price(Config.from_flags("hist", **SMALL, **option.settings), 2)
        for name in ("seconds", "joules", "uplink_mib", "downlink_mib", "backhaul_mib"):
            np.testing.assert_allclose(
                getattr(option, name), getattr(prices, name).mean(), rtol=1e-12
            )
    by_title = {option.title: option for option in found if "uniform" in option.flags}
    equal = Config.from_flags("hist", **SMALL, uplink="ofdma")
    deadline = by_title["least energy in the time of equal bands"]
    longest = wirelessfl.price(equal, 2).seconds.max()
    assert longest <= deadline.settings["round_deadline"] <= longest * (1 + 1e-5)
    assert deadline.joules < by_title["equal bands"].joules
    assert found.fastest.seconds == min(option.seconds for option in found)


def test_the_configured_uplink_comes_first_and_reasons_are_given():
    config = Config.from_flags(
        "hist", **(SMALL | {"edge_rounds": 30}), mask_overlap=0.5, uplink="ofdma", energy_weight=0.2
    )
    found = wirelessfl.plan(config, rounds=1)
    first, second = found.options[:2]
    assert first.title == "as configured"
    assert "--energy-weight 0.2" in first.flags
    assert second.reason.startswith("mask_overlap=0.5 conflicts with mask_sizes='optimized'")
    text = found.table()
    assert "as configured: mask_overlap=0.5 conflicts" in text
    assert "not computed" in text  # 4 clients in 30 blocks
    named = Config.from_flags("fedavg", clients=3, uplink="tdma", order="ready")
    assert next(option.title for option in wirelessfl.plan(named, 1)) == "time slots"
    reasons = [option.reason for option in wirelessfl.plan(Config.from_flags("ram-fed"), 1)]
    assert [reason is None for reason in reasons] == [True] * 5 + [False] * 2


@pytest.mark.parametrize(
    ("flags", "arguments", "message"),
    [
        ({"schedule": "buffered", "buffer": 2}, {}, "schedule 'buffered' has no common rounds"),
        ({}, {"rounds": 0}, "rounds is 0: give an integer >= 1"),
        ({}, {"rounds": None}, "rounds is None"),
        ({}, {"air_joules": "no"}, "air_joules is 'no'"),
    ],
)
def test_wrong_arguments_are_named(flags, arguments, message):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.plan(Config.from_flags("hist", **SMALL, **flags), **arguments)


def test_the_command(capsys):
    words = "plan hist --clients 6 --cells 2 --hidden 8 --edge-rounds 9".split()
    assert main([*words, "--rounds", "2"]) == 0
    shown = capsys.readouterr().out
    assert "mean of 2 rounds; nothing is trained" in shown
    assert shown.count("optimized") >= 7
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rounds"] == 5
    assert told["options"][0]["flags"] == "--mask-sizes uniform --uplink tdma"
    assert main([*words, "--out", "here"]) == 2
    assert "omit --out" in capsys.readouterr().err
