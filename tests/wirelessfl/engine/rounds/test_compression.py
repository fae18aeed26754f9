"""Compression: top-k against sorting, mean and variance of rounding, bits by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wirelessfl
from channels import Note
from channels.streams import Stream
from wirelessfl.air.compression import (
    Quantisation,
    Sign,
    TopK,
    Uncompressed,
    relative_errors,
)
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build import build
from wirelessfl.runs.folder.run_folder import RunFolder

STREAM = Stream(5, ("round", 3, "compression"))
ULP = 2.0**-24
"""Relative rounding error of one float32 operation."""

shares = st.floats(0.0, 1.0, exclude_min=True)
widths = st.integers(2, 16)


def spec_of(*shapes):
    return ParamSpec({f"p{i}": shape for i, shape in enumerate(shapes)})


def compress(compression, flat, spec, stream=STREAM, lengths=None):
    """C(x) of the rows, each with a stream of its own."""
    lengths = np.full(len(flat), spec.size) if lengths is None else np.array(lengths)
    streams = [stream.child(row) for row in range(len(flat))]
    return compression.compress(flat, lengths, spec, streams)


def bits(compression, length, tensors=1):
    """Bits of a vector of this length, of a model with this number of tensors."""
    return int(compression.bits(np.array(length), spec_of(*[(1,)] * tensors)))


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
    after = compress(TopK(keep), flat, spec, STREAM)
    count = max(1, round(keep * spec.size))
    for x, y in zip(flat.tolist(), after.tolist(), strict=True):
        largest = sorted(range(len(x)), key=lambda i, x=x: -abs(x[i]))[:count]
        assert y == [x[i] if i in largest else 0.0 for i in range(len(x))]


@given(models(), shares)
def test_top_k_error_bound(model, keep):
    """||C(x) - x||^2 <= (1 - k/P) ||x||^2, in exact arithmetic."""
    flat, spec = model
    after = compress(TopK(keep), flat, spec, STREAM)
    count = max(1, round(keep * spec.size))
    for x, y in zip(flat.tolist(), after.tolist(), strict=True):
        lost = sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(x, y, strict=True))
        whole = sum(Fraction(a) ** 2 for a in x)
        assert lost <= (1 - Fraction(count, spec.size)) * whole


def test_top_k_by_hand():
    """Top-k ranks all tensors together; of three equal magnitudes it keeps the first two."""
    flat = torch.tensor([[1.0, -2.0, 2.0, 0.5, -3.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    after = compress(TopK(0.5), flat, spec_of((2,), (4,)), STREAM)
    assert after.tolist() == [[0, -2, 2, 0, -3, 0], [0] * 6]


@given(models(), shares, st.data())
def test_top_k_of_submodels_ignores_their_padding(model, keep, data):
    """Each row equals the compression of its node's elements alone."""
    flat, spec = model
    lengths = [data.draw(st.integers(1, spec.size)) for _ in flat]
    for row, length in zip(flat, lengths, strict=True):
        row[length:] = 0
    after = compress(TopK(keep), flat, spec, STREAM, lengths)
    for row, found, length in zip(flat, after, lengths, strict=True):
        alone = compress(TopK(keep), row[None, :length], spec_of((length,)), STREAM)
        assert torch.equal(found[:length], alone[0])
        assert not found[length:].any()


def test_every_cell_sends_the_fraction_that_is_charged(config, toy, monkeypatch):
    """With unequal submodels, a cell's clients receive a fraction of its own elements."""
    flags = {"cells": 3, "mask_sizes": "optimized", "slowdown": 20.0, "size_cap": 2.0}
    top = {"downlink_compression": "top-k", "downlink_compression_keep": 0.2}
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
    flags = {
        "hidden_biases": "local",
        "downlink_compression": "top-k",
        "downlink_compression_keep": 0.1,
    }
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
    assert torch.equal(compress(TopK(1.0), flat, spec, STREAM), flat)


# Quantisation


@given(models(), widths)
def test_rounded_values_are_neighbouring_grid_points(model, bits):
    """C(x)_i = l scale / levels with an integer |l| <= levels, at most one step from x_i."""
    flat, spec = model
    after = compress(Quantisation(bits), flat, spec, STREAM)
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
    after = compress(Quantisation(bits), x.repeat(DRAWS, 1), SPEC, STREAM)
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
    after = compress(Quantisation(2), flat, spec_of((4,)), STREAM)
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
    after = compress(Quantisation(2), flat, spec_of((10_001,)), STREAM)[0, 1:]
    assert abs(float(after.mean()) - 0.3) <= 0.0184


@given(models(), widths, st.integers(0, 99))
def test_equal_streams_give_bit_identical_results(model, bits, seed):
    flat, spec = model
    first, second = (compress(Quantisation(bits), flat, spec, Stream(seed)) for _ in range(2))
    assert torch.equal(first, second)


def test_rounds_and_nodes_draw_independently():
    flat = torch.linspace(-1, 1, 200).repeat(2, 1)
    first, second = (
        compress(Quantisation(4), flat, spec_of((200,)), Stream(5, ("round", number)))
        for number in (3, 4)
    )
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


@given(models(), widths, shares)
def test_results_do_not_depend_on_later_nodes(model, bits, keep):
    flat, spec = model
    for compression in (Quantisation(bits), TopK(keep)):
        together = compress(compression, flat, spec, STREAM)
        assert torch.equal(together[:1], compress(compression, flat[:1], spec, STREAM))
        others = torch.cat([flat[:1], torch.ones_like(flat)])
        assert torch.equal(together[:1], compress(compression, others, spec, STREAM)[:1])


# Both


@given(models(), widths, shares)
def test_results_use_new_memory_and_inputs_do_not_change(model, bits, keep):
    flat, spec = model
    for compression in (Quantisation(bits), TopK(keep), TopK(1.0)):
        before = flat.clone()
        after = compress(compression, flat, spec, STREAM)
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
    quantised = compress(Quantisation(3), hurt, spec, STREAM)
    assert torch.equal(quantised[0, :2].nan_to_num(99), hurt[0, :2].nan_to_num(99))
    whole = compress(Quantisation(3), flat, spec, STREAM)
    assert torch.equal(quantised[0, 2:], whole[0, 2:])
    assert torch.equal(quantised[1], whole[1])
    top = compress(TopK(0.5), hurt, spec, STREAM)
    assert torch.equal(top[0].nan_to_num(99), torch.tensor([bad, 0, 2, 0]).nan_to_num(99))
    assert top[1].tolist() == [0, 1, 2, 0]
    assert relative_errors(hurt, quantised)[0].isnan()
    assert compress(TopK(0.25), torch.full((1, 4), math.nan), spec, STREAM).isnan().sum() == 1
    # Non-finite values rank before the largest finite number.
    ranked = torch.tensor([[torch.finfo(torch.float32).max, bad, 1.0, 0.0]])
    assert not compress(TopK(0.25), ranked, spec, STREAM)[0, 1].isfinite()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_devices_give_bit_identical_results(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    spec = spec_of((300, 40), (300,), (7,))
    flat = torch.from_numpy(Stream(1).generator().standard_normal((3, spec.size))).float()
    for compression in (TopK(0.1), *(Quantisation(bits) for bits in (2, 7, 16))):
        present = compress(compression, flat.to(device), spec, STREAM)
        assert present.device.type == device
        assert torch.equal(present.cpu(), compress(compression, flat, spec, STREAM))


def test_relative_errors_by_hand():
    """0 for a zero vector, 3/5 and 1; squares of large values do not overflow."""
    before = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 2.0]])
    after = torch.tensor([[0.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    assert relative_errors(before, after).tolist() == pytest.approx([0.0, 0.6, 1.0])
    assert relative_errors(before, before).tolist() == [0.0] * 3
    assert relative_errors(1e30 * before, 1e30 * after).tolist() == pytest.approx([0.0, 0.6, 1.0])


def test_bits_by_hand():
    """Bits are 32 per value and scale, and per index 10 (1000 elements) or 1 of a bitmap."""
    assert bits(TopK(0.01), 650) == 6 * (32 + 10) == 252
    assert bits(TopK(0.05), 1000) == 50 * 42
    assert bits(TopK(0.5), 1000) == 500 * 32 + 1000
    assert bits(TopK(0.2), 1000) == 200 * 32 + 1000
    assert bits(TopK(0.99), 1000) == bits(TopK(1.0), 1000) == 32_000  # all elements are sent
    assert bits(TopK(0.01), 1024) == 10 * 42
    assert bits(TopK(0.01), 1025) == 10 * 43
    assert bits(TopK(0.001), 100) == 32 + 7  # one element at least
    assert bits(Quantisation(4), 1000, tensors=2) == 4064
    assert bits(Quantisation(16), 64) == 16 * 64 + 32
    assert bits(Quantisation(1), 64, tensors=3) == 64 + 96
    assert bits(Quantisation(32), 64, tensors=3) == bits(Uncompressed(), 64) == 2048
    assert bits(Sign(), 1000, tensors=4) == 1032
    for empty in (TopK(0.3), Quantisation(5), Sign(), Uncompressed()):
        assert bits(empty, 0) == 0


@given(shares, st.integers(1, 10**8))
def test_top_k_never_costs_more_than_the_model(keep, size):
    assert 0 < bits(TopK(keep), size) <= 32 * size


@given(models(), shares)
def test_top_k_sends_as_many_values_as_are_counted(model, keep):
    """Indices of the values, and the values, are what the bits count in the first format."""
    flat, spec = model
    flat = torch.where(flat == 0, 1.0, flat)
    sent = (compress(TopK(keep), flat, spec) != 0).sum(1).tolist()
    width = (spec.size - 1).bit_length()
    for count in sent:
        formats = (count * (32 + width), 32 * count + spec.size, 32 * spec.size)
        assert bits(TopK(keep), spec.size) == min(formats)


# One bit


@pytest.mark.thorough(every=4)
def test_one_bit_is_unbiased_by_formula():
    """E C(x) = x and Var C(x)_i = scale^2 - x_i^2, within four standard errors."""
    x = torch.tensor([[0.5, -2.0, 0.0, 1.5]]).repeat(DRAWS, 1)
    after = compress(Quantisation(1), x, spec_of((4,))).double()
    assert set(after.flatten().tolist()) == {-2.0, 2.0}
    variance = 4.0 - x[0].double() ** 2
    error = 4 * (variance / DRAWS).sqrt()
    assert ((after.mean(0) - x[0]).abs() <= error + 1e-9).all()
    assert torch.allclose(after.var(0), variance, rtol=0, atol=0.15)


def test_32_bits_are_the_numbers_themselves():
    flat = torch.linspace(-1, 1, 7)[None]
    assert torch.equal(compress(Quantisation(32), flat, spec_of((7,))), flat)


def test_scaled_signs_by_hand():
    """The scale is the mean magnitude of the elements, without padding; 0 is positive."""
    flat = torch.tensor([[3.0, -1.0, 0.0, 0.0], [-2.0, 4.0, 0.0, 2.0]])
    after = compress(Sign(), flat, spec_of((4,)), lengths=[2, 4])
    assert after[0, :2].tolist() == [2.0, -2.0]
    assert after[1].tolist() == [-2.0, 2.0, 2.0, 2.0]
    hurt = torch.tensor([[1.0, math.inf], [1.0, -3.0]])
    assert compress(Sign(), hurt, spec_of((2,))).tolist() == [[1.0, math.inf], [2.0, -2.0]]


@given(models())
def test_no_other_scale_has_a_smaller_error(model):
    """||x||_1 / P minimises ||s sign(x) - x|| over s."""
    flat, spec = model
    after = compress(Sign(), flat, spec).double()
    for row, sent in zip(flat.double(), after, strict=True):
        signs = torch.where(row < 0, -1.0, 1.0)
        least = (sent - row).square().sum()
        for factor in (0.9, 1.1):
            other = (factor * sent.abs().max() * signs - row).square().sum()
            assert least <= other * (1 + 1e-5) + 1e-300


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.01, math.nan, math.inf])
def test_compression_keep_out_of_range(keep):
    with pytest.raises(
        ValueError, match=rf"^compression_keep is {keep}: give a fraction in \(0, 1\]\.$"
    ):
        TopK(keep)


@pytest.mark.parametrize("bits", [-4, 0, 33])
def test_compression_bits_out_of_range(bits):
    with pytest.raises(ValueError, match=rf"^compression_bits is {bits}: give 1 to 32 bits"):
        Quantisation(bits)


def test_compression_bits_must_be_an_integer():
    with pytest.raises(TypeError, match=r"^compression_bits is 4\.5: give an integer\.$"):
        Quantisation(4.5)


def test_settings_select_the_compression():
    """Each method is selected by name, with its own settings."""

    def made(**flags):
        config = Config.from_flags("fedavg", **flags)
        return config.uplink_compression, config.downlink_compression

    assert made() == made(downlink_compression="none", uplink_compression="none") == (None, None)
    top = {"downlink_compression": "top-k", "downlink_compression_keep": 0.3}
    assert made(**top) == (None, TopK(0.3))
    few = {"uplink_compression": "quantisation", "uplink_compression_bits": 5}
    assert made(**top, **few) == (Quantisation(5), TopK(0.3))


def test_old_flags_and_tables_are_those_of_the_downlink(tmp_path):
    """They are renamed, flags with a note; both names are refused."""
    flags = {"compression": "quantisation", "compression_bits": 5}
    with pytest.warns(Note, match=r"^--compression is now --downlink-compression\.$"):
        old = Config.from_flags("fedavg", **flags)
    assert old.downlink_compression == Quantisation(5)
    table = {"name": "quantisation", "compression_bits": 5}
    assert Config.of({"algorithm": "fedavg", "compression": table}) == old
    stored = tmp_path / "old.toml"
    stored.write_text(old.to_toml().replace("[downlink_compression]", "[compression]"))
    assert Config.from_toml(stored) == old
    stored.write_text('algorithm = "fedavg"\ncompression = "here:Own"')
    with pytest.raises(ConfigError, match="importing it runs code"):
        Config.from_toml(stored)
    both = {"algorithm": "fedavg", "compression": table, "downlink_compression": table}
    with pytest.raises(ConfigError, match=r"^unknown table \[compression\]"):
        Config.of(both)


def test_old_flags_on_the_command_line_and_in_combinations(capsys, tmp_path):
    """They vary as those of today, with one note each."""
    points = {"compression": ["quantisation"], "compression_bits": [1, 4]}
    found = [config.downlink_compression for config in wirelessfl.combinations("fedavg", points)]
    assert found == [Quantisation(1), Quantisation(4)]
    words = "run fedavg --dataset digits --rounds 1 --compression quantisation --quiet".split()
    assert main([*words, "--clients", "3", "--out", str(tmp_path / "run")]) == 0
    note = "--compression is now --downlink-compression."
    assert capsys.readouterr().err.count(note) == 1


@pytest.mark.parametrize("table", ['name = "none"', 'name = "quantisation"\ncompression_bits = 4'])
def test_runs_of_earlier_versions_are_read(table, tmp_path):
    """Their folders have a table [compression], which the hash of their settings contains."""
    settings = Config.from_flags(
        "fedavg", dataset="digits", clients=3, rounds=1, local_steps=1, out=tmp_path / "run",
        **({} if "none" in table else {"downlink_compression": "quantisation"}),
        **({} if "none" in table else {"downlink_compression_bits": 4}),
    )  # fmt: skip
    wirelessfl.run(settings)
    folder = RunFolder(tmp_path / "run")
    text = folder.config_file.read_text()
    kept = text.partition("[downlink_compression]")[0]
    rest = text.partition("[downlink_compression]")[2].partition("\n[")[2]
    old = kept + (("[" + rest) if rest else "") + f"\n[compression]\n{table}\n"
    folder.config_file.write_text(old)
    tensors, state = folder.load()
    folder._write(tensors, {**state, "fingerprint": folder.fingerprint()})
    read = wirelessfl.load(tmp_path / "run").config
    assert read.downlink_compression == settings.downlink_compression
    assert len(wirelessfl.resume(tmp_path / "run", rounds=2).rows) == 3


@given(models())
def test_no_compression_copies_the_model(model):
    flat, spec = model
    after = compress(Uncompressed(), flat, spec)
    assert torch.equal(after, flat)
    assert after.data_ptr() != flat.data_ptr()
