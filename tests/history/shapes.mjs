// Templates of failures in the frameworks that vendors use, in our own words. {word} identifies one cause (an operator, a kernel, an
// attribute); a template without it is the same for any cause. fill() in messages.mjs has the other placeholders.

const ASYNC_CUDA = '\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.';
const ASYNC_HIP = '\nHIP kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing AMD_SERIALIZE_KERNEL=3';
const ASYNC_NPU = '\nSince the operator is called asynchronously, the stacktrace may be inaccurate. If you want to get the accurate stacktrace, please set the environment variable ASCEND_LAUNCH_BLOCKING=1.';

export const SPECIFIC = [
  ['pytest', 'AssertionError: assert {word}({n}) == {n}\n +  where {word} = <function {word} at 0x{hex}>'],
  ['pytest', 'E   TypeError: {word}() got an unexpected keyword argument \'layout\'\n\n/tmp/pytest-of-ci/pytest-{n}/test_{word}.py:{n}: TypeError'],
  ['unittest', 'AssertionError: RuntimeError not raised by {word}'],
  ['unittest', 'AttributeError: module \'torch.ops.aten\' has no attribute \'{word}\''],
  ['gtest', '/build/{n}/aten/src/ATen/test/{word}_test.cpp:{n}: Failure\nExpected equality of these values:\n  {word}.strides()\n    Which is: [{n}, 1]\n  expected.strides()\n    Which is: [{n}, 1]'],
  ['dtype', 'NotImplementedError: "{word}" not implemented for \'BFloat16\''],
  ['CUDA', `RuntimeError: CUDA error: invalid configuration argument in {word}_kernel<c10::Half, {n}>${ASYNC_CUDA}`],
  ['HIP', `RuntimeError: HIP error: the function {word} cannot be executed on gfx942${ASYNC_HIP}`],
  ['NPU', 'RuntimeError: call aclnn{word} failed, detail:EZ1001: [PID: {n}] 2026-01-17-0{rank}:{rank}5:31.{ms} {word} does not support format NZ.\n[ERROR] 2026-01-17 (PID:{n}, Device:{rank}, RankID:-1) ERR01100 OPS call acl api failed'],
  ['XPU', 'RuntimeError: The kernel {word} requires fp64, which the device does not support, at 0x{hex}'],
  ['HPU', 'RuntimeError: [Rank:{rank}] FATAL ERROR :: MODULE:PT_LAZY Error, lowering of {word} failed: node {n} has no TPC kernel'],
  ['TPU', 'jaxlib.xla_extension.XlaRuntimeError: INVALID_ARGUMENT: %{word}.{n} = f32[{n},128]{1,0} is not supported on TPU'],
  ['dynamo', 'torch._dynamo.exc.Unsupported: Attempted to call a function that is marked as skipped\n  Explanation: Dynamo does not know how to trace `{word}`.\n\nfrom user code:\n   File "/tmp/build-{n}/model.py", line {n}, in forward'],
  ['inductor', 'torch._inductor.exc.InductorError: LoweringException: AssertionError: {word} has no lowering\n  target: aten.{word}.default\n  args[0]: TensorBox(StorageBox(InputBuffer(name=\'arg0_1\')))'],
  ['triton', 'triton.compiler.errors.CompilationError: at {n}:{rank}:\ndef {word}_kernel(in_ptr0, out_ptr0, xnumel):\n    ^\nValueError(\'arange needs a power of 2\')'],
  ['distributed', 'RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running {word}(SequenceNumber={n})'],
  ['HCCL', 'RuntimeError: create:torch_npu/csrc/distributed/HCCLUtils.hpp:{n} HCCL function error: {word}, error code is 6'],
  ['long trace', 'Traceback (most recent call last):\n{pad}\nRuntimeError: {word} lost its layout after {n} calls'],
];

export const VAGUE = [
  ['pytest', 'Failed: Timeout (>{n}.0s) from pytest-timeout.'],
  ['pytest', 'worker \'gw{rank}\' crashed while running \'test/test_ops.py::TestOps::{test}\''],
  ['pytest', 'AssertionError: assert False'],
  ['unittest', 'AssertionError: Tensor-likes are not close!\n\nMismatched elements: {n} / 5000 (9.1%)\nGreatest absolute difference: {f} at index ({rank}, {rank}) (up to 1e-05 allowed)\nGreatest relative difference: {f} at index ({rank}, {rank}) (up to 1.3e-06 allowed)'],
  ['unittest', 'AssertionError: Scalars are not equal!\n\nExpected {n} but got {n}.\nAbsolute difference: {n}\nRelative difference: {f}'],
  ['unittest', 'Exception: Caused by sample input at index {n}: SampleInput(input=Tensor[size=(5, 5), device="dev:0", dtype=torch.float32], args=(), kwargs={}, broadcasts_input=False, name=\'\')'],
  ['python', 'IndexError: list index out of range'],
  ['python', 'subprocess.CalledProcessError: Command \'[\'/usr/bin/python3\', \'{test}.py\']\' returned non-zero exit status 1.'],
  ['CUDA', `RuntimeError: CUDA error: device-side assert triggered${ASYNC_CUDA}`],
  ['CUDA', `RuntimeError: CUDA error: an illegal memory access was encountered${ASYNC_CUDA}`],
  ['HIP', `RuntimeError: HIP error: unspecified launch failure${ASYNC_HIP}`],
  ['NPU', `RuntimeError: The Inner error is reported as above. The process exits for this inner error, and the current working operator name is aclnnAdd.${ASYNC_NPU}\n[ERROR] 2026-01-17 (PID:{n}, Device:{rank}, RankID:-1) ERR00100 PTA call acl api failed`],
  ['XPU', 'RuntimeError: UR backend failed. UR backend returns:40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)'],
  ['HPU', 'RuntimeError: [Rank:{rank}] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed. synStatus=26 [Generic failure]'],
  ['TPU', 'jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Core halted unexpectedly: INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure.'],
  ['dynamo', 'torch._dynamo.exc.BackendCompilerFailed: backend=\'inductor\' raised:\nRuntimeError: '],
  ['triton', 'triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: {n}, Hardware limit: 65536. Reducing block sizes or `num_stages` may help.'],
  ['distributed', 'RuntimeError: Process {rank} terminated or timed out after {f} seconds'],
  ['distributed', 'torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{n}, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5'],
  ['harness', 'Process completed with exit code 1'],
  ['harness', 'Segmentation fault (core dumped)'],
];

// Failures of a machine, a disk, a network or the harness, which are independent of the tests. `isWhole`: it ends the whole job.
export const MACHINE = [
  { status: 'ERROR', isWhole: true, texts: ['RuntimeError: CUDA error: uncorrectable ECC error encountered', 'RuntimeError: No HIP GPUs are available', 'RuntimeError: No XPU devices are available.'] },
  { status: 'FAIL', isWhole: true, texts: ['OSError: [Errno 28] No space left on device: \'/tmp/pytest-of-ci/pytest-{n}/{test}0\''] },
  { status: 'FAIL', isWhole: false, texts: ['RuntimeError: NPU out of memory. Tried to allocate {n}.00 MiB (NPU {rank}; 60.97 GiB total capacity; 59.80 GiB already allocated)', 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 MiB is free.'] },
  { status: 'ERROR', isWhole: false, texts: ['requests.exceptions.ConnectionError: HTTPSConnectionPool(host=\'models.example\', port=443): Max retries exceeded (Caused by NewConnectionError: Temporary failure in name resolution)'] },
  { status: 'MISS', isWhole: true, texts: ['The self-hosted runner lost communication with the server. Verify the machine is running and has a healthy network connection.'] },
];

// Messages with markup, because a vendor may write any text.
export const HOSTILE = [
  '| {word} | @octocat see #12, pytorch/pytorch#34 and GH-56 | `code |',
  '<img src=x onerror=alert(1)> <details><summary>{word}</summary> <!-- {word} -->',
  '[{word}](https://evil.example/) ![x](https://evil.example/x.png) https://evil.example www.evil.example a@evil.example',
  '*{word}* __{word}__ ~~{word}~~ $x^2$ :tada: [^1] \\| ``` `` \u202e{word}',
];
