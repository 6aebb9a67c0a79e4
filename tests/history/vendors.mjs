// Vendors: each dispatch is a run, which takes hours, ends as the world determines, and is reported, sometimes with another attempt.
// An experiment is a short run of the listed tests at its commit, on the machines in their state at that time.
import { createHash } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import { AUDIENCE, githubClaims } from '../github/oidc.mjs';
import { HOUR } from './world.mjs';

const EVENTS = ['pull_request', 'push', 'nightly', 'experiment'];

export class Vendors {
  #play;
  #byName;
  #server;
  #tokens = new Map();
  #taken = new Set(); // "dispatch accelerator"
  #named = new Map(); // name → how often
  #heads = new Map(); // dispatch → the head that it tests

  constructor(play) {
    this.#play = play;
    this.#byName = new Map(play.world.accelerators.map((accelerator) => [accelerator.name, accelerator]));
  }

  // A vendor's own CI, for accelerators without a workflow on GitHub.
  async start() {
    this.#server = http.createServer({ keepAlive: true, keepAliveTimeout: 600_000 }, (request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        if (EVENTS.includes(request.headers['x-outpost-event'])) this.dispatched(JSON.parse(Buffer.concat(parts).toString('utf8')));
        response.writeHead(202, { 'content-length': 0 }).end();
      });
    }).listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  async close() {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  dispatched({ event_type: event, delivery_id: delivery, payload, outpost }) {
    if (payload.action === 'closed') return;
    const { experiment } = outpost;
    const head = this.#play.project.heads.get(experiment?.sha ?? payload.pull_request?.head.sha ?? payload.after);
    if (!head) {
      this.#play.problems.push(`a dispatch of ${event} at an unknown commit: ${JSON.stringify(outpost)}`);
      return;
    }
    for (const name of outpost.accelerators) {
      if (this.#taken.has(`${outpost.dispatch_id} ${name}`)) continue; // a repeated dispatch, because an answer was lost
      this.#taken.add(`${outpost.dispatch_id} ${name}`);
      this.#heads.set(outpost.dispatch_id, head);
      const run = { accelerator: this.#byName.get(name), head, event, delivery, dispatch: outpost.dispatch_id, token: outpost.callback_token, ...this.#nameRun(name, event, head, experiment), attempt: 1 };
      if (experiment) this.#experiment(run, experiment);
      else this.#run({ ...run, head: event === 'nightly' ? { ...head, round: 'nightly' } : head });
    }
  }

  // The name of a run and its id on GitHub follow from its content, because the daemon's ids depend on the order of its work.
  #nameRun(accelerator, event, head, experiment) {
    const about = experiment ? [this.#heads.get(experiment.of).sha, experiment.side, ...[...experiment.tests].sort()] : [];
    const content = [accelerator, event, head.sha, ...about].join(' '), n = this.#named.get(content) ?? 0;
    this.#named.set(content, n + 1);
    const name = `${content} ${n}`;
    return { name, id: String(Number.parseInt(createHash('sha256').update(name).digest('hex').slice(0, 10), 16)) };
  }

  #run(run) {
    const { accelerator, head } = run, { now } = this.#play;
    run.dice = this.#play.world.dice('job', accelerator.name, head.sha);
    const time = now + (0.2 + run.dice.number() * 1.5) * accelerator.slow * HOUR;
    if (!this.#play.hasStarts) run.startsAt = now + (time - now) * 0.2;
    if (this.#play.hasStarts) this.#play.at(now + (time - now) * (0.05 + 0.3 * run.dice.number()), `run ${run.id}`, () => this.#begin(run, time));
    this.#play.at(time, `run ${run.id}`, () => this.#finish(run, time), { isLater: true });
  }

  #begin(run, endsAt) {
    const jobs = this.#isPending(run) ? this.#play.world.run(run.accelerator, run.head, run.attempt, endsAt) ?? [] : [];
    return Promise.all(jobs.map((job) => this.#send(run, this.#workflow(run, job, { status: 'in_progress' }))));
  }

  #workflow({ accelerator, event, id, attempt, startsAt }, job, more) {
    const started = startsAt && { started_at: new Date(startsAt).toISOString(), ...(more.status === 'completed' && { completed_at: new Date(this.#play.now).toISOString() }) };
    return { name: event === 'nightly' ? 'nightly' : 'tests', job_name: job.name, run_id: id, run_attempt: attempt, url: `https://ci.example/${accelerator.name}/${id}`, ...started, ...more };
  }

  #isPending({ accelerator, head, dice, event }, at) {
    const { pull } = head;
    if (event === 'push' && this.#play.world.isGap(accelerator, at)) return false;
    return !pull || (pull.isOpen && pull.head === head) || dice.chance(0.2);
  }

  async #finish(run, at) {
    const { accelerator, head, dice } = run;
    if (!this.#isPending(run, at)) return;
    const jobs = this.#play.world.run(accelerator, head, run.attempt, at);
    if (!jobs) return; // the vendor will not report
    await this.#play.each(jobs, (job) => this.#report(run, job));
    if (run.event === 'nightly') return; // it is not evidence and is not retried
    this.#play.record.note(run, jobs, at);
    const isRed = jobs.some(({ conclusion }) => conclusion === 'failure');
    if (run.attempt > 2 || !isRed || !dice.chance(head.isPull ? 0.3 : 0.1)) return;
    const again = at + (0.5 + dice.number() * 5) * HOUR;
    this.#play.at(again, `run ${run.id}`, () => this.#finish({ ...run, attempt: run.attempt + 1, startsAt: run.startsAt && again - 0.3 * accelerator.slow * HOUR }, again));
  }

  // ---- experiments ----

  #experiment(run, { of, side, tests, jobs }) {
    const explained = this.#heads.get(of), { world } = this.#play;
    run.dice = world.dice('experiment', run.name);
    this.#play.record.asked({ head: explained, accelerator: run.accelerator, side, sha: run.head.sha, tests });
    run.startsAt = this.#play.now;
    const time = run.startsAt + (0.03 + run.dice.number() * 0.12) * run.accelerator.slow * HOUR;
    this.#play.at(time, `run ${run.id}`, async () => {
      if (!this.#isPending({ ...run, head: explained }, time)) return;
      const results = world.run(run.accelerator, run.head, `experiment ${run.name}`, time, { only: tests, inJobs: jobs?.length > 0 ? jobs : undefined });
      if (!results) return; // the vendor is away
      await this.#play.each(results, (job) => this.#report(run, job));
      this.#play.record.proved({ head: explained, side, accelerator: run.accelerator, jobs: results });
    }, { isLater: true });
  }

  // ---- reports ----

  async #token(accelerator) {
    const now = Math.floor(this.#play.clock.now() / 1000);
    const known = this.#tokens.get(accelerator.name);
    if (known?.until > now) return known.token;
    const token = await this.#play.issuer.mint({ ...githubClaims(`vendors/${accelerator.name}`), aud: AUDIENCE, iat: now, nbf: now - 5, exp: now + 86_400 });
    this.#tokens.set(accelerator.name, { token, until: now + 40_000 });
    return token;
  }

  async #report(run, job) {
    const { report, log } = this.#play.documents(run, job);
    const tests = report ? undefined : job.tests.map(({ suite, name, status, message }) => ({ suite, name, status, message }));
    const { token, id } = await this.#send(run, this.#workflow(run, job, { status: 'completed', conclusion: job.conclusion, tests }));
    this.#play.sent.reports++;
    if (id) await this.#handIn(id, token, { report: report && JSON.stringify(report), log });
  }

  async #send(run, workflow) {
    const { accelerator, delivery } = run;
    const path = accelerator.isGithub ? '/github/callback' : `/api/v1/dispatches/${run.dispatch}/jobs`;
    const token = accelerator.isGithub ? await this.#token(accelerator) : run.token;
    const body = accelerator.isGithub ? { event_type: run.event, delivery_id: delivery, payload: {}, outpost: { dispatch_id: run.dispatch }, workflow } : workflow;
    const { status, text } = await this.#play.daemon.send('POST', path, { body: JSON.stringify(body), headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } });
    this.#expect(status, 200, `job of ${accelerator.name}: ${text}`);
    return { token, id: status === 200 ? JSON.parse(text).job : undefined };
  }

  async #handIn(id, token, documents) {
    for (const [kind, body] of Object.entries(documents)) {
      if (body === undefined) continue;
      const { status, text } = await this.#play.daemon.send('PUT', `/api/v1/jobs/${id}/${kind}`, { body, headers: { authorization: `Bearer ${token}`, 'content-type': kind === 'log' ? 'text/plain' : 'application/json' } });
      this.#expect(status, 200, `${kind} of job ${id}: ${text}`);
    }
  }

  #expect(status, expected, what) {
    if (status !== expected) this.#play.problems.push(`${new Date(this.#play.clock.now()).toISOString()}: ${status}, not ${expected}: ${what}`);
  }
}
