// Sixty days of seven accelerators, played to the daemon through its real interface in two minutes, and then left running
// with its dashboard: pushes, pull requests, periodic runs, breakages, outages, benchmark numbers.
//
// usage: node demo/history/history.mjs BUILD_FOLDER [DAYS] [PORT]   (make demo-history)
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { parse, stringify } from 'yaml';

const build = path.resolve(process.argv[2] ?? 'build/release');
const days = Number(process.argv[3] ?? 60);
const port = Number(process.argv[4] ?? 8400);
process.env.OUTPOSTD = path.join(build, 'outpostd');
process.env.OUTPOSTCTL = path.join(build, 'outpostctl');

const [{ until }, { playHistory }] = await Promise.all([import('../../tests/integration/lib/outpost.mjs'), import('./play.mjs')]);

const home = path.join(build, '../demo'); // what is left running lives here
const pidFile = path.join(home, 'pid');
const isTerminal = process.stderr.isTTY;

const isAlive = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function endEarlier() {
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8'));
  if (isAlive(pid)) process.kill(pid, 'SIGTERM');
  await until(() => !isAlive(pid), { timeout: 15_000, what: 'the earlier demo has ended' });
  rmSync(pidFile, { force: true });
}

function progress() {
  if (!isTerminal) return () => {};
  let last = 0;
  return (day) => {
    if (performance.now() - last < 100) return;
    last = performance.now();
    const done = Math.round((day / days) * 40);
    process.stderr.write(`\r  ${'█'.repeat(done)}${'░'.repeat(Math.max(0, 40 - done))} day ${Math.floor(day)} of ${days} `);
  };
}

// The same folder and database, on the machine's own clock, for as long as somebody wants to look.
async function leaveRunning(outpost) {
  await fs.rm(path.join(home, 'run'), { recursive: true, force: true });
  await fs.rename(outpost.dir, path.join(home, 'run')).catch(() => fs.cp(outpost.dir, path.join(home, 'run'), { recursive: true }));
  const config = path.join(home, 'run/outpost.yml');
  const value = parse(readFileSync(config, 'utf8'));
  writeFileSync(config, stringify({ ...value, state_dir: 'state' }));
  const log = openSync(path.join(home, 'outpostd.log'), 'w');
  const child = spawn(process.env.OUTPOSTD, ['-c', config], { detached: true, stdio: ['ignore', log, log] });
  child.unref();
  writeFileSync(pidFile, `${child.pid}\n`);
  await until(async () => (await fetch(`${outpost.url}/readyz`)).status === 200, { timeout: 20_000, what: 'the dashboard is ready' });
}

await endEarlier();
mkdirSync(home, { recursive: true });
const began = performance.now();
console.log(`\n${days} days of pushes, pull requests and periodic runs of seven accelerators, through the real interface`);
const { outpost, play, close } = await playHistory({ folder: home, days, port, say: progress() });
await close();
if (isTerminal) process.stderr.write('\r\x1b[K');
await leaveRunning(outpost);
const { webhooks, reports } = play.sent;
console.log(`  ${webhooks.toLocaleString('en')} webhooks and ${reports.toLocaleString('en')} reports in ${((performance.now() - began) / 1000).toFixed(0)} s

  The dashboard      ${outpost.url}/
  periodic runs      ${outpost.url}/nightly
  compute platforms  ${outpost.url}/platforms
  as JSON            ${outpost.url}/api/v1/dashboard

  It runs on, without a GitHub behind it. To end it: make demo-stop
`);
process.exit(0);
