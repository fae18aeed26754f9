"""Objects and files for configurations: data sets, models, networks, traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import wirelessfl
from channels import Network, Rician, Stream
from wirelessfl.data import Dataset
from wirelessfl.extend import Candidates, IntArray, Selection

LINES = (
    "Now is the time to say what must be said, and to hear it.",
    "I hear you well, my lord, and yet I do not see what you would have.",
    "What I would have is rest; what I have is none of it.",
)


def _dataset(name: str, inputs: Tensor, classes: int, **options: Any) -> Dataset:
    """A data set with random labels; the first three quarters of ``inputs`` are training data."""
    random = Stream(7, (name, "labels")).generator()
    labels = torch.from_numpy(random.integers(0, classes, len(inputs)))
    cut = 3 * len(inputs) // 4
    parts = inputs[:cut], labels[:cut], inputs[cut:], labels[cut:]
    return Dataset(name, *parts, classes, **options)


def _images(*shape: int) -> Dataset:
    pixels = Stream(7, ("images",)).generator().uniform(-1, 1, (64, *shape))
    return _dataset("images", torch.from_numpy(pixels).float(), 4)


def small_images() -> Dataset:
    """Images of 28x28 with one channel."""
    return _images(1, 28, 28)


def colour_images() -> Dataset:
    """Images of 32x32 with three channels."""
    return _images(3, 32, 32)


def points() -> Dataset:
    """Points with nine features, divided among twelve natural clients."""
    inputs = torch.from_numpy(Stream(7, ("points",)).generator().standard_normal((240, 9)))
    return _dataset("points", inputs.float(), 4, groups=np.arange(180) % 12)


def reals() -> Dataset:
    """The inputs of ``points`` with two real labels per sample."""
    data = points()
    parts = (data.train_inputs, data.test_inputs)
    train, test = (x[:, :2] * x[:, 2:4] for x in parts)
    return Dataset("reals", parts[0], train, parts[1], test)


def several() -> Dataset:
    """The inputs of ``points`` with three labels in {0, 1} per sample."""
    data = points()
    parts = (data.train_inputs, data.test_inputs)
    train, test = ((x[:, :3] > 0).float() for x in parts)
    return Dataset("several", parts[0], train, parts[1], test)


def called_mnist() -> Dataset:
    """The data set ``points`` under the name mnist, which has a published step time."""
    return replace(points(), name="mnist")


def letters() -> Dataset:
    """Sequences of six letters from an alphabet of five; labels are letters too."""
    ids = Stream(7, ("letters",)).generator().integers(0, 5, (160, 6))
    return _dataset("letters", torch.from_numpy(ids), 5)


def tokens() -> Dataset:
    """Sequences of eight token ids below twelve; token 0 is padding."""
    ids = Stream(7, ("tokens",)).generator().integers(1, 12, (160, 8))
    ids[::2, 6:] = 0
    return _dataset("tokens", torch.from_numpy(ids), 3, pad_id=0, vocabulary=12)


class Residual(nn.Module):
    """A network with a residual connection; it is not a chain of layers and trains under vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(9, 12), nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, 4] of points [batch, 9]."""
        hidden = torch.relu(self.first(x))
        return self.last(hidden + torch.tanh(self.second(hidden)))


def residual() -> nn.Module:
    """A ``Residual`` with fixed initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return Residual()


def batch_norm() -> nn.Module:
    """A model with batch norm, which mixes samples, so that clients train one after another."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        norm = nn.BatchNorm1d(8, track_running_stats=False)
        return nn.Sequential(nn.Linear(9, 8), norm, nn.Linear(8, 4))


def uneven_network() -> Network:
    """Eight clients in three cells of unequal size, speed, gain and bandwidth."""
    return Network.from_snr(
        [0, 0, 0, 0, 1, 1, 1, 2],
        cpu_hz=np.linspace(1e9, 4e9, 8),
        snr_db=np.linspace(10, 30, 8),
        bandwidth_hz=[5e6, 9e6, 7e6],
        antennas=4,
        fading=Rician(3.0),
        path_gain_db=np.linspace(-5, 5, 8),
    )


def curve(slower: int) -> wirelessfl.RoundsCurve:
    """A learning curve that depends on all that is designed.

    Args:
        slower: how much slower training is, in halves.
    """
    points = [(h, e, k, 1.0, 0.0) for h in (2, 12) for e in (1, 4) for k in (4, 8)]
    points += [(5, 2, 8, 1.5, 0.0), (5, 2, 8, 1.0, 0.5)]
    rounds, runs = range(1, 60), []
    for h, e, k, largest, noise in points:
        pace = (h * e) ** 0.5 * k**0.2 / (1 + slower / 2) / largest / (1 + noise)
        scores = [1 - 1 / (1 + 0.1 * number * pace) for number in rounds]
        runs.append(wirelessfl.Pilot(h, e, k, rounds, scores, largest=largest, noise=noise))
    return wirelessfl.fit_rounds(runs, [0.5, 0.7], bootstrap=5)


def noisy(x: Tensor, generator: torch.Generator) -> Tensor:
    """Samples with noise."""
    return x + 0.1 * torch.randn(x.shape, generator=generator, device=x.device)


def network_of(stream: Stream) -> Network:
    """The same cells with random speeds."""
    return replace(uneven_network(), cpu_hz=stream.generator().uniform(1e9, 2e9, 8))


def one_cell() -> Network:
    """Sixty clients in one cell."""
    return Network(np.zeros(60, dtype=int), cpu_hz=1e9, gain_db=-100.0, antennas=2)


def lists() -> list[list[int]]:
    """Samples of three clients, of which some are in no list and some in two."""
    return [list(range(0, 90, 2)), list(range(1, 60)), [5, 3, 77]]


def stays(folder: Path) -> dict[str, Any]:
    """A file with a trace of clients that join and leave; times are in rounds."""
    table = [(client, 0, "") for client in range(4)]
    table += [(4, 0, 1.5), (5, 0, 2.5), (6, 1.2, ""), (7, 3.1, 5.5)]
    lines = ["client,join,leave", *(",".join(map(str, stay)) for stay in table)]
    file = folder / "stays.csv"
    file.write_text("\n".join(lines) + "\n")
    return {"trace": file}


def available(folder: Path) -> dict[str, Any]:
    """A file with the times, in rounds, at which eight clients are available."""
    lines = [f"{client},{client % 3 / 2},{2 + client % 2}" for client in range(8)]
    file = folder / "available.csv"
    file.write_text("\n".join(["client,begin,end", *lines]) + "\n", encoding="utf-8")
    return {"availability_trace": file}


def shifts(folder: Path) -> dict[str, Any]:
    """A file with the times, in seconds or updates, at which eight clients are available."""
    stays = [(client, 0.2 * client, 1.6 - 0.1 * client) for client in range(6)]
    stays += [(6, 1.3, 2.0), (7, 0.0, 0.3), (7, 0.9, 2.0)]
    file = folder / "shifts.csv"
    lines = ["client,begin,end", *(",".join(map(str, stay)) for stay in stays)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"availability_trace": file}


def phones(folder: Path) -> dict[str, Any]:
    """A table of devices with batteries, and of some on mains."""
    file = folder / "phones.csv"
    lines = ["name,count,seconds_per_sample,watts,idle_watts,transmit_watts,battery_joules"]
    lines += ["phone,4,1e-4,2.0,0.1,0.5,0.01", "tablet,2,2e-4,3.0,,0.7,0.05", "board,2,5e-4,5.0,,,"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"devices": str(file)}


def power(folder: Path) -> dict[str, Any]:
    """A file with the power of sources that recharge batteries."""
    file = folder / "power.csv"
    file.write_text("seconds,watts\n0,0.1\n0.05,0\n0.1,0.3\n", encoding="utf-8")
    return {"recharge_trace": file}


def positions(folder: Path) -> dict[str, Any]:
    """A file with the positions of two base stations and six clients."""
    lines = ["kind,x_m,y_m", "base_station,0,0", "base_station,400,0"]
    lines += [f"client,{60 * number},{35 + 20 * number}" for number in range(6)]
    file = folder / "positions.csv"
    file.write_text("\n".join(lines) + "\n")
    return {"layout_file": file}


def disturbed(folder: Path) -> dict[str, Any]:
    """The same positions, with interference while each client sends."""
    file = positions(folder)["layout_file"]
    first, *lines = file.read_text().splitlines()
    watts = ["", "", *(f"{number}e-13" for number in range(6))]
    lines = [f"{line},{value}" for line, value in zip(lines, watts, strict=True)]
    file.write_text("\n".join([f"{first},interference_watts", *lines]) + "\n")
    return {"layout_file": file}


def ways(folder: Path) -> dict[str, Any]:
    """A file with the positions of eight clients in three rounds."""
    lines = ["client,round,x_m,y_m"]
    lines += [f"{c},{r},{20 + 9 * c + 30 * r},{15 * c - 40}" for c in range(8) for r in (1, 2, 4)]
    file = folder / "ways.csv"
    file.write_text("\n".join(lines) + "\n")
    return {"positions": file}


def flights(folder: Path) -> dict[str, Any]:
    """A file with the positions and heights of eight clients in three rounds."""
    lines = ["client,round,x_m,y_m,z_m"]
    rows = ((c, r) for c in range(8) for r in (1, 2, 4))
    lines += [f"{c},{r},{20 + 9 * c + 30 * r},{15 * c - 40},{30 + 20 * r + 5 * c}" for c, r in rows]
    file = folder / "flights.csv"
    file.write_text("\n".join(lines) + "\n")
    return {"positions": file}


def channels(folder: Path) -> dict[str, Any]:
    """A file with four blocks of recorded channels of eight clients and two antennas."""
    parts = Stream(7, ("channels",)).generator().standard_normal((4, 8, 2, 2))
    np.savez(folder / "h.npz", h=1e-5 * (parts @ [1, 1j]))
    return {"channel": folder / "h.npz"}


def plays(folder: Path) -> dict[str, Any]:
    """A file with a play with three roles, in the format of the data set ``shakespeare``."""
    speeches = [f"ROLE {role}:\n{LINES[(role + n) % 3]}" for n in range(12) for role in range(3)]
    (folder / "shakespeare").mkdir()
    (folder / "shakespeare" / "input.txt").write_text("\n\n".join(speeches) + "\n")
    return {"data_dir": folder}


def tiny_gpt2(folder: Path) -> dict[str, Any]:
    """A GPT-2 with one layer and random weights, saved by transformers."""
    from transformers import GPT2Config, GPT2Model
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    sizes = {"vocab_size": 12, "n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        settings = GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=0)
        GPT2Model(settings).save_pretrained(folder / "gpt2")
    return {"pretrained": str(folder / "gpt2")}


@dataclass(frozen=True)
class Recent(Selection):
    """Clients whose rounds were short of late: an average over rounds, which it keeps itself."""

    def select(self, candidates: Candidates) -> IntArray:
        """Average the last seconds, and count the rounds by cell."""
        past, state = candidates.history, candidates.state
        mean = state.setdefault("mean", np.zeros(candidates.ledger.clients))
        last, clients = past.since_chosen == 1, candidates.clients
        mean[clients[last]] += 0.5 * (past.last_seconds[last] - mean[clients[last]])
        state["rounds"] = state.get("rounds", np.zeros(len(candidates.counts), np.int64)) + 1
        return candidates.smallest(mean[clients], ties=-clients * (-1) ** state["rounds"][0])
