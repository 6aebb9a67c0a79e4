// A log of a hundred megabytes and a million lines and its job page, for the browser tests and for the benchmark of page freezes
// (tests/bench/paint.mjs).
import assert from 'node:assert/strict';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { Outpost } from '../integration/lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const LINE_BYTES = 110;

export const LINES = 1_000_000;
export const ERROR_LINE = 777_777;
export const LATE_LINE = 999_000;
const SPECIAL = new Map([
  [ERROR_LINE, '\x1b[31mRuntimeError: no kernel for aten::addmm\x1b[0m'],
  [LATE_LINE, 'the one line that speaks of a zebra'],
]);

export const lineOf = (n) => (SPECIAL.get(n) ?? `${n % 50 ? '' : '\x1b[32m'}test/test_ops.py::TestCommonDevice::test_out_warning_nn_functional_${n} PASSED [${Math.floor(n * 100 / LINES)}%]${n % 50 ? '' : '\x1b[0m'}`).padEnd(LINE_BYTES - 1, '.');

function logOf() {
  const log = Buffer.alloc(LINES * LINE_BYTES, '\n');
  for (let n = 1; n <= LINES; n++) log.write(lineOf(n), (n - 1) * LINE_BYTES, 'latin1');
  return log;
}

// {outpost, address, close}: the job's page is at `address`, and its log is complete.
export async function startMillionLines() {
  const [rig, lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
  let outpost;
  const close = async () => {
    await outpost?.close();
    await Promise.all([lab.stop(), rig.close()]);
  };
  try {
    outpost = await Outpost.start({
      rig, accelerators: [{ name: 'chip', title: 'Chip', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      secrets: { chip: { hook: SECRET } },
    });
    const token = (await outpost.ctl('token', 'issue', 'chip')).stdout.trim();
    const pull = rig.openPull(UPSTREAM, { number: 100, association: 'CONTRIBUTOR' });
    assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
    const view = await outpost.waitForApi('pulls/100', ({ accelerators }) => accelerators[0]?.dispatches.length > 0);
    const answer = await post(`${outpost.url}/api/v1/dispatches/${view.accelerators[0].dispatches[0].id}/jobs`, token, workflowOf({ workflow: 'ci', job: 'all', run_id: '1', conclusion: 'failure' }, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const put = await outpost.request('PUT', `/api/v1/jobs/${answer.body.job}/log`, { body: logOf(), headers: { authorization: `Bearer ${token}`, 'content-type': 'text/plain' } });
    assert.deepEqual([put.status, put.json?.bytes], [200, LINES * LINE_BYTES], put.text);
    return { outpost, address: `/jobs/${answer.body.job}`, close };
  } catch (error) {
    await close();
    throw error;
  }
}
