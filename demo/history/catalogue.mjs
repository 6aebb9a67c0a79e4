// Who takes part in the demo's history, on what, and which tests they run. Names are real, results are simulated.
const model = (name, dtype, tokens) => ({ suite: 'model', name, dtype, tokens });
const unit = (name) => ({ suite: 'unit', name });

export const TESTS = [
  model('llama3', 'bf16', 31), model('Qwen', 'bf16', 28), model('DeepSeek-V3', 'bf16', 17), model('Mixtral', 'bf16', 21),
  model('bert', 'fp32', 410), model('whisper', 'fp16', 96), model('stable-diffusion', 'fp16'), model('ResNet50', 'fp32'), model('ViT', 'bf16'), model('T5', 'bf16', 180),
  unit('test_autograd'), unit('test_nn'), unit('test_ops'), unit('test_torch'), unit('test_optim'), unit('test_dataloader'), unit('test_serialization'), unit('inductor.test_torchinductor'), unit('distributed.test_c10d'),
  { suite: 'benchmark', name: 'torchbench/resnet50', per: 'images/s', about: 1180 },
  { suite: 'benchmark', name: 'torchbench/BERT_pytorch', per: 'samples/s', about: 212 },
  { suite: 'benchmark', name: 'microbench/matmul_4096', per: 'TFLOP/s', about: 141 },
  { suite: 'build', name: 'extension' },
];

const accelerator = (name, title, vendor, level, isGithub, speed, environment, more = {}) => ({ name, title, vendor, level, isGithub, speed, environment, hasPaths: false, every: null, jobs: ['part 0'], outages: [], machines: [], gaps: [], skips: [], flaky: new Map(), ...more });
const flaky = (test, rate, word) => [TESTS.findIndex(({ name }) => name === test), { rate, template: '{word} failed on rank {rank} after {ms} ms', word, status: 'FAIL' }];

// release: the extension's version for the PyTorch that its platform block calls stable; systems: what its periodic runs are on, in
// turn. start: when the history begins, in ms; outages and slow machines make it look like life.
export const accelerators = (start, day) => [
  accelerator('cuda', 'CUDA', 'NVIDIA', 'L4', true, 2.1, { device: 'H100 80GB', os: 'Ubuntu 22.04', driver: '570.86' }, { slow: 0.3, flaky: new Map([flaky('distributed.test_c10d', 0.05, 'store barrier')]) }),
  accelerator('rocm', 'ROCm', 'AMD', 'L4', true, 1.9, { device: 'Instinct MI300X', os: 'Ubuntu 24.04', driver: 'ROCm 6.4' }, { slow: 0.5, flaky: new Map([flaky('whisper', 0.04, 'hipStreamSynchronize')]) }),
  accelerator('xpu', 'Intel XPU', 'Intel', 'L3', true, 1.1, { device: 'Data Center GPU Max 1550', os: 'Ubuntu 22.04', driver: '25.05' }, { slow: 0.6, flaky: new Map([flaky('test_dataloader', 0.08, 'worker exited')]) }),
  accelerator('ascend-npu', 'Ascend NPU', 'Huawei', 'L3', true, 1.4, { device: 'Ascend 910B', os: 'openEuler 22.03', driver: 'CANN 8.2', extension: { name: 'torch_npu', version: '2.10.0rc1', release: '2.9.0' } }, { slow: 0.9, flaky: new Map([flaky('ViT', 0.06, 'aclrtSynchronizeStream')]) }),
  accelerator('gaudi-hpu', 'Gaudi HPU', 'Intel', 'L2', false, 1.3, { device: 'Gaudi 3', os: 'Ubuntu 22.04', driver: '1.22', extension: { name: 'habana-torch-plugin', version: '1.22.0', release: '1.21.0' } }, { slow: 1.4, every: '2h', flaky: new Map([flaky('T5', 0.2, 'graph compile')]) }),
  accelerator('tpu', 'TPU', 'Google', 'L2', false, 1.8, { device: 'TPU v5e', os: 'Debian 12', driver: 'libtpu 0.0.21', extension: { name: 'torch_xla', version: '2.10.0', release: '2.8.0' } }, { slow: 2.2, every: '6h', outages: [{ from: start + 21 * day, to: start + 23 * day, isSilent: true, word: 'lab' }] }),
  accelerator('cpu', 'CPU', 'PyTorch', 'L2', true, 0.3, { device: 'Xeon 8480+', os: 'Ubuntu 24.04', systems: ['Ubuntu 24.04', 'Ubuntu 24.04', 'Windows 11', 'macOS 15'] }, { slow: 0.2 }),
];

export const MUST_PASS = ['unit/test_torch', 'unit/test_autograd', 'model/llama3'];
export const CRON = { cuda: '0 1 * * *', rocm: '30 1 * * *', xpu: '0 2 * * *', 'ascend-npu': '0 18 * * *', 'gaudi-hpu': '0 3 * * *', tpu: '0 4 * * *', cpu: '@daily' };

export const TITLES = [
  'Fix out-of-bounds read in index_put_', 'Fuse addmm with relu on CPU', '[inductor] Cache the reduction hint', 'Make DTensor redistribution lazy', 'Refactor the dispatcher\'s key set', 'Speed up sum over the last dimension',
  '[dynamo] Guard on the dtype of views', 'Add bf16 to grid_sample', 'Support empty tensors in scatter_reduce', 'Move the allocator\'s statistics to c10', '[PrivateUse1] Register hooks once', 'Remove a deprecated overload of norm',
  '[distributed] Abort a hung communicator', 'Document torch.accelerator', 'Use a stable sort in topk', 'Check strides in as_strided_scatter', '[export] Keep the names of inputs', 'Avoid a copy in pin_memory',
];
export const WORDS = ['aten::_nested_tensor_from_mask', 'aten::index_put_', 'aten::grid_sampler_2d', 'aten::scatter_reduce', 'aten::_scaled_dot_product_attention', 'aten::as_strided_scatter', 'prims::convert_element_type', 'c10d::allreduce_', 'aten::topk', 'aten::linalg_norm'];
