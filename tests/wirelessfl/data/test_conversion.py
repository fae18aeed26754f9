"""Own data in each form become the same data set; wrong data give one line."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, TensorDataset

import wirelessfl
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.base.torch_state import other_states, torch_state
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import Dataset, as_dataset, load_dataset
from wirelessfl.data.conversion import range_note
from wirelessfl.data.labels import class_hint, label_notes

RUN = "--clients 2 --rounds 1 --local-steps 1 --batch-size 2 --threads 1 --split iid".split()
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


def splits(**columns):
    """Equal training and test splits."""
    return dict.fromkeys(("train", "test"), Table(**columns))


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
    "tensors with gradients": (
        TENSORS[0].clone().requires_grad_(),
        Y,
        [x.requires_grad_() for x in TENSORS[2].clone()],
        [torch.tensor(int(y)) for y in Y_TEST],
    ),
    "read-only and reversed": (X[::-1][::-1], np.broadcast_to(Y, (12,)), X_TEST, Y_TEST),
    "mapping": dict(zip(KEYS, (X, Y, X_TEST, Y_TEST), strict=True)),
    "tensor data sets": (TensorDataset(*TENSORS[:2]), TensorDataset(*TENSORS[2:])),
    "data sets of torch": (
        Items(list(zip(X, Y.tolist(), strict=True))),
        Items(list(zip(TENSORS[2], TENSORS[3], strict=True))),
    ),
    "splits of tables": {
        "train": Table(3, inputs=X.tolist(), label=Y.tolist()),
        "validation": Table(3, inputs=X_TEST.tolist(), label=Y_TEST.tolist()),
    },
    "columns": {"train": Table(x=X, other=Y, y=Y), "test": Table(x=X_TEST, other=Y_TEST, y=Y_TEST)},
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
        labels = as_dataset((X, flags, X_TEST, flags[:4])).train_labels
        assert labels.dtype == torch.float32
        assert labels.tolist() == flags.astype(float).tolist()


def test_labels_of_other_shapes_pass_through():
    """Masks [n, height, width] stay integers, targets [n, values] become float32."""
    masks, targets = BYTES[..., 0] % 4, X.astype(np.float64)
    found = as_dataset((X, masks, X_TEST, masks[:4])).train_labels
    assert (found.dtype, found.tolist()) == (torch.int64, masks.tolist())
    found = as_dataset((X, targets, X_TEST, targets[:4])).train_labels
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


@pytest.mark.parametrize("grey", [False, True])
def test_the_setting_reads_a_folder_of_images_too(tmp_path, grey):
    """Its pixels are those of the object, scaled to [-1, 1], so that the setting pixels applies."""
    pixels = BYTES[..., 0] if grey else BYTES
    save_images(tmp_path / "train", pixels)
    save_images(tmp_path / "test", pixels[:4])
    given = as_dataset(tmp_path)
    found = load_dataset(str(tmp_path))
    assert (found.name, found.classes) == (given.name, given.classes)
    assert torch.allclose((found.train_inputs + 1) / 2, given.train_inputs, atol=1e-6)
    assert torch.allclose((found.test_inputs + 1) / 2, given.test_inputs, atol=1e-6)
    assert torch.equal(found.train_labels, given.train_labels)
    assert torch.equal(found.test_labels, given.test_labels)


def test_a_path_runs_from_flags_toml_and_tasks_and_resumes_elsewhere(tmp_path, monkeypatch, capsys):
    """A relative path is stored as an absolute one; titles have the folder's name."""
    monkeypatch.chdir(tmp_path)
    for part in ("train", "test"):
        save_images(tmp_path / "my-images" / part, BYTES)
    words = ["run", "fedavg", "--dataset", "./my-images", "--model", "mlp", *RUN]
    assert main(words) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("fedavg-my-images-")
    config = Config.from_toml(folder / "config.toml")
    assert config.dataset.name == str(tmp_path / "my-images")
    assert list(config.tasks) == ["my-images"]

    rows = wirelessfl.resume(folder).rows
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    (folder / "checkpoint.safetensors").unlink()
    (folder / "rows.jsonl").unlink()
    again = wirelessfl.resume(folder).rows  # loads the data again
    assert [row["accuracy"] for row in again] == [row["accuracy"] for row in rows]
    assert [row["loss"] for row in again] == [row["loss"] for row in rows]

    toml = tmp_path / "run.toml"
    toml.write_text('[algorithm]\nname = "fedavg"\n[dataset]\nname = "../my-images/"\n')
    path = Config.from_toml(toml).dataset.name
    assert load_dataset(path).name == "my-images"
    tasks = Config.from_flags("fedast", task=("../my-images,lr=0.1", "../my-images", "digits"))
    assert list(tasks.tasks) == ["my-images", "my-images-2", "digits"]
    assert {task.dataset.name for task in tasks.tasks.values()} == {path, "digits"}
    assert Config.of(tasks.given_tables()) == tasks


def test_wrong_paths_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "fedavg", "--dataset", "./nowhere", *RUN]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert f"dataset is '{tmp_path}/nowhere', which is not a folder: give the path of a" in line
    assert not (tmp_path / "runs").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty', which has no folder train: give the path"):
        load_dataset("./empty")
    with pytest.raises(ConfigError, match=r"'empty' is unknown.* folder of images by its path, s"):
        load_dataset("empty")


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], 1)])


class Broken(Items):
    def __getitem__(self, place):
        return {}["nothing"]


WORDS = np.array(["cat", "dog", "cow"])[Y]
FLAT = BYTES.reshape(12, -1)
SIZES = Items([(torch.zeros(2), 0), (torch.zeros(3), 1)])
SPARSE = torch.eye(12).to_sparse()
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
    "sparse": ((SPARSE, Y, X_TEST, Y_TEST), DataError, "train_inputs is a sparse", "to_dense()"),
    "sparse labels": ((X, SPARSE, X_TEST, Y_TEST), DataError, "train_labels is a sparse tensor"),
    "sparse rows": ((X, Y, [*SPARSE], Y), DataError, "test_inputs is a sparse tensor"),
    "sparse items": ((Items([(SPARSE, 1)]),) * 2, DataError, "train[0], input is a sparse tensor"),
    "meta": ((X, Y, torch.empty(4, 5, device="meta"), Y_TEST), DataError, "a meta tensor"),
    "nan": ((X * np.nan, Y, X_TEST, Y_TEST), DataError, "NaN"),
    "negative": ((X, Y - 1, X_TEST, Y_TEST), DataError, "span -1"),
    "no length": ((Stream(), Stream()), DataError, "has no length"),
    "no pairs": ((Items([X[0]]), Items([X[0]])), DataError, "[0] is float32 [5]: give samples"),
    "sizes": ((SIZES, SIZES), DataError, "[1] has shape [3], but data: train[0] [2]"),
    "empty": ((Items([]), Items([])), DataError, "has no samples"),
    "broken": (
        (Broken([1]), Broken([1])),
        DataError,
        "train[0]: KeyError",
        "test_conversion.py, line",
    ),
    "columns": (splits(a=X, b=Y), DataError, "has the columns a, b: name those"),
    "texts": (splits(x=["a"], y=[1]), DataError, "text in column 'x'"),
    "text labels": (splits(x=[1.0], y=["a"]), DataError, "class_encode_column('y')"),
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


def test_a_sparse_data_set_is_refused():
    with pytest.raises(DataError, match="m: train_inputs is a sparse tensor: give a dense"):
        Dataset("m", SPARSE, TENSORS[1], SPARSE, TENSORS[1])


OWN = np.random.default_rng(5)
DRAWS = {
    "torch": lambda: float(torch.rand(1)),
    "NumPy": lambda: np.random.uniform(),  # noqa: NPY002
    "Python": random.random,
    "its own": OWN.uniform,
    "none": lambda: 0.0,
}


class Transformed(Items):
    """Samples with a random transform."""

    def __init__(self, items, draw):
        super().__init__(items)
        self.draw = draw

    def __getitem__(self, place):
        x, y = self.items[place]
        return x + np.float32(self.draw()), y


@pytest.mark.parametrize("kind", DRAWS)
def test_random_samples_are_noted_and_read_under_seeded_generators(kind):
    """Reading them again gives the same values, and the caller's generators stay as they are."""
    items = list(zip(X, Y.tolist(), strict=True))
    states = [other_states(), torch_state(TENSORS[0]).tolist()]
    data = Transformed(items, DRAWS[kind]), Items(items)
    one, two = as_dataset(data), as_dataset(data)
    assert [other_states(), torch_state(TENSORS[0]).tolist()] == states
    assert torch.equal(one.train_inputs, two.train_inputs) == (kind != "its own")
    if kind == "none":
        assert one.notes == ()
        return
    (note,) = one.notes
    assert note.startswith("training samples are random")
    assert ("cannot be repeated" in note) == (kind == "its own")
    assert note.endswith("give augment=f(x, generator).")
    assert len({*(one.train_inputs - TENSORS[0])[:, 0].tolist()}) > 6, "each sample has its own"


class TransformedTensors(TensorDataset):
    """Tensors whose samples are changed when they are read."""

    def __getitem__(self, place):
        x, y = super().__getitem__(place)
        return x + 1, y


def test_transforms_of_tensors_apply():
    data = TransformedTensors(*TENSORS[:2]), TransformedTensors(*TENSORS[2:])
    assert torch.equal(as_dataset(data).train_inputs, TENSORS[0] + 1)


class RandomTable(Table):
    def __iter__(self):
        return ({**row, "x": row["x"] + np.random.uniform()} for row in self._rows)  # noqa: NPY002


def test_random_rows_of_tables_are_noted():
    parts = {"train": Table(x=X, y=Y), "test": RandomTable(x=X_TEST, y=Y_TEST)}
    one, two = as_dataset(parts), as_dataset(parts)
    assert torch.equal(one.test_inputs, two.test_inputs)
    assert [note[:23] for note in one.notes] == ["test samples are random"]


LABELS = {
    (0, 1, 2): [],
    (1, 2, 3): ["no sample has the label 0. Labels start at 0: subtract 1."],
    (5, 6): ["no sample has the labels 0..4. Labels start at 0: subtract 5."],
    (10, 20, 30): ["no sample has the labels 0..9, 11..19, 21..29. Number the classes without "],
    (0, 1, 2, -4): [
        "no sample has the label 3. Number",
        "no training sample has the test label 4.",
    ],
    (0, -1, -2): ["no training sample has the test labels 1, 2."],
    (*range(0, 16, 2),): ["no sample has the labels 1, 3, 5, 7, 9 and 2 more. Number"],
}


@pytest.mark.parametrize("labels", LABELS)
def test_labels_without_samples_are_named_with_a_remedy(labels):
    """Negative numbers in the table are labels of test samples."""
    train = torch.tensor([label for label in labels if label >= 0])
    test = torch.tensor([abs(label) for label in labels])
    notes = label_notes(train, test, int(test.max()) + 1)
    for classes in (None, int(test.max()) + 2):  # a data set with these classes, or its author
        fixed = [note for note in notes if "no training sample" in note]
        assert label_notes(train, test, classes) == fixed
    assert len(notes) == len(LABELS[labels])
    for note, start in zip(notes, LABELS[labels], strict=True):
        assert note.startswith(start)


def test_labels_above_the_number_of_classes_have_a_remedy():
    with pytest.raises(DataError, match=r"span 1\.\.3; .* in 0\.\.2, by subtracting 1\.$"):
        as_dataset((X, Y + 1, X_TEST, Y_TEST + 1), classes=3)
    with pytest.raises(DataError, match=r"span 0\.\.2; with classes=2 give labels in 0\.\.1\.$"):
        as_dataset((X, Y, X_TEST, Y_TEST), classes=2)


@pytest.mark.parametrize(
    ("labels", "how"),
    [
        (np.eye(3), "labels.argmax(1)."),
        (np.eye(3, dtype=int), "labels.argmax(1)."),
        (np.array([[1], [2]]), "labels[:, 0]."),
        (np.array([[1.0], [2.0]]), "labels[:, 0] as int64."),
        (np.array([0.0, 2.0]), "labels as int64."),
        (np.array([0.5, 2.0]), None),
        (np.array([-1.0, 2.0]), None),
        (np.ones((2, 2)), None),
        (2 * np.eye(3), None),
        (np.array([0, 1]), None),
        (np.zeros((2, 3, 3), dtype=int), None),
    ],
)
def test_labels_that_look_like_classes_have_a_remedy(labels, how):
    hint = class_hint(torch.from_numpy(labels))
    assert hint.endswith(how) if how else hint == ""


def test_columns_can_be_named():
    tables = {"train": Table(a=X, b=Y), "test": Table(a=X_TEST, b=Y_TEST)}
    check_same(as_dataset(tables, columns=("a", "b")), WANTED)
    with pytest.raises(DataError, match="columns names 'c', but data: train has a, b"):
        as_dataset(tables, columns=("a", "c"))


@pytest.mark.parametrize(
    "case", ["missing", "no test", "empty", "class", "size", "damaged", "no train"]
)
def test_wrong_folders_give_one_line(tmp_path, case):
    folder = tmp_path / "none" if case == "missing" else tmp_path
    if case != "no train":
        save_images(tmp_path / "train", BYTES if case != "empty" else [])
        (tmp_path / "train").mkdir(exist_ok=True)
    if case not in ("no test", "no train"):
        save_images(tmp_path / "test", BYTES[:4])
    message = {
        "missing": "none', and there is no such folder: give the path of a folder of images",
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
        as_dataset(folder)
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
