// Months of a project with known truth, played to the daemon through its HTTP interface; then what it said of each
// red cell is held against the truth.
//
//   node tests/history/simulate.mjs [--seed N] [--days 60] [--pulls 300] [--accelerators 6] [--tests 40] [--stories]
//
// Exit 1 when what was promised does not hold. --stories tells of each base breakage and flaky test that was not
// recognised as well. OUTPOSTD names the program; KEEP=1 keeps its folder.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startIssuer } from '../github/oidc.mjs';
import { Outpost } from '../integration/lib/outpost.mjs';
import { Clock } from './clock.mjs';
import { checkComments } from './comments.mjs';
import { Github } from './github.mjs';
import { judge } from './judge.mjs';
import { Play } from './play.mjs';
import { HOUR, World } from './world.mjs';

const START = Date.UTC(2026, 0, 5);

function files({ accelerators }, vendor) {
  return accelerators.map(({ name, title, level, isGithub, every, hasPaths }) => ({
    name, title, level, oncall: ['alice'], links: { docs: 'https://docs.example/' },
    runners: [isGithub ? { name: 'ci', github: { repository: `vendors/${name}` } } : { name: 'lab', webhook: { url: vendor, secret: 'hook' } }],
    triggers: {
      push: every ? { branches: ['main'], every } : { branches: ['main'] },
      ...(hasPaths && { pull_request: { paths: ['aten/**', 'c10/**', 'torch/**', 'test/**'] } }),
    },
    deadlines: { ...(!isGithub && { acknowledge: '1h' }), start: '14h', finish: '20h' },
  }));
}

export async function simulate({ seed, days = 60, pulls = 300, accelerators = 6, tests = 40, say = () => {} }) {
  const world = new World({ seed, days, pulls, accelerators, tests, start: START });
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-history-'));
  const clock = new Clock(folder, START - HOUR);
  const play = new Play({ world, clock, say });
  const [github, issuer, vendor] = await Promise.all([
    Github.start(play.project), startIssuer(), play.vendors.start(),
  ]);
  const started = performance.now();
  let outpost;
  try {
    outpost = await Outpost.start({
      rig: github, issuer, accelerators: files(world, vendor), env: clock.environment, logFile: path.join(folder, 'log'),
      secrets: Object.fromEntries(world.accelerators.filter(({ isGithub }) => !isGithub).map(({ name }) => [name, { hook: 'hook' }])),
      config: { log: { level: 'warn' }, comment: { min_interval: '60s' }, reconcile: { interval: '1d' } },
    });
    await play.run({ outpost, github, issuer });
    const wall = (performance.now() - started) / 1000;
    const warnings = new Map();
    for (const [, event] of (await fs.readFile(path.join(folder, 'log'), 'utf8')).matchAll(/ ev=(\w+)/g)) warnings.set(event, (warnings.get(event) ?? 0) + 1);
    return { world, play, github, wall, warnings, comments: await checkComments(github.bodies, outpost.url), ...judge(play) };
  } finally {
    await outpost?.close();
    await Promise.all([github.close(), issuer.close(), play.vendors.close()]);
    clock.close();
    if (!process.env.KEEP) await fs.rm(folder, { recursive: true, force: true });
  }
}

function progress(days) {
  if (!process.stderr.isTTY) return () => {};
  let last = 0;
  return (day) => {
    if (performance.now() - last < 200) return;
    last = performance.now();
    process.stderr.write(`\rday ${day.toFixed(1)} of ${days} `);
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (value) => ({ type: 'string', default: String(value) });
  const { values } = parseArgs({ options: {
    seed: option(Math.floor(Math.random() * 1e6)), days: option(60), pulls: option(300), accelerators: option(6), tests: option(40), stories: { type: 'boolean' },
  } });
  const options = Object.fromEntries(['seed', 'days', 'pulls', 'accelerators', 'tests'].map((name) => [name, Number(values[name])]));
  console.log(`seed ${options.seed}: ${options.days} days, ${options.pulls} pull requests, ${options.accelerators} accelerators, ${options.tests} tests`);
  const history = await simulate({ ...options, say: progress(options.days) });
  const { sent } = history.play;
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  console.log(history.text({ stories: values.stories }));
  console.log(history.comments.text);
  console.log(`warnings in the log: ${[...history.warnings].map(([event, n]) => `${n} ${event}`).join(', ') || 'none'}`);
  for (const request of history.github.unknown) console.log(`GitHub does not know: ${request}`);
  console.log(`${sent.webhooks} webhooks, ${sent.reports} reports, ${sent.looks} reads in ${history.wall.toFixed(1)} s: ${((sent.webhooks + sent.reports) / history.wall).toFixed(0)} events a second; GitHub: ${JSON.stringify(history.github.counts)}`);
  const wrong = [...history.violations, ...history.comments.problems, ...history.play.problems];
  for (const line of wrong.slice(0, 50)) console.log(`WRONG ${line}`);
  if (wrong.length > 0) console.log(`${wrong.length} wrong; again: node tests/history/simulate.mjs ${Object.entries(options).map(([name, value]) => `--${name} ${value}`).join(' ')}`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
