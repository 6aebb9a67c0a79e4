// The compute-platforms page: a vendor's statements come from its file, and the tested versions only from its reports. The
// daemon's clock moves while it is down.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { rsaKey } from '../github/keys.mjs';
import { fakeSha, pullRequestOf, push } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { post, workflowOf } from '../github/vendors.mjs';
import { HOSTILE } from './lib/hostile.mjs';
import { MovedClock, notMovable } from './lib/moved-clock.mjs';
import { OUTPOSTD, Outpost, notBuilt, until } from './lib/outpost.mjs';

const run = promisify(execFile);
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const UPSTREAM = 'pytorch/pytorch';
const BEGAN = Math.floor(Date.now() / 1000) * 1000; // shown times have whole seconds
const DAY = 86400_000; // milliseconds

const platform = {
  integration: 'out-of-tree', device: 'npu', summary: 'A chip.', max_age: '14d',
  extension: { package: 'torch-npu', import: 'torch_npu', autoload: true },
  install: [
    { build: 'stable', torch: '2.9.1', os: ['linux', 'windows'], package: 'pip', platform: ['CANN 8.2', 'CANN 8.1'], commands: ['pip install torch==2.9.1', 'pip install torch-npu==2.9.1'] },
    { build: 'nightly', os: 'linux', package: 'source', platform: 'CANN 8.2', language: ['python', 'cpp'], commands: 'git clone x\nmake\n' },
  ],
  get_started: { code: 'import torch\nx = torch.ones(2, device="npu")' },
};
const accelerator = (name, more = {}) => ({
  name, title: name.toUpperCase(), level: 'L2', trust: 'anyone', triggers: { push: { branches: ['main'] }, pull_request: {} },
  runners: [{ name: 'ci', github: { repository: `vendor/${name}` } }], platform, ...more,
});
const REQUIRED = { required: { must_pass: ['unit/smoke'] } };

// One service with its own clock.
class Story {
  static async begin(accelerators, { isClockMoved = false } = {}) {
    const story = new Story();
    story.rig = await startRig({ repositories: [{ name: UPSTREAM }, ...accelerators.map(({ name }) => ({ name: `vendor/${name}` }))] });
    story.outpost = await Outpost.prepare({ rig: story.rig, accelerators, config: REQUIRED });
    if (isClockMoved) {
      story.clock = await MovedClock.of(story.outpost);
      story.outpost.options.env = story.clock.env;
    }
    await story.outpost.spawn();
    story.tokens = {};
    for (const { name } of accelerators) story.tokens[name] = (await story.outpost.ctl('token', 'issue', name)).stdout.trim();
    return story;
  }

  async end() {
    try {
      assert.deepEqual(this.rig.violations(), []);
    } finally {
      await this.outpost.close();
      await this.rig.close();
      MovedClock.right();
    }
  }

  // Stops the service and starts it so many days later.
  async at(days) {
    await this.outpost.stop();
    await this.clock.set(days * DAY);
    await this.outpost.spawn();
  }

  async push(title) {
    const before = this.tip ?? fakeSha('before all');
    this.tip = fakeSha(title);
    await this.rig.deliver('push', push({ before, after: this.tip, message: title }));
    return `commits/${this.tip}`;
  }

  // Reports a job and its report document with the environment.
  async report(target, name, environment, status) {
    const view = await this.outpost.waitForApi(target, (one) => one.accelerators.some((a) => a.name === name && a.dispatches.length > 0), { timeout: 60_000 });
    const { id } = view.accelerators.find((a) => a.name === name).dispatches[0];
    const job = { workflow: 'ci', job: environment.torch, run_id: `${target}-${environment.torch}`, conclusion: status === 'PASS' ? 'success' : 'failure' };
    const answer = await post(`${this.outpost.url}/api/v1/dispatches/${id}/jobs`, this.tokens[name], workflowOf(job, 'completed'));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const put = await fetch(`${this.outpost.url}/api/v1/jobs/${answer.body.job}/report`, {
      method: 'PUT', headers: { authorization: `Bearer ${this.tokens[name]}`, 'content-type': 'application/json' },
      body: JSON.stringify({ schema: 1, environment, tests: [{ suite: 'unit', name: 'smoke', status }] }),
    });
    assert.equal(put.status, 200, await put.text());
    return answer.body.job;
  }

  platform(name = 'npu') { return this.outpost.api(`platforms/${name}`); }
}

const environment = (torch, os = 'Ubuntu 22.04') => ({ torch, os, extension: { name: 'torch_npu', version: '2.9.1rc1' } });
const NIGHTLY = environment('2.10.0a0+gitabc');
const STABLE = environment('2.9.1+cpu');
const offers = ({ install }) => install.map(({ build, os, offered }) => `${build} ${os} ${offered}`);

describe('the state of a platform', { skip: notBuilt || notMovable }, () => {
  test('is untested, tested, red or stale, and only green and fresh installations are offered', async () => {
    const story = await Story.begin([accelerator('npu'), accelerator('gpu')], { isClockMoved: true });
    try {
      assert.equal((await story.platform()).state, 'untested');
      let target = await story.push('first');
      await story.report(target, 'npu', NIGHTLY, 'PASS');
      let npu = await story.platform();
      assert.equal(npu.state, 'tested');
      assert.match(npu.state_text, /^must-pass tests passed (less than a|\d) minutes? ago$/);
      assert.deepEqual(offers(npu), ['stable linux false', 'stable linux false', 'stable windows false', 'stable windows false', 'nightly linux true', 'nightly linux true']);
      assert.equal(npu.install[0].why_not, 'PyTorch 2.9.1 was not tested');

      const job = await story.report(target, 'npu', STABLE, 'PASS');
      npu = await story.platform();
      assert.deepEqual(offers(npu).slice(0, 4), ['stable linux true', 'stable linux true', 'stable windows false', 'stable windows false']);
      assert.equal(npu.install[2].why_not, 'PyTorch 2.9.1 was not tested on Windows');
      assert.equal(npu.tested.length, 2);
      const stable = npu.tested.find(({ build }) => build === 'stable');
      const { at, ...rest } = stable;
      assert.ok(Date.parse(at) >= BEGAN && Date.parse(at) <= Date.now(), at);
      assert.deepEqual(rest, { build: 'stable', torch: '2.9.1+cpu', os: 'Ubuntu 22.04', result: 'green', must_pass: { passed: 1, failed: 0, missing: 0, total: 1 },
        red_since: null, is_stale: false, job, url: `${story.outpost.url}/jobs/${job}`, head_sha: story.tip, extension_version: '2.9.1rc1' });

      // Results of a pull request do not change the platform's state.
      const pull = story.rig.openPull(UPSTREAM, { number: 7, author: 'alice', association: 'MEMBER' });
      await story.rig.deliver('pull_request', pullRequestOf('opened', pull));
      await story.report('pulls/7', 'npu', STABLE, 'FAIL');
      assert.equal((await story.platform()).state, 'tested');

      await story.at(3);
      target = await story.push('second');
      await story.report(target, 'npu', STABLE, 'FAIL');
      await story.at(6);
      npu = await story.platform();
      assert.equal(npu.state, 'red');
      assert.equal(npu.state_text, 'must-pass tests have been red for 3 days');
      assert.equal(offers(npu)[0], 'stable linux false');
      assert.equal(npu.install[0].why_not, 'must-pass tests with PyTorch 2.9.1 have been red for 3 days');
      assert.equal(offers(npu)[4], 'nightly linux true');
      target = await story.push('third');
      await story.report(target, 'gpu', STABLE, 'PASS');
      const { platforms, choices } = await story.outpost.api('platforms');
      assert.deepEqual(platforms.map(({ name, state }) => `${name} ${state}`), ['gpu tested', 'npu red']);
      assert.deepEqual(choices, { build: ['stable', 'nightly'], os: ['linux', 'windows'], package: ['pip', 'source'], language: ['python', 'cpp'],
        platform: ['gpu', 'npu'].map((name) => ({ name, title: name.toUpperCase(), versions: ['CANN 8.2', 'CANN 8.1'] })) });

      await story.at(30);
      npu = await story.platform();
      assert.equal(npu.state, 'stale');
      assert.equal(npu.state_text, 'last tested 27 days ago');
      assert.ok(npu.tested.every(({ is_stale }) => is_stale));
      assert.ok(npu.install.every(({ offered }) => !offered));
      assert.equal(npu.install[4].why_not, 'the nightly was last tested 30 days ago');
    } finally {
      await story.end();
    }
  });
});

describe('the text of a vendor', { skip: notBuilt }, () => {
  test('is shown unchanged, but not for L1 or without a platform', async () => {
    const example = { ...platform, example: true };
    const story = await Story.begin([accelerator('npu'), accelerator('zeta', { platform: example }), accelerator('quiet', { level: 'L1' }), accelerator('bare', { platform: undefined })]);
    try {
      const { platforms } = await story.outpost.api('platforms');
      assert.deepEqual(platforms.map(({ name, is_example }) => `${name} ${is_example}`), ['npu false', 'zeta true']);
      for (const name of ['quiet', 'bare', 'none', '..%2f', '%3Cb%3E']) assert.equal((await story.outpost.get(`/api/v1/platforms/${name}`)).status, 404, name);
      const npu = await story.platform();
      assert.deepEqual(platforms[0], npu);
      assert.deepEqual(npu.extension, { package: 'torch-npu', import: 'torch_npu', autoload: true, url: null });
      assert.deepEqual(npu.install[5].commands, ['git clone x', 'make']);
      assert.equal(npu.url, `${story.outpost.url}/platforms/npu`);

      // The snippet of docs/platforms.md selects a command.
      const page = await fs.readFile(path.join(root, 'docs/platforms.md'), 'utf8');
      const snippet = /```js\n([^]*?)```/.exec(page)[1].replace('https://outpost.example.org', story.outpost.url);
      const command = await new (Object.getPrototypeOf(async () => {}).constructor)(`${snippet}\nreturn command;`)();
      assert.equal(command('stable', 'linux', 'pip', 'npu', 'CANN 8.2', 'python'), 'Not offered: PyTorch 2.9.1 was not tested.');
      assert.equal(command('stable', 'macos', 'pip', 'npu', 'CANN 8.2', 'python'), 'There is no such combination.');
      const target = await story.push('first');
      await story.report(target, 'npu', STABLE, 'PASS');
      await until(async () => (await story.platform()).state === 'tested');
      const again = await new (Object.getPrototypeOf(async () => {}).constructor)(`${snippet}\nreturn command;`)();
      assert.equal(again('stable', 'linux', 'pip', 'npu', 'CANN 8.2', 'python'), 'pip install torch==2.9.1\npip install torch-npu==2.9.1');

      // The texts of a report may be hostile, too.
      await story.report(target, 'npu', environment('</script><b>', '--><img src=x>'), 'FAIL');
      const { tested } = await story.platform();
      assert.ok(tested.some(({ torch, os, build }) => torch === '</script><b>' && os === '--><img src=x>' && build === 'nightly'));
      const html = await fetch(`${story.outpost.url}/platforms/npu`, { headers: { accept: 'text/html' } });
      assert.equal(html.status, 200);
      const text = await html.text();
      assert.ok(!text.includes('</script><b>') && !text.includes('--><img'), 'a vendor\'s text is no markup');
    } finally {
      await story.end();
    }
  });

  test('is refused or harmless if it is hostile', async () => {
    const outpost = await Outpost.prepare({ wait: false });
    const file = path.join(outpost.dir, 'accelerators.d', 'npu.yml');
    await fs.writeFile(path.join(outpost.dir, 'app.pem'), rsaKey());
    const check = async () => run(OUTPOSTD, ['-c', outpost.configFile, '--check']).then(() => '', ({ stdout, stderr }) => stdout + stderr);
    try {
      const made = [];
      for (const [field, make] of [['summary', (text) => ({ ...platform, summary: text })],
        ['commands', (text) => ({ ...platform, install: [{ ...platform.install[0], commands: [text] }] })],
        ['code', (text) => ({ ...platform, get_started: { code: text } })]]) {
        for (const text of HOSTILE) {
          const name = `${field}-${made.length}`;
          made.push({ name, field, text });
          await fs.writeFile(path.join(outpost.dir, 'accelerators.d', `${name}.yml`), stringify(accelerator(name, { platform: make(text) })));
        }
      }
      const output = (await check()).split('\n').filter(Boolean);
      for (const { name, field, text } of made) {
        const lines = output.filter((line) => line.includes(`/${name}.yml:`));
        // U+0085, U+2028 and U+2029 are line breaks in YAML and become blanks.
        const isUnseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164\ufeff\u{e0000}-\u{e007f}]/u.test(text);
        for (const line of lines) assert.match(line, /:\d+: (YAML: |a control byte|platform\.)/, JSON.stringify(text));
        if (isUnseen && field !== 'summary') assert.notDeepEqual(lines, [], `an invisible character is accepted: ${JSON.stringify(text)}`);
        if (/^[\x20-\x7e]+$/.test(text) && text.length < 300 && !/npu/.test(text)) assert.deepEqual(lines, [], JSON.stringify(text));
        await fs.rm(path.join(outpost.dir, 'accelerators.d', `${name}.yml`));
      }
      for (const line of output) assert.ok(!/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(line), JSON.stringify(line));
      // An incomplete block is refused with the missing key and its place.
      for (const key of ['integration', 'device', 'summary', 'install', 'extension']) {
        const { [key]: gone, ...half } = platform;
        await fs.writeFile(file, JSON.stringify(accelerator('npu', { platform: half }), null, 1));
        assert.match(await check(), new RegExp(`npu\\.yml:\\d+: .*platform\\.${key}`), key);
      }
    } finally {
      await outpost.close();
    }
  });

  test('outpostd accepts the examples in docs and config/platforms', async () => {
    const outpost = await Outpost.prepare({ wait: false, config: { infra: { repository: 'o/infra' } } });
    await fs.writeFile(path.join(outpost.dir, 'app.pem'), rsaKey());
    try {
      const page = await fs.readFile(path.join(root, 'docs/platforms.md'), 'utf8');
      const block = parse(/```yaml\n([^]*?)```/.exec(page)[1]);
      await fs.writeFile(path.join(outpost.dir, 'accelerators.d', 'of-the-page.yml'), JSON.stringify(accelerator('of-the-page', block)));
      const names = (await fs.readdir(path.join(root, 'config/platforms'))).sort();
      assert.deepEqual(names, ['ascend-npu.yml', 'cpu.yml', 'cuda.yml', 'gaudi-hpu.yml', 'rocm.yml', 'tpu.yml', 'xpu.yml']);
      for (const name of names) await fs.copyFile(path.join(root, 'config/platforms', name), path.join(outpost.dir, 'accelerators.d', name));
      await run(OUTPOSTD, ['-c', outpost.configFile, '--check']);
    } finally {
      await outpost.close();
    }
  });
});
