"""The networks of the model suite: real architectures, small configurations, random weights, so nothing
is downloaded and one takes a second or two. A builder returns (model, inputs, loss_of) for
compare.check_training_step(); it raises ImportError where its library is not installed, and Missing
where that is too old to have the network.
"""

import torch
import torch.nn.functional as F

VOCABULARY, LENGTH, CLASSES = 256, 48, 10


class Missing(Exception):
    """The library is there, the network is not in this version of it."""


# ---- language models: Transformers ----

# Name in the results → class names in Transformers. The sizes are the same for all: 4 heads of 16 that share
# 2 key/value heads, two layers.
LANGUAGE = {
    "llama3": ("LlamaConfig", "LlamaForCausalLM", {"rope_theta": 500000.0}),
    "Mistral": ("MistralConfig", "MistralForCausalLM", {"sliding_window": 16}),
    "Qwen": ("Qwen2Config", "Qwen2ForCausalLM", {}),
    "Gemma": ("GemmaConfig", "GemmaForCausalLM", {"head_dim": 16}),
}


def language(name):
    import transformers

    config_name, model_name, extra = LANGUAGE[name]
    if not hasattr(transformers, model_name):
        raise Missing(f"transformers {transformers.__version__} has no {model_name}")
    config = getattr(transformers, config_name)(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4 * LENGTH, use_cache=False, pad_token_id=0, **extra)
    config._attn_implementation = "eager"  # one way to compute it, on every device
    model = getattr(transformers, model_name)(config).float().eval()

    def loss_of(m, inputs):
        out = m(input_ids=inputs[0], labels=inputs[0])
        return out.logits, out.loss

    return model, [torch.randint(1, VOCABULARY, (2, LENGTH))], loss_of


# ---- vision: torchvision and TIMM ----

TORCHVISION = {
    "resnet18": {},
    "googlenet": {"aux_logits": False, "init_weights": True},
    "squeezenet1_1": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "shufflenet_v2_x0_5": {},
    "efficientnet_b0": {},
    "mnasnet0_5": {},
    "regnet_y_400mf": {},
}

TIMM = {
    "timm_resnet26": ("resnet26", {}),
    "timm_vit_tiny": ("vit_tiny_patch16_224", {"img_size": 64}),
    "timm_deit_tiny": ("deit_tiny_patch16_224", {"img_size": 64}),
    "timm_mixer": ("mixer_s32_224", {"img_size": 64}),
    "timm_convnext_atto": ("convnext_atto", {}),
    "timm_efficientnet_lite0": ("efficientnet_lite0", {}),
    "timm_mobilenetv3_small": ("mobilenetv3_small_050", {}),
    "timm_regnetx_002": ("regnetx_002", {}),
    "timm_gmlp": ("gmlp_ti16_224", {"img_size": 64}),
    "timm_poolformer": ("poolformer_s12", {}),
}


def _classify(m, inputs):
    output = m(inputs[0])
    return output, F.cross_entropy(output, torch.arange(output.shape[0], device=output.device) % CLASSES)


def _image(size=64, batch=4):
    """Smooth pictures that differ, as photographs do. White noise averages out to the same features everywhere, and what
    batch norm then makes of their differences is rounding."""
    smooth = F.interpolate(torch.randn(batch, 3, 5, 5), size=size, mode="bicubic", align_corners=False)
    return [smooth + torch.randn(batch, 3, 1, 1) + 0.1 * torch.randn(batch, 3, size, size)]


def _wake(model):
    """What starts at nothing hides whatever lies behind it: a last layer of zeros lets no gradient through, and a layer scale of
    1e-6 (ConvNeXt, PoolFormer) or a gate like that (gMLP) makes its block's errors a millionth of the whole."""
    for weight in model.parameters():
        size = float(weight.detach().abs().max())
        if weight.dim() > 1 and size < 1e-3 and float(weight.detach().std()) == 0 and size:
            torch.nn.init.constant_(weight, 0.5)
        elif weight.dim() > 1 and size < 1e-3:
            torch.nn.init.normal_(weight, std=0.05)
        elif 0 < size < 1e-3:
            torch.nn.init.constant_(weight, 0.5)


def _settle(model, inputs):
    """Batch norm's statistics from one pass, then frozen: with those of an untrained network (mean 0, variance 1) activations
    grow or fade layer by layer until 16 bits do not hold them, and no such network is ever run. Its outputs are moved to where
    most of them pass a ReLU: at its kink the smallest error turns a gradient on or off, and an untrained network makes of that
    whatever it likes."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        torch.nn.init.constant_(norm.weight, 0.5)
        torch.nn.init.constant_(norm.bias, 1.0)
    _wake(model)
    model.train()
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout) or type(m).__name__ in ("StochasticDepth", "DropPath"):
            m.eval()
    with torch.no_grad():
        model(torch.cat([inputs[0]] + _image(inputs[0].shape[-1], 12)))
    return model.eval()


def _vit_small(models):
    return models.VisionTransformer(image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=CLASSES)


def _swin_small(models):
    return models.SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=CLASSES)


def _convnext_small(models):
    stage = models.convnext.CNBlockConfig
    return models.ConvNeXt([stage(32, 64, 2), stage(64, None, 2)], num_classes=CLASSES)


# The classes with sizes of their own: vit_b_16 has 86 million weights, swin_t and convnext_tiny 28.
SMALL = {"vit_small": _vit_small, "swin_small": _swin_small, "convnext_small": _convnext_small}


def torchvision_model(name):
    import torchvision
    from torchvision import models

    if name in SMALL:
        model = SMALL[name](models)
    elif not hasattr(models, name):
        raise Missing(f"torchvision {torchvision.__version__} has no {name}")
    else:
        model = getattr(models, name)(weights=None, num_classes=CLASSES, **TORCHVISION[name])
    inputs = _image()
    return _settle(model, inputs), inputs, _classify


def timm_model(name):
    import timm

    model_name, extra = TIMM[name]
    if not timm.is_model(model_name):
        raise Missing(f"timm {timm.__version__} has no {model_name}")
    inputs = _image()
    model = timm.create_model(model_name, pretrained=False, num_classes=CLASSES, **extra)
    return _settle(model, inputs), inputs, _classify


# ---- without any library: the blocks that today's language models share ----


class Block(torch.nn.Module):
    """RMS norm, rotary embedding, grouped-query attention, SwiGLU: a decoder layer as in Llama."""

    def __init__(self, width=64, heads=4, kv_heads=2, hidden=128):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)  # noqa: E731
        self.q, self.k, self.v = linear(width, width), linear(width, kv_heads * self.size), linear(width, kv_heads * self.size)
        self.o, self.gate, self.up, self.down = linear(width, width), linear(width, hidden), linear(width, hidden), linear(hidden, width)
        self.norms = torch.nn.Parameter(torch.ones(2, width))

    def norm(self, x, i):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.norms[i]

    @staticmethod
    def rotate(x):
        half = x.shape[-1] // 2
        angle = torch.arange(x.shape[-2], device=x.device).float()[:, None] / 10000 ** (torch.arange(half, device=x.device).float() / half)
        cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
        return torch.cat([x[..., :half] * cos - x[..., half:] * sin, x[..., :half] * sin + x[..., half:] * cos], -1)

    def attend(self, x):
        b, n, _ = x.shape
        split = lambda t, h: t.reshape(b, n, h, self.size).transpose(1, 2)  # noqa: E731
        q, k, v = self.rotate(split(self.q(x), self.heads)), self.rotate(split(self.k(x), self.kv_heads)), split(self.v(x), self.kv_heads)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        mask = torch.full((n, n), float("-inf"), device=x.device, dtype=x.dtype).triu(1)
        mixed = torch.softmax(q @ k.transpose(-1, -2) / self.size**0.5 + mask, -1) @ v
        return self.o(mixed.transpose(1, 2).reshape(b, n, -1))

    def forward(self, x):
        x = x + self.attend(self.norm(x, 0))
        y = self.norm(x, 1)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(torch.nn.Module):
    def __init__(self, layers=2, width=64):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, width)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.head = torch.nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def decoder(_name):
    def loss_of(m, inputs):
        output = m(inputs[0])
        return output, F.cross_entropy(output[:, :-1].flatten(0, 1), inputs[0][:, 1:].flatten())

    return Decoder(), [torch.randint(1, VOCABULARY, (2, LENGTH))], loss_of


BUILDERS = {
    **{name: language for name in LANGUAGE},
    "decoder": decoder,
    **{name: torchvision_model for name in (*TORCHVISION, *SMALL)},
    **{name: timm_model for name in TIMM},
}
