// Every command block of docs/, README.md and examples/, as a reader pastes it: in bash and in dash, with nothing preset
// (B4). Each block runs here or on a machine that systemd boots, or NOT_RUN lists it with a reason.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { WAIT_MS } from '../github/patience.mjs';
import { startRig } from '../github/rig.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { removeFolder } from './lib/folder.mjs';
import { Machine, notBootable } from './lib/machine.mjs';
import { OUTPOSTCTL, OUTPOSTD, notBuilt } from './lib/outpost.mjs';
import { OUTPOST_RUNNER, runnerNotBuilt } from './lib/runner.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const SHELLS = ['bash', 'dash'];
const COMMANDS = new Set(['sh', 'console']);
const DATA = new Set(['ini', 'js', 'json', 'nginx', 'text', 'xml', 'yaml']);

// The place where all blocks of a page run in order.
const RUNS = {
  'docs/vendors.md': 'here', 'docs/dispatch.md': 'here', 'docs/report.md': 'here',
  'README.md': 'machine', 'docs/configuration.md': 'machine', 'docs/operators.md': 'machine', 'docs/runner.md': 'machine',
  'docs/cluster.md': 'machine',
};
// The blocks that do not run, by a text in them. Their shell syntax is still checked.
const NOT_RUN = [
  ['README.md', 'make demo ', 'make check runs this test'],
  ['README.md', 'make deps && make', 'installs from the network and builds; tests/integration/units.test.mjs runs make install'],
  ['docs/operators.md', 'make deps ', 'as in README.md'],
  ['docs/operators.md', ' check\n/etc/outpost', 'shows the message about a mistake'],
  ['docs/runner.md', 'make deps && make', 'as in README.md; apt-get needs the network'],
  ['docs/vendors.md', '$ make deps && make', 'as in README.md'],
  ['examples/model-validation/README.md', './run.sh', 'needs PyTorch and an NPU; make demo-torch runs the suite where PyTorch is installed'],
];

function pages(folder = '.') {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((one) => {
    const name = path.join(folder, one.name);
    if (one.isDirectory()) return folder !== '.' || ['docs', 'examples'].includes(one.name) ? pages(name) : [];
    return name.endsWith('.md') && (folder !== '.' || name === 'README.md') ? [name] : [];
  });
}

const blocksOf = (page) => [...readFileSync(path.join(root, page), 'utf8').matchAll(/^( *)```(.*)\n([^]*?)^\1```$/gm)].map(([, , language, body]) => ({ page, language, body }));
const blocks = pages().flatMap(blocksOf);
const commands = blocks.filter(({ language }) => COMMANDS.has(language));
const notRun = ({ page, body }) => NOT_RUN.find(([where, text]) => where === page && body.includes(text));
const run = (page) => commands.filter((block) => block.page === page && !notRun(block)).map(({ body }) => body);
// The lines of a console block that a reader types.
const typed = ({ language, body }) => (language === 'console' ? body.replace(/^(\$ (.*)|.*)\n/gm, (all, line, command) => (command ? `${command}\n` : '')) : body);

describe('command blocks: each is listed and correct', () => {
  test('each block has a language', () => {
    for (const { page, language, body } of blocks) assert.ok(COMMANDS.has(language) || DATA.has(language), `${page}: a block is in '${language}':\n${body}`);
    assert.ok(commands.length > 30, `${commands.length} blocks`);
  });

  test('each runs or has a reason not to', () => {
    for (const block of commands) assert.ok(notRun(block) || (RUNS[block.page] && block.language === 'sh'), `${block.page}: this block neither runs nor is in NOT_RUN:\n${block.body}`);
    for (const [page, text] of NOT_RUN) assert.equal(commands.filter((one) => one.page === page && one.body.includes(text)).length, 1, `NOT_RUN: ${page}: ${text}`);
  });

  test('each is valid in bash and dash', () => {
    for (const block of commands)
      for (const shell of SHELLS) {
        const { status, stderr } = spawnSync(shell, ['-n'], { input: typed(block), encoding: 'utf8' });
        assert.equal(status, 0, `${block.page}: ${shell}: ${stderr}\n${block.body}`);
      }
  });

  // A pipe into tee, or a redirection of a command that prints a secret, makes a file with the user's usual mode, 0644.
  test('a secret is made with mode 0600 and is not printed (B6)', () => {
    for (const { page, body } of commands) {
      const joined = body.replace(/\\\n/g, ' ');
      for (const line of joined.split('\n').filter((one) => /openssl rand|runner add|token issue/.test(one)))
        assert.match(line, /\| sudo install -m 600 \/dev\/stdin \S+|^\(umask 077 && .*>\S+\)/, `${page}: ${line}`);
      for (const line of joined.split('\n').filter((one) => /\.pem|\.secret|\.token/.test(one) && /\b(cp|install|tee)\b/.test(one))) assert.match(line, /install .*-m 600 /, `${page}: ${line}`);
    }
  });

  // A heading's anchor, as GitHub makes it.
  const anchorsOf = (text) => new Set([...text.replace(/^ *```[^]*?^ *```$/gm, '').matchAll(/^#+ (.*)$/gm)]
    .map(([, heading]) => heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')));
  const read = (page) => readFileSync(path.join(root, page), 'utf8');

  test('each link leads to a page and a heading that exist', () => {
    for (const page of pages())
      for (const [, target] of read(page).replace(/^ *```[^]*?^ *```$/gm, '').matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const [file, anchor] = target.split('#');
        const where = file ? path.join(path.dirname(page), file) : page;
        assert.ok(existsSync(path.join(root, where)), `${page}: ${target}`);
        if (anchor && where.endsWith('.md')) assert.ok(anchorsOf(read(where)).has(anchor), `${page}: ${target}`);
      }
  });

  test('each source file that a page names exists', () => {
    for (const page of pages())
      for (const [file] of read(page).matchAll(/\b(?:[a-z_]+\/)+[a-z_0-9]+\.[ch]\b/g))
        assert.ok(['', 'src'].some((folder) => existsSync(path.join(root, folder, file))), `${page}: ${file}`);
  });
});

// A separate network and process namespace: the ports in the pages are free, and no process outlives the test.
const ALONE = ['unshare', ...(process.getuid() === 0 ? [] : ['-r']), '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
const notAlone = spawnSync(ALONE[0], [...ALONE.slice(1), 'ip', 'link', 'set', 'lo', 'up']).status !== 0 && 'this user cannot create a network namespace';

// Creates the folder of a reader who has cloned and built Outpost.
async function cloneTo(folder) {
  await fs.mkdir(path.join(folder, 'build/release'), { recursive: true });
  for (const name of ['config', 'demo', 'docs', 'examples', 'tests', 'tools', 'package.json', 'package-lock.json']) await fs.cp(path.join(root, name), path.join(folder, name), { recursive: true });
  for (const name of ['node_modules', 'build/rig', 'build/node']) if (existsSync(path.join(root, name))) await fs.symlink(path.join(root, name), path.join(folder, name));
  for (const program of [OUTPOSTD, OUTPOSTCTL, OUTPOST_RUNNER]) await fs.symlink(path.resolve(program), path.join(folder, 'build/release', path.basename(program)));
}

const filesOf = async (folder) => (await fs.readdir(folder, { recursive: true })).sort();

describe('command blocks: on the reader\'s machine', { skip: notBuilt || runnerNotBuilt || notAlone, concurrency: SHELLS.length }, () => {
  for (const shell of SHELLS)
    test(`a vendor's first day, a report and a job's end: ${shell}`, async (t) => {
      const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'doc-commands-'));
      t.after(() => removeFolder(folder));
      const clone = path.join(folder, 'outpost');
      await cloneTo(clone);
      const before = await filesOf(clone);
      const vendors = run('docs/vendors.md');
      const [end] = run('docs/dispatch.md');
      const script = [
        ...vendors.slice(0, -1),
        // the block of docs/dispatch.md belongs to a job that receive.py starts
        `cat >end.sh <<'END_OF_BLOCK'\n${end}END_OF_BLOCK
"$OUTPOST_SOURCE/examples/webhook-receiver/receive.py" hook.secret "$PORT" ${shell} -eu ./end.sh >end.log 2>&1 &
receiver=$!
until grep -q listening end.log; do kill -0 "$receiver"; sleep 0.1; done
practice pull 1004
practice wait 1004 lab-npu
kill "$receiver"`,
        ...run('docs/report.md'), ...vendors.slice(-1),
      ].map((body, index) => `echo "block ${index + 1}"\n${body}`).join('\n');
      await fs.writeFile(path.join(folder, 'script'), script);
      // python3 is Debian's, as on the reader's machine, because it has Debian's pytest
      const bin = path.join(folder, 'bin');
      await fs.mkdir(bin);
      await fs.symlink('/usr/bin/python3', path.join(bin, 'python3'));
      const [program, ...args] = [...ALONE, 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', shell, '-eu', path.join(folder, 'script')];
      const child = spawn(program, args, { cwd: clone, env: { PATH: `${bin}:${process.env.PATH}`, HOME: folder, TMPDIR: folder, LANG: 'C.UTF-8' }, stdio: ['ignore', 'pipe', 'pipe'], timeout: 5 * WAIT_MS });
      let log = '';
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (part) => { log += part; });
      const [code] = await once(child, 'close');
      assert.equal(code, 0, log);
      for (const name of ['farm-npu', 'lab-npu', 'cloud-npu']) {
        assert.match(log, new RegExp(`^${name}: model/llama3 PASS$`, 'm'), log);
        assert.match(log, new RegExp(`^${name}: model/Qwen FAIL \\(expected 0.7071, got 0.7068\\)$`, 'm'), log);
      }
      assert.match(log, /^lab-npu: \S*lab PASS$/m, 'the job ends as docs/dispatch.md reports it');
      assert.match(log, /^\? \*\*1 failure\*\* on Farm NPU/m, 'the comment is shown');
      assert.match(log, /^Outpost has it$/m, 'the CI\'s own periodic run is reported');
      assert.match(log, /^job \d+: 2 tests/m, 'the report is sent by hand');
      const ground = path.join(folder, 'outpost-practice');
      assert.match(log, /`model\/Qwen` on Farm NPU: `expected 0.7071, got 0.7068` · red on the merge base `\w{7}`, too: \[evidence\]/, log);
      assert.match(log, /^two of four tests ran: red again$/m);
      assert.match(log, /2 failed, 2 deselected/, log);
      assert.equal(log.split('\nrunning model/Qwen\n').length - 1, 2, 'the test runs from the suite\'s list and line by line');
      assert.match(log, /^running --help$/m, 'a name that looks like an option is not used as one');
      assert.ok(!(await filesOf(ground)).includes('hacked'), 'no name is executed');
      assert.doesNotMatch(log + readFileSync(path.join(ground, 'receiver.log'), 'utf8'), /outpost-report: /);
      for (const name of ['npu-17.token', 'hook.secret', 'ci.token']) assert.equal((await fs.stat(path.join(ground, name))).mode & 0o777, 0o600, name);
      assert.deepEqual(await filesOf(clone), before, 'the commands write no file into the clone');
    });
});

// A sudo for a machine without it, where root types the commands.
const SUDO = `#!/bin/sh
user=root
[ "$1" != -u ] || { user=$2; shift 2; }
while case $1 in *=*) ;; *) false ;; esac; do export "$1"; shift; done
[ "$user" != root ] || exec "$@"
exec runuser -u "$user" -- "$@"
`;
// The reader's editor: changes each file as the page says.
const EDITOR = `#!/usr/bin/python3
import re, sys
path = sys.argv[1]
text = open(path).read()
if path.endswith('outpost.yml'):
    text = re.sub(r'^infra:\\n(?: .*\\n|\\n|#.*\\n)*?(?=^\\S)', '', text, flags=re.M)
    text = re.sub(r'^ *(allowlist|ci_providers): .*\\n', '', text, flags=re.M)
    text = re.sub(r'private_key_file: \\S+', 'private_key_file: credential:app.pem', text)
    text = re.sub(r'webhook_secret_file: \\S+', 'webhook_secret_file: credential:webhook-secret', text)
    text = text.replace('https://outpost.example.org', 'http://127.0.0.1:8080')
else:
    text = """server: http://127.0.0.1:8080
name: npu-17
token_file: runner.token
accelerator: ascend-npu
labels: [npu]
work_dir: /var/lib/outpost-runner
steps:
  - name: test
    run: |
      echo '<testsuite name="unit"><testcase name="one"/></testsuite>' >"$OUTPOST_RESULTS/one.xml"
report: {files: ["results/*.xml"]}
"""
open(path, 'w').write(text)
`;

describe('command blocks: on a machine that systemd boots', { skip: notBuilt || runnerNotBuilt || notBootable(), concurrency: SHELLS.length }, () => {
  for (const shell of SHELLS)
    test(`an operator's walk and a runner's first day: ${shell}`, async (t) => {
      const rig = await startRig(); // only for its payloads and its key, because the machine cannot reach it
      const write = (at, file, text, mode = 0o644) => fs.mkdir(path.dirname(path.join(at, file)), { recursive: true }).then(() => fs.writeFile(path.join(at, file), text, { mode }));
      const machine = await Machine.boot({
        isAlone: true,
        prepare: async (at) => {
          for (const prefix of ['/usr', '/usr/local']) execFileSync('make', ['-s', '-C', root, 'install', `DESTDIR=${at}`, `PREFIX=${prefix}`], { stdio: 'pipe' });
          await write(at, 'etc/fstab', '');
          if (!existsSync('/usr/bin/sudo')) await write(at, 'usr/local/bin/sudo', SUDO, 0o755);
          await write(at, 'usr/local/bin/editor', EDITOR, 0o755);
        },
      });
      t.after(async () => {
        await machine.close();
        await rig.close();
      });
      // Pastes blocks into one shell in root's home and returns the terminal's output.
      async function paste(bodies) {
        const script = bodies.map((body, index) => `echo "block ${index + 1}"\n${body}`).join('\n');
        await write(machine.root, 'root/script', script);
        const { stdout } = await machine.run('env', '-i', 'HOME=/root', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8', 'sh', '-c', `cd && exec ${shell} -eu script 2>&1`)
          .catch(async (error) => {
            throw new Error(`${error.stdout}${error.stderr}\n${(await machine.run('journalctl', '--no-pager', '-n', '40', '-o', 'cat')).stdout}`);
          });
        return stdout;
      }
      const read = async (file) => (await machine.run('cat', file)).stdout.trim();
      const mode = async (file) => (await machine.run('stat', '-c', '%a', file)).stdout.trim();
      const saveKey = () => write(machine.root, 'root/outpost.2026-11-20.private-key.pem', rig.app.privateKey); // as a browser does

      await saveKey();
      await paste(run('README.md'));
      assert.equal(await machine.show('outpostd', 'ActiveState'), 'active');
      for (const file of ['webhook-secret', 'app.pem']) assert.equal(await mode(`/etc/outpost/${file}`), '600', file);
      await machine.run('sh', '-c', 'systemctl disable --now outpostd; rm -rf /etc/outpost /var/lib/outpost/* /root/*.pem');

      await saveKey();
      const shown = await paste([...run('docs/operators.md'), ...run('docs/configuration.md')]);
      assert.equal(await machine.show('outpostd', 'ActiveState'), 'active');
      assert.doesNotMatch(shown, /warning: /);
      for (const file of ['/etc/outpost/webhook-secret', '/etc/outpost/app.pem', '/root/npu-17.token', '/root/ascend-ci.token']) {
        assert.equal(await mode(file), '600', file);
        assert.ok(!shown.includes((await read(file)).split('\n').at(-1)), `${file} is shown on the terminal`);
      }
      assert.match(shown, /^npu-17 /m, 'runner list');

      // The vendor's file now has a pull runner, and a pull request waits for it.
      await write(machine.root, 'etc/outpost/accelerators.d/ascend-npu.yml', 'name: ascend-npu\ntitle: Ascend NPU\nlevel: L2\ntrust: anyone\nrunners: [{name: farm, pull: {labels: [npu]}}]\n');
      await machine.systemctl('reload', 'outpostd');
      const body = JSON.stringify(pullRequestOf('opened', rig.openPull('pytorch/pytorch', { number: 1 })));
      const signature = createHmac('sha256', await read('/etc/outpost/webhook-secret')).update(body).digest('hex');
      await write(machine.root, 'root/hook.json', body);
      await machine.run('curl', '-fsS', 'http://127.0.0.1:8080/github/webhook', '-H', 'X-GitHub-Event: pull_request', '-H', 'X-GitHub-Delivery: doc-1', '-H', `X-Hub-Signature-256: sha256=${signature}`,
        '-H', 'Content-Type: application/json', '--data-binary', '@/root/hook.json');
      // bubblewrap needs a complete /proc and a writable /proc/sys, but the container masks parts of its own.
      await machine.run('sh', '-c', 'mkdir /run/whole-proc && mount -t proc proc /run/whole-proc && mount -o remount,bind,rw /proc/sys');
      const day = await paste(run('docs/runner.md'));
      assert.match(day, /^✓ labels +runner farm asks for \[npu\]$/m);
      assert.doesNotMatch(day, /✗|warning: /);
      assert.equal(await mode('/etc/outpost-runner/runner.token'), '600');
      assert.ok(!day.includes(await read('/etc/outpost-runner/runner.token')), 'the terminal does not show the token');
      const view = JSON.parse((await machine.run('curl', '-fsS', 'http://127.0.0.1:8080/api/v1/pulls/1')).stdout);
      assert.deepEqual(view.verdicts.map(({ test: name, status }) => [name, status]), [['one', 'PASS']], day);
    });
});

// docs/cluster.md: the files that it shows complete, and its commands, on one machine that has the addresses of all.
describe('command blocks: a database, a daemon and nginx', { skip: notBuilt || notBootable(), concurrency: SHELLS.length }, () => {
  const page = readFileSync(path.join(root, 'docs/cluster.md'), 'utf8');
  // The block after the text that names its file.
  const fileAfter = (text) => {
    const at = page.indexOf(text);
    assert.ok(at >= 0, `docs/cluster.md names ${text}`);
    return /^```\w+\n([^]*?)^```$/m.exec(page.slice(at))[1];
  };
  const POSTGRES = '/etc/postgresql/15/main';
  const DROP_IN = '/etc/systemd/system/outpostd.service.d/database.conf';
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' });

  for (const shell of SHELLS)
    test(`from nothing to a daemon behind nginx: ${shell}`, async (t) => {
      const rig = await startRig(); // only for its key
      const write = async (at, file, text, mode = 0o644) => {
        await fs.mkdir(path.dirname(path.join(at, file)), { recursive: true });
        await fs.writeFile(path.join(at, file), text, { mode });
      };
      const machine = await Machine.boot({
        isAlone: true,
        prepare: async (at) => {
          execFileSync('make', ['-s', '-C', root, 'install', `DESTDIR=${at}`, 'PREFIX=/usr'], { stdio: 'pipe' });
          await write(at, 'etc/fstab', '');
          await write(at, 'etc/hosts', '127.0.0.1 localhost\n10.0.0.31 outpost.example.org\n');
          if (!existsSync('/usr/bin/sudo')) await write(at, 'usr/local/bin/sudo', SUDO, 0o755);
          for (const [key, cert, name] of [['etc/ssl/private/ssl-cert-snakeoil.key', 'etc/ssl/certs/ssl-cert-snakeoil.pem', 'db1'], ['etc/nginx/outpost.example.org.key', 'etc/nginx/outpost.example.org.crt', 'outpost.example.org']])
            openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', path.join(at, key), '-out', path.join(at, cert), '-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-days', '2');
          await write(at, DROP_IN, fileAfter(DROP_IN));
          await write(at, 'etc/nginx/conf.d/outpost.conf', fileAfter('/etc/nginx/conf.d/outpost.conf'));
        },
      });
      t.after(async () => {
        await machine.close();
        await rig.close();
      });
      const addresses = ['11', '12', '21', '22', '31'].map((last) => `ip addr add 10.0.0.${last}/32 dev lo`).join(' && ');
      await machine.run('sh', '-c', `ip link set lo up && ${addresses} && chown postgres /etc/ssl/private /etc/ssl/private/ssl-cert-snakeoil.key && if [ -e ${POSTGRES} ]; then pg_dropcluster 15 main; fi && pg_createcluster 15 main`);
      await machine.run('sh', '-c', `mkdir -p ${POSTGRES}/conf.d && systemctl start postgresql@15-main`);
      const environment = ['-i', 'HOME=/root', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8', 'CURL_CA_BUNDLE=/etc/nginx/outpost.example.org.crt'];
      const paste = async (bodies) => {
        await write(machine.root, 'root/script', bodies.map((body, index) => `echo "block ${index + 1}"\n${body}`).join('\n'));
        const { stdout } = await machine.run('env', ...environment, 'sh', '-c', `cd && exec ${shell} -eu script 2>&1`)
          .catch(async (error) => {
            throw new Error(`${error.stdout}${error.stderr}\n${(await machine.run('journalctl', '--no-pager', '-n', '60', '-o', 'cat')).stdout}`);
          });
        return stdout;
      };
      const [database, restart, ...rest] = run('docs/cluster.md');
      await paste([database]);
      await write(machine.root, `${POSTGRES}/conf.d/outpost.conf`, fileAfter(`${POSTGRES}/conf.d/outpost.conf`));
      // Here the daemon is on the database's machine.
      await fs.appendFile(path.join(machine.root, POSTGRES, 'pg_hba.conf'), `${fileAfter(`${POSTGRES}/pg_hba.conf`)}hostssl outpost outpost 10.0.0.11/32 scram-sha-256\n`);
      await paste([restart]);
      await write(machine.root, 'etc/outpost/outpost.yml', fileAfter('/etc/outpost/outpost.yml'));
      await write(machine.root, 'etc/outpost/app.pem', rig.app.privateKey, 0o600);
      await write(machine.root, 'etc/outpost/webhook-secret', 'a secret', 0o600);
      await fs.mkdir(path.join(machine.root, 'etc/outpost/accelerators.d'));
      const shown = await paste(rest);
      assert.equal(await machine.show('outpostd', 'ActiveState'), 'active');
      assert.match(shown, /"nodes":\[\{"name":"a"/, shown);
      assert.equal((await machine.run('stat', '-c', '%a', '/etc/outpost/database')).stdout.trim(), '600');
    });
});
