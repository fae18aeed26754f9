"""Copies from the hub: pixels, labels, and errors for wrong files."""

import io
import shutil
import struct
import sys
import zlib
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from rich.console import Console

from wirelessfl.base.errors import DataError
from wirelessfl.data import files, load_dataset
from wirelessfl.data.cifar import CIFAR10, CIFAR100
from wirelessfl.data.hub_images import CIFAR10_JPEG, FORMATS, SVHN, HubImages

LABELS = {"train": [3, 0, 9, 1, 0], "test": [9, 2]}
SMALL = replace(SVHN, counts=(5, 2))
STRUCT = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])


def pictures(count, shape=(32, 32, 3), seed=0):
    """Random pixels [count, height, width(, 3)]."""
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def encoded(pixels, kind="PNG", mode=None):
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(out, kind, quality=95)
    return out.getvalue()


def write(path, contents, labels, *, image="img", label="label", plain=False):
    """Write a file with these bytes and labels: structs of bytes and path, or plain bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [c if plain else {"bytes": c, "path": None} for c in contents]
    rows = pyarrow.array(rows, pyarrow.binary() if plain else STRUCT)
    parquet.write_table(pyarrow.table({image: rows, label: labels}), path)


def write_parts(folder, kind="PNG", shape=(32, 32, 3), **columns):
    """Write both parts; returns the pixels of each."""
    found = {}
    for seed, (part, labels) in enumerate(LABELS.items()):
        found[part] = pictures(len(labels), shape, seed)
        contents = [encoded(pixels, kind) for pixels in found[part]]
        write(folder / f"{part}.parquet", contents, labels, **columns)
    return found


def same_pixels(inputs, pixels):
    """Inputs are these pixels exactly, channels first, scaled from bytes to [-1, 1]."""
    channels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    bytes_again = (inputs + 1) * 127.5
    np.testing.assert_array_equal(bytes_again.round().byte().numpy(), channels)
    torch.testing.assert_close(bytes_again, bytes_again.round(), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "columns", [{}, {"image": "image", "plain": True}], ids=["struct", "bytes"]
)
def test_png_pixels_and_labels_are_exact(columns, tmp_path):
    pixels = write_parts(tmp_path / "svhn", **columns)
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
    labels = (np.arange(1100) % 7).astype(np.uint8)
    pixels = pictures(1100, (32, 32))
    contents = [encoded(image) for image in pixels]
    home, large = tmp_path / "svhn", replace(SVHN, counts=(1100, 1))
    for number, name in enumerate(("00000-of-00003", "00001-of-00003-0a1b", "00002-of-00003")):
        rows = slice(*[(0, 600), (600, 601), (601, 1100)][number])
        write(home / f"train-{name}.parquet", contents[rows], labels[rows])
    write(home / "test.parquet", contents[:1], labels[:1])
    data = large.load(tmp_path)
    same_pixels(data.train_inputs, np.repeat(pixels[..., None], 3, axis=-1))
    assert data.train_labels.tolist() == labels.tolist()
    assert data.train_labels.dtype == torch.int64
    (home / "train-00001-of-00003-0a1b.parquet").unlink()
    with pytest.raises(DataError, match=r"00002-of-00003.*, but train needs each of its 3 numb"):
        large.load(tmp_path)


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


def test_grey_images_are_converted(tmp_path):
    pixels = write_parts(tmp_path / "svhn", shape=(32, 32))
    data = SMALL.load(tmp_path)
    same_pixels(data.train_inputs, np.repeat(pixels["train"][..., None], 3, axis=-1))


@pytest.mark.parametrize(
    ("cifar", "label"),
    [(CIFAR10, "label"), (CIFAR100, "fine_label"), (CIFAR100, "label")],
    ids=["cifar10", "cifar100", "cifar100 label"],
)
def test_cifar_reads_a_hub_copy_only_without_the_archive(cifar, label, tmp_path):
    small = replace(cifar, train_records=5 // len(cifar.train_files), test_records=2)
    home = tmp_path / cifar.name
    pixels = write_parts(home, label=label)
    data = small.load(tmp_path)
    same_pixels(data.train_inputs, pixels["train"])
    assert data.train_labels.tolist() == LABELS["train"]
    assert data.classes == cifar.label_ranges[-1]
    (home / cifar.archive.name).write_bytes(b"no archive")
    with pytest.raises(DataError, match=f"{cifar.archive.name}: content has MD5"):
        small.load(tmp_path)
    for path in home.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=f"has no {cifar.archive.name}"):
        small.load(tmp_path)


def test_pyarrow_is_needed(tmp_path, monkeypatch):
    write_parts(tmp_path / "svhn")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"reading parquet needs pyarrow.*pip install pyarrow\)\."):
        SMALL.load(tmp_path)


def test_progress_is_drawn_on_terminals_only(tmp_path):
    write_parts(tmp_path / "svhn")
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        SMALL.load(tmp_path, console)
        assert ("7/7" in console.file.getvalue()) == terminal
        assert bool(console.file.getvalue()) == terminal


def chunk(kind, data):
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def deep(side=32):
    """An RGB PNG with 16 bits per channel, which Pillow reads but does not write."""
    rows = zlib.compress((b"\0" + bytes(range(6)) * side) * side)
    header = struct.pack(">IIBBBBB", side, side, 16, 2, 0, 0, 0)
    return FORMATS["PNG"] + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def wrong(name):
    """A change to a file of five images, and the expected message."""
    good = [encoded(pixels) for pixels in pictures(5)]
    labels = LABELS["train"]

    def put(contents=good, labels=labels, **columns):
        return lambda path: write(path, contents, labels, **columns)

    def second(content):
        return put([good[0], content, *good[2:]])

    def texts(path):
        rows = {"img": [f"{i}.png" for i in range(5)], "label": labels}
        parquet.write_table(pyarrow.table(rows), path)

    def path_only(path):
        rows = [{"bytes": content, "path": None} for content in good[:4]]
        rows.append({"bytes": None, "path": "a.png"})
        table = {"img": pyarrow.array(rows, STRUCT), "label": labels}
        parquet.write_table(pyarrow.table(table), path)

    def two_labels(path):
        first = parquet.read_table(path)
        parquet.write_table(first.append_column("label", first.column("label")), path)

    return {
        "no image column": (put(image="pixels"), r"the columns are pixels, label; expected img or"),
        "no label column": (put(label="class"), r"the columns are img, class; .*, and label\."),
        "text instead of images": (texts, r"column img has type string, expected bytes or a str"),
        "only a path": (path_only, r"row 4: the image has no bytes, only the path 'a\.png'\."),
        "null": (second(None), r"row 1: the image has no bytes\."),
        "no image": (second(b"<html>"), r"row 1: the image is neither PNG nor JPEG\."),
        "truncated PNG": (second(good[1][:-900]), r"row 1: damaged PNG image \(.+\)\."),
        "truncated JPEG": (
            second(encoded(pictures(1)[0], "JPEG")[:-300]),
            r"row 1: damaged JPEG image \(.+\)\.",
        ),
        "other size": (
            second(encoded(pictures(1, (32, 31, 3))[0])),
            r"row 1: the image is 31x32, expected 32x32\.",
        ),
        "transparent": (
            second(encoded(pictures(1)[0], mode="RGBA")),
            r"row 1: the image has mode RGBA, expected RGB or L \(8-bit grey\)\.",
        ),
        "16 bits": (second(deep()), r"row 1: the image has 16 bits per channel, expected at most"),
        "transparent colour": (
            second(good[1][:33] + chunk(b"tRNS", bytes(6)) + good[1][33:]),
            r"row 1: the image has a transparent colour \(chunk tRNS\), expected none\.",
        ),
        "label too large": (put(labels=[0, 1, 2, 10, 4]), r"row 3: the label is 10, expected 0 to"),
        "label negative": (put(labels=[0, -1, 2, 1, 4]), r"row 1: the label is -1, expected 0 to"),
        "label null": (put(labels=[0, 1, None, 1, 4]), r"row 2: the label is null\."),
        "label not integer": (
            put(labels=[0.5, 1, 2, 1, 4]),
            r"column label has type double, e\.g\. 0\.5 in row 0; labels must be integers >= 0\.",
        ),
        "label text": (put(labels=["cat"] * 5), r"has type string, e\.g\. 'cat' in row 0"),
        "no rows": (put([], pyarrow.array([], "int64")), r" has no rows\."),
        "not parquet": (
            lambda path: path.write_bytes(b"PAR1 no parquet PAR1"),
            r"damaged parquet file \(.+\)\.",
        ),
        "two label columns": (two_labels, r"damaged parquet file \(.*label.*\)\."),
        "damaged column name": (
            lambda path: path.write_bytes(path.read_bytes().replace(b"label", b"lab\xffl")),
            r"damaged parquet file \(.*can't decode byte.*\)\.",
        ),
        "truncated parquet": (
            lambda path: path.write_bytes(path.read_bytes()[:-40]),
            r"damaged parquet file \(.+\)\.",
        ),
    }[name]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "name",
    [
        "no image column",
        "no label column",
        "text instead of images",
        "only a path",
        "null",
        "no image",
        "truncated PNG",
        "truncated JPEG",
        "other size",
        "transparent",
        "16 bits",
        "transparent colour",
        "label too large",
        "label negative",
        "label null",
        "label not integer",
        "label text",
        "no rows",
        "not parquet",
        "two label columns",
        "damaged column name",
        "truncated parquet",
    ],
)
def test_wrong_files_are_named_in_one_line_with_a_remedy(name, tmp_path):
    home = tmp_path / "svhn"
    write_parts(home)
    do, message = wrong(name)
    do(home / "train.parquet")
    with pytest.raises(DataError, match=rf"svhn/train\.parquet.*{message}.*Download") as caught:
        SMALL.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_message_for_a_wrong_image_has_place_and_remedy_once(tmp_path):
    write_parts(tmp_path / "svhn")
    test = tmp_path / "svhn" / "test.parquet"
    write(test, [encoded(pixels) for pixels in pictures(2, (9, 8, 3))], [0, 1])
    with pytest.raises(DataError) as caught:
        SMALL.load(tmp_path)
    assert str(caught.value) == f"{test}, row 0: the image is 8x9, expected 32x32. {SMALL.remedy}"


def test_damaged_pages_are_named(tmp_path):
    """The footer is intact, but the images' pages are not."""
    write_parts(tmp_path / "svhn")
    train = tmp_path / "svhn" / "train.parquet"
    content = bytearray(train.read_bytes())
    content[4:2000] = bytes(1996)
    train.write_bytes(content)
    with pytest.raises(DataError, match=r"train\.parquet: damaged parquet file \(.*Download all"):
        SMALL.load(tmp_path)


def test_missing_parts_and_images_are_named(tmp_path, monkeypatch):
    home = tmp_path / "svhn"
    write_parts(home)
    with pytest.raises(DataError, match=r"svhn has 5 training and 2 test images, but svhn has 73"):
        load_dataset("svhn", tmp_path)
    (home / "test.parquet").unlink()
    with pytest.raises(DataError, match=r"svhn has no test\.parquet, nor numbered .* Download"):
        load_dataset("svhn", tmp_path)
    (home / "train.parquet").unlink()
    with pytest.raises(DataError, match=r"svhn has no train\.parquet, nor numbered files"):
        load_dataset("svhn", tmp_path)
    for name, remedy in (("svhn", "Download all .*/svhn"), ("cifar10-jpeg", "Use the train and t")):
        with pytest.raises(DataError, match=rf"needs a folder '{name}'.*{remedy}"):
            load_dataset(name, tmp_path / "elsewhere")
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match=r"cache/svhn has no train\.parquet"):  # no download
        load_dataset("svhn")


@pytest.mark.thorough
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
    data = HubImages("real", "", classes=10, counts=(10, 10_000)).read(tmp_path)
    assert data.test_inputs.shape == (10_000, 3, 32, 32)
    assert data.test_inputs.aminmax() == (-1, 1)
    assert data.test_labels.bincount().tolist() == [1000] * 10
    assert data.lossy
    torch.testing.assert_close(data.train_inputs, data.test_inputs[:10], rtol=0, atol=0)
