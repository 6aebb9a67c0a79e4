// A daemon on a database with a standby (docs/cluster.md): no acknowledged webhook is missing after a failover, and an asynchronous
// standby, with which some could be, is warned of.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { fakeSha, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Cluster } from './lib/cluster.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

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

  const send = (i, guid) => rig.deliver('push', push({ after: fakeSha(`standby ${i}`) }), { guid });

  test('a failover loses no webhook that was answered with 202', async () => {
    const [node] = cluster.nodes;
    assert.ok(!node.log.some(({ fields }) => fields.ev === 'standby_asynchronous'));
    const accepted = [];
    let failingOver;
    for (let i = 0; i < WEBHOOKS; i++) {
      const guid = randomUUID();
      await until(async () => {
        const { status_code: status } = await send(i, guid);
        return status === 202 || status === 200;
      }, { interval: 50, what: `webhook ${i} is accepted` });
      accepted.push(guid);
      if (i === WEBHOOKS / 2) failingOver = cluster.database.failOver();
    }
    await failingOver;
    await cluster.ready();
    for (const [i, guid] of accepted.entries()) assert.equal((await send(i, guid)).status_code, 200, `webhook ${i} is there`);
  });

  test('a daemon that reaches only the standby says so, and waits', async () => {
    const standby = cluster.database.servers.find((server) => server !== cluster.database.primary);
    const node = await Outpost.prepare({ rig, wait: false, config: { store: cluster.database.url([standby]), node: 'astray' } });
    try {
      await node.spawn();
      await node.waitForLog({ ev: 'store_not_reached', why: /read-only transaction \(25006\); this server is a standby: promote it, or add the primary/ });
    } finally {
      await node.kill();
      await node.close();
      rig.setTarget(`${cluster.url}/github/webhook`);
    }
  });

  test('a primary that stands still is given up for the standby that takes over', async () => {
    const [node] = cluster.nodes;
    const accepted = [];
    const accept = async (i) => {
      const guid = randomUUID();
      await until(async () => (await send(i, guid)).status_code < 300, { interval: 50, what: `webhook ${i} is accepted` });
      accepted.push(guid);
    };
    for (let i = 0; i < 5; i++) await accept(`before ${i}`);
    const after = node.log.length;
    await cluster.database.failOverFromFrozen(async () => {
      await until(async () => /the database does not answer/.test((await node.get('/readyz')).json?.error), { what: '/readyz says that the database does not answer' });
      await node.waitForLog({ error: /the server has sent nothing for 15 s/ }, { after });
      await cluster.ready();
      for (let i = 0; i < 5; i++) await accept(`after ${i}`);
    });
    await cluster.ready();
    for (const guid of accepted) assert.equal((await send('again', guid)).status_code, 200, `webhook ${guid} is there`);
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
    const waiting = send('waits', guid).catch(() => {});
    await node.waitForLog({ ev: 'store_commit_failed', error: /the server has sent nothing for 15 s/ }, { after });
    // one for each writer: those that look the commit up do not wait there, too
    assert.ok(Number(await primary.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) <= 2);
    await waitFor('*');
    await node.waitForLog({ ev: 'store_commit_unknown', outcome: 'it happened' }, { after });
    await waiting;
    await cluster.ready();
    await until(async () => (await send('waits', guid)).status_code < 300, { interval: 50, what: 'the webhook is there' });
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
