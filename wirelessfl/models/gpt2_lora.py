"""GPT-2 that classifies texts, adapted by LoRA: the frozen base is shared, little is sent.

Radford et al., 2019; Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022.
Built on transformers and peft (the extra ``language``), which are imported when a model is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from wirelessfl.data.pretrained import (
    HUB_MODEL,
    language_package,
    load_pretrained,
    pretrained_folder,
)
from wirelessfl.errors import ConfigError
from wirelessfl.models.dropout import StreamDropout

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_HEAD = "score.weight"


class GPT2LoRA(nn.Module):
    """GPT-2 with LoRA adapters of its attention and a linear head on the last token.

    Adapters and head are trained and sent; everything else is frozen. With the default rank that
    is 1.9 % of the parameters, the share that the FAdamGC paper states without naming a rank.

    Args:
        input_shape: (length,), token ids of a text, padded on the right.
        classes: outputs.
        dropout: probability at the adapters' inputs, in training; GPT-2's own dropout is off.
        pretrained: the base: a folder with config.json and model.safetensors, or a name on the hub.
        lora_rank: r, of each adapter of the attention's joint query, key and value projection.
        lora_alpha: adapters are scaled by lora_alpha / lora_rank; None for a scale of 1.
        pad_id: the token that pads; None for that of the base's configuration.

    Raises:
        ConfigError: the base is unavailable or not a GPT-2; samples are not texts or are too long.
    """

    test_batch = 64
    """Texts that are tested at once: attention alone takes heads * length^2 numbers a text."""

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
        super().__init__()
        if len(input_shape) != 1:
            raise ConfigError(
                f"model gpt2-lora takes texts as token ids [length], and the data set has samples "
                f"of shape {tuple(input_shape)}. Choose sst2, or another data set of texts."
            )
        transformers = language_package("transformers", "model gpt2-lora")
        peft = language_package("peft", "model gpt2-lora")
        drawn = torch.get_rng_state()
        self.network = _base(transformers, pretrained, classes)
        settings = self.network.config
        if input_shape[0] > settings.n_positions:
            raise ConfigError(
                f"max_length is {input_shape[0]}, and pretrained {pretrained!r} takes at most "
                f"{settings.n_positions} tokens. Choose a smaller max_length."
            )
        self.vocabulary: int = settings.vocab_size
        """Token ids that the base knows: 0 to this, without it."""
        pad = settings.pad_token_id if settings.pad_token_id is not None else settings.eos_token_id
        self.pad_id: int | None = pad if pad_id is None else pad_id
        if not isinstance(self.pad_id, int):
            raise ConfigError(
                f"pretrained is {pretrained!r}, whose config.json names no pad_token_id and no "
                "eos_token_id: texts cannot be padded. Add one of them."
            )
        torch.set_rng_state(drawn)  # loading draws weights that it then replaces
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
        # Floats that autograd keeps of a text, rounded up: 40 vectors a token and layer, and the
        # scores of every head before and after masking and softmax.
        length, layers = input_shape[0], settings.n_layer
        a_token = 40 * settings.n_embd + 4 * settings.n_head * length
        self.bytes_per_sample = 4 * length * layers * a_token

    def forward(self, x: Tensor) -> Tensor:
        """Logits [batch, classes] of token ids ``x`` [batch, length]."""
        body = self.network.transformer
        words: Tensor = body.wte(x)
        # Left to itself, transformers looks for padding among ids and for texts that share a row:
        # neither vmap nor a recording can follow. Attention is causal, so what pads on the right
        # changes nothing before it and needs no mask of its own.
        masked = torch.finfo(words.dtype).min
        later = words.new_full((x.shape[1], x.shape[1]), masked).triu(1)
        seen = later.expand(x.shape[0], 1, -1, -1)
        hidden: Tensor = body(
            inputs_embeds=words, attention_mask=seen, use_cache=False
        ).last_hidden_state
        place = torch.arange(x.shape[1], device=x.device)
        last = (place * (x != self.pad_id)).amax(1)
        index = last[:, None, None].expand(-1, 1, hidden.shape[-1])
        logits: Tensor = self.network.score(hidden.gather(1, index).squeeze(1))
        return logits


def _base(transformers: Any, pretrained: str, classes: int) -> Any:
    """GPT2ForSequenceClassification with the pretrained weights and no dropout."""
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
            f"pretrained is {pretrained!r}, a model of type {config.model_type!r}: model gpt2-lora "
            "needs one of type gpt2."
        )
    config.num_labels = classes
    config.attn_pdrop = config.embd_pdrop = config.resid_pdrop = 0.0
    network, report = load_pretrained(
        "pretrained",
        pretrained,
        transformers.GPT2ForSequenceClassification.from_pretrained,
        folder,
        config=config,
        dtype=torch.float32,
        attn_implementation="eager",  # other attention does not run, or runs slowly, under vmap
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # a head for other classes is replaced anyway
    )
    wrong = {*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])} - {_HEAD}
    if wrong:
        raise ConfigError(
            f"pretrained is {pretrained!r}, and its weights lack {sorted(wrong)[0]!r} or have it "
            f"in another shape ({len(wrong)} such). Save or fetch the model again."
        )
    return network
