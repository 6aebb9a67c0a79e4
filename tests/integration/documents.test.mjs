// Documents of a job: PUT /api/v1/jobs/{id}/report and …/log, and reading the log. Uploads are cut, resumed and followed, logs
// survive the daemon's death, and no log becomes a page.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { githubClaims, startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const MIB = 1 << 20;
const sha = (data) => createHash('sha256').update(data).digest('hex');

const junit = (cases) => `<?xml version="1.0"?><testsuites><testsuite name="unit">${cases.map(([name, inner = '']) => `<testcase name="${name}" time="0.5">${inner}</testcase>`).join('')}</testsuite></testsuites>`;
// Numbered lines, so that a gap or a duplicate shows.
const linesOf = (n, from = 0) => Array.from({ length: n }, (_, i) => `line ${from + i} of a long log, with something to read in it\n`).join('');

describe('documents of a job', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let vendor;
  let next = 300;
  let runs = 100;

  // The compressed log of a job, or null until it is there: a file, or with PostgreSQL rows of the database.
  const logFile = (job) => path.join(outpost.stateDir, 'logs', (job % 256).toString(16).padStart(2, '0'), `${job}.log.zst`);
  const packedLog = async (job) => {
    if (!outpost.database.isOnServer) return fs.readFile(logFile(job)).catch(() => null);
    const [{ hex }] = await outpost.database.query(`SELECT encode(string_agg(o.bytes, '' ORDER BY o.at), 'hex') AS hex FROM log l JOIN log_object o USING (job_id) WHERE job_id = ${job} AND l.has_pieces = 0`);
    return hex && Buffer.from(hex, 'hex');
  };
  const replacePackedLog = (job, bytes) => outpost.database.isOnServer
    ? outpost.database.execute(`UPDATE log_object SET bytes = substring('\\x${bytes.toString('hex')}'::bytea FROM at::int + 1 FOR length(bytes)) WHERE job_id = ${job}; DELETE FROM log_object WHERE job_id = ${job} AND bytes = ''`)
    : fs.writeFile(logFile(job), bytes);

  before(async () => {
    [rig, issuer, vendor] = await Promise.all([
      startRig({ repositories: [UPSTREAM, 'Ascend/pytorch', 'other/other'].map((name) => ({ name })) }), startIssuer(), startSilentVendor({ secret: SECRET }),
    ]);
    const common = { triggers: { pull_request: {} }, trust: 'anyone' };
    const webhook = [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }];
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [
        { name: 'lab', title: 'Lab', level: 'L2', ...common, runners: webhook },
        { name: 'quiet', title: 'Quiet', level: 'L1', ...common, runners: webhook },
        { name: 'npu', title: 'NPU', level: 'L2', ...common, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] },
        { name: 'other', title: 'Other', level: 'L2', ...common, runners: [{ name: 'ci', github: { repository: 'other/other' } }] },
      ],
      secrets: { lab: { hook: SECRET }, quiet: { hook: SECRET } },
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([issuer?.close(), vendor?.stop(), rig?.close()]);
  });

  // A pull request's dispatch to `name`, from the webhook or, after a start, from Outpost's own list of open pull requests:
  // {number, token, jobs (the path)}.
  async function dispatched(name = 'lab') {
    const number = next++;
    const pull = rig.openPull(UPSTREAM, { number });
    await rig.deliver('pull_request', pullRequestOf('opened', pull));
    const { body } = await until(() => vendor.events.find((one) => one.body?.payload.number === number && one.body.outpost.accelerators.includes(name)), { timeout: 10_000, what: `${name} receives its webhook` });
    return { number, token: body.outpost.callback_token, jobs: new URL(body.outpost.callback_url).pathname };
  }
  const sendJob = (one, run, status) => outpost.request('POST', one.jobs, { headers: { authorization: `Bearer ${one.token}` }, body: JSON.stringify(workflowOf(run, status)) });
  const end = (one, more) => sendJob(one, { ...one.run, ...more }, 'completed');

  // Starts a job: {…dispatched, job, run}.
  async function running() {
    const one = await dispatched();
    const run = { workflow: 'lab', job: 'tests', run_id: ++runs };
    const answer = await sendJob(one, run, 'in_progress');
    assert.equal(answer.status, 200, answer.text);
    return { ...one, run, job: answer.json.job };
  }
  const put = (one, what, body, { bearer = one.token, job = one.job, ...options } = {}) =>
    outpost.request('PUT', `/api/v1/jobs/${job}/${what}`, { body, timeout: 60_000, ...options, headers: { ...(bearer && { authorization: `Bearer ${bearer}` }), ...options.headers } });
  const log = (one, options) => outpost.get(`/api/v1/jobs/${one.job}/log`, { timeout: 60_000, ...options });
  const verdicts = async (one, name = 'lab') => (await outpost.api(`pulls/${one.number}`)).verdicts.filter(({ accelerator }) => accelerator === name)
    .map(({ suite, test: what, status }) => `${suite}/${what} ${status}`).sort();

  // A request whose body the test writes in parts: {request, answer, write(text)}. `answer` is null if the connection broke.
  function open(target, { bearer, method = 'PUT' } = {}) {
    const request = http.request({ host: '127.0.0.1', port: outpost.port, method, path: target, headers: { ...(bearer && { authorization: `Bearer ${bearer}` }) } });
    const answer = new Promise((resolve) => {
      request.on('error', () => resolve(null));
      request.on('response', async (response) => {
        let text = '';
        try {
          for await (const part of response) text += part;
        } catch {
          return resolve(null);
        }
        resolve({ status: response.statusCode, json: JSON.parse(text) });
      });
    });
    return { request, answer, write: (text) => new Promise((resolve) => { request.write(text, resolve); }) };
  }

  // Follows a log: text (so far), done (resolves with all of it), saw(text).
  async function follow(one, rest = '') {
    const request = http.get({ host: '127.0.0.1', port: outpost.port, path: `/api/v1/jobs/${one.job}/log?follow=1${rest}` });
    const [response] = await once(request, 'response');
    const self = { text: '', status: response.statusCode, headers: response.headers, request };
    self.done = (async () => {
      for await (const part of response) self.text += part.toString('latin1');
      return self.text;
    })();
    self.done.catch(() => {});
    self.saw = (text) => until(() => self.text.includes(text), { timeout: 10_000, what: `the follower saw ${text}` });
    return self;
  }

  const lengthOf = async (one) => (await put(one, 'log?offset=0', '')).json.bytes;

  describe('reports', () => {
    test('a JUnit report that arrives before the job\'s end shows in the API and the comment after it', async () => {
      const one = await running();
      const document = junit([['add'], ['sub', '<failure message="not equal">trace of it</failure>'], ['mul', '<skipped/>']]);
      const answer = await put(one, 'report', document);
      assert.deepEqual([answer.status, answer.json], [200, { ok: true, tests: 3, cut: 0 }], answer.text);
      assert.deepEqual(await verdicts(one), []);
      assert.equal((await end(one, { conclusion: 'failure' })).status, 200);
      assert.deepEqual(await verdicts(one), ['unit/add PASS', 'unit/mul SKIP', 'unit/sub FAIL']);
      await until(() => rig.comments(UPSTREAM, one.number).some(({ body }) => /^\|.*sub/m.test(body)), { timeout: 10_000, what: 'the comment has the failed test' });
      const view = await outpost.api(`jobs/${one.job}`);
      const failed = view.tests.find(({ name }) => name === 'sub');
      assert.deepEqual([failed.status, failed.message, failed.trace], ['FAIL', 'not equal', 'trace of it']);
    });

    test('the API and the comment say how many tests a report omits', async () => {
      const one = await running();
      const document = JSON.stringify({ schema: 1, cut: 7, tests: [{ suite: 'unit', name: 'a', status: 'PASS' }] });
      assert.deepEqual((await put(one, 'report', document)).json, { ok: true, tests: 1, cut: 7 });
      assert.equal((await end(one)).status, 200);
      assert.equal((await outpost.api(`jobs/${one.job}`)).tests_cut, 7);
      await until(() => rig.comments(UPSTREAM, one.number).some(({ body }) => /^\*\*Incomplete:\*\*.*leaves out 7 tests/m.test(body)), { timeout: 10_000, what: 'the comment says that the report is incomplete' });
    });

    test('a report may follow the job\'s end; a repetition is 200, and another report is 409', async () => {
      const one = await running();
      assert.equal((await end(one)).status, 200);
      for (let i = 0; i < 3; i++) assert.deepEqual((await put(one, 'report', junit([['a'], ['b']]))).json, { ok: true, tests: 2, cut: 0 });
      const other = await put(one, 'report', junit([['a'], ['c']]));
      assert.equal(other.status, 409, other.text);
      assert.match(other.json.detail, /report already/);
      assert.ok((await verdicts(one)).includes('unit/b PASS'));
      assert.equal((await end(one)).status, 200);
    });

    test('CTRF and Outpost JSON are accepted, with the environment', async () => {
      const [one, two] = [await running(), await running()];
      const ctrf = { results: { tool: { name: 'jest' }, summary: {}, tests: [{ name: 'x', status: 'passed', duration: 12 }, { name: 'y', status: 'failed', duration: 1, message: 'no' }] } };
      const own = { schema: 1, environment: { accelerator: 'lab', device: 'Ascend 910B' }, tests: [{ suite: 'model', name: 'llama3', status: 'PASS' }] };
      assert.equal((await put(one, 'report', JSON.stringify(ctrf))).json?.tests, 2);
      assert.equal((await put(two, 'report', JSON.stringify(own))).json?.tests, 1);
      assert.equal((await end(two)).status, 200);
      const view = await outpost.api(`jobs/${two.job}`);
      assert.equal(view.environment.device, 'Ascend 910B');
      assert.deepEqual(view.tests.map(({ suite, name }) => `${suite}/${name}`), ['model/llama3']);
    });

    test('an invalid report is 400 with a reason, and one over 32 MiB is 413', async () => {
      const one = await running();
      for (const body of ['', 'hello', '{}', '{"schema":1,"tests":[]}', '<a/>', junit([]), '<testsuites><testsuite>', '{"schema":1,"tests":[{"suite":"s","name":"n","status":"GREEN"}]}']) {
        const answer = await put(one, 'report', body);
        assert.equal(answer.status, 400, `${body}: ${answer.text}`);
        assert.ok(answer.json.detail.length > 5);
      }
      const { status } = await put(one, 'report', Buffer.alloc(32 * MIB + 1, ' '));
      assert.equal(status, 413);
      assert.equal((await put(one, 'report', junit([['a']]))).status, 200);
    });

    test('simultaneous reports are each stored completely', async () => {
      const ones = [];
      for (let i = 0; i < 6; i++) ones.push(await running());
      const documents = ones.map((_, i) => junit(Array.from({ length: 5000 }, (_u, k) => [`t${i}-${k}`])));
      const answers = await Promise.all(ones.map((one, i) => put(one, 'report', documents[i])));
      assert.deepEqual(answers.map(({ json }) => json.tests), Array(6).fill(5000));
    });
  });

  describe('authorization', () => {
    let one;
    let two;
    before(async () => { [one, two] = [await running(), await running()]; });

    test('a request without a valid token cannot learn which jobs exist', async () => {
      const good = one.token;
      for (const bearer of [null, 'x', `${good}x`, good.slice(0, -1), `oct1.${'a'.repeat(26)}.lab.9999999999.${'A'.repeat(43)}`, `ort_${'A'.repeat(43)}`, 'a.b.c'])
        for (const job of [one.job, 999_999, 'x'])
          for (const what of ['log', 'report']) {
            const answer = await put(one, what, 'text', { bearer, job });
            assert.ok([401, 429].includes(answer.status), `${bearer} ${job}: ${answer.status} ${answer.text}`);
          }
      assert.equal((await log(one)).status, 404);
    });

    test('a callback token is valid only for the jobs of its dispatch', async () => {
      assert.equal((await put(one, 'log', 'text', { job: two.job })).status, 403);
      assert.equal((await put(one, 'log', 'text', { job: 999_999 })).status, 404);
      assert.equal((await put(one, 'log', 'text', { job: '0' })).status, 404);
      assert.equal((await put(one, 'log', 'text')).status, 200);
    });

    test('an OIDC token is valid only for the jobs of its repository', async () => {
      const { number } = await dispatched();
      const dispatch = await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: { payload } }) => payload.number === number });
      const bearer = await issuer.mint(githubClaims('Ascend/pytorch'));
      const { event_type, delivery_id, payload, outpost: block } = dispatch.client_payload;
      const answer = await outpost.request('POST', '/github/callback', { headers: { authorization: `Bearer ${bearer}` },
        body: JSON.stringify({ event_type, delivery_id, payload, outpost: block, workflow: workflowOf({ job: 'j', run_id: ++runs }, 'in_progress') }) });
      assert.equal(answer.status, 200, answer.text);
      const job = { job: answer.json.job };
      assert.equal((await put(job, 'log', 'from GitHub', { bearer })).status, 200);
      assert.equal((await put(job, 'report', junit([['a']]), { bearer })).status, 200);
      assert.equal((await log(job)).text, 'from GitHub');
      for (const repository of ['other/other', 'stranger/stranger']) assert.equal((await put(job, 'log', 'x', { bearer: await issuer.mint(githubClaims(repository)) })).status, 403, repository);
      assert.equal((await put(one, 'log', 'x', { bearer })).status, 403);
      assert.equal((await put(job, 'log', 'x', { bearer: await issuer.mint(githubClaims('Ascend/pytorch'), { signWith: 'stranger' }) })).status, 401);
    });

    test('an API token is valid only for the jobs of its accelerator', async () => {
      const issued = await outpost.ctl('token', 'issue', 'lab');
      assert.equal(issued.code, 0, issued.stderr);
      const bearer = issued.stdout.trim();
      const job = await running();
      assert.equal((await put(job, 'log', 'by API token', { bearer })).status, 200);
      assert.equal((await put(job, 'report', junit([['a']]), { bearer })).status, 200);
      const foreign = (await outpost.ctl('token', 'issue', 'npu')).stdout.trim();
      assert.equal((await put(job, 'log', 'x', { bearer: foreign })).status, 403);
      assert.equal((await outpost.ctl('token', 'revoke', 'lab')).code, 0);
      assert.equal((await put(job, 'log', 'x', { bearer })).status, 401);
    });

    test('a token of an accelerator at L1 finds no job', async () => {
      const quiet = await dispatched('quiet');
      for (const job of [1, one.job]) for (const what of ['log', 'report']) {
        const { status } = await put(quiet, what, 'x', { job });
        assert.ok([403, 404].includes(status), `${status}`);
      }
    });

    test('other methods and wrong parameters are refused', async () => {
      for (const query of ['offset=', 'offset=-1', 'offset=x', 'offset=99999999999999999999', 'last=2', 'offset=1&last='])
        assert.equal((await put(one, `log?${query}`, 'x')).status, 400, query);
      for (const what of ['log', 'report']) assert.equal((await outpost.request('POST', `/api/v1/jobs/${one.job}/${what}`, { body: '' })).status, 405);
      for (const id of ['0', '-1', 'x', '999999', '99999999999999999999']) assert.equal((await outpost.get(`/api/v1/jobs/${id}/log`)).status, 404, id);
    });
  });

  describe('logs', () => {
    test('a log is served completely, by range and to HEAD', async () => {
      const one = await running();
      const text = linesOf(60_000);
      assert.deepEqual((await put(one, 'log', text)).json, { ok: true, bytes: text.length });
      await until(() => packedLog(one.job), { what: 'the log is compressed' });
      const whole = await log(one);
      assert.equal(sha(whole.text), sha(text));
      assert.equal(whole.headers['content-length'], String(text.length));
      assert.equal(whole.headers['accept-ranges'], 'bytes');
      for (const [range, from, to] of [['0-0', 0, 1], ['100-199', 100, 200], ['262100-262200', 262_100, 262_201], ['1000000-', 1_000_000, text.length], ['-100', text.length - 100, text.length], [`5-${text.length * 2}`, 5, text.length]]) {
        const part = await log(one, { headers: { range: `bytes=${range}` } });
        assert.equal(part.status, 206, range);
        assert.equal(part.headers['content-range'], `bytes ${from}-${to - 1}/${text.length}`);
        assert.equal(sha(part.text), sha(text.slice(from, to)), range);
      }
      const beyond = await log(one, { headers: { range: `bytes=${text.length}-` } });
      assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, `bytes */${text.length}`]);
      for (const range of ['bytes=5-1', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=x']) assert.equal((await log(one, { headers: { range } })).status, 200, range);
      const head = await outpost.request('HEAD', `/api/v1/jobs/${one.job}/log`);
      assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, String(text.length), '']);
      const view = await outpost.api(`jobs/${one.job}`);
      assert.deepEqual(view.log, { bytes: text.length, complete: true, url: `${outpost.url}/api/v1/jobs/${one.job}/log` });
    });

    test('pieces may be repeated, may not leave a gap, and the last one completes the log', async () => {
      const one = await running();
      const pieces = ['first piece\n', 'second\n', 'third\n'];
      let bytes = 0;
      for (const piece of pieces) {
        for (let i = 0; i < 2; i++) assert.deepEqual((await put(one, `log?offset=${bytes}`, piece)).json, { ok: true, bytes: bytes + piece.length });
        bytes += piece.length;
      }
      const gap = await put(one, `log?offset=${bytes + 5}`, 'x');
      assert.deepEqual([gap.status, gap.json.bytes], [409, bytes]);
      assert.equal((await log(one)).text, pieces.join(''));
      assert.equal((await outpost.api(`jobs/${one.job}`)).log.complete, false);
      for (let i = 0; i < 2; i++) assert.deepEqual((await put(one, `log?offset=${bytes}&last=1`, 'end\n')).json, { ok: true, bytes: bytes + 4 });
      assert.equal((await put(one, `log?offset=${bytes + 4}`, 'more')).status, 409);
      assert.equal((await put(one, 'log', `${pieces.join('')}end\n`)).status, 200);
      assert.equal((await outpost.api(`jobs/${one.job}`)).log.complete, true);
    });

    test('a follower receives a log while it is uploaded', async () => {
      const one = await running();
      const follower = await follow(one);
      assert.equal(follower.status, 200);
      const upload = open(`/api/v1/jobs/${one.job}/log`, { bearer: one.token });
      let text = '';
      for (let i = 0; i < 5; i++) {
        const piece = linesOf(10, i * 10);
        text += piece;
        await upload.write(piece);
        await follower.saw(`line ${i * 10 + 9} `);
      }
      upload.request.end('the end\n');
      assert.deepEqual(await upload.answer, { status: 200, json: { ok: true, bytes: text.length + 8 } });
      assert.equal(await follower.done, `${text}the end\n`);
      // A late follower receives the whole log at once.
      assert.equal(await (await follow(one)).done, `${text}the end\n`);
      assert.equal(await (await follow(one, `&from=${text.length}`)).done, 'the end\n');
      assert.equal(await (await follow(one, `&from=${text.length + 8}`)).done, '');
      assert.equal((await follow(one, '&from=-1')).status, 400);
      for (const from of ['-1', '99999999999', 'x', '']) {
        const { status, json } = await outpost.get(`/api/v1/jobs/${one.job}/log?from=${from}`);
        assert.deepEqual([status, json?.error], [400, 'from: must be a whole number from 0 to 268435456'], from);
      }
    });

    test('a follower\'s stream ends when the job ends without more log', async () => {
      const one = await running();
      assert.equal((await put(one, 'log?offset=0', 'half a log\n')).status, 200);
      const follower = await follow(one);
      await follower.saw('half');
      assert.equal((await end(one)).status, 200);
      assert.equal(await follower.done, 'half a log\n');
      const without = await running();
      await end(without);
      assert.equal((await follow(without)).status, 404);
    });

    test('an upload resumes after a cut connection without a gap or a duplicate', async () => {
      const one = await running();
      const text = linesOf(200_000);
      let cuts = 0;
      let sent = 0;
      for (let at = 0; at < text.length;) {
        const upload = open(`/api/v1/jobs/${one.job}/log?offset=${at}`, { bearer: one.token });
        // Send a random part of the rest in odd pieces, then cut the connection.
        const to = Math.min(text.length, at + 1 + Math.floor(Math.random() * 3 * MIB));
        for (let from = at; from < to; from += 77_777) await upload.write(text.slice(from, Math.min(from + 77_777, to)));
        sent = Math.max(sent, to);
        if (to === text.length) upload.request.end();
        else upload.request.destroy();
        await upload.answer;
        cuts++;
        // Received bytes may not be on disk yet, so the server gives the next offset.
        at = await lengthOf(one);
        assert.ok(at <= sent);
      }
      assert.ok(cuts > 2);
      const { status, json } = await put(one, `log?offset=${text.length}&last=1`, '');
      assert.deepEqual([status, json.bytes], [200, text.length]);
      assert.equal(sha((await log(one)).text), sha(text));
    });

    test('acknowledged bytes survive a kill of the daemon during an upload', async () => {
      const one = await running();
      const text = linesOf(150_000);
      let acknowledged = 0;
      for (let round = 0; round < 4; round++) {
        const upload = open(`/api/v1/jobs/${one.job}/log?offset=${acknowledged}`, { bearer: one.token });
        const most = Math.floor((text.length * (round + 1)) / 6);
        const whole = Math.floor((acknowledged + most) / 2);
        await upload.write(text.slice(acknowledged, whole));
        // This piece is acknowledged. The other upload is cut.
        const answer = await put(one, `log?offset=${acknowledged}`, text.slice(acknowledged, acknowledged + 1000 * (round + 1)));
        assert.equal(answer.status, 200, answer.text);
        assert.ok(answer.json.bytes >= acknowledged + 1000 * (round + 1));
        const promised = answer.json.bytes;
        upload.write(text.slice(whole, most));
        await outpost.restart({ hard: true });
        await upload.answer;
        acknowledged = await lengthOf(one);
        assert.ok(acknowledged >= promised, `${acknowledged} of ${promised} bytes survived`);
        assert.equal(sha((await log(one)).text), sha(text.slice(0, acknowledged)));
      }
      assert.equal((await put(one, `log?offset=${acknowledged}&last=1`, text.slice(acknowledged))).json.bytes, text.length);
      await outpost.restart({ hard: true });
      assert.equal(sha((await log(one)).text), sha(text));
      assert.equal((await outpost.api(`jobs/${one.job}`)).log.complete, true);
    });

    test('a stop does not wait for open streams and loses no received bytes', async () => {
      const one = await running();
      const follower = await follow(one);
      const upload = open(`/api/v1/jobs/${one.job}/log?offset=0`, { bearer: one.token });
      await upload.write('begun\n');
      await follower.saw('begun');
      await upload.write('and not ended\n');
      await outpost.stop();
      await outpost.spawn();
      assert.ok([503, undefined].includes((await upload.answer)?.status));
      await assert.rejects(follower.done);
      assert.match((await log(one)).text, /^begun\n/);
    });

    test('a million hostile lines stay text', async () => {
      const one = await running();
      const hostile = '<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\x1b]0;title\x07\x00\r\n\ud83d\ude00\xff@everyone `x` | \u202e\n';
      const text = Buffer.concat([Buffer.from(hostile.repeat(20)), Buffer.from('\x00\x08\x7f<b>x\r'), randomBytes(5000), Buffer.from('<i>a\n'.repeat(1_000_000))]);
      assert.equal((await put(one, 'log', text)).json.bytes, text.length);
      const hash = createHash('sha256');
      const response = (await once(http.get({ host: '127.0.0.1', port: outpost.port, path: `/api/v1/jobs/${one.job}/log` }), 'response'))[0];
      for await (const part of response) hash.update(part);
      assert.equal(hash.digest('hex'), sha(text));
      assert.equal(response.headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(response.headers['x-content-type-options'], 'nosniff');
      assert.match(response.headers['content-security-policy'], /^sandbox;/);
      assert.doesNotMatch(response.headers['content-security-policy'], /allow-/);
    });

    test('a damaged log is an error and is never served in part', async () => {
      const one = await running();
      const text = linesOf(60_000);
      assert.equal((await put(one, 'log', text)).status, 200);
      const packed = await until(() => packedLog(one.job), { what: 'the log is compressed' });
      packed[Math.floor(packed.length / 2)] ^= 0xff;
      await replacePackedLog(one.job, packed);
      await assert.rejects(log(one), 'the answer is visibly incomplete');
      assert.equal((await log(one, { headers: { range: 'bytes=0-99' } })).text, text.slice(0, 100));
      await replacePackedLog(one.job, packed.subarray(0, 1000));
      // With PostgreSQL the daemon keeps the table of a log that it read last, so the answer begins and breaks off.
      if (outpost.database.isOnServer) await assert.rejects(log(one));
      else assert.equal((await log(one)).status, 500);
      await outpost.waitForLog({ ev: 'log_not_read', why: /damaged/ });
    });

    test('a log has at most 256 MiB', async () => {
      const one = await running();
      assert.equal((await put(one, 'log?offset=268435456', 'x')).status, 413);
      const answer = await outpost.request('PUT', `/api/v1/jobs/${one.job}/log`, { headers: { authorization: `Bearer ${one.token}`, 'content-length': String(256 * MIB + 1) } }).catch(() => ({ status: 413 }));
      assert.equal(answer.status, 413);
      // The length of a chunked body is unknown in advance.
      const upload = open(`/api/v1/jobs/${one.job}/log?offset=0`, { bearer: one.token });
      const piece = Buffer.alloc(4 * MIB, 'x\n');
      let over = null;
      upload.answer.then((got) => { over = got; });
      for (let i = 0; i < 66 && over === null && !upload.request.destroyed; i++) await Promise.race([upload.write(piece), upload.answer]);
      const refused = await upload.answer;
      assert.ok(refused === null || refused.status === 413, `${refused?.status}`);
      const length = await lengthOf(one);
      assert.ok(length <= 256 * MIB && length > 200 * MIB, `${length}`);
      // A piece that arrived before the refusal may not be on disk yet.
      const { json: end } = await put(one, `log?offset=${length}&last=1`, '');
      assert.ok(end.ok && end.bytes >= length && end.bytes <= 256 * MIB, JSON.stringify(end));
    });
  });

  test('the log contains no token', () => {
    for (const { body } of vendor.events) assert.ok(!outpost.log.some(({ line }) => line.includes(body.outpost.callback_token)));
    assert.doesNotMatch(outpost.log.map(({ line }) => line).join('\n'), /o[ar]t_[\w-]{43}/);
  });
});
