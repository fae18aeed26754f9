"""Own data in each form become the same data set; wrong data give one line."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, TensorDataset

from wirelessfl.data import Dataset, as_dataset
from wirelessfl.data.own.arrays import converted, range_note
from wirelessfl.errors import ConfigError, DataError

RANDOM = np.random.default_rng(3)
X = RANDOM.uniform(0, 1, (12, 5)).astype(np.float32)
Y = np.arange(12) % 3
X_TEST, Y_TEST = X[:4] / 2, Y[:4]
BYTES = RANDOM.integers(0, 256, (12, 6, 7, 3)).astype(np.uint8)


class Items(TorchDataset):
    """Samples of any kind, with an index."""

    def __init__(self, items, **others):
        self.items = items
        vars(self).update(others)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, place):
        return self.items[place]


class Table:
    """What is used of a data set of Hugging Face: columns, features and rows."""

    def __init__(self, classes=None, **columns):
        self.column_names = list(columns)
        self.features = {name: SimpleNamespace(num_classes=classes) for name in columns}
        self._rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)


def plain(dataset):
    """All values of a data set."""
    parts = ("train_inputs", "train_labels", "test_inputs", "test_labels")
    return [getattr(dataset, part) for part in parts], dataset.classes


def check_same(dataset, other):
    (values, classes), (wanted, number) = plain(dataset), plain(other)
    assert classes == number
    for one, two in zip(values, wanted, strict=True):
        assert one.dtype == two.dtype
        assert torch.equal(one, two)


TENSORS = [torch.from_numpy(array) for array in (X, Y, X_TEST, Y_TEST)]
WANTED = Dataset("data", *TENSORS, classes=3)
KEYS = ("train_inputs", "train_labels", "test_inputs", "test_labels")
FORMS = {
    "arrays": (X, Y, X_TEST, Y_TEST),
    "float64 and small integers": (X.astype("f8"), Y.astype("u1"), X_TEST.astype(">f8"), Y_TEST),
    "tensors": tuple(TENSORS),
    "lists": tuple(array.tolist() for array in (X, Y, X_TEST, Y_TEST)),
    "lists of tensors": (list(TENSORS[0]), list(TENSORS[1]), list(TENSORS[2]), list(TENSORS[3])),
    "read-only and reversed": (X[::-1][::-1], np.broadcast_to(Y, (12,)), X_TEST, Y_TEST),
    "mapping": dict(zip(KEYS, (X, Y, X_TEST, Y_TEST), strict=True)),
    "pairs": ((X, Y), (X_TEST, Y_TEST)),
    "tensor data sets": (TensorDataset(*TENSORS[:2]), TensorDataset(*TENSORS[2:])),
    "data sets of torch": (
        Items(list(zip(X, Y.tolist(), strict=True))),
        Items(list(zip(TENSORS[2], TENSORS[3], strict=True))),
    ),
    "splits of tables": {
        "train": Table(3, inputs=X.tolist(), label=Y.tolist()),
        "validation": Table(3, inputs=X_TEST.tolist(), label=Y_TEST.tolist()),
    },
    "tables": (Table(x=X, other=Y, y=Y), Table(x=X_TEST, other=Y_TEST, y=Y_TEST)),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_the_same_data_are_one_data_set(form):
    found = as_dataset(FORMS[form])
    if form.startswith(("float64", "lists")) and "tensors" not in form:
        values = [torch.tensor(np.asarray(v, dtype="f8")).float() for v in (X, X_TEST)]
        assert torch.equal(found.train_inputs, values[0])
    check_same(found, WANTED)
    assert found.notes == ()


def test_a_data_set_is_returned_as_it_is():
    assert as_dataset(WANTED) is WANTED


def test_natural_clients_and_names_are_kept():
    found = as_dataset(FORMS["mapping"] | {"groups": Y}, name="mine", classes=7)
    assert (found.name, found.classes, found.groups.tolist()) == ("mine", 7, Y.tolist())


def test_bytes_of_images_become_numbers_from_0_to_1_with_channels_first():
    """Each pixel is its byte / 255; also of images of PIL, and of grey ones without channels."""
    found = as_dataset((BYTES, Y, BYTES[:4], Y_TEST))
    assert found.train_inputs.shape == (12, 3, 6, 7)
    wanted = torch.tensor(BYTES[5, 2, 3, 1] / 255, dtype=torch.float32)
    assert found.train_inputs[5, 1, 2, 3] == wanted
    assert found.notes == (
        "image bytes 0..255 were scaled to [0, 1], with channels first: [3, 6, 7].",
    )
    images = [(Image.fromarray(b), int(y)) for b, y in zip(BYTES, Y, strict=True)]
    check_same(as_dataset((Items(images), Items(images[:4]))), found)
    first = BYTES.transpose(0, 3, 1, 2)
    check_same(as_dataset((first, Y, first[:4], Y_TEST)), found)
    grey = as_dataset((BYTES[..., 0], Y, BYTES[:4, ..., 0], Y_TEST))
    assert torch.equal(grey.train_inputs, found.train_inputs[:, :1])


def test_floats_keep_their_values_and_their_layout():
    """Images with channels last, and bytes as floats, are used as they are, with a note."""
    floats = BYTES.astype(np.float64)
    found = as_dataset((floats, Y, floats[:4], Y_TEST))
    assert torch.equal(found.train_inputs, torch.from_numpy(floats).float())
    assert "channels last" in found.notes[0]
    assert "divide by 255" in range_note(found.train_inputs)
    for values in (X, X - 0.5, 1000 * X, X * 0):
        assert range_note(torch.from_numpy(values)) is None


@pytest.mark.parametrize("what", ["classes", "flags"])
def test_true_and_false_are_classes_or_flags(what):
    """Flags per sample are floats, as losses of several labels need them."""
    truth = Y > 1
    if what == "classes":
        found = as_dataset((X, truth, X_TEST, truth[:4]))
        assert found.train_labels.tolist() == truth.astype(int).tolist()
        assert found.classes == 2
    else:
        flags = np.stack([truth, ~truth], axis=1)
        labels = converted((X, X_TEST), (flags, flags[:4]), "data").labels
        assert labels[0].dtype == torch.float32
        assert labels[0].tolist() == flags.astype(float).tolist()


def test_labels_of_other_shapes_pass_through():
    """Masks [n, height, width] stay integers, targets [n, values] become float32."""
    masks, targets = BYTES[..., 0] % 4, X.astype(np.float64)
    found = converted((X, X_TEST), (masks, masks[:4]), "data").labels[0]
    assert (found.dtype, found.tolist()) == (torch.int64, masks.tolist())
    found = converted((X, X_TEST), (targets, targets[:4]), "data").labels[0]
    assert torch.equal(found, torch.from_numpy(X))


def save_images(folder, arrays, names=("ape", "bee", "cow")):
    for place, (array, label) in enumerate(zip(arrays, Y, strict=False)):
        part = folder / names[label]
        part.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(part / f"{place:02}.png")


def test_a_folder_of_images_equals_its_arrays(tmp_path):
    """Samples are ordered by class and file; classes by name."""
    save_images(tmp_path / "zoo" / "train", BYTES)
    save_images(tmp_path / "zoo" / "val", BYTES[:4])
    order, tested = np.argsort(Y, kind="stable"), np.argsort(Y[:4], kind="stable")
    wanted = as_dataset((BYTES[order], Y[order], BYTES[tested], Y[tested]))
    found = as_dataset(tmp_path / "zoo")
    check_same(found, wanted)
    assert found.name == "zoo"


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], 1)])


class Broken(Items):
    def __getitem__(self, place):
        return {}["nothing"]


WORDS = np.array(["cat", "dog", "cow"])[Y]
FLAT = BYTES.reshape(12, -1)
SIZES = Items([(torch.zeros(2), 0), (torch.zeros(3), 1)])
WRONG = {
    "three": ((X, Y, X_TEST), ConfigError, "data is ", "give a wirelessfl.data.Dataset"),
    "two arrays": ((X, Y), ConfigError, "two data sets of torch (train, test)"),
    "a name": ("digits", ConfigError, 'names such as "digits" are the setting dataset'),
    "a number": (3, ConfigError, "data is 3: give"),
    "keys": ({"x": X}, ConfigError, "data has 'x': give train_inputs"),
    "lacks": ({"train_inputs": X}, ConfigError, "data lacks train_labels, test_inputs"),
    "splits": ({"train": Table(x=X, y=Y)}, ConfigError, "none of them is test"),
    "sklearn": ((X, X_TEST, Y, Y_TEST), DataError, "as if from train_test_split"),
    "words": ((X, WORDS, X_TEST, WORDS[:4]), DataError, "np.unique(words, return_inverse=True)"),
    "list of words": ((X, list(WORDS), X_TEST, []), DataError, "data: train_labels are words"),
    "ragged": (([[1], [1, 2]], Y, X_TEST, Y_TEST), DataError, "train_inputs", "not numbers"),
    "flat bytes": ((FLAT, Y, FLAT, Y), DataError, "pixels or token ids", "inputs / 255"),
    "complex": ((X + 1j, Y, X_TEST, Y_TEST), DataError, "give real numbers"),
    "counts": ((X, Y[:5], X_TEST, Y_TEST), DataError, "12 inputs and 5 labels"),
    "nan": ((X * np.nan, Y, X_TEST, Y_TEST), DataError, "NaN"),
    "negative": ((X, Y - 1, X_TEST, Y_TEST), DataError, "span -1"),
    "no length": ((Stream(), Stream()), DataError, "has no length"),
    "no pairs": ((Items([X[0]]), Items([X[0]])), DataError, "[0] is float32 [5]: give samples"),
    "sizes": ((SIZES, SIZES), DataError, "[1] has shape [3], but data: train[0] [2]"),
    "empty": ((Items([]), Items([])), DataError, "has no samples"),
    "broken": ((Broken([1]), Broken([1])), DataError, "train[0]: KeyError", "test_own.py, line"),
    "columns": ((Table(a=X, b=Y), Table(a=X, b=Y)), DataError, "has the columns a, b: name those"),
    "texts": ((Table(x=["a"], y=[1]),) * 2, DataError, "text in column 'x'"),
    "text labels": ((Table(x=[1.0], y=["a"]),) * 2, DataError, "class_encode_column('y')"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_data_give_one_line(case):
    data, kind, *parts = WRONG[case]
    with pytest.raises(kind) as caught:
        as_dataset(data)
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_columns_can_be_named():
    tables = {"train": Table(a=X, b=Y), "test": Table(a=X_TEST, b=Y_TEST)}
    check_same(as_dataset(tables, columns=("a", "b")), WANTED)
    with pytest.raises(DataError, match="columns names 'c', but data: train has a, b"):
        as_dataset(tables, columns=("a", "c"))


@pytest.mark.parametrize("case", ["no test", "empty", "class", "size", "damaged", "no train"])
def test_wrong_folders_give_one_line(tmp_path, case):
    if case != "no train":
        save_images(tmp_path / "train", BYTES if case != "empty" else [])
        (tmp_path / "train").mkdir(exist_ok=True)
    if case not in ("no test", "no train"):
        save_images(tmp_path / "test", BYTES[:4])
    message = {
        "no test": "no folder test",
        "empty": "has the class 'ape', which",
        "class": "has the class 'yak', which",
        "size": "has 7 x 5 pixels, but .* has 7 x 6: resize",
        "damaged": "bad.png cannot be read as an image",
        "no train": "a folder without train",
    }[case]
    if case == "class":
        (tmp_path / "test" / "yak").mkdir()
    if case == "size":
        Image.fromarray(BYTES[0][:5]).save(tmp_path / "train" / "cow" / "zz.png")
    if case == "damaged":
        (tmp_path / "train" / "ape" / "bad.png").write_bytes(b"no image")
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        as_dataset(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.extras
def test_a_data_set_of_hugging_face_equals_its_arrays():
    import datasets

    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b", "c"])}
    )
    images = [Image.fromarray(array) for array in BYTES]
    parts = {
        name: datasets.Dataset.from_dict({"image": some, "label": labels}, features=features)
        for name, some, labels in (("train", images, Y), ("test", images[:4], Y_TEST))
    }
    found = as_dataset(datasets.DatasetDict(parts))
    check_same(found, as_dataset((BYTES, Y, BYTES[:4], Y_TEST)))
