"""Shapes of built-in models equal those of the modules, which are built here."""

import pytest

from channels.streams import Stream
from wirelessfl import Config
from wirelessfl.models import MODELS, build_model
from wirelessfl.models.built_in import BuiltIn
from wirelessfl.models.shapes import Declared, known_shapes
from wirelessfl.models.submodels import ParamSpec, make_partition
from wirelessfl.models.submodels.partition import partition_of
from wirelessfl.runs.build.planners import UntrainedModel, make_planner

GREY, SMALL, COLOUR = (1, 28, 28), (1, 8, 8), (3, 32, 32)
BUILT = [
    ("fcnn", GREY, None),
    ("fcnn", SMALL, (40, 30, 20)),
    ("fcnn", SMALL, ()),
    ("mlp", COLOUR, None),
    ("mlp", SMALL, (12, 8)),
    ("linear", GREY, None),
    ("lenet5", GREY, None),
    ("lenet5", (3, 28, 28), None),
    ("cifar-cnn", COLOUR, None),
    ("fedast-cnn", COLOUR, None),
]


def module_of(name, shape, hidden):
    return build_model(name, shape, 10, dropout=0.0, stream=Stream(1), hidden=hidden)


@pytest.mark.parametrize(("name", "shape", "hidden"), BUILT)
def test_known_shapes_are_those_of_the_module(name, shape, hidden):
    """Names, order and shapes of the parameters, and the fully connected layers."""
    known, module = known_shapes(name, shape, 10, hidden), module_of(name, shape, hidden)
    assert list(known.parameters.items()) == list(ParamSpec.of(module).shapes.items())
    assert known.fully_connected == Declared.of(module).fully_connected


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("scheme", ["alternate", "all"])
@pytest.mark.parametrize(("name", "shape", "hidden"), BUILT)
def test_the_partition_is_that_of_the_module(name, shape, hidden, scheme):
    """The same neurons and slots; none where there are no neurons between layers."""
    known, module = known_shapes(name, shape, 10, hidden), module_of(name, shape, hidden)
    spec = ParamSpec.of(module)
    found = partition_of(spec, known.fully_connected, scheme)
    if len(known.fully_connected) < 2:
        assert found is None
    else:
        assert found == make_partition(module, spec, scheme)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("lenet5", SMALL), ("cifar-cnn", GREY), ("fedast-cnn", GREY), ("resnet18", COLOUR)],
)
def test_other_shapes_are_not_known(name, shape):
    """Images of another size, whose error comes from the model, and models that are not listed."""
    assert known_shapes(name, shape, 10) is None


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("flags", "known"),
    [
        ({"dataset": "fashion-mnist"}, True),
        ({"dataset": "cifar10", "model": "cifar-cnn"}, True),
        ({"dataset": "cifar10", "model": "resnet18"}, False),
        ({"layers": ("layers.1", "layers.4")}, False),
        ({"model": "tests.wirelessfl.models.test_shapes:own"}, False),
    ],
)
def test_plans_with_known_shapes_equal_those_of_the_built_model(flags, known):
    """Prices of a round, with and without the shapes."""
    algorithm = "hfedavg" if flags.get("model") == "resnet18" else "hist"
    config = Config.from_flags(algorithm, cells=2, clients=4, **flags)
    model, again = UntrainedModel.of(config), UntrainedModel.of(config)
    assert (model.shapes is not None) == known
    vars(again)["shapes"] = None  # the model is built
    one, other = (make_planner(config, m.network, m).plan(0) for m in (model, again))
    assert one.price.seconds.tolist() == other.price.seconds.tolist()
    assert one.price.joules == other.price.joules
    assert one.submodels.lengths.tolist() == other.submodels.lengths.tolist()


def own(input_shape, classes):
    """A model of the user."""
    return module_of("fcnn", input_shape, None)


@pytest.mark.parametrize("name", MODELS)
def test_built_in_models_are_described_by_their_source(name):
    """Arguments, docstring and tokenizer are read without importing the class, and are its own."""
    import importlib
    import inspect

    model: BuiltIn = MODELS[name]
    cls = getattr(importlib.import_module(model.module), model.name)
    own = inspect.signature(cls).parameters.values()
    assert [(one.name, one.kind) for one in inspect.signature(model).parameters.values()] == [
        (one.name, one.kind) for one in own
    ]
    assert inspect.cleandoc(cls.__doc__) == model.__doc__
    assert model.default_tokenizer == getattr(cls, "default_tokenizer", None)
