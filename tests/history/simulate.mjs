// Plays months of a project with known truth to the daemon through its HTTP interface, then compares its verdicts of red cells with
// the truth.
//
//   node tests/history/simulate.mjs [--seed N] [--mode with|without] [--days 40] [--pulls 300] [--accelerators 6] [--tests 40] [--stories NAME,…]
//       [--engine sqlite|postgresql] [--exact]
//
// Exits with 1 if a target is missed. --stories flaky,base,infra,classified: one line for each missed cell; excused cells always
// have one. OUTPOSTD names the program; KEEP=1 keeps its folder. --engine postgresql: on the server of OUTPOST_TEST_DATABASE, or on a
// temporary one. --exact: one event after the other, so that everything repeats.
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { needPostgres } from '../postgres.mjs';
import { startIssuer } from '../github/oidc.mjs';
import { Outpost } from '../integration/lib/outpost.mjs';
import { Clock } from './clock.mjs';
import { checkComments } from './comments.mjs';
import { Github } from './github.mjs';
import { judge, matrixText, targets, targetsText } from './judge.mjs';
import { Play } from './play.mjs';
import { HOUR, RELEASE, World } from './world.mjs';

const START = Date.UTC(2026, 0, 5);
export const MODES = ['with', 'without'];

function files({ accelerators }, vendor, mode) {
  return accelerators.map(({ name, title, level, isGithub, every, hasPaths, testsReleases }) => ({
    name, title, level, oncall: ['alice'], links: { docs: 'https://docs.example/' },
    runners: [{
      ...(isGithub ? { name: 'ci', github: { repository: `vendors/${name}` } } : { name: 'lab', webhook: { url: vendor, secret: 'hook' } }),
      ...(mode === 'with' && { reruns: 'tests' }),
    }],
    triggers: {
      push: { branches: testsReleases ? ['main', RELEASE] : ['main'], ...(every && { every }) },
      pull_request: hasPaths ? { paths: ['aten/**', 'c10/**', 'torch/**', 'test/**'] } : {},
    },
    deadlines: { ...(!isGithub && { acknowledge: '1h' }), start: '14h', finish: '20h' },
  }));
}

// isExact: see Play. engine: of the daemon's database. atEnd({outpost, play, github}): more of the result, while the daemon is idle.
export async function simulate({ seed, mode = 'with', days = 40, pulls = 300, accelerators = 6, tests = 40, engine, isExact = false, say = () => {}, atEnd = () => ({}) }) {
  const world = new World({ seed, days, pulls, accelerators, tests, start: START });
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-history-'));
  const clock = new Clock(folder, START - HOUR);
  const play = new Play({ world, clock, isExact, say });
  const [github, issuer, vendor] = await Promise.all([
    Github.start(play.project), startIssuer(), play.vendors.start(),
  ]);
  const started = performance.now();
  let outpost;
  try {
    outpost = await Outpost.start({
      program: process.env.OUTPOSTD_RELEASE, // the sanitizers would take minutes
      engine, rig: github, issuer, accelerators: files(world, vendor, mode), clock, logFile: path.join(folder, 'log'),
      secrets: Object.fromEntries(world.accelerators.filter(({ isGithub }) => !isGithub).map(({ name }) => [name, { hook: 'hook' }])),
      config: { upstream: { branches: ['main', RELEASE] }, github: { writes_per_minute: 80 }, log: { level: 'warn' }, comment: { min_interval: isExact ? '50ms' : '60s' }, reconcile: { interval: '1d' } },
    });
    await play.run({ outpost, github, issuer });
    const wall = (performance.now() - started) / 1000;
    const warnings = {};
    for (const [, event] of (await fs.readFile(path.join(folder, 'log'), 'utf8')).matchAll(/ ev=(\w+)/g)) warnings[event] = (warnings[event] ?? 0) + 1;
    const { text, problems } = await checkComments(github.bodies, outpost.url);
    return {
      seed, wall, warnings, sent: play.sent, comments: { n: new Set(github.bodies.map(({ body }) => body)).size, text, problems },
      problems: [...problems, ...play.problems, ...[...github.unknown].map((request) => `GitHub does not know: ${request}`)], ...judge(play, mode), ...await atEnd({ outpost, play, github }),
    };
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
    seed: option(Math.floor(Math.random() * 1e6)), days: option(40), pulls: option(300), accelerators: option(6), tests: option(40), mode: option('with'), engine: { type: 'string' }, exact: { type: 'boolean' }, stories: { type: 'string' }, json: { type: 'boolean' },
  } });
  const options = Object.fromEntries(['seed', 'days', 'pulls', 'accelerators', 'tests'].map((name) => [name, Number(values[name])]));
  const { mode, engine } = values;
  if (engine === 'postgresql') needPostgres();
  const history = await simulate({ ...options, mode, engine, isExact: values.exact, say: progress(options.days) });
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  if (values.json) {
    console.log(JSON.stringify({ ...history, ...Object.fromEntries(['flaky', 'flakyOfAll', 'base', 'infra', 'classified', 'classifiedOfAll', 'openByDefinition'].map((name) => [name, { n: history[name].n, hits: history[name].hits }])) }));
  } else {
    const found = targets([history], mode);
    const { sent } = history;
    console.log(`seed ${options.seed}, ${mode} experiments: ${options.days} days, ${options.pulls} pull requests, ${options.accelerators} accelerators, ${options.tests} tests`);
    console.log(`${matrixText([history])}\n\n${targetsText(found)}\n`);
    for (const [name, lines] of Object.entries(history.reasons)) if (lines.length > 0) console.log(`missed of ${name}:\n${lines.slice(0, 12).join('\n')}`);
    for (const name of values.stories?.split(',') ?? []) for (const story of history.stories[name] ?? []) console.log(`missed of ${name}: ${story}`);
    console.log(history.comments.text);
    console.log(`warnings in the log: ${Object.entries(history.warnings).map(([event, n]) => `${n} ${event}`).join(', ') || 'none'}`);
    console.log(`${sent.webhooks} webhooks, ${sent.reports} reports, ${sent.looks} looks, ${sent.reads} reads, ${history.extra.experiments} experiments in ${history.wall.toFixed(1)} s`);
    for (const line of [...history.stories.excused, ...history.problems].slice(0, 50)) console.log(`WRONG ${line}`);
    process.exitCode = found.every(({ holds }) => holds) && history.problems.length === 0 ? 0 : 1;
    if (process.exitCode) console.log(`again: node tests/history/simulate.mjs --mode ${mode} ${Object.entries(options).map(([name, value]) => `--${name} ${value}`).join(' ')}`);
  }
}
