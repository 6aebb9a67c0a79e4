// Logs in a real PostgreSQL: they grow there, daemons die while they write and move them, the server is away, another daemon with a folder of its own
// goes on. Each byte that was acknowledged is there once.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { startPostgres } from '../postgres.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const sha = (data) => createHash('sha256').update(data).digest('hex');
const linesOf = (n, seed) => Array.from({ length: n }, (_, i) => `${i} ${sha(`${seed} ${i}`)}\n`).join('');
const ACCELERATOR = { name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, trust: 'anyone' };

describe('logs in the database', { skip: notBuilt }, () => {
  let rig, vendor, server, outpost;
  let runs = 0;
  let next = 1200;

  const psql = (sql) => server.mustRun('psql', ['-qAt', '-h', server.folder, '-U', 'outpost', '-d', 'logs', '-c', sql]).trim();
  const prepare = (more) => Outpost.prepare({
    rig, accelerators: [{ ...ACCELERATOR, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }], secrets: { lab: { hook: SECRET } }, ...more,
    config: { store: server.url.replace('/postgres?', '/logs?'), ...more?.config },
  });

  before(async () => {
    [rig, vendor] = await Promise.all([startRig({ repositories: [{ name: UPSTREAM }] }), startSilentVendor({ secret: SECRET })]);
    server = startPostgres();
    server.mustRun('psql', ['-q', '-h', server.folder, '-U', 'outpost', '-d', 'postgres', '-c', "CREATE DATABASE logs TEMPLATE template0 LOCALE 'C'"]);
    outpost = await prepare();
    await outpost.spawn();
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
    server?.stop();
  });

  // A job: {job, put(text, offset, last), end()}. The calls go to the daemon in `outpost`.
  async function start() {
    const number = next++;
    await deliver(rig, 'pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const { body } = await until(() => vendor.events.find((one) => one.body?.payload.number === number), { what: 'the vendor receives its webhook' });
    const headers = { authorization: `Bearer ${body.outpost.callback_token}` };
    const run = { workflow: 'lab', job: 'tests', run_id: ++runs };
    const send = (status) => outpost.request('POST', new URL(body.outpost.callback_url).pathname, { headers, body: JSON.stringify(workflowOf(run, status)) });
    const { job } = (await send('in_progress')).json;
    const put = (text, offset, last) => outpost.request('PUT', `/api/v1/jobs/${job}/log?offset=${offset}&last=${last ? 1 : 0}`, { headers, body: text });
    return { job, put, end: () => send('completed') };
  }
  // Asks for the length and sends the rest, in pieces, until all of it is acknowledged, as a machine does.
  async function send({ job, put, end }, text) {
    for (let at = 0, isDone = false; !isDone; ) {
      const { status, json } = await put(text.slice(at, at + 300_000), at, at + 300_000 >= text.length);
      assert.ok([200, 409, 503].includes(status), `${status} ${JSON.stringify(json)}`);
      if (status === 503) continue;
      isDone = status === 200 && json.bytes === text.length && at + 300_000 >= text.length;
      at = json.bytes;
    }
    await end();
    return { job, text };
  }
  async function assertServed({ job, text }) {
    const whole = await outpost.get(`/api/v1/jobs/${job}/log`);
    assert.deepEqual([whole.status, whole.headers['content-length'], sha(whole.text)], [200, String(text.length), sha(text)]);
    const from = Math.floor(Math.random() * (text.length - 100));
    const part = await outpost.get(`/api/v1/jobs/${job}/log`, { headers: { range: `bytes=${from}-${from + 99}` } });
    assert.deepEqual([part.status, part.text], [206, text.slice(from, from + 100)]);
  }
  const compressed = (what) => until(() => psql('SELECT COUNT(*) FROM log WHERE is_complete = 1 AND has_pieces = 1') === '0', { what });

  test('a log grows there, is followed, and is compressed there', async () => {
    const job = await start();
    const text = linesOf(5000, 'grows');
    assert.equal((await job.put(text.slice(0, 1000), 0, false)).status, 200);
    assert.deepEqual((await job.put('x', 2000, false)).json, { detail: 'offset: beyond the end of the log', bytes: 1000 });
    const follower = outpost.get(`/api/v1/jobs/${job.job}/log?follow=1`);
    const one = await send(job, text);
    assert.equal(sha((await follower).text), sha(text));
    await compressed('the log is compressed');
    assert.equal(psql(`SELECT place FROM log WHERE job_id = ${job.job}`), 'database');
    await assertServed(one);
    assert.deepEqual((await job.put(text, 0, true)).json, { ok: true, bytes: text.length });
    assert.equal((await job.put('more', text.length, true)).status, 409);
    const files = (await fs.readdir(path.join(outpost.stateDir, 'logs'), { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    assert.deepEqual(files.map(({ name }) => name), []);
  });

  test('a daemon that is killed while logs grow and move loses and doubles nothing', async () => {
    const all = [];
    for (let i = 0; i < 5; i++) {
      const job = await start();
      const text = linesOf(3000 + 6000 * i, `kill ${i}`);
      assert.equal((await job.put(text.slice(0, 100_000), 0, false)).status, 200);
      const lost = job.put(text.slice(100_000, 180_000), 100_000, false).catch(() => {}); // its answer is lost
      await outpost.restart({ hard: true });
      await lost;
      all.push(await send(job, text));
      await outpost.restart({ hard: true }); // while it is moved
      for (const one of all) await assertServed(one);
    }
    // Claims of the dead daemons end after ten minutes. No daemon runs meanwhile, because it would work on a log whose claim another one
    // may take.
    await outpost.stop();
    psql('UPDATE log SET moving_until_ms = 0');
    await outpost.spawn();
    await compressed('all logs are compressed');
    for (const one of all) await assertServed(one);
    assert.equal(psql('SELECT COUNT(*) FROM log_piece'), '0');
    assert.equal(psql("SELECT COUNT(*) FROM log_object o WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.job_id = o.job_id AND l.place = 'database')"), '0');
  });

  test('a log waits while the server is away', async () => {
    const job = await start();
    const text = linesOf(4000, 'away');
    assert.equal((await job.put(text.slice(0, 1000), 0, false)).status, 200);
    const data = path.join(server.folder, 'data');
    server.mustRun('pg_ctl', ['-D', data, '-m', 'immediate', '-w', 'stop']);
    const away = await job.put(text.slice(1000, 2000), 1000, false).catch((error) => error);
    assert.notEqual(away.status, 200);
    server.mustRun('pg_ctl', ['-D', data, '-w', '-l', path.join(server.folder, 'log'), '-o', `-c listen_addresses='' -c unix_socket_directories='${server.folder}' -c fsync=off -c full_page_writes=off`, 'start']);
    await until(async () => (await outpost.get('/readyz')).status === 200, { what: 'the daemon is ready again' });
    await assertServed(await send(job, text));
    await compressed('the log is compressed'); // so that the next test kills no daemon that has claimed it
  });

  test('another daemon, with a folder of its own, goes on with a running log', async () => {
    const job = await start();
    const text = linesOf(9000, 'another');
    assert.equal((await job.put(text.slice(0, 200_000), 0, false)).status, 200);
    const first = outpost;
    const second = await prepare();
    await fs.copyFile(path.join(first.stateDir, 'callback.key'), path.join(second.stateDir, 'callback.key'));
    await first.kill();
    outpost = second;
    await second.spawn();
    assert.equal((await outpost.get(`/api/v1/jobs/${job.job}/log`)).text, text.slice(0, 200_000));
    const one = await send(job, text);
    await compressed('the log is compressed');
    await assertServed(one);
    await fs.rm(first.dir, { recursive: true });
  });

  test('logs in the database stay readable when `logs` names a folder, and later ones go there', async () => {
    const folder = path.join(outpost.dir, 'shared-logs');
    await fs.mkdir(folder);
    const older = await send(await start(), linesOf(6000, 'before'));
    await compressed('the log is compressed');
    await outpost.configure({ config: { ...outpost.options.config, logs: folder } });
    await outpost.restart();
    await assertServed(older);
    const later = await send(await start(), linesOf(6000, 'after'));
    await compressed('the later log is moved');
    await assertServed(later);
    await assertServed(older);
    const places = psql(`SELECT place FROM log WHERE job_id IN (${older.job}, ${later.job}) ORDER BY job_id`).split('\n');
    assert.deepEqual(places, ['database', 'elsewhere']);
    await outpost.configure({ config: { ...outpost.options.config, logs: 'database' } });
    await outpost.restart();
    await assertServed(older);
  });

  test('places that do not fit the store are refused', async () => {
    await outpost.configure({ config: { ...outpost.options.config, logs: 'state_dir' } });
    const bad = await outpost.check();
    assert.equal(bad.code, 1);
    assert.match(bad.stdout, /outpost\.yml:\d+: logs: state_dir needs store: sqlite/);
    await outpost.configure({ config: { store: 'sqlite', logs: 'database' } });
    assert.match((await outpost.check()).stdout, /outpost\.yml:\d+: logs: database needs store: postgresql/);
  });
});
