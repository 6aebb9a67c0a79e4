// `outpostctl store copy`: an installation with jobs, packed results, red cells and logs in each state moves from SQLite to a real PostgreSQL and
// back, and its pages stay the same. The copy is killed at random moments and goes on; whoever uses a database keeps it away.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { startPostgres } from '../postgres.mjs';
import { OUTPOSTCTL, Outpost, notBuilt, until } from './lib/outpost.mjs';
import { deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const sha = (data) => createHash('sha256').update(data).digest('hex');
const linesOf = (n, seed) => Array.from({ length: n }, (_, i) => `${i} ${sha(`${seed} ${i}`)}\n`).join('');
const ACCELERATOR = { name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, trust: 'anyone' };
const sqlite = (file, sql) => execFileSync('sqlite3', ['-cmd', '.timeout 10000', file, sql], { encoding: 'utf8' }).trim();

describe('outpostctl store copy', { skip: notBuilt }, () => {
  let rig, vendor, server, outpost;
  const databases = new Set();
  const logs = new Map(); // job → text
  let runs = 0;
  let next = 900;

  // An empty database; returns its URL.
  function makeDatabase(name) {
    server.mustRun('psql', ['-q', '-h', server.folder, '-U', 'outpost', '-d', 'postgres', '-c', `CREATE DATABASE ${name} TEMPLATE template0 LOCALE 'C'`]);
    databases.add(name);
    return server.url.replace('/postgres?', `/${name}?`);
  }
  const psql = (name, sql) => server.mustRun('psql', ['-qAt', '-h', server.folder, '-U', 'outpost', '-d', name, '-c', sql]).trim();

  before(async () => {
    [rig, vendor] = await Promise.all([startRig({ repositories: [{ name: UPSTREAM }] }), startSilentVendor({ secret: SECRET })]);
    server = startPostgres();
    outpost = await Outpost.prepare({
      engine: 'sqlite', rig, accelerators: [{ ...ACCELERATOR, runners: [{ name: 'lab', reruns: 'none', webhook: { url: vendor.url, secret: 'hook' } }] }], secrets: { lab: { hook: SECRET } },
    });
    await outpost.spawn();
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
    server?.stop();
  });

  // A job of a new pull request with a log.
  async function jobOf({ tests, log, last = true }) {
    const number = next++;
    await deliver(rig, 'pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const { body } = await until(() => vendor.events.find((one) => one.body?.payload.number === number), { what: 'the vendor receives its webhook' });
    const headers = { authorization: `Bearer ${body.outpost.callback_token}` };
    const run = { workflow: 'lab', job: 'tests', run_id: ++runs, tests, conclusion: tests?.some(({ status }) => status === 'FAIL') ? 'failure' : 'success' };
    const send = (status) => outpost.request('POST', new URL(body.outpost.callback_url).pathname, { headers, body: JSON.stringify(workflowOf(run, status)) });
    const { job } = (await send('in_progress')).json;
    const put = async (text, offset, isLast) => {
      const { status, json } = await outpost.request('PUT', `/api/v1/jobs/${job}/log?offset=${offset}&last=${isLast ? 1 : 0}`, { headers, body: text });
      assert.deepEqual([status, json], [200, { ok: true, bytes: offset + text.length }]);
    };
    await put(log, 0, last);
    if (last) assert.equal((await send('completed')).status, 200);
    logs.set(job, log);
    return { number, job, put, send };
  }
  const green = Array.from({ length: 300 }, (_, i) => ({ suite: 'ops', name: `test_${i}`, status: i % 7 ? 'PASS' : 'SKIP', duration: i / 8 }));
  const red = green.map((one, i) => (i % 50 === 3 ? { ...one, status: 'FAIL', message: `wrong result in ${one.name}: ä ≠ \u{1f600}` } : one));

  // Each page's JSON without what changes with the time or the process.
  async function pages() {
    const paths = ['/api/v1/accelerators', '/api/v1/pulls', '/api/v1/nightly', '/api/v1/known', ...Array.from({ length: next - 900 }, (_, i) => `/api/v1/pulls/${900 + i}`),
      ...[...logs.keys()].flatMap((job) => [`/api/v1/jobs/${job}`, `/api/v1/jobs/${job}/log`])];
    const answers = await Promise.all(paths.map(async (one) => [one, (await outpost.get(one)).text]));
    return Object.fromEntries(answers.map(([one, text]) => [one, one.endsWith('/log') ? sha(text) : text.replace(/"(generated_at|age|now|as_of)":("[^"]*"|[\d.]+)/g, '"$1":0')]));
  }
  const configure = (store) => outpost.configure({ config: { store } });
  const copy = (...args) => outpost.ctl('store', 'copy', ...args);

  let running; // a job whose log grows
  let expected;

  test('an installation with results and logs', async () => {
    for (let i = 0; i < 3; i++) await jobOf({ tests: i === 1 ? red : green, log: linesOf(200 + i * 9000, `log ${i}`) });
    running = await jobOf({ log: linesOf(50, 'running'), last: false });
    await until(async () => (await outpost.get(`/api/v1/pulls/${next - 2}`)).json.verdicts.length > 0, { what: 'the cells are there' });
    await until(async () => !(await fs.readdir(path.join(outpost.stateDir, 'logs'), { recursive: true })).some((name) => name.endsWith('.done') || name.endsWith('compressing')),
      { what: 'the finished logs are compressed' });
    await until(() => sqlite(path.join(outpost.stateDir, 'outpost.db'), 'SELECT COUNT(*) FROM attribution_due') === '0', { what: 'the red cells have their causes' });
    // an id that a deleted row had
    sqlite(path.join(outpost.stateDir, 'outpost.db'), "DELETE FROM sqlite_sequence WHERE name = 'experiment'; INSERT INTO sqlite_sequence VALUES ('experiment', 500)");
    expected = await pages();
    assert.ok(expected['/api/v1/pulls/901'].includes('wrong result in test_3: ä ≠ \u{1f600}'));
  });

  test('it refuses a database in use, a used target, the same engine, and wrong arguments', async () => {
    const url = makeDatabase('refusals');
    const refused = async (args, code, pattern) => {
      const got = await copy(...args);
      assert.deepEqual([got.code, got.stdout], [code, '']);
      assert.match(got.stderr, pattern);
      assert.doesNotMatch(got.stderr, /Sanitizer/);
    };
    await refused(['--to', url], 1, /another outpostd uses this directory \(process \d+\)/);
    await outpost.stop();
    await refused([], 2, /--to is missing/);
    await refused(['--to', path.join(outpost.dir, 'other.db')], 1, /a file already: use outpostctl backup/);
    await refused(['--to', url.replace('refusals', 'missing')], 1, /database "missing" does not exist/);
    await refused(['--to', 'postgresql://me:secret@db/outpost'], 1, /^outpostctl: --to must have no password: put it into the file of --password-file\n$/);
    await refused(['--to', 'mysql://db/outpost'], 1, /--to must be postgresql:\/\/… or a file, not mysql/);
    await refused(['--to', url, '--password-file', '/nowhere'], 1, /nowhere: No such file/);
    psql('refusals', 'CREATE TABLE theirs (a INT)');
    await refused(['--to', url], 1, /tables of another program/);
    psql('refusals', 'DROP TABLE theirs');
    assert.equal((await copy('--to', url)).code, 0);
    await refused(['--to', url], 1, /the table \w+ has rows already; give an empty database/);
  });

  test('the pages are the same on PostgreSQL, and new rows get new ids', async () => {
    const url = makeDatabase('first');
    const { code, stdout, stderr } = await copy('--to', url);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^job +4 rows +[0-9a-f]{16} equal$/m);
    assert.match(stdout, /^logs +4 logs +[0-9a-f]{16} equal$/m);
    assert.doesNotMatch(stdout, /[\u001b\r]/); // no terminal
    const key = await fs.readFile(path.join(outpost.stateDir, 'callback.key'), 'hex');
    assert.equal(psql('first', "SELECT value FROM setting WHERE key = 'callback.key'"), key);
    await configure(url);
    await outpost.spawn();
    assert.deepEqual(await pages(), expected);
    assert.equal(psql('first', "SELECT COUNT(*) FROM packed_job WHERE statuses IS NULL"), '0');
    assert.equal(psql('first', "SELECT last_value FROM pg_sequences WHERE sequencename = 'experiment_id_seq'"), '500');
    // the running log goes on, and a new job has a new id
    const more = linesOf(50, 'more');
    await running.put(more, logs.get(running.job).length, true);
    logs.set(running.job, logs.get(running.job) + more);
    // green, because a red one would become evidence for the red cells of the pages, a while later
    const { job } = await jobOf({ tests: green, log: 'new\n' });
    assert.ok(job > running.job);
    await until(() => psql('first', 'SELECT COUNT(*) FROM log WHERE has_pieces = 1') === '0', { what: 'the logs are compressed' });
    expected = await pages();
    const backup = await outpost.ctl('backup', path.join(outpost.dir, 'copy.db'));
    assert.equal(backup.code, 1);
    assert.match(backup.stderr, /pg_dump or pg_basebackup/);
    await assert.rejects(fs.stat(path.join(outpost.dir, 'copy.db')));
    await outpost.stop();
  });

  test('and on SQLite again', async () => {
    const folder = path.join(outpost.dir, 'again');
    await fs.mkdir(folder, { mode: 0o700 });
    const { code, stdout, stderr } = await copy('--to', path.join(folder, 'outpost.db'), '--json');
    assert.equal(code, 0, stderr);
    const tables = JSON.parse(stdout);
    assert.ok(tables.length > 30 && tables.every(({ digest }) => /^[0-9a-f]{16}$/.test(digest)));
    assert.equal(sqlite(path.join(folder, 'outpost.db'), "SELECT seq FROM sqlite_sequence WHERE name = 'experiment'"), '500');
    // the tokens that vendors have stay valid
    const keys = [outpost.stateDir, folder].map((dir) => path.join(dir, 'callback.key'));
    assert.deepEqual(await fs.readFile(keys[1]), await fs.readFile(keys[0]));
    assert.equal((await fs.stat(keys[1])).mode & 0o777, 0o600);
    await outpost.configure({ config: { store: 'sqlite', state_dir: folder } });
    outpost.stateDir = folder;
    await outpost.spawn();
    assert.deepEqual(await pages(), expected);
    await jobOf({ tests: green, log: 'once more\n' });
    expected = await pages();
    await outpost.stop();
  });

  // Rows enough for a kill in the middle of a table.
  test('a copy that is killed at any moment goes on, and loses and doubles nothing', async () => {
    const file = path.join(outpost.stateDir, 'outpost.db');
    sqlite(file, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO setting (key, value) SELECT 'filler.' || i, hex(randomblob(20)) FROM n`);
    const url = makeDatabase('killed');
    const nCopied = (tables) => (psql('killed', "SELECT COUNT(*) FROM pg_class WHERE relname = 'unfinished_copy'") === '1' ? Number(psql('killed', `SELECT COALESCE(SUM(n), 0) FROM unfinished_copy WHERE ${tables}`)) : 0);
    let kills = 0, hasChanged = false;
    for (let done = false; !done; ) {
      const child = spawn(OUTPOSTCTL, ['-c', outpost.configFile, 'store', 'copy', '--to', url], { stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      child.stdout.on('data', (text) => (output += text));
      child.stderr.on('data', (text) => (output += text));
      const exit = once(child, 'exit');
      if (kills < 12) await Promise.race([exit, sleep(30 + Math.random() * 400 * (1 + kills / 4))]);
      child.kill(kills < 12 ? 'SIGKILL' : 0);
      const [code, signal] = await exit;
      kills += signal === 'SIGKILL';
      done = code === 0 || (kills > 0 && /has rows already/.test(output)); // killed behind its last commit: it is complete
      assert.ok(done || signal === 'SIGKILL', output);
      if (!done && kills === 6 && nCopied('true') > 0) {
        await configure(url); // a daemon does not start on a part of the data
        const failed = await outpost.check().then(() => outpost.spawn()).then(() => null, (error) => error);
        assert.match(failed?.message ?? '', /is an incomplete copy: run the same/);
        await configure('sqlite');
      }
      // The source changes after its rows were copied, so they are copied again. A slow machine may not get so far before the last kill.
      if (!done && !hasChanged && nCopied("name = 'setting'") > 0) {
        sqlite(file, "UPDATE setting SET value = 'changed' WHERE key = 'filler.1'; DELETE FROM setting WHERE key = 'filler.2'");
        hasChanged = true;
      }
    }
    assert.ok(kills > 0);
    assert.equal(psql('killed', "SELECT COUNT(*) FROM setting WHERE key LIKE 'filler.%'"), hasChanged ? '19999' : '20000');
    assert.equal(psql('killed', "SELECT value FROM setting WHERE key = 'filler.1'"), sqlite(file, "SELECT value FROM setting WHERE key = 'filler.1'"));
    assert.equal(psql('killed', "SELECT value = 'changed' FROM setting WHERE key = 'filler.1'"), hasChanged ? 't' : 'f');
    assert.equal(psql('killed', 'SELECT COUNT(*) FROM unfinished_copy'), '0');
    await configure(url);
    await outpost.spawn();
    assert.deepEqual(await pages(), expected);
    await outpost.stop();
  });

  test('damage and text that PostgreSQL refuses are named, with the table', async () => {
    const file = path.join(outpost.stateDir, 'outpost.db');
    await configure('sqlite');
    sqlite(file, "INSERT INTO setting (key, value) VALUES ('zzz', CAST(x'ff41' AS TEXT))");
    const bad = await copy('--to', makeDatabase('bad'));
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /table setting, row \d+: .*not UTF-8/);
    sqlite(file, "DELETE FROM setting WHERE key = 'zzz'; UPDATE packed_job SET cells = x'00' WHERE id = 1");
    const damaged = await copy('--to', makeDatabase('damaged'));
    assert.equal(damaged.code, 1);
    assert.match(damaged.stderr, /table packed_job, row \d+: the packed results of job \d+ are damaged/);
  });
});
