"""Designs with a chosen assigner equal those of the algorithms that bring the same one."""

import pytest

import wirelessfl
from tests.wirelessfl.designs import known, test_widths
from tests.wirelessfl.designs.known import Known
from wirelessfl.base.errors import ConfigError
from wirelessfl.designs.pilot_plan import PilotRequest, planned

SIZES = ("mask_sizes", "mask_shares", "capacities", "widths")
CELLS = {"cycles_per_step": 1e8, "backhaul_mbps": 5.0}


def both(make, own, other, few, **curve):
    """The designs of an algorithm with its own assigner, and of one with a chosen assigner."""
    given = {"target": 0.5, "curve": Known(**curve), **few}
    first = wirelessfl.design(make(own[0], **own[1]), **given)
    second = wirelessfl.design(make(other[0], **other[1]), **given)
    assert second.objective == first.objective
    assert second.bound == pytest.approx(first.bound, rel=1e-12, nan_ok=True)
    assert second.status is first.status
    mine, theirs = (each.value.config.tables for each in (first, second))
    for key in SIZES:
        assert theirs["assigner"].get(key) == mine["algorithm"].get(key)
        assert key not in theirs["algorithm"]
    assert wirelessfl.price(second.value.config, rounds=2).seconds == pytest.approx(
        wirelessfl.price(first.value.config, rounds=2).seconds
    )
    return first, second


@pytest.mark.thorough
def test_sizes_of_cells_are_those_of_hist():
    """Sizes that the settings state are chosen anew."""
    own, other = ("hist", CELLS), ("hfedavg", CELLS | {"assigner": "partition"})
    first, _ = both(known.config, own, other, known.FEW, mask=0.5)
    assert first.value.choice.shares is not None, "sizes differ"
    stated = {"mask_sizes": "fixed", "mask_shares": (0.25, 0.75)}
    again, _ = both(known.config, own, (other[0], other[1] | stated), known.FEW, mask=0.5)
    assert again.objective == first.objective


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("own", "other"),
    [
        (("heterofl", {}), ("fedprox", {"assigner": "nested"})),
        (("ra-fed", {"masks": "covered"}), ("fedavg", {"assigner": "covered"})),
    ],
    ids=str,
)
def test_widths_of_clients_are_those_of_the_presets(own, other):
    both(test_widths.config, own, other, test_widths.FEW, mask=4.0)


def test_an_algorithm_with_its_own_assigner_is_compared_without_the_chosen_one():
    settings = known.config("hfedavg", assigner="partition", **CELLS)
    curve, given = Known(mask=0.5), {"target": 0.5, **known.FEW}
    curves = {"hist": curve, "hfedavg": curve}
    found = wirelessfl.design(settings, curve=curves, among=[*curves], **given)
    assert found.objective == wirelessfl.design(settings, curve=curve, **given).objective


def test_pilots_state_sizes_in_the_table_of_the_assigner():
    settings = known.config("hfedavg", assigner="partition")
    plan = planned(settings, PilotRequest(local_steps=[1, 4, 9], edge_rounds=[1], masks=True))
    shares = [each.tables["assigner"].get("mask_shares") for each in plan.configs]
    assert shares[:3] == [None] * 3
    assert all(each == (0.75, 0.25) for each in shares[3:])
    with pytest.raises(ConfigError, match='masks conflict with assigner "nested"'):
        planned(
            known.config("hfedavg", assigner="nested"),
            PilotRequest(local_steps=[1, 4], edge_rounds=[1], masks=True),
        )
