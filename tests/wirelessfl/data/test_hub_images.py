"""Copies from the hub and folders of images: pixels, labels, places, and errors for wrong files."""

import io
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from rich.console import Console

import wirelessfl
from tests.wirelessfl.data.hub_files import LABELS, SMALL, encoded, pictures, write, write_parts
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import load_dataset
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.hub_images import CIFAR10_JPEG, HubImages, own_images
from wirelessfl.errors import ConfigError, DataError

RUN = "--clients 2 --rounds 1 --local-steps 1 --batch-size 2 --threads 1 --split iid".split()


def same_pixels(inputs, pixels):
    """Inputs are these pixels exactly, channels first, scaled from bytes to [-1, 1]."""
    channels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    bytes_again = (inputs + 1) * 127.5
    np.testing.assert_array_equal(bytes_again.round().byte().numpy(), channels)
    torch.testing.assert_close(bytes_again, bytes_again.round(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("inner", ["", "data", "cropped_digits"])
@pytest.mark.parametrize(
    "columns", [{}, {"image": "image", "plain": True}], ids=["struct", "bytes"]
)
def test_png_pixels_and_labels_are_exact_in_all_three_folders(inner, columns, tmp_path):
    numbered = ("train-00000-of-00001", "test-00000-of-00001")
    pixels = write_parts(tmp_path / "svhn" / inner, names=numbered, **columns)
    data = SMALL.load(tmp_path)
    same_pixels(data.train_inputs, pixels["train"])
    same_pixels(data.test_inputs, pixels["test"])
    assert data.train_labels.tolist() == LABELS["train"]
    assert data.test_labels.tolist() == LABELS["test"]
    assert (data.name, data.classes, data.input_shape) == ("svhn", 10, (3, 32, 32))
    assert data.verification == "hub copy, PNG: structure and labels; not checksummed"
    assert not data.lossy


def test_numbered_files_are_read_in_order_and_in_blocks(tmp_path):
    """The order is that of the numbers, across blocks of images; a hash in a name is ignored."""
    labels = np.arange(1100) % 7
    pixels = pictures(1100, (2, 2))
    contents = [encoded(image) for image in pixels]
    for number, name in enumerate(("00000-of-00003", "00001-of-00003-0a1b", "00002-of-00003")):
        rows = slice(*[(0, 600), (600, 601), (601, 1100)][number])
        write(tmp_path / f"train-{name}.parquet", contents[rows], labels[rows])
    write(tmp_path / "test.parquet", contents[:1], labels[:1])
    data = own_images(tmp_path).load()
    same_pixels(data.train_inputs, pixels)
    assert data.train_labels.tolist() == labels.tolist()
    (tmp_path / "train-00001-of-00003-0a1b.parquet").unlink()
    with pytest.raises(DataError, match=r"00002-of-00003.*, but train needs each of its 3 numb"):
        own_images(tmp_path).load()


def test_jpeg_images_are_lossy_and_mixtures_too(tmp_path):
    home = tmp_path / "cifar10-jpeg"
    write_parts(home, "JPEG")
    small = replace(CIFAR10_JPEG, counts=(5, 2))
    data = small.load(tmp_path)
    assert data.lossy
    assert data.verification == "hub copy, JPEG (lossy): structure and labels; not checksummed"
    decoded = [
        np.asarray(Image.open(io.BytesIO(row["bytes"])))
        for row in parquet.read_table(home / "train.parquet").column("img").to_pylist()
    ]
    same_pixels(data.train_inputs, np.stack(decoded))
    contents = [encoded(image, "PNG") for image in decoded[:4]] + [encoded(decoded[4], "JPEG")]
    write(home / "train.parquet", contents, LABELS["train"])
    write(home / "test.parquet", contents[:2], LABELS["test"])
    data = small.load(tmp_path)
    assert data.lossy
    assert "PNG and JPEG (lossy)" in data.verification


def test_grey_images_are_converted_for_published_sets_and_kept_for_own_ones(tmp_path):
    pixels = write_parts(tmp_path / "svhn", shape=(32, 32))
    published = SMALL.load(tmp_path)
    same_pixels(published.train_inputs, np.repeat(pixels["train"][..., None], 3, axis=-1))
    own = load_dataset(str(tmp_path / "svhn"))
    same_pixels(own.train_inputs, pixels["train"])
    assert own.input_shape == (1, 32, 32)
    assert (own.name, own.classes) == ("svhn", 10)


def test_own_images_may_have_any_size_and_integer_labels(tmp_path):
    pixels = write_parts(tmp_path / "data", shape=(3, 5, 3))
    table = parquet.read_table(tmp_path / "data/train.parquet")
    narrow = table.set_column(1, "label", table.column("label").cast(pyarrow.uint8()))
    parquet.write_table(narrow, tmp_path / "data/train.parquet")
    data = load_dataset(f"{tmp_path}/")
    same_pixels(data.train_inputs, pixels["train"])
    assert data.input_shape == (3, 3, 5)
    assert data.train_labels.dtype == torch.int64


@pytest.mark.parametrize(
    ("cifar", "inner", "label"),
    [
        (CIFAR10, "plain_text", "label"),
        (CIFAR100, "cifar100", "fine_label"),
        (CIFAR100, "data", "label"),
    ],
    ids=["cifar10", "cifar100", "cifar100 label"],
)
def test_cifar_reads_a_hub_copy_only_without_the_published_files(cifar, inner, label, tmp_path):
    per_file = 5 // len(cifar.train_files)
    small = replace(cifar, train_records=per_file, test_records=2)
    home = tmp_path / cifar.name
    pixels = write_parts(home / inner, label=label)
    data = small.load(tmp_path)
    same_pixels(data.train_inputs, pixels["train"])
    assert data.train_labels.tolist() == LABELS["train"]
    assert data.classes == cifar.label_ranges[-1]
    labels = len(cifar.label_ranges)
    record = np.full(labels + 3072, 5, np.uint8)
    for name in cifar.train_files:
        (home / name).write_bytes(record.tobytes() * per_file)
    with pytest.raises(DataError, match=f"has no {cifar.test_file}"):  # as without a hub copy
        small.load(tmp_path)
    (home / cifar.test_file).write_bytes(record.tobytes() * 2)
    data = small.load(tmp_path)
    assert data.train_labels.tolist() == [5] * 5
    assert "hub" not in data.verification
    shutil.rmtree(home)
    home.mkdir()
    with pytest.raises(DataError, match=f"has no {cifar.archive.name}"):
        small.load(tmp_path)


def test_pyarrow_is_needed(tmp_path, monkeypatch):
    write_parts(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"reading parquet needs pyarrow.*pip install pyarrow\)\."):
        own_images(tmp_path).load()


def test_progress_is_drawn_on_terminals_only(tmp_path):
    write_parts(tmp_path)
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        own_images(tmp_path).load(console=console)
        assert ("7/7" in console.file.getvalue()) == terminal
        assert bool(console.file.getvalue()) == terminal


def test_a_path_runs_from_flags_toml_and_tasks_and_resumes_elsewhere(tmp_path, monkeypatch, capsys):
    """A relative path is stored as an absolute one; titles have the folder's name."""
    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path / "my-images", "JPEG")
    words = ["run", "fedavg", "--dataset", "./my-images", "--model", "cifar-cnn", *RUN]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "data set my-images: hub copy, JPEG (lossy): structure" in shown.err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("fedavg-my-images-")
    config = Config.from_toml(folder / "config.toml")
    assert config.dataset.name == str(tmp_path / "my-images")
    assert list(config.tasks) == ["my-images"]
    told = json.loads((folder / "about.json").read_text())
    assert "JPEG (lossy)" in told["data"]["my-images"]

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
    with pytest.raises(DataError, match=r"empty has no train\.parquet and test\.parquet.*Complete"):
        load_dataset("./empty")
    with pytest.raises(ConfigError, match=r"'empty' is unknown.* folder of images by its path, s"):
        load_dataset("empty")


@pytest.mark.realdata
def test_the_test_part_of_the_real_jpeg_copy(real_data, tmp_path):
    """10,000 images, 1000 of each class; and 50,000 training labels, 5000 of each class."""
    home = real_data / "cifar10-jpeg"
    if not home.is_dir():
        pytest.skip(f"no cifar10-jpeg in {real_data}")
    (train,) = home.glob("train-*.parquet")
    labels = parquet.read_table(train, columns=["label"]).column("label").to_numpy()
    assert np.bincount(labels).tolist() == [5000] * 10
    (test,) = home.glob("test-*.parquet")
    small = parquet.ParquetFile(test)
    rows = next(small.iter_batches(batch_size=10))
    parquet.write_table(pyarrow.Table.from_batches([rows]), tmp_path / "train.parquet")
    shutil.copy(test, tmp_path / "test.parquet")
    small.close()
    data = HubImages("real", "", classes=10, side=32, folder=tmp_path).load()
    assert data.test_inputs.shape == (10_000, 3, 32, 32)
    assert data.test_inputs.aminmax() == (-1, 1)
    assert data.test_labels.bincount().tolist() == [1000] * 10
    assert data.lossy
    torch.testing.assert_close(data.train_inputs, data.test_inputs[:10], rtol=0, atol=0)
