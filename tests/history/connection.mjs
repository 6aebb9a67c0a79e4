// The daemon's HTTP interface as GitHub, vendors and readers use it.
import http from 'node:http';
import { createHash, createHmac } from 'node:crypto';
import { until } from '../integration/lib/outpost.mjs';

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const isCut = (error) => ['ECONNRESET', 'EPIPE'].includes(error.code);

export class Connection {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  #url;
  #secret;
  #delivered = new Map(); // hash of the content → how often
  writes = 0; // requests that may change something

  // sent: {webhooks, reads}, counted up
  constructor({ url, secret, sent }) {
    this.#url = url;
    this.#secret = secret;
    this.sent = sent;
  }

  // Closes idle connections; the next request opens one.
  close() { this.#agent.destroy(); }

  #request(method, path, { headers, body } = {}, agent = this.#agent) {
    const { hostname, port } = new URL(this.#url);
    return new Promise((resolve, reject) => {
      const request = http.request({ host: hostname, port, method, path, agent, headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) } }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString('utf8') }));
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  // Sends again while the answer is 503: a daemon of a server whose clock jumped is busy until its next heartbeat there.
  async send(method, path, options) {
    if (method !== 'GET') this.writes++;
    let answer;
    await until(async () => {
      answer = await this.#sendOnce(method, path, options);
      return answer.status !== 503;
    }, { what: `${method} ${path} is not busy` });
    return answer;
  }

  // The server closes a connection that was idle for hours. Each request may be sent twice.
  async #sendOnce(method, path, options) {
    try {
      return await this.#request(method, path, options);
    } catch (error) {
      if (!isCut(error)) throw error;
      return this.#request(method, path, options, false);
    }
  }

  async get(path) {
    this.sent.reads++;
    const { status, text } = await this.send('GET', path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  // The GUID of a delivery follows from its content, so that a history repeats exactly.
  #guidOf(event, body) {
    const content = sha256(`${event} ${body}`), n = this.#delivered.get(content) ?? 0;
    this.#delivered.set(content, n + 1);
    const hex = sha256(`${content} ${n}`);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }

  async deliver(event, payload) {
    const body = JSON.stringify(payload);
    const { status, text } = await this.send('POST', '/github/webhook', { body, headers: {
      'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': this.#guidOf(event, body),
      'x-hub-signature-256': `sha256=${createHmac('sha256', this.#secret).update(body).digest('hex')}`,
    } });
    this.sent.webhooks++;
    if (status !== 202 && JSON.parse(text).status !== 'ignored') throw new Error(`webhook ${event}: ${status} ${text}`);
  }
}
