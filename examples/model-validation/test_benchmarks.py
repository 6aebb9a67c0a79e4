"""A few numbers with units, so that a trend can be seen. None of them passes or fails: they are DONE."""

import pytest
import torch

import device as devices
import networks


def _mark(name):
    return pytest.mark.outpost(suite="benchmark", name=name)


def _size(device, small, large):
    return small if device.type == "cpu" else large


@_mark("matmul")
def test_matmul(device, dtype, record_number):
    n = _size(device, 512, 4096)
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    record_number(2 * n**3 / devices.seconds_per_call(device, lambda: a @ b) / 1e12, "TFLOP/s")


@_mark("copy")
def test_copy(device, record_number):
    n = _size(device, 1 << 24, 1 << 28)
    a = torch.randint(0, 255, (n,), dtype=torch.uint8, device=device)
    b = torch.empty_like(a)
    record_number(2 * n / devices.seconds_per_call(device, lambda: b.copy_(a)) / 1e9, "GB/s")


@_mark("decoder_forward")
def test_decoder_forward(device, dtype, record_number):
    torch.manual_seed(0)
    layers, width, length, batch = _size(device, (2, 64, 64, 2), (8, 1024, 1024, 4))
    model = networks.Decoder(layers, width).to(dtype).to(device).eval()
    ids = torch.randint(1, networks.VOCABULARY, (batch, length), device=device)
    with torch.no_grad():
        record_number(batch * length / devices.seconds_per_call(device, lambda: model(ids)), "tokens/s")


@_mark("kernel_launch")
def test_kernel_launch(device, record_number):
    x = torch.ones(1, device=device)

    def many():
        for _ in range(100):
            x.add_(0)

    record_number(devices.seconds_per_call(device, many) / 100 * 1e6, "µs")
