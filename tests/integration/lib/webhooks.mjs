// Webhooks that a daemon must accept sooner or later. On a busy machine a daemon, its database or nginx may be late, and then the first
// answer is 503 or 504.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { until } from './outpost.mjs';

// Sends a webhook again, with the same GUID, until its answer is 202, or that it is there already (200): an earlier answer may be lost.
// Returns {guid, status}.
export async function deliver(rig, event, payload, { guid = randomUUID(), ...options } = {}) {
  const { status_code: status, response } = await until(async () => {
    const answer = await rig.deliver(event, payload, { guid, ...options });
    return answer.status_code < 500 && answer;
  }, { interval: 50, what: `the webhook ${guid} has an answer below 500` });
  assert.ok(status === 202 || (status === 200 && /duplicate/.test(response.body)), `the webhook ${guid}: ${status} ${response?.body}`);
  return { guid, status };
}

// Asserts that the database has each of these webhooks.
export async function assertKept(node, guids) {
  // the first reading after a restart of the server may fail
  const { deliveries } = await until(async () => {
    const { code, stdout } = await node.ctl('--json', 'deliveries', '--limit', '1000');
    return code === 0 && JSON.parse(stdout);
  }, { what: 'the deliveries are read' });
  const kept = new Set(deliveries.map(({ guid }) => guid));
  for (const guid of guids) assert.ok(kept.has(guid), `the webhook ${guid} is there`);
}
