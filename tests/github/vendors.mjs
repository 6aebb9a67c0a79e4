// Fake vendors:
//
//   dispatch   a repository with CRCR's workflow: receives repository_dispatch from the rig and reports each
//              job twice (in_progress, completed) to POST /github/callback, with a GitHub OIDC token
//   webhook    a vendor's own CI (Jenkins, GitLab, …): verifies the signed POST and reports to the
//              dispatch's callback_url with its callback_token
//   silent     accepts the POST and never reports
//
// A script is a list of reports, [{workflow, job, conclusion, tests, test_results, run_id, run_attempt, url, accelerator,
// skipStart, hold (ms between start and end)}], or a function of the dispatch's body that returns one.
// once: a repeated dispatch (an answer was lost) starts no second run, as with a concurrency group.
// tries: how often a report is sent at most.
// As programs: node tests/github/vendors.mjs KIND --help
import { EventEmitter, once, setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { verify } from '@octokit/webhooks-methods';
import { githubClaims } from './oidc.mjs';
import { WAIT_MS } from './patience.mjs';

const TRIES = 8;
const LONGEST_PAUSE = 5000;
let runs = 1000;

export const DEFAULT_SCRIPT = [{
  workflow: 'ci', job: 'test', conclusion: 'success',
  tests: [{ suite: 'model', name: 'llama3', status: 'PASS', duration: 12.5 }],
}];

// The `workflow` object as CRCR's reporter builds it.
export function workflowOf(step, status, now = new Date()) {
  const { workflow = 'ci', job, conclusion = 'success', run_id, run_attempt = 1, url, accelerator, tests, test_results, artifact_url, started_at, check_run_id } = step;
  return {
    schema_version: 1, status, conclusion: status === 'completed' ? conclusion : null, name: workflow, job_name: job,
    url: url ?? `https://github.com/example/ci/actions/runs/${run_id}`, check_run_id: check_run_id ?? null, run_id, run_attempt,
    started_at: started_at ?? now.toISOString(), completed_at: status === 'completed' ? now.toISOString() : null,
    ...(status === 'completed' && test_results && { test_results }), ...(artifact_url && { artifact_url }),
    ...(accelerator && { accelerator }), ...(status === 'completed' && tests && { tests }),
  };
}

// One POST, retried on 429, on 503, on a proxy's 502 and 504, and on broken connections. Returns {status, body, retries}.
export async function post(url, token, body, { tries = TRIES } = {}) {
  for (let attempt = 1; ; attempt++) {
    let answer;
    try {
      answer = await fetch(url, {
        method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'user-agent': 'vendor/1' },
        body: JSON.stringify(body), signal: AbortSignal.timeout(WAIT_MS),
      });
    } catch (error) {
      if (attempt >= tries) throw error;
      await sleep(Math.min(LONGEST_PAUSE, 100 * 2 ** attempt));
      continue;
    }
    const text = await answer.text();
    if ([429, 502, 503, 504].includes(answer.status) && attempt < tries) {
      await sleep(1000 * Math.min(5, Number(answer.headers.get('retry-after') ?? 1)));
      continue;
    }
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      value = text;
    }
    return { status: answer.status, body: value, retries: attempt - 1 };
  }
}

class Vendor extends EventEmitter {
  reports = []; // {step, status, answer}
  stopping = new AbortController(); // ends held jobs
  #busy = new Set();
  #begun = new Set();

  constructor({ script = DEFAULT_SCRIPT, log, once: isOnce = false, tries }) {
    super();
    setMaxListeners(0, this.stopping.signal); // one for each held job
    this.script = script;
    this.log = log ?? (() => {});
    this.isOnce = isOnce;
    this.tries = tries;
  }

  // Runs the script for the body of one dispatch; send(workflow) delivers a report.
  async perform(body, send) {
    const id = body.outpost?.dispatch_id;
    if (this.isOnce && this.#begun.has(id)) return;
    this.#begun.add(id);
    const run_id = ++runs;
    for (const entry of typeof this.script === 'function' ? this.script(body) : this.script) {
      const step = { run_id, ...entry };
      for (const status of step.skipStart ? ['completed'] : ['in_progress', 'completed']) {
        if (status === 'completed' && step.hold) await sleep(step.hold, undefined, { signal: this.stopping.signal });
        const answer = await send(workflowOf(step, status));
        const report = { step, status, answer };
        this.reports.push(report);
        this.log({ what: 'report', job: step.job, status, answer: answer.status });
        this.emit('report', report);
      }
    }
  }

  track(promise) {
    const done = promise.catch((error) => this.log({ what: 'error', message: error.message })).finally(() => this.#busy.delete(done));
    this.#busy.add(done);
  }

  idle() {
    return Promise.all(this.#busy);
  }
}

// options: rigUrl, repository, tokenUrl (an issuer's) or mint (claims) → token, callbackUrl (default: the dispatch's),
// claims, script, echo ('whole': the report repeats the client_payload, 'crcr': only CRCR's fields)
export class DispatchVendor extends Vendor {
  dispatches = [];

  static start(options) {
    const vendor = new DispatchVendor(options);
    vendor.options = options;
    vendor.loop = vendor.#watch();
    return vendor;
  }

  async #watch() {
    const { rigUrl, repository } = this.options;
    const { signal } = this.stopping;
    let after = this.options.after ?? 0;
    while (!signal.aborted) {
      try {
        const answer = await fetch(`${rigUrl}/_rig/dispatches?repository=${encodeURIComponent(repository)}&after=${after}&wait=20000`, { signal });
        for (const dispatch of await answer.json()) {
          after = Math.max(after, dispatch.seq);
          this.dispatches.push(dispatch);
          this.log({ what: 'dispatch', event: dispatch.event_type, action: dispatch.client_payload.payload?.action });
          this.emit('dispatch', dispatch);
          if (dispatch.client_payload.payload?.action !== 'closed') this.track(this.perform(dispatch.client_payload, (workflow) => this.report(dispatch, workflow)));
        }
      } catch {
        if (signal.aborted) return;
        await sleep(200, undefined, { signal }).catch(() => {});
      }
    }
  }

  async token() {
    const claims = githubClaims(this.options.repository, this.options.claims);
    if (this.options.mint) return this.options.mint(claims);
    // The issuer may close a connection at the moment at which it is used again.
    for (let attempt = 1; ; attempt++)
      try {
        const answer = await fetch(this.options.tokenUrl, { method: 'POST', body: JSON.stringify({ claims }) });
        return (await answer.json()).token;
      } catch (error) {
        if (attempt >= (this.tries ?? TRIES)) throw error;
        await sleep(100);
      }
  }

  async report(dispatch, workflow) {
    const { event_type, delivery_id, payload, outpost } = dispatch.client_payload;
    const echoed = this.options.echo === 'crcr' ? { event_type, delivery_id, payload } : { event_type, delivery_id, payload, outpost };
    return post(this.options.callbackUrl ?? outpost.callback_url, await this.token(), { ...echoed, workflow }, { tries: this.tries });
  }

  async stop() {
    this.stopping.abort();
    await this.loop;
    await this.idle();
  }
}

// options: secret, port, script, hang (never answers), answer: the status of the POST, or a function of
// the event that returns a status or 'reset' (the connection breaks after the event was accepted)
export class WebhookVendor extends Vendor {
  events = []; // {event, delivery, valid, body, taken (the vendor accepted it)}
  #server;
  #sockets = new Set();

  static async start(options) {
    const vendor = new WebhookVendor(options);
    vendor.options = options;
    vendor.#server = http.createServer((request, response) => vendor.#serve(request, response).catch(() => response.destroy()));
    vendor.#server.on('connection', (socket) => {
      vendor.#sockets.add(socket);
      socket.on('close', () => vendor.#sockets.delete(socket));
    });
    vendor.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(vendor.#server, 'listening');
    vendor.url = `http://127.0.0.1:${vendor.#server.address().port}/hook`;
    return vendor;
  }

  async #serve(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat(parts).toString('utf8');
    const signature = request.headers['x-hub-signature-256'] ?? '';
    const valid = /^sha256=/.test(signature) && await verify(this.options.secret, text, signature).catch(() => false);
    const body = valid ? JSON.parse(text) : undefined;
    const event = { event: request.headers['x-outpost-event'], delivery: request.headers['x-outpost-delivery'], valid, body };
    this.events.push(event);
    this.log({ what: 'webhook', event: event.event, delivery: event.delivery, valid });
    this.emit('event', event);
    if (this.options.hang) return;
    const { answer = 202 } = this.options;
    const result = valid ? typeof answer === 'function' ? answer(event) : answer : 401;
    event.taken = result === 'reset' || result < 300;
    if (result === 'reset') request.socket.resetAndDestroy();
    else response.writeHead(result, { 'content-type': 'application/json' }).end('{}');
    if (valid && event.taken && body.outpost && event.event !== 'cancel' && this.script.length > 0) // a notice has no `outpost` and is not work
      this.track(this.perform(body, (workflow) => this.report(body, workflow)));
  }

  report(body, workflow) {
    return post(body.outpost.callback_url, body.outpost.callback_token, workflow, { tries: this.tries });
  }

  async stop() {
    const ended = new Promise((resolve) => this.#server.close(resolve));
    this.stopping.abort();
    await this.idle();
    for (const socket of this.#sockets) socket.destroy();
    await ended;
  }
}

export const startDispatchVendor = (options) => DispatchVendor.start(options);
export const startWebhookVendor = (options) => WebhookVendor.start(options);
export const startSilentVendor = (options) => WebhookVendor.start({ ...options, script: [] });

const USAGE = `usage: node tests/github/vendors.mjs dispatch --rig URL --repository OWNER/REPO --token-url URL [--callback-url URL] [--script FILE]
       node tests/github/vendors.mjs webhook --secret-file FILE [--port N] [--script FILE]
       node tests/github/vendors.mjs silent --secret-file FILE [--port N]
Prints one JSON line when it is ready and one per thing that happens; runs until stdin closes or SIGTERM.`;

async function main() {
  const { values, positionals: [kind] } = parseArgs({ allowPositionals: true, options: {
    rig: { type: 'string' }, repository: { type: 'string' }, 'token-url': { type: 'string' }, 'callback-url': { type: 'string' },
    script: { type: 'string' }, 'secret-file': { type: 'string' }, port: { type: 'string' }, help: { type: 'boolean' },
  } });
  if (values.help || !['dispatch', 'webhook', 'silent'].includes(kind)) {
    console.error(USAGE);
    process.exit(values.help ? 0 : 2);
  }
  const log = (entry) => console.log(JSON.stringify({ vendor: kind, ...entry }));
  const common = { log, port: Number(values.port ?? 0), script: values.script ? JSON.parse(readFileSync(values.script, 'utf8')) : undefined };
  const secret = values['secret-file'] && readFileSync(values['secret-file'], 'utf8').replace(/\n$/, '');
  const vendor = kind === 'dispatch'
    ? startDispatchVendor({ ...common, rigUrl: values.rig, repository: values.repository, tokenUrl: values['token-url'], callbackUrl: values['callback-url'] })
    : await (kind === 'webhook' ? startWebhookVendor : startSilentVendor)({ ...common, secret });
  log({ what: 'ready', url: vendor.url, pid: process.pid });
  const stop = () => vendor.stop().then(() => process.exit(0));
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.stdin.resume().once('end', stop).once('error', stop);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
