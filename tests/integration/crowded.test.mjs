// Findings 2 and 3: even if one address holds as many connections and bodies as it can, the signed webhooks and reports of
// others are answered.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { fakeSha, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { workflowOf } from '../github/vendors.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const ATTACKER = '127.0.0.66';
const GITHUB = '127.0.0.2';
const VENDOR = '127.0.0.3';
const TABLE = 4096; // the connections that the service holds at most
const REOPENED = 12_000; // an attacker opens at most this many more
const MIB = 1024 * 1024;

describe('a crowd from one address', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let token;
  let sockets = new Set();
  let n_opened = 0;

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig, config: { comment: { enabled: false } }, accelerators: [{ name: 'npu', title: 'NPU', level: 'L2', triggers: { push: { branches: ['main'] } }, runners: [{ name: 'ci', pull: { labels: ['any'] } }] }],
    });
    token = (await outpost.ctl('token', 'issue', 'npu')).stdout.trim();
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    sockets = new Set();
    n_opened = 0;
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  // Resolves when the connection has sent its bytes or was closed. A closed connection is opened again, up to `bound` in total.
  async function attack(send, bound = TABLE + REOPENED) {
    if (n_opened++ >= bound) return;
    const socket = net.connect({ port: outpost.port, host: '127.0.0.1', localAddress: ATTACKER });
    const mine = sockets;
    mine.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      if (mine.delete(socket) && mine === sockets) attack(send, bound);
    });
    socket.resume();
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
    await send(socket);
  }
  async function crowd(n, send) {
    for (let i = 0; i < n; i += 256) await Promise.all(Array.from({ length: Math.min(256, n - i) }, () => attack(send)));
  }

  // Sends one request on a new connection.
  async function ask(localAddress, path, headers, body) {
    const request = http.request({ host: '127.0.0.1', port: outpost.port, localAddress, method: 'POST', path, headers, agent: false });
    request.end(body);
    const [response] = await once(request, 'response');
    let text = '';
    for await (const part of response.setEncoding('utf8')) text += part;
    return { status: response.statusCode, text };
  }
  async function webhook() {
    const body = JSON.stringify(push({ after: fakeSha(randomUUID()) }));
    return ask(GITHUB, '/github/webhook', { 'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': randomUUID(), 'x-hub-signature-256': await sign(rig.secret, body) }, body);
  }
  async function report() {
    const sha = fakeSha(randomUUID());
    const body = JSON.stringify({ event_type: 'nightly', delivery_id: sha, workflow: workflowOf({ workflow: 'nightly', job: 'test', run_id: sha }, 'completed') });
    return ask(VENDOR, '/github/callback', { 'content-type': 'application/json', authorization: `Bearer ${token}` }, body);
  }
  async function assertOthersAreServed() {
    for (let i = 0; i < 20; i++) {
      const { status, text } = await webhook();
      assert.equal(status, 202, text);
      const answer = await report();
      assert.equal(answer.status, 200, answer.text);
    }
  }
  const metric = async (name) => Number(new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec((await outpost.get('/metrics')).text)[1]);

  test('finding 2: silent connections that fill the table and reconnect do not block others', async () => {
    await crowd(TABLE, () => {});
    await assertOthersAreServed();
    assert.ok(await metric('outpost_http_evicted_connections_total{reason="client_share"}') > 0);
    assert.ok(await metric('outpost_http_connections') < TABLE / 2);
  });

  test('finding 2: unfinished request heads on every connection do not block others', async () => {
    await crowd(TABLE, (socket) => socket.write('POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-Half: '));
    await assertOthersAreServed();
  });

  test('finding 3: large and many small unfinished bodies with a forged signature do not block others', async () => {
    const head = (length) => `POST /github/webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: ${randomUUID()}\r\nX-Hub-Signature-256: sha256=${'0'.repeat(64)}\r\nContent-Length: ${length}\r\n\r\n`;
    // The service allocates the whole body's memory after 16 MiB. This is more, even without the bytes in the sockets' buffers.
    const large = Buffer.alloc(22 * MIB, '0');
    await Promise.all(Array.from({ length: 6 }, () => attack((socket) => {
      socket.write(head(25 * MIB));
      return new Promise((resolve) => socket.write(large, resolve));
    }, 12)));
    n_opened = 0;
    await crowd(900, (socket) => socket.write(`${head(20_000)}{`));
    // Wait until the service has processed the attacker's requests.
    await until(async () => await metric('outpost_http_requests_total') > 900);
    await assertOthersAreServed();
  });

  // A refusal that follows from the headers is sent before the body, so that an attacker cannot make the service hold one.
  const good = { event: 'x-github-event: push', guid: 'x-github-delivery: 1', signature: `x-hub-signature-256: sha256=${'0'.repeat(64)}` };
  for (const [what, path, headers, expected] of [
    ['no signature', '/github/webhook', [good.event, good.guid], 400],
    ['a malformed signature', '/github/webhook', [good.event, good.guid, 'x-hub-signature-256: sha256=0'], 400],
    ['no event', '/github/webhook', [good.signature, good.guid], 400],
    ['no GUID', '/github/webhook', [good.signature, good.event], 400],
    ['no token for a callback', '/github/callback', [], 401],
    ['a malformed callback token', '/github/callback', ['authorization: Bearer x'], 401],
    ['an unknown API token for a callback', '/github/callback', [`authorization: Bearer oat_${'A'.repeat(43)}`], 401],
    ['no token for a job', '/api/v1/dispatches/abc/jobs', [], 401],
    ['a wrong token for a job', '/api/v1/dispatches/abc/jobs', ['authorization: Bearer x'], 401],
    ['no token for a claim', '/api/v1/runner/claim', [], 401],
    ['a wrong token for a claim', '/api/v1/runner/claim', [`authorization: Bearer ort_${'A'.repeat(43)}`], 401],
    ['no token for a heartbeat', '/api/v1/runner/leases/abc/renew', [], 401],
    ['no token for a return', '/api/v1/runner/leases/abc/return', [], 401],
    ['no token for a report', '/api/v1/jobs/1/report', [], 401],
    ['a wrong token for a log', '/api/v1/jobs/1/log', ['authorization: Bearer x'], 401],
  ]) {
    test(`finding 3: ${what} is answered before the body is read`, async () => {
      const method = /jobs\/1/.test(path) ? 'PUT' : 'POST';
      const socket = net.connect({ port: outpost.port, host: '127.0.0.1', localAddress: GITHUB });
      socket.write([`${method} ${path} HTTP/1.1`, 'Host: x', ...headers, 'Content-Length: 4000', '', ''].join('\r\n'));
      const [first] = await once(socket, 'data');
      assert.equal(Number(first.toString().slice(9, 12)), expected, first.toString());
      // The client may still send the body, so that a client that writes before it reads sees the answer.
      socket.end('0'.repeat(4000));
      socket.resume();
      await once(socket, 'close');
    });
  }
});
