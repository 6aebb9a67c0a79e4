// The parts of GitHub Actions that the vendors' workflows need: parses a workflow with GitHub's own parser, so that the same
// mistakes are refused, and runs its jobs with GitHub's own evaluator of expressions.
//
// Real: expressions, conditions, needs, matrices, outputs, `run` steps in bash with the environment that GitHub gives, OIDC
// tokens for the jobs whose permissions allow them. Replaced: actions/checkout (copies a folder), the artifact actions.
// Jobs run one after another, each in its own folder. Any other feature of a workflow is an error.
import { spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import { register } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { Evaluator, Lexer, Parser, data } from '@actions/expressions';
import { parse } from 'yaml';
import { githubClaims } from './oidc.mjs';
import { WAIT_MS } from './patience.mjs';

register('./json-modules.mjs', import.meta.url);
const { NoOperationTraceWriter, convertWorkflowTemplate, parseWorkflow } = await import('@actions/workflow-parser');

const RUN_TIMEOUT = WAIT_MS;

// {workflow: plain object, errors: [text]}, with GitHub's errors for the file.
export async function readWorkflow(file) {
  const content = await fs.readFile(file, 'utf8');
  const { context, value } = parseWorkflow({ name: path.basename(file), content }, new NoOperationTraceWriter());
  if (value) await convertWorkflowTemplate(context, value);
  return { workflow: parse(content), errors: context.errors.getErrors().map(({ message }) => message) };
}

const STATUS_FUNCTIONS = ['success', 'failure', 'always', 'cancelled'];

// One expression in these contexts; success() and similar functions test `status`.
function evaluate(text, contexts, status = 'success') {
  const functions = STATUS_FUNCTIONS.map((name) => ({
    name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(name === 'always' || name === status || (name === 'cancelled' && status === 'cancelled')),
  }));
  const root = new data.Dictionary(...Object.entries(contexts).map(([key, value]) => ({ key, value: JSON.parse(JSON.stringify(value ?? null), data.reviver) })));
  const tree = new Parser(new Lexer(text).lex().tokens, Object.keys(contexts), functions).parse();
  return new Evaluator(tree, root, new Map(functions.map((one) => [one.name, one]))).evaluate();
}

const toPlain = (value) => JSON.parse(JSON.stringify(value, data.replacer));

// Fills in texts with ${{ }} at any depth. A text that is only an expression keeps the type of its value.
function fill(value, contexts) {
  if (Array.isArray(value)) return value.map((one) => fill(one, contexts));
  if (value && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one, contexts)]));
  if (typeof value !== 'string') return value;
  const whole = /^\$\{\{((?:(?!\}\}).)*)\}\}\s*$/s.exec(value);
  if (whole) return toPlain(evaluate(whole[1], contexts));
  return value.replace(/\$\{\{(.*?)\}\}/gs, (_, text) => evaluate(text, contexts).coerceString());
}

// Fills in the expressions of a text as GitHub does.
export const fillText = (text, contexts) => String(fill(text, contexts));

// A condition without a status function implies success(), as on GitHub.
function holds(condition, contexts, status) {
  const text = String(condition ?? 'success()').replace(/^\s*\$\{\{(.*)\}\}\s*$/s, '$1');
  const asks = STATUS_FUNCTIONS.some((name) => text.includes(`${name}(`));
  const value = toPlain(evaluate(text, contexts, status));
  return (asks || status === 'success') && value !== false && value !== null && value !== '' && value !== 0;
}

function bash(script, { cwd, env, shell }) {
  return new Promise((resolve, reject) => {
    const options = shell === 'bash' ? ['--noprofile', '--norc', '-eo', 'pipefail'] : ['-e'];
    const child = spawn('bash', [...options, '-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_TIMEOUT });
    let log = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { log += text; });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, log }));
  });
}

export class ActionsRun {
  jobs = {}; // id → {result, outputs, legs: [{result, matrix, log}]}

  // options: file, event (a dispatch that the rig accepted), issuer (oidc.mjs), repositories ({'owner/name': folder}, which
  // actions/checkout copies), runId, env (added to the machine's), lose (job id: its machine is lost with its artifacts),
  // cancel (job id: cancelled before it starts)
  static async run(options) {
    const self = new ActionsRun();
    self.options = { runId: 1, ...options };
    const { workflow, errors } = await readWorkflow(options.file);
    if (errors.length > 0) throw new Error(errors.join('\n'));
    self.workflow = workflow;
    self.folder = await fs.mkdtemp(path.join(os.tmpdir(), 'actions-'));
    try {
      await fs.mkdir(path.join(self.folder, 'artifacts'));
      for (const [id, job] of Object.entries(workflow.jobs)) self.jobs[id] = await self.#job(id, job);
    } finally {
      await fs.rm(self.folder, { recursive: true, force: true });
    }
    return self;
  }

  get github() {
    const { event: { repository, event_type: action, client_payload: payload }, runId } = this.options;
    return {
      event: { action, client_payload: payload }, event_name: 'repository_dispatch', repository, run_id: runId, run_attempt: 1,
      server_url: 'https://github.com', workflow: this.workflow.name,
    };
  }

  log(id) {
    return this.jobs[id].legs.map((leg) => leg.log).join('');
  }

  async #job(id, job) {
    const github = this.github;
    const needs = Object.fromEntries([job.needs ?? []].flat().map((name) => [name, { result: this.jobs[name].result, outputs: this.jobs[name].outputs }]));
    const before = Object.values(needs).every(({ result }) => result === 'success') ? 'success' : 'failure';
    const contexts = { github, needs, env: fill(this.workflow.env ?? {}, { github }), strategy: {}, vars: {} };
    if (!holds(job.if, contexts, before)) return { result: 'skipped', outputs: {}, legs: [] };
    const { include } = fill(job.strategy?.matrix ?? { include: [{}] }, contexts);
    const legs = [];
    for (const [index, matrix] of include.entries()) legs.push(await this.#leg(id, job, { ...contexts, matrix }, index));
    const worst = ['cancelled', 'failure'].find((result) => legs.some((leg) => leg.result === result)) ?? 'success';
    return { result: worst, outputs: legs.at(-1)?.outputs ?? {}, legs };
  }

  async #leg(id, job, contexts, index) {
    const leg = { matrix: contexts.matrix, runsOn: fill(job['runs-on'], contexts), result: 'success', log: '', outputs: {} };
    const folder = path.join(this.folder, `${id}-${index}`);
    if (this.options.lose === id) return { ...leg, result: 'failure' };
    if (this.options.cancel === id) leg.result = 'cancelled';
    await fs.mkdir(folder);
    const permissions = job.permissions ?? this.workflow.permissions;
    const all = { ...contexts, job: { status: leg.result }, steps: {}, runner: {} };
    for (const step of job.steps) {
      all.job.status = leg.result;
      const name = step.id ?? `step-${Object.keys(all.steps).length}`;
      if (!holds(step.if, all, leg.result)) {
        all.steps[name] = { outcome: 'skipped', outputs: {} };
        continue;
      }
      const done = await this.#step(step, all, folder, permissions?.['id-token'] === 'write');
      leg.log += done.log;
      all.steps[name] = { outcome: done.ok ? 'success' : 'failure', outputs: done.outputs ?? {} };
      if (!done.ok && !step['continue-on-error'] && leg.result === 'success') leg.result = 'failure';
    }
    leg.outputs = fill(job.outputs ?? {}, all);
    return leg;
  }

  async #step(step, contexts, folder, mayHaveToken) {
    if (step.uses) return this.#uses(step.uses, fill(step.with ?? {}, contexts), folder);
    const output = path.join(folder, '.output');
    await fs.writeFile(output, '');
    const { github } = contexts;
    // A missing value is an empty text, as on GitHub.
    const stepEnv = Object.fromEntries(Object.entries(fill(step.env ?? {}, contexts)).map(([key, value]) => [key, value ?? '']));
    const env = {
      PATH: process.env.PATH, HOME: process.env.HOME, ...this.options.env, ...contexts.env, ...stepEnv, CI: 'true', GITHUB_ACTIONS: 'true',
      GITHUB_OUTPUT: output, GITHUB_WORKSPACE: folder, GITHUB_REPOSITORY: github.repository, GITHUB_RUN_ID: String(github.run_id),
      GITHUB_RUN_ATTEMPT: '1', GITHUB_WORKFLOW: github.workflow, GITHUB_SERVER_URL: github.server_url, ...(mayHaveToken && this.#oidc(github)),
    };
    const { code, log } = await bash(fill(step.run, contexts), { cwd: path.join(folder, step['working-directory'] ?? '.'), env, shell: step.shell });
    const outputs = Object.fromEntries((await fs.readFile(output, 'utf8')).split('\n').filter(Boolean).map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
    return { ok: code === 0, log, outputs };
  }

  #oidc(github) {
    const { url, token } = this.options.issuer.actionsRequest(githubClaims(github.repository, { workflow: '.github/workflows/outpost.yml' }));
    return { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: token };
  }

  async #uses(action, inputs, folder) {
    const place = path.join(folder, inputs.path ?? '.');
    if (action.startsWith('actions/checkout@')) {
      const source = this.options.repositories[inputs.repository ?? this.github.repository];
      if (!source) return { ok: false, log: `cannot check out ${inputs.repository} at ${inputs.ref}\n` };
      await fs.cp(source, place, { recursive: true });
      return { ok: true, log: `checked out ${inputs.repository ?? ''} ${inputs.ref ?? ''}\n` };
    }
    const kept = path.join(this.folder, 'artifacts', inputs.name ?? '');
    const [from, to] = action.startsWith('actions/upload-artifact@') ? [place, kept] : [kept, place];
    if (!/^actions\/(up|down)load-artifact@/.test(action)) throw new Error(`nothing stands in for ${action}`);
    return fs.cp(from, to, { recursive: true }).then(() => ({ ok: true, log: '' }), (error) => ({ ok: false, log: `${action}: ${error.message}\n` }));
  }
}
