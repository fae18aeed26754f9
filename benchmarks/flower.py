"""``python -m benchmarks.flower``: rounds of a Flower app in a run, against a loop that calls it.

The loop makes messages, calls the app and averages its replies by Flower's own function. Both run
in one process, alternately; CPU seconds. Needs the packages of ``make test-flower``.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import wirelessfl
from wirelessfl.engine.server.learner import Learner

CLIENTS, ROUNDS = 10, 4


class LeNet(nn.Module):
    """The network of Flower's quickstart for CIFAR-10: 62,006 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)])
        self.layers = nn.ModuleList([nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [batch, 10] of images [batch, 3, 32, 32]."""
        for convolution in self.convolutions:
            x = F.max_pool2d(F.relu(convolution(x)), 2)
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        logits: torch.Tensor = self.layers[-1](x)
        return logits


class Measured:
    """An app on random images that adds up the CPU seconds inside its training function."""

    def __init__(self, samples: int) -> None:
        from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
        from flwr.clientapp import ClientApp

        self.samples, self.inside, self.app = samples, 0.0, ClientApp()
        self.x = torch.randn(CLIENTS * samples, 3, 32, 32)
        self.y = torch.randint(0, 10, (CLIENTS * samples,))

        @self.app.train()  # type: ignore[untyped-decorator]
        def train(message: Message, context: Context) -> Message:
            start = time.process_time()
            net = LeNet()
            net.load_state_dict(message.content["arrays"].to_torch_state_dict())
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
            samples_of_client = torch.arange(len(self.y))[
                context.node_config["partition-id"] :: CLIENTS
            ]
            for batch in torch.split(samples_of_client[torch.randperm(samples)], 32):
                optimizer.zero_grad()
                loss = F.cross_entropy(net(self.x[batch]), self.y[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            metrics = MetricRecord({"num-examples": samples, "train_loss": 1.0})
            content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
            reply = Message(content, reply_to=message)
            self.inside += time.process_time() - start
            return reply

    def loop(self) -> list[tuple[float, float]]:
        """Seconds of each round, and those inside the app."""
        from flwr.app import ArrayRecord, ConfigRecord, Context, Message, Metadata, RecordDict
        from flwr.serverapp.strategy.strategy_utils import aggregate_arrayrecords

        state, times = ArrayRecord(LeNet().state_dict()), []
        for number in range(1, ROUNDS + 1):
            self.inside, start, replies = 0.0, time.process_time(), []
            for client in range(CLIENTS):
                config = ConfigRecord({"lr": 0.01, "server-round": number})
                content = RecordDict({"arrays": ArrayRecord(dict(state)), "config": config})
                about = Metadata(1, "", 0, client, "", "", 0.0, 1e4, "train")
                node = {"partition-id": client, "num-partitions": CLIENTS}
                message = Message(content=content, metadata=about)
                replies.append(self.app(message, Context(1, client, node, RecordDict(), {})))
            state = aggregate_arrayrecords([one.content for one in replies], "num-examples")
            times.append((time.process_time() - start, self.inside))
        return times

    def run(self) -> list[tuple[float, float]]:
        """The same of a run's rounds: training, without radio and evaluation."""
        times: list[tuple[float, float]] = []
        learn = Learner.learn

        def timed(self_: Learner, *args: object) -> None:
            self.inside, start = 0.0, time.process_time()
            learn(self_, *args)  # type: ignore[arg-type]
            times.append((time.process_time() - start, self.inside))

        Learner.learn = timed  # type: ignore[assignment, method-assign]
        try:
            with tempfile.TemporaryDirectory() as folder:
                config = wirelessfl.Config.from_flags(
                    "fedavg",
                    clients=CLIENTS,
                    rounds=ROUNDS,
                    local_epochs=1,
                    batch_size=32,
                    lr=0.01,
                    split="iid",
                    out=Path(folder) / "run",
                )
                wirelessfl.run(
                    config,
                    model=LeNet(),
                    data=(self.x, self.y, self.x[:500], self.y[:500]),
                    trainer=wirelessfl.bridges.flower(self.app),
                    on_note=lambda note: None,
                )
        finally:
            Learner.learn = learn  # type: ignore[method-assign]
        return times


def main() -> None:
    """Print medians over the rounds of three repetitions; the first round is left out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flower", description=main.__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[500, 100], help="of a client")
    torch.set_num_threads(1)
    for samples in parser.parse_args().samples:
        measured = Measured(samples)
        measured.loop()
        pairs: dict[str, list[tuple[float, float]]] = {"loop": [], "run": []}
        for _ in range(3):
            pairs["loop"] += measured.loop()[1:]
            pairs["run"] += measured.run()[1:]
        outside = {
            name: 1 + statistics.median((whole - inside) / inside for whole, inside in times)
            for name, times in pairs.items()
        }
        app_seconds = statistics.median(inside for times in pairs.values() for _, inside in times)
        print(
            f"{samples} samples, {app_seconds / CLIENTS:.3f} s per training: "
            f"loop {outside['loop']:.4f}, run {outside['run']:.4f} of the app's own seconds, "
            f"ratio {outside['run'] / outside['loop']:.4f}"
        )


if __name__ == "__main__":
    main()
