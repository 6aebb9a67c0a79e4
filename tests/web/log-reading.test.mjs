// Reading a log from a fake server that answers as Outpost does: ranges, following, and connections that break.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Log, SHOWN_BYTES } from '../../web/src/log/log.js';
import { ERROR_PATTERN, textPattern } from '../../web/src/log/search.js';

const bytesOf = (text) => new TextEncoder().encode(text);

// The server: grow() appends to `bytes`; `asked` lists the requests. Each entry of `breaks` cuts one stream after that many bytes.
class Server {
  bytes = new Uint8Array(0);
  isComplete = true;
  exists = true;
  asked = [];
  breaks = [];
  #waiting = [];

  constructor(text) { if (text !== undefined) this.bytes = typeof text === 'string' ? bytesOf(text) : text; }

  grow(text, isLast = false) {
    const more = bytesOf(text);
    const all = new Uint8Array(this.bytes.length + more.length);
    all.set(this.bytes);
    all.set(more, this.bytes.length);
    this.bytes = all;
    this.isComplete = isLast;
    for (const go of this.#waiting.splice(0)) go();
  }

  #stream(from, to, follows, signal) {
    const server = this;
    let at = from;
    const cutAt = this.breaks.length ? from + this.breaks.shift() : Infinity;
    return new ReadableStream({
      async pull(controller) {
        while (at >= (follows ? server.bytes.length : to)) {
          if (!follows || server.isComplete) return controller.close();
          await new Promise((resolve) => {
            server.#waiting.push(resolve);
            signal.addEventListener('abort', resolve, { once: true });
          });
          if (signal.aborted) return controller.error(new Error('aborted'));
        }
        if (at >= cutAt) return controller.error(new Error('cut'));
        const end = Math.min(at + 100_003, follows ? server.bytes.length : to, cutAt);
        controller.enqueue(server.bytes.slice(at, end));
        at = end;
      },
    }, { highWaterMark: 0 });
  }

  fetch = async (url, { headers = {}, signal }) => {
    const params = new URL(url, 'http://x').searchParams;
    const [, a, b] = /bytes=(\d+)-(\d*)/.exec(headers.Range ?? '') ?? [];
    this.asked.push(params.has('follow') ? `follow ${params.get('from')}` : a ? `${a}-${b}` : 'all');
    if (params.has('follow')) return new Response(this.#stream(Number(params.get('from')), 0, true, signal));
    if (!this.exists) return new Response('{}', { status: 404 });
    if (!a) return new Response(this.#stream(0, this.bytes.length, false, signal));
    if (Number(a) >= this.bytes.length) return new Response('', { status: 416 });
    return new Response(this.#stream(Number(a), b ? Math.min(Number(b) + 1, this.bytes.length) : this.bytes.length, false, signal), { status: 206 });
  };
}

// until(condition): resolves once the condition is true; each change checks it.
function opened(server, options = {}) {
  let look = () => {};
  const log = new Log({ url: '/log', grows: false, fetch: server.fetch, changed: () => look(), ...options });
  const until = (condition) => new Promise((resolve) => {
    look = () => { if (condition()) { look = () => {}; resolve(); } };
    look();
  });
  const text = async (line) => {
    await until(() => log.line(line) !== null);
    return log.line(line).text;
  };
  return { log, until, text };
}

test('a log is read to its end and returns its lines', async () => {
  const server = new Server('\ufeffone\r\ntwo ä€😀\n\nfour');
  const { log, until, text } = opened(server);
  log.read();
  await until(() => log.state === 'ended');
  assert.deepEqual([log.index.lines, log.index.end], [4, server.bytes.length]);
  assert.deepEqual([await text(0), await text(1), await text(2), await text(3)], ['\ufeffone', 'two ä€😀', '', 'four']);
  assert.deepEqual(server.asked, ['all']);
});

test('reading continues where the connection broke', async () => {
  const lines = Array.from({ length: 50_000 }, (_, i) => `line ${i} ${'ä'.repeat(i % 40)}`);
  const server = new Server(lines.join('\n'));
  server.breaks = [300_001, 77_777];
  const { log, until, text } = opened(server);
  log.read();
  await until(() => log.state === 'ended');
  assert.equal(log.index.lines, 50_000);
  assert.equal(await text(49_999), lines[49_999]);
  assert.deepEqual(server.asked, ['all', '300001-', '377778-']);
});

test('pieces that were dropped from memory are requested again', async () => {
  const lines = Array.from({ length: 300_000 }, (_, i) => `line ${i}`);
  const server = new Server(lines.join('\n'));
  const { log, until, text } = opened(server, { pieces: 5 });
  log.read();
  await until(() => log.state === 'ended');
  for (const line of [0, 299_999, 100_000, 1, 150_000]) assert.equal(await text(line), lines[line]);
  assert.ok(server.asked.length > 2);
  await log.find(textPattern('line 777', true));
  assert.equal(log.search.lines.length, 1 + 10 + 100);
  assert.equal(log.search.lines.at(-1), 77_799);
});

test('a search ends only after the whole log has been read', async () => {
  const lines = Array.from({ length: 200_000 }, (_, i) => `line ${i}`);
  const server = new Server(lines.join('\n'));
  const { log, until } = opened(server);
  const states = [];
  log.find(textPattern('line 199999', true));
  log.read();
  await until(() => { states.push([log.isLooking, log.search.lines.length]); return log.state === 'ended' && !log.isSearching; });
  assert.deepEqual(states.filter(([isLooking, n]) => !isLooking && n === 0), [], 'the search never reports no match before its end');
  assert.deepEqual([log.isLooking, log.search.lines], [false, [199_999]]);
});

test('a search does not wait for lines that the job has yet to write', async () => {
  const server = new Server('one\n');
  server.isComplete = false;
  const { log, until } = opened(server, { grows: true });
  log.update(true, 4);
  log.find(textPattern('x', false));
  await until(() => log.index.end === 4 && !log.isLooking);
  assert.equal(log.state, 'following');
  log.close();
});

test('a log that does not exist yet is read once it exists, and an empty log has no lines', async () => {
  const none = new Server();
  none.exists = false;
  const a = opened(none);
  a.log.read();
  await a.until(() => a.log.state === 'none');
  none.exists = true;
  none.grow('late\n', true);
  a.log.update(false, 5);
  await a.until(() => a.log.state === 'ended');
  assert.equal(await a.text(0), 'late');
  const b = opened(new Server(''));
  b.log.read();
  await b.until(() => b.log.state === 'ended');
  assert.equal(b.log.index.lines, 0);
});

test('a growing log is followed across a break, and the search finds new lines', async () => {
  const server = new Server('one\n');
  server.isComplete = false;
  server.breaks = [9];
  const { log, until, text } = opened(server, { grows: true });
  log.read();
  await until(() => log.index.lines === 1 && log.state === 'following');
  log.find(textPattern('x', false));
  server.grow('two x\nthr');
  await until(() => log.search.lines.length === 1);
  server.grow('ee x\n');
  await until(() => log.search.lines.length === 2);
  assert.deepEqual(log.search.lines, [1, 2]);
  assert.equal(await text(2), 'three x');
  server.grow('four', true);
  await until(() => log.state === 'ended');
  assert.equal(await text(3), 'four');
  assert.equal(log.index.end, server.bytes.length);
  assert.equal(server.asked[0], 'follow 0');
  log.close();
});

test('a line of a megabyte is shown in part with the number of hidden bytes', async () => {
  const server = new Server(`a\n${'ü'.repeat(600_000)} error: x\nb\n`);
  const { log, until, text } = opened(server);
  log.read();
  await until(() => log.state === 'ended');
  assert.equal((await text(1)).length, SHOWN_BYTES / 2);
  assert.ok(log.line(1).more > 1_000_000);
  assert.equal(await text(2), 'b');
});

test('a search finds one line among a million', async () => {
  const line = 'I1121 03:00:00.000 worker.py:123] step done, loss 0.123456 at 31.2 tokens/s, no trouble so far\n';
  const server = new Server(`${line.repeat(700_000)}RuntimeError: here\n${line.repeat(300_000)}`);
  const { log, until, text } = opened(server);
  log.read();
  await until(() => log.state === 'ended');
  assert.equal(log.index.lines, 1_000_001);
  await log.find(ERROR_PATTERN);
  assert.deepEqual(log.search.lines, [700_000]);
  assert.equal(await text(700_000), 'RuntimeError: here');
});
