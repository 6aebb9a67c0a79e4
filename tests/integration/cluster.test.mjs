// Three daemons share a database of PostgreSQL: each runs its part of the work, each answers every request, and a killed one is replaced.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startWebhookVendor } from '../github/vendors.mjs';
import { startPostgres } from '../postgres.mjs';
import { follow } from './lib/events.mjs';
import { Outpost, freePort, notBuilt, until } from './lib/outpost.mjs';
import { deliver } from './lib/webhooks.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'a secret between Outpost and the lab';
// seat_target() of these names
const HOME = { planner: 'north', scheduler: 'north', evidence: 'north', deadlines: 'east', reconciler: 'east', publisher: 'east', retention: 'south', registry: 'south' };
const SEATS = Object.keys(HOME);

describe('three daemons on one database', { skip: notBuilt }, () => {
  let server, rig, issuer, lab, balancer;
  const nodes = {};
  let number = 100;

  const living = () => Object.values(nodes).filter((node) => !node.isKilled);
  const status = (node) => node.api('status');
  // The name of the node that has each seat, as this node's status says; undefined while some seat has none.
  const seatsOf = async (node) => {
    const { nodes: list } = await status(node);
    const of = Object.fromEntries(list.flatMap(({ name, seats }) => seats.map((seat) => [seat, name])));
    assert.equal(list.flatMap(({ seats }) => seats).length, Object.keys(of).length, 'a seat has two nodes');
    return Object.keys(of).length === SEATS.length ? of : undefined;
  };
  // All living nodes say so: each seat is at home, or, if the node there does not live, with another living node.
  const settled = () => until(async () => {
    const views = await Promise.all(living().map(seatsOf));
    const names = living().map(({ name }) => name);
    return views.every((view) => view && SEATS.every((seat) => (names.includes(HOME[seat]) ? view[seat] === HOME[seat] : names.includes(view[seat]))));
  }, { timeout: 60_000, interval: 200, what: 'each seat is where it belongs' });
  const ourComments = (pull) => rig.comments(UPSTREAM, pull).filter(({ author }) => author === rig.bot);

  // A pull request whose webhook this node gets: the lab tests it once, and its results are in one comment.
  async function goRound(node) {
    const pull = rig.openPull(UPSTREAM, { number: ++number });

    rig.setTarget(`${node.url}/github/webhook`);
    await deliver(rig, 'pull_request', pullRequestOf('opened', pull));
    await until(() => ourComments(pull.number).some(({ body }) => body.includes('Lab Chip') && /passed|✅/.test(body)), { timeout: 90_000, what: `the comment of #${pull.number}` });
    assert.equal(lab.events.filter(({ body }) => body?.payload?.number === pull.number).length, 1);
    for (const other of living()) await other.waitForApi(`pulls/${pull.number}`, ({ accelerators }) => accelerators[0]?.dispatches[0]?.state === 'done');
    return pull.number;
  }

  async function start(name, port) {
    const node = await Outpost.prepare({
      rig, issuer, port, env: {},
      accelerators: [{ name: 'lab-chip', title: 'Lab Chip', level: 'L2', vendor: 'A vendor', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'lab', webhook: { url: lab.url, secret: 'hook' } }] }],
      secrets: { 'lab-chip': { hook: SECRET } },
      // reports go to any node, whoever sent the dispatch
      config: { store: server.url.replace('/postgres?', '/cluster?'), node: name, public_url: `http://127.0.0.1:${balancer.address().port}` },
    });
    node.name = name;
    nodes[name] = node;
    await node.spawn();
  }

  before(async () => {
    server = startPostgres();
    server.mustRun('psql', ['-q', '-h', server.folder, '-U', 'outpost', 'postgres', '-c', "CREATE DATABASE cluster TEMPLATE template0 LOCALE 'C'"]);
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    lab = await startWebhookVendor({ secret: SECRET, script: [{ workflow: 'lab', job: 'suite', tests: [{ suite: 'model', name: 'llama3', status: 'PASS', duration: 1 }] }] });
    // One connection after the other goes to the next node that lives.
    let turn = 0;
    balancer = net.createServer((client) => {
      const node = living()[turn++ % living().length];
      const upstream = net.connect(node.port, '127.0.0.1');
      for (const [from, to] of [[client, upstream], [upstream, client]]) from.on('error', () => to.destroy()).pipe(to);
    }).listen(0, '127.0.0.1');
    await once(balancer, 'listening');
    for (const name of ['north', 'east', 'south']) await start(name, await freePort());
  });

  after(async () => {
    await lab?.stop();
    for (const node of Object.values(nodes)) await node.close();
    balancer?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
    server?.stop();
  });

  test('the seats spread, and each node shows the same', async () => {
    await settled();
    await until(async () => {
      const { nodes: list } = await status(nodes.east);
      assert.deepEqual(list.map(({ name }) => name), ['east', 'north', 'south']);
      return list.every(({ version, seen_at }) => version && Date.now() - Date.parse(seen_at) < 15_000);
    }, { what: 'each daemon was seen a short time ago' });
    await until(async () => /^node +version +seen +seats\n(?:.*\n)*north +\S+ +\d+ s ago +\S/m.test((await nodes.south.ctl('status')).stdout), { what: 'outpostctl lists the daemons' });
  });

  test('a webhook may go to any node', async () => {
    for (const node of living()) await goRound(node);
  });

  test('a page that is open on one node hears of a webhook that another one took', async () => {
    const pull = await goRound(nodes.north);
    const pages = living().map((node) => follow(node, [`pulls/${pull}`]));

    await Promise.all(pages.map((page) => page.next(1))); // each stream begins with one
    rig.setTarget(`${nodes.south.url}/github/webhook`);
    await deliver(rig, 'pull_request', pullRequestOf('closed', rig.updatePull(UPSTREAM, pull, { state: 'closed' })));
    await Promise.all(pages.map((page) => page.next(1)));
    for (const page of pages) page.close();
  });

  test('a token that one node revokes is refused by all', async () => {
    const token = (await nodes.north.ctl('runner', 'add', 'lab-1', '--accelerator', 'lab-chip')).stdout.match(/ort_\S+/)?.[0];
    const answer = async (node) => (await node.get('/api/v1/runner/status', { headers: { authorization: `Bearer ${token}` } })).status;

    assert.ok(token);
    for (const node of living()) await until(async () => await answer(node) === 200, { what: `${node.name} knows the token` });
    await nodes.east.ctl('runner', 'revoke', 'lab-1', '--accelerator', 'lab-chip');
    for (const node of living()) await until(async () => await answer(node) === 401, { what: `${node.name} refuses the token` });
  });

  test('the others take over from a killed node', async () => {
    for (const node of [nodes.north, nodes.east]) {
      node.isKilled = true;
      await node.kill();
    }
    await settled();
    const pulls = [];
    for (const node of living()) pulls.push(await goRound(node));
    for (const pull of pulls) assert.equal(ourComments(pull).length, 1);
  });

  test('seats move at once from a node that stops, and it gets its own again', async () => {
    for (const node of Object.values(nodes).filter(({ isKilled }) => isKilled)) {
      await node.spawn();
      node.isKilled = false;
    }
    await settled();
    nodes.east.isKilled = true;
    await nodes.east.stop();
    await settled();
    await nodes.east.spawn();
    nodes.east.isKilled = false;
    await settled();
  });
});
