"""Sizes of submodels relative to equal ones: what a design tells the curve."""

import pytest

from wirelessfl.config import Config
from wirelessfl.models.submodels import largest_part, sizes_of
from wirelessfl.runs.build.planners import plan_without_data


@pytest.mark.parametrize(
    ("algorithm", "flags", "sizes", "largest"),
    [
        ("hist", {}, [4, 4], 1.0),
        ("hist", {"hidden": (9,)}, [5, 4], 1.0),
        ("hist", {"mask_overlap": 0.5}, [6, 6], 1.0),
        ("hist", {"mask_sizes": "fixed", "mask_shares": (0.75, 0.25)}, [6, 2], 1.5),
        ("hfedavg", {}, [], 1.0),
    ],
)
def test_equal_sizes_count_as_one(algorithm, flags, sizes, largest):
    given = {"cells": 2, "clients": 4, "hidden": (8,)} | flags
    submodels = plan_without_data(Config.from_flags(algorithm, **given)).planner.plan(0).submodels
    assert sizes_of(submodels) == sizes
    assert largest_part(submodels) == largest
