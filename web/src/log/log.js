// One job's log: it is read from its first byte to its last, continued where the connection broke, and followed while it grows.
// Lines are numbered from 0 here. `changed()` is called whenever there is more to draw; it may come often.
import { LineIndex } from './lines.js';
import { PIECE_BYTES, Pieces } from './pieces.js';
import { Search, linesIn } from './search.js';

export const SHOWN_BYTES = 16 * 1024; // of one line
export const SEARCHED_BYTES = 1024 * 1024; // of one line
const TEXTS_MAX = 128; // blocks whose lines are kept as text
const AHEAD_BYTES = 1024 * 1024; // requested at once when a search needs dropped pieces
const SLICE_MS = 12;
const BREATH_BYTES = 2 * 1024 * 1024;
const POLL_MS = 3000;
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const FAILURES_MAX = 8;
const LF = 10;
const CR = 13;

const pause = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

export class Log {
  index = new LineIndex();
  state = 'reading'; // reading, following, waiting (for the server), ended, none, failed
  search = null;
  isSearching = false;

  #pieces;
  #texts = new Map(); // block → its lines as text, in the order of use
  #requested = new Map(); // first byte → the current request
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #closing = new AbortController();
  #url;
  #fetch;
  #changed;
  #grows;
  #known = 0; // how many bytes the server has, as far as known
  #isOver = false; // the server has ended the followed answer
  #isReading = false;

  // grows: the job is not over. pieces: the number of pieces to keep (for tests).
  constructor({ url, grows, changed, fetch = globalThis.fetch.bind(globalThis), pieces }) {
    this.#url = url;
    this.#grows = grows;
    this.#changed = changed;
    this.#fetch = fetch;
    this.#pieces = new Pieces(pieces);
  }

  get isClosed() { return this.#closing.signal.aborted; }

  close() { this.#closing.abort(); }

  // Takes news about the job: it is over, or its log is longer than the part that was read.
  update(grows, bytes) {
    this.#grows = grows;
    this.#known = bytes;
    if (bytes > this.index.end) this.#isOver = false;
    if (bytes > this.index.end || (grows && !this.#isOver && this.state !== 'failed')) this.read();
  }

  // ---- reading on ----

  async read() {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#set('reading');
    let end = null;
    for (let failures = 0; !end && !this.isClosed;) {
      const before = this.index.end;
      try {
        end = await this.#readOn(this.#mayGrow && failures % 2 === 0);
        failures = 0;
      } catch {
        failures = this.index.end > before ? 1 : failures + 1;
        if (failures > FAILURES_MAX) end = 'failed';
        else if (!this.isClosed) this.#set('waiting');
        if (!end) await pause(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]);
      }
    }
    this.#isReading = false;
    if (end) this.#set(end);
  }

  get #mayGrow() { return this.#grows && !this.#isOver; }

  #set(state) {
    this.state = state;
    this.#changed();
  }

  // One request. Returns the state in which it ended; null: reading goes on. If too many clients follow already, it reads the present text
  // without following.
  async #readOn(follows) {
    const from = this.index.end;
    const headers = from && !follows ? { Range: `bytes=${from}-` } : {};
    const url = follows ? `${this.#url}?follow=1&from=${from}` : this.#url;
    const answer = await this.#fetch(url, { headers, signal: this.#closing.signal, cache: 'no-store' });
    const isNothing = answer.status === 416 || (answer.status === 404 && !from);
    if (!isNothing && answer.status !== (headers.Range ? 206 : 200)) throw new Error(`the server answers ${answer.status}`);
    if (isNothing) {
      answer.body?.cancel();
    } else {
      if (follows) this.#set('following');
      await this.#take(answer.body.getReader());
    }
    if (follows) this.#isOver = true; // the server ends it when the log is complete
    if (this.#mayGrow) {
      await pause(POLL_MS);
      return null;
    }
    return this.index.end || answer.status === 200 ? 'ended' : 'none';
  }

  async #take(reader) {
    let taken = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      this.#pieces.put(this.index.end, next.value);
      this.index.append(next.value);
      this.#changed();
      this.#look();
      taken += next.value.length;
      if (taken < BREATH_BYTES) continue;
      taken = 0;
      await pause();
    }
  }

  // ---- text ----

  // {text, more: how many bytes are not shown}; null: the text is being requested.
  line(line) {
    const i = this.index.blockOf(line);
    const block = this.index.block(i);
    let lines = this.#texts.get(i);
    if (!lines || lines.end !== block.to) lines = this.#blockText(block);
    if (!lines) return null;
    this.#texts.delete(i);
    this.#texts.set(i, lines);
    if (this.#texts.size > TEXTS_MAX) this.#texts.delete(this.#texts.keys().next().value);
    return lines.texts[line - block.line] ?? null;
  }

  #blockText({ from, to, lines }) {
    const size = lines === 1 ? Math.min(to - from, SHOWN_BYTES + 2) : to - from;
    const bytes = this.#pieces.get(from, from + size);
    if (!bytes) {
      this.#ask(from, from + size).catch(() => setTimeout(this.#changed, POLL_MS));
      return null;
    }
    const texts = [];
    for (let at = 0; at < size;) {
      const found = bytes.indexOf(LF, at);
      const next = found < 0 ? size : found + 1;
      texts.push(this.#lineText(bytes, at, next, lines === 1 ? to - from : next - at));
      at = next;
    }
    return { end: to, texts };
  }

  #lineText(bytes, from, to, length) {
    let end = to;
    if (bytes[end - 1] === LF) end--;
    if (end > from && bytes[end - 1] === CR) end--;
    const shown = Math.min(end, from + SHOWN_BYTES);
    return { text: this.#decoder.decode(bytes.subarray(from, shown)), more: Math.max(0, length - SHOWN_BYTES) };
  }

  // Whole pieces.
  #ask(from, to) {
    const first = Math.floor(from / PIECE_BYTES) * PIECE_BYTES;
    const last = Math.min(Math.ceil(to / PIECE_BYTES) * PIECE_BYTES, this.index.end) - 1;
    const key = `${first}-${last}`;
    if (!this.#requested.has(key)) this.#requested.set(key, this.#fetchPieces(first, last).finally(() => this.#requested.delete(key)));
    return this.#requested.get(key);
  }

  async #fetchPieces(first, last) {
    const answer = await this.#fetch(this.#url, { headers: { Range: `bytes=${first}-${last}` }, signal: this.#closing.signal });
    if (answer.status !== 206) throw new Error(`the server answers ${answer.status}`);
    this.#pieces.put(first, new Uint8Array(await answer.arrayBuffer()));
    this.#changed();
  }

  // ---- search ----

  // True if the present log may have more matches, because it was not read or searched to its end. It does not wait for later lines of
  // the job.
  get isLooking() {
    const isBehind = this.state === 'following' ? this.index.end < this.#known : this.state === 'reading' || this.state === 'waiting';
    return Boolean(this.search) && (this.isSearching || isBehind);
  }

  // null ends a search.
  find(pattern) {
    this.search = pattern && new Search(pattern);
    this.#changed();
    return this.#look();
  }

  // In slices of time, up to the end of the text that was read; it continues when more arrives.
  async #look() {
    if (this.isSearching) return;
    this.isSearching = true;
    let since = performance.now();
    for (let next = this.#unseen(); next && !this.isClosed; next = this.#unseen()) {
      try {
        await this.#lookInto(next);
      } catch {
        await pause(POLL_MS);
      }
      if (performance.now() - since < SLICE_MS) continue;
      this.#changed();
      await pause();
      since = performance.now();
    }
    this.isSearching = false;
    this.#changed();
  }

  // The search, if it has not reached the end of the text that was read.
  #unseen() {
    return this.search && this.search.end < this.index.end ? this.search : null;
  }

  async #lookInto(search) {
    const { block: i } = search;
    const isClosed = i < this.index.blocks - 1;
    const { from, to, line } = this.index.block(i);
    const end = Math.min(to, from + SEARCHED_BYTES);
    let bytes = this.#pieces.get(from, end);
    if (!bytes) {
      await this.#ask(from, Math.min(from + AHEAD_BYTES, this.index.end));
      bytes = this.#pieces.get(from, end);
      if (!bytes) throw new Error('it was dropped already');
    }
    if (search === this.search) search.put(i, line, linesIn(this.#decoder.decode(bytes), search.pattern), to, isClosed);
  }
}
