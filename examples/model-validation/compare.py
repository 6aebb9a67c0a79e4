"""Is a result right? Compared with the same computation in float64 on the CPU, by the relative
error of the whole tensor, so that one number says how far off it is and NaN never passes."""

import copy

import torch

from device import to_reference

# Forward results get the first number; gradients, which are differences of larger numbers, the second.
TOLERANCE = {
    torch.float32: (1e-4, 1e-3),
    torch.float16: (1e-2, 3e-2),
    torch.bfloat16: (3e-2, 1e-1),
}
# A network as a whole may be off by so many times what rounding each layer's result does to it.
TIMES_ROUNDING = 4


class _Round(torch.autograd.Function):
    """To `dtype` and back, in both directions: what a layer that computes in it at least loses."""

    @staticmethod
    def forward(ctx, x, dtype):
        ctx.dtype = dtype
        return x.to(dtype).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to(ctx.dtype).to(gradient.dtype), None


def _round_each_layer(model, dtype):
    def rounded(_module, _inputs, output):
        return _Round.apply(output, dtype) if torch.is_tensor(output) and output.is_floating_point() else output

    for module in model.modules():
        if next(module.children(), None) is None:
            module.register_forward_hook(rounded)
    return model


def relative_error(result, reference):
    """||result - reference|| / ||reference||; infinite where anything is not finite."""
    result, reference = to_reference(result), to_reference(reference)
    if result.shape != reference.shape:
        raise AssertionError(f"shape {tuple(result.shape)}, expected {tuple(reference.shape)}")
    if not torch.isfinite(result).all():
        return float("inf")
    scale = reference.norm()
    return float((result - reference).norm() / scale) if scale else float(result.norm())


def expect_close(what, result, reference, limit):
    error = relative_error(result, reference)
    assert error <= limit, f"{what}: relative error {error:.2e}, at most {limit:.0e} expected"
    return error


def _expect(what, result, reference, rounded, floor):
    """How much an untrained network makes of small errors differs by orders of magnitude between networks, so the
    limit follows what rounding alone does to this one."""
    limit = max(floor, TIMES_ROUNDING * relative_error(rounded, reference))
    assert limit < 1, f"{what}: rounding alone moves this network by {limit / TIMES_ROUNDING:.0%}: it proves nothing"
    expect_close(what, result, reference, limit)


def _step(model, inputs, loss_of):
    """Forward, backward, one optimiser step. Returns what can be compared."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    output, loss = loss_of(model, inputs)
    loss.backward()
    gradients = [p.grad.detach().clone() for p in model.parameters() if p.grad is not None]
    before = [p.detach().clone() for p in model.parameters()]
    optimiser.step()
    moved = [(p.detach() - b) for p, b in zip(model.parameters(), before)]
    return output, loss, gradients, moved


def _flat(tensors):
    return torch.cat([to_reference(t).reshape(-1) for t in tensors])


def check_training_step(model, inputs, loss_of, device, dtype):
    """`model` (float32, on the CPU) takes one training step on the device in `dtype`, and in
    float64 on the CPU. `inputs` are tensors; floating ones change type with the model. `loss_of(model,
    inputs)` gives (output, loss)."""
    # Both start from the weights as they are after rounding: what is tested is the arithmetic.
    tested = copy.deepcopy(model).to(dtype)
    reference = copy.deepcopy(tested).to(torch.float64)
    tested = tested.to(device)

    def as_type(tensor, where, kind):
        if tensor.is_floating_point():
            return tensor.to(dtype).to(where, kind)
        return tensor.to(where)

    plain = [as_type(t, "cpu", torch.float64) for t in inputs]
    got = _step(tested, [as_type(t, device, dtype) for t in inputs], loss_of)
    rounding = _step(_round_each_layer(copy.deepcopy(reference), dtype), plain, loss_of)
    want = _step(reference, plain, loss_of)

    assert len(got[2]) == len(want[2]), "other parameters have gradients than in the reference"
    forward, backward = TOLERANCE[dtype]
    _expect("output", got[0], want[0], rounding[0], forward)
    _expect("loss", got[1].reshape(1), want[1].reshape(1), rounding[1].reshape(1), forward)
    _expect("gradients", _flat(got[2]), _flat(want[2]), _flat(rounding[2]), backward)
    if dtype is torch.float32:  # in 16 bits one small step is lost in the weights' rounding
        _expect("update", _flat(got[3]), _flat(want[3]), _flat(rounding[3]), 1e-2)
