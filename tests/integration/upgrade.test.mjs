// Releases side by side on one database (docs/cluster.md): three daemons are upgraded one after the other while webhooks come in, one goes
// back, and a release whose tables the older ones cannot use stops them. Nothing is lost, and only daemons of the newest release have seats.
// The newer releases are this tree with further versions of the tables (lib/releases.mjs). `make soak` has the long form, and the upgrade
// of the release before the present tables: tests/kill/upgrade.mjs.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fakeSha, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { Cluster } from './lib/cluster.mjs';
import { OUTPOSTD, notBuilt, until } from './lib/outpost.mjs';
import { NextRelease } from './lib/releases.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
const PAUSE_MS = 60; // between two webhooks
const N_SEATS = 8;

describe('releases side by side', { skip: notBuilt }, () => {
  let next, expanded, contracted, rig, lab, cluster;
  const heads = [];

  // Until it is accepted: the reconciler asks GitHub for one that failed, but later and later.
  async function deliver(event, payload) {
    const guid = randomUUID();
    await until(async () => [200, 202].includes((await rig.deliver(event, payload, { guid })).status_code), { what: 'a webhook is accepted' });
  }

  async function send() {
    const head = fakeSha(`upgrade ${heads.length}`);
    const payload = push({ before: heads.at(-1) ?? rig.world.branchTip(UPSTREAM), after: head });
    heads.push(head);
    await deliver('push', payload);
  }

  // Webhooks come in until `work` ends.
  async function underLoad(work) {
    let isOver = false;
    const sender = (async () => {
      while (!isOver) {
        await send();
        await sleep(PAUSE_MS);
      }
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await sender;
    }
  }

  // nginx has no daemon for a moment when it has just found them down
  const status = () => until(() => cluster.api('status').then(({ nodes }) => nodes), { what: 'the status' });
  // All seats are held by daemons of this version; none by another one once they have been.
  const seatsAreWith = (...versions) => until(async () => {
    const nodes = await status();
    const held = nodes.filter(({ version }) => versions.includes(version)).flatMap(({ seats }) => seats);
    return held.length === N_SEATS && nodes.flatMap(({ seats }) => seats).length === N_SEATS;
  }, { what: `the seats are with ${versions.join(', ')}` });

  async function upgrade(node, { program, version }) {
    await cluster.replace(node, program);
    await cluster.ready([node]);
    if (version) await seatsAreWith(version);
  }

  // Each webhook took effect once: one dispatch and one report.
  async function nothingIsMissing() {
    const ids = new Map(); // head → its dispatches
    const dispatched = () => {
      for (const { body } of lab.events) if (body?.payload?.after) ids.set(body.payload.after, (ids.get(body.payload.after) ?? new Set()).add(body.outpost.dispatch_id));
      return ids;
    };
    await until(() => dispatched().size === heads.length && lab.reported.size >= heads.length, { what: 'each webhook has its dispatch and its report' }).catch(({ message }) => {
      assert.fail(`${message}; ${heads.filter((head) => !dispatched().has(head)).length} of ${heads.length} webhooks have no dispatch, ${lab.reported.size} reports`);
    });
    for (const [head, { size }] of dispatched()) assert.equal(size, 1, `the dispatches of ${head}`);
    // without those that the reconciler made of a pull request that it saw before its webhook came
    const [{ planned, failed }] = await cluster.database.query("SELECT COUNT(*) FILTER (WHERE state = 'planned') AS planned, COUNT(*) FILTER (WHERE state = 'failed') AS failed FROM delivery WHERE is_synthetic = 0");
    assert.deepEqual({ planned, failed }, { planned: heads.length + pulls, failed: 0 });
  }

  let pulls = 0;
  async function goRound() {
    const pull = rig.openPull(UPSTREAM, { number: ++pulls });
    const comments = () => rig.comments(UPSTREAM, pull.number).filter(({ author }) => author === rig.bot);
    await deliver('pull_request', pullRequestOf('opened', pull));
    await until(() => comments().some(({ body }) => /passed|✅/.test(body)), { what: `the comment of #${pull.number}` });
    assert.equal(comments().length, 1);
  }

  before(async () => {
    next = await NextRelease.prepare();
    expanded = await next.build();
    contracted = await next.build({ readableFrom: expanded.schema + 1 });
    rig = await startRig();
    lab = await startWebhookVendor({ secret: SECRET, once: true, tries: 1000, script: [{ workflow: 'lab', job: 'suite', tests: [{ suite: 'model', name: 'llama3', status: 'PASS', duration: 1 }] }] });
    lab.reported = new Set();
    lab.on('report', ({ status: what, answer }) => { if (what === 'completed' && answer.status === 200) lab.reported.add(answer.body.job); });
    cluster = await Cluster.prepare({
      rig, secrets: { 'lab-chip': { hook: SECRET } },
      accelerators: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L2', vendor: 'A vendor', trust: 'anyone', triggers: { pull_request: {}, push: { branches: ['main'] } }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      config: { reconcile: { interval: '5s' }, log: { level: 'info' } },
    });
    cluster.on('exit', ({ node, code, signal }) => { throw new Error(`${node.name} ended by itself (${signal ?? code}):\n${node.tail()}`); });
    await cluster.spawn();
    await cluster.ready();
  });

  after(async () => {
    await lab?.stop();
    await cluster?.close();
    await rig?.close();
    await next?.close();
  });

  test('an upgrade of one daemon after the other loses nothing, and the newest release has the seats', async () => {
    const [{ version }] = await status();
    await seatsAreWith(version);
    await underLoad(async () => {
      for (const node of cluster.nodes) {
        await upgrade(node, expanded);
        await goRound();
      }
    });
    assert.deepEqual(await cluster.database.query('SELECT version, readable_from FROM outpost_schema'), [{ version: expanded.schema, readable_from: expanded.readableFrom }]);
    assert.deepEqual((await status()).map(({ version: one }) => one), Array(3).fill(expanded.version));
    await nothingIsMissing();
  });

  test('one daemon goes back to the older release, and works without a seat', async () => {
    const [node] = cluster.nodes;
    await underLoad(() => upgrade(node, { program: OUTPOSTD }));
    await seatsAreWith(expanded.version);
    rig.setTarget(`${node.ownUrl}/github/webhook`);
    await goRound();
    rig.setTarget(`${cluster.url}/github/webhook`);
    await nothingIsMissing();
  });

  test('a release whose tables the older ones cannot use stops them, and they say why', async () => {
    const [first, ...older] = cluster.nodes;
    await underLoad(async () => {
      await upgrade(first, contracted);
      for (const node of older) {
        // before that it may say that the database does not answer
        await until(async () => {
          const got = await fetch(`${node.ownUrl}/readyz`);
          const { error } = await got.json();
          assert.deepEqual([got.status, error], [503, 'the store cannot be written: a newer release has changed the tables: run the newer outpostd']);
          return true;
        }, { what: `${node.name} says that the tables are newer` });
      }
      // they do not start again, and the newest release does in their place
      const [node] = older;
      const said = node.log.length;
      node.isStarted = false;
      await node.stop();
      await until(async () => {
        await node.spawn();
        return !await node.hasMissedDatabase();
      }, { what: 'the daemon ends after an answer of the database' });
      assert.equal((await node.exited).code, 1);
      assert.match(node.log.slice(said).map(({ line }) => line).join('\n'), new RegExp(`has schema version ${contracted.schema}, .*run the newer outpostd`));
      node.options.program = contracted.program;
      await cluster.start(node);
      for (const one of older.slice(1)) await upgrade(one, contracted);
      await cluster.ready();
    });
    await goRound();
    await nothingIsMissing();
  });
});
