"""Settings that earlier versions had in another table are read from it."""

import pytest

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError

FEDAVG = {"algorithm": {"name": "fedavg"}, "network": {"clients": 4}}


@pytest.mark.parametrize(
    ("earlier", "today"),
    [
        ({"dataset": "mnist", "pixels": "unit"}, {"name": "mnist", "pixels": "unit"}),
        ({"pixels": "standard"}, {"pixels": "standard"}),
        ({"dataset": "sst2", "max_length": 9}, {"name": "sst2", "max_length": 9}),
    ],
)
def test_settings_of_the_data_set_are_moved(earlier, today):
    moved = Config.of(FEDAVG | {"data": {**earlier, "validation_fraction": 0.1}})
    assert moved == Config.of(FEDAVG | {"data": {"validation_fraction": 0.1}, "dataset": today})
    flags = {"rounds": 3, "dataset": "digits"}
    assert Config.merged(FEDAVG | {"data": earlier}, flags) == Config.merged(
        FEDAVG | {"dataset": today}, flags
    )


def test_settings_in_both_places_are_refused():
    with pytest.raises(ConfigError, match=r"unknown setting 'dataset' in \[data\]. It is a table"):
        Config.of(FEDAVG | {"data": {"dataset": "mnist"}, "dataset": {"pixels": "unit"}})


def test_pixels_of_given_data_have_no_effect():
    """Earlier versions stored them."""
    given = {"data": "toy", "network": {"cells": 1, "clients": 4}}
    tables = {"algorithm": {"name": "fedavg"}, "given": given}
    assert Config.of(tables | {"data": {"pixels": "signed"}}) == Config.of(tables)
