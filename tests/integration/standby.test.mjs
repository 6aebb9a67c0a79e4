// A daemon on a database with a standby (docs/cluster.md): no acknowledged webhook is missing after a failover, and an asynchronous
// standby, with which some could be, is warned of.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { fakeSha, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Cluster } from './lib/cluster.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';
import { assertKept, deliver } from './lib/webhooks.mjs';

const WEBHOOKS = 60;

describe('a database with a standby', { skip: notBuilt }, () => {
  let rig;
  let cluster;

  before(async () => {
    rig = await startRig();
    cluster = await Cluster.prepare({ rig, nodes: 1, database: { hasStandby: true } });
    cluster.mayFail = () => true;
    await cluster.spawn();
    await cluster.ready();
  });

  after(async () => {
    await cluster?.close();
    await rig?.close();
  });

  const send = (i, guid) => deliver(rig, 'push', push({ after: fakeSha(`standby ${i}`) }), { guid });
  // Webhooks that were accepted are in the database, and a further one with the same GUID is a repetition. It looks into the database first,
  // because a webhook that is sent again after nginx's 504 may take the place of a lost one.
  const assertAllKept = async (guids) => {
    await assertKept(cluster, guids);
    for (const [i, guid] of guids.entries()) assert.equal((await send(i, guid)).status, 200, `webhook ${i} is there`);
  };

  test('a failover loses no webhook that was answered with 202', async () => {
    const [node] = cluster.nodes;
    assert.ok(!node.log.some(({ fields }) => fields.ev === 'standby_asynchronous'));
    const accepted = [];
    let failingOver;
    for (let i = 0; i < WEBHOOKS; i++) {
      accepted.push((await send(i)).guid);
      if (i === WEBHOOKS / 2) failingOver = cluster.database.failOver();
    }
    await failingOver;
    await cluster.ready();
    await assertAllKept(accepted);
  });

  test('a daemon that reaches only the standby says so, and waits', async () => {
    const standby = cluster.database.servers.find((server) => server !== cluster.database.primary);
    const node = await Outpost.prepare({ rig, wait: false, config: { store: cluster.database.url([standby]), node: 'astray' } });
    try {
      // On a busy machine it may end before that.
      await until(async () => {
        await node.spawn();
        const said = node.waitForLog({ ev: 'store_not_reached', why: /read-only transaction \(25006\); this server is a standby: promote it, or add the primary/ });
        return Promise.race([said, node.hasMissedDatabase().then((hasMissed) => assert.ok(hasMissed, node.tail()))]);
      }, { what: 'the daemon says that it reaches only the standby' });
    } finally {
      await node.kill();
      await node.close();
      rig.setTarget(`${cluster.url}/github/webhook`);
    }
  });

  test('a primary that stands still is given up for the standby that takes over', async () => {
    const [node] = cluster.nodes;
    const accepted = [];
    const accept = async (i) => accepted.push((await send(i)).guid);
    for (let i = 0; i < 5; i++) await accept(`before ${i}`);
    const after = node.log.length;
    // It asks from the beginning on, because the daemon says so for some seconds only.
    const isSilent = until(async () => /the database does not answer/.test((await node.get('/readyz')).json?.error), { what: '/readyz says that the database does not answer' });
    isSilent.catch(() => {});
    await cluster.database.failOverFromFrozen(async () => {
      await isSilent;
      await node.waitForLog({ error: /the server has sent nothing for 15 s/ }, { after });
      await cluster.ready();
      for (let i = 0; i < 5; i++) await accept(`after ${i}`);
    });
    await cluster.ready();
    await assertAllKept(accepted);
  });

  test('a commit that waits for the standby for too long is looked up when the standby is back', async () => {
    const [node] = cluster.nodes;
    const { primary } = cluster.database;
    const waitFor = async (standby) => {
      await primary.sql(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
      await primary.sql('SELECT pg_reload_conf()');
    };
    const guid = randomUUID(), after = node.log.length;
    await waitFor('nobody');
    const waiting = rig.deliver('push', push({ after: fakeSha('standby waits') }), { guid });
    await node.waitForLog({ ev: 'store_commit_failed', error: /the server has sent nothing for 15 s/ }, { after });
    // one for each writer: those that look the commit up do not wait there, too
    assert.ok(Number(await primary.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) <= 2);
    await waitFor('*');
    await node.waitForLog({ ev: 'store_commit_unknown', outcome: 'it happened' }, { after });
    await waiting;
    await cluster.ready();
    await assertAllKept([guid]);
  });

  test('an asynchronous standby is warned of', async () => {
    const [node] = cluster.nodes;
    const { primary } = cluster.database;
    await primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    await primary.sql('SELECT pg_reload_conf()');
    await until(async () => await primary.sql('SHOW synchronous_standby_names') === '', { what: 'the standby is asynchronous' });
    await cluster.killNode(node);
    const after = node.log.length;
    await cluster.start(node);
    await node.waitForLog({ ev: 'standby_asynchronous' }, { after });
    await cluster.ready();
  });
});
