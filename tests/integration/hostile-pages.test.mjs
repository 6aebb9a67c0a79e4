// Hostile input of vendors, authors and visitors to the pages: texts in every place that is shown, extreme numbers, odd
// parameters, headers and methods, and clients that do not read. Pages keep their structure, documents stay well-formed, and
// the service still answers others.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { fakeSha, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, workflowOf } from '../github/vendors.mjs';
import { HOSTILE } from './lib/hostile.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const LONG = { timeout: 60_000 };
const TITLE = `</title></script><script>alert(1)</script>"'&]]>--><b>`;
const LINE = `</script><!--<script>alert(1)//]]>"'&amp;{{data}}{{title}}`;

const NUMBERS = [1e308, -1e308, -0, 5e-324, 0.1];

const orLetter = (text) => (text.replace(/[\x00-\x20\x7f]/g, '') ? text : `x${text}`);
const platform = {
  integration: 'out-of-tree', device: 'chip', summary: LINE, extension: { package: 'torch-chip', import: 'torch_chip', autoload: true, url: "https://vendor.example/?a='&b=1" },
  versions: [LINE.slice(0, 50)],
  install: [{ build: 'stable', torch: '2.9.1', os: ['linux'], package: 'pip', platform: LINE.slice(0, 50), commands: [LINE, '${{ x }} `y` $(z)'], note: LINE },
    { build: 'nightly', os: 'linux', package: 'pip', commands: 'x\n', note: HOSTILE.filter((text) => /^[\x20-\x7e]+$/.test(text)).join('\n').slice(0, 3900) }],
  prepare: [{ title: TITLE, text: LINE, commands: [LINE], url: "https://vendor.example/#'" }],
  get_started: { text: LINE, code: `import torch_chip\n"""${LINE}"""` },
  help: [{ title: TITLE, url: 'https://vendor.example/' }],
};

// Throws if the XML is not well-formed, by an independent parser.
const wellFormed = (text) => execFileSync('python3', ['-c', 'import sys, xml.dom.minidom; xml.dom.minidom.parseString(sys.stdin.buffer.read())'], { input: text, stdio: ['pipe', 'ignore', 'inherit'] });
// The elements of a page as a parser sees them, without its texts.
const elements = (html) => [...html.replace(/(<script[^>]*>)[^]*?(<\/script)/g, '$1$2').matchAll(/<([a-z!/][^\s>]*)/gi)].map(([, name]) => name.toLowerCase());

describe('hostile input at the pages', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let token;
  let tip = fakeSha('before all');
  let job;
  let pages;
  let lists;

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({
      rig, config: { required: { must_pass: ['unit/smoke'] }, comment: { enabled: false } }, env: { ASAN_OPTIONS: 'quarantine_size_mb=16:malloc_context_size=4' },
      accelerators: [{ name: 'chip', title: TITLE, vendor: LINE, level: 'L2', trust: 'anyone', links: { docs: "https://vendor.example/?'", help: "https://vendor.example/#'" }, platform, tests: { must_pass: ['model/<b>'], skip: ['x/"'] },
        triggers: { push: { branches: ['main'] }, schedule: ['0 2 29 2 *'] }, runners: [{ name: 'ci', pull: { labels: ['any'], max_parallel: 9 } }] }],
    });
    token = (await outpost.ctl('token', 'issue', 'chip')).stdout.trim();
    const tests = HOSTILE.map((text, i) => ({ suite: i % 2 ? 'model' : orLetter(text).slice(0, 100), name: orLetter(text), dtype: text.slice(0, 20), status: 'PASS', message: text, trace: text, number: { value: NUMBERS[i % NUMBERS.length], unit: text.slice(0, 20) } }));
    const environment = Object.fromEntries([['torch', `2.9.1${LINE}`], ['os', `Ubuntu ${LINE}`], ['device', LINE], ...HOSTILE.slice(0, 30).map((text) => [orLetter(text), text])]);
    await tested(HOSTILE[0], { tests, environment });
    job = await tested(LINE, { tests: tests.map((one, i) => ({ ...one, status: i % 3 ? 'FAIL' : 'ERROR' })), environment });
    await outpost.waitForApi('platforms/chip', ({ tested: list }) => list.length > 0, LONG);
    pages = ['/', '/nightly', '/platforms', '/platforms/chip', '/accelerators/chip', `/commits/${tip}`, `/jobs/${job}`];
    lists = ['dashboard', 'nightly', 'platforms', 'platforms/chip', 'accelerators', 'accelerators/chip', 'accelerators/chip/jobs', 'accelerators/chip/numbers', `commits/${tip}`, `jobs/${job}`, 'known', 'status'].map((name) => `/api/v1/${name}`);
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  // Pushes a commit to main with this report. Returns the job.
  async function tested(message, report) {
    const before_ = tip;
    tip = fakeSha(`${before_} ${message}`);
    assert.equal((await rig.deliver('push', push({ before: before_, after: tip, message }))).status_code, 202);
    const { accelerators } = await outpost.waitForApi(`commits/${tip}`, (view) => view.accelerators[0]?.dispatches.length > 0, LONG);
    const send = async (status) => {
      const workflow = workflowOf({ workflow: orLetter(message).slice(0, 100), job: orLetter(message).slice(0, 100), run_id: '1', conclusion: 'failure' }, status);
      const answer = await post(`${outpost.url}/api/v1/dispatches/${accelerators[0].dispatches[0].id}/jobs`, token, workflow);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body.job;
    };
    const id = await send('in_progress');
    const { status, text } = await outpost.request('PUT', `/api/v1/jobs/${id}/report`, { body: { schema: 1, ...report }, headers: { authorization: `Bearer ${token}` }, ...LONG });
    assert.equal(status, 200, text);
    return send('completed');
  }

  test('pages, lists and documents are well-formed with hostile texts', async () => {
    // Ignore the scripts that each page preloads.
    const frame = (text) => elements(text.replace(/<link rel="modulepreload" href="\/assets\/[\w.-]+">/g, ''));
    const clean = frame((await outpost.get('/known-to-nobody', { headers: { accept: 'text/html' } })).text);
    for (const page of pages) {
      const { status, text, headers } = await outpost.get(page, LONG);
      assert.equal(status, 200, page);
      assert.match(headers['content-security-policy'], /^default-src 'none'; script-src 'self'; /, page);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.deepEqual(frame(text), clean, page);
      assert.doesNotMatch(text, /<script>alert/, page);
    }
    for (const list of lists) {
      const { status, text, json } = await outpost.get(list, LONG);
      assert.equal(status, 200, list);
      assert.ok(json, list);
      assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f]|":\s*-?(nan|inf)/i, list);
    }
    for (const [address, type] of [[`/jobs/${job}?format=junit`, 'application/xml'], ['/feed.xml', 'application/atom+xml'], ['/badge/chip.svg', 'image/svg+xml']]) {
      const { text, headers } = await outpost.get(address, LONG);
      assert.ok(headers['content-type'].startsWith(type), address);
      assert.equal(headers['content-security-policy'], "default-src 'none'", address);
      wellFormed(text);
    }
    for (const format of ['ctrf', 'outpost']) assert.ok((await outpost.get(`/jobs/${job}?format=${format}`, LONG)).json, format);
    for (const line of (await outpost.get('/metrics')).text.split('\n'))
      assert.match(line, /^$|^# (HELP|TYPE) [a-z0-9_]+ .+$|^[a-z0-9_]+(\{[a-z_]+="([^"\\\n]|\\.)*"(,[a-z_]+="([^"\\\n]|\\.)*")*\})? (NaN|[+-]?[0-9.e+-]+)$/);
    const { code, stdout } = await outpost.ctl('nightly', 'skip', 'chip');
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/);
  });

  test('a wrong parameter is 400 with its name, or is ignored', async () => {
    const values = ['', '0', '-1', '1e99', '9'.repeat(30), '9223372036854775807', '1.5', 'NaN', '%00', '%ff', '%', '%zz', '%201', '+1', '%D9%A1', 'a'.repeat(300), '%25_%25', '*', "'--", 'W10', 'LTE', 'MCAwIA', 'NiA5MjIzMzcyMDM2ODU0Nzc1ODA3IP8', '2026-02-30', '9999-12-31', '0001-01-01'];
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    let turn = 0; // each address gets a third of the values, and neighbours get different ones
    await Promise.all([...lists, '/nightly'].map(async (path) => {
      for (const name of ['limit', 'cursor', 'days', 'until', 'q', 'state', 'suite', 'accelerator', 'status', 'attribution', 'kind', 'format']) {
        const mine = turn++ % 3;
        for (const value of values.filter((_, i) => i % 3 === mine)) {
          const { status, json, headers } = await outpost.get(`${path}?${name}=${value}`, { agent, ...LONG });
          const isNobody = status === 404 && name === 'accelerator' && path.endsWith('/nightly');
          assert.ok(status === 200 || status === 400 || isNobody, `${path}?${name}=${value}: ${status}`);
          if (isNobody && json) assert.match(json.error, /^no accelerator is called ./);
          if (status === 400 && /json/.test(headers['content-type'])) assert.ok(json.error.startsWith(`${name}: `), json.error);
        }
      }
    }));
    agent.destroy();
    for (const [query, expected] of [['q='.padEnd(8100, 'x'), 400], ['q='.padEnd(100_000, 'x'), 414], ['a=1&'.repeat(2000), 200], ['limit=5&limit=x', 200]])
      assert.equal((await outpost.get(`/nightly?${query}`)).status, expected, query.slice(0, 20));
  });

  test('odd methods, headers and paths get the documented status', async () => {
    const asset = /\/assets\/[^"]+/.exec((await outpost.get('/')).text)[0];
    for (const path of [...pages, ...lists, asset, '/badge/chip.svg', '/feed.xml', '/metrics', '/healthz']) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE']) assert.equal((await outpost.request(method, path)).status, 405, `${method} ${path}`);
      assert.equal((await outpost.request('OPTIONS', path)).status, path.startsWith('/api/') ? 204 : 405, path);
      assert.deepEqual(await outpost.request('HEAD', path).then(({ status, text }) => [status, text]), [200, ''], path);
    }
    for (const path of ['/', '/api/v1/dashboard', '/feed.xml', asset]) {
      for (const [value, expected] of [['"', 200], [',,,,', 200], ['W/"', 200], [`${'"a",'.repeat(2000)}"b`, 200], ['\x80"', 200], ['*', 304], ['"'.repeat(60_000), 431]])
        assert.equal((await outpost.get(path, { headers: { 'if-none-match': value } })).status, expected, `${path} ${value.slice(0, 10)}`);
    }
    for (const value of ['gzip;q=nan', 'gzip;q=', ';;;', ',,,', `${'x'.repeat(61)}gzip`, 'gzip;q=-1', 'identity;q=0', '*;q=0'])
      assert.equal((await outpost.get(asset, { headers: { 'accept-encoding': value } })).headers['content-encoding'], undefined, value);
    for (const path of ['/assets/../', '/assets/..%2f..%2fetc%2fpasswd', '/assets/%2e%2e', '/../../etc/passwd', '//', '/pulls/-1', '/pulls/01', '/pulls/9223372036854775808', `/commits/${'A'.repeat(40)}`, '/jobs/0', '/jobs/99999999', '/accelerators/%3Cscript%3Ealert(1)%3C%2Fscript%3E', '/accelerators/%ff', '/platforms/%e2%80%ae', `/accelerators/${'a'.repeat(8000)}`, '/badge/%3Cb%3E.svg']) {
      const { status, text } = await outpost.get(path, { headers: { accept: 'text/html' } });
      assert.equal(status, 404, path);
      assert.doesNotMatch(text, /<script>alert|root:/);
    }
    const { answers } = await outpost.raw(Buffer.from([...pages, '/nope', '/%00'].map((path, i) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${i === pages.length + 1 ? 'Connection: close\r\n' : ''}\r\n`).join('')));
    assert.deepEqual(answers, [...pages.map(() => 200), 404, 400]);
  });

  test('a thousand event streams that do not read or are half closed do not block others', async () => {
    const sockets = [];
    const metric = async (name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await outpost.get('/metrics')).text)[1]);
    const before_ = await metric('outpost_http_connections');
    await Promise.all(Array.from({ length: 1000 }, async (_, i) => {
      // ten addresses, because one may open only 125 streams
      const socket = net.connect({ port: outpost.port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (i % 10)}`, allowHalfOpen: true }).on('error', () => {});
      sockets.push(socket);
      socket.write('GET /api/v1/events?watch=dashboard&watch=nightly HTTP/1.1\r\nHost: x\r\n\r\n');
      const [first] = await once(socket, 'data');
      assert.match(first.toString(), /^HTTP\/1\.1 200 /);
      if (i % 3 === 0) socket.pause();
      if (i % 3 === 1) socket.end();
    }));
    for (const path of [...pages, '/healthz']) assert.equal((await outpost.get(path, LONG)).status, 200, path);
    await tested('while they look', { tests: [{ suite: 'unit', name: 'smoke', status: 'PASS' }] });
    for (const [i, socket] of sockets.entries()) socket[i % 2 ? 'destroy' : 'resetAndDestroy']();
    await until(async () => await metric('outpost_http_connections') <= before_ + 5, { ...LONG, what: 'the connections are closed' });
  });

  test('a search for a text that ten thousand names almost contain is answered', async () => {
    await tested('names', { tests: Array.from({ length: 10_000 }, (_, i) => ({ suite: 'unit', name: `${'a'.repeat(240)}${i}`, status: 'PASS' })) });
    for (const part of ['zzz', `${'a'.repeat(120)}x`])
      assert.equal((await outpost.get(`/api/v1/nightly?q=${part}`, LONG)).status, 200);
  });

  test('the service stops in time while many requests wait for a large answer', async () => {
    assert.ok((await outpost.api(`commits/${tip}`)).verdicts.length >= 10_000);
    const ends = new Set();
    // On a busy machine the daemon may have answered all requests before this process stops it. (It refuses more than 200 at any time.)
    for (let round = 0; round < 10 && !ends.has(503); round++) {
      if (round > 0) await outpost.spawn();
      const agent = new http.Agent({ maxSockets: 200 });
      // different addresses, because requests for the same one share an answer
      const requests = Array.from({ length: 150 }, (_, i) => outpost.get(`/api/v1/commits/${tip}?i=${i}`, { agent, ...LONG }).then(({ status }) => status, ({ code }) => code));
      await Promise.race(requests); // the daemon has read others by then, and they wait
      await outpost.stop();
      for (const end of await Promise.all(requests)) ends.add(end);
      agent.destroy();
    }
    assert.ok(ends.has(503), `${[...ends]}`);
  });
});
