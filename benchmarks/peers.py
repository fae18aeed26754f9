"""Whole programs that train W1 or W2 without this package, as users of other tools write them.

``python -m benchmarks.peers PEER MODEL ROUNDS FOLDER`` reads Fashion-MNIST from its four files,
deals 1000 samples to each of 60 clients, trains them from the same weights for 20 steps of batch 50
in every round, averages their models, and tests the average after every fifth round.
``wirelessfl bench command`` times them beside ``wirelessfl run``.
"""

from __future__ import annotations

import copy
import gzip
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLIENTS, SAMPLES, STEPS, BATCH, LR = 60, 1000, 20, 50, 0.01
Images = NDArray[np.float32]
Labels = NDArray[np.int64]


def read(folder: Path, part: str) -> tuple[Images, Labels]:
    """Images [samples, 1, 28, 28] in [-1, 1] and labels [samples] of ``train`` or ``t10k``."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).astype(np.float32) / 127.5 - 1
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
    return images.reshape(-1, 1, 28, 28), labels


def network(model: str) -> Any:
    """The FCNN 784-300-10, or LeNet-5, as a module of PyTorch."""
    from torch import nn

    if model == "fcnn":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 10))
    layers: list[nn.Module] = []
    for inputs, outputs in ((1, 6), (6, 16)):
        layers += [nn.Conv2d(inputs, outputs, 5), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(84, 10))


def shuffled(count: int, random: np.random.Generator) -> Iterable[NDArray[np.int64]]:
    """Batches of a shuffled data set, epoch after epoch."""
    while True:
        yield from np.split(random.permutation(count), count // BATCH)


def torch_loop(model: str, rounds: int, folder: Path, loader: bool) -> float:
    """One client after the other, with a DataLoader each or from indexed tensors."""
    import torch
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    (x, y), tests = (map(torch.from_numpy, read(folder, part)) for part in ("train", "t10k"))
    (test_x, test_y), random = tests, np.random.default_rng(0)
    parts = torch.from_numpy(random.permutation(len(y)))[: CLIENTS * SAMPLES].chunk(CLIENTS)
    data = [(x[part], y[part]) for part in parts]
    server, accuracy = network(model), 0.0

    def batches(inputs: torch.Tensor, labels: torch.Tensor) -> Iterable[Any]:
        if loader:
            samples = DataLoader(TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True)
            while True:
                yield from samples
        for index in shuffled(len(labels), random):
            rows = torch.from_numpy(index)
            yield inputs[rows], labels[rows]

    for number in range(1, rounds + 1):
        total = [torch.zeros_like(value) for value in server.parameters()]
        for inputs, labels in data:
            client = copy.deepcopy(server)
            optimizer = torch.optim.SGD(client.parameters(), lr=LR)
            for batch_x, batch_y in islice(batches(inputs, labels), STEPS):
                optimizer.zero_grad()
                F.cross_entropy(client(batch_x), batch_y).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            for mean, value in zip(total, client.parameters(), strict=True):
                mean += value.detach() / CLIENTS
        with torch.no_grad():
            for value, mean in zip(server.parameters(), total, strict=True):
                value.copy_(mean)
            if number % 5 == 0:
                guesses = torch.cat([server(part).argmax(1) for part in test_x.chunk(10)])
                accuracy = float((guesses == test_y).float().mean())
    return accuracy


def jax_vmap(model: str, rounds: int, folder: Path) -> float:
    """All clients at once: ``vmap`` over clients and ``scan`` over steps, compiled once."""
    import jax
    from jax import numpy as jnp

    random = np.random.default_rng(0)
    (x, y), (test_x, test_y) = read(folder, "train"), read(folder, "t10k")
    rows = random.permutation(len(y))[: CLIENTS * SAMPLES].reshape(CLIENTS, SAMPLES)
    data, labels = jnp.asarray(x[rows]), jnp.asarray(y[rows])
    convolutions = [] if model == "fcnn" else [(1, 6), (6, 16)]
    widths = (784, 300, 10) if model == "fcnn" else (256, 120, 84, 10)

    def weights(shape: tuple[int, ...], inputs: int) -> Any:
        bound = inputs**-0.5
        return jnp.asarray(random.uniform(-bound, bound, shape).astype(np.float32))

    server = [(weights((o, i, 5, 5), 25 * i), weights((o,), 25 * i)) for i, o in convolutions]
    server += [(weights((i, o), i), weights((o,), i)) for i, o in pairwise(widths)]

    def logits(parameters: Any, images: Any) -> Any:
        for kernel, bias in parameters[: len(convolutions)]:
            images = jax.lax.conv(images, kernel, (1, 1), "VALID") + bias[:, None, None]
            window = (1, 1, 2, 2)
            images = jax.nn.relu(images)
            images = jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, window, window, "VALID")
        hidden = images.reshape(len(images), -1)
        for kernel, bias in parameters[len(convolutions) : -1]:
            hidden = jax.nn.relu(hidden @ kernel + bias)
        kernel, bias = parameters[-1]
        return hidden @ kernel + bias

    def loss(parameters: Any, images: Any, targets: Any) -> Any:
        scores = jax.nn.log_softmax(logits(parameters, images))
        return -jnp.take_along_axis(scores, targets[:, None], 1).mean()

    def client(parameters: Any, images: Any, targets: Any, order: Any) -> Any:
        def step(state: Any, batch: Any) -> Any:
            slope = jax.grad(loss)(state, images[batch], targets[batch])
            return jax.tree.map(lambda w, g: w - LR * g, state, slope), None

        return jax.lax.scan(step, parameters, order)[0]

    @jax.jit  # type: ignore[untyped-decorator]
    def round_(parameters: Any, order: Any) -> Any:
        trained = jax.vmap(client, (None, 0, 0, 0))(parameters, data, labels, order)
        return jax.tree.map(lambda value: value.mean(0), trained)

    test, accuracy = jax.jit(logits), 0.0
    for number in range(1, rounds + 1):
        order = [list(islice(shuffled(SAMPLES, random), STEPS)) for _ in range(CLIENTS)]
        server = round_(server, jnp.asarray(np.array(order)))
        if number % 5 == 0:
            guesses = [np.argmax(test(server, part), 1) for part in np.split(test_x, 10)]
            accuracy = float((np.concatenate(guesses) == test_y).mean())
    return accuracy


def flower(model: str, rounds: int, folder: Path) -> float:
    """A simulation of Flower with one client on each core; every client is the indexed loop."""
    import torch
    from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation
    from torch.nn import functional as F

    app, server, accuracies = ClientApp(), ServerApp(), []

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        client = int(context.node_config["partition-id"])
        inputs, labels = client_samples(folder)[client]
        net = network(model)
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(net.parameters(), lr=LR)
        for index in islice(shuffled(SAMPLES, np.random.default_rng(client)), STEPS):
            rows = torch.from_numpy(index)
            optimizer.zero_grad()
            F.cross_entropy(net(inputs[rows]), labels[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        metrics = MetricRecord({"num-examples": SAMPLES})
        records = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
        return Message(records, reply_to=message)

    @server.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        torch.manual_seed(0)
        net, (x, y) = network(model), map(torch.from_numpy, read(folder, "t10k"))

        def tested(number: int, arrays: ArrayRecord) -> MetricRecord | None:
            if number == 0 or number % 5:
                return None
            net.load_state_dict(arrays.to_torch_state_dict())
            with torch.no_grad():
                guesses = torch.cat([net(part).argmax(1) for part in x.chunk(10)])
            accuracies.append(float((guesses == y).float().mean()))
            return MetricRecord({"accuracy": accuracies[-1]})

        strategy = FedAvg(fraction_evaluate=0.0, min_available_nodes=CLIENTS)
        start = ArrayRecord(net.state_dict())
        strategy.start(grid, start, num_rounds=rounds, evaluate_fn=tested)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, app, CLIENTS, backend_config=resources)
    return accuracies[-1] if accuracies else 0.0


_SAMPLES: dict[Path, list[Any]] = {}


def client_samples(folder: Path) -> list[Any]:
    """Inputs and labels of each client, read once in every process."""
    if folder not in _SAMPLES:
        import torch

        x, y = map(torch.from_numpy, read(folder, "train"))
        parts = torch.from_numpy(
            np.random.default_rng(0).permutation(len(y))[: CLIENTS * SAMPLES]
        ).chunk(CLIENTS)
        _SAMPLES[folder] = [(x[part], y[part]) for part in parts]
    return _SAMPLES[folder]


PEERS: dict[str, Callable[[str, int, Path], float]] = {
    "PyTorch, DataLoader": partial(torch_loop, loader=True),
    "PyTorch, indexed": partial(torch_loop, loader=False),
    "JAX vmap": jax_vmap,
    "Flower": flower,
}

if __name__ == "__main__":
    peer, of_model, count, place = sys.argv[1:]
    print(PEERS[peer](of_model, int(count), Path(place)))
