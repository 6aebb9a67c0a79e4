// A vendor's machine: outpost-runner in its own folder, with a token from `outpostctl runner add`.
//
//   const runner = await Runner.start({ outpost, name: 'npu-17', accelerator: 'npu', steps: [{ name: 'test', run: 'make test' }] });
//   await runner.waitForLog({ ev: 'job_over', as: 'sent' });
//   await runner.stop();            // SIGTERM, asserts exit 0
//
// The program comes from OUTPOST_RUNNER, or from build/release/ (BUILD=asan: another variant).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { library } from '../../github/libraries.mjs';
import { WAIT_MS, waitAtLeast } from '../../github/patience.mjs';
import { removeFolder } from './folder.mjs';
import { parseLog, runProgram } from './outpost.mjs';

const { stringify } = library('yaml');
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../..');

export const OUTPOST_RUNNER = process.env.OUTPOST_RUNNER ?? path.join(root, 'build', process.env.BUILD ?? 'release', 'outpost-runner');
export const runnerNotBuilt = existsSync(OUTPOST_RUNNER) ? false : `${path.relative(root, OUTPOST_RUNNER)} is not built`;

const children = new Set();
process.on('exit', () => { for (const child of children) child.kill('SIGKILL'); });

export class Runner extends EventEmitter {
  log = []; // {line, fields}
  #child;
  #exit;

  // options: outpost, name, accelerator, steps; token (instead of asking outpostctl), server (default: outpost's URL);
  // sandbox (default: none); config: other keys of runner.yml. env; args; wait: false (do not wait until it is ready);
  // program (instead of outpost-runner itself)
  static async start(options) {
    const runner = await Runner.prepare(options);
    await runner.spawn();
    return runner;
  }

  // Writes the configuration only.
  static async prepare(options) {
    const self = new Runner();
    self.setMaxListeners(0);
    self.options = options;
    self.dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-runner-'));
    self.workDir = path.join(self.dir, 'work');
    self.configFile = path.join(self.dir, 'runner.yml');
    await self.writeToken(options.token ?? await addRunner(options.outpost, options.name, options.accelerator));
    await self.configure();
    return self;
  }

  async configure(config = {}) {
    this.options.config = { ...this.options.config, ...config };
    const { outpost, name, accelerator, steps, server = outpost.url, config: more } = this.options;
    await fs.writeFile(this.configFile, stringify({
      server, name, token_file: 'token', accelerator, work_dir: 'work', sandbox: 'none', steps, log: { level: 'debug' }, ...more,
    }));
  }

  writeToken(token) {
    return fs.writeFile(path.join(this.dir, 'token'), `${token}\n`, { mode: 0o600 });
  }

  async spawn(...args) {
    const started = this.log.length;
    const child = spawn(this.options.program ?? OUTPOST_RUNNER, ['-c', this.configFile, ...(this.options.args ?? []), ...args],
      { cwd: this.dir, env: { ...process.env, ...this.options.env }, stdio: ['ignore', 'inherit', 'pipe'] });
    this.#child = child;
    children.add(child);
    this.#exit = once(child, 'exit').then(([code, signal]) => {
      children.delete(child);
      return { code, signal };
    });
    let rest = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const entry = { line, fields: parseLog(line) };
        this.log.push(entry);
        this.emit('log', entry);
      }
    });
    if (this.options.wait === false) return;
    const failed = this.#exit.then(({ code, signal }) => { throw new Error(`outpost-runner ended (${signal ?? code}):\n${this.tail()}`); });
    failed.catch(() => {});
    await Promise.race([this.waitForLog({ ev: 'ready' }, { after: started }), failed]);
  }

  get pid() { return this.#child.pid; }
  get exited() { return this.#exit; }

  tail(lines = 40) {
    return this.log.slice(-lines).map(({ line }) => line).join('\n');
  }

  // The first log entry, past (from `after` on) or future, that has these fields.
  waitForLog(expected, { timeout, after = 0 } = {}) {
    const limit = waitAtLeast(timeout);
    const fits = ({ fields }) => Object.entries(expected).every(([key, value]) => (value instanceof RegExp ? value.test(fields[key] ?? '') : String(fields[key]) === String(value)));
    const found = this.log.slice(after).find(fits);
    if (found) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.off('log', look);
        reject(new Error(`no log line ${JSON.stringify(expected)} within ${limit} ms; the last ones:\n${this.tail()}`));
      }, limit);
      const look = (entry) => {
        if (!fits(entry)) return;
        clearTimeout(timer);
        this.off('log', look);
        resolve(entry);
      };
      this.on('log', look);
    });
  }

  signal(name) {
    this.#child.kill(name);
  }

  // Sends SIGTERM and asserts exit status 0.
  async stop() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM');
    const ended = await Promise.race([this.#exit, sleep(WAIT_MS, 'late', { ref: false })]);
    if (ended === 'late') await this.kill();
    assert.deepEqual(ended, { code: 0, signal: null }, `outpost-runner did not end well:\n${this.tail()}`);
  }

  // Kills only the agent. Another process runs the steps.
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  // The folders of jobs, oldest first, and a file of one.
  async jobs(sub = '') {
    const names = await fs.readdir(path.join(this.workDir, 'jobs', sub)).catch(() => []);
    return names.filter((name) => /^\d/.test(name)).sort();
  }

  async file(job, name) {
    return fs.readFile(path.join(this.workDir, 'jobs', job, name), 'utf8');
  }

  check() {
    return runProgram(OUTPOST_RUNNER, ['-c', this.configFile, '--check'], { cwd: this.dir });
  }

  // Ends it in any state and removes its folder (kept with KEEP=1).
  async close() {
    try {
      if (this.#child?.exitCode === null && this.#child.signalCode === null) {
        this.#child.kill('SIGTERM');
        this.#child.kill('SIGTERM');
        await this.stop();
      }
    } finally {
      if (process.env.KEEP) console.error(`kept: ${this.dir}`);
      else await removeFolder(this.dir);
    }
  }
}

// A machine's token from outpostctl.
export async function addRunner(outpost, name, accelerator) {
  const { code, stdout, stderr } = await outpost.ctl('runner', 'add', name, '--accelerator', accelerator);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}
