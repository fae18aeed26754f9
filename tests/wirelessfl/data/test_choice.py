"""Data sets as choices: settings of tasks, pickles, and which settings each one has."""

import pickle
from dataclasses import fields

import pytest

from wirelessfl.config import Config
from wirelessfl.data.choice import DATASETS, given_dataset


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
