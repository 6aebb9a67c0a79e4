// A stream of server-sent events, as a page opens it.
import http from 'node:http';

// next(n) waits for n events; unread: events that arrived and were not requested. localAddress: the client's address.
export function follow(outpost, watches, { localAddress, ...headers } = {}) {
  const query = watches.map((path) => `watch=${encodeURIComponent(path)}`).join('&');
  const events = [];
  let wake = () => {};
  let rest = '';
  const self = { retry: null, unread: events };
  const request = http.get(`${outpost.url}/api/v1/events?${query}`, { headers, localAddress, agent: false });
  self.begun = new Promise((resolve, reject) => { request.on('response', ({ statusCode, headers: answered }) => { self.headers = answered; resolve(statusCode); }).on('error', reject); });
  self.begun.catch(() => {});
  self.ended = new Promise((resolve) => { request.on('close', resolve); });
  request.on('error', () => {}).on('response', (response) => response.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split('\n').filter((line) => !line.startsWith(':')).map((line) => line.split(/: (.*)/s)));
      if (fields.retry) self.retry = fields.retry;
      if (fields.data) events.push({ ...fields, data: JSON.parse(fields.data) });
    }
    wake();
  }));
  self.next = async (n) => {
    while (events.length < n) await new Promise((resolve, reject) => { wake = resolve; self.ended.then(() => reject(new Error('the stream ended'))); });
    return events.splice(0, n);
  };
  self.close = () => request.destroy();
  return self;
}
