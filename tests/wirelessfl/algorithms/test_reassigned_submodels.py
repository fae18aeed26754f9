"""Reassignment of submodels among merged cells, and the buffer sizes that allow it."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels import Network
from channels.streams import Stream
from wirelessfl.air.plan import WholeModel
from wirelessfl.algorithms import assigner_of, find_algorithm
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec, make_partition


@st.composite
def merges_of_cells(draw):
    cells = draw(st.integers(2, 7))
    buffer = draw(st.integers(2, cells))
    hidden = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    scheme = draw(st.sampled_from(["alternate", "all"]))
    weights = draw(st.none() | st.lists(st.integers(1, 9), min_size=cells, max_size=cells))
    return cells, buffer, hidden, scheme, weights, draw(st.integers(0, 99))


@pytest.mark.thorough
@given(merges_of_cells())
def test_reassigned_submodels_stay_disjoint_and_complete(case):
    """In 20 merges with random durations, sizes stay constant and busy cells keep their neurons."""
    cells, buffer, hidden, scheme, weights, seed = case
    module = FCNN((5,), 3, hidden=(max(hidden[0], cells), *hidden[1:]))
    spec = ParamSpec.of(module)
    whole = WholeModel(spec, lambda wanted: make_partition(module, spec, wanted), neurons=None)
    network = Network.from_snr(range(cells), cpu_hz=1e9, snr_db=20)
    links = SimpleNamespace(network=network)
    fixed = {}
    if weights is not None:
        shares = tuple(weight / sum(weights) for weight in weights)
        fixed = {"mask_sizes": "fixed", "mask_shares": shares}
    rule = find_algorithm("hist")(partition=scheme, **fixed)
    planner = Planner(rule, links, whole, settings=None, stream=Stream(seed))
    context = SimpleNamespace(
        nodes=cells,
        number=0,
        stream=Stream(seed).child("round", 0),
        run_stream=Stream(seed),
        partition=whole.partition,
    )
    parts = first = rule.submodels(context)
    layers = make_partition(module, spec, scheme).layers
    dice, ends = np.random.default_rng(seed), []
    for cell in range(cells):
        heapq.heappush(ends, (dice.exponential(), cell))
    moved = False
    for merge in range(1, 21):
        merged = [heapq.heappop(ends) for _ in range(buffer)]
        numbers = sorted(cell for _, cell in merged)
        before, parts = parts, planner.redealt(merge, parts, numbers)
        for index, layer in enumerate(layers):
            held = [part[index] for part in parts.neurons]
            assert sorted(np.concatenate(held).tolist()) == list(range(layer.width))
            assert [len(h) for h in held] == [len(part[index]) for part in first.neurons]
            assert all((np.diff(h) > 0).all() for h in held)
        assert (parts.lengths == first.lengths).all()
        still = np.setdiff1d(np.arange(cells), numbers)
        assert torch.equal(parts.index[still], before.index[still])
        moved |= not torch.equal(parts.index, before.index)
        if buffer == cells:
            synchronous = rule.submodels(
                SimpleNamespace(
                    **vars(context)
                    | {"number": merge, "stream": Stream(seed).child("round", merge)}
                )
            )
            assert torch.equal(parts.index, synchronous.index)
        for end, cell in merged:
            heapq.heappush(ends, (end + dice.exponential(), cell))
    assert moved


@pytest.mark.parametrize(
    ("name", "settings", "buffer", "message"),
    [
        ("hfedavg", {}, 4, r"buffer=4 conflicts with cells=3: .* Choose buffer 1 to 3"),
        ("hfedavg", {}, 0, r"buffer=0 conflicts with cells=3"),
        ("hist", {}, 1, r'buffer=1 conflicts with "hist".*Choose a buffer of 2 or more'),
        ("hist", {"mask_sizes": "optimized"}, 2, r'mask_sizes="optimized" conflicts with schedule'),
        ("hist", {"mask_overlap": 0.5}, 2, r'mask_overlap=0\.5 conflicts with schedule="buffered"'),
    ],
)
def test_unsuitable_buffers_are_refused(name, settings, buffer, message):
    with pytest.raises(ConfigError, match=message) as caught:
        assigner_of(find_algorithm(name)(**settings)).check_merged_cells(buffer, 3)
    assert "\n" not in str(caught.value)


def test_suitable_buffers_are_accepted():
    """With full models, 1 to all cells may be merged; with submodels, 2 to all cells."""
    for name, buffers in (("hfedavg", (1, 2, 3)), ("hist", (2, 3))):
        for buffer in buffers:
            assigner_of(find_algorithm(name)()).check_merged_cells(buffer, 3)
