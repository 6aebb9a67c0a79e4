// The bundle of outpost-runner on a machine without our packages: on a bare Debian in a folder it claims a job, runs it and
// reports it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { deliver, headsOf, serverOptions } from '../kill/runner_story.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
// The release build, which vendors get, and not the one with sanitizers.
const PROGRAM = process.env.OUTPOST_RUNNER_RELEASE ?? path.join(root, 'build/release/outpost-runner');
const skip = notBuilt || (!existsSync(PROGRAM) && `${PROGRAM} is not built`) || (process.getuid() !== 0 && 'only root may make a machine in a folder') || (!existsSync('/usr/bin/apt-get') && 'apt is not installed');

test('the bundle runs on a bare Debian', { skip, timeout: 600_000 }, async () => {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-bundle-'));
  const machine = path.join(root, 'build/bare-debian');
  await fs.mkdir(path.dirname(machine), { recursive: true });
  execFileSync(path.join(root, 'tools/bare-root.sh'), [machine], { stdio: 'inherit' });
  execFileSync(path.join(root, 'tools/runner-bundle.sh'), [PROGRAM, 'test', dir], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [tarball] = (await fs.readdir(dir)).filter((name) => name.endsWith('.tar.gz'));
  const home = path.join(machine, 'opt/outpost-runner');
  await removeFolder(home);
  await fs.mkdir(home, { recursive: true });
  execFileSync('tar', ['-xzf', path.join(dir, tarball), '-C', home, '--strip-components=1']);

  const unit = await fs.readFile(path.join(home, 'outpost-runner.service'), 'utf8');
  for (const [, program] of unit.matchAll(/^Exec(?:Start|StartPre)=(\S+)/gm)) assert.equal(program, '/opt/outpost-runner/outpost-runner');
  const outpost = await Outpost.start(serverOptions());
  try {
    const { stdout: token } = await outpost.ctl('runner', 'add', 'bare', '--accelerator', 'farm-xpu');
    await fs.writeFile(path.join(home, 'token'), token, { mode: 0o600 });
    await fs.writeFile(path.join(home, 'runner.yml'), JSON.stringify({
      server: outpost.url, name: 'bare', accelerator: 'farm-xpu', token_file: 'token', labels: ['any'], work_dir: '/opt/outpost-runner/work', sandbox: 'none',
      steps: [{ name: 'test', run: 'cat /etc/debian_version; ldconfig -p | grep -c libuv; echo "<testsuite name=\'unit\'><testcase name=\'one\'/></testsuite>" > "$OUTPOST_RESULTS/junit.xml"' }],
      report: { files: ['results/*.xml'], format: 'junit' },
    }));
    const [head] = headsOf('bundle', 1);
    await deliver(outpost, head);
    // Its own mount namespace, so that its mounts disappear with it.
    const inside = `mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" /opt/outpost-runner/outpost-runner -c /opt/outpost-runner/runner.yml --once`;
    const child = spawn('unshare', ['--mount', 'sh', '-c', inside, 'sh', machine], { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text; });
    const [code] = await once(child, 'close');
    assert.equal(code, 0, output);
    const view = await outpost.waitForApi(`commits/${head}`, ({ verdicts }) => verdicts.length > 0);
    assert.deepEqual(view.verdicts.map(({ suite, test: name, status }) => `${suite}/${name} ${status}`), ['unit/one PASS']);
    const { text: log } = await outpost.get(`/api/v1/jobs/${view.accelerators[0].jobs[0].id}/log`);
    assert.match(log, /^\d+\.\d+$/m); // the version of its Debian
    assert.match(log, /^0$/m, 'the machine must not have our libraries, or the test proves nothing');
  } finally {
    await outpost.close();
    await removeFolder(dir);
  }
});
