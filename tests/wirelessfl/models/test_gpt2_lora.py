"""GPT-2 with LoRA: trained parameters, the input of the head, and gradients of many clients."""

from types import SimpleNamespace

import torch

from tests.wirelessfl.models.gpt2 import LENGTH, PAD, make, texts
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.runs.build.executors import _fitting
from wirelessfl.training.batches import Batch
from wirelessfl.training.objective import Objective
from wirelessfl.training.recording import record
from wirelessfl.training.trial import check_model, why_not_vmapped


def test_only_adapters_and_head_are_trained(base):
    spec = ParamSpec.of(make(base))
    a_layer = 2 * (16 + 3 * 16)  # A [r, inputs], B [outputs, r]
    assert spec.size == 2 * a_layer + 3 * 16
    assert all("lora_" in name or name.endswith("score.weight") for name in spec.shapes)


def test_the_trained_fraction_is_the_published_one():
    """LoRA trains 1.9 % of GPT-2's parameters (FAdamGC, Section 5).

    GPT-2 has 12 layers of width 768 and 124,439,808 parameters.
    """
    adapters, head, whole = 12 * 64 * (768 + 3 * 768), 20 * 768, 124_439_808
    assert round(100 * (adapters + head) / (whole + adapters + head), 1) == 1.9


def test_the_untrained_model_is_the_base_with_a_linear_head(base):
    """B is initially zero, so logits equal those of transformers' GPT-2 without padding."""
    from transformers import GPT2Model

    model = make(base).eval()
    plain = GPT2Model.from_pretrained(base).eval()
    x = texts(20)
    with torch.no_grad():
        logits = model(x)
        for row, given in zip(x, logits, strict=True):
            text = row[: int((row != PAD).sum())]
            hidden = plain(input_ids=text[None]).last_hidden_state[0, -1]
            torch.testing.assert_close(given, model.network.score(hidden), rtol=1e-4, atol=1e-5)


def test_adapters_add_their_product_scaled_by_alpha_over_rank(base):
    """Logits equal those of a GPT-2 with alpha/r (B A)^T added to its attention weights."""
    model, merged = make(base, lora_alpha=5.0), make(base, lora_alpha=5.0)
    torch.manual_seed(3)
    for one, two in zip(model.network.transformer.h, merged.network.transformer.h, strict=True):
        adapter, other = one.attn.c_attn, two.attn.c_attn
        up, down = adapter.lora_B["default"].weight, adapter.lora_A["default"].weight
        with torch.no_grad():
            up.normal_(std=0.5)
            other.base_layer.weight += 5.0 / 2 * (up @ down).T
    x = texts(8)
    torch.testing.assert_close(model(x), merged(x), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(model(x), make(base)(x), atol=1e-2)


def test_padding_does_not_change_logits(base):
    model = make(base, length=16)
    x = texts(6)
    longer = torch.cat([x, torch.full((6, 4), PAD)], 1)
    torch.testing.assert_close(model(longer), model(x))
    empty = torch.full((1, LENGTH), PAD)
    assert model(empty).isfinite().all()


def test_the_padding_id_of_the_data_set_is_used(base):
    model = make(base, pad_id=7)
    x = texts(6)
    assert model.pad_id == 7
    torch.testing.assert_close(model(torch.where(x == PAD, 7, x)), make(base)(x))


def test_initial_weights_come_from_the_stream_alone(base):
    def first(seed):
        return ParamSpec.of(model := make(base, seed=seed)).from_module(model)

    before = torch.random.get_rng_state()
    assert torch.equal(first(1), first(1))
    assert torch.equal(before, torch.random.get_rng_state())
    apart = first(1) != first(2)
    adapters = apart[: -3 * 16].view(2, -1)  # two layers: A, then B, which is zero
    assert adapters[:, : 2 * 16].all()
    assert not adapters[:, 2 * 16 :].any()
    assert apart[-3 * 16 :].all()


def test_clients_can_train_under_vmap(base):
    """The model runs under vmap with padded batches, with and without adapter dropout."""
    y = torch.tensor([0, 1, 2, 1])
    for dropout in (0.0, 0.5):
        objective = Objective.of(make(base, dropout=dropout))
        assert len(objective.dropout_keys) == 2 * (dropout > 0)
        assert check_model(objective, texts(4), y, 3) is None
        assert why_not_vmapped(objective, texts(4), y) is None


def test_a_step_can_be_recorded(base):
    """A step can be recorded, so other tests really compare recorded steps."""
    objective = Objective.of(make(base))
    params = [
        p.detach() for n, p in objective.module.named_parameters() if n in objective.spec.shapes
    ]
    names = list(objective.spec.shapes)
    batch = [texts(4), torch.tensor([0, 1, 2, 1]), torch.full((4,), 0.25)]

    def gradients(*tensors):
        given = dict(zip(names, tensors, strict=False))
        key = torch.zeros(2, dtype=torch.int32)
        return list(objective.gradients(given, Batch(*tensors[len(names) :], key)).values())

    program = record(gradients, [*params, *batch])
    batch[0] = texts(4, seed=1)
    for found, value in zip(program(*params, *batch), gradients(*params, *batch), strict=True):
        torch.testing.assert_close(found, value)


def test_dropout_acts_on_the_adapters_only(base):
    model = make(base, dropout=0.5)
    x = texts(4)
    torch.testing.assert_close(model.train()(x), make(base)(x))  # B is zero
    for block in model.network.transformer.h:
        torch.nn.init.normal_(block.attn.c_attn.lora_B["default"].weight)
    assert not torch.allclose(model.train()(x), model.eval()(x), atol=1e-2)


def test_declared_memory_per_sample_matches_autograd(base, monkeypatch):
    """The memory that autograd stores for a batch is within a factor of 4 of the declared one."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    model, batch = make(base).train(), 8
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(texts(batch)).sum()
    size = sum(s.nbytes() for pointer, s in kept.items() if pointer not in known)
    assert loss.requires_grad
    assert size / 4 < batch * model.bytes_per_sample < 4 * size
    objective = Objective.of(model)
    room = 10 * (64 * objective.spec.size + batch * model.bytes_per_sample)
    memory = SimpleNamespace(total_memory=room / 0.8 + 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
    device, each = torch.device("cuda"), model.bytes_per_sample
    assert _fitting(objective.spec.size, batch * each, device) == 10
    assert _fitting(objective.spec.size, 10**6 * each, device) == 1
