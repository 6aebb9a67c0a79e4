// One address requests as much as it can, and the others still get their share (findings 9 and 14).
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';

const UPSTREAM = 'pytorch/pytorch';
const GREEDY = '127.0.0.66';
const VISITOR = '127.0.0.5';
const TESTS = 1500;
const ROUNDS = 20;
const PATIENCE = 600_000; // generous for a busy machine; the tests judge no times

// Sends a GET on a new connection. head: {status, headers} once the answer begins; the test reads no further.
function ask(outpost, localAddress, target) {
  const socket = net.connect({ port: outpost.port, host: '127.0.0.1', localAddress });
  let text = '';
  const head = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no answer to ${target}`)), PATIENCE);
    socket.on('error', () => {}).on('close', () => { clearTimeout(late); resolve(undefined); }).on('data', (data) => {
      text += data.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      socket.pause();
      clearTimeout(late);
      resolve({ status: Number(text.slice(9, 12)), retry: /\r\nRetry-After: (\d+)\r\n/.exec(text)?.[1], text });
    });
  });
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return { head, close: () => socket.destroy() };
}

const visit = (outpost, target) => new Promise((resolve, reject) => {
  const socket = net.connect({ port: outpost.port, host: '127.0.0.1', localAddress: VISITOR });
  const parts = [];
  const late = setTimeout(() => socket.destroy(new Error(`no answer to ${target}`)), PATIENCE);
  socket.on('data', (part) => parts.push(part)).on('error', reject).on('close', () => {
    clearTimeout(late);
    const text = Buffer.concat(parts).toString();
    resolve({ status: Number(text.slice(9, 12)), body: text.slice(text.indexOf('\r\n\r\n') + 4) });
  });
  socket.write(`GET ${target} HTTP/1.0\r\n\r\n`);
});

describe('one address cannot exhaust shared resources', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let job;
  let open = [];

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig,
      config: { comment: { enabled: false }, pull: { lease: '1h' } }, // no heartbeat renews the lease, and the tests may take long
      accelerators: [{ name: 'farm', title: 'Farm', level: 'L2', trust: 'anyone', runners: [{ name: 'farm', pull: { labels: ['any'], max_parallel: 2 } }] }],
    });
    const machine = await Puller.add(outpost, 'machine', 'farm', { labels: ['any'] });
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 5 })));
    const first = await Puller.ready(() => machine.claim({ wait: 30 })).then(({ json }) => json);
    const tests = Array.from({ length: TESTS }, (_, i) => ({ suite: 'model', name: `test_${i}`, status: 'FAIL', message: `${i} `.padEnd(1000, 'x') }));
    const { status, text } = await machine.finish(first, { tests });
    assert.equal(status, 200, text);
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number: 6 })));
    job = (await machine.take({ wait: 30 })).job_id; // this job keeps running, so that its log can be followed
  });

  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  const askMany = (count, target) => { open = Array.from({ length: count }, (_, i) => ask(outpost, GREEDY, target(i))); };
  const closeAll = async () => {
    for (const one of open) one.close();
    await Promise.all(open.map(({ head }) => head));
    open = [];
  };

  // Each refused request is over its share, or over the share of connections.
  const assertRefused = (answers, why) => {
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.every(({ status, retry }) => [429, 503].includes(status) && Number(retry) >= 1));
    for (const { text } of refused.filter(({ status }) => status === 429)) assert.match(text, why);
  };

  test('finding 9: a thousand clients of one page that do not read do not block a visitor', async () => {
    askMany(1000, () => '/api/v1/pulls/5');
    const { status, body } = await visit(outpost, '/api/v1/pulls/5');
    assert.equal(status, 200);
    assert.equal(JSON.parse(body).verdicts.length, TESTS);
    await closeAll();
  });

  test('finding 9: some of a thousand different pages are refused at once, and a visitor is served before most others', async () => {
    let later, refused;
    // On a busy machine this process may pause after its first requests, so that the daemon has answered them before the others arrive.
    for (let round = 0; round < ROUNDS && !(later > 50 && refused.length > 0); round++) {
      askMany(1000, (i) => `/api/v1/pulls/5?limit=500&x=${round}-${i}`);
      let answered = 0;
      for (const { head } of open) head.then(() => { answered++; });
      const { status, body } = await visit(outpost, '/pulls/5');
      later = open.length - answered;
      assert.equal(status, 200);
      assert.match(body, /<title>#5 · Outpost<\/title>/);
      const answers = (await Promise.all(open.map(({ head }) => head))).filter(Boolean);
      refused = answers.filter((one) => one.status === 503);
      assert.ok(refused.every(({ retry }) => Number(retry) >= 1));
      await closeAll();
    }
    assert.ok(later > 50, `the visitor was served before only ${later} earlier requests`);
    assert.ok(refused.length > 0, 'some requests are refused');
  });

  test('finding 14: one address cannot follow so many logs that another address cannot follow one', async () => {
    askMany(300, () => `/api/v1/jobs/${job}/log?follow=1`);
    const answers = (await Promise.all(open.map(({ head }) => head))).filter(Boolean);
    const follower = ask(outpost, VISITOR, `/api/v1/jobs/${job}/log?follow=1`);
    assert.equal((await follower.head).status, 200);
    assert.ok(answers.some(({ status }) => status === 200), 'the address gets its share');
    assertRefused(answers, /this address has reached its limit of open logs/);
    follower.close();
    await closeAll();
  });

  test('finding 14: one address cannot open so many event streams that another address gets none', async () => {
    askMany(1100, () => '/api/v1/events?watch=dashboard');
    const answers = (await Promise.all(open.map(({ head }) => head))).filter(Boolean);
    const stream = ask(outpost, VISITOR, '/api/v1/events?watch=dashboard');
    assert.equal((await stream.head).status, 200);
    assert.ok(answers.some(({ status }) => status === 200), 'the address gets its share');
    assertRefused(answers, /this address has reached its limit of open event streams/);
    stream.close();
    await closeAll();
  });
});
