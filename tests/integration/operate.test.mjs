// The operator's side: start, reload, inspect, back up, stop, and each refusal to start with its message.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { needsFile } from './lib/database.mjs';
import { OUTPOSTCTL, Outpost, freePort, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const hasTerminals = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;

const pem = (dir, name) => {
  const [key, cert] = [path.join(dir, `${name}.key`), path.join(dir, `${name}.crt`)];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2', '-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'], { stdio: 'ignore' });
  return { key, cert };
};

describe('operating outpostd', { skip: notBuilt }, () => {
  let rig;
  let vendor;
  let outpost;

  before(async () => {
    rig = await startRig();
    vendor = await startSilentVendor({ secret: SECRET });
    outpost = await Outpost.start({
      rig,
      accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }],
      secrets: { chip: { hook: SECRET } },
    });
    const pull = rig.openPull(UPSTREAM, { number: 7 });
    await rig.deliver('pull_request', pullRequestOf('opened', pull));
    await until(() => vendor.events.length === 1);
  });
  after(async () => {
    await outpost?.close();
    await vendor?.stop();
    await rig?.close();
  });

  const json = async (...args) => {
    const { code, stdout, stderr } = await outpost.ctl('--json', ...args);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };

  test('check prints ok, or file, line and the nearest key', async () => {
    assert.equal((await outpost.ctl('check')).code, 0);
    assert.equal((await outpost.check()).code, 0);
    const file = path.join(outpost.dir, 'accelerators.d', 'bad.yml');
    await fs.writeFile(file, 'name: bad\ntitle: Bad\nlevel: L9\ntirggers: {}\n');
    for (const { code, stdout } of [await outpost.ctl('check'), await outpost.check()]) {
      assert.equal(code, 1);
      assert.match(stdout, /bad\.yml:3: .*L9/);
      assert.match(stdout, /bad\.yml:4: .*tirggers.*triggers/);
    }
    const wrong = await outpost.ctl('check', '--json');
    assert.equal(wrong.code, 1);
    const { ok, problems } = JSON.parse(wrong.stdout);
    assert.equal(ok, false);
    assert.deepEqual(problems.map(({ file: at, line }) => [at, line]), [[file, 1], [file, 3], [file, 4]]);
    assert.match(problems[2].text, /^unknown key "tirggers"; did you mean "triggers"\?$/);
    await fs.rm(file);
    assert.deepEqual(await json('check'), { ok: true, accelerators: 1, problems: [], warnings: [] });
  });

  test("check refuses a wrong parameter in the database's URL, and names the key", async () => {
    const { config } = outpost.options;
    await outpost.configure({ config: { ...config, store: 'postgresql://outpost@10.0.0.11/outpost?sslmode=requre' } });
    const line = (await fs.readFile(outpost.configFile, 'utf8')).split('\n').findIndex((text) => text.startsWith('store:')) + 1;
    for (const { code, stdout } of [await outpost.ctl('check'), await outpost.check()])
      assert.deepEqual([code, stdout], [1, `${outpost.configFile}:${line}: store: invalid sslmode value: "requre"\n`]);
    // On a machine without libpq: another library has its name.
    const libraries = path.join(outpost.dir, 'libraries');
    await fs.mkdir(libraries);
    await fs.writeFile(path.join(libraries, 'libpq.so.5'), 'no library');
    const { status, stderr } = spawnSync(OUTPOSTCTL, ['-c', outpost.configFile, 'check'], { encoding: 'utf8', env: { ...process.env, LD_LIBRARY_PATH: libraries } });
    assert.equal(status, 0, stderr);
    assert.ok(stderr.includes(`note: ${outpost.configFile}:${line}: store is not checked: PostgreSQL's client library is missing: `), stderr);
    await outpost.configure({ config });
    assert.equal((await outpost.check()).code, 0);
  });

  test('check notes keys that have no effect, and a reload logs them', async () => {
    const file = path.join(outpost.dir, 'accelerators.d', 'idle.yml');
    await fs.writeFile(file, 'name: idle\ntitle: Idle\nlevel: L2\nexperiments: {tests: 5}\nrunners: [{name: farm, pull: {}}]\n');
    const text = 'experiments has no effect: no runner has reruns: tests or reruns: whole';
    for (const { code, stdout, stderr } of [await outpost.ctl('check'), await outpost.check()]) {
      assert.deepEqual([code, stdout], [0, '']);
      assert.ok(stderr.includes(`note: ${file}:4: ${text}\n`), stderr);
    }
    assert.deepEqual((await json('check')).warnings, [{ file, line: 4, text }]);
    await outpost.reload();
    await until(() => outpost.log.some(({ fields }) => fields.ev === 'config_note' && fields.at === `${file}:4` && fields.why === text), { what: 'the log has the note' });
    await fs.rm(file);
    await outpost.reload();
  });

  test('status, deliveries and dispatches print tables and JSON', async () => {
    const status = await json('status');
    assert.equal(status.upstream, UPSTREAM);
    assert.equal(status.accelerators, 1);
    assert.equal(status.store.writable, true);
    const { deliveries } = await json('deliveries');
    assert.deepEqual([deliveries[0].event, deliveries[0].action, deliveries[0].state], ['pull_request', 'opened', 'planned']);
    assert.deepEqual((await json('deliveries', '--failed')).deliveries, []);
    const { dispatches } = await json('dispatches', '--pr', '7');
    assert.deepEqual(dispatches.map(({ accelerator, runner, state }) => [accelerator, runner, state]), [['chip', 'lab', 'acknowledged']]);
    const { space } = status;
    assert.ok(space.tables.some(({ name, bytes }) => name === 'delivery' && bytes > 0));
    assert.deepEqual([space.bytes, space.shrinks], [status.store.bytes, true]);
    const { stdout: spaces } = await outpost.ctl('status');
    assert.match(spaces, /^table +size *\nall tables +\d\.\d MiB *\n\nno results\n\nmeasured .+ ago/m);
    if (!outpost.database.isOnServer) assert.match(spaces, /^measured .+; [\d.]+ MiB of the file are free/m);
    for (const args of [['status'], ['deliveries'], ['dispatches'], ['dispatches', '--pr', '7']]) {
      const { code, stdout } = await outpost.ctl(...args);
      assert.equal(code, 0);
      assert.doesNotMatch(stdout, /\x1b\[/, 'a pipe gets no colours');
      assert.ok(stdout.trim().length > 0);
    }
  });

  test('wrong usage exits with 2, and a failure with 1', async () => {
    assert.equal((await outpost.ctl('nonsense')).code, 2);
    assert.match((await outpost.ctl('statsu')).stderr, /did you mean 'status'/);
    assert.equal((await outpost.ctl()).code, 2);
    assert.equal((await outpost.ctl('replay', '00000000-0000-4000-8000-000000000000')).code, 1);
    assert.equal((await outpost.ctl('comment', 'preview', '999')).code, 1);
    assert.match((await outpost.ctl('nightly', 'skip', 'chip')).stderr, /^outpostctl: chip has no schedule$/m);
    const all = await outpost.ctl('--help');
    assert.equal(all.code, 0);
    for (const line of all.stdout.split('\n')) assert.ok(line.length <= 80, line);
    // every help text begins in one column, even after a longer usage
    const commands = all.stdout.split('\n\n')[1].split('\n');
    commands.forEach((line, i) => assert.ok(/^.{35} {2}\S/.test(line) || /^ {37}\S/.test(commands[i + 1]), line));
    const nowhere = await outpost.ctl('-c', '/nowhere.yml', 'status');
    assert.deepEqual([nowhere.code, nowhere.stderr.split('\n')[1]], [1, 'Give the configuration file of outpostd: outpostctl -c FILE']);
    const group = await outpost.ctl('runner', 'ad');
    assert.equal(group.code, 2);
    assert.match(group.stderr, /^outpostctl: 'runner' is one of:\n {2}runner add NAME/);
    const help = await outpost.ctl('deliveries', '--help');
    assert.equal(help.code, 0);
    assert.match(help.stdout, /^Usage: outpostctl .*deliveries \[--failed\]/);
    // The usage of a command that others begin with lists those, too.
    for (const [words, stream, code] of [[['nightly', '--help'], 'stdout', 0], [['nightly', 'rn', 'chip'], 'stderr', 2]]) {
      const answer = await outpost.ctl(...words);
      assert.equal(answer.code, code);
      assert.match(answer[stream], /^Usage: .* nightly run ACCELERATOR\nUsage: .* nightly skip ACCELERATOR\nUsage: .* nightly$/m);
    }
  });

  test('a wrong argument is refused with its name', async () => {
    const limit = 'must be a whole number from 1 to 1000';
    for (const [message, ...args] of [
      ...['-1', '0', 'abc', '1001', '1'.repeat(20)].flatMap((n) => ['deliveries', 'dispatches'].map((command) => [`--limit ${n}: ${limit}`, command, '--limit', n])),
      ['--limit needs a value', 'deliveries', '--failed', '--limit'],
      ["unexpected argument '--a [31m'", 'deliveries', '--a\u001b[31m'],
      ["unexpected argument '--faild'", 'deliveries', '--faild'],
      ['--pr x: must be a whole number, 1 or more', 'dispatches', '--pr', 'x'],
      ['PR 0: must be a whole number, 1 or more', 'comment', 'preview', '0'],
      ["'a_b' is not the GUID of a delivery", 'replay', 'a_b'],
      ['ID x: must be a whole number, 1 or more', 'known', 'remove', 'x'],
      ['--url is given twice', 'known', 'add', '--url', 'a', '--url', 'b'],
      ["unexpected argument 'c'", 'retest', 'a', 'b', 'c'],
      ...['abc', '#7', '0', 'a1b2c3', 'a1b2c3g', '1'.repeat(41)].map((change) => [`'${change}' is neither a pull request's number nor a SHA of at least 7 digits`, 'retest', change]),
      ["unexpected argument 'now'", 'status', 'now'],
      ["unexpected argument 'b'", 'backup', 'a', 'b'],
      ['--to needs a value', 'import-allowlist', 'a.yml', '--to'],
    ]) {
      const { code, stdout, stderr } = await outpost.ctl(...args);
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      const [line, usage] = stderr.split('\n');
      assert.equal(line, `outpostctl: ${message}`);
      assert.ok(usage.startsWith(`Usage: outpostctl [-c FILE] [--json] ${args[0]} `) || usage === `Usage: outpostctl [-c FILE] [--json] ${args[0]}`, usage);
    }
    for (const option of ['-c', '--config']) {
      const { code, stderr } = await outpost.ctl(option);
      assert.deepEqual([code, stderr], [2, `outpostctl: ${option} needs a file\nTry 'outpostctl --help'.\n`]);
    }
    assert.equal((await outpost.ctl('deliveries', '--limit', '1000')).code, 0);
  });

  test('without a service outpostctl says that outpostd is not running', async () => {
    const alone = await Outpost.prepare({ rig });
    try {
      const { code, stderr } = await alone.ctl('status');
      assert.equal(code, 1);
      assert.equal(stderr, `outpostctl: outpostd is not running (no process listens on ${alone.stateDir}/control.sock)\n`);
    } finally {
      await fs.rm(alone.dir, { recursive: true });
    }
  });

  test('replay plans a delivery again and sends no second dispatch', async () => {
    const { deliveries } = await json('deliveries');
    await json('replay', deliveries[0].guid);
    await until(async () => (await json('deliveries')).deliveries[0].state === 'planned');
    await until(async () => (await json('status')).outbox.due === 0);
    assert.equal(vendor.events.length, 1);
    assert.equal((await json('dispatches', '--pr', '7')).dispatches.length, 1);
  });

  test('comment preview prints the Markdown into a pipe', async () => {
    const { code, stdout } = await outpost.ctl('comment', 'preview', '7');
    assert.equal(code, 0);
    assert.match(stdout, /<!-- outpost:results -->/);
    assert.match(stdout, /Chip/);
  });

  test('backup writes a complete database while the service runs', { skip: needsFile }, async () => {
    const file = path.join(outpost.dir, 'copy.db');
    const { code, stderr } = await outpost.ctl('backup', file);
    assert.equal(code, 0, stderr);
    assert.equal(execFileSync('sqlite3', [file, 'PRAGMA integrity_check; SELECT count(*) FROM dispatch;']).toString(), 'ok\n1\n');
    assert.equal((await outpost.ctl('backup', file)).code, 1, 'backup does not overwrite a file');
  });

  test('only the owner can use the control socket', async () => {
    assert.equal((await fs.stat(path.join(outpost.stateDir, 'control.sock'))).mode & 0o777, 0o600);
    assert.equal((await fs.stat(path.join(outpost.stateDir, 'callback.key'))).mode & 0o777, 0o600);
  });

  test('healthz, readyz, metrics and status answer', async () => {
    assert.equal((await outpost.get('/healthz')).status, 200);
    assert.equal((await outpost.get('/readyz')).status, 200);
    const metrics = await outpost.get('/metrics');
    assert.match(metrics.headers['content-type'], /^text\/plain; version=0\.0\.4/);
    const lines = metrics.text.trimEnd().split('\n');
    assert.ok(lines.every((line) => /^# (HELP|TYPE) [a-z_0-9]+ .+$/.test(line) || /^[a-z_0-9]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.e+-]+$/.test(line)), metrics.text);
    assert.match(metrics.text, /^outpost_webhooks_total\{answer="accepted"\} [1-9]/m);
    const names = lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2]);
    assert.equal(new Set(names).size, names.length, 'each metric is declared once');
    assert.equal((await outpost.api('status')).dispatches.acknowledged, 1);
    const { accelerators } = await outpost.api('accelerators');
    assert.deepEqual([accelerators[0].name, accelerators[0].level, accelerators[0].runners, accelerators[0].pass_rate], ['chip', 'L2', [{ name: 'lab', kind: 'webhook', reruns: 'none' }], null]);
  });

  test('unknown pull requests, commits and pages are 404', async () => {
    for (const target of ['/api/v1/pulls/999', '/api/v1/pulls/x', `/api/v1/commits/${'0'.repeat(40)}`, '/api/v1/commits/abc', '/api/v1/accelerators/none', '/nothing'])
      assert.equal((await outpost.get(target)).status, 404, target);
  });

  test('a table fits a terminal of 80 columns without cutting a reason, and is not cut for a pipe', { skip: !hasTerminals && 'no pseudo-terminals here' }, async () => {
    const pull = rig.openPull(UPSTREAM, { number: 8, author: 'stranger', association: 'NONE' });
    await rig.deliver('pull_request', pullRequestOf('opened', pull));
    await outpost.waitForApi('pulls/8', (one) => one.accelerators[0]?.dispatches[0]?.state === 'held');
    const command = `stty cols 80; ${OUTPOSTCTL} -c ${outpost.configFile} dispatches --pr 8`;
    const shown = execFileSync('script', ['-qec', command, '/dev/null'], { input: '' }).toString().replace(/\x1b\[\d*m/g, '');
    const lines = shown.trimEnd().split(/\r?\n/);
    assert.equal(lines.length, 3, shown);
    assert.match(lines[0], /^CREATED .* ROUND$/);
    assert.ok(lines.slice(0, 2).every((line) => [...line].length <= 80), shown);
    assert.match(lines[1], /….* held /, 'the widest column is cut');
    assert.match(lines[2], /^ {4}\S.*has not contributed before[^…]*$/);
    assert.match((await outpost.ctl('dispatches', '--pr', '8')).stdout, /has not contributed before[^…]*$/m);
  });

  test('a reload applies the whole configuration or none of it', async () => {
    const { accelerators } = outpost.options;
    await outpost.configure({ accelerators: [...accelerators, { name: 'second', title: 'Second', level: 'L1', runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] }] });
    assert.equal((await outpost.reload()).fields.ev, 'reloaded');
    assert.equal((await outpost.api('accelerators')).accelerators.length, 2);
    const file = path.join(outpost.dir, 'accelerators.d', 'third.yml');
    await fs.writeFile(file, 'name: third\nlevel: L2\nrunners: 7\n');
    assert.equal((await outpost.reload()).fields.ev, 'reload_refused');
    assert.ok(outpost.log.some(({ fields }) => fields.ev === 'config_error' && /third\.yml:\d+: /.test(fields.at)));
    assert.equal((await outpost.api('accelerators')).accelerators.length, 2);
    assert.match((await json('status')).config.refused, /third\.yml/);
    await fs.rm(file);
    assert.equal((await outpost.reload()).fields.ev, 'reloaded');
    assert.equal((await json('status')).config.refused, null);
  });

  test('each reload logs the keys that need a restart while they differ from the running ones', async () => {
    const restartKeys = async (config) => {
      const after = outpost.log.length;
      await outpost.configure({ config });
      assert.equal((await outpost.reload()).fields.ev, 'reloaded');
      return outpost.log.slice(after).filter(({ fields }) => fields.ev === 'restart_needed').map(({ fields }) => fields.key);
    };
    const { config } = outpost.options;
    const other = { ...config, listen: '127.0.0.1:1', state_dir: path.join(outpost.dir, 'elsewhere') };
    assert.deepEqual(await restartKeys(other), ['listen', 'state_dir']);
    assert.deepEqual(await restartKeys(other), ['listen', 'state_dir'], 'the old values are still in use');
    assert.deepEqual(await restartKeys(config), [], 'no key differs');
  });

  test('a second daemon on the same folder refuses to start', async () => {
    const second = await Outpost.prepare({ rig: undefined, privateKey: rig.app.privateKey, config: { state_dir: outpost.stateDir } });
    try {
      await assert.rejects(second.spawn(), /ended \(1\)/);
      assert.match(second.tail(), /ev=start_failed .*lock/);
    } finally {
      await fs.rm(second.dir, { recursive: true });
    }
  });

  test('the log contains no secret', () => {
    const text = outpost.log.map(({ line }) => line).join('\n');
    for (const secret of [SECRET, rig.secret, rig.app.privateKey.split('\n')[1], 'Bearer ', 'sha256='])
      assert.ok(!text.includes(secret), secret);
  });
});

describe('listening', { skip: notBuilt }, () => {
  test('outpostd serves IPv6', async () => {
    const port = await freePort();
    const rig = await startRig();
    const outpost = await Outpost.start({ rig, port, listen: `[::1]:${port}` });
    assert.equal((await outpost.get('/healthz')).status, 200);
    assert.equal((await rig.deliver('ping', { zen: 'x', hook_id: 1 })).status_code, 200);
    await outpost.close();
    await rig.close();
  });

  test('outpostd serves TLS 1.2 and 1.3, and a reload replaces the certificate', async () => {
    const rig = await startRig();
    const outpost = await Outpost.prepare({ rig, wait: false });
    const [one, two] = [pem(outpost.dir, 'one'), pem(outpost.dir, 'two')];
    await outpost.configure({ config: { tls: { certificate: one.cert, private_key: one.key }, public_url: outpost.url.replace('http:', 'https:') } });
    await outpost.spawn();
    await outpost.waitForLog({ ev: 'listening', tls: 'yes' });
    const get = (options) => new Promise((resolve, reject) => {
      https.get({ host: '127.0.0.1', port: outpost.port, path: '/healthz', rejectUnauthorized: false, agent: false, ...options }, (response) => {
        resolve({ status: response.statusCode, protocol: response.socket.getProtocol(), name: response.socket.getPeerCertificate().subject.CN });
        response.resume();
      }).on('error', reject);
    });
    for (const version of ['TLSv1.2', 'TLSv1.3'])
      assert.deepEqual(await get({ minVersion: version, maxVersion: version }), { status: 200, protocol: version, name: 'one' });
    await assert.rejects(get({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }));
    await outpost.configure({ config: { tls: { certificate: two.cert, private_key: one.key } } });
    assert.equal((await outpost.reload()).fields.ev, 'reload_refused');
    assert.equal((await get()).name, 'one');
    await outpost.configure({ config: { tls: { certificate: two.cert, private_key: two.key } } });
    assert.equal((await outpost.reload()).fields.ev, 'reloaded');
    assert.equal((await get()).name, 'two');
    await outpost.close();
    await rig.close();
  });
});

describe('outpostd refuses to start with', { skip: notBuilt }, () => {
  const refuses = async (spoil, words, options = {}) => {
    const rig = await startRig();
    const outpost = await Outpost.prepare({ rig, ...options });
    try {
      await spoil(outpost);
      await assert.rejects(outpost.spawn(), /ended \(1\)/);
      assert.match(outpost.tail(), words);
      assert.doesNotMatch(outpost.tail(), /ev=seat_taken/);
    } finally {
      await fs.rm(outpost.dir, { recursive: true, force: true });
      await rig.close();
    }
  };
  const database = (outpost) => path.join(outpost.stateDir, 'outpost.db');

  test('an invalid private key', () => refuses((outpost) => fs.writeFile(path.join(outpost.dir, 'app.pem'), 'not a key\n'), /outpost\.yml:\d+: .*key/));
  test('a file that is not a database', { skip: needsFile }, () => refuses((outpost) => fs.writeFile(database(outpost), 'x'.repeat(8192)), /ev=start_failed .*outpost\.db/));
  test('a database from a newer version', { skip: needsFile }, () => refuses(async (outpost) => {
    await outpost.spawn();
    await outpost.stop();
    execFileSync('sqlite3', [database(outpost), 'PRAGMA user_version = 4242']);
  }, /ev=start_failed .*outpost\.db.*4242/));
  test('a damaged database', { skip: needsFile }, () => refuses(async (outpost) => {
    await outpost.spawn();
    await outpost.stop();
    const file = await fs.open(database(outpost), 'r+');
    await file.write(Buffer.alloc(16384, 0xa5), 0, 16384, 16384);
    await file.close();
  }, /ev=start_failed .*outpost\.db/));
  test('an address in use', async () => {
    const rig = await startRig();
    await refuses((outpost) => outpost.configure({ config: { listen: rig.url.replace('http://', '') } }), /ev=start_failed .*(in use|EADDRINUSE)/);
    await rig.close();
  });
});
