// The HTML that the server sends before a script runs.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startIssuer } from '../github/oidc.mjs';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startDispatchVendor } from '../github/vendors.mjs';
import { follow } from './lib/events.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const UPSTREAM = 'pytorch/pytorch';
const HOSTILE = '</script><!--<script>alert(1)</script>\u2028&amp;<img src=x onerror=alert(1)>';

// The content of <script type="application/json" id="data"> as a browser parses it: up to the first </script.
function dataOf(html) {
  const [, rest] = html.split('<script type="application/json" id="data">');
  return JSON.parse(rest.split(/<\/script/i)[0]);
}

describe('pages before any script', { skip: notBuilt }, () => {
  let rig;
  let issuer;
  let outpost;
  let vendor;
  let view;

  before(async () => {
    [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
    outpost = await Outpost.start({
      rig, issuer,
      accelerators: [{ name: 'npu', title: 'NPU', level: 'L2', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] }],
    });
    const tests = [...Array(5)].map((_, i) => ({ suite: 'model', name: `m${i}`, status: i ? 'PASS' : 'FAIL', duration: 1, message: HOSTILE }));
    vendor = startDispatchVendor({ rigUrl: rig.url, tokenUrl: issuer.tokenUrl, callbackUrl: `${outpost.url}/github/callback`, repository: 'Ascend/pytorch', script: [{ workflow: 'npu', job: 'test', tests }] });
    const pull = rig.openPull(UPSTREAM, { number: 7 });
    pull.title = HOSTILE;
    await rig.deliver('pull_request', pullRequestOf('opened', pull));
    view = await outpost.waitForApi('pulls/7', (one) => one.verdicts.length === 5, { timeout: 60_000 });
  });

  after(async () => {
    await vendor?.stop();
    await outpost?.close();
    await Promise.all([issuer?.close(), rig?.close()]);
  });

  test('a page embeds the API\'s answer, and no text breaks out of it', async () => {
    const job = view.accelerators[0].jobs[0].id;
    for (const path of ['/pulls/7', `/commits/${view.head_sha}`, `/jobs/${job}`]) {
      // The data may change between the two requests.
      const { page: { status, headers, text: html }, data, api } = await until(async () => {
        const page = await outpost.get(path);
        const data = dataOf(page.text);
        const asked = await fetch(new URL(data.api, outpost.url));
        return data.etag === asked.headers.get('etag') && { page, data, api: asked };
      }, { timeout: 60_000, what: `${path} and the API agree` });
      assert.equal(status, 200);
      assert.deepEqual([data.status, data.base, data.upstream], [200, outpost.url, UPSTREAM]);
      assert.equal(html.match(/<script/gi).length, 2, 'only our scripts');
      assert.doesNotMatch(html, /<img|<!--|\u2028/);
      assert.match(html, /<noscript>/);
      assert.deepEqual(await api.json(), data.body);
      assert.match(data.api, /[?&]limit=500$/);
      assert.match(headers['content-security-policy'], /default-src 'none'; script-src 'self'/);
      assert.doesNotMatch(headers['content-security-policy'], /unsafe/);
    }
  });

  test('a page links only to this server, and its assets are immutable', async () => {
    const { text: html } = await outpost.get('/pulls/7');
    const urls = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, url]) => url);
    assert.ok(urls.every((url) => url.startsWith('/')), urls.join(' '));
    const assets = urls.filter((url) => url.startsWith('/assets/'));
    assert.ok(assets.some((url) => url.endsWith('.js')) && assets.some((url) => url.endsWith('.css')));
    for (const url of assets) {
      const plain = await outpost.get(url, { headers: { 'accept-encoding': 'gzip;q=0, identity' } });
      const gzipped = await outpost.get(url, { headers: { 'accept-encoding': 'br, gzip' } });
      assert.equal(plain.status, 200);
      assert.match(plain.headers['cache-control'], /max-age=31536000, immutable/);
      assert.equal(plain.headers['content-encoding'], undefined);
      assert.equal(gzipped.headers['content-encoding'], 'gzip');
      assert.equal(gzipped.headers.vary, 'Accept-Encoding');
      assert.notEqual(gzipped.headers.etag, plain.headers.etag);
      assert.equal(await (await fetch(new URL(url, outpost.url))).text(), plain.text, 'fetch unpacks the gzipped asset');
      const again = await outpost.get(url, { headers: { 'if-none-match': plain.headers.etag } });
      assert.deepEqual([again.status, again.text], [304, '']);
    }
    assert.equal((await outpost.get('/assets/app-000000000000.js')).status, 404);
    assert.equal((await outpost.get('/assets/..%2f..%2fetc%2fpasswd')).status, 404);
  });

  test('a matching ETag gets 304, and HEAD gets the headers', async () => {
    for (const path of ['/api/v1/pulls/7', `/api/v1/commits/${view.head_sha}`, '/api/v1/accelerators', '/pulls/7']) {
      const { headers: { etag } } = await outpost.get(path);
      assert.match(etag, path.startsWith('/api/') ? /^"[0-9a-f]{32}"$/ : /^W\//);
      // A page's tag is valid for a minute, in which its ages are right. If the minute ends just now, the next tag matches.
      const named = await outpost.get(path, { headers: { 'if-none-match': `"x", ${etag}` } });
      const again = named.status === 304 ? named : await outpost.get(path, { headers: { 'if-none-match': named.headers.etag } });
      assert.deepEqual([again.status, again.text], [304, ''], path);
      assert.match(again.headers.etag, /"/);
      assert.equal((await outpost.get(path, { headers: { 'if-none-match': '"x"' } })).status, 200);
      const head = await fetch(new URL(path, outpost.url), { method: 'HEAD' });
      assert.equal(head.status, 200);
      assert.ok(Number(head.headers.get('content-length')) > 100);
      assert.equal(await head.text(), '');
    }
    assert.equal((await outpost.get('/api/v1/pulls/7', { headers: { 'if-none-match': '*' } })).status, 304);
    assert.equal((await outpost.get('/api/v1/pulls/8', { headers: { 'if-none-match': '*' } })).status, 404);
  });

  test('any site may read the API', async () => {
    const origin = { origin: 'https://pytorch.org' };
    for (const path of ['pulls/7', 'pulls/999', 'accelerators', 'events', 'known', 'status']) {
      const { headers } = await outpost.get(`/api/v1/${path}`, { headers: origin });
      assert.equal(headers['access-control-allow-origin'], '*', path);
      const preflight = await fetch(`${outpost.url}/api/v1/${path}`, { method: 'OPTIONS', headers: { ...origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'if-none-match' } });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
      assert.match(preflight.headers.get('access-control-allow-methods'), /GET/);
      assert.match(preflight.headers.get('access-control-allow-headers'), /If-None-Match/i);
    }
    const { headers } = await outpost.get('/api/v1/pulls/7');
    assert.match(headers['access-control-expose-headers'], /ETag/);
    assert.equal((await fetch(`${outpost.url}/api/v1/pulls/7`, { method: 'POST', body: '' })).status, 405);
  });

  test('404 is HTML or JSON as the client accepts', async () => {
    const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    for (const [path, error] of [['/pulls/999', 'no such pull request'], ['/jobs/x', 'no such job'], ['/nothing/here', 'no such page'], ['/%3Cscript%3Ealert(1)%3C%2Fscript%3E', 'no such page']]) {
      const { status, headers, text } = await outpost.get(path, { headers: html });
      assert.equal(status, 404, path);
      assert.equal(headers['content-type'], 'text/html; charset=utf-8');
      assert.match(text, /<title>Not found/);
      assert.deepEqual([dataOf(text).status, dataOf(text).body], [404, { error }]);
      assert.doesNotMatch(text, /<script>alert/);
      assert.equal(headers.etag, undefined);
    }
    for (const path of ['/api/v1/nothing', '/github/nothing', '/nothing'])
      assert.deepEqual((await outpost.get(path, { headers: path === '/nothing' ? {} : html })).json, { error: 'no such path' }, path);
    assert.deepEqual((await outpost.get('/api/v1/pulls/999')).json, { error: 'no such pull request' });
  });

  test('limit, cursor and filters select verdicts and tests', async () => {
    const job = view.accelerators[0].jobs[0].id;
    for (const [path, list, total] of [['pulls/7', 'verdicts', 'verdicts_total'], [`jobs/${job}`, 'tests', 'tests_total']]) {
      const whole = await outpost.api(path);
      assert.deepEqual([whole[total], whole.next, whole[list].length], [5, null, 5]);
      const seen = [];
      let next = '';
      for (let n = 0; n < 3; n++) {
        const part = await outpost.api(`${path}?limit=2${next && `&cursor=${next}`}`);
        assert.equal(part[total], 5);
        seen.push(...part[list]);
        ({ next } = part);
      }
      assert.equal(next, null);
      assert.deepEqual(seen, whole[list]);
      const red = await outpost.api(`${path}?status=FAIL,ERROR&limit=1`);
      assert.deepEqual([red[list].length, red[total], red.next, red[list][0].status], [1, 1, null, 'FAIL']);
      assert.deepEqual((await outpost.api(`${path}?status=SKIP`))[list], []);
      for (const [query, named] of [['limit=0', 'limit'], ['limit=501', 'limit'], ['limit=x', 'limit'], ['cursor=%00', 'cursor'], ['cursor=!', 'cursor'], ['status=fail', 'status'], ['status=', 'status']]) {
        const { status, json } = await outpost.get(`/api/v1/${path}?${query}`);
        assert.equal(status, 400, query);
        assert.match(json.error, new RegExp(`^${named}: `));
      }
    }
    assert.equal((await outpost.api('pulls/7?attribution=red')).verdicts_total, 1);
    assert.equal((await outpost.api('pulls/7?attribution=KNOWN,BASE')).verdicts_total, 0);
    const { status, text } = await outpost.get('/pulls/7?limit=x');
    assert.equal(status, 400);
    assert.match(dataOf(text).body.error, /^limit: /);
  });

  test('events: each watch gets an event on connection and then only on changes, even across a kill', async () => {
    const watches = ['pulls/7', `commits/${view.head_sha}`, 'jobs/999', 'pulls/999', 'dashboard'];
    const events = follow(outpost, watches);
    const first = await events.next(watches.length);
    assert.deepEqual(first.map(({ data }) => data.watch), watches);
    assert.ok(first.every(({ event, id }) => event === 'change' && id));
    assert.equal(events.retry, '2000');
    const pull = rig.updatePull(UPSTREAM, 7, { headSha: 'f'.repeat(40) });
    await rig.deliver('pull_request', pullRequestOf('synchronize', pull, { before: view.head_sha }));
    const seen = new Set();
    while (![watches[0], watches[1], 'dashboard'].every((one) => seen.has(one))) for (const { data } of await events.next(1)) seen.add(data.watch);
    assert.deepEqual([...seen].sort(), [watches[0], watches[1], 'dashboard'].sort());
    await outpost.waitForApi('pulls/7', (one) => one.verdicts.length === 5, { timeout: 60_000 });
    await outpost.kill();
    await events.ended;
    await outpost.spawn();
    const again = follow(outpost, ['pulls/7'], { 'last-event-id': first[0].id });
    assert.deepEqual((await again.next(1)).map(({ data }) => data.watch), ['pulls/7']);
    again.close();
    await again.ended;
  });

  test('events: a log notifies the watchers of its job', async () => {
    const [{ id }] = (await outpost.api('pulls/7')).accelerators[0].jobs;
    const events = follow(outpost, [`jobs/${id}`]);
    await events.next(1);
    const authorization = `Bearer ${await vendor.token()}`;
    const { status } = await outpost.request('PUT', `/api/v1/jobs/${id}/log`, { headers: { authorization }, body: 'a line\n' });
    assert.equal(status, 200);
    assert.deepEqual((await events.next(1)).map(({ data }) => data.watch), [`jobs/${id}`]);
    events.close();
    await events.ended;
  });

  test('events: a new registry notifies the watchers of changed accelerators', { timeout: 120_000 }, async () => {
    const events = follow(outpost, ['accelerators/npu']);
    await events.next(1);
    const { accelerators } = outpost.options;
    await outpost.configure({ accelerators: [{ ...accelerators[0], title: 'The new NPU', level: 'L3' }] });
    assert.equal((await outpost.reload()).fields.ev, 'reloaded');
    // An event may still belong to an earlier test. Without an event for the registry this loop never ends.
    for (let shown = {}; shown.title !== 'The new NPU' || shown.level !== 'L3'; shown = await outpost.api('accelerators/npu')) await events.next(1);
    events.close();
    await events.ended;
  });

  test('events: bad and too many watches are refused', async () => {
    for (const query of ['', 'watch=', 'watch=metrics', 'watch=pulls/x', `watch=${'pulls/'.padEnd(200, '1')}`, Array(9).fill('watch=pulls/7').join('&'), 'watch=pulls/7&watch=%0a']) {
      const { status, json } = await outpost.get(`/api/v1/events?${query}`);
      assert.equal(status, 400, query);
      assert.match(json.error, /^watch: /);
    }
    const head = await fetch(`${outpost.url}/api/v1/events?watch=pulls/7`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream']);
  });

  test('after a thousand streams the next one gets 503, and a stop ends them', async () => {
    const streams = [];
    const refused = [];
    // One address may open an eighth of them.
    for (let i = 1; refused.length < 2; i++) {
      const more = [...Array(126)].map(() => follow(outpost, ['pulls/7'], { localAddress: `127.0.0.${i}` }));
      const statuses = await Promise.all(more.map(({ begun }) => begun));
      streams.push(...more.filter((_, k) => statuses[k] === 200));
      if (statuses.includes(429)) assert.deepEqual([...new Set(statuses)], [200, 429]);
      if (statuses.includes(503)) refused.push(i);
    }
    assert.ok(streams.length > 900 && streams.length <= 1000, `${streams.length}`);
    await Promise.all(streams.map((one) => one.next(1)));
    // The daemon may notice only now that a client of an earlier test has gone.
    const answered = async (wanted) => {
      const one = follow(outpost, ['pulls/7'], { localAddress: '127.0.0.99' });
      const status = await one.begun;
      if (status === 200) streams.push(one);
      else assert.equal(status, 503);
      return status === wanted && one;
    };
    const last = await until(() => answered(503), { timeout: 60_000 });
    assert.ok(Number(last.headers['retry-after']) > 0);
    streams.pop().close();
    await until(() => answered(200), { timeout: 60_000 });
    await outpost.stop();
    await Promise.all(streams.map(({ ended }) => ended));
  });
});
