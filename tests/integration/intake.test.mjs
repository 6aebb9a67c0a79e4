// POST /github/webhook: each answer in the contract's table, real payloads, and bytes of hostile or broken clients.
import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { sign } from '@octokit/webhooks-methods';
import { examples, fakeSha, ping, pullRequest, push } from '../github/payloads.mjs';
import { WAIT_MS } from '../github/patience.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, notBuilt } from './lib/outpost.mjs';

const PATH = '/github/webhook';
const MAX_BODY = 25 * 1024 * 1024;
// Headers of a valid form, so that the body is read.
const FORM = `X-GitHub-Event: push\r\nX-GitHub-Delivery: 1\r\nX-Hub-Signature-256: sha256=${'0'.repeat(64)}\r\n`;

const PULL_ACTIONS = ['opened', 'reopened', 'synchronize', 'ready_for_review', 'labeled', 'unlabeled', 'converted_to_draft', 'closed'];

// The statuses that the contract allows for one of Octokit's payloads: 'accepted', 'ignored', 'pong', or either of the first
// two.
function expectation(event, payload) {
  if (event === 'ping') return ['pong'];
  if (event === 'installation' || event === 'installation_repositories') return ['accepted'];
  if (event.startsWith('installation')) return ['accepted', 'ignored'];
  if (payload.repository?.full_name !== 'pytorch/pytorch') return ['ignored'];
  switch (event) {
    case 'pull_request':
      return PULL_ACTIONS.includes(payload.action) || (payload.action === 'edited' && payload.changes.base) ? ['accepted'] : ['ignored'];
    case 'push':
      return payload.ref === 'refs/heads/main' && !payload.deleted ? ['accepted'] : ['accepted', 'ignored'];
    case 'check_run':
    case 'check_suite':
      return payload.action === 'rerequested' ? ['accepted'] : ['ignored'];
    case 'issue_comment':
      if (payload.action !== 'created') return ['ignored'];
      return payload.issue.pull_request ? ['accepted'] : ['accepted', 'ignored'];
    default:
      return ['ignored'];
  }
}

describe('POST /github/webhook', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let patient; // a separate daemon for the slow clients, so that they do not delay other tests
  let slow;

  before(async () => {
    rig = await startRig();
    patient = await Outpost.start({ rig });
    outpost = await Outpost.start({ rig });
    slow = { head: dawdle('POST /github/webhook HTTP/1.1\r\nHost: x\r\n'), body: dawdle(`POST ${PATH} HTTP/1.1\r\nHost: x\r\n${FORM}Content-Length: 100\r\n\r\n{`) };
  });
  after(async () => {
    await outpost?.close();
    await patient?.close();
    await rig?.close();
  });

  // Sends a beginning and then nothing; resolves with the answer once the server closes the connection.
  function dawdle(beginning) {
    return new Promise((resolve) => {
      const socket = net.connect(patient.port, '127.0.0.1', () => socket.write(beginning));
      let text = '';
      const timer = setTimeout(() => socket.destroy(new Error('the server never closed the connection')), WAIT_MS);
      socket.on('data', (data) => { text += data; });
      socket.on('error', () => {});
      socket.on('close', () => {
        clearTimeout(timer);
        resolve(text);
      });
    });
  }

  const json = (answer) => JSON.parse(answer.response.body);
  const accepted = async (answer) => {
    assert.equal(answer.status_code, 202, answer.response?.body);
    assert.deepEqual(json(answer), { status: 'accepted', delivery: answer.guid });
    assert.match(answer.response.headers['content-type'], /^application\/json/);
  };
  const signed = (bytes, headers = {}) => ({
    'content-type': 'application/json', 'x-github-event': 'push', 'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${createHmac('sha256', rig.secret).update(bytes).digest('hex')}`, ...headers,
  });
  const post = async (body, headers, options) => outpost.request('POST', PATH, { body, headers: signed(body, headers), ...options });
  const refused = (answer, status, what) => {
    assert.equal(answer.status, status, `${what ?? ''} ${answer.text}`);
    assert.equal(typeof answer.json?.error, 'string', answer.text);
  };

  test('202 for an accepted delivery, and 200 for a duplicate', async () => {
    const payload = pullRequest('opened', { number: 1 });
    const first = await rig.deliver('pull_request', payload);
    await accepted(first);
    for (let i = 0; i < 2; i++) {
      const again = await rig.deliver('pull_request', payload, { guid: first.guid });
      assert.equal(again.status_code, 200);
      assert.deepEqual(json(again), { status: 'duplicate', delivery: first.guid });
    }
  });

  test('of many simultaneous deliveries with one GUID, one is accepted', async () => {
    const guid = randomUUID();
    const payload = push({});
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.deliver('push', payload, { guid })));
    assert.deepEqual(answers.map((one) => one.status_code).sort(), [...Array(19).fill(200), 202]);
    for (const one of answers) assert.match(one.response.body, /accepted|duplicate/);
  });

  test('200 for a ping and for an ignored event', async () => {
    const pong = await rig.deliver('ping', ping());
    assert.deepEqual([pong.status_code, json(pong)], [200, { status: 'pong' }]);
    for (const [event, payload] of [
      ['star', { action: 'created', repository: { full_name: 'pytorch/pytorch' } }],
      ['pull_request', pullRequest('assigned', { number: 2 })],
      ['pull_request', pullRequest('edited', { number: 2, changes: { title: { from: 'x' } } })],
      ['pull_request', pullRequest('opened', { number: 2, repository: 'someone/else' })],
      ['an_event_of_tomorrow', { action: 'x' }],
    ]) {
      const answer = await rig.deliver(event, payload);
      assert.equal(answer.status_code, 200, event);
      assert.equal(json(answer).status, 'ignored');
      assert.equal(typeof json(answer).reason, 'string');
    }
  });

  test('every example of Octokit gets its documented answer', async () => {
    const all = examples();
    assert.equal(all.length, 329);
    for (const { event, payload } of all) {
      const answer = await rig.deliver(event, payload);
      const { status } = json(answer);
      const what = `${event} ${payload.action ?? payload.ref ?? ''} of ${payload.repository?.full_name}`;
      assert.ok(expectation(event, payload).includes(status), `${what}: ${answer.status_code} ${answer.response.body}`);
      assert.equal(answer.status_code, status === 'accepted' ? 202 : 200, what);
    }
  });

  test('400 if the signature, event or GUID is missing or malformed', async () => {
    const body = JSON.stringify(push({}));
    const good = signed(body);
    for (const [name, value] of [
      ['x-hub-signature-256', undefined], ['x-hub-signature-256', ''], ['x-hub-signature-256', 'sha256='], ['x-hub-signature-256', 'sha1=abcdef'],
      ['x-hub-signature-256', good['x-hub-signature-256'].slice(0, -1)], ['x-hub-signature-256', `${good['x-hub-signature-256']}0`],
      ['x-hub-signature-256', `sha256=${'g'.repeat(64)}`],
      ['x-github-event', undefined], ['x-github-delivery', undefined], ['x-github-delivery', ''],
      ['x-github-delivery', 'a'.repeat(65)], ['x-github-delivery', 'a_b'], ['x-github-delivery', "x'; drop table delivery; --"],
    ]) {
      const headers = { ...good, [name]: value };
      if (value === undefined) delete headers[name];
      refused(await outpost.request('POST', PATH, { body, headers }), 400, `${name}: ${value}`);
    }
    await accepted(await rig.deliver('push', push({}), { guid: 'A-1' }));
    await accepted(await rig.deliver('push', push({}), { guid: 'z'.repeat(64) }));
  });

  test('400 if the body is not JSON', async () => {
    const real = JSON.stringify(push({}));
    for (const body of [
      '', '{', real.slice(0, -1), `${real}x`, 'payload=%7B%7D', '[1,]', '{"a":1,}', '"', 'nul', '{"a":"\u0000"}',
      '['.repeat(100_000), '{"a":'.repeat(100_000),
    ]) refused(await post(body), 400, JSON.stringify(body.slice(0, 30)));
    for (const bytes of [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), Buffer.from('{"a":"\xc0\xaf"}', 'latin1')])
      refused(await post(bytes), 400, 'not UTF-8');
  });

  test('fields of a wrong type get an answer and do no harm', async () => {
    for (const change of [
      { number: 'seven' }, { number: -1 }, { number: 1e300 }, { pull_request: null }, { pull_request: [] }, { pull_request: { head: 7 } },
      { pull_request: { head: { sha: 'not a sha' }, base: { sha: 7 } } }, { repository: 'pytorch/pytorch' }, { repository: { full_name: 7 } },
      { action: ['opened'] }, { action: null }, { sender: 1 },
    ]) {
      const body = JSON.stringify({ ...pullRequest('opened', { number: 3 }), ...change });
      const answer = await post(body, { 'x-github-event': 'pull_request' });
      assert.ok([200, 202, 400].includes(answer.status), `${JSON.stringify(change)}: ${answer.status}`);
      assert.equal(typeof (answer.json.status ?? answer.json.error), 'string');
    }
    await outpost.get('/healthz').then(({ status }) => assert.equal(status, 200));
  });

  test('401 for a wrong signature, before the body is parsed', async () => {
    const wrong = await rig.deliver('push', push({}), { secret: 'another secret' });
    assert.equal(wrong.status_code, 401);
    const changed = await rig.deliver('push', push({}), { signature: await sign(rig.secret, 'something else') });
    assert.equal(changed.status_code, 401);
    const broken = await rig.deliver('push', undefined, { body: '{"a":', secret: 'another secret' });
    assert.equal(broken.status_code, 401);
    const after = await rig.deliver('push', push({}), { guid: wrong.guid });
    await accepted(after); // the refused delivery did not use up its GUID
  });

  test('404 for an unknown path, and 405 for another method', async () => {
    assert.equal((await outpost.get('/no/such/page')).status, 404);
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const answer = await outpost.request(method, PATH);
      assert.equal(answer.status, 405, method);
      assert.match(answer.headers.allow, /POST/);
    }
  });

  test('413 over 25 MiB before the body arrives, and exactly 25 MiB is accepted', async () => {
    const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: a\r\nContent-Length: ${MAX_BODY + 1}\r\n\r\n`;
    const { answers } = await outpost.raw(head);
    assert.deepEqual(answers, [413]);
    const payload = push({});
    payload.padding = '';
    payload.padding = 'x'.repeat(MAX_BODY - JSON.stringify(payload).length);
    const body = JSON.stringify(payload);
    assert.equal(Buffer.byteLength(body), MAX_BODY);
    assert.equal((await post(body, {}, { timeout: 30_000 })).status, 202);
  });

  test('413 for a chunked body that grows over 25 MiB', async () => {
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const { answers } = await outpost.raw(`POST ${PATH} HTTP/1.1\r\nHost: x\r\n${FORM}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(402)}`);
    assert.deepEqual(answers, [413]);
  });

  test('431 for a head that is too long', async () => {
    const long = await outpost.raw(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(200_000)}\r\n\r\n`);
    assert.deepEqual(long.answers, [431]);
    const many = await outpost.raw(`GET / HTTP/1.1\r\nHost: x\r\n${'X-A: b\r\n'.repeat(20_000)}\r\n`);
    assert.deepEqual(many.answers, [431]);
  });

  test('505 for versions that are not HTTP/1.0 or 1.1', async () => {
    for (const version of ['HTTP/1.2', 'HTTP/2.0', 'HTTP/3.0', 'HTTP/0.9']) {
      const { answers } = await outpost.raw(`GET /healthz ${version}\r\nHost: x\r\n\r\n`);
      assert.deepEqual(answers, [505], version);
    }
  });

  describe('framing that RFC 9112 allows a server to refuse is refused and closes the connection', () => {
    const body = '{}';
    const smuggled = 'GET /healthz HTTP/1.1\r\nHost: smuggled\r\n\r\n';
    const head = (...lines) => `POST ${PATH} HTTP/1.1\r\nHost: x\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
    for (const [what, bytes] of Object.entries({
      'two Content-Lengths that differ': head('Content-Length: 2', 'Content-Length: 44') + body,
      'two Content-Lengths that agree': head('Content-Length: 2', 'Content-Length: 2') + body,
      'a list of Content-Lengths': head('Content-Length: 2, 2') + body,
      'a Content-Length with a plus': head('Content-Length: +2') + body,
      'a Content-Length with a minus': head('Content-Length: -2') + body,
      'a hexadecimal Content-Length': head('Content-Length: 0x2') + body,
      'an empty Content-Length': head('Content-Length:') + body,
      'a Content-Length beyond 64 bits': head('Content-Length: 18446744073709551618') + body,
      'a Content-Length with a blank in it': head('Content-Length: 2 2') + body,
      'Transfer-Encoding with Content-Length': head('Content-Length: 5', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      'Content-Length with Transfer-Encoding': head('Transfer-Encoding: chunked', 'Content-Length: 5') + '0\r\n\r\n',
      'an unknown Transfer-Encoding': head('Transfer-Encoding: xchunked') + '0\r\n\r\n',
      'chunked that is not last': head('Transfer-Encoding: chunked, gzip') + '0\r\n\r\n',
      'chunked twice': head('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + '0\r\n\r\n',
      'Transfer-Encoding with a blank before the colon': head('Transfer-Encoding : chunked') + '0\r\n\r\n',
      'Transfer-Encoding in HTTP/1.0': head('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0') + '0\r\n\r\n',
      'a folded line': head('X-A: b', ' folded: c', 'Content-Length: 0'),
      'a folded line with a tab': head('X-A: b', '\tc', 'Content-Length: 0'),
      'a blank at the first header': `POST ${PATH} HTTP/1.1\r\n Host: x\r\nContent-Length: 0\r\n\r\n`,
      'a bare LF after a header': `POST ${PATH} HTTP/1.1\r\nHost: x\nContent-Length: 0\r\n\r\n`,
      'a bare LF after the request line': `POST ${PATH} HTTP/1.1\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      'a head that ends in bare LFs': `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\n\n`,
      'a bare CR in a value': head('X-A: b\rX-B: c', 'Content-Length: 0'),
      'NUL in a value': head('X-A: b\0c', 'Content-Length: 0'),
      'NUL in a name': head('X\0A: b', 'Content-Length: 0'),
      'a control character in a value': head('X-A: b\x01c', 'Content-Length: 0'),
      'an empty header name': head(': b', 'Content-Length: 0'),
      'a header without a colon': head('X-A', 'Content-Length: 0'),
      'a blank in a header name': head('X A: b', 'Content-Length: 0'),
      'no Host': `POST ${PATH} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`,
      'two Hosts': head('Host: y', 'Content-Length: 0'),
      'a request line of one word': 'POST\r\n\r\n',
      'two blanks in the request line': `POST  ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      'a target with a control character': 'POST /github\x01webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n',
      'a version in small letters': `POST ${PATH} http/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      'a chunk size with a sign': head('Transfer-Encoding: chunked') + '+2\r\n{}\r\n0\r\n\r\n',
      'a chunk size that is no number': head('Transfer-Encoding: chunked') + 'zz\r\n{}\r\n0\r\n\r\n',
      'a chunk size beyond 64 bits': head('Transfer-Encoding: chunked') + '10000000000000002\r\n{}\r\n0\r\n\r\n',
      'a chunk with a bare LF': head('Transfer-Encoding: chunked') + '2\n{}\r\n0\r\n\r\n',
      'a chunk longer than it says': head('Transfer-Encoding: chunked') + '2\r\n{}x\r\n0\r\n\r\n',
      'a TLS greeting': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
      'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    })) {
      test(what, async () => {
        const { answers, text } = await outpost.raw(Buffer.from(bytes + smuggled, 'latin1'));
        const allowed = what === 'the preface of HTTP/2' ? [400, 505] : [400];
        assert.equal(answers.length, 1, `${answers.length} answers: ${text}`);
        assert.ok(allowed.includes(answers[0]), text);
      });
    }
  });

  describe('the features of HTTP/1.1 work', () => {
    test('a chunked body, with trailers and an extension', async () => {
      const body = JSON.stringify(push({}));
      const bytes = Buffer.from(body);
      const half = bytes.length >> 1;
      const headers = Object.entries(signed(body)).map(([name, value]) => `${name}: ${value}\r\n`).join('');
      const { answers, text } = await outpost.raw(Buffer.concat([
        Buffer.from(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n${headers}\r\n${half.toString(16)};a=b\r\n`), bytes.subarray(0, half),
        Buffer.from(`\r\n${(bytes.length - half).toString(16).toUpperCase()}\r\n`), bytes.subarray(half), Buffer.from('\r\n0\r\nX-Trailer: t\r\n\r\n'),
      ]));
      assert.deepEqual(answers, [202], text);
    });

    test('keep-alive and pipelining, answered in order', async () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      for (let i = 0; i < 3; i++) assert.equal((await outpost.get('/healthz', { agent })).status, 200);
      agent.destroy();
      const one = async (guid, more = {}) => {
        const body = JSON.stringify(push({}));
        const headers = Object.entries(signed(body, { 'x-github-delivery': guid, ...more })).map(([name, value]) => `${name}: ${value}\r\n`).join('');
        return `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
      };
      const guids = [randomUUID(), randomUUID()];
      const { text, answers } = await outpost.raw(Buffer.from(`${await one(guids[0])}GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n${await one(guids[1], { connection: 'close' })}`));
      assert.deepEqual(answers, [202, 404, 202]);
      assert.ok(text.indexOf(guids[0]) < text.indexOf(guids[1]));
    });

    test('Expect: 100-continue', async () => {
      const body = JSON.stringify(push({}));
      const headers = signed(body, { expect: '100-continue', 'content-length': Buffer.byteLength(body) });
      const status = await new Promise((resolve, reject) => {
        const request = http.request({ host: '127.0.0.1', port: outpost.port, method: 'POST', path: PATH, headers }, (response) => resolve(response.resume().statusCode));
        request.on('continue', () => request.end(body));
        request.on('error', reject);
        request.flushHeaders();
      });
      assert.equal(status, 202);
    });

    test('HTTP/1.0, which closes the connection', async () => {
      const { answers } = await outpost.raw('GET /healthz HTTP/1.0\r\n\r\n');
      assert.deepEqual(answers, [200]);
    });

    test('a client that disconnects during its body does no harm', async () => {
      await Promise.all(Array.from({ length: 20 }, () => new Promise((resolve) => {
        const socket = net.connect(outpost.port, '127.0.0.1', () => socket.write(`POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{`, () => socket.resetAndDestroy()));
        socket.on('close', resolve);
      })));
      await accepted(await rig.deliver('push', push({})));
    });
  });

  test('an accepted delivery survives kill -9', async () => {
    const sent = await Promise.all(Array.from({ length: 20 }, (_, i) => rig.deliver('push', push({ after: fakeSha(`kill ${i}`) }))));
    for (const one of sent) await accepted(one);
    await outpost.restart({ hard: true });
    for (const { guid } of sent) {
      const again = await rig.deliver('push', push({}), { guid });
      assert.deepEqual(json(again), { status: 'duplicate', delivery: guid });
    }
  });

  test('408 for a client that is too slow', async () => {
    const [head, body] = await Promise.all([slow.head, slow.body]);
    for (const [what, text] of Object.entries({ head, body })) assert.match(text, /^HTTP\/1\.1 408 /, what);
  });

  test('the log contains no secret and no signature', () => {
    const text = outpost.log.map(({ line }) => line).join('\n');
    assert.ok(!text.includes(rig.secret));
    assert.doesNotMatch(text, /sha256=[0-9a-f]{16}/);
    assert.doesNotMatch(text, /PRIVATE KEY|eyJ[A-Za-z0-9_-]{20}/);
  });
});
