// A wall clock that jumps during work: the jump neither delays nor ends work that is recorded right after it.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { MovedClock, notMovable } from './lib/moved-clock.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const HOUR = 3_600_000;

describe('a wall clock that jumps', { skip: notBuilt || notMovable }, () => {
  let rig, lab, outpost, clock;
  let next = 1;
  const refused = new Set(); // dispatches whose first request got no 2xx

  before(async () => {
    [rig, lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET, answer: ({ body }) => {
      const isNew = !refused.has(body.outpost.dispatch_id);
      refused.add(body.outpost.dispatch_id);
      return isNew ? 503 : 202;
    } })]);
    outpost = await Outpost.prepare({
      rig, config: { comment: { enabled: false } }, secrets: { lab: { hook: SECRET } },
      accelerators: [
        { name: 'lab', title: 'Lab', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] },
        { name: 'npu', title: 'NPU', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: VENDOR } }] },
      ],
    });
    clock = await MovedClock.of(outpost);
    await clock.set(0);
    outpost.options.env = clock.env;
    await outpost.spawn();
    await outpost.waitForLog({ ev: 'reconciled' }, { timeout: 20_000 }); // from now on only webhooks announce pull requests
  });
  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
    MovedClock.right();
  });

  const sentFor = (number) => lab.events.filter(({ event, body }) => event !== 'cancel' && body?.payload?.number === number);
  const dispatchOf = async (number, name = 'lab') => (await outpost.api(`pulls/${number}`)).accelerators.find((one) => one.name === name).dispatches[0];

  for (const hours of [5, -5, 30, -30]) {
    test(`${Math.abs(hours)} hours ${hours > 0 ? 'ahead' : 'back'}: a request that a vendor refused once is retried, and its dispatch waits for the answer`, async () => {
      const number = next++;
      const pull = rig.openPull(UPSTREAM, { number });
      const seen = outpost.log.length;
      await clock.put(hours * HOUR);
      assert.equal((await rig.deliver('pull_request', pullRequestOf('opened', pull))).status_code, 202);
      await until(() => sentFor(number).length === 2, { timeout: 20_000, what: 'the lab receives the retry' });
      await outpost.waitForLog({ ev: 'clock_jumped' }, { after: seen, timeout: 20_000 });
      await until(async () => (await dispatchOf(number)).state === 'acknowledged', { timeout: 20_000, what: 'the dispatch is acknowledged' });
      // The deadlines of another dispatch are checked after the jump was recorded, and this one's at the same time.
      const other = next++;
      await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: other })));
      await until(async () => sentFor(other).length === 2 && (await dispatchOf(other)).state === 'acknowledged', { timeout: 20_000, what: 'the other dispatch is acknowledged' });
      assert.equal((await dispatchOf(number)).state, 'acknowledged');
      assert.equal(outpost.log.slice(seen).filter(({ fields }) => fields.ev === 'clock_jumped').length, 1);
    });
  }

  test('30 hours ahead, as after a machine\'s sleep: a request whose answer is cut off is retried', async () => {
    const number = next++;
    const fault = rig.fault({ kind: 'reset', when: 'after', method: 'POST', path: `/repos/${VENDOR}/dispatches` });
    rig.delay = 1000; // GitHub has the request and still delays its answer
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
    const sent = ({ client_payload: { payload } }) => payload.number === number;
    const first = await rig.waitForDispatch({ repository: VENDOR, where: sent });
    await clock.put(30 * HOUR);
    rig.delay = 0;
    const second = await rig.waitForDispatch({ repository: VENDOR, after: first.seq, where: sent });
    assert.equal(second.client_payload.outpost.dispatch_id, first.client_payload.outpost.dispatch_id);
    await until(async () => (await dispatchOf(number, 'npu')).state === 'sent', { timeout: 20_000, what: 'the dispatch is sent' });
    assert.equal(fault.struck, 1);
  });
});
