"""Writes parquet files of images and labels."""

import io
from dataclasses import replace

import numpy as np
import pyarrow
from PIL import Image
from pyarrow import parquet

from wirelessfl.data.hub_images import SVHN

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


def write_parts(folder, kind="PNG", shape=(32, 32, 3), names=("train", "test"), **columns):
    """Write both parts; returns the pixels of each."""
    found = {}
    for seed, (part, labels) in enumerate(LABELS.items()):
        found[part] = pictures(len(labels), shape, seed)
        contents = [encoded(pixels, kind) for pixels in found[part]]
        write(folder / f"{names[seed]}.parquet", contents, labels, **columns)
    return found
