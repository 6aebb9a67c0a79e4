// The main job on real input, on loopback, in under two minutes: a stand-in GitHub, the built daemon, four vendors, a
// push to main that shows what was red before, and one pull request that one of them builds and tests. Every line
// printed is something that was seen to happen.
//
// usage: node demo/demo.mjs BUILD_FOLDER   (make demo)
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import readline from 'node:readline';

const build = path.resolve(process.argv[2] ?? 'build/release');
process.env.OUTPOSTD = path.join(build, 'outpostd');
process.env.OUTPOSTCTL = path.join(build, 'outpostctl');
process.env.OUTPOST_RUNNER = path.join(build, 'outpost-runner');
const [{ startRig }, { startIssuer }, { pullRequestOf, push }, { startDispatchVendor, startSilentVendor, startWebhookVendor }, { Outpost, until }, { Machine }] = await Promise.all([
  import('../tests/github/rig.mjs'), import('../tests/github/oidc.mjs'), import('../tests/github/payloads.mjs'),
  import('../tests/github/vendors.mjs'), import('../tests/integration/lib/outpost.mjs'), import('../tests/kill/machine.mjs'),
]);

const UPSTREAM = 'pytorch/pytorch';
const NUMBER = 151234;
const SECRET = 'shared by Outpost and the lab';
const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
const begun = Date.now();
const step = (title) => console.log(`\n${paint('1', title)}`);
const say = (text, at = Date.now()) => console.log(`  ${paint('2', `${((at - begun) / 1000).toFixed(1).padStart(5)} s`)}  ${text}`);

const test = (name, status, message) => ({ suite: 'model', name, status, duration: 12.5, ...(message && { message }) });

// What the vendors' tests say, of main and of the change. On main Lab HPU has Qwen broken already, and whisper fails
// until it is tried again; the change breaks llama3 there. mixtral is broken on main too, but was not run there. bert on
// Ascend NPU has an issue. Lab HPU takes reruns: on the change whisper passes then, and mixtral fails on the merge base.
const ISSUE = 'https://github.com/pytorch/pytorch/issues/150001';
const QWEN = test('Qwen', 'FAIL', 'AssertionError: expected 0.7071, got 0.7068 | tolerance 1e-4');
const WHISPER = test('whisper', 'FAIL', 'TimeoutError: the queue of device 3 did not drain');
const isPush = ({ event_type }) => event_type === 'push';
const npuScript = (body) => [{ workflow: 'npu', job: 'models', hold: isPush(body) ? 0 : 300, conclusion: isPush(body) ? 'success' : 'failure', tests: [
  test('llama3', 'PASS'), test('Qwen', 'PASS'), isPush(body) ? test('bert', 'SKIP') : test('bert', 'FAIL', 'RuntimeError: no kernel for aten::_nested_tensor'),
] }];
const LLAMA3 = test('llama3', 'FAIL', 'RuntimeError: addmm_relu: no kernel for HPU');
const MIXTRAL = test('mixtral', 'FAIL', 'RuntimeError: shape mismatch in expert routing: [8, 4096] and [2, 4096]');
function rerun({ side, tests }) {
  const results = side === 'head' ? [LLAMA3, QWEN, MIXTRAL, test('whisper', 'PASS')] : [test('llama3', 'PASS'), QWEN, MIXTRAL, WHISPER];
  return results.filter(({ suite, name }) => tests.includes(`${suite}/${name}`));
}
const labScript = (body) => {
  const step = { workflow: 'lab', job: 'nightly-models', conclusion: 'failure' };
  if (body.event_type === 'experiment') return [{ ...step, hold: 300, tests: rerun(body.outpost.experiment) }];
  if (!isPush(body)) return [{ ...step, hold: 600, tests: [LLAMA3, QWEN, WHISPER, MIXTRAL] }];
  return [WHISPER, test('whisper', 'PASS')].map((whisper, i) => ({ ...step, run_attempt: i + 1, tests: [test('llama3', 'PASS'), QWEN, whisper] }));
};

// Prints the requests to vendors and from them as they happen. While a pull request is being opened, they wait for step 5.
let waiting = [];
let isPrinting = true;
const print = (text) => (isPrinting ? say(text) : waiting.push([text, Date.now()]));
function startPrinting() {
  isPrinting = true;
  for (const [text, at] of waiting) say(text, at);
  waiting = [];
}

// A vendor's log, in words.
const follow = (who) => ({ what, event, delivery, valid, job, status, answer }) => {
  if (what === 'webhook' && event === 'red') print(`signed notice to ${who}: it is red on main`);
  else if (what === 'webhook') print(`signed webhook to ${who}, signature ${valid ? 'verified' : 'WRONG'}, dispatch ${delivery}`);
  if (what === 'report') print(`${who} reports ${job} ${status === 'completed' ? 'finished' : 'started'}: ${answer === 200 ? 'recorded' : `answered ${answer}`}`);
};

function startNpu(rig, issuer, outpostUrl) {
  const vendor = startDispatchVendor({
    rigUrl: rig.url, repository: 'Ascend/pytorch', tokenUrl: issuer.tokenUrl, callbackUrl: `${outpostUrl}/github/callback`, log: follow('Ascend NPU'),
    script: npuScript,
  });
  vendor.on('dispatch', ({ client_payload: { outpost } }) => print(`repository_dispatch to Ascend/pytorch, dispatch ${outpost.dispatch_id}`));
  return vendor;
}

// The change as a commit in a repository that git can fetch from: demo/change is what the pull request adds.
function commitChange(folder) {
  const git = (...args) => execFileSync('git', ['-C', folder, '-c', 'user.name=octocat', '-c', 'user.email=octocat@example.org', ...args], { encoding: 'utf8' }).trim();
  cpSync(new URL('change', import.meta.url), folder, { recursive: true });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  git('add', '.');
  git('commit', '--quiet', '-m', 'Fuse addmm with relu');
  return git('rev-parse', 'HEAD');
}

function hasBubblewrap() {
  try {
    execFileSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

// What main looks like before the change: two vendors test each push, and an issue is registered for a test.
async function testBase(rig, outpost) {
  const before = rig.world.branchTip(UPSTREAM);
  const sha = rig.push(UPSTREAM, { files: ['torch/csrc/autograd/engine.cpp'] });
  await rig.deliver('push', push({ before, after: sha }));
  const all = ({ accelerators }) => ['ascend-npu', 'lab-hpu'].every((name) => accelerators.find((one) => one.name === name)?.dispatches[0]?.state === 'done');
  const { verdicts } = await outpost.waitForApi(`commits/${sha}`, (view) => all(view) && view.verdicts.some(({ test: name, status }) => name === 'whisper' && status === 'PASS'), { timeout: 20_000, what: 'the push is tested' });
  const red = verdicts.filter(({ status }) => status === 'FAIL').map(({ suite, test: name }) => `${suite}/${name}`);
  say(`${sha.slice(0, 7)} of main is tested by Ascend NPU and Lab HPU: red is ${red.join(', ')}; model/whisper failed, and passed when tried again`);
  const known = await outpost.ctl('known', 'add', '--test', 'model/bert', '--accelerator', 'ascend-npu', '--url', ISSUE);
  if (known.code !== 0) throw new Error(known.stderr);
  say(`outpostctl known add: ${known.stdout.trim()}`);
}

// A machine that nothing can reach: outpost-runner asks for work, fetches the commit, builds and tests it.
async function startFarm(outpost, source, sandbox) {
  const machine = await Machine.make({ outpost, name: 'farm-1', accelerator: 'farm-xpu', dir: path.join(outpost.dir, 'farm-1'), config: {
    labels: ['xpu', 'linux'], checkout: { git_url: source, depth: 1 }, sandbox,
    steps: [{ name: 'build', run: './build.sh', timeout: '1m' }, { name: 'test', run: './test "$OUTPOST_RESULTS/unit.xml"', timeout: '1m' }],
    report: { files: ['results/*.xml'], format: 'junit' },
  } });
  await machine.start();
  return machine;
}

async function main() {
  const source = mkdtempSync(path.join(os.tmpdir(), 'outpost-demo-change-'));
  const headSha = commitChange(source);
  step('1  A GitHub that runs offline, and two vendors with a CI of their own');
  const [rig, issuer] = await Promise.all([startRig(), startIssuer()]);
  say(`GitHub stand-in at ${rig.url}; each request is checked against GitHub's own API description`);
  const lab = await startWebhookVendor({
    secret: SECRET,
    script: labScript,
    log: follow('Lab HPU'),
  });
  const silent = await startSilentVendor({ secret: SECRET, log: follow('Quiet TPU') });
  say(`Lab HPU takes signed webhooks at ${lab.url}`);
  say(`Quiet TPU takes them at ${silent.url} and will never report`);

  step('2  outpostd, with SQLite in an empty folder');
  const triggers = { pull_request: {}, push: { branches: ['main'] } };
  const outpost = await Outpost.start({
    rig, issuer,
    accelerators: [
      { name: 'ascend-npu', title: 'Ascend NPU', vendor: 'Huawei', level: 'L2', links: { docs: 'https://ascend.example/docs' }, triggers, runners: [{ name: 'ci', github: { repository: 'Ascend/pytorch' } }] },
      { name: 'lab-hpu', title: 'Lab HPU', vendor: 'A lab', level: 'L2', oncall: ['alice'], triggers, runners: [{ name: 'lab', reruns: 'tests', webhook: { url: lab.url, secret: 'hook' } }] },
      { name: 'quiet-tpu', title: 'Quiet TPU', vendor: 'A silent one', level: 'L2', runners: [{ name: 'lab', webhook: { url: silent.url, secret: 'hook' } }], deadlines: { acknowledge: '1s', start: '2s', finish: '3s' } },
      { name: 'farm-xpu', title: 'Farm XPU', vendor: 'Behind a firewall', level: 'L2', runners: [{ name: 'farm', pull: { labels: ['xpu'], max_parallel: 2 } }] },
    ],
    secrets: { 'lab-hpu': { hook: SECRET }, 'quiet-tpu': { hook: SECRET } },
    config: { comment: { min_interval: '1s' }, log: { level: 'info' } },
  });
  say(`ready at ${outpost.url}; four accelerators are registered`);
  const npu = startNpu(rig, issuer, outpost.url);
  say('Ascend NPU listens in its repository Ascend/pytorch');
  const isSandboxed = hasBubblewrap();
  const farm = await startFarm(outpost, source, isSandboxed ? 'bubblewrap' : 'none');
  say(`Farm XPU's machine opens no port: outpost-runner asks for work; its steps run ${isSandboxed ? 'in bubblewrap, without network' : 'without a sandbox: bubblewrap does not work here'}`);

  step('3  main before the change: pushes are tested, so that there is something to compare with');
  await testBase(rig, outpost);

  isPrinting = false;
  step(`4  A pull request is opened in ${UPSTREAM}`);
  const pull = rig.openPull(UPSTREAM, { number: NUMBER, headSha, title: 'Fuse addmm with relu', files: ['aten/src/ATen/native/LinearAlgebra.cpp'] });
  const payload = pullRequestOf('opened', pull);
  const delivery = await rig.deliver('pull_request', payload);
  say(`GitHub sends pull_request.opened, ${Buffer.byteLength(JSON.stringify(payload)).toLocaleString('en')} bytes, signed; outpostd answers ${delivery.status_code}: it is on disk`);
  const again = await rig.deliver('pull_request', payload, { guid: delivery.guid });
  say(`GitHub sends the same delivery again; outpostd answers ${again.status_code}: ${JSON.parse(again.response?.body ?? '{}').status ?? ''}`);

  step('5  It goes out, once to each, and the first one begins');
  startPrinting();
  await until(() => npu.dispatches.length > 1 && lab.events.length > 1 && silent.events.length > 0, { timeout: 10_000 });

  step('6  The others report, and one does not');
  const view = await outpost.waitForApi(`pulls/${NUMBER}`, (one) => one.accelerators.every(({ dispatches }) => ['done', 'expired'].includes(dispatches[0].state)), { timeout: 60_000, what: 'every vendor has reported or missed its deadline' });
  for (const one of view.accelerators) say(`${one.title}: ${one.dispatches[0].state}${one.jobs.length === 0 ? ', without a report' : ''}`);

  step('7  What Farm XPU\'s machine did: the log, as it was streamed');
  const [job] = view.accelerators.find(({ name }) => name === 'farm-xpu').jobs;
  const { text: log } = await outpost.get(`/api/v1/jobs/${job.id}/log`);
  console.log(`\n${log.trimEnd().split('\n').map((line) => paint('2', `  │ ${line}`)).join('\n')}`);

  step('8  What evidence did not decide runs again, on the head and on its merge base');
  await expectAttributions(outpost);

  step('9  The comment on the pull request');
  const bot = () => rig.comments(UPSTREAM, NUMBER).filter(({ author }) => author === rig.bot);
  const normal = (text) => text.replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z| UTC)?/g, 'TIME').trim();
  const preview = async () => normal((await outpost.ctl('comment', 'preview', String(NUMBER))).stdout);
  await until(async () => bot().length > 0 && normal(bot()[0].body) === await preview(), { timeout: 20_000, what: 'the comment says what is known' });
  say(`GitHub has ${bot().length} comment of ${rig.bot}, ${bot()[0].body.length.toLocaleString('en')} characters; this is how it reads:`);
  const columns = Math.min(process.stdout.columns ?? 100, 120);
  const rendered = await fetchPreview(outpost, columns);
  console.log(`\n${rendered.split('\n').map((line) => `  ${line}`).join('\n')}`);

  const sent = rig.dispatches({ repository: 'Ascend/pytorch' }).filter(({ event_type }) => event_type === 'pull_request').length;
  const violations = rig.violations();
  step('10  What was checked on the way');
  say(`${sent} repository_dispatch for 2 deliveries of one event; ${rig.requests().length} requests to GitHub, ${violations.length} against its API description`);
  if (sent !== 1 || violations.length > 0 || bot().length !== 1) throw new Error('the demo saw something it should not have');

  await lookAround(outpost);
  await farm.stop();
  rmSync(source, { recursive: true, force: true });
  await npu.stop();
  await Promise.all([lab.stop(), silent.stop()]);
  await outpost.stop();
  say('outpostd ended cleanly');
  await Promise.all([issuer.close(), rig.close()]);
}

// The terminal form, asked of the control socket as outpostctl asks it on a terminal.
async function fetchPreview(outpost, columns) {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    request({ socketPath: path.join(outpost.stateDir, 'control.sock'), path: `/control/comments/${NUMBER}?format=${colour ? 'colour' : 'terminal'}&width=${columns}` }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => { text += part; });
      response.on('end', () => resolve(JSON.parse(text).text));
    }).on('error', reject).end();
  });
}

// What is red, and why; GitHub is asked for the merge base meanwhile, and Lab HPU runs some of it again.
async function expectAttributions(outpost) {
  const expected = { bert: 'KNOWN', Qwen: 'BASE', mixtral: 'BASE', whisper: 'FLAKY', llama3: 'NEW' };
  const red = ({ verdicts }) => verdicts.filter(({ status }) => status === 'FAIL');
  const isExplained = (one) => red(one).length === 5 && red(one).every(({ test: name, attribution }) => attribution === expected[name]);
  const view = await outpost.waitForApi(`pulls/${NUMBER}`, (one) => isExplained(one) && one.summary.complete, { timeout: 30_000, what: 'each failure is explained' });
  const { experiments } = view.accelerators.find(({ name }) => name === 'lab-hpu');
  for (const { side, sha, state, results, job } of [...experiments].reverse())
    say(`Lab HPU on the ${side === 'head' ? 'head' : 'merge base'} ${sha.slice(0, 7)}, ${state}: ${results.map(({ suite, test: name, status }) => `${suite}/${name} ${status}`).join(', ')}: ${outpost.url}/jobs/${job}`);
  const ran = (name, side) => experiments.some((one) => one.side === side && one.results.some(({ test: title }) => title === name));
  if (!ran('whisper', 'head') || !ran('mixtral', 'base')) throw new Error('no rerun settled whisper or confirmed mixtral');
  for (const { test: name, attribution, reason, evidence_url: url } of red(view)) say(`model/${name} is ${attribution}: ${reason}: ${url}`);
}

async function lookAround(outpost) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'outpost-demo-'));
  writeFileSync(path.join(folder, 'outpostd.log'), `${outpost.log.map(({ line }) => line).join('\n')}\n`);
  step('Where to look next');
  console.log(`  ${folder}/outpostd.log     what the daemon logged, a line an event
  docs/operators.md     the same with the real GitHub, in six steps
  docs/comment.md       what the comment says, and why a failure is called what it is
  docs/vendors.md       for a vendor: from nothing to the first result
  docs/dispatch.md      what a vendor gets and sends
  docs/architecture.md  how it is built`);
  if (!process.stdin.isTTY || !process.stdout.isTTY) return;
  console.log(`\n  It still runs. In another terminal:
    curl ${outpost.url}/api/v1/pulls/${NUMBER}
    build/release/outpostctl -c ${outpost.configFile} status
    build/release/outpostctl -c ${outpost.configFile} dispatches --pr ${NUMBER}
    build/release/outpostctl -c ${outpost.configFile} comment preview ${NUMBER}`);
  const terminal = readline.createInterface({ input: process.stdin, output: process.stdout });
  await new Promise((resolve) => terminal.question('\n  Press Enter to end it and go on to sixty days of seven accelerators. ', resolve));
  terminal.close();
}

await main().catch((error) => {
  console.error(`\n${paint('31', 'The demo failed:')} ${error.message}`);
  process.exit(1);
});
