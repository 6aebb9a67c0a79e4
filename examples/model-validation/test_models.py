"""Model validation: one training step (forward, backward, optimiser) of each network, in each dtype that the
device has, compared with float64 on the CPU. This is the suite that PyTorch asks of every accelerator.

A network that the device does not support is left out with --skip-model NAME or NAME:DTYPE (it shows as –, with the
reason), one that is not installed says so.
"""

import pytest
import torch

import compare
import networks


def _models():
    return [pytest.param(name, marks=pytest.mark.outpost(suite="model", name=name)) for name in networks.BUILDERS]


@pytest.fixture(params=_models())
def network(request):
    name = request.param
    dtype = request.node.callspec.params["dtype_name"]
    for skipped in request.config.getoption("--skip-model"):
        if skipped in (name, f"{name}:{dtype}"):
            pytest.skip(f"not supported on this device (--skip-model {skipped})")
    torch.manual_seed(request.config.getoption("--seed"))
    try:
        return networks.BUILDERS[name](name)
    except ImportError as e:
        pytest.skip(f"{e.name or e} is not installed")
    except networks.Missing as e:
        pytest.skip(str(e))


def test_training_step(network, device, dtype):
    model, inputs, loss_of = network
    compare.check_training_step(model, inputs, loss_of, device, dtype)
