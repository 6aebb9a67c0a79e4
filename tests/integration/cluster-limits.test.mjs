// GitHub tells one of several daemons to wait. None of them sends anything until then, also after a restart.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Cluster } from './lib/cluster.mjs';
import { notBuilt, until } from './lib/outpost.mjs';
import { deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const VENDOR = 'Ascend/pytorch';
const POST = { method: 'POST', path: `/repos/${VENDOR}/dispatches` };
const WAIT_S = 30;

describe('a limit that GitHub names to one of two daemons', { skip: notBuilt }, () => {
  let rig, cluster;

  before(async () => {
    rig = await startRig();
    cluster = await Cluster.prepare({
      nodes: 2, rig, config: { comment: { enabled: false } },
      accelerators: [{ name: 'npu', title: 'NPU', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: VENDOR } }] }],
    });
    await cluster.spawn();
    await cluster.ready();
  });
  after(async () => {
    await cluster?.close();
    await rig?.close();
  });

  const open = (node, number) => {
    rig.setTarget(`${node.ownUrl}/github/webhook`);
    return deliver(rig, 'pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number })));
  };
  const isSent = (number) => rig.waitForDispatch({ repository: VENDOR, where: ({ client_payload: { payload } }) => payload.number === number });
  // The largest value of a metric.
  const metric = async (node, name) => {
    const text = await (await fetch(`${node.ownUrl}/metrics`)).text();
    return Math.max(0, ...[...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].map(([, value]) => Number(value)));
  };
  const knows = (node) => until(async () => await metric(node, 'outpost_github_blocked_seconds') > 0, { what: `${node.name} knows the limit` });

  for (const [what, number, fault] of [
    ['a secondary limit', 10, { kind: 'secondary', retryAfter: WAIT_S }],
    ['a spent quota', 20, { kind: 'primary', resetIn: WAIT_S }],
  ]) {
    test(`${what}: the other daemon waits, too, and so does the next one`, async () => {
      const refusals = () => Promise.all(cluster.nodes.map((node) => metric(node, 'outpost_github_rate_limited_total')));
      await open(cluster.nodes[0], number);
      await isSent(number);
      const earlier = await refusals();
      const { seq } = rig.requests(POST).at(-1);
      rig.fault({ ...fault, ...POST });
      await open(cluster.nodes[0], number + 1);
      for (const node of cluster.nodes) await knows(node);
      const i = (await refusals()).findIndex((n, k) => n > earlier[k]);
      const [told, other] = [cluster.nodes[i], cluster.nodes[1 - i]];
      told.isStarted = false;
      await told.stop(); // so that the other one has all the work
      await open(other, number + 2);
      other.isStarted = false;
      await other.stop();
      await cluster.start(other);
      await cluster.ready([other]);
      await open(other, number + 3);
      for (const n of [1, 2, 3]) await isSent(number + n);
      const [refused, ...later] = rig.requests({ ...POST, after: seq });
      assert.equal(later.length, 3);
      for (const { time } of later) assert.ok(Date.parse(time) - Date.parse(refused.time) >= (WAIT_S - 1) * 1000, 'none is sent before GitHub takes it');
      await cluster.start(told);
      await cluster.ready();
    });
  }

  test('GitHub saw no violation', () => assert.deepEqual(rig.violations(), []));
});
