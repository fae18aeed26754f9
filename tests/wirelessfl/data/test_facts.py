"""Declared facts of data sets are those of the loaded ones."""

import pytest

from wirelessfl.data import dataset_names, known_facts, load_dataset
from wirelessfl.data.dataset import Facts
from wirelessfl.errors import ConfigError, DataError

OPTIONS = {
    "20newsgroups": {"tokenizer": "words:50", "max_length": 5},
    "sst2": {"tokenizer": "words", "max_length": 5},
}


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
