"""GPT-2 for text classification with LoRA: clients share the frozen base and send only adapters.

Radford et al., 2019; Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022.
It uses transformers and peft (the extra ``language``), which are imported when a model is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.data.pretrained import (
    HUB_MODEL,
    language_package,
    load_pretrained,
    pretrained_folder,
)
from wirelessfl.data.tokens import WORDS
from wirelessfl.models.parts import OwnGenerator, StreamDropout

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_HEAD = "score.weight"
_WITHOUT_DROPOUT = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
_NO_TOKEN = -1


class LoRAClassifier(nn.Module):
    """A GPT-2 with LoRA adapters in its attention and a linear head on the last token.

    Adapters and head are trained and sent; all other parameters are frozen. Dropout acts at the
    adapters' inputs; GPT-2's own is off.

    Args:
        network: a GPT2ForSequenceClassification of transformers, whose head is drawn anew.
        input_shape: (length,), token ids of a text, padded on the right.
        base: the base in messages.
        dropout: dropout probability.
        lora_rank: rank of the adapters.
        lora_alpha: scale of the adapters' outputs, times the rank; None for a scale of 1.
        pad_id: id of the padding token.
    """

    test_batch = 64
    """Texts per test batch; attention alone needs heads * length^2 numbers per text."""

    def __init__(
        self,
        network: Any,
        input_shape: Sequence[int],
        base: str,
        *,
        dropout: float,
        lora_rank: int,
        lora_alpha: float | None,
        pad_id: int,
    ) -> None:
        super().__init__()
        peft = language_package("peft", "LoRA")
        self.network, self.pad_id = network, pad_id
        settings = network.config
        if input_shape[0] > settings.n_positions:
            raise ConfigError(
                f"max_length is {input_shape[0]}, but {base} supports at most "
                f"{settings.n_positions} tokens: choose a smaller max_length."
            )
        self.vocabulary: int = settings.vocab_size
        """Number of token ids of the base; ids start at 0."""
        adapters = peft.LoraConfig(
            r=lora_rank,
            lora_alpha=lora_rank if lora_alpha is None else lora_alpha,
            target_modules=["c_attn"],
            fan_in_fan_out=True,  # GPT-2 stores its weights transposed
        )
        peft.inject_adapter_in_model(adapters, self.network)
        nn.init.normal_(self.network.score.weight, std=settings.initializer_range)
        for name, parameter in self.network.named_parameters():
            parameter.requires_grad_("lora_" in name or name == _HEAD)
        adapted = (m for m in self.network.modules() if hasattr(m, "lora_dropout"))
        for salt, layer in enumerate(adapted):
            for name in layer.lora_dropout:
                layer.lora_dropout[name] = StreamDropout(dropout, salt=salt)
        # Floats that autograd stores per text, rounded up: 40 vectors per token and layer, and the
        # attention scores of every head before and after masking and softmax.
        length, layers = input_shape[0], settings.n_layer
        per_token = 40 * settings.n_embd + 4 * settings.n_head * length
        self.bytes_per_sample = 4 * length * layers * per_token

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        body = self.network.transformer
        words: Tensor = body.wte(x)
        # By default transformers searches the ids for padding and for packed texts, which neither
        # vmap nor recorded steps support. Attention is causal, so padding on the right does not
        # affect earlier tokens and needs no mask.
        masked = torch.finfo(words.dtype).min
        later = words.new_full((x.shape[1], x.shape[1]), masked).triu(1)
        seen = later.expand(x.shape[0], 1, -1, -1)
        hidden: Tensor = body(
            inputs_embeds=words, attention_mask=seen, use_cache=False
        ).last_hidden_state
        position = torch.arange(x.shape[1], device=x.device)
        last = (position * (x != self.pad_id)).amax(1)
        index = last[:, None, None].expand(-1, 1, hidden.shape[-1])
        logits: Tensor = self.network.score(hidden.gather(1, index).squeeze(1))
        return logits


class GPT2LoRA(LoRAClassifier):
    """GPT-2 with LoRA adapters in its attention and a linear head on the last token.

    With the default rank 1.9 % of the parameters are trained, as in the FAdamGC paper, which does
    not state its rank.

    Args:
        input_shape: (length,), token ids of a text, padded on the right.
        pad_id: id of the padding token; None for that of the base's configuration.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        dropout: float = 0.0,
        pretrained: str = HUB_MODEL,
        lora_rank: int = 64,
        lora_alpha: float | None = None,
        pad_id: int | None = None,
    ) -> None:
        transformers = _transformers("gpt2-lora", input_shape)
        with OwnGenerator(0):  # loading draws random weights before it replaces them
            network = _base(transformers, pretrained, classes)
        settings = network.config
        pad = settings.pad_token_id if settings.pad_token_id is not None else settings.eos_token_id
        pad_id = pad if pad_id is None else pad_id
        if not isinstance(pad_id, int):
            raise ConfigError(
                f"pretrained is {pretrained!r}, whose config.json has neither pad_token_id nor "
                "eos_token_id, so texts cannot be padded: add one of them."
            )
        super().__init__(
            network,
            input_shape,
            f"pretrained {pretrained!r}",
            dropout=dropout,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            pad_id=pad_id,
        )


class GPT2LoRATiny(LoRAClassifier):
    """A random GPT-2 of two layers with LoRA adapters, which needs no download: to try things out.

    It has width 32, two heads and a place for each token id of the data set. Its frozen weights do
    not depend on the seed, as those of a pretrained model.

    Args:
        input_shape: (length,), token ids of a text, padded on the right.
        vocabulary: number of token ids of the data set.
        pad_id: id of the padding token; None if texts are not padded.
    """

    default_tokenizer = WORDS

    def __init__(
        self,
        input_shape: Sequence[int],
        classes: int,
        *,
        dropout: float = 0.0,
        lora_rank: int = 4,
        lora_alpha: float | None = None,
        vocabulary: int | None = None,
        pad_id: int | None = None,
    ) -> None:
        transformers = _transformers("gpt2-lora-tiny", input_shape)
        if vocabulary is None:
            raise ConfigError(
                "model gpt2-lora-tiny needs the number of token ids, but the data set does not "
                "state it: give it as vocabulary of the wirelessfl.data.Dataset."
            )
        settings = transformers.GPT2Config(
            vocab_size=vocabulary,
            n_embd=32,
            n_layer=2,
            n_head=2,
            initializer_range=0.3,  # with the usual 0.02, tokens hardly differ in a narrow model
            bos_token_id=None,
            eos_token_id=None,
            num_labels=classes,
            attn_implementation="eager",
            **_WITHOUT_DROPOUT,
        )
        with OwnGenerator(0):
            network = transformers.GPT2ForSequenceClassification(settings)
        super().__init__(
            network,
            input_shape,
            "model gpt2-lora-tiny",
            dropout=dropout,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            pad_id=_NO_TOKEN if pad_id is None else pad_id,
        )


def _transformers(model: str, input_shape: Sequence[int]) -> Any:
    """The package transformers, for a model of texts."""
    if len(input_shape) != 1:
        raise ConfigError(
            f"model {model} needs texts as token ids [length], but the data set has samples of "
            f"shape {tuple(input_shape)}: choose sst2 or another data set of texts."
        )
    package = language_package("transformers", f"model {model}")
    language_package("peft", f"model {model}")
    return package


def _base(transformers: Any, pretrained: str, classes: int) -> Any:
    """Load GPT2ForSequenceClassification with the pretrained weights and without dropout."""
    folder = pretrained_folder(
        "pretrained",
        pretrained,
        [("config.json",), _WEIGHTS],
        ["config.json", "model.safetensors*", "model-*.safetensors"],
    )
    auto = transformers.AutoConfig
    config = load_pretrained("pretrained", pretrained, auto.from_pretrained, folder)
    if not isinstance(config, transformers.GPT2Config):
        raise ConfigError(
            f"pretrained is {pretrained!r}, a model of type {config.model_type!r}: give a model of "
            "type gpt2 for model gpt2-lora."
        )
    config.num_labels = classes
    config.update(_WITHOUT_DROPOUT)
    network, report = load_pretrained(
        "pretrained",
        pretrained,
        transformers.GPT2ForSequenceClassification.from_pretrained,
        folder,
        config=config,
        dtype=torch.float32,
        use_safetensors=True,
        attn_implementation="eager",  # other implementations fail or are slow under vmap
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # a head for other classes is replaced
    )
    wrong = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])} - {_HEAD}
    if wrong:
        raise ConfigError(
            f"pretrained is {pretrained!r}, but {sorted(wrong)[0]!r} is missing from its weights "
            f"or has a wrong shape ({len(wrong)} such parameters). Save or download the model "
            "again."
        )
    return network
