// Hostile input of vendors, machines and pull requests through the whole program: it is refused or cut in bounded time and memory, and
// is plain text in the comment, on a terminal and in the API.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { startSilentVendor, workflowOf } from '../github/vendors.mjs';
import { HOSTILE, SHA } from './lib/hostile.mjs';
import { UNSEEN, rendered } from './lib/markdown.mjs';
import { OUTPOSTCTL, Outpost, notBuilt, runProgram, until } from './lib/outpost.mjs';
import { Puller } from './lib/puller.mjs';
import { Runner, runnerNotBuilt } from './lib/runner.mjs';

const UPSTREAM = 'pytorch/pytorch';
const SECRET = 'hook secret';
const MIB = 1 << 20;

const CHUNK = 10; // the comment names this many failures of one accelerator
const chunks = Array.from({ length: Math.ceil(HOSTILE.length / CHUNK) }, (_, i) => HOSTILE.slice(i * CHUNK, (i + 1) * CHUNK));

// Replaces the characters that XML cannot contain.
const xml = (text) => text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '').replace(/[&<>"\n\r\t]/g, (c) => `&#${c.codePointAt(0)};`);
const cdata = (text) => `<![CDATA[${text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, '').replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
const orLetter = (text) => (text.replace(/[\x00-\x20\x7f]/g, '') ? text : `x${text}`);
const junit = (cases) => `<testsuites><testsuite name="unit">${cases}</testsuite></testsuites>`;

// Documents in which every text is one of `texts`.
const DOCUMENTS = {
  JUnit: (texts) => `<?xml version="1.0"?>\n<testsuites name="${xml(texts[0])}">${texts.map((text) => `<testsuite name="${xml(text)}" hostname="${xml(text)}" timestamp="${xml(text)}" tests="${xml(text)}"><properties><property name="${xml(text)}" value="${xml(text)}"/></properties>\
<testcase classname="${xml(text)}" name="${xml(text)}" file="${xml(text)}" time="${xml(text)}"><failure type="${xml(text)}" message="${xml(text)}">${cdata(text)}</failure><system-out>${cdata(text)}</system-out></testcase></testsuite>`).join('\n')}</testsuites>`,
  CTRF: (texts) => JSON.stringify({ reportFormat: texts[0], results: { tool: { name: texts[0], version: texts[0] }, summary: { tests: texts[0] },
    tests: texts.map((text) => ({ name: orLetter(text), suite: [text, text], status: 'failed', duration: 1, message: text, trace: text, rawStatus: text, tags: [text], extra: { [text]: text } })),
    environment: { osPlatform: texts[0], osRelease: texts.at(-1), extra: { device: texts[0], torch: texts.at(-1), accelerator: texts[1] } } } }),
  'Outpost JSON': (texts) => JSON.stringify({ schema: 1, environment: { accelerator: texts[0], device: texts[1], os: texts[2], driver: texts[3], torch: texts[4], torch_commit: texts[5], extension: { name: texts[6], version: texts.at(-1) }, [texts[0]]: texts[0] },
    tests: texts.map((text) => ({ suite: orLetter(text), name: orLetter(text), status: 'FAIL', dtype: text, message: text, trace: text, log_url: text, number: { value: 1e308, unit: text }, [text]: text })) }),
};

describe('hostile reports', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let vendor;
  let labs;
  let next = 400;
  let runs = 1;

  before(async () => {
    [rig, vendor] = await Promise.all([startRig({ repositories: [{ name: UPSTREAM }] }), startSilentVendor({ secret: SECRET })]);
    // Each lab receives its own pull requests and has its own limit of reports a minute.
    labs = Array.from({ length: chunks.length + 1 }, (_, i) => `lab-${i}`);
    const common = { triggers: { pull_request: { label: 'required' } }, trust: 'anyone', runners: [{ name: 'lab', webhook: { url: vendor.url, secret: 'hook' } }] };
    outpost = await Outpost.start({
      rig,
      accelerators: [{ name: 'farm', title: 'Farm', level: 'L2', ...common, runners: [{ name: 'farm', pull: { labels: [] } }] }, ...labs.map((name) => (
        { name, title: '[x](https://evil.example/) | <b> @octocat #1', vendor: '</td>', level: 'L2', links: { docs: 'https://vendor.example/a)b?f=(g', help: 'https://vendor.example/help' }, ...common }))],
      secrets: Object.fromEntries(labs.map((name) => [name, { hook: SECRET }])),
      // Keep the sanitizer's quarantine of freed memory small, because the test measures memory.
      env: { ASAN_OPTIONS: 'quarantine_size_mb=1:malloc_context_size=2' },
    });
  });

  after(async () => {
    await outpost?.close();
    await Promise.all([vendor?.stop(), rig?.close()]);
  });

  async function dispatched(lab = labs.length - 1, more = {}) {
    const number = next++;
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number, labels: [`ciflow/crcr/lab-${lab}`], ...more })));
    const { body } = await until(() => vendor.events.find((one) => one.body?.payload.number === number), { timeout: 20_000, what: 'the vendor receives its webhook' });
    return { number, token: body.outpost.callback_token, jobs: new URL(body.outpost.callback_url).pathname };
  }
  const post = (one, workflow) => outpost.request('POST', one.jobs, { headers: { authorization: `Bearer ${one.token}` }, body: typeof workflow === 'object' && !Buffer.isBuffer(workflow) ? JSON.stringify(workflow) : workflow, timeout: 60_000 });
  async function running(lab) {
    const one = await dispatched(lab);
    const run = { workflow: 'lab', job: 'tests', run_id: runs++ };
    const answer = await post(one, workflowOf(run, 'in_progress'));
    assert.equal(answer.status, 200, answer.text);
    return { ...one, run, job: answer.json.job };
  }
  const put = (one, what, body, { headers = {} } = {}) =>
    outpost.request('PUT', `/api/v1/jobs/${one.job}/${what}`, { body, timeout: 120_000, headers: { authorization: `Bearer ${one.token}`, ...headers } });
  const end = (one, conclusion = 'failure') => post(one, workflowOf({ ...one.run, conclusion }, 'completed'));

  // The posted comment. Most tests use the preview, which is there at once.
  const written = (one, fits) => until(() => rig.comments(UPSTREAM, one.number).find(({ body, author }) => author === rig.bot && fits(body))?.body, { timeout: 60_000, what: `the comment on ${one.number} fits ${fits}` });
  async function comment(one) {
    const { code, stdout, stderr } = await outpost.ctl('comment', 'preview', String(one.number), '--markdown');
    assert.equal(code, 0, stderr);
    return stdout;
  }
  const OURS = () => [`${outpost.url}/jobs/`, `${outpost.url}/pulls/`, `https://github.com/${UPSTREAM}/commit/`, 'https://github.com/example/ci/actions/runs/', 'https://vendor.example/'];

  // Asserts that the comment contains no markup of others and a complete table with n rows.
  async function assertComment(one, n) {
    const page = await rendered(await comment(one));
    assert.deepEqual(page.strange({ links: OURS() }), []);
    assert.deepEqual(page.table.map((cells) => cells.length), Array(page.table.length).fill(2));
    assert.ok(page.table.length === n + 1, `${page.table.length - 1} rows of ${n}:\n${page.table.join('\n')}`);
    for (const [name, sign] of page.table.slice(1)) assert.ok(name && /^[✗–✓?!]( new| known| base| flaky)?$/.test(sign), `${name}: ${sign}`);
    return page;
  }

  // Asserts that the API answers with JSON.
  async function assertApi(one) {
    for (const target of [`jobs/${one.job}`, `pulls/${one.number}`]) {
      const { status, json, headers } = await outpost.get(`/api/v1/${target}`);
      assert.equal(status, 200);
      assert.ok(json, target);
      assert.match(headers['content-type'], /^application\/json/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  }

  const PLAIN = /\x1b\[(0|1|2|31|32|33|36)m/g; // Outpost's own colours
  async function onTerminal(...args) {
    const { code, stdout } = await outpost.ctlOnTerminal(...args);
    assert.equal(code, 0, stdout);
    const text = stdout.replace(/\r\n/g, '\n').replace(PLAIN, '');
    assert.doesNotMatch(text, UNSEEN, JSON.stringify(text));
    return text;
  }

  for (const [format, document] of Object.entries(DOCUMENTS))
    test(`${format} with hostile texts stays plain text`, async () => {
      await Promise.all(chunks.map(async (texts, lab) => {
        const one = await running(lab);
        const answer = await put(one, 'report', document(texts));
        assert.deepEqual([answer.status, answer.json], [200, { ok: true, tests: texts.length, cut: 0 }], `${JSON.stringify(texts)}: ${answer.text}`);
        assert.equal((await end(one)).status, 200);
        const page = await assertComment(one, texts.length);
        await assertApi(one);
        if (format === 'JUnit' && lab === 0) assert.deepEqual((await rendered(await written(one, (body) => /Not classified/.test(body)))).table, page.table);
        assert.match(await onTerminal('comment', 'preview', String(one.number)), /^. \d+ failures? on /m);
      }));
    });

  test('jobs with a hostile workflow, name, conclusion, message, addresses and tests stay plain text', async () => {
    await Promise.all(chunks.map(async (texts, lab) => {
      const one = await dispatched(lab, { title: texts[0] });
      for (const [i, text] of texts.entries()) {
        const answer = await post(one, { ...workflowOf({ workflow: orLetter(text), job: text, run_id: `${i} ${text}`, conclusion: i % 2 ? text : 'failure', url: i % 2 ? `https://vendor.example/${text}` : text.replace(/^https/, 'ftp'), artifact_url: text }, 'completed'),
          message: text, check_run_id: text, started_at: text, completed_at: '9999-99-99T00:00:00Z', test_results: { passed: text, failed: -1, skipped: 1e300, total: null } });
        assert.equal(answer.status, 200, `${JSON.stringify(text)}: ${answer.text}`);
        one.job = answer.json.job;
      }
      const run = await post(one, workflowOf({ workflow: 'w', job: 'j', run_id: 'r', conclusion: 'failure', tests: texts.map((text) => ({ suite: orLetter(text), name: `t ${text}`, status: 'ERROR', message: text, log_url: text, dtype: text })) }, 'completed'));
      assert.equal(run.status, 200, run.text);
      await assertComment(one, 2 * texts.length);
      await assertApi(one);
      await onTerminal('comment', 'preview', String(one.number));
      await onTerminal('dispatches', '--pr', String(one.number));
    }));
    await onTerminal('status');
    await onTerminal('deliveries');
  });

  test('the checker of these tests finds each kind of markup', async () => {
    for (const text of ['@octocat', '#1', 'GH-1', SHA, 'https://evil.example', 'www.evil.example', ':+1:', '<b>x</b>', '<script>x', '![](https://evil.example)', '[x](https://evil.example)', '# x', '> x', '_x_', '<!-- x -->', '\u202ex', '\x1b[31m', '[^1]', '$x$'])
      assert.notDeepEqual((await rendered(`**ok** ${text}\n\n${text}\n`)).strange(), [], text);
    assert.deepEqual((await rendered('**ok** `@octocat`\n\n| a |\n|:--|\n| `<b>` |\n')).strange(), []);
  });

  test('a hostile log is served as plain text', async () => {
    const one = await running(0);
    const text = Buffer.concat([Buffer.from(HOSTILE.join('\n')), Buffer.from([0, 0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x1b, 0x5b, 0x32, 0x4a]), Buffer.from('<script>alert(1)</script>'.repeat(100_000)), gzipSync('x')]);
    for (const type of ['text/html', 'image/svg+xml', 'multipart/form-data; boundary=x']) assert.equal((await put(one, 'log?offset=0', text, { headers: { 'content-type': type } })).status, 200, type);
    for (const target of ['log', 'log?', 'log?x=<script>', 'log?callback=alert', 'log/']) {
      const { status, headers } = await outpost.get(`/api/v1/jobs/${one.job}/${target}`, { headers: { accept: 'text/html', origin: 'https://evil.example' } });
      if (target === 'log/' && status === 404) continue;
      assert.equal(status, 200, target);
      assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.match(headers['content-security-policy'], /^sandbox;/);
      assert.doesNotMatch(headers['content-security-policy'], /allow-/);
      assert.equal(headers['access-control-allow-credentials'], undefined);
    }
    assert.equal((await end(one)).status, 200);
    const page = await rendered(await comment(one));
    assert.deepEqual(page.strange({ links: OURS() }), []);
  });

  describe('other hostile names', () => {
    let machine;
    before(async () => { machine = await Puller.add(outpost, 'npu-1', 'farm'); });

    test('a machine\'s hostile name and facts are refused or plain text', async () => {
      const judge = async (text) => {
        const { code, stderr } = await outpost.ctl('runner', 'add', text, '--accelerator', 'farm');
        if (/^[A-Za-z0-9._-]{1,100}$/.test(text) && !text.startsWith('-')) return; // a valid name
        assert.ok(code === 1 || code === 2, `${text}: ${code}`);
        assert.doesNotMatch(stderr, UNSEEN, JSON.stringify(stderr));
        const commands = [['runner', 'revoke', text, '--accelerator', 'farm'], ['runner', 'list', '--accelerator', text], ['token', 'issue', text]];
        for (const asked of await Promise.all(commands.map((words) => runProgram(process.env.OUTPOSTCTL_RELEASE ?? OUTPOSTCTL, ['-c', outpost.configFile, ...words]))))
          assert.doesNotMatch(asked.stderr + asked.stdout, UNSEEN, JSON.stringify(asked));
        for (const claim of [{ name: text }, { id: text }]) {
          const answer = await machine.claim(claim);
          assert.ok([400, 403].includes(answer.status) || /^[A-Za-z0-9-]{1,64}$/.test(text), `${JSON.stringify(claim)}: ${answer.status} ${answer.text}`);
          assert.ok(answer.status === 204 || answer.json.detail, answer.text);
          assert.doesNotMatch(answer.json?.detail ?? '', UNSEEN);
        }
        const labels = await machine.claim({ labels: [text] });
        assert.ok([204, 400].includes(labels.status), labels.text);
        assert.ok([204, 400].includes((await machine.ask('POST', '/api/v1/runner/claim', { name: 'npu-1', claim_id: 'a', version: text, wait: 0 })).status));
        const beat = await machine.renew({ lease_id: encodeURIComponent(text) || 'x' });
        assert.ok([400, 404].includes(beat.status) || beat.json?.lease === 'lost', `${JSON.stringify(text)}: ${beat.status} ${beat.text}`);
      };
      const texts = [...HOSTILE, 'x; rm -rf /', '', 'n'.repeat(1000), '-c', '--json', '../x', 'npu-1\n'];
      const worker = async () => { for (let text; (text = texts.pop()) !== undefined;) await judge(text); };
      await Promise.all([worker(), worker()]);
      assert.match(await onTerminal('runner', 'list'), /npu-1/);
      assert.ok(JSON.parse((await outpost.ctl('--json', 'runner', 'list')).stdout).tokens.length > 0);
      await onTerminal('token', 'list');
    });

    test('a hostile title, branch and author reach a step only as text', { skip: runnerNotBuilt }, async () => {
      const seen = path.join(outpost.dir, 'seen');
      const [title, author, baseRef] = ['"; touch pwned; $(touch pwned) `touch pwned` \' \x1b[2J\u202e <script> @octocat \\', 'octocat', 'main"$(touch${IFS}pwned)'];
      const number = next++;
      const runner = await Runner.prepare({
        outpost, name: 'npu-2', accelerator: 'farm',
        steps: [{ name: '$(touch pwned) <b> @octocat', run: `env >${seen}.env; cat "$OUTPOST_CHANGE_JSON" >${seen}; printf '%b' '\\033[2J\\000\\377<script>\\342\\200\\256'; exit 3` }],
        config: { report: { files: ['results/*.xml'] } },
      });
      try {
        await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull(UPSTREAM, { number, title, author, baseRef, labels: ['ciflow/crcr/farm'] })));
        await runner.spawn('--once');
        await runner.exited;
        const change = JSON.parse(await fs.readFile(seen, 'utf8'));
        assert.equal(change.change.title, title.replace('\x1b', ' '));
        assert.equal(change.change.base_ref, baseRef);
        const environment = await fs.readFile(`${seen}.env`, 'utf8');
        for (const text of ['pwned', 'octocat']) assert.ok(!environment.includes(text), environment);
        assert.deepEqual((await fs.readdir(runner.dir, { recursive: true })).filter((name) => /pwned/.test(name)), []);
        for (const { line } of runner.log) assert.doesNotMatch(line, UNSEEN, JSON.stringify(line));
        const page = await rendered(await comment({ number }));
        assert.deepEqual(page.strange({ links: OURS() }), []);
        assert.match(page.html, /exit|3/);
        await onTerminal('comment', 'preview', String(number));
        await onTerminal('dispatches', '--pr', String(number));
      } finally {
        await runner.close();
      }
    });
  });

  describe('invalid, large and slow documents', () => {
    const own = (tests, more = '') => `{"schema":1${more},"tests":[${tests}]}`;
    const entry = (more = '', name = 'n') => `{"suite":"s","name":"${name}","status":"PASS"${more}}`;
    const repeat = (n, make) => Array.from({ length: n }, (_, i) => make(i)).join('');
    const bytes = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));
    const utf16 = (text) => bytes([0xff, 0xfe], Buffer.from(text, 'utf16le'));
    const laughs = `<!DOCTYPE a [<!ENTITY a0 "${'lol'.repeat(10)}">${repeat(9, (i) => `<!ENTITY a${i + 1} "${`&a${i};`.repeat(10)}">`)}]>${junit('<testcase name="&a9;"/>')}`;
    // Made when a test needs them: starting a program copies the page tables of this process, which costs much more if it is large.
    const invalid = () => [
      ['NUL in XML', bytes('<testsuites>', [0], '</testsuites>')], ['control characters in XML', junit('<testcase name="\x1b[31m"/>')], ['control characters by reference', junit('<testcase name="&#27;[31m"/>')], ['NUL by reference', junit('<testcase name="&#0;"/>')],
      ['NUL in JSON', bytes(own(entry()), [0])], ['\\u0000 in JSON', own(entry(',"message":"\\u0000"'))], ['half a surrogate', own(entry(',"message":"\\ud800"'))], ['halves in the wrong order', own(entry(',"message":"\\udc00\\ud800"'))], ['a line break in a string', own(entry(',"message":"\n"'))],
      ...[[0xff], [0xc0, 0x80], [0xe0, 0x80, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3], [0x80]].flatMap((wrong) => [
        [`JSON with ${wrong}`, bytes('{"schema":1,"tests":[{"suite":"s","name":"', wrong, '","status":"PASS"}]}')], [`XML with ${wrong}`, bytes('<testsuites><testsuite><testcase name="', wrong, '"/></testsuite></testsuites>')]]),
      ['JSON in UTF-16', utf16(own(entry()))], ['half a character of UTF-16', bytes(utf16(junit('<testcase name="a"/>')), [0x20])], ['half a surrogate of UTF-16', utf16(junit('<testcase name="\ud800"/>'))],
      ['another encoding than is said', `<?xml version="1.0" encoding="UTF-16"?>${junit('<testcase name="a"/>')}`], ['UTF-7', '<?xml version="1.0" encoding="UTF-7"?><testsuites>+ADw-b+AD4-</testsuites>'], ['an unknown encoding', `<?xml version="1.0" encoding="${'x'.repeat(5000)}"?>${junit('<testcase name="a"/>')}`],
      ['a thousand million of entities', laughs], ['an outer entity', `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>${junit('<testcase name="a">&x;</testcase>')}`], ['a parameter entity', `<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:9/"> %x;]>${junit('<testcase name="a"/>')}`],
      ['attributes by declaration', `<!DOCTYPE a [<!ATTLIST testcase name CDATA "forged">]>${junit('<testcase/>')}`], ['an unknown entity', junit('<testcase name="&x;"/>')],
      ['XML, 100,000 deep', '<testsuite>'.repeat(100_000)], ['XML, 65 deep and closed', '<testsuite>'.repeat(65) + '</testsuite>'.repeat(65)], ['JSON, a million deep', '['.repeat(1_000_000)], ['objects, a million deep', '{"tests":'.repeat(1_000_000)],
      ['depth in what is not read', own(entry(`,"x":${'['.repeat(100_000)}${']'.repeat(100_000)}`))], ['a key twice', `{"schema":1,"schema":1,"tests":[${entry()}]}`], ['a key twice, once escaped', `{"schema":1,"tests":[${entry()}],"\\u0074ests":[]}`], ['a status twice', own(entry(',"status":"FAIL"'))],
      ['a key of CTRF twice', '{"results":{"tests":[{"name":"a","status":"failed"}],"tests":[{"name":"a","status":"passed"}]}}'], ['an attribute twice', junit('<testcase name="a" name="b"/>')],
      ...['NaN', 'Infinity', '-1', '-0.001', '1e999', '1e300', '0x10', '01', '+1', '.5', '"1"', `1${'0'.repeat(100_000)}`, `1e${'9'.repeat(100_000)}`].map((number) => [`duration ${number.slice(0, 20)}`, own(entry(`,"duration":${number}`))]),
      ...['NaN', '1e999', '-1e999', '"1"', 'null', '{}'].map((number) => [`number ${number}`, own(entry(`,"number":{"value":${number}}`))]), ...['-1', '1.5', '1e30', '"1"', '9223372036854775808'].map((cut) => [`cut ${cut}`, own(entry(), `,"cut":${cut}`)]),
      ...['2', '1.0000001', '"1"', 'true', '[1]'].map((schema) => [`schema ${schema}`, `{"schema":${schema},"tests":[${entry()}]}`]), ['environment too long', own(entry(), `,"environment":{"device":"${'x'.repeat(70_000)}"}`)], ['environment deep', own(entry(), `,"environment":${'{"a":'.repeat(70)}1${'}'.repeat(70)}`)],
      ['a page', '<!DOCTYPE html><html><body>502 Bad Gateway</body></html>'], ['a login page', '<html><script>location="x"</script></html>'], ['gzip', gzipSync(own(entry()))], ['a zip file', bytes('PK\x03\x04', Buffer.alloc(500))], ['a program', bytes('\x7fELF', Buffer.alloc(500))],
      ['two documents', `${own(entry())}${own(entry())}`], ['two roots', `${junit('<testcase name="a"/>')}${junit('<testcase name="b"/>')}`], ['4,000,000 comments and nothing else', '<testsuites>' + '<!---->'.repeat(4_000_000)], ['30 MiB of spaces', ' '.repeat(30 * MIB)], ['30 MiB of one name', `<${'a'.repeat(30 * MIB)}>`],
      ['an element with a million attributes', `<testsuites ${repeat(1_000_000, (i) => `a${i}="" `)}/>`], ['a million names of elements', `<testsuites>${repeat(1_000_000, (i) => `<e${i}/>`)}</testsuites>`], ['30 MiB of one attribute, cut off', `<testsuites><testsuite><testcase name="${'a'.repeat(30 * MIB)}`],
    ];
    const valid = () => [
      ['names of 1 MiB', junit(repeat(8, (i) => `<testcase classname="${'c'.repeat(MIB)}" name="${i}${'n'.repeat(MIB)}" time="${'1'.repeat(MIB)}"/>`)), { tests: 8, cut: 0 }],
      ['names of 1 MiB in JSON', own(repeat(7, (i) => (i ? ',' : '') + entry(`,"message":"${'m'.repeat(MIB)}","trace":"${'\\n'.repeat(MIB / 2)}","log_url":"https://${'x'.repeat(MIB)}"`, `${i}${'n'.repeat(MIB)}`))), { tests: 7, cut: 0 }],
      ['a million cases', junit(repeat(1_000_000, (i) => `<testcase name="${i}"/>`)), { tests: 20_000, cut: 980_000 }],
      ['200,000 cases of one name', junit('<testcase name="a"/>'.repeat(200_000)), { tests: 1, cut: 0 }],
      ['700,000 tests', own(repeat(700_000, (i) => (i ? ',' : '') + entry('', i))), { tests: 20_000, cut: 680_000 }],
      ['700,000 tests of CTRF', `{"results":{"tests":[${repeat(700_000, (i) => `${i ? ',' : ''}{"name":"${i}","status":"passed"}`)}]}}`, { tests: 20_000, cut: 680_000 }],
      ['a million keys that are not read', own(entry(`,${repeat(1_000_000, (i) => `${i ? ',' : ''}"k${i}":0`)}`)), { tests: 1, cut: 0 }],
      ['500,000 escaped keys', own(entry(`,${'"\\n":0,'.repeat(500_000)}"x":0`)), { tests: 1, cut: 0 }],
      ['a document named outside', `<!DOCTYPE testsuites SYSTEM "file:///etc/passwd">${junit('<testcase name="a"/>')}`, { tests: 1, cut: 0 }],
      ['numbers at their edges', own([',"duration":0', ',"duration":1e-320', ',"duration":999999999', ',"number":{"value":-1.7976931348623157e308}', ',"number":{"value":5e-324,"unit":""}'].map((more, i) => entry(more, i)).join(','), ',"cut":1000000000000'), { tests: 5, cut: 1_000_000_000_000 }],
      ['dates far away', junit('<testcase name="a" time="-1" timestamp="9999-99-99T99:99:99"/>').replace('<testsuite ', '<testsuite timestamp="-9999999-01-01" time="1e999" '), { tests: 1, cut: 0 }],
    ];

    // The daemon's peak of memory that maps no file, in MiB, during `work`. Sanitizers about double it.
    async function peakMemory(work) {
      const kib = async (name) => Number((await fs.readFile(`/proc/${outpost.pid}/status`, 'utf8')).match(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm'))[1]);
      const files = await kib('RssFile');
      await fs.writeFile(`/proc/${outpost.pid}/clear_refs`, '5'); // resets VmHWM
      await work();
      return (await kib('VmHWM') - Math.min(files, await kib('RssFile'))) / 1024;
    }

    test('an invalid document is 400 with a reason and does not block a valid one', async () => {
      const jobs = await Promise.all(labs.map((_, lab) => running(lab)));
      const memory = await peakMemory(async () => {
        for (const [i, [what, body]] of invalid().entries()) {
          const { status, json, text } = await put(jobs[i % jobs.length], 'report', body);
          assert.equal(status, 400, `${what}: ${status} ${text}`);
          assert.ok(json.detail.length > 5 && json.detail.length < 300, `${what}: ${text}`);
          assert.doesNotMatch(json.detail, UNSEEN, what);
        }
      });
      assert.ok(memory < 600, `${memory} MiB`);
      for (const one of jobs) assert.equal((await put(one, 'report', junit('<testcase name="a"/>'))).status, 200);
    });

    // The unit tests of the documents run with sanitizers.
    describe('large documents, in the build without sanitizers, whose memory is the real one', () => {
      const restartAs = async (program) => {
        await outpost.stop();
        outpost.options.program = program;
        await outpost.spawn();
      };
      before(() => restartAs(process.env.OUTPOSTD_RELEASE));
      after(() => restartAs(undefined));

      test('a valid document is accepted, even if it is large', async () => {
        for (const [i, [what, body, { tests, cut }]] of valid().entries()) {
          const one = await running(i % labs.length);
          const memory = await peakMemory(async () => {
            const { status, json, text } = await put(one, 'report', body);
            assert.deepEqual([status, json], [200, { ok: true, tests, cut }], `${what}: ${text}`);
          });
          assert.ok(memory < 600, `${what}: ${memory} MiB`);
          assert.equal((await end(one)).status, 200);
          const page = await rendered(await comment(one));
          assert.deepEqual(page.strange({ links: OURS() }), [], what);
          await assertApi(one);
        }
      });

      test('32 MiB are accepted and 33 are not, with any Content-Type', async () => {
        const text = own(entry());
        const one = await running(0);
        const large = Buffer.alloc(33 * MIB, ' ');
        large.write(text);
        assert.equal((await put(one, 'report', large)).status, 413);
        // The length of a chunked body is unknown in advance. The answer may be lost when the server closes the connection.
        const { answers } = await outpost.raw(Buffer.concat([Buffer.from(`PUT /api/v1/jobs/${one.job}/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${one.token}\r\nTransfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n`), large, Buffer.from('\r\n0\r\n\r\n')]));
        assert.ok(answers.length === 0 || answers[0] === 413, `${answers}`);
        const whole = await put(one, 'report', large.subarray(0, 32 * MIB));
        assert.equal(whole.status, 200, whole.text);
        const zipped = gzipSync(Buffer.alloc(32 * MIB, ' '));
        for (const [i, headers] of [{ 'content-type': 'text/html' }, { 'content-type': 'multipart/form-data; boundary=x' }, { 'content-type': 'application/json; charset=utf-16' }, { 'content-type': `${'x/'.repeat(500)}` }].entries())
          assert.equal((await put(await running(i), 'report', text, { headers })).status, 200, JSON.stringify(headers));
        for (const [i, coding] of ['gzip', 'br', 'deflate', 'gzip, gzip', 'zstd', 'x'].entries()) {
          const packed = await running(i);
          const memory = await peakMemory(async () => assert.equal((await put(packed, 'report', zipped, { headers: { 'content-encoding': coding } })).status, 400, coding));
          assert.ok(memory < 600, `${coding}: ${memory} MiB`);
        }
      });

      test('each of 20 simultaneous documents is accepted or gets 503 with Retry-After, in bounded memory', async () => {
        const jobs = await Promise.all(Array.from({ length: 20 }, (_, i) => running(i % labs.length)));
        const body = `${junit('<testcase name="a"/>')}${' '.repeat(25 * MIB)}`;
        const refused = [];
        const memory = await peakMemory(async () => {
          await Promise.all(jobs.map(async (one) => {
            const answer = await put(one, 'report', body).catch(() => null); // refused during the upload
            if (answer?.status === 200) return;
            refused.push(one);
            if (answer?.status === 408) return; // a busy machine is slower than the deadline of a body
            if (answer) assert.deepEqual([answer.status, Number(answer.headers['retry-after']) > 0], [503, true], answer.text);
          }));
        });
        assert.ok(memory < 600, `${memory} MiB`);
        for (const one of refused) assert.equal((await put(one, 'report', body)).status, 200);
      });
    });

    test('bodies that never end do not block other vendors', async () => {
      const jobs = await Promise.all(labs.map((_, lab) => running(lab)));
      const [slow] = jobs;
      const begin = Buffer.alloc(31 * MIB, ' ');
      // One vendor sends as many large bodies as the service can hold, and many small ones.
      const sockets = await Promise.all(Array.from({ length: 60 }, async (_, i) => {
        const socket = net.connect(outpost.port, '127.0.0.1').on('error', () => {});
        await once(socket, 'connect');
        socket.write(`PUT /api/v1/jobs/${slow.job}/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${slow.token}\r\nContent-Length: ${32 * MIB}\r\n\r\n{`);
        return new Promise((resolve) => {
          socket.on('close', () => resolve(socket)).resume();
          socket.write(begin.subarray(0, i < 6 ? begin.length : MIB / 4), () => resolve(socket));
        });
      }));
      for (const one of jobs.slice(1)) {
        const answer = await put(one, 'report', own(entry()).padEnd(MIB));
        assert.equal(answer.status, 200, answer.text);
      }
      for (const socket of sockets) socket.destroy();
      await until(async () => (await put(slow, 'report', own(entry()))).status === 200, { timeout: 90_000, interval: 1000, what: 'the cut bodies are freed' });
    });
  });

  test('the service\'s log contains no control character', () => {
    for (const { line } of outpost.log) assert.doesNotMatch(line, /[\x00-\x1f\x7f-\x9f]/, JSON.stringify(line));
  });
});
