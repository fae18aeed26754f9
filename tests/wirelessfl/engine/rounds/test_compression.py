"""Compression: top-k against sorting, mean and variance of rounding, bits by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.air.compression import Quantisation, TopK, Uncompressed, relative_error
from wirelessfl.config import Config
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build

STREAM = Stream(5, ("round", 3, "compression"))
ULP = 2.0**-24
"""Relative rounding error of one float32 operation."""

shares = st.floats(0.0, 1.0, exclude_min=True)
widths = st.integers(2, 16)


def spec_of(*shapes):
    return ParamSpec({f"p{i}": shape for i, shape in enumerate(shapes)})


def tensors(flat, spec):
    """The tensors [nodes, elements] of models [nodes, P], in float64."""
    flat = flat.double().numpy()
    ends = np.cumsum([math.prod(shape) for shape in spec.shapes.values()])
    return np.split(flat, ends[:-1], axis=1)


@st.composite
def models(draw):
    """Models [nodes, P] and their spec, with ties, zeros, empty tensors and many magnitudes."""
    shapes = draw(st.lists(st.sampled_from([(), (1,), (3,), (2, 4), (0, 3)]), max_size=4))
    spec = spec_of(*shapes, (2,))
    nodes = draw(st.integers(1, 3))
    dice = Stream(draw(st.integers(0, 99))).generator()
    values = dice.standard_normal((nodes, spec.size))
    if draw(st.booleans()):
        values = np.round(values)
    scale = draw(st.sampled_from([1.0, 1e-44, 1e-30, 1e37]))
    return torch.from_numpy(scale * values).float(), spec


# Top-k


@given(models(), shares)
def test_top_k_equals_a_stable_sort(model, keep):
    """Top-k keeps the first k elements of Python's stable sort by magnitude."""
    flat, spec = model
    after = TopK(keep).compress(flat, spec, STREAM)
    count = max(1, round(keep * spec.size))
    for x, y in zip(flat.tolist(), after.tolist(), strict=True):
        largest = sorted(range(len(x)), key=lambda i, x=x: -abs(x[i]))[:count]
        assert y == [x[i] if i in largest else 0.0 for i in range(len(x))]


@given(models(), shares)
def test_top_k_error_bound(model, keep):
    """||C(x) - x||^2 <= (1 - k/P) ||x||^2, in exact arithmetic."""
    flat, spec = model
    after = TopK(keep).compress(flat, spec, STREAM)
    count = max(1, round(keep * spec.size))
    for x, y in zip(flat.tolist(), after.tolist(), strict=True):
        lost = sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(x, y, strict=True))
        whole = sum(Fraction(a) ** 2 for a in x)
        assert lost <= (1 - Fraction(count, spec.size)) * whole


def test_top_k_by_hand():
    """Top-k ranks all tensors together; of three equal magnitudes it keeps the first two."""
    flat = torch.tensor([[1.0, -2.0, 2.0, 0.5, -3.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    after = TopK(0.5).compress(flat, spec_of((2,), (4,)), STREAM)
    assert after.tolist() == [[0, -2, 2, 0, -3, 0], [0] * 6]


@given(models(), shares, st.data())
def test_top_k_of_submodels_ignores_their_padding(model, keep, data):
    """Each row equals the compression of its node's elements alone."""
    flat, spec = model
    lengths = [data.draw(st.integers(1, spec.size)) for _ in flat]
    for row, length in zip(flat, lengths, strict=True):
        row[length:] = 0
    after = TopK(keep).compress_padded(flat, np.array(lengths), spec, STREAM)
    for row, found, length in zip(flat, after, lengths, strict=True):
        alone = TopK(keep).compress(row[None, :length], spec_of((length,)), STREAM)
        assert torch.equal(found[:length], alone[0])
        assert not found[length:].any()


def test_every_cell_sends_the_fraction_that_is_charged(config, toy, monkeypatch):
    """With unequal submodels, a cell's clients receive a fraction of its own elements."""
    flags = {"cells": 3, "mask_sizes": "optimized", "slowdown": 20.0, "size_cap": 2.0}
    top = {"compression": "top-k", "compression_keep": 0.2}
    setup = build(config("hist", **flags, **top), data=toy, model=FCNN((12,), 4, hidden=(30,)))
    plan, kept = setup.planner.plan(0), []
    train = LocalTraining.train

    def watched(self, rule, work, servers, *others):
        kept.append((servers["params"] != 0).sum(1).tolist())
        return train(self, rule, work, servers, *others)

    monkeypatch.setattr(LocalTraining, "train", watched)
    setup.learner.learn(plan, setup.learner.server.cloud)
    lengths = plan.submodels.lengths.tolist()
    assert len(set(lengths)) > 1
    assert kept[0] == [round(0.2 * length) for length in lengths]


def test_parameters_that_are_not_sent_are_not_compressed(config, toy, monkeypatch):
    """Local hidden biases keep their values and take no places of the elements that are sent."""
    flags = {"hidden_biases": "local", "compression": "top-k", "compression_keep": 0.1}
    model = FCNN((12,), 4, hidden=(30,))
    setup = build(config("hist", cells=3, **flags), data=toy, model=model)
    plan, seen = setup.planner.plan(0), []

    def watched(self, rule, work, servers, *others):
        seen.append(servers["params"].clone())
        return train(self, rule, work, servers, *others)

    train = LocalTraining.train
    monkeypatch.setattr(LocalTraining, "train", watched)
    setup.learner.learn(plan, setup.learner.server.cloud)
    own = plan.submodels.restore(torch.zeros_like(seen[0]), torch.ones_like(seen[0])).bool()
    before = plan.submodels.gather(torch.nn.utils.parameters_to_vector(model.parameters()).detach())
    assert torch.equal(seen[0][own], before[own])
    assert seen[0][own].all()
    counts = (seen[0].masked_fill(own, 0.0) != 0).sum(1).tolist()
    assert counts == [round(0.1 * length) for length in plan.submodels.lengths.tolist()]


@given(models())
def test_keeping_all_is_the_identity(model):
    flat, spec = model
    assert torch.equal(TopK(1.0).compress(flat, spec, STREAM), flat)


# Quantisation


@given(models(), widths)
def test_rounded_values_are_neighbouring_grid_points(model, bits):
    """C(x)_i = l scale / levels with an integer |l| <= levels, at most one step from x_i."""
    flat, spec = model
    after = Quantisation(bits).compress(flat, spec, STREAM)
    levels = 2 ** (bits - 1) - 1
    for x, y in zip(tensors(flat, spec), tensors(after, spec), strict=True):
        if not x.size:
            continue
        scale = np.abs(x).max(1, keepdims=True)
        # Two float32 operations, plus the smallest float32 for tiny numbers.
        slack = 4 * ULP * scale + 2.0**-149
        assert (np.abs(y - x) <= scale / levels + slack).all()
        level = np.rint(y * levels / np.where(scale > 0, scale, 1.0))
        assert (np.abs(level) <= levels).all()
        assert (np.abs(y - level * scale / levels) <= slack).all()
        assert (x * y >= 0).all()  # no sign changes
        assert (y[np.abs(x) == scale] == x[np.abs(x) == scale]).all()
        assert (y[x == 0] == 0).all()


VALUES = [[0.7, -1.0, 0.1, 0.0, -0.35, 0.52], [-20.0, 3.0, 8.0, 14.5], [0.0, 0.0], [0.25]]
SPEC = spec_of((2, 3), (4,), (2,), ())
DRAWS = 20_000


def rounded(bits):
    """A vector x [P], the step of each element [P], and independent roundings C(x) [draws, P]."""
    x = torch.tensor([value for own in VALUES for value in own])
    step = [max(map(abs, own)) / (2 ** (bits - 1) - 1) for own in VALUES for _ in own]
    after = Quantisation(bits).compress(x.repeat(DRAWS, 1), SPEC, STREAM)
    return x.double().numpy(), np.array(step), after.double().numpy()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("bits", [2, 3, 5, 16])
def test_rounding_is_unbiased(bits):
    """The mean is x within four standard errors, each at most step / (2 sqrt(draws))."""
    x, step, after = rounded(bits)
    error = step / (2 * math.sqrt(DRAWS))
    assert (np.abs(after.mean(0) - x) <= 4 * error + 4 * ULP * np.abs(x)).all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("bits", [2, 3, 5])
def test_variance_by_formula(bits):
    """E||C(x) - x||^2 = sum of step^2 frac (1 - frac), where |x| = (whole + frac) step.

    The tolerance is four standard errors, estimated from the draws, and less than 5 % of the value.
    """
    x, step, after = rounded(bits)
    frac = np.divide(np.abs(x), step, out=np.zeros_like(x), where=step > 0) % 1.0
    # A tensor's largest magnitude is on the grid, even if the division was rounded.
    frac[np.isclose(frac, 1.0, atol=1e-6)] = 0.0
    by_hand = float((step**2 * frac * (1 - frac)).sum())
    squares = ((after - x) ** 2).sum(1)
    error = squares.std() / math.sqrt(DRAWS)
    assert 4 * error < 0.05 * by_hand
    assert abs(squares.mean() - by_hand) <= 4 * error


def test_variance_with_two_bits_by_hand():
    """Elements at 0.1, 0.4 and 0.25 of the scale have variance frac (1 - frac) scale^2."""
    flat = torch.tensor([[10.0, 1.0, -4.0, 2.5]]).repeat(DRAWS, 1)
    after = Quantisation(2).compress(flat, spec_of((4,)), STREAM)
    assert set(after[:, 1].tolist()) == {0.0, 10.0}
    assert set(after[:, 2].tolist()) == {0.0, -10.0}
    squares = (after - flat).double().square().sum(1)
    error = float(squares.std()) / math.sqrt(DRAWS)
    assert 4 * error < 2
    assert float(squares.mean()) == pytest.approx(9.0 + 24.0 + 18.75, abs=4 * error)


def test_elements_round_independently():
    """The fraction of 10^4 elements rounded up is 0.3 +- 4 standard errors of 0.0046."""
    flat = torch.full((1, 10_001), 0.3)
    flat[0, 0] = 1.0
    after = Quantisation(2).compress(flat, spec_of((10_001,)), STREAM)[0, 1:]
    assert abs(float(after.mean()) - 0.3) <= 0.0184


@given(models(), widths, st.integers(0, 99))
def test_equal_streams_give_bit_identical_results(model, bits, seed):
    flat, spec = model
    first, second = (Quantisation(bits).compress(flat, spec, Stream(seed)) for _ in range(2))
    assert torch.equal(first, second)


def test_rounds_and_nodes_draw_independently():
    flat = torch.linspace(-1, 1, 200).repeat(2, 1)
    first, second = (
        Quantisation(4).compress(flat, spec_of((200,)), Stream(5, ("round", number)))
        for number in (3, 4)
    )
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


@given(models(), widths, shares)
def test_results_do_not_depend_on_later_nodes(model, bits, keep):
    flat, spec = model
    for compression in (Quantisation(bits), TopK(keep)):
        together = compression.compress(flat, spec, STREAM)
        assert torch.equal(together[:1], compression.compress(flat[:1], spec, STREAM))
        others = torch.cat([flat[:1], torch.ones_like(flat)])
        assert torch.equal(together[:1], compression.compress(others, spec, STREAM)[:1])


# Both


@given(models(), widths, shares)
def test_results_use_new_memory_and_inputs_do_not_change(model, bits, keep):
    flat, spec = model
    for compression in (Quantisation(bits), TopK(keep), TopK(1.0)):
        before = flat.clone()
        after = compression.compress(flat, spec, STREAM)
        assert after.dtype == torch.float32
        assert after.shape == flat.shape
        after.fill_(7.0)
        assert torch.equal(flat, before)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_values_are_kept(bad):
    """Non-finite values are kept and do not affect other tensors or nodes."""
    flat = torch.tensor([[0.3, 1.0, 2.0, 0.5], [0.3, 1.0, 2.0, 0.5]])
    spec = spec_of((2,), (2,))
    hurt = flat.clone()
    hurt[0, 0] = bad
    quantised = Quantisation(3).compress(hurt, spec, STREAM)
    assert torch.equal(quantised[0, :2].nan_to_num(99), hurt[0, :2].nan_to_num(99))
    whole = Quantisation(3).compress(flat, spec, STREAM)
    assert torch.equal(quantised[0, 2:], whole[0, 2:])
    assert torch.equal(quantised[1], whole[1])
    top = TopK(0.5).compress(hurt, spec, STREAM)
    assert torch.equal(top[0].nan_to_num(99), torch.tensor([bad, 0, 2, 0]).nan_to_num(99))
    assert top[1].tolist() == [0, 1, 2, 0]
    assert math.isnan(relative_error(hurt, quantised))
    assert TopK(0.25).compress(torch.full((1, 4), math.nan), spec, STREAM).isnan().sum() == 1
    # Non-finite values rank before the largest finite number.
    ranked = torch.tensor([[torch.finfo(torch.float32).max, bad, 1.0, 0.0]])
    assert not TopK(0.25).compress(ranked, spec, STREAM)[0, 1].isfinite()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_devices_give_bit_identical_results(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    spec = spec_of((300, 40), (300,), (7,))
    flat = torch.from_numpy(Stream(1).generator().standard_normal((3, spec.size))).float()
    for compression in (TopK(0.1), *(Quantisation(bits) for bits in (2, 7, 16))):
        present = compression.compress(flat.to(device), spec, STREAM)
        assert present.device.type == device
        assert torch.equal(present.cpu(), compression.compress(flat, spec, STREAM))


def test_relative_error_by_hand():
    """The reported error is the maximum over nodes (0, 3/5 and 1); a zero model has error 0."""
    before = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 2.0]])
    after = torch.tensor([[0.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    assert relative_error(before[:1], after[:1]) == 0.0
    assert relative_error(before[:2], after[:2]) == pytest.approx(0.6)
    assert relative_error(before, after) == pytest.approx(1.0)
    assert relative_error(before, before) == 0.0
    # The squares of these values overflow float32.
    assert relative_error(1e30 * before, 1e30 * after) == pytest.approx(1.0)


def test_bits_by_hand():
    """Bits are 32 per value and per scale, and per index 10 (1000 elements) or a bitmap's 1."""
    spec = spec_of((900,), (50, 2))
    assert TopK(0.05).bits_per_element(spec) == pytest.approx(0.05 * 42)
    assert TopK(0.5).bits_per_element(spec) == pytest.approx(17)
    assert TopK(0.1).bits_per_element(spec) == pytest.approx(4.2)  # equal in both formats
    assert TopK(0.2).bits_per_element(spec) == pytest.approx(7.4)
    assert TopK(0.99).bits_per_element(spec) == 32  # all elements are sent
    assert TopK(1.0).bits_per_element(spec) == 32
    assert TopK(0.01).bits_per_element(spec_of((1024,))) == pytest.approx(0.42)
    assert TopK(0.01).bits_per_element(spec_of((1025,))) == pytest.approx(0.43)
    assert Quantisation(4).bits_per_element(spec) == pytest.approx(4.064)
    assert Quantisation(16).bits_per_element(spec_of((64,))) == pytest.approx(16.5)


@given(shares, st.integers(1, 10**8))
def test_top_k_never_costs_more_than_the_model(keep, size):
    assert 0 < TopK(keep).bits_per_element(spec_of((size,))) <= 32


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.01, math.nan, math.inf])
def test_compression_keep_out_of_range(keep):
    with pytest.raises(
        ValueError, match=rf"^compression_keep is {keep}: give a fraction in \(0, 1\]\.$"
    ):
        TopK(keep)


@pytest.mark.parametrize("bits", [-4, 0, 1, 17])
def test_compression_bits_out_of_range(bits):
    with pytest.raises(ValueError, match=rf"^compression_bits is {bits}: give 2 to 16 bits"):
        Quantisation(bits)


def test_compression_bits_must_be_an_integer():
    with pytest.raises(TypeError, match=r"^compression_bits is 4\.5: give an integer\.$"):
        Quantisation(4.5)


def test_settings_select_the_compression():
    """Each method is selected by name, with its own settings."""

    def made(**flags):
        return Config.from_flags("fedavg", **flags).compression

    assert made() == made(compression="none") == Uncompressed()
    assert made(compression="top-k", compression_keep=0.3) == TopK(0.3)
    assert made(compression="quantisation", compression_bits=5) == Quantisation(5)
    assert Uncompressed().identity
    assert not TopK(1.0).identity


@given(models())
def test_no_compression_copies_the_model(model):
    flat, spec = model
    after = Uncompressed().compress(flat, spec, STREAM)
    assert torch.equal(after, flat)
    assert after.data_ptr() != flat.data_ptr()
    assert Uncompressed().bits_per_element(spec) == 32
