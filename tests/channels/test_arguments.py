"""Public functions of channels and solvers reject wrong types and name the argument."""

import inspect
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch

import channels
import solvers
from channels.arguments import checked
from tests.channels.good_arguments import GOOD, function, numbers_of
from tests.channels.test_argument_ranges import REMEDY

COMPLEX = {
    "a",
    "h",
    "beamformer",
    "receive",
    "precoders",
    "white",
    "root",
    "responses",
    "rho",
    "antenna_correlation",
}
WRONG = {"string": "x", "object": object(), "ragged": [[1, 2], [3]], "class": int}


def test_every_public_function_is_covered():
    """GOOD lists all public functions that take arguments, except those of files."""
    public = {
        name
        for package in (channels, solvers)
        for name in package.__all__
        if inspect.isfunction(getattr(package, name))
    }
    left = {"available_backends", "load_network", "save_network", "read_devices"}
    left |= {"evaluate_rounds"}
    assert public - GOOD.keys() == left


@pytest.mark.parametrize("name", ["optimize_sizes_by_time", "optimize_widths_by_time"])
def test_laws_of_time_are_functions(name):
    for wrong in (None, "x", np.ones(2)):
        with pytest.raises((TypeError, ValueError), match=r"^seconds is .*: give a function of"):
            getattr(solvers, name)(wrong, **GOOD[name])


@pytest.mark.parametrize("name", GOOD)
def test_an_argument_of_the_wrong_type_is_named_in_one_line(name):
    call, good = function(name), GOOD[name]
    call(**good)
    for argument, right in good.items():
        for kind, wrong in WRONG.items():
            with pytest.raises((TypeError, ValueError), match=argument) as caught:
                call(**good | {argument: wrong})
            assert "\n" not in str(caught.value), (argument, kind)
            if isinstance(right, str):
                continue
            if kind == "object":
                assert "object" in str(caught.value), argument


@pytest.mark.parametrize("name", GOOD)
def test_an_imaginary_part_is_never_dropped(name):
    for argument, right in GOOD[name].items():
        values = np.asarray(right)
        if argument in COMPLEX or not values.size or values.dtype.kind not in "if":
            continue
        for array in (np.asarray, torch.tensor, np.ndarray.tolist):
            with pytest.raises((TypeError, ValueError), match=argument) as caught:
                function(name)(**GOOD[name] | {argument: array(np.asarray(values * (1 + 1j)))})
            assert "\n" not in str(caught.value), array


UNREADABLE = {
    "masked": lambda values: np.ma.array(values, mask=np.ones(np.shape(values), bool)),
    "masked in a list": lambda values: [np.ma.array(values, mask=np.ones(np.shape(values), bool))],
    "the masked constant": lambda values: [np.ma.masked],
    "meta": lambda values: torch.tensor(values, device="meta"),
    "meta in a list": lambda values: [torch.ones(2, device="meta")],
    "bfloat16": lambda values: torch.ones(np.shape(values), dtype=torch.bfloat16),
    "sparse": lambda values: torch.tensor(values).reshape(1, -1).to_sparse(),
    "33 axes": lambda values: values.reshape((1,) * (33 - values.ndim) + values.shape),
    "33 axes of a tensor": lambda values: torch.tensor(values).reshape((1,) * 33 + values.shape),
    "objects": lambda values: np.array([object()] * values.size, dtype=object),
    "more than a float holds": lambda values: np.full(values.shape, 10**400).tolist(),
    "of objects": lambda values: np.full(values.shape, -(10**5000), dtype=object),
    "strings": lambda values: values.astype(str).tolist(),
}


@pytest.mark.parametrize("name", [*filter(numbers_of, GOOD)])
@pytest.mark.filterwarnings("error")
def test_arrays_that_cannot_be_read_are_refused_in_one_line(name):
    """Masks would be dropped; the others fail somewhere inside of NumPy or torch."""
    for (argument, values), kind in product(numbers_of(name).items(), UNREADABLE):
        with pytest.raises((TypeError, ValueError), match=rf"\b{argument}\b") as caught:
            function(name)(**GOOD[name] | {argument: UNREADABLE[kind](values)})
        assert "\n" not in str(caught.value), (argument, kind)


def test_tensors_of_other_kinds_are_read():
    """With a gradient, conjugated or negated, of half precision, or with up to 30 axes."""
    h = torch.tensor([[1 + 2j, 3j]], requires_grad=True)
    white = channels.correlate(h.conj(), np.eye(2))
    np.testing.assert_array_equal(white, [[1 - 2j, -3j]])
    assert channels.snr_linear(h.conj().imag) == pytest.approx(10 ** np.array([[-0.2, -0.3]]))
    assert channels.snr_linear(torch.zeros((1,) * 30, dtype=torch.float16)).shape == (1,) * 30
    ready = torch.zeros((*(1,) * 29, 2), dtype=torch.float16)
    assert solvers.schedule_uplink(ready, np.ones((*(1,) * 29, 2))).objective == 2


@pytest.mark.parametrize("name", [*filter(numbers_of, GOOD)])
@pytest.mark.filterwarnings("error")
def test_gradients_are_ignored(name):
    """Of numbers too: a tensor that requires a gradient, and one that is a result of such."""
    for argument, values in numbers_of(name).items():
        tensor = torch.tensor(values)
        if tensor.is_floating_point() or tensor.is_complex():
            function(name)(**GOOD[name] | {argument: 1 * tensor.requires_grad_()})


@pytest.mark.parametrize("name", [*filter(numbers_of, GOOD)])
def test_extreme_numbers_are_refused_or_computed_with(name):
    """Nothing is NaN: not 0 / 0, nor 0 x inf."""
    for argument, values in numbers_of(name).items():
        for extreme in (5e-324, 4e307) if argument not in COMPLEX else (5e-324,):
            wrong = values.astype(np.result_type(values, float))
            wrong[(-1,) * wrong.ndim] = extreme
            with np.errstate(over="ignore"):
                message, result = outcome(name, argument, wrong if wrong.ndim else extreme)
            assert "\n" not in message
            assert not message or re.search(REMEDY, message), message
            assert not any(np.isnan(array).any() for array in arrays_in(result)), argument


def outcome(name, argument, given):
    """The error of a call, or its result."""
    try:
        result = function(name)(**GOOD[name] | {argument: given})
    except (TypeError, ValueError) as error:
        return str(error), None
    return "", getattr(result, "value", result)


def arrays_in(value):
    """Arrays of numbers in a result; costs of points that were left out are NaN on purpose."""
    if isinstance(value, torch.Tensor | np.ndarray | float):
        return [np.asarray(value)] if np.asarray(value).dtype.kind in "fc" else []
    inside = vars(value) if hasattr(value, "__dict__") else {}
    inside = dict(enumerate(value)) if isinstance(value, list | tuple) else inside
    return [a for key, part in inside.items() if key != "costs" for a in arrays_in(part)]


def test_complex_arguments_are_shown_with_the_remedy():
    with pytest.raises(
        ValueError, match=r"^snr_db is array\(\[1\.\+1\.j\]\): give real numbers\.$"
    ):
        channels.snr_linear(np.array([1 + 1j]))
    with pytest.raises(ValueError, match=r"^distance_m is \[Fraction.* 1j\]: give real numbers"):
        channels.path_loss_db([Fraction(1), 1j])
    assert channels.snr_linear([Fraction(10), 0]).tolist() == [10.0, 1.0]


@pytest.mark.parametrize("name", ["tdma_seconds_per_bit", "section_vi_c", "compute_seconds"])
def test_none_is_named_where_an_object_is_needed(name):
    argument = next(key for key in ("draw", "stream", "network") if key in GOOD[name])
    with pytest.raises(
        TypeError, match=rf"^{argument} is None: give a channels\.[A-Z]\w+(, or.*)?\.$"
    ):
        function(name)(**GOOD[name] | {argument: None})


def test_all_numeric_types_are_accepted():
    @checked()
    def area(sides: "ArrayLike", scale: "float" = 1.0) -> "float":  # noqa: F821
        return float(np.prod([float(side) for side in np.asarray(sides)])) * float(scale)

    for sides in ((2, 3), [np.float32(2), True * 3], torch.tensor([2.0, 3.0]), [Fraction(2), 3]):
        for scale in (1, np.int64(1), np.ones(()), torch.ones(()), True):
            assert area(sides, scale) == 6.0
    with pytest.raises(ValueError, match=r"^scale is array\(\[1\., 1\.\]\): give a number\.$"):
        area([1], np.ones(2))
    with pytest.raises(TypeError, match="positional arguments"):
        area(torch.ones(1), 2, 3)
    with pytest.raises(
        TypeError,
        match=r"^channels\.Network: only cell_of may be given without a name\. Name the others, "
        r"such as cpu_hz=1000000000\.0\.$",
    ):
        channels.Network([0, 0], 1e9, -90.0)
    with pytest.raises(TypeError, match="multiple values"):
        area([1], 2, scale=2)


@pytest.mark.parametrize(
    ("call", "keyword", "near"),
    [
        (lambda **given: channels.Network([0], cpu_hz=1e9, **given), "gain", "gain_db"),
        (lambda **given: channels.Network([0], cpu_hz=1e9, **given), "noise_figur_db", "noise_fi"),
        (channels.section_vi_c, "streams", "stream"),
        (solvers.allocate_energy, "deadline", "deadline_seconds"),
        (solvers.allocate_bandwidth, "bandwith_hz", "bandwidth_hz"),
    ],
)
def test_unknown_keywords_are_refused_with_the_nearest(call, keyword, near):
    """By functions that check their arguments, and by those that note implausible ones."""
    with pytest.raises(
        TypeError, match=f"unexpected .* {keyword!r}. Do you mean '{near}"
    ) as caught:
        call(**{keyword: 1.0})
    assert "_snr" not in str(caught.value)


def test_values_are_checked_after_a_valid_one_of_the_type():
    """An invalid list or array is rejected even after a valid one of the same type."""

    @checked()
    def area(sides: "ArrayLike", scale: "float" = 1.0) -> "float":  # noqa: F821
        return float(np.prod(sides)) * float(scale)

    pairs = (([2, 3], [[2], [3, 4]]), (np.ones(2), np.array(["a"])), ((1, 2), (1, object())))
    for right, wrong in pairs:
        for _ in range(2):
            area(right)
            with pytest.raises(TypeError, match=r"^sides is .*give numbers"):
                area(wrong)
    for _ in range(2):
        area(1, np.ones(()))
        with pytest.raises(ValueError, match=r"^scale is .*give a number"):
            area(1, np.ones(2))


def test_long_values_are_shortened_in_messages():
    with pytest.raises(ValueError, match=r"^cells is array") as caught:
        channels.even_cells(4, np.zeros((9, 9)))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 120
