// Vendors' credentials: shown once, stored as hashes, valid and revoked at once, two at a time, limited by address.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const WRONG_PER_MINUTE = 20;

const BEGAN = Math.floor(Date.now() / 1000) * 1000; // shown times have whole seconds

describe("vendors' tokens", { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let vendor;
  let number = 100;
  const farm = (name) => ({ name, title: name, level: 'L2', runners: [{ name: 'farm', pull: { labels: [] } }], triggers: { pull_request: { label: 'required' } } });
  const accelerators = () => [farm('ascend-npu'), farm('rotated'), farm('leaving'), farm('seen'), farm('held'), farm('foreign'), farm('walled'),
    { name: 'lab', title: 'Lab', level: 'L2', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }], triggers: { pull_request: { label: 'required' } } }];

  before(async () => {
    [rig, vendor] = await Promise.all([startRig(), startSilentVendor({ secret: 'x' })]);
    outpost = await Outpost.start({ rig, accelerators: accelerators(), secrets: { lab: { hook: 'x' } }, config: { comment: { enabled: false }, trusted_proxies: ['127.0.0.1'] } });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
  });

  const ctl = async (...args) => {
    const answer = await outpost.ctl(...args);
    assert.equal(answer.code, 0, answer.stderr);
    return answer;
  };
  const fails = async (pattern, ...args) => {
    const answer = await outpost.ctl(...args);
    assert.equal(answer.code, 1, `${answer.stdout}${answer.stderr}`);
    assert.equal(answer.stdout, '');
    assert.match(answer.stderr, pattern);
  };
  const list = async (...args) => JSON.parse((await ctl(...args, '--json')).stdout).tokens;
  const open = async (accelerator) => {
    const pull = rig.openPull(UPSTREAM, { number: number++, labels: [`ciflow/crcr/${accelerator}`] });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const view = await outpost.waitForApi(`pulls/${pull.number}`, ({ accelerators: all }) => all.some(({ name, dispatches }) => name === accelerator && dispatches.length > 0));
    return view.accelerators.find(({ name }) => name === accelerator).dispatches[0].id;
  };

  // Returns the statuses of the waiting requests that `send` began, when `act` has ended them. On a busy machine a wait may end by
  // itself before that: then `again` prepares the next of at most five tries.
  const statusesAfter = async (send, act, again) => {
    for (let tries = 5; ; tries--) {
      const waits = send();
      let isOver = false;
      Promise.race(waits).catch(() => {}).then(() => { isOver = true; });
      await until(async () => {
        const { machines } = JSON.parse((await ctl('status', '--json')).stdout);
        return isOver || machines.claims_waiting + machines.heartbeats_waiting === waits.length;
      }, { what: 'the requests wait' });
      await act();
      const statuses = (await Promise.all(waits)).map(({ status }) => status);
      if (tries === 1 || statuses.every((status) => status >= 400)) return statuses;
      await again();
    }
  };

  test('runner add prints only the token, which is valid', async () => {
    const { stdout, stderr } = await ctl('runner', 'add', 'npu-17', '--accelerator', 'ascend-npu');
    assert.match(stdout, /^ort_[A-Za-z0-9_-]{43}\n$/);
    assert.match(stderr, /token_file/);
    assert.ok(!stderr.includes(stdout.trim()));
    const npu = new Puller(outpost, { name: 'npu-17', accelerator: 'ascend-npu', token: stdout.trim() });
    assert.equal((await npu.claim()).status, 204);
    const [row] = await list('runner', 'list', '--accelerator', 'ascend-npu');
    assert.deepEqual([row.name, row.accelerator, row.registered, row.last_address, row.leases], ['npu-17', 'ascend-npu', true, '127.0.0.1', []]);
    assert.ok(Date.parse(row.last_used) >= BEGAN && Date.parse(row.last_used) <= Date.now(), row.last_used);
    const table = (await ctl('runner', 'list')).stdout;
    assert.match(table, /^npu-17 +ascend-npu +\d+ +\d+ s ago +\d+ s ago +127\.0\.0\.1 +idle$/m);
  });

  test('runner list shows a machine\'s leases', async () => {
    const npu = await Puller.add(outpost, 'npu-1', 'seen');
    await open('seen');
    const lease = await npu.take();
    const [row] = await list('runner', 'list', '--accelerator', 'seen');
    assert.deepEqual(row.leases.map(({ id, dispatch, runner, attempt, pr }) => [id, dispatch, runner, attempt, pr]),
      [[lease.lease_id, lease.dispatch_id, 'farm', 1, lease.change.number]]);
    assert.match((await ctl('runner', 'list', '--accelerator', 'seen')).stdout, new RegExp(`#${lease.change.number} ${lease.change.head_sha.slice(0, 8)} since \\d+ s ago`));
    const { pull, machines } = JSON.parse((await ctl('status', '--json')).stdout);
    assert.deepEqual([pull.leases >= 1, machines.lately >= 1, machines.leases_granted >= 1], [true, true, true]);
  });

  test('only the hash of a token is stored, and no log line contains it', async () => {
    const { token } = await Puller.add(outpost, 'npu-99', 'ascend-npu');
    await outpost.restart();
    const npu = new Puller(outpost, { name: 'npu-99', token });
    assert.equal((await Puller.ready(() => npu.claim())).status, 204); // the hash survived
    for (const file of await fs.readdir(outpost.stateDir, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const bytes = await fs.readFile(path.join(file.path, file.name));
      assert.ok(!bytes.includes(token) && !bytes.includes(token.slice(4)), file.name);
    }
    assert.ok(!outpost.log.some(({ line }) => line.includes(token.slice(4))));
  });

  test('a machine may have two valid tokens, and revoking one keeps the other', async () => {
    const [old, fresh] = [await Puller.add(outpost, 'npu-1', 'rotated'), await Puller.add(outpost, 'npu-1', 'rotated')];
    assert.deepEqual([(await old.claim()).status, (await fresh.claim()).status], [204, 204]);
    const [first] = await list('runner', 'list', '--accelerator', 'rotated');
    await fails(new RegExp(`2 valid tokens already.*runner revoke npu-1 --accelerator rotated --id ${first.id}`), 'runner', 'add', 'npu-1', '--accelerator', 'rotated');
    // The id of another machine's token revokes no token.
    const [other] = await list('runner', 'list', '--accelerator', 'ascend-npu');
    await fails(/no valid token/, 'runner', 'revoke', 'npu-1', '--accelerator', 'rotated', '--id', String(other.id));
    const { stdout } = await ctl('runner', 'revoke', 'npu-1', '--accelerator', 'rotated', '--id', String(first.id));
    assert.match(stdout, /^1 token of npu-1 of rotated revoked$/m);
    assert.deepEqual([(await old.claim()).status, (await fresh.claim()).status], [401, 204]);
    await ctl('runner', 'revoke', 'npu-1', '--accelerator', 'rotated');
    assert.equal((await fresh.claim()).status, 401);
    await fails(/npu-1 of rotated has no valid token/, 'runner', 'revoke', 'npu-1', '--accelerator', 'rotated');
    assert.deepEqual(await list('runner', 'list', '--accelerator', 'rotated'), []);
  });

  test('revoking a token ends its waiting claim and heartbeat', async () => {
    const npu = await Puller.add(outpost, 'npu-1', 'held');
    await open('held');
    const lease = await npu.take();
    const statuses = await statusesAfter(() => [npu.claim({ wait: 30 }), npu.renew(lease, { wait: 20 })],
      () => ctl('runner', 'revoke', 'npu-1', '--accelerator', 'held'),
      async () => { npu.token = (await ctl('runner', 'add', 'npu-1', '--accelerator', 'held')).stdout.trim(); });
    assert.deepEqual(statuses, [401, 401]);
  });

  test('an API token can report for its accelerator but not claim work', async () => {
    const { stdout, stderr } = await ctl('token', 'issue', 'lab');
    assert.match(stdout, /^oat_[A-Za-z0-9_-]{43}\n$/);
    assert.match(stderr, /Bearer/);
    const token = stdout.trim();
    const dispatch = await open('lab');
    const ci = new Puller(outpost, { name: 'x', token });
    const lease = { dispatch_id: dispatch, runner: 'suite', run_id: '7', attempt: 1 };
    const answer = await ci.finish(lease);
    assert.deepEqual([answer.status, answer.json.status], [200, 'completed']);
    assert.equal((await ci.claim()).status, 403);
    const foreign = await ci.finish({ ...lease, dispatch_id: await open('foreign') });
    assert.ok([400, 403].includes(foreign.status), foreign.text);
    const [row] = await list('token', 'list', 'lab');
    assert.deepEqual([row.kind, row.accelerator, row.name], ['api', 'lab', undefined]);
    assert.match((await ctl('token', 'list')).stdout, /^lab +\d+ +.*127\.0\.0\.1$/m);
    await ctl('token', 'revoke', 'lab');
    assert.equal((await ci.finish(lease)).status, 401);
  });

  test('an API token can self-report periodic runs, but not a dispatch', async () => {
    const sha = 'a1'.repeat(20);
    const bearer = async (...args) => ({ authorization: `Bearer ${(await ctl(...args)).stdout.trim()}` });
    const headers = await bearer('token', 'issue', 'lab');
    const send = (body, workflow = {}, as = headers) => outpost.request('POST', '/github/callback', {
      headers: { 'content-type': 'application/json', ...as },
      body: { event_type: 'nightly', delivery_id: sha, ...body, workflow: { status: 'completed', conclusion: 'success', name: 'nightly', run_id: '1', ...workflow } },
    });
    const { status, json } = await send();
    assert.deepEqual([status, json.status], [200, 'completed']);
    const report = { schema: 1, tests: [{ suite: 'model', name: 'llama3', status: 'FAIL', message: 'NaN' }] };
    const put = async (as) => (await outpost.request('PUT', `/api/v1/jobs/${json.job}/report`, { headers: as, body: report })).status;
    const foreign = await bearer('token', 'issue', 'foreign');
    assert.deepEqual([await put(foreign), await put(headers)], [403, 200]);
    const job = await outpost.api(`jobs/${json.job}`);
    assert.deepEqual([job.accelerator, job.kind, job.head_sha, job.dispatch, job.tests.map(({ name }) => name)], ['lab', 'nightly', sha, null, ['llama3']]);
    const [{ runs }] = (await outpost.api('nightly?accelerator=lab&days=1')).accelerators;
    assert.deepEqual([runs[0].cause, runs[0].outcome, runs[0].upstream_sha], ['self_report', 'red', sha]);
    const unknown = (await send({ delivery_id: sha.slice(0, 12) }, { run_id: '2' })).json; // an id that is not a commit
    assert.equal((await outpost.api(`jobs/${unknown.job}`)).head_sha, null);
    for (const [answer, code, pattern] of [
      [await send({}, { status: 'in_progress' }), 400, /completed/], [await send({ event_type: 'push' }), 400, /nightly or periodic/],
      [await send({ outpost: { dispatch_id: await open('lab') }, event_type: 'pull_request' }), 400, /dispatches\/ID\/jobs/], [await send({}, { accelerator: 'foreign' }), 400, /accelerator/],
      [await send({}, {}, { authorization: `Bearer oat_${'A'.repeat(43)}` }), 401, /not valid/],
    ]) {
      assert.equal(answer.status, code, answer.text);
      assert.match(answer.json.detail, pattern);
    }
    await ctl('token', 'revoke', 'lab');
    assert.deepEqual([(await send()).status, await put(headers)], [401, 401]);
  });

  test('403 and the list say that an accelerator left the registry', async () => {
    const npu = await Puller.add(outpost, 'npu-1', 'leaving');
    const reload = async (all) => {
      await outpost.configure({ accelerators: all });
      await outpost.reload();
    };
    const leave = () => reload(accelerators().filter(({ name }) => name !== 'leaving'));
    assert.deepEqual(await statusesAfter(() => [npu.claim({ wait: 30 })], leave, () => reload(accelerators())), [403]);
    const { status, json } = await npu.claim();
    assert.deepEqual([status, json.detail], [403, 'the accelerator leaving has left the registry']);
    assert.match((await ctl('runner', 'list', '--accelerator', 'leaving')).stdout, /has left the registry/);
    await ctl('token', 'list', 'leaving');
    await reload(accelerators());
    assert.equal((await npu.claim()).status, 204);
  });

  test('a wrong argument is refused with its name', async () => {
    await fails(/no accelerator is called ascend-npo; did you mean ascend-npu\?/, 'runner', 'add', 'x', '--accelerator', 'ascend-npo');
    for (const words of [['token', 'list'], ['runner', 'list', '--accelerator']]) {
      await fails(/^outpostctl: no accelerator is called ascend-npo; did you mean ascend-npu\?$/m, ...words, 'ascend-npo');
      await fails(/the accelerator's name is too long/, ...words, 'x'.repeat(200));
    }
    assert.match((await ctl('token', 'list', 'ascend-npu')).stdout, /./);
    await fails(/a machine's name/, 'runner', 'add', 'a b', '--accelerator', 'ascend-npu');
    await fails(/a machine's name/, 'runner', 'add', 'x'.repeat(65), '--accelerator', 'ascend-npu');
    await fails(/lab has no valid token/, 'token', 'revoke', 'lab');
    for (const args of [['runner', 'add', 'x'], ['runner', 'add', '--accelerator', 'lab'], ['runner', 'revoke', 'x', '--accelerator', 'lab', '--id', 'y'], ['token', 'issue'], ['token', 'issue', 'a', 'b']])
      assert.deepEqual([(await outpost.ctl(...args)).code, args], [2, args]);
    const { stderr } = await ctl('runner', 'add', 'x', '--accelerator', 'lab');
    assert.match(stderr, /no `pull` runner/);
  });

  describe('wrong tokens', () => {
    let machine;
    let hosts = 1;
    let address;

    // Each test has its own address, which a trusted proxy reports.
    beforeEach(async () => { address = `198.51.100.${hosts++}`; });
    before(async () => { machine = await Puller.add(outpost, 'npu-5', 'walled'); });

    const claim = (token, from = address) => outpost.request('POST', '/api/v1/runner/claim', {
      headers: { 'content-type': 'application/json', 'x-forwarded-for': from, ...(token && { authorization: `Bearer ${token}` }) },
      body: { name: 'npu-5', claim_id: 'a', labels: [], wait: 0 },
    });

    // Claims with a wrong token until the answer is 429, and returns that answer. A minute may end meanwhile, and each has its limit.
    const claimUntil429 = async (token, from = () => address) => {
      for (let admitted = 0; admitted <= 2 * WRONG_PER_MINUTE; admitted++) {
        const answer = await claim(token, from(admitted));
        if (answer.status === 429) {
          assert.ok(admitted >= WRONG_PER_MINUTE, `only ${admitted} were admitted`);
          return answer;
        }
        assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Bearer']);
      }
      assert.fail('too many were admitted');
    };

    test('401, then 429 only for that address; a valid token still works', async () => {
      const wrong = `ort_${'A'.repeat(43)}`;
      const { headers } = await claimUntil429(wrong);
      assert.ok(Number(headers['retry-after']) >= 1 && Number(headers['retry-after']) <= 60);
      assert.equal((await claim(machine.token)).status, 204);
      assert.equal((await claim(wrong, '203.0.113.9')).status, 401);
    });

    test('an IPv6 network counts as one address', async () => {
      await claimUntil429('ort_x', (i) => `2001:db8:1:2:${i.toString(16)}::1`);
      assert.equal((await claim('ort_x', '2001:db8:1:3::1')).status, 401);
    });

    test('a missing, malformed, cut or changed token is refused', async () => {
      const flipped = machine.token.slice(0, -1) + (machine.token.endsWith('A') ? 'B' : 'A');
      for (const token of [undefined, 'x', machine.token.slice(0, -1), `${machine.token}A`, machine.token.replace('ort_', 'oat_'), machine.token.toUpperCase(), flipped])
        assert.deepEqual([(await claim(token)).status, token], [401, token]);
    });
  });
});
