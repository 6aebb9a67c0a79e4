// The configuration of nginx in docs/cluster.md, with servers in place of daemons: another daemon gets a request that one refuses with 503,
// and a daemon that refuses one client's pages still gets everybody else's requests.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { startBalancer } from './lib/balancer.mjs';
import { removeFolder } from './lib/folder.mjs';
import { freePort } from './lib/outpost.mjs';

describe('nginx in front of the daemons', () => {
  const daemons = [];
  let folder, balancer, url;

  before(async () => {
    for (const name of ['a', 'b', 'c']) {
      const daemon = { name, refuses: () => false, bodies: [] };
      daemon.server = http.createServer(async (request, response) => {
        const body = await text(request);
        daemon.bodies.push(body);
        if (daemon.refuses(request)) response.writeHead(503, { 'retry-after': '1' }).end('{"error":"busy"}');
        else response.end(name);
      }).listen(0, '127.0.0.1');
      await once(daemon.server, 'listening');
      daemons.push(daemon);
    }
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'outpost-balancer-'));
    const port = await freePort();
    balancer = await startBalancer({ folder, port, ports: daemons.map(({ server }) => server.address().port) });
    url = `http://127.0.0.1:${port}`;
  });
  after(async () => {
    await balancer?.stop();
    for (const { server } of daemons) server.closeAllConnections();
    for (const { server } of daemons) server.close();
    await removeFolder(folder);
  });
  const webhook = async () => (await fetch(`${url}/github/webhook`, { method: 'POST', body: 'a push' })).status;

  test('pages that each daemon refuses do not cut off webhooks', async () => {
    for (const daemon of daemons) daemon.refuses = ({ url: target }) => target.startsWith('/pulls/');
    for (let i = 0; i < 12; i++) {
      const page = await fetch(`${url}/pulls/${i}`);
      assert.deepEqual([page.status, page.headers.get('retry-after'), await page.text()], [503, '1', '{"error":"busy"}']);
      assert.equal(await webhook(), 200);
    }
  });

  test('another daemon gets a webhook that one refuses, with its body', async () => {
    const [first, ...others] = daemons;
    first.refuses = () => true;
    for (const daemon of others) daemon.refuses = () => false;
    first.bodies = [];
    for (let i = 0; i < 12; i++) assert.equal(await webhook(), 200);
    assert.ok(first.bodies.length > 1, 'the daemon that refuses is asked again');
    for (const { bodies } of daemons) assert.ok(bodies.every((body) => ['', 'a push'].includes(body)) && bodies.includes('a push'));
  });

  test('a daemon that has ended costs no request', async () => {
    for (const daemon of daemons) daemon.refuses = () => false;
    daemons[0].server.closeAllConnections();
    await new Promise((resolve) => daemons[0].server.close(resolve));
    for (let i = 0; i < 12; i++) {
      assert.equal(await webhook(), 200);
      assert.equal((await fetch(`${url}/`)).status, 200);
    }
  });
});
