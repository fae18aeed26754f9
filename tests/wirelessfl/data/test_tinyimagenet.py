"""TinyImageNet: reading the zip file, and errors for damaged files."""

import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from wirelessfl.data import files, load_dataset
from wirelessfl.data.tinyimagenet import load_tiny_imagenet
from wirelessfl.errors import DataError

WNIDS = ["n02", "n01", "n03"]  # not sorted: labels follow the file's order
TRAIN = {"n01": 2, "n02": 3, "n03": 1}
ARCHIVE = "tiny-imagenet-200.zip"
TEST = {"val_1.JPEG": "n03", "val_0.JPEG": "n01"}


def colour(wnid: str, number: int) -> tuple[int, int, int]:
    """The colour of an image; a JPEG of a single colour is exact up to rounding."""
    return (40 * int(wnid[1:]), 30 * number + 20, 200)


def jpeg(shade: tuple[int, int, int] | int, size: tuple[int, int] = (64, 64)) -> bytes:
    mode = "L" if isinstance(shade, int) else "RGB"
    out = io.BytesIO()
    Image.new(mode, size, shade).save(out, "JPEG", quality=95)
    return out.getvalue()


def write(root: Path) -> None:
    """Write a tiny data set in the published format; its image val_0 is grey."""
    for wnid, count in TRAIN.items():
        images = root / "train" / wnid / "images"
        images.mkdir(parents=True)
        for number in range(count):
            (images / f"{wnid}_{number}.JPEG").write_bytes(jpeg(colour(wnid, number)))
        boxes = "".join(f"{wnid}_{number}.JPEG\t0\t0\t62\t62\n" for number in range(count))
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text(boxes)
    (root / "val" / "images").mkdir(parents=True)
    (root / "val" / "images" / "val_1.JPEG").write_bytes(jpeg((255, 0, 0)))
    (root / "val" / "images" / "val_0.JPEG").write_bytes(jpeg(77))
    lines = "".join(f"{image}\t{wnid}\t0\t32\t44\t62\n" for image, wnid in TEST.items())
    (root / "val" / "val_annotations.txt").write_text(lines)
    (root / "wnids.txt").write_text("\n".join(WNIDS))
    (root / "words.txt").write_text("n01\ta word\n")
    (root / "test" / "images").mkdir(parents=True)
    (root / "test" / "images" / "test_0.JPEG").write_bytes(b"not read: it has no label")


def pack(root: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(root.rglob("*")):
            packed.write(path, f"tiny-imagenet-200/{path.relative_to(root).as_posix()}")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "tinyimagenet"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path):
    """The unpacked files."""
    write(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def test_images_have_the_correct_order_labels_and_colours(root, home, tmp_path):
    pack(root, home / ARCHIVE)
    data = load_dataset("tinyimagenet", tmp_path)
    assert data.classes == 3
    assert data.train_labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert data.test_labels.tolist() == [2, 1]
    assert data.train_inputs.shape == (6, 3, 64, 64)
    assert "6 and 2 images in 3 classes" in data.verification
    assert "not checksummed" in data.verification
    colours = [colour(wnid, n) for wnid in WNIDS for n in range(TRAIN[wnid])]
    colours += [(255, 0, 0), (77, 77, 77)]
    inputs = torch.cat([data.train_inputs, data.test_inputs])
    for image, shades in zip(inputs, colours, strict=True):
        for channel, shade in zip(image, shades, strict=True):  # JPEG rounds by a few levels
            assert (channel - (shade / 127.5 - 1)).abs().max() < 4 / 127.5


def test_pixels_are_those_of_the_jpeg(root, home, tmp_path):
    """An image that varies along all axes is read without transposition."""
    steps = np.arange(64)
    picture = np.stack(np.broadcast_arrays(4 * steps[:, None], 2 * steps, steps[:, None]), -1)
    path = root / "train/n02/images/n02_1.JPEG"
    Image.fromarray(picture.astype(np.uint8)).save(path, "JPEG", quality=95)
    decoded = np.asarray(Image.open(path))
    pack(root, home / ARCHIVE)
    image = load_dataset("tinyimagenet", tmp_path).train_inputs[1]
    for row, column, channel in ((0, 5, 0), (60, 5, 0), (3, 60, 1), (60, 3, 1), (63, 0, 2)):
        byte = decoded[row, column, channel]
        assert image[channel, row, column] == pytest.approx(byte / 127.5 - 1, abs=1e-6)


def damage(name):
    """A change that damages the files, and the expected message."""
    image = "train/n01/images/n01_1.JPEG"

    def annotate(text):
        return lambda root: (root / "val/val_annotations.txt").write_text(text)

    def put(path, content):
        return lambda root: (root / path).write_bytes(content)

    def unknown_class(root):
        shutil.copytree(root / "train/n01", root / "train/n09")

    def empty_class(root):
        shutil.rmtree(root / "train/n03/images")

    return {
        "no annotations": (
            lambda root: (root / "val/val_annotations.txt").unlink(),
            r"has no val/val_annotations.txt\. Download it again",
        ),
        "a class without images": (empty_class, r"class n03 has no images in train/n03/images/"),
        "a class that is not in wnids.txt": (unknown_class, r"1 folders of classes .* e\.g\. n09"),
        "no classes": (put("wnids.txt", b"\n"), r"wnids.txt contains no classes"),
        "a class twice": (put("wnids.txt", b"n01\nn02\nn01\nn03\n"), "contains n01 more than once"),
        "a training image missing": (
            lambda root: (root / image).unlink(),
            r"has no train/n01/images/n01_1.JPEG, which train/n01/n01_boxes.txt names \(1 such",
        ),
        "an unknown class in validation": (
            annotate("val_1.JPEG\tn03\nval_0.JPEG\tn07\n"),
            r"annotation 2: class 'n07' of val_0.JPEG is not in wnids.txt",
        ),
        "an annotation without a class": (annotate("val_1.JPEG\n"), "annotation 1: class ''"),
        "an image annotated twice": (
            annotate("val_1.JPEG\tn03\nval_1.JPEG\tn01\n"),
            "annotation 2: val_1.JPEG appears twice",
        ),
        "a validation image missing": (
            annotate("val_1.JPEG\tn03\nval_0.JPEG\tn01\nval_2.JPEG\tn01\n"),
            r"has no val/images/val_2.JPEG, which val/val_annotations.txt names",
        ),
        "a validation image without label": (
            annotate("val_1.JPEG\tn03\n"),
            r"does not name val/images/val_0.JPEG \(1 such",
        ),
        "wrong size": (put(image, jpeg((1, 2, 3), (64, 63))), "n01_1.JPEG is 64x63, expected"),
        "truncated": (put(image, jpeg(colour("n01", 1))[:-200]), "n01_1.JPEG is not a JPEG or is"),
        "not an image": (put(image, b"<html>"), "n01_1.JPEG is not a JPEG or is damaged"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "no annotations",
        "a class without images",
        "a class that is not in wnids.txt",
        "no classes",
        "a class twice",
        "a training image missing",
        "an unknown class in validation",
        "an annotation without a class",
        "an image annotated twice",
        "a validation image missing",
        "a validation image without label",
        "wrong size",
        "truncated",
        "not an image",
    ],
)
def test_damage_is_named(name, root, home, tmp_path):
    do, message = damage(name)
    do(root)
    pack(root, home / ARCHIVE)
    with pytest.raises(DataError, match=message):
        load_dataset("tinyimagenet", tmp_path)


def test_a_damaged_zip_is_named(root, home, tmp_path):
    archive = home / ARCHIVE
    pack(root, archive)
    content = archive.read_bytes()
    archive.write_bytes(content[:-100])
    with pytest.raises(DataError, match=r"tiny-imagenet-200.zip cannot be opened .* Download it"):
        load_dataset("tinyimagenet", tmp_path)
    at = content.index(jpeg(colour("n03", 0))) + 300
    archive.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(DataError, match=r"n03_0.JPEG cannot be read \(Bad CRC-32"):
        load_dataset("tinyimagenet", tmp_path)


def test_absent_files_are_explained(home, tmp_path, monkeypatch):
    """The error gives the download address; there is no download without a published checksum."""
    address = r"http://cs231n\.stanford\.edu/tiny-imagenet-200\.zip"
    with pytest.raises(DataError, match=rf"no tiny-imagenet-200.zip.*not downloaded.*{address}"):
        load_dataset("tinyimagenet", tmp_path)
    with pytest.raises(DataError, match=rf"needs a folder 'tinyimagenet'.*Download .*{address}"):
        load_dataset("tinyimagenet", tmp_path / "elsewhere")
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(DataError, match=rf"cache/tinyimagenet has no .*{address}"):
        load_dataset("tinyimagenet")


def test_progress_is_drawn_on_terminals_only(root, home, tmp_path):
    pack(root, home / ARCHIVE)
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        load_tiny_imagenet(tmp_path, console)
        drawn = console.file.getvalue()
        assert ("8/8" in drawn) == terminal
        assert bool(drawn) == terminal
