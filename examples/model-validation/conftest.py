import pytest
import torch

import device as devices

pytest_plugins = ["outpost_report"]  # --outpost-report


def pytest_addoption(parser):
    parser.addoption("--device", default="auto", help="auto (default), cpu, cuda, xpu, npu, hpu, …")
    parser.addoption("--skip-model", action="append", default=[], metavar="NAME[:DTYPE]", help="a network that the device does not support; may be repeated")
    parser.addoption("--require-dtype", action="append", default=["fp32"], choices=list(devices.DTYPES), help="fail where the device does not compute in it, instead of skipping; fp32 always is, may be repeated")
    parser.addoption("--seed", default=0, type=int, help="of weights and inputs (default 0)")


def pytest_configure(config):
    config.outpost_environment = getattr(config, "outpost_environment", {})
    config.device_error = None
    try:
        config.device = devices.choose(config.getoption("--device"))
        devices.exact_float32(config.device)
        config.outpost_environment.update(devices.environment(config.device))
    except devices.NoSuchDevice as e:
        config.device, config.device_error = None, str(e)


def pytest_report_header(config):
    if config.device is None:
        return f"device: none: {config.device_error}"
    found = devices.environment(config.device)
    return f"device: {config.device} ({found['device']}), torch {found['torch']}"


@pytest.fixture
def device(request):
    """Fails, and never skips, when the device is not there: the machine is then not fit to test."""
    if request.config.device is None:
        pytest.fail(request.config.device_error, pytrace=False)
    return request.config.device


@pytest.fixture(params=list(devices.DTYPES))
def dtype_name(request):
    return request.param


@pytest.fixture
def dtype(device, dtype_name, request):
    """Skips where the device does not have it. What it must have is not asked for: a change that breaks one kernel
    would turn the whole suite into skips, and nothing would be red."""
    if dtype_name in request.config.getoption("--require-dtype"):
        return devices.DTYPES[dtype_name]
    known = request.config.__dict__.setdefault("why_not", {})
    if dtype_name not in known:
        known[dtype_name] = devices.why_not(device, devices.DTYPES[dtype_name])
    if known[dtype_name]:
        pytest.skip(f"{device.type} has no {dtype_name}: {known[dtype_name]}")
    return devices.DTYPES[dtype_name]


@pytest.fixture(autouse=True)
def seeded(request):
    torch.manual_seed(request.config.getoption("--seed"))
