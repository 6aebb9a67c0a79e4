// What a vendor hands in of a run: durations and numbers that drift as real ones do, where it ran, and the log.
import { DAY } from '../../tests/history/world.mjs';

const round = (value) => Number(value.toPrecision(4));

// Benchmarks: a slow gain, one step when something was fused, noise of a few percent.
function numberOf(test, accelerator, dice, days) {
  const about = test.tokens ?? test.about;
  if (!about) return undefined;
  const step = days > 38 ? 1.07 : days > 24 && accelerator.name === 'xpu' ? 0.88 : 1;
  return { value: round(about * accelerator.speed * (1 + days / 600) * step * (1 + (dice.number() - 0.5) * 0.03)), unit: test.per ?? 'tokens/s' };
}

function resultOf(test, run, dice, days) {
  const { accelerator } = run;
  const duration = round((test.suite === 'unit' ? 140 : test.suite === 'build' ? 620 : 45) * (0.5 + accelerator.slow) * (0.9 + dice.number() * 0.2));
  const number = test.status === 'PASS' ? numberOf(test, accelerator, dice, days) : undefined;
  return {
    suite: test.suite, name: test.name, status: test.status, duration,
    ...(test.dtype && { dtype: test.dtype }), ...(test.message && { message: test.message, trace: traceOf(test) }), ...(number && { number }),
  };
}

const traceOf = ({ name, message }) => `Traceback (most recent call last):\n  File "test/${name.replaceAll('.', '/')}.py", line 214, in test_forward\n    out = model(inputs)\n  File "torch/nn/modules/module.py", line 1773, in _wrapped_call_impl\n    return self._call_impl(*args, **kwargs)\n${message}`;

function logOf(run, tests) {
  const lines = [`\x1b[1moutpost\x1b[0m ${run.accelerator.title} tests ${run.head.sha}`, `device: ${run.accelerator.environment.device}`];
  for (const { suite, name, status, duration, trace } of tests) {
    const colour = { PASS: 32, DONE: 36, SKIP: 33 }[status] ?? 31;
    lines.push(`${`${suite}/${name}`.padEnd(40)} \x1b[${colour}m${status}\x1b[0m ${duration} s`);
    if (trace) lines.push(...trace.split('\n'));
  }
  return `${lines.join('\n')}\n`;
}

const dated = (ms) => new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');

// What a job ran on: main of its day, or the release that users install, where an extension has its own of it.
function environmentOf({ accelerator, head, event }, dice, stable) {
  const { systems, extension: { release, ...extension } = {}, ...environment } = accelerator.environment;
  const isStable = event === 'nightly' && Boolean(stable) && dice.chance(0.4);
  const os = event === 'nightly' && systems ? dice.pick(systems) : environment.os;
  return {
    ...environment, os, ...(isStable ? { torch: stable } : { torch: `2.10.0.dev${dated(head.base.at)}`, torch_commit: head.sha }),
    ...(release && { extension: { ...extension, ...(isStable && { version: release }) } }),
  };
}

// releases: accelerator → the PyTorch that its platform block calls stable
export const documents = (world, releases = new Map()) => (run, { tests }) => {
  const { accelerator } = run;
  const dice = world.dice('documents', accelerator.name, run.head.sha, run.event, run.attempt);
  const days = (run.head.base.at - world.start) / DAY;
  const results = tests.map((test) => resultOf(test, run, dice, days));
  const environment = { accelerator: accelerator.name, ...environmentOf(run, dice, releases.get(accelerator.name)) };
  return { report: { schema: 1, environment, tests: results }, log: run.event === 'nightly' || tests.some(({ truth }) => truth) ? logOf(run, results) : undefined };
};
