// Two daemons reach PostgreSQL through pgbouncer, which gives each transaction another session of the server (docs/cluster.md).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { Cluster } from './lib/cluster.mjs';
import { follow } from './lib/events.mjs';
import { notBuilt, until } from './lib/outpost.mjs';
import { noPooler } from './lib/pooler.mjs';
import { deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';

for (const mode of ['transaction', 'session'])
  describe(`pgbouncer in ${mode} mode`, { skip: notBuilt || noPooler }, () => {
    let rig, issuer, lab, cluster;
    let number = 100;

    before(async () => {
      [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
      lab = await startWebhookVendor({ secret: SECRET, script: [{ workflow: 'lab', job: 'suite', tests: [{ suite: 'model', name: 'llama3', status: 'PASS', duration: 1 }] }] });
      cluster = await Cluster.prepare({
        rig, issuer, nodes: 2, pooler: mode, database: { isDurable: true },
        accelerators: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L2', vendor: 'A vendor', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
        secrets: { 'lab-chip': { hook: SECRET } },
      });
      await cluster.spawn();
      await cluster.ready();
    });

    after(async () => {
      await lab?.stop();
      await cluster?.close();
      await Promise.all([issuer?.close(), rig?.close()]);
    });

    const comments = (pull) => rig.comments(UPSTREAM, pull).filter(({ author }) => author === rig.bot);

    // A pull request whose webhook this node gets: the lab tests it once, and its results are in one comment.
    async function goRound(node) {
      const pull = rig.openPull(UPSTREAM, { number: ++number });
      rig.setTarget(`${node.ownUrl}/github/webhook`);
      await deliver(rig, 'pull_request', pullRequestOf('opened', pull));
      await until(() => comments(pull.number).some(({ body }) => body.includes('Lab Chip') && /passed|✅/.test(body)), { timeout: 90_000, what: `the comment of #${pull.number}` });
      assert.equal(comments(pull.number).length, 1);
      assert.equal(lab.events.filter(({ body }) => body?.payload?.number === pull.number).length, 1);
      return pull.number;
    }

    test('a webhook that any node gets leads to one comment, and both have the same pages', async () => {
      for (const node of cluster.nodes) {
        const pull = await goRound(node);
        for (const other of cluster.nodes) await other.waitForApi(`pulls/${pull}`, ({ accelerators }) => accelerators[0]?.dispatches[0]?.state === 'done');
      }
    });

    test('a page hears of a webhook that the other node took', async () => {
      const [one, other] = cluster.nodes;
      const pull = await goRound(one);
      const page = follow({ ...one, url: one.ownUrl }, [`pulls/${pull}`]);
      await page.next(1); // each stream begins with one
      rig.setTarget(`${other.ownUrl}/github/webhook`);
      await deliver(rig, 'pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, pull, { state: 'closed' })));
      await page.next(1);
      page.close();
    });

    test('the daemons go on when the pooler starts again', async () => {
      await cluster.pooler.kill();
      await until(async () => !(await Promise.all(cluster.nodes.map((node) => cluster.isReady(node)))).some(Boolean), { what: 'no daemon is ready' });
      await cluster.pooler.start();
      await cluster.ready();
      await goRound(cluster.nodes[1]);
    });

    test('a copy needs the server itself', async () => {
      const [node] = cluster.nodes;
      const { code, stderr } = await node.ctl('store', 'copy', '--to', `${node.stateDir}/copy.db`);
      assert.notEqual(code, 0);
      assert.match(stderr, /a pooler \(pgbouncer\) is in front of the server: give the server's own address/);
    });
  });
