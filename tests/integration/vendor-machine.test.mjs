// Attacks of a change's author on a vendor's machine: outpost-runner checks hostile changes out and runs them. Python makes the
// system calls, because a shell cannot.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';
import { OUTPOST_RUNNER, Runner, runnerNotBuilt } from './lib/runner.mjs';

const UPSTREAM = 'pytorch/pytorch';
const skip = notBuilt || runnerNotBuilt;
const works = (...command) => spawnSync(command[0], command.slice(1)).status === 0;
const noSandbox = !works('bwrap', '--ro-bind', '/', '/', '--unshare-all', 'true') && 'bubblewrap does not work here';
const PYTHON = '/usr/bin/python3';

// The numbers of x86-64 and of the generic table, which aarch64 uses.
const [ADD_KEY, KEYCTL] = process.arch === 'x64' ? [248, 250] : [217, 219];
const PRELUDE = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*a): return libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
`;
const noKeys = !works(PYTHON, '-c', `${PRELUDE}
raise SystemExit(call(${KEYCTL}, 1, None, 0, 0, 0) < 0)`) && 'no kernel keyrings here';

describe('a change on a vendor\'s machine', { skip }, () => {
  let rig;
  let outpost;
  let dir;
  let web; // {port, asked()}: the repositories in dir over http
  let number = 500;
  const names = ['fetched', 'filtered', 'keys-in-sandbox', 'keys-without', 'calls', 'opened', 'lost'];

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators: names.map((name) => ({
      name, title: name, level: 'L2', runners: [{ name: 'farm', pull: { labels: [], max_parallel: 5 } }], triggers: { pull_request: { label: 'required' } },
    })) });
    dir = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-web-'));
    const log = path.join(dir, 'log');
    await fs.writeFile(log, '');
    const child = spawn('python3', ['tests/data/git_http.py', dir, log], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = await once(child.stdout, 'data');
    web = { child, port: Number(port), asked: () => fs.readFile(log, 'utf8') };
  });

  after(async () => {
    web?.child.kill();
    await outpost?.close();
    await rig?.close();
    if (dir) await removeFolder(dir);
  });

  const git = (name, ...args) => execFileSync('git', ['-C', path.join(dir, name), '-c', 'user.name=t', '-c', 'user.email=t@example.org',
    '-c', 'protocol.file.allow=always', ...args], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();

  const repository = async (name, files) => {
    await fs.mkdir(path.join(dir, name), { recursive: true });
    git(name, 'init', '-q', '-b', 'main');
    return commit(name, files);
  };

  const commit = async (name, files) => {
    for (const [file, text] of Object.entries(files)) await fs.writeFile(path.join(dir, name, file), text);
    git(name, 'add', '-A');
    git(name, 'commit', '-q', '--allow-empty', '-m', 'a change');
    return git(name, 'rev-parse', 'HEAD');
  };

  const machine = async (t, accelerator, options) => {
    const runner = await Runner.prepare({ outpost, name: `${accelerator}-1`, accelerator, ...options });
    t.after(() => runner.close());
    return runner;
  };

  // Opens a pull request with this head and returns its job and log when it is over.
  const tested = async (accelerator, headSha = randomBytes(20).toString('hex')) => {
    const pull = rig.openPull(UPSTREAM, { number: number++, labels: [`ciflow/crcr/${accelerator}`], headSha });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const of = (json) => json.accelerators.find(({ name }) => name === accelerator);
    const done = await outpost.waitForApi(`pulls/${pull.number}`, (json) => of(json)?.dispatches[0]?.state === 'done', { timeout: 60_000 });
    const [job] = of(done).jobs;
    return { pull: done, ...of(done), job, log: (await outpost.get(`/api/v1/jobs/${job.id}/log`)).text };
  };

  test('finding 4: a submodule cannot reach a private address by a URL or a redirect', async (t) => {
    await repository('secret', { secret: 'INTERNAL ROADMAP 2027\n' });
    await repository('origin4', { file: 'x\n' });
    const runner = await machine(t, 'fetched', {
      steps: [{ name: 'look', run: 'cat sub/secret' }], config: { checkout: { git_url: path.join(dir, 'origin4'), submodules: true } },
    });
    await runner.spawn();
    git('origin4', 'submodule', 'add', '-q', path.join(dir, 'secret'), 'sub');
    const change = async (url) => {
      git('origin4', 'config', '-f', '.gitmodules', 'submodule.sub.url', url);
      return tested('fetched', await commit('origin4', {}));
    };
    const here = `http://127.0.0.1:${web.port}`;
    for (const url of [`${here}/secret`, `http://localhost:${web.port}/secret`, `https://127.0.0.1:${web.port}/secret`, `${here}/to/127.0.0.1:${web.port}/secret`]) {
      const { job, log } = await change(url);
      assert.equal(job.conclusion, 'startup_failure', log);
      assert.doesNotMatch(log, /INTERNAL ROADMAP/);
    }
    assert.equal(await web.asked(), '', 'there is no connection');
    // If the runner's file lists the address, it is reachable, but a redirect is still not followed.
    await runner.stop();
    await runner.configure({ checkout: { git_url: path.join(dir, 'origin4'), submodules: true, allow_networks: ['127.0.0.0/8'] } });
    await runner.spawn();
    await runner.waitForLog({ ev: 'sandbox_relaxed', key: 'checkout.allow_networks' });
    const redirected = await change(`${here}/to/127.0.0.1:${web.port}/secret`);
    assert.match(redirected.log, /redirect, and none is followed/);
    assert.doesNotMatch(await web.asked(), /^GET \/secret/m);
    const listed = await change(`${here}/secret`);
    assert.match(listed.log, /INTERNAL ROADMAP/);
  });

  test('finding 8: the git filters, hooks and helpers of the runner\'s user do not run', async (t) => {
    const home = path.join(dir, 'home');
    const ran = path.join(dir, 'ran');
    await fs.mkdir(path.join(home, 'hooks'), { recursive: true });
    await fs.writeFile(path.join(home, 'hooks', 'post-checkout'), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    await fs.writeFile(path.join(home, '.gitconfig'), `[filter "lfs"]\n\tsmudge = "touch ${ran}; cat"\n\tprocess = touch ${ran}\n[core]\n\thooksPath = ${home}/hooks\n\tfsmonitor = touch ${ran}\n`);
    const head = await repository('origin8', { '.gitattributes': '*.bin filter=lfs\n', 'a.bin': 'as it was committed\n' });
    const runner = await machine(t, 'filtered', {
      steps: [{ name: 'look', run: 'cat a.bin' }], config: { checkout: { git_url: path.join(dir, 'origin8') } }, env: { HOME: home, XDG_CONFIG_HOME: home },
    });
    await runner.spawn();
    const { log } = await tested('filtered', head);
    assert.match(log, /\nas it was committed\n/);
    await assert.rejects(fs.access(ran), 'the user\'s git configuration does not run');
  });

  // The runner starts with a key in its session keyring, as pam_krb5 leaves one.
  for (const sandbox of ['bubblewrap', 'none'])
    test(`finding 5: a step sees neither the service's keys nor those of an earlier job (sandbox: ${sandbox})`, { skip: noKeys || (sandbox === 'bubblewrap' && noSandbox) }, async (t) => {
      const program = path.join(dir, `with-key-${sandbox}`);
      await fs.writeFile(program, `#!${PYTHON}${PRELUDE}
import sys
call(${KEYCTL}, 1, None, 0, 0, 0)
assert call(${ADD_KEY}, b'user', b'service', b'KERBEROS-TICKET', 15, -3) > 0
os.execv('${OUTPOST_RUNNER}', ['outpost-runner', *sys.argv[1:]])
`, { mode: 0o755 });
      // KEYCTL_SEARCH 10, KEYCTL_READ 11, KEYCTL_LINK is not needed; the session keyring is -3
      const step = `${PYTHON} - <<'END'${PRELUDE}
def find(name):
    key = call(${KEYCTL}, 10, -3, b'user', name, 0)
    if key < 0: return 'none'
    text = ctypes.create_string_buffer(99)
    call(${KEYCTL}, 11, key, text, 99, 0)
    return text.value.decode()
print('service:', find(b'service'), 'earlier:', find(b'left'), flush=True)
call(${ADD_KEY}, b'user', b'left', b'FROM AN EARLIER JOB', 19, -3)
END`;
      const runner = await machine(t, sandbox === 'none' ? 'keys-without' : 'keys-in-sandbox', { program, sandbox, steps: [{ name: 'keys', run: step }], config: { sandbox } });
      await runner.spawn();
      for (let i = 0; i < 2; i++) {
        const { log } = await tested(runner.options.accelerator);
        assert.match(log, /\nservice: none earlier: none\n/);
      }
    });

  const CALLS = `${PYTHON} - <<'END'${PRELUDE}
import fcntl, termios
print('seccomp', [l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')])
for name, number in [('io_uring_setup', 425), ('perf_event_open', ${process.arch === 'x64' ? 298 : 241}), ('bpf', ${process.arch === 'x64' ? 321 : 280}), ('keyctl', ${KEYCTL})]:
    ctypes.set_errno(0)
    call(number, 0, 0, 0, 0, 0)
    print(name, 'denied' if ctypes.get_errno() in (1, 38) else 'errno %d' % ctypes.get_errno())
ctypes.set_errno(0)
print('user namespace', libc.unshare(0x10000000), ctypes.get_errno())
print('pid 1:', open('/proc/1/cmdline').read().replace(chr(0), ' ')[:60])
END`;

  test('finding 10: system calls of common kernel attacks are denied', { skip: noSandbox }, async (t) => {
    const runner = await machine(t, 'calls', { steps: [{ name: 'calls', run: CALLS }], config: { sandbox: 'bubblewrap' } });
    await runner.spawn();
    const { log, job } = await tested('calls');
    assert.equal(job.conclusion, 'success', log);
    for (const line of ["seccomp ['2']", 'io_uring_setup denied', 'perf_event_open denied', 'bpf denied', 'keyctl denied', 'user namespace -1 1'])
      assert.ok(log.includes(`\n${line}\n`), `${line}\n${log}`);
    assert.match(log, /\npid 1: bwrap --args \d+ -- \/bin\/sh -c/);
    assert.ok(!log.includes(runner.dir), 'the log names no folder of the machine');
  });

  test('finding 10: allow.syscalls allows a call by name, and both logs say so', { skip: noSandbox }, async (t) => {
    const runner = await machine(t, 'opened', { steps: [{ name: 'calls', run: CALLS }], config: { sandbox: 'bubblewrap', allow: { syscalls: ['io_uring', 'user_namespaces'] } } });
    await runner.spawn();
    for (const value of ['io_uring', 'user_namespaces']) await runner.waitForLog({ ev: 'sandbox_relaxed', key: 'allow.syscalls', value });
    const { log } = await tested('opened');
    assert.match(log, /== sandbox: allow\.syscalls: io_uring\n== sandbox: allow\.syscalls: user_namespaces\n/);
    assert.match(log, /\nio_uring_setup errno (14|22)\n/);
    assert.match(log, /\nuser namespace 0 0\n/);
    assert.match(log, /\nkeyctl denied\n/);
  });

  test('B7: a program that the sandbox hides gives ? and no failure', { skip: noSandbox }, async (t) => {
    const tools = path.join(dir, 'tools');
    await fs.mkdir(tools);
    await fs.writeFile(path.join(tools, 'suite.sh'), '#!/bin/sh\n', { mode: 0o755 });
    const runner = await machine(t, 'lost', {
      steps: [{ name: 'test', run: `${tools}/suite.sh` }], config: { sandbox: 'bubblewrap', report: { files: ['results/*.xml'] } },
    });
    await runner.spawn();
    const lost = await tested('lost');
    assert.equal(lost.job.conclusion, 'action_required');
    assert.deepEqual(lost.job.status, 'completed');
    const cells = lost.pull.accelerators.find(({ name }) => name === 'lost').cells ?? [];
    assert.ok(!JSON.stringify(cells).includes('FAIL'));
    assert.match(lost.log, /exit 127 \(a command was not found\): the sandbox hides .*suite\.sh; in the runner's file allow: \{read: \[.*tools\]\} shows it; no report: nothing matches results\/\*\.xml in the job's work folder/);
    await runner.stop();
    await runner.configure({ steps: [{ name: 'test', run: 'exit 1' }] });
    await runner.spawn();
    const failed = await tested('lost');
    assert.equal(failed.job.conclusion, 'failure');
    assert.match(failed.log, /step test: exit 1; no report: nothing matches results\/\*\.xml in the job's work folder/);
  });
});
