"""Device-generic unit tests: the operators that every network below is made of, in each dtype, against
float64 on the CPU."""

import pytest
import torch
import torch.nn.functional as F

import device as devices
from compare import TOLERANCE, expect_close

pytestmark = pytest.mark.outpost(suite="unit")


def _rope(x):
    half = x.shape[-1] // 2
    frequency = 1.0 / 10000 ** (torch.arange(half, device=x.device).float() / half)
    angle = torch.arange(x.shape[-2], device=x.device).float()[:, None] * frequency
    cos, sin = torch.cos(angle).to(x.dtype), torch.sin(angle).to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def _rms_norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def _attention(q, k, v):
    mask = torch.full((q.shape[-2], k.shape[-2]), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask, -1) @ v


OPERATORS = {
    "add": (lambda a, b: a + b, [(64, 33), (33,)]),
    "mul": (lambda a, b: a * b, [(7, 1, 5), (3, 1)]),
    "matmul": (torch.matmul, [(65, 127), (127, 33)]),
    "bmm": (torch.bmm, [(4, 17, 31), (4, 31, 9)]),
    "linear": (F.linear, [(5, 64), (32, 64), (32,)]),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1, stride=2), [(2, 6, 17, 17), (8, 6, 3, 3)]),
    "conv2d_depthwise": (lambda x, w: F.conv2d(x, w, groups=8), [(2, 8, 9, 9), (8, 1, 3, 3)]),
    "conv1d": (F.conv1d, [(2, 4, 50), (6, 4, 5)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [(2, 3, 16, 16)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3), [(2, 3, 15, 15)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), [(1, 3, 8, 8)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (48,), w, b), [(9, 48), (48,), (48,)]),
    "rms_norm": (_rms_norm, [(9, 48)]),
    "group_norm": (lambda x: F.group_norm(x, 4), [(2, 8, 6, 6)]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [(8, 5, 6, 6)]),
    "softmax": (lambda x: torch.softmax(x, -1), [(16, 101)]),
    "log_softmax": (lambda x: F.log_softmax(x, 1), [(16, 101)]),
    "relu": (F.relu, [(257,)]),
    "gelu": (F.gelu, [(257,)]),
    "silu": (F.silu, [(257,)]),
    "sigmoid": (torch.sigmoid, [(257,)]),
    "exp": (torch.exp, [(257,)]),
    "sum": (lambda x: x.sum(1), [(33, 65)]),
    "mean": (lambda x: x.mean((0, 2)), [(3, 33, 5)]),
    "cumsum": (lambda x: x.cumsum(0), [(31, 4)]),
    "transpose": (lambda x: x.transpose(0, 1).contiguous(), [(33, 65)]),
    "cat": (lambda a, b: torch.cat([a, b], 1), [(4, 3), (4, 5)]),
    "index_select": (lambda x: x.index_select(0, torch.tensor([3, 0, 3], device=x.device)), [(5, 7)]),
    "embedding": (lambda w: F.embedding(torch.tensor([[1, 5], [0, 1]], device=w.device), w), [(9, 16)]),
    "where": (lambda a, b: torch.where(a > 0, a, b), [(65,), (65,)]),
    "rope": (_rope, [(2, 4, 16, 32)]),
    "attention": (_attention, [(2, 4, 24, 16), (2, 4, 24, 16), (2, 4, 24, 16)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.arange(8, device=x.device)), [(8, 12)]),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(operator, device, dtype, dtype_name):
    """Forward and gradient of one operator. Sums over many terms get what rounding needs."""
    run, shapes = OPERATORS[operator]
    tested = [torch.randn(s).to(dtype).to(device).requires_grad_() for s in shapes]
    reference = [devices.to_reference(t).requires_grad_() for t in tested]
    forward, backward = TOLERANCE[dtype]
    got, want = run(*tested), run(*reference)
    expect_close(operator, got, want, forward)
    weight = torch.randn(want.shape, dtype=torch.float64) if want.dim() else torch.tensor(1.0, dtype=torch.float64)
    got.backward(weight.to(dtype).to(device))
    want.backward(weight.to(dtype).to(torch.float64))
    for i, (a, b) in enumerate(zip(tested, reference)):
        expect_close(f"gradient {i} of {operator}", a.grad, b.grad, backward)


def test_scaled_dot_product_attention(device, dtype):
    if not hasattr(F, "scaled_dot_product_attention"):
        pytest.skip(f"PyTorch {torch.__version__} has no scaled_dot_product_attention")
    q, k, v = (torch.randn(2, 4, 24, 16).to(dtype).to(device) for _ in range(3))
    want = _attention(*(devices.to_reference(t) for t in (q, k, v)))
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    expect_close("attention", got, want, TOLERANCE[dtype][0])


def test_views_and_strides(device):
    x = torch.arange(60.0, device=device).reshape(3, 4, 5)
    assert torch.equal(x.permute(2, 0, 1)[1:4:2].cpu(), torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)[1:4:2])


def test_in_place_and_inference(device):
    x = torch.zeros(8, device=device)
    with torch.no_grad():
        x.add_(1).mul_(3)[2:4] = 7
    assert x.cpu().tolist() == [3, 3, 7, 7, 3, 3, 3, 3]


def test_seed_repeats(device):
    torch.manual_seed(5)
    a = torch.randn(100, device=device)
    torch.manual_seed(5)
    assert torch.equal(a, torch.randn(100, device=device))


def test_autocast(device):
    """Mixed precision: a matrix product inside is done in 16 bits, a sum is not lost."""
    kind = torch.bfloat16
    lacks = devices.why_not(device, kind)
    if lacks:
        pytest.skip(f"{device.type} has no bf16: {lacks}")
    try:
        context = torch.autocast(device_type=device.type, dtype=kind)
    except (RuntimeError, TypeError) as e:
        pytest.skip(f"{device.type} has no autocast: {str(e).splitlines()[0]}")
    with context:
        assert (torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)).dtype is kind


def test_save_and_load(device, tmp_path):
    x = torch.randn(5, device=device)
    torch.save(x, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt", map_location="cpu"), x.cpu())
