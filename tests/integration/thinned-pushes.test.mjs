// triggers.push.every: scarce hardware gets the newest push of each interval, with every kind of runner.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const EVERY_MS = 10_000; // long enough for four webhooks on a busy machine
const LONG = { timeout: 30_000 };

describe('thinned pushes', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let machine;
  let tip;

  const triggers = { push: { branches: ['main'], every: `${EVERY_MS}ms` } };
  const received = (sha) => lab.events.some(({ body }) => body?.payload?.after === sha);
  const states = async (sha) => Object.fromEntries((await outpost.api(`commits/${sha}`)).accelerators.map(({ name, dispatches }) => [name, dispatches[0]?.state]));

  async function land() {
    const last = tip ?? rig.world.branchTip(UPSTREAM);
    tip = rig.push(UPSTREAM);
    const answer = await rig.deliver('push', push({ before: last, after: tip }));
    assert.equal(answer.status_code, 202);
    await outpost.waitForLog({ ev: 'delivery_planned', delivery: answer.guid });
    return tip;
  }

  before(async () => {
    [rig, lab] = await Promise.all([startRig(), startSilentVendor({ secret: SECRET })]);
    outpost = await Outpost.start({
      rig, secrets: { 'lab-chip': { hook: SECRET } },
      accelerators: [
        { name: 'lab-chip', title: 'Lab Chip', level: 'L2', triggers, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] },
        { name: 'farm-chip', title: 'Farm Chip', level: 'L2', triggers, runners: [{ name: 'farm', pull: { labels: [], max_parallel: 5 } }] },
        { name: 'eager-chip', title: 'Eager Chip', level: 'L2', triggers: { push: { branches: ['main'] } }, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] },
      ],
    });
    machine = await Puller.add(outpost, 'npu-1', 'farm-chip');
    await Puller.ready(() => machine.claim());
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([lab?.stop(), rig?.close()]);
  });

  test('the first push runs at once, and the newest after the interval', async (t) => {
    const began = Date.now();
    const [first, second, third, fourth] = [await land(), await land(), await land(), await land()];
    if (Date.now() - began >= EVERY_MS) return t.skip('this machine needs more than an interval for four pushes');
    assert.equal((await machine.take()).change.head_sha, first);
    assert.equal((await machine.take({ wait: 30 })).change.head_sha, fourth, 'the claim waits for the end of the interval');
    assert.ok(Date.now() - began >= EVERY_MS);
    await until(() => received(first), { ...LONG, what: 'the lab receives the first' });
    await until(() => received(fourth), { ...LONG, what: 'the lab receives the newest' });
    for (const sha of [second, third]) {
      assert.ok(!received(sha));
      assert.deepEqual(await states(sha), { 'lab-chip': 'superseded', 'farm-chip': 'superseded', 'eager-chip': 'sent' });
      assert.deepEqual((await outpost.api(`commits/${sha}`)).verdicts, [], 'a superseded push has no cells');
    }
    for (const sha of [first, second, third, fourth])
      await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: { payload } }) => payload.after === sha });
  });

  test('a push that waits for the interval survives a kill', async () => {
    const older = await land();
    const last = await land();
    await outpost.restart({ hard: true });
    // The same claim_id, so that a claim before the tokens are read does not lose the lease.
    let head;
    do {
      const id = randomUUID();
      await Puller.ready(() => machine.claim({ id }));
      head = (await machine.take({ id, wait: 30 })).change.head_sha;
    } while (head === older); // on a slow machine the older one ran before the kill
    assert.equal(head, last);
    await until(() => received(last), { ...LONG, what: 'the lab receives it' });
    assert.equal(lab.events.filter(({ body }) => body?.payload?.after === last).length, 1);
    assert.deepEqual(rig.violations(), []);
  });
});
