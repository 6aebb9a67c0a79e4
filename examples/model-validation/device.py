"""Which device is under test, and what it can do.

The suite is written once for CPU, CUDA, ROCm, XPU, NPU, HPU and whatever comes: everything that
differs between them is in this file. Nothing here names a vendor's package unless PyTorch has no
way to find it by itself.
"""

import importlib
import importlib.util
import platform
import time

import torch

# Extensions that register a device. With torch.backends entry points (PyTorch >= 2.5) `import
# torch` has loaded them already; older ones have to be imported by name.
EXTENSIONS = {
    "npu": "torch_npu",
    "hpu": "habana_frameworks.torch.core",
    "xpu": "intel_extension_for_pytorch",
    "xla": "torch_xla",
    "openreg": "torch_openreg",
}

# Their packages are of use without the device, too.
RUN_ON_CPU_TOO = ("xpu", "xla")

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class NoSuchDevice(Exception):
    """What was asked for is not there; the text says how it was looked for."""


def _from_accelerator_api():
    api = getattr(torch, "accelerator", None)  # PyTorch >= 2.6
    if api is None or not api.is_available():
        return None
    return torch.device(api.current_accelerator().type, 0)


def _from_modules():
    for kind in ("cuda", "xpu", "npu", "hpu", "mps"):
        module = getattr(torch, kind, None) or getattr(torch.backends, kind, None)
        if module is not None and hasattr(module, "is_available") and module.is_available():
            return torch.device(kind) if kind in ("mps", "hpu") else torch.device(kind, 0)
    return None


def load_extension(kind):
    """Imports what registers `kind`. Returns a line that says what was needed."""
    try:
        torch.empty(1, device=kind)
        return "loaded by `import torch`"
    except (RuntimeError, AssertionError, NotImplementedError):
        pass
    name = EXTENSIONS.get(kind)
    if name is None:
        raise NoSuchDevice(f"PyTorch {torch.__version__} has no device {kind!r}")
    try:
        importlib.import_module(name)
        torch.empty(1, device=kind)
    except (ImportError, OSError) as e:
        raise NoSuchDevice(f"device {kind!r} wants the package {name}: {e}") from e
    except (RuntimeError, AssertionError) as e:
        raise NoSuchDevice(f"{name} was imported, but {kind!r} does not work: {e}") from e
    return f"needed `import {name}`"


def _from_extensions():
    """What is installed, but not loaded by `import torch`. One that does not come up is an error: a run on the CPU in its
    stead would be green, and say nothing about the device."""
    for kind, name in EXTENSIONS.items():
        if importlib.util.find_spec(name.split(".", maxsplit=1)[0]) is None:
            continue
        try:
            load_extension(kind)
        except NoSuchDevice:
            if kind not in RUN_ON_CPU_TOO:
                raise
            continue
        return torch.device(kind) if kind == "hpu" else torch.device(kind, 0)
    return None


def choose(wanted):
    """The device for `--device wanted`; `auto` takes the accelerator, else the CPU."""
    if wanted != "auto":
        device = torch.device(wanted)
        if device.type != "cpu":
            load_extension(device.type)
        return device
    return _from_accelerator_api() or _from_modules() or _from_extensions() or torch.device("cpu")


def exact_float32(device):
    """float32 means float32: tf32, hf32 and the like would be another type's errors."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    for part in ("matmul", "conv", "aclnn"):
        switches = getattr(_module(device), part, None)  # torch.npu.conv.allow_hf32 is on as it comes
        if hasattr(switches, "allow_hf32"):
            switches.allow_hf32 = False


def _module(device):
    return getattr(torch, device.type, None)


def synchronize(device):
    """Waits until the device has done what was asked of it."""
    module = _module(device)
    if device.type != "cpu" and module is not None and hasattr(module, "synchronize"):
        module.synchronize()


def name_of(device):
    module = _module(device)
    if device.type != "cpu" and module is not None and hasattr(module, "get_device_name"):
        return module.get_device_name(device.index or 0)
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def to_reference(tensor):
    """On the CPU in float64; in this order, because many devices have no float64."""
    return tensor.detach().cpu().to(torch.float64)


def why_not(device, dtype):
    """None when the device computes in `dtype`, else one line that says what failed."""
    try:
        a = torch.ones(8, 8, device=device, dtype=dtype)
        image = torch.ones(1, 2, 8, 8, device=device, dtype=dtype)
        kernel = torch.ones(2, 2, 3, 3, device=device, dtype=dtype)
        total = (a @ a).sum() + torch.nn.functional.conv2d(image, kernel).sum()
        total = total + torch.nn.functional.layer_norm(a, (8,)).sum()
        float(total)
        synchronize(device)
    except (RuntimeError, NotImplementedError, TypeError) as e:
        return (str(e).splitlines() or [type(e).__name__])[0][:200]
    return None


def environment(device):
    """The `environment` of an Outpost report."""
    kind = EXTENSIONS.get(device.type)
    extension = None
    if kind is not None:
        try:
            module = importlib.import_module(kind.split(".", maxsplit=1)[0])
            extension = {"name": module.__name__, "version": str(getattr(module, "__version__", ""))}
        except ImportError:
            pass
    driver = None
    if device.type == "cuda":
        driver = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    ret = {
        "accelerator": device.type,
        "device": name_of(device),
        "os": _os_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_commit": getattr(torch.version, "git_version", None),
        "driver": driver,
        "extension": extension,
    }
    return {key: value for key, value in ret.items() if value and value != "Unknown"}


def _os_name():
    try:
        with open("/etc/os-release", encoding="utf-8") as f:
            for line in f:
                if line.startswith("PRETTY_NAME="):
                    return line.split("=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return f"{platform.system()} {platform.release()}"


def seconds_per_call(device, call, at_least=0.5):
    """The median time of `call` on the device, after a warm-up."""
    for _ in range(3):
        call()
    synchronize(device)
    times = []
    begun = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begun < at_least:
        start = time.perf_counter()
        call()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]
