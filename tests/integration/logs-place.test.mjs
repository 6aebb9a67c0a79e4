// Finished logs in S3 (a real server, which checks each signature) and in a folder that two daemons share. The place fails, the
// daemon is killed in the middle of a move, keys are wrong and are replaced; no log is lost, and none is served in part.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { S3, noS3 } from './lib/s3.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const sha = (data) => createHash('sha256').update(data).digest('hex');
// Lines that zstd shortens little, so that a long log has many frames.
const linesOf = (n, seed) => Array.from({ length: n }, (_, i) => `${i} ${sha(`${seed} ${i}`)}\n`).join('');
const nameOf = (job) => `${String(Math.floor(job / 1000)).padStart(9, '0')}/${job}.log.zst`;
const ACCELERATOR = { name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, trust: 'anyone' };

describe('finished logs in another place', { skip: notBuilt || noS3 }, () => {
  let rig;
  let vendor;
  let s3;
  let runs = 0;
  let next = 700;

  before(async () => {
    [rig, vendor, s3] = await Promise.all([startRig({ repositories: [{ name: UPSTREAM }] }), startSilentVendor({ secret: SECRET }), S3.start()]);
  });
  after(async () => { await Promise.all([vendor?.stop(), rig?.close(), s3?.close()]); });

  const prepare = (more) => Outpost.prepare({
    rig, accelerators: [{ ...ACCELERATOR, runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] }], secrets: { lab: { hook: SECRET } }, ...more,
  });
  async function withS3(prefix, keys) {
    const outpost = await prepare();
    await outpost.configure({ config: { logs: `s3://logs/${prefix}`, s3: await s3.config(outpost.dir, keys) } });
    return outpost;
  }

  // A job with a finished log: {job, text, put(text)}.
  async function finished(outpost, text) {
    const number = next++;
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const { body } = await until(() => vendor.events.find((one) => one.body?.payload.number === number), { what: 'the vendor receives its webhook' });
    const headers = { authorization: `Bearer ${body.outpost.callback_token}` };
    const run = { workflow: 'lab', job: 'tests', run_id: ++runs };
    const send = (status) => outpost.request('POST', new URL(body.outpost.callback_url).pathname, { headers, body: JSON.stringify(workflowOf(run, status)) });
    const { job } = (await send('in_progress')).json;
    const put = (what) => outpost.request('PUT', `/api/v1/jobs/${job}/log`, { headers, body: what });
    assert.deepEqual((await put(text)).json, { ok: true, bytes: text.length });
    assert.equal((await send('completed')).status, 200);
    return { job, text, put };
  }
  const log = (outpost, { job }, headers) => outpost.get(`/api/v1/jobs/${job}/log`, { headers });
  const isLocal = async (outpost, { job }) => (await fs.readdir(path.join(outpost.stateDir, 'logs', (job % 256).toString(16).padStart(2, '0')))).some((name) => name === `${job}.log.zst` || name === `${job}.log.done`);
  const moved = (outpost, one) => until(async () => !(await isLocal(outpost, one)), { what: `the log of job ${one.job} is moved` });
  async function assertServed(outpost, one) {
    const whole = await log(outpost, one);
    assert.deepEqual([whole.status, whole.headers['content-length'], sha(whole.text)], [200, String(one.text.length), sha(one.text)]);
  }

  test('a log moves to S3; pages read ranges of the object and never all of it', async () => {
    const outpost = await withS3('ranges');
    try {
      await outpost.spawn();
      const one = await finished(outpost, linesOf(40_000, 'ranges'));
      await moved(outpost, one);
      assert.ok(s3.requests.some(({ method, url, status }) => method === 'PUT' && url === `/logs/ranges/${nameOf(one.job)}` && status === 200));
      await assertServed(outpost, one);
      await outpost.restart(); // forgets the object's table
      s3.requests.length = 0;
      const { length } = one.text;
      for (const [range, from, to] of [['-100', length - 100, length], ['1000000-1000099', 1_000_000, 1_000_100], ['0-9', 0, 10]]) {
        const part = await log(outpost, one, { range: `bytes=${range}` });
        assert.deepEqual([part.status, part.headers['content-range'], part.text], [206, `bytes ${from}-${to - 1}/${length}`, one.text.slice(from, to)]);
      }
      const gets = s3.requests.filter(({ url }) => url.includes(nameOf(one.job)));
      assert.deepEqual(gets.map(({ method, status, range }) => [method, status, range !== undefined]), Array(4).fill(['GET', 206, true]));
      assert.equal((await log(outpost, { job: 999 })).status, 404);
      // A repeated upload, whose answer was lost, is still the same log.
      assert.equal((await one.put(one.text)).status, 200);
      assert.equal((await one.put(`${one.text}more`)).status, 409);
      assert.equal(await isLocal(outpost, one), false);
      const metrics = (await outpost.get('/metrics')).text;
      assert.match(metrics, /^outpost_logs_to_move 0$/m);
      assert.ok(outpost.log.every(({ line }) => !line.includes(s3.secretKey)));
    } finally {
      await outpost.close();
    }
  });

  test('a log waits in state_dir while S3 fails, is served from there, and moves later', async () => {
    const outpost = await withS3('faults');
    try {
      await outpost.spawn();
      for (const fault of [503, 403, 'cut', 'silent']) {
        let n = 0;
        const after = outpost.log.length;
        s3.fault = ({ method }) => (method === 'PUT' && n++ === 0 ? fault : undefined);
        const one = await finished(outpost, linesOf(3000, fault));
        await until(() => n > 0, { what: 'the server is asked' });
        await assertServed(outpost, one);
        if (fault === 'silent') await outpost.restart({ hard: true });
        else if (fault === 503) await outpost.waitForLog({ ev: 'log_not_moved', job: one.job }, { after }); // at most one line a second
        await assertServed(outpost, one);
        await moved(outpost, one);
        await assertServed(outpost, one);
      }
      // A moved log cannot be read while S3 is away: the reader is asked to come again.
      const one = await finished(outpost, linesOf(100, 'away'));
      await moved(outpost, one);
      await outpost.restart();
      s3.fault = () => 503;
      const busy = await log(outpost, one);
      assert.deepEqual([busy.status, busy.headers['retry-after']], [503, '1']);
      s3.fault = () => undefined;
      await assertServed(outpost, one);
    } finally {
      s3.fault = () => undefined;
      await outpost.close();
    }
  });

  test('a daemon that is killed while logs move loses none of them', async () => {
    const outpost = await withS3('kills');
    try {
      await outpost.spawn();
      const all = [];
      for (let i = 0; i < 6; i++) {
        const puts = s3.requests.length;
        all.push(await finished(outpost, linesOf(2000 + 500 * i, `kill ${i}`)));
        // In turn: at the request, and after it was answered but perhaps before the log was removed here.
        await until(() => s3.requests.slice(puts).some(({ method, status }) => method === 'PUT' && (i % 2 === 0 || status)), { what: 'the log is being moved' });
        await outpost.restart({ hard: true });
        for (const one of all) await assertServed(outpost, one);
      }
      for (const one of all) await moved(outpost, one);
      for (const one of all) await assertServed(outpost, one);
    } finally {
      await outpost.close();
    }
  });

  test('wrong keys, a missing bucket and a folder that is not there are errors at the start, for --check and at a reload', async () => {
    const outpost = await withS3('check', { secretKey: 'not the secret'.replaceAll(' ', '-') });
    const reason = async (pattern) => {
      // On a busy machine the check may exceed its ten seconds, which is only a warning.
      const { code, stdout } = await until(async () => { const done = await outpost.check(); return !done.stderr.includes('logs_place_unreachable') && done; }, { what: 'the server answers the check' });
      assert.equal(code, 1);
      assert.match(stdout, pattern);
      assert.match(stdout, new RegExp(`^${outpost.configFile}:\\d+: logs: `));
      for (let tries = 10; ; tries--) {
        const after = outpost.log.length;
        const end = await outpost.spawn().then(() => 'it started', ({ message }) => message);
        await outpost.stop();
        const isLate = outpost.log.slice(after).some(({ fields }) => fields.ev === 'logs_place_unreachable');
        if (!isLate || tries === 1) return assert.match(end, /ended \(1\)/);
      }
    };
    try {
      await reason(/\/logs: the server answered 403 SignatureDoesNotMatch\n/);
      await outpost.configure({ config: { logs: 's3://logs/check', s3: await s3.config(outpost.dir, { accessKey: 'stranger' }) } });
      await reason(/the server answered 403 \w+\n/);
      await outpost.configure({ config: { logs: 's3://elsewhere', s3: await s3.config(outpost.dir) } });
      await reason(/\/elsewhere: the server answered 404 NoSuchBucket\n/);
      await outpost.configure({ config: { logs: 'shared', s3: null } });
      await reason(/shared: No such file or directory\n/);
      // A server that does not answer is only a warning, because logs can wait.
      const { s3: keys } = { s3: await s3.config(outpost.dir) };
      await outpost.configure({ config: { logs: 's3://logs/check', s3: { ...keys, endpoint: 'http://127.0.0.1:9' } } });
      const { code, stderr } = await outpost.check();
      assert.equal(code, 0);
      assert.match(stderr, /logs_place_unreachable/);
      // A reload with wrong keys is refused; a reload with new ones is used without a restart.
      await outpost.configure({ config: { logs: 's3://logs/check', s3: keys } });
      await outpost.spawn();
      await s3.config(outpost.dir, { secretKey: 'wrong' });
      assert.equal((await outpost.reload()).fields.ev, 'reload_refused');
      await s3.config(outpost.dir);
      assert.equal((await outpost.reload()).fields.ev, 'reloaded');
      const one = await finished(outpost, 'a short log\n');
      await moved(outpost, one);
      await assertServed(outpost, one);
      await outpost.configure({ config: { logs: 's3://logs/other', s3: keys } });
      await outpost.reload();
      assert.ok(outpost.log.some(({ fields }) => fields.ev === 'restart_needed' && fields.key === 'logs'));
    } finally {
      await outpost.close();
    }
  });

  test('two daemons share a folder; each reads the logs of the other', async () => {
    const outpost = await prepare();
    const shared = path.join(outpost.dir, 'shared');
    let other;
    try {
      await fs.mkdir(shared);
      await outpost.configure({ config: { logs: 'shared' } });
      await outpost.spawn();
      const one = await finished(outpost, linesOf(5000, 'shared'));
      await moved(outpost, one);
      await fs.access(path.join(shared, nameOf(one.job)));
      await assertServed(outpost, one);
      // The other one has the same database and no logs of its own.
      await outpost.stop();
      other = await prepare({ config: { logs: shared } });
      await outpost.database.copyTo(other.database);
      await fs.copyFile(path.join(outpost.stateDir, 'callback.key'), path.join(other.stateDir, 'callback.key'));
      await other.spawn();
      await assertServed(other, one);
      const part = await log(other, one, { range: 'bytes=5000-5099' });
      assert.equal(part.text, one.text.slice(5000, 5100));
    } finally {
      await other?.close();
      await outpost.close();
    }
  });
});
