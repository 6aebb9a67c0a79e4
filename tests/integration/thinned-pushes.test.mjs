// triggers.push.every: scarce hardware gets the newest push of each interval, by whatever way it gets its work.
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

describe('pushes thinned out', { skip: notBuilt }, () => {
  let rig;
  let lab;
  let outpost;
  let machine;
  let tip;

  const triggers = { push: { branches: ['main'], every: `${EVERY_MS}ms` } };
  const heardOf = (sha) => lab.events.some(({ body }) => body?.payload?.after === sha);
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

  test('the first goes at once, then the newest when its turn has come', async (t) => {
    const began = Date.now();
    const [first, second, third, fourth] = [await land(), await land(), await land(), await land()];
    if (Date.now() - began >= EVERY_MS) return t.skip('this machine takes more than an interval for four pushes: nothing can be shown');
    assert.equal((await machine.take()).change.head_sha, first);
    assert.equal((await machine.take({ wait: 30 })).change.head_sha, fourth, 'the machine waits while its turn comes');
    assert.ok(Date.now() - began >= EVERY_MS);
    await until(() => heardOf(first), { ...LONG, what: 'the lab has the first' });
    await until(() => heardOf(fourth), { ...LONG, what: 'the lab has the newest' });
    for (const sha of [second, third]) {
      assert.ok(!heardOf(sha));
      assert.deepEqual(await states(sha), { 'lab-chip': 'superseded', 'farm-chip': 'superseded', 'eager-chip': 'sent' });
      assert.deepEqual((await outpost.api(`commits/${sha}`)).verdicts, [], 'neither missing nor red');
    }
    for (const sha of [first, second, third, fourth])
      await rig.waitForDispatch({ repository: 'Ascend/pytorch', where: ({ client_payload: { payload } }) => payload.after === sha });
  });

  test('a push that waits for its turn outlives a kill', async () => {
    const older = await land();
    const last = await land();
    await outpost.restart({ hard: true });
    // The machine's own name for the claim: one that asks before the tokens are read takes nothing away.
    let head;
    do {
      const id = randomUUID();
      await Puller.ready(() => machine.claim({ id }));
      head = (await machine.take({ id, wait: 30 })).change.head_sha;
    } while (head === older); // a slow machine: its turn had come before the kill
    assert.equal(head, last);
    await until(() => heardOf(last), { ...LONG, what: 'the lab has it' });
    assert.equal(lab.events.filter(({ body }) => body?.payload?.after === last).length, 1);
    assert.deepEqual(rig.violations(), []);
  });
});
