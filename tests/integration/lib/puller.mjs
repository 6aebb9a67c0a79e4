// A machine that claims work by docs/runner-protocol.md without outpost-runner: one method for each request.
//
//   const machine = await Puller.add(outpost, 'npu-17', 'ascend-npu', { labels: ['npu'] });
//   const { status, json: lease } = await machine.claim({ wait: 30 });
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { WAIT_MS, sendPatiently } from '../../github/patience.mjs';
import { until } from './outpost.mjs';

export class Puller {
  constructor(outpost, { name, accelerator, token, labels = [] }) {
    Object.assign(this, { outpost, name, accelerator, token, labels });
  }

  static async add(outpost, name, accelerator, options) {
    const { code, stdout, stderr } = await outpost.ctl('runner', 'add', name, '--accelerator', accelerator);
    assert.equal(code, 0, stderr);
    return new Puller(outpost, { name, accelerator, token: stdout.trim(), ...options });
  }

  // {status, headers, text, json}; signal: an AbortSignal, which cuts the connection.
  ask(method, path, body, options) {
    return sendPatiently(() => this.#askOnce(method, path, body, options));
  }

  async #askOnce(method, path, body, { token = this.token, signal, type = 'application/json' } = {}) {
    const answer = await fetch(`${this.outpost.url}${path}`, {
      method, signal, body: typeof body === 'string' ? body : JSON.stringify(body),
      headers: { 'content-type': type, ...(token && { authorization: `Bearer ${token}` }) },
    });
    const text = await answer.text();
    let json;
    try {
      json = JSON.parse(text);
    } catch {
      json = undefined;
    }
    return { status: answer.status, headers: answer.headers, text, json };
  }

  // Repeats the request while the answer is 503, because the service reads its tokens shortly after its start.
  static ready(ask) {
    return until(async () => {
      const answer = await ask();
      return answer.status !== 503 && answer;
    }, { what: 'an answer other than 503' });
  }

  claim({ id = randomUUID(), wait = 0, name = this.name, labels = this.labels, ...options } = {}) {
    return this.ask('POST', '/api/v1/runner/claim', { name, claim_id: id, labels, wait, version: 'test' }, options);
  }

  // Claims until there is work, because a busy machine may have none at the end of the wait yet.
  async take({ id = randomUUID(), ...options } = {}) {
    const end = Date.now() + WAIT_MS;
    const ask = () => this.claim({ id, wait: 10, ...options });
    let answer = await ask();
    while (answer.status === 204 && Date.now() < end) answer = await ask();
    assert.equal(answer.status, 200, `${answer.status} ${answer.text}`);
    return answer.json;
  }

  renew(lease, { wait = 0, ...options } = {}) {
    return this.ask('POST', `/api/v1/runner/leases/${lease.lease_id ?? lease}/renew`, { wait }, options);
  }

  giveBack(lease, { reason = 'drained', ...options } = {}) {
    return this.ask('POST', `/api/v1/runner/leases/${lease.lease_id ?? lease}/return`, { reason }, options);
  }

  finish(lease, { conclusion = 'success', tests = [], more = {}, ...options } = {}) {
    return this.ask('POST', `/api/v1/dispatches/${lease.dispatch_id}/jobs`, {
      status: 'completed', conclusion, name: lease.runner, job_name: 'tests', run_id: lease.run_id, run_attempt: lease.attempt, tests, ...more,
    }, options);
  }
}
