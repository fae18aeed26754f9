"""Data sets: types and ranges of their tensors, facts, settings, and the range of pixels."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.config import Config
from wirelessfl.data import Dataset, dataset_names, known_facts, load_dataset
from wirelessfl.data.choice import DATASETS, given_dataset, scaled
from wirelessfl.data.dataset import Facts, scale_pixels, widened
from wirelessfl.runs.build import build


def tiny(**changes):
    fields = {
        "name": "tiny",
        "train_inputs": torch.zeros(3, 1, 2, 2),
        "train_labels": torch.tensor([0, 1, 2]),
        "test_inputs": torch.ones(2, 1, 2, 2),
        "test_labels": torch.tensor([2, 0]),
        "classes": 3,
    }
    return Dataset(**(fields | changes))


def load_tiny(data_dir):
    return tiny(name=f"tiny in {data_dir}")


def load_nothing(data_dir):
    return None


def test_the_input_shape_has_no_sample_axis():
    assert tiny(groups=np.array([7, 7, 9])).input_shape == (1, 2, 2)


def test_inputs_may_be_token_ids():
    tokens = {
        "train_inputs": torch.arange(12).reshape(3, 4),
        "test_inputs": torch.full((2, 4), 2**40),
    }
    assert tiny(**tokens).input_shape == (4,)
    with pytest.raises(
        DataError, match=r"test inputs are torch\.float32, but training .* torch\.int64"
    ):
        tiny(**tokens | {"test_inputs": torch.zeros(2, 4)})


def test_token_ids_of_one_byte_are_widened_and_unscaled_pixels_are_refused():
    data = tiny(
        train_inputs=torch.tensor([[0, 255]] * 3).byte(), test_inputs=torch.zeros(2, 2).byte()
    )
    assert widened(data.train_inputs).dtype == torch.int64
    assert widened(data.train_inputs).tolist() == [[0, 255]] * 3
    floats = torch.zeros(2, 2)
    assert widened(floats) is floats
    with pytest.raises(DataError, match=r"torch.uint8 \[3, 1, 2, 2\]; give float32"):
        tiny(train_inputs=torch.zeros(3, 1, 2, 2).byte())


def test_groups_may_be_a_list():
    groups = tiny(groups=[7, 7, 9]).groups
    assert isinstance(groups, np.ndarray)
    assert groups.tolist() == [7, 7, 9]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_inputs": np.zeros((3, 4), np.float32)}, "train_inputs is a numpy.ndarray: give t"),
        ({"test_labels": np.array([0, 1])}, "test_labels is a numpy.ndarray: give torch tensors"),
        ({"train_labels": [0, 1, 2]}, "train_labels is a builtins.list: give torch tensors"),
        ({"train_inputs": torch.zeros(3, 4).int()}, r"int32 \[3, 4\]; give float32 .* or int64"),
        ({"train_inputs": torch.arange(3)}, r"train_inputs is torch.int64 \[3\]"),
        ({"groups": [1, 2]}, r"tiny: groups is int64 \[2\]; give one integer for each of the 3"),
        ({"groups": ["a", "b", "c"]}, "tiny: groups is <U1"),
        ({"groups": [[1], [1, 2], [3]]}, "tiny: groups is not an array"),
        ({"classes": 2.5}, "classes is 2.5"),
        ({"train_inputs": torch.zeros(3, 1, 2, 2, dtype=torch.float64)}, "train_inputs is torch.f"),
        ({"train_inputs": torch.zeros(3)}, "train_inputs is"),
        ({"train_inputs": torch.zeros(3, 0)}, r"train_inputs is \[3, 0\]: give samples with"),
        ({"train_inputs": torch.zeros(4, 1, 2, 2)}, "4 inputs and 3 labels"),
        ({"train_labels": torch.tensor([0.0, 1.0, 2.0])}, "training labels torch.float32"),
        ({"test_labels": torch.tensor([0, 3])}, r"test_labels span 0\.\.3"),
        ({"test_labels": torch.tensor([-1, 0])}, r"test_labels span -1\.\.0: .* add 1"),
        ({"test_inputs": torch.full((2, 1, 2, 2), torch.nan)}, "test_inputs contain NaN"),
        ({"test_inputs": torch.full((2, 1, 2, 2), torch.inf)}, "test_inputs contain NaN"),
        ({"test_inputs": torch.zeros(2, 2, 1, 2)}, "test samples have shape"),
        (
            {"test_inputs": torch.zeros(0, 1, 2, 2), "test_labels": torch.zeros(0).long()},
            "0 inputs and 0 labels",
        ),
        ({"groups": np.array([1, 2])}, "groups is int64"),
        ({"groups": np.array([1.0, 2.0, 3.0])}, "groups is float64"),
        ({"classes": 0}, "classes is 0"),
        ({"vocabulary": 0}, "vocabulary is 0; give the number of token ids"),
        ({"vocabulary": "5"}, "vocabulary is '5'"),
        ({"vocabulary": 9}, r"train_inputs are torch\.float32 .* give integer token ids in 0\.\.8"),
        (
            {"train_inputs": torch.ones(3, 4).long(), "vocabulary": 1},
            r"train_inputs are torch\.int64 in 1\.\.1; with vocabulary=1 give",
        ),
    ],
)
def test_inconsistent_data_sets_are_errors(changes, message):
    with pytest.raises(DataError, match=message):
        tiny(**changes)


def test_pixels_are_scaled_linearly_from_minus_one_to_one():
    scaled = scale_pixels(np.arange(256, dtype=np.uint8))
    assert scaled[0] == -1
    assert scaled[255] == 1
    torch.testing.assert_close(scaled.diff(), torch.full((255,), 2 / 255), rtol=0, atol=1e-6)


def test_built_in_names_and_data_sets_of_users():
    images = ["cifar10", "cifar100", "digits", "fashion-mnist", "mnist", "tinyimagenet"]
    images += ["cifar10-jpeg", "svhn"]
    texts = ["20newsgroups", "ag-news", "qnli", "qqp", "sst2"]
    assert dataset_names() == sorted([*images, *texts, "shakespeare"])
    assert load_dataset(f"{__name__}:load_tiny", "here").name == "tiny in here"
    with pytest.raises(
        ConfigError, match=r"load_nothing' returned None: return a wirelessfl\.data\.Dataset"
    ):
        load_dataset(f"{__name__}:load_nothing")
    with pytest.raises(ConfigError, match="fashion-mnist"):
        load_dataset("fashion")


OPTIONS = {
    "20newsgroups": {"tokenizer": "words:50", "max_length": 5},
    "sst2": {"tokenizer": "words", "max_length": 5},
}


@pytest.mark.thorough(every=8)
@pytest.mark.realdata
@pytest.mark.parametrize("name", sorted({*dataset_names()} - {"cifar10-jpeg"}))
def test_facts_are_those_of_the_files(name):
    options = OPTIONS.get(name, {})
    facts = known_facts(name, **options)
    if facts is None:
        pytest.skip(f"no facts of {name}")
    try:
        data = load_dataset(name, **options)
    except DataError as error:
        pytest.skip(str(error))
    assert Facts(data.input_shape, data.classes, data.pad_id, data.vocabulary) == facts


def test_facts_of_digits():
    data = load_dataset("digits")
    assert known_facts("digits") == Facts(data.input_shape, data.classes)


def test_facts_of_a_copy():
    """A copy as JPEG, which takes long to decode, has the facts of the original."""
    assert known_facts("cifar10-jpeg") == known_facts("cifar10") == Facts((3, 32, 32), 10)


def test_zeros_have_the_facts():
    """Tokens are integers, pixels are not."""
    for name, options in (("digits", {}), ("sst2", {"tokenizer": "words:9"}), ("shakespeare", {})):
        facts = known_facts(name, **options)
        data = facts.zeros(name)
        assert Facts(data.input_shape, data.classes, data.pad_id, data.vocabulary) == facts
        assert data.train_inputs.is_floating_point() == (facts.vocabulary is None)


def test_facts_that_only_files_know():
    """A tokenizer's files, few texts, and the user's images determine the model's size."""
    assert known_facts("sst2") is None
    assert known_facts("sst2", tokenizer="words:20000") is None
    assert known_facts("qnli", tokenizer="words:10") is None
    assert known_facts("./images") is None


def test_unknown_data_sets_are_refused():
    with pytest.raises(ConfigError, match="data set"):
        known_facts("no-such-data")


def test_a_task_with_another_data_set_keeps_the_settings_that_it_accepts():
    tasks = [{"dataset": "mnist"}, {"dataset": "sst2"}, {"dataset": "cifar10", "pixels": "unit"}]
    config = Config.from_flags("fedast", pixels="standard", task=tasks)
    mnist, sst2, cifar10 = (task.dataset for task in config.tasks.values())
    assert (mnist.name, mnist.pixels) == ("mnist", "standard")
    assert (cifar10.name, cifar10.pixels) == ("cifar10", "unit")
    assert not hasattr(sst2, "pixels")


@pytest.mark.parametrize(
    "made",
    [
        DATASETS.find("mnist")(pixels="unit"),
        DATASETS.find("sst2")(max_length=9),
        given_dataset("group/toy")(),
    ],
)
def test_choices_can_be_sent_to_other_processes(made):
    found = pickle.loads(pickle.dumps(made))
    assert found == made
    assert (found.name, found.title) == (made.name, made.title)


def test_data_sets_with_equal_settings_differ():
    assert DATASETS.find("mnist")() != DATASETS.find("digits")()


def test_images_have_pixels_and_texts_have_tokens():
    named = {
        name: {entry.name for entry in fields(cls)} for name, cls in DATASETS.classes().items()
    }
    assert named["digits"] == {"pixels"}
    assert named["sst2"] == {"tokenizer", "max_length"}
    assert named["shakespeare"] == set()


def images(low, high):
    """A data set of random images that reaches both ends of its range."""
    inputs = torch.linspace(low, high, 6 * 2 * 3 * 3).reshape(6, 2, 3, 3)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    return Dataset("own", inputs, labels, inputs.flip(0), labels, classes=3)


def own_images(data_dir=None):
    return images(0.0, 1.0)


def test_own_images_in_the_unit_range_are_not_scaled_again():
    """``unit`` refuses them, ``signed`` leaves them alone, and ``standard`` is of any range."""

    def loaded(pixels):
        return DATASETS.find(f"{__name__}:own_images")(pixels=pixels).load(None)

    with pytest.raises(
        ConfigError, match=r"pixels=\"unit\" .* 'own', .* in \[0, 1\] already: leave"
    ):
        loaded("unit")
    assert torch.equal(loaded("signed").train_inputs, own_images().train_inputs)
    signed = scaled(images(-1.0, 1.0), "standard")
    assert torch.allclose(loaded("standard").train_inputs, signed.train_inputs, atol=1e-6)


@pytest.mark.parametrize("pixels", ["unit", "standard"])
def test_given_data_are_used_as_they_are(pixels):
    """Their range is not known, so a range of pixels is refused."""
    settings = Config.from_flags("fedavg", clients=2, rounds=1)
    changed = settings.changed(pixels=pixels)
    with pytest.raises(ConfigError, match=rf"data=\.\.\. .* replaces pixels={pixels}: leave this"):
        build(changed, data=images(-1.0, 1.0))


def test_images_in_the_signed_range_are_converted():
    unit = scaled(images(-1.0, 1.0), "unit")
    assert torch.allclose(unit.train_inputs, own_images().train_inputs, atol=1e-6)
    assert torch.allclose(unit.test_inputs, own_images().test_inputs, atol=1e-6)


@pytest.mark.parametrize("pixels", ["unit", "standard"])
def test_images_beyond_the_range_are_not_scaled(pixels):
    """Values in the training inputs count, too."""
    for low, high in ((-1.0, 1.5), (0.0, 255.0)):
        data = images(low, high)
        inside = replace(data, test_inputs=data.test_inputs.clamp(-1, 1))
        for given in (data, inside):
            with pytest.raises(ConfigError, match=r"not images in \[-1, 1\]: leave pixels out"):
                scaled(given, pixels)
