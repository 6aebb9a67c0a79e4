// docs/vendors.md, literally: every `sh` block of the page, in order, in one shell in an empty folder, with the built programs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { OUTPOSTCTL, OUTPOSTD, freePort, notBuilt } from './lib/outpost.mjs';
import { WAIT_MS } from '../github/patience.mjs';

const TIMEOUT = WAIT_MS;
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const runner = process.env.OUTPOST_RUNNER ?? path.join(path.dirname(OUTPOSTD), 'outpost-runner');
const skip = notBuilt || (!existsSync(runner) && 'outpost-runner is not built');

const blocks = (text, language) => [...text.matchAll(/^```(\S+)\n(.*?)^```$/gms)].filter(([, one]) => one === language).map(([, , body]) => body);

describe('docs/vendors.md', { skip }, () => {
  test('from nothing to the first result, three times', async (t) => {
    const text = await fs.readFile(path.join(root, 'docs/vendors.md'), 'utf8');
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'vendors-'));
    const programs = path.join(folder, 'programs');
    const clone = path.join(folder, 'clone'); // where the reader stands: the page's first command leaves it
    const ground = path.join(folder, 'outpost-practice');
    const before = await fs.readdir(root);
    await Promise.all([fs.mkdir(programs), fs.mkdir(clone)]);
    for (const [name, file] of Object.entries({ outpostctl: OUTPOSTCTL, 'outpost-runner': runner })) await fs.symlink(path.resolve(file), path.join(programs, name));
    const env = {
      ...process.env, PATH: `${programs}:${process.env.PATH}`, OUTPOSTD: path.resolve(OUTPOSTD), OUTPOSTCTL: path.resolve(OUTPOSTCTL),
      OUTPOST_SOURCE: root, PRACTICE: path.join(ground, 'practice'), PORT: String(await freePort()),
    };
    delete env.OUTPOST_URL;
    const script = blocks(text, 'sh').map((body, index) => `echo "block ${index + 1}"\n${body}`).join('\n');
    const child = spawn('sh', ['-euc', script], { cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT, detached: true });
    // What a walk that fails leaves in the background, and on disk, ends with it.
    child.once('exit', () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch { /* nothing is left of it */ }
    });
    t.after(async () => {
      if (existsSync(env.PRACTICE)) await once(spawn(path.join(root, 'demo/practice'), ['stop'], { cwd: folder, env, stdio: 'ignore' }), 'close');
      await fs.rm(folder, { recursive: true, force: true });
    });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part) => { log += part; });
    const [code] = await once(child, 'close');
    assert.equal(code, 0, log);
    for (const name of ['farm-npu', 'lab-npu', 'cloud-npu']) {
      assert.match(log, new RegExp(`^${name}: model/llama3 PASS$`, 'm'), log);
      assert.match(log, new RegExp(`^${name}: model/Qwen FAIL \\(expected 0.7071, got 0.7068\\)$`, 'm'), log);
    }
    assert.match(log, /^\? \*\*1 failure\*\* on Farm NPU/m, 'the comment');
    const receiver = await fs.readFile(path.join(ground, 'receiver.log'), 'utf8');
    assert.doesNotMatch(log + receiver, /outpost-report: /, `${log}${receiver}`);
    assert.deepEqual(await fs.readdir(clone), [], 'nothing is written into the clone');
    const [now, made] = await Promise.all([fs.readdir(root), fs.readdir(ground)]);
    assert.deepEqual(now.filter((name) => made.includes(name) && !before.includes(name)), []);
  });

  test('what it links to is there, and no command is left untested', async () => {
    const text = await fs.readFile(path.join(root, 'docs/vendors.md'), 'utf8');
    for (const [, target] of text.matchAll(/\]\(([^)#]+)\)/g)) assert.ok(existsSync(path.join(root, 'docs', target)), target);
    assert.deepEqual(blocks(text, 'console'), ['$ make deps && make\n$ export OUTPOST_SOURCE=$PWD\n'], 'only what a test cannot do is no sh block');
  });
});
