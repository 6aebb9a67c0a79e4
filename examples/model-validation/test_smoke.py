"""Does the device come up at all, and as PyTorch promises? Each test is a few seconds in a fresh
process or none: when one of these is red, nothing else means anything."""

import subprocess
import sys

import pytest
import torch

import compare
import device as devices
import networks

pytestmark = pytest.mark.outpost(suite="build")


def test_import_torch():
    done = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
    assert done.stdout.strip() == torch.__version__


def test_autoload(device):
    """`import torch` alone makes the device usable (PyTorch >= 2.5, torch.backends entry points)."""
    if device.type in ("cpu", "cuda", "mps"):
        pytest.skip(f"{device.type} is part of PyTorch, nothing is to be loaded")
    code = f"import torch; print(torch.ones(2, device={device.type!r}).sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 5):
        pytest.skip(f"PyTorch {torch.__version__} has no autoload; {devices.load_extension(device.type)}")
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
    assert done.stdout.strip() == "2.0"


def test_accelerator_api(device):
    """torch.accelerator names the device that is under test."""
    api = getattr(torch, "accelerator", None)
    if api is None:
        pytest.skip(f"PyTorch {torch.__version__} has no torch.accelerator")
    if device.type == "cpu":
        pytest.skip("the CPU is no accelerator")
    assert api.is_available()
    assert api.current_accelerator().type == device.type
    assert api.device_count() >= 1


def test_copy_there_and_back(device):
    there = torch.arange(1 << 20, dtype=torch.int64)
    assert torch.equal(there.to(device).cpu(), there)


def test_out_of_memory_is_an_error(device):
    """A request that nothing can fulfil raises, and the device goes on working after it."""
    with pytest.raises((RuntimeError, MemoryError)):
        torch.empty(1 << 60, dtype=torch.uint8, device=device)
    assert float(torch.ones(4, device=device).sum()) == 4


class _Wrong(torch.autograd.Function):
    """Right forward, a gradient that is 5 % too large."""

    @staticmethod
    def forward(_ctx, x):
        return x.clone()

    @staticmethod
    def backward(_ctx, gradient):
        return gradient * 1.05


@pytest.mark.parametrize("what", ["output", "gradients"])
def test_errors_are_noticed(what, monkeypatch):
    """The comparison itself: a device that is wrong by a few per cent does not pass."""
    model, inputs, loss_of = networks.decoder("decoder")
    right = compare._step

    def wrong_on_the_device(m, x, loss):
        if next(m.parameters()).dtype is torch.float64:
            return right(m, x, loss)
        hook = (lambda _m, _i, out: out * 1.02) if what == "output" else (lambda _m, _i, out: _Wrong.apply(out))
        m.blocks[0].up.register_forward_hook(hook)
        return right(m, x, loss)

    monkeypatch.setattr(compare, "_step", wrong_on_the_device)
    with pytest.raises(AssertionError, match="relative error"):
        compare.check_training_step(model, inputs, loss_of, torch.device("cpu"), torch.float32)
