// /metrics as Prometheus reads it. The shipped alerts and the dashboard use only metrics that exist.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pullRequestOf } from '../github/payloads.mjs';
import { startRig } from '../github/rig.mjs';
import { Outpost, notBuilt, until } from './lib/outpost.mjs';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const at = (...parts) => path.join(root, ...parts);
const noPromtool = spawnSync('promtool', ['--version']).error ? 'promtool is not installed (Debian: prometheus)' : false;
const promtool = (args, input) => spawnSync('promtool', args, { input, encoding: 'utf8', cwd: root });

// All metrics in an expression. The pattern excludes labels, functions and keywords of PromQL by their neighbours.
const WORDS = new Set(['and', 'or', 'unless', 'by', 'le', 'without', 'on', 'ignoring', 'sum', 'max', 'min', 'time', 'rate', 'increase', 'deriv', 'predict_linear', 'histogram_quantile', 'count', 'avg']);
const metricsOf = (expression) => expression
  .replaceAll(/\{[^}]*\}/g, '').replaceAll(/\[[^\]]*\]/g, '').replaceAll(/\b(by|without|on)\s*\([^)]*\)/g, '').replaceAll(/"[^"]*"/g, '')
  .match(/[a-zA-Z_:][\w:]*/g)?.filter((word) => !WORDS.has(word) && word !== 'up') ?? [];

const BEGAN_S = Math.floor(Date.now() / 1000) - 1;

describe('/metrics', { skip: notBuilt }, () => {
  let rig;
  let outpost;
  let text;
  let samples; // name with labels → value
  let families; // name → type

  before(async () => {
    rig = await startRig();
    outpost = await Outpost.start({ rig, accelerators: [
      { name: 'chip', title: 'Chip', level: 'L2', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] },
      { name: 'quiet', title: 'Quiet', level: 'L1', trust: 'anyone', triggers: { pull_request: {} }, runners: [{ name: 'ci', github: { repository: 'intel/quiet' } }] },
    ] });
    await rig.deliver('pull_request', pullRequestOf('opened', rig.openPull('pytorch/pytorch', { number: 7 })));
    await outpost.waitForApi('pulls/7', (v) => v.accelerators[0]?.dispatches[0]?.state === 'sent', { timeout: 60_000 });
    const answer = await until(async () => {
      const now = await outpost.get('/metrics');
      return /outpost_dispatch_seconds_count [1-9]/.test(now.text) && now;
    }, { timeout: 60_000 });
    assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    ({ text } = answer);
    samples = new Map(text.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
    families = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  });
  after(async () => {
    await outpost?.close();
    await rig?.close();
  });

  const familyOf = (sample) => {
    const name = sample.split('{')[0];
    return families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
  };

  test('each family has one HELP and one TYPE before its samples', () => {
    for (const name of families.keys()) assert.equal(text.split(`# TYPE ${name} `).length, 2, name);
    for (const name of families.keys()) assert.match(text, new RegExp(`^# HELP ${name} \\S.*[.]$`, 'm'), name);
    for (const [sample, value] of samples) {
      assert.ok(families.has(familyOf(sample)), sample);
      assert.ok(Number.isFinite(value), sample);
      assert.ok(text.indexOf(`# TYPE ${familyOf(sample)} `) < text.indexOf(`\n${sample} `), sample);
    }
    for (const [name, type] of families) assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.equal(samples.size, text.split('\n').filter((line) => line && !line.startsWith('#')).length, 'each sample occurs once');
  });

  test('there are metrics of accelerators, effects, durations and the process', () => {
    assert.equal(samples.get('outpost_accelerator_red_since_timestamp_seconds{accelerator="chip"}'), 0);
    assert.equal(samples.get('outpost_accelerator_queue{accelerator="chip"}'), 0);
    assert.equal(samples.get('outpost_accelerator_experiments{accelerator="chip",state="expired"}'), 0);
    assert.ok(!text.includes('quiet'), 'an accelerator at L1 has no metrics');
    assert.equal(samples.get('outpost_outbox_unsent{kind="github_dispatch"}'), 0);
    assert.equal(samples.get('outpost_plan_seconds_count'), 1);
    assert.ok(samples.get('outpost_dispatch_seconds_count') >= 1);
    assert.ok(samples.get('outpost_http_request_seconds_count{kind="webhook"}') >= 1);
    assert.ok(samples.get('outpost_http_request_seconds_count{kind="api"}') >= 1);
    assert.ok(samples.get('outpost_store_commit_seconds_count') >= 1);
    assert.ok(samples.get('process_open_fds') > 5);
    assert.ok(samples.get('process_open_fds') < samples.get('process_max_fds'));
    assert.ok(samples.get('process_resident_memory_bytes') > 1e6);
    assert.ok(samples.get('process_cpu_seconds_total') > 0);
    assert.ok(samples.get('process_start_time_seconds') >= BEGAN_S && samples.get('process_start_time_seconds') <= Date.now() / 1000 + 1);
    assert.ok(samples.get('outpost_disk_free_bytes') <= samples.get('outpost_disk_size_bytes'));
    assert.match(text, /^outpost_build_info\{version="[^"]+"\} 1$/m);
  });

  test('histograms are cumulative and end with their count', () => {
    for (const [name, type] of families) {
      if (type !== 'histogram') continue;
      const series = new Map();
      for (const [sample, value] of samples) {
        const [, labels] = new RegExp(`^${name}_bucket\\{(.*?),?le="[^"]*"\\}$`).exec(sample) ?? [];
        if (labels !== undefined) series.set(labels, [...(series.get(labels) ?? []), value]);
      }
      assert.ok(series.size > 0, name);
      for (const [labels, values] of series) {
        assert.deepEqual(values, values.toSorted((a, b) => a - b), name);
        assert.equal(values.at(-1), samples.get(`${name}_count${labels && `{${labels}}`}`), name);
      }
    }
  });

  test('promtool accepts the metrics', { skip: noPromtool }, () => {
    const { status, stdout, stderr } = promtool(['check', 'metrics'], text);
    assert.equal(status, 0, stdout + stderr);
  });

  test('each alert uses metrics that exist', { skip: noPromtool }, async () => {
    assert.equal(promtool(['check', 'rules', 'config/prometheus/outpost.rules.yml']).status, 0);
    const rules = await fs.readFile(at('config/prometheus/outpost.rules.yml'), 'utf8');
    const expressions = [...rules.matchAll(/^ +expr: (.*)$/gm)].map(([, expr]) => expr);
    assert.ok(expressions.length >= 15);
    for (const expr of expressions)
      for (const name of metricsOf(expr)) assert.ok(families.has(familyOf(name)), `${name} in ${expr}`);
  });

  test('each alert has a test and fires only when it should', { skip: noPromtool }, async () => {
    const files = ['tests/prometheus/outpost.test.yml', 'tests/prometheus/accelerators.test.yml'];
    const { status, stdout, stderr } = promtool(['test', 'rules', ...files]);
    assert.equal(status, 0, stdout + stderr);
    const [rules, ...tests] = await Promise.all(['config/prometheus/outpost.rules.yml', ...files].map((file) => fs.readFile(at(file), 'utf8')));
    for (const [, name] of rules.matchAll(/alert: (\w+)/g)) assert.ok(tests.some((text_) => text_.includes(name)), `${name} is not tested`);
  });

  test('the Grafana dashboard uses metrics that exist', async () => {
    const dashboard = JSON.parse(await fs.readFile(at('config/grafana-outpost.json'), 'utf8'));
    assert.deepEqual([dashboard.title, typeof dashboard.uid, dashboard.id], ['Outpost', 'string', undefined]);
    const panels = dashboard.panels.filter(({ type }) => type !== 'row');
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
    for (const { title, gridPos: { x, w }, datasource, targets } of panels) {
      assert.ok(x + w <= 24, title);
      assert.equal(datasource.uid, '${datasource}', title);
      for (const { expr } of targets) {
        const names = metricsOf(expr);
        assert.ok(names.length > 0, expr);
        for (const name of names) assert.ok(families.has(familyOf(name)), `${name} in "${title}"`);
      }
    }
    assert.ok(panels.length >= 20);
  });
});
