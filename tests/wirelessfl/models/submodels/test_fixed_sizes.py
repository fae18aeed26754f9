"""Submodels of fixed sizes: shares in whole neurons, and runs with them."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.models.submodels.partition import even_sizes, sizes_by_share
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.kept import training_key

SMALL = {"dataset": "digits", "cells": 3, "clients": 6, "rounds": 2, "edge_rounds": 2}
SMALL |= {"local_steps": 2, "hidden": (10,), "threads": 1}


def fixed(*shares, **flags):
    return Config.from_flags(
        "hist", **(SMALL | {"mask_sizes": "fixed", "mask_shares": shares} | flags)
    )


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(0, 9))
def test_sizes_are_the_closest_to_the_shares(weights, more):
    """Largest remainders minimise the squared distance to the quotas among sizes >= 1."""
    total = len(weights) + more
    shares = [weight / sum(weights) for weight in weights]
    sizes = sizes_by_share(total, shares)
    quotas = np.array(weights) * (total / sum(weights))

    def distance(split):
        return ((np.array(split) - quotas) ** 2).sum()

    splits = itertools.product(range(1, total + 1), repeat=len(weights))
    best = min(distance(split) for split in splits if sum(split) == total)
    assert sum(sizes) == total
    assert min(sizes) >= 1
    assert distance(sizes) == pytest.approx(best, abs=1e-9)


@given(st.integers(1, 40), st.integers(0, 200))
def test_shares_in_whole_neurons_are_exact_and_equal_ones_are_even(cells, more):
    """A design in neurons survives its division by the width."""
    total = cells + more
    assert sizes_by_share(total, (1 / cells,) * cells) == even_sizes(total, cells)
    sizes = [1 + (7 * cell) % 11 for cell in range(cells)]
    assert sizes_by_share(sum(sizes), [size / sum(sizes) for size in sizes]) == sizes


def test_equal_shares_are_uniform_sizes(tmp_path):
    """Rows, bytes, seconds and parameters are equal to the bit."""
    same = wirelessfl.run(fixed(1 / 3, 1 / 3, 1 / 3, out=tmp_path / "fixed"))
    even = wirelessfl.run(Config.from_flags("hist", **SMALL, out=tmp_path / "even"))
    other = wirelessfl.run(fixed(0.6, 0.2, 0.2, out=tmp_path / "other"))
    for row, expected in zip(same.rows, even.rows, strict=True):
        assert row | {"wall_seconds": 0} == expected | {"wall_seconds": 0}
    assert all(torch.equal(same.params[name], even.params[name]) for name in even.params)
    assert other.rows[-1]["loss"] != even.rows[-1]["loss"]


def test_training_does_not_depend_on_the_radio_but_on_the_shares(tmp_path):
    """A sweep trains once for two radios, and the shares change names and trainings."""
    configs = [fixed(0.5, 0.3, 0.2), fixed(0.5, 0.3, 0.2, uplink="ofdma", snr_db=3.0)]
    keys = [training_key(config) for config in configs]
    assert keys[0] == keys[1] is not None
    one, other = wirelessfl.sweep(configs, tmp_path)
    assert [row["loss"] for row in one.rows] == [row["loss"] for row in other.rows]
    assert one.rows[-1]["sim_seconds"] != other.rows[-1]["sim_seconds"]
    assert training_key(fixed(0.5, 0.2, 0.3)) != keys[0]
    assert settings_hash(fixed(0.5, 0.2, 0.3)) != settings_hash(configs[0])
    trained = wirelessfl.run(configs[1].with_run({"out": tmp_path / "alone"}))
    assert trained.rows[-1] | {"wall_seconds": 0} == other.rows[-1] | {"wall_seconds": 0}


def test_cells_without_common_rounds_keep_their_sizes(tmp_path):
    """Fixed sizes are allowed under schedule buffered, and equal shares are uniform there too."""
    flags = {"schedule": "buffered", "buffer": 2, "rounds": 4}
    same = wirelessfl.run(fixed(1 / 3, 1 / 3, 1 / 3, out=tmp_path / "fixed", **flags))
    even = wirelessfl.run(Config.from_flags("hist", **(SMALL | flags), out=tmp_path / "even"))
    assert [row["loss"] for row in same.rows] == [row["loss"] for row in even.rows]
    wirelessfl.run(fixed(0.6, 0.2, 0.2, out=tmp_path / "other", **flags))


def test_layers_narrower_than_the_cells_are_refused(tmp_path):
    """The message is that of uniform sizes, before anything is written."""
    with pytest.raises(ConfigError, match=r"cells=3 conflicts with the model's 2 neurons"):
        wirelessfl.run(fixed(0.5, 0.3, 0.2, hidden=(2,), out=tmp_path / "run"))
    assert not (tmp_path / "run").exists()
