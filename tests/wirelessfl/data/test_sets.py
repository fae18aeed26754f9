"""Data sets: shapes, ranges, values and checksums."""

import gzip
import io
import shutil
import tarfile
from dataclasses import replace
from hashlib import md5
from pathlib import Path

import numpy as np
import pytest
import torch

from wirelessfl.data import Dataset, dataset_names, load_dataset
from wirelessfl.data import digits as digits_module
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.dataset import scale_pixels, widened
from wirelessfl.errors import ConfigError, DataError


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


def test_digits_are_those_of_scikit_learn_split_by_class():
    from sklearn.datasets import load_digits

    digits = load_dataset("digits")
    assert digits.input_shape == (1, 8, 8)
    assert digits.train_inputs.min() == -1
    assert digits.train_inputs.max() == 1
    pixels, labels = load_digits(return_X_y=True)
    per_class = np.bincount(labels)
    in_test = np.bincount(digits.test_labels.numpy())
    assert np.abs(in_test - 0.2 * per_class).max() <= 0.5
    # Training and test samples together are the original samples, each once, with its label.
    inputs = torch.cat([digits.train_inputs, digits.test_inputs]).reshape(-1, 64)
    targets = torch.cat([digits.train_labels, digits.test_labels])
    ours = np.column_stack([(inputs.numpy() + 1) * 8, targets])
    theirs = np.column_stack([pixels, labels])
    np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])
    again = load_dataset("digits")
    assert torch.equal(again.test_inputs, digits.test_inputs)


def test_digits_are_equal_if_scikit_learn_keeps_its_file_elsewhere(monkeypatch):
    """Pixels and labels are the same if the file is not in its usual place."""
    usual = digits_module._pixels_and_labels.__wrapped__()
    monkeypatch.setattr(digits_module, "find_spec", lambda name: None)
    for one, other in zip(usual, digits_module._pixels_and_labels.__wrapped__(), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_real_files_are_the_published_ones(name, real_data):
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    data = load_dataset(name, real_data)
    assert data.train_inputs.shape == (60_000, 1, 28, 28)
    assert data.test_inputs.shape == (10_000, 1, 28, 28)
    assert data.train_inputs.aminmax() == (-1, 1)
    assert data.train_labels.unique().tolist() == list(range(10))


@pytest.mark.realdata
def test_the_decompressed_content_is_verified(real_data, tmp_path):
    """Recompressed and plain copies are accepted; one flipped byte in the content is an error."""
    folder = tmp_path / "fashion-mnist"
    shutil.copytree(real_data / "fashion-mnist", folder)
    images = folder / "t10k-images-idx3-ubyte.gz"
    labels = folder / "t10k-labels-idx1-ubyte.gz"
    content = gzip.decompress(images.read_bytes())
    images.write_bytes(gzip.compress(content, 1))
    labels.with_suffix("").write_bytes(gzip.decompress(labels.read_bytes()))
    labels.unlink()
    copy = load_dataset("fashion-mnist", tmp_path)
    original = load_dataset("fashion-mnist", real_data)
    assert torch.equal(copy.test_inputs, original.test_inputs)
    assert torch.equal(copy.test_labels, original.test_labels)

    flipped = bytearray(content)
    flipped[1000] ^= 1
    images.write_bytes(gzip.compress(bytes(flipped), 1))
    with pytest.raises(DataError, match=r"t10k-images.*has SHA-256 .*expected 5b4141f0.*Replace"):
        load_dataset("fashion-mnist", tmp_path)


def write_cifar(cifar, folder: Path, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Write random files in the publisher's layout; returns their records [records, bytes]."""
    folder.mkdir(parents=True)
    tables = {}
    for name in (*cifar.train_files, cifar.test_file):
        records = cifar.test_records if name == cifar.test_file else cifar.train_records
        columns = [rng.integers(0, count, (records, 1)) for count in cifar.label_ranges]
        pixels = rng.integers(0, 256, (records, 3072))
        tables[name] = np.concatenate([*columns, pixels], axis=1).astype(np.uint8)
        (folder / name).write_bytes(tables[name].tobytes())
    return tables


def packed(cifar, root: Path, *others: tarfile.TarInfo):
    """Write an archive of ``root / unpacked``, and others of 4 bytes; returns it with its MD5."""
    target = root / cifar.name / cifar.archive.name
    target.parent.mkdir(exist_ok=True)
    with tarfile.open(target, "w:gz") as archive:
        archive.add(root / "unpacked", cifar.folder)
        for member in others:
            archive.addfile(member, io.BytesIO(b"evil"))
    digest = md5(target.read_bytes(), usedforsecurity=False).hexdigest()
    return replace(cifar, archive=replace(cifar.archive, digest=f"md5:{digest}"))


@pytest.fixture(params=[CIFAR10, CIFAR100], ids=["cifar10", "cifar100"])
def small_cifar(request):
    return replace(request.param, train_records=7, test_records=4)


def test_cifar_records_become_the_correct_images_and_labels(small_cifar, tmp_path):
    tables = write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(0))
    data = packed(small_cifar, tmp_path).load(tmp_path)
    assert data.verification == "MD5 of the archive"
    assert data.train_inputs.shape == (7 * len(small_cifar.train_files), 3, 32, 32)
    assert data.test_inputs.shape == (4, 3, 32, 32)
    first = len(small_cifar.label_ranges)
    table = np.concatenate([tables[name] for name in small_cifar.train_files])
    for record, channel, row, column in [(0, 0, 0, 1), (3, 1, 2, 0), (6, 2, 31, 30)]:
        byte = table[record, first + 1024 * channel + 32 * row + column]
        assert data.train_inputs[record, channel, row, column] == pytest.approx(byte / 127.5 - 1)
    np.testing.assert_array_equal(data.train_labels, table[:, first - 1])
    np.testing.assert_array_equal(data.test_labels, tables[small_cifar.test_file][:, first - 1])


def test_damaged_cifar_files_are_named(small_cifar, tmp_path):
    tables = write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(1))
    victim = tmp_path / "unpacked" / small_cifar.train_files[-1]
    table = tables[victim.name]

    victim.write_bytes(table.tobytes()[:-1])
    with pytest.raises(DataError, match=rf"{victim.name}: {table.size - 1} bytes, expected"):
        packed(small_cifar, tmp_path).load(tmp_path)
    for column, count in enumerate(small_cifar.label_ranges):
        wrong = table.copy()
        wrong[2, column] = count
        victim.write_bytes(wrong.tobytes())
        with pytest.raises(DataError, match=rf"record 2 has label {count} in byte {column}"):
            packed(small_cifar, tmp_path).load(tmp_path)
    victim.unlink()
    with pytest.raises(DataError, match=rf"not a tar.gz with .*{victim.name}"):
        packed(small_cifar, tmp_path).load(tmp_path)


def test_cifar_archives_are_checked(small_cifar, tmp_path):
    write_cifar(small_cifar, tmp_path / "unpacked", np.random.default_rng(2))
    archive = tmp_path / small_cifar.name / packed(small_cifar, tmp_path).archive.name
    with pytest.raises(DataError, match=rf"MD5 .*{small_cifar.archive.digest[4:]}.*Replace it"):
        small_cifar.load(tmp_path)  # random records do not have the published digest
    archive.write_bytes(b"no archive")
    digest = md5(b"no archive", usedforsecurity=False).hexdigest()
    other = replace(small_cifar, archive=replace(small_cifar.archive, digest=f"md5:{digest}"))
    with pytest.raises(DataError, match=rf"{archive.name}: not a tar.gz with"):
        other.load(tmp_path)


def test_nothing_in_an_archive_is_executed_or_extracted(tmp_path):
    """Files in an archive are read by name, and a hostile path is ignored."""
    cifar = replace(CIFAR100, train_records=2, test_records=2)
    write_cifar(cifar, tmp_path / "unpacked", np.random.default_rng(3))
    member = tarfile.TarInfo("../escaped")
    member.size = 4
    packed(cifar, tmp_path, member).load(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cifar100", "unpacked"]
    assert [path.name for path in (tmp_path / "cifar100").iterdir()] == [cifar.archive.name]
