// GitHub's side of webhooks: signs and sends them, records and lists each attempt, and redelivers one when the App requests it. As
// with GitHub, a failed delivery is not sent again by itself.
import { randomUUID } from 'node:crypto';
import { sign } from '@octokit/webhooks-methods';
import { WAIT_MS, sendPatiently } from './patience.mjs';

const REASONS = { 200: 'OK', 202: 'OK' };

export class Deliveries {
  #list = []; // ordered by their end
  #next = 90_000_000_001;
  #secret;
  #pending = new Set();
  target;

  constructor({ secret, target }) {
    this.#secret = secret;
    this.target = target;
  }

  // options: guid, target, secret (to sign wrongly), signature (instead of a true one), headers, body (bytes
  // instead of the payload), lost (GitHub could not connect: noted, not sent). Returns the attempt, with
  // `response` = {status, headers, body} as the receiver gave it.
  async deliver(event, payload, options = {}) {
    const body = options.body ?? JSON.stringify(payload);
    const item = {
      id: this.#next++, guid: options.guid ?? randomUUID(), event, action: payload?.action ?? null,
      installation_id: payload?.installation?.id ?? null, repository_id: payload?.repository?.id ?? null,
    };
    return this.#attempt({ ...item, body, redelivery: false }, options);
  }

  async #attempt(item, options) {
    const started = performance.now();
    const entry = { ...item, delivered_at: new Date().toISOString(), status: 'timed out', status_code: 0, duration: 0, response: null };
    const url = options.target ?? this.target;
    entry.url = url;
    if (!options.lost) {
      try {
        entry.request = {
          'content-type': 'application/json', 'user-agent': 'GitHub-Hookshot/0000000', 'x-github-event': entry.event,
          'x-github-delivery': entry.guid, 'x-github-hook-id': '42', 'x-github-hook-installation-target-type': 'integration',
          'x-hub-signature-256': options.signature ?? await sign(options.secret ?? this.#secret, String(entry.body)),
          ...options.headers,
        };
        const answer = await sendPatiently(() => fetch(url, { method: 'POST', headers: entry.request, body: entry.body, signal: AbortSignal.timeout(WAIT_MS) }));
        const text = await answer.text();
        entry.status_code = answer.status;
        entry.status = REASONS[answer.status] ?? answer.statusText;
        entry.response = { status: answer.status, headers: Object.fromEntries(answer.headers), body: text };
      } catch (error) {
        const timedOut = error.name === 'TimeoutError';
        entry.status = timedOut ? 'timed out' : 'failed to connect to host';
        entry.status_code = timedOut ? 504 : 502;
      }
    } else {
      entry.status = 'failed to connect to host';
      entry.status_code = 502;
    }
    entry.duration = Math.round(performance.now() - started) / 1000;
    this.#list.push(entry);
    return entry;
  }

  #item({ id, guid, delivered_at, redelivery, duration, status, status_code, event, action, installation_id, repository_id }) {
    return { id, guid, delivered_at, redelivery, duration, status, status_code, event, action, installation_id, repository_id, throttled_at: null };
  }

  list() {
    return this.#list;
  }

  // GET /app/hook/deliveries: newest first; the cursor is the last one shown.
  page({ perPage = 30, cursor, status }) {
    let rest = this.#list.toSorted((a, b) => b.id - a.id);
    if (status) rest = rest.filter(({ status_code: code }) => (code >= 200 && code < 400) === (status === 'success'));
    if (cursor !== undefined) {
      const last = Number(/^v1_(\d+)$/.exec(cursor)?.[1]);
      if (!Number.isSafeInteger(last)) return undefined;
      rest = rest.filter(({ id }) => id < last);
    }
    const items = rest.slice(0, perPage).map((entry) => this.#item(entry));
    return { items, next: rest.length > perPage ? `v1_${items.at(-1).id}` : undefined };
  }

  find(id) {
    const entry = this.#list.find((one) => one.id === Number(id));
    return entry && {
      ...this.#item(entry), url: entry.url,
      request: { headers: entry.request ?? null, payload: JSON.parse(entry.body) },
      response: { headers: entry.response?.headers ?? null, payload: entry.response?.body ?? null },
    };
  }

  // POST …/attempts: true if the delivery exists. The new attempt follows later.
  redeliver(id) {
    const entry = this.#list.find((one) => one.id === Number(id));
    if (!entry) return false;
    const { guid, event, action, installation_id, repository_id, body } = entry;
    const attempt = this.#attempt({ id: this.#next++, guid, event, action, installation_id, repository_id, body, redelivery: true }, {});
    this.#pending.add(attempt);
    attempt.finally(() => this.#pending.delete(attempt));
    return true;
  }

  async settle() {
    await Promise.all(this.#pending);
  }
}
