// The event stream of a page, tested against a fake EventSource: it breaks, it is refused, the machine sleeps, the page is hidden.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { watch } from '../../web/src/live.js';

class Stream extends EventTarget {
  static CLOSED = 2;
  static all = [];
  readyState = 0;

  constructor(url) {
    super();
    this.url = url;
    Stream.all.push(this);
  }

  emit(type) { if (this.readyState !== 2) this.dispatchEvent(new Event(type)); }
  fail(isForGood) { this.readyState = 0; if (isForGood) this.readyState = 2; this.dispatchEvent(new Event('error')); }
  close() { this.readyState = 2; }
}

let changes;
let states;
let end;
const listeners = new EventTarget();
const streams = () => Stream.all;
const opened = () => Stream.all.filter(({ readyState }) => readyState !== 2);

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  globalThis.EventSource = Stream;
  globalThis.document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  globalThis.addEventListener = listeners.addEventListener.bind(listeners);
  globalThis.removeEventListener = listeners.removeEventListener.bind(listeners);
  Stream.all = [];
  changes = 0;
  states = [];
  end = watch('pulls/7', () => { changes++; }, (state) => states.push(state));
});

afterEach(() => {
  end();
  assert.equal(opened().length, 0, 'a stream is still open');
  mock.timers.reset();
});

test('a page whose stream is refused polls every 30 s until a stream opens', () => {
  assert.equal(streams()[0].url, '/api/v1/events?watch=pulls%2F7');
  streams()[0].emit('open');
  streams()[0].fail(true);
  for (let n = 1; n <= 3; n++) {
    mock.timers.tick(29_000);
    assert.equal(changes, n - 1);
    mock.timers.tick(1000);
    assert.equal(changes, n, 'the page polls');
    assert.equal(streams().length, n + 1);
    if (n < 3) streams()[n].fail(true);
  }
  streams()[3].emit('open');
  streams()[3].emit('change');
  mock.timers.tick(25_000);
  assert.equal(changes, 4);
  assert.equal(streams().length, 4, 'polling ends');
  assert.deepEqual(states, ['live', 'reconnecting', 'reconnecting', 'reconnecting', 'live']);
});

test('the browser reconnects a stream that breaks', () => {
  streams()[0].emit('open');
  streams()[0].fail(false);
  mock.timers.tick(30_000);
  assert.equal(streams().length, 1);
  streams()[0].emit('open');
  assert.deepEqual(states, ['live', 'reconnecting', 'live']);
});

test('a hidden page has no open stream', () => {
  document.visibilityState = 'hidden';
  document.dispatchEvent(new Event('visibilitychange'));
  assert.equal(opened().length, 0);
  mock.timers.tick(60_000);
  listeners.dispatchEvent(new Event('online'));
  assert.equal(opened().length, 0);
  document.visibilityState = 'visible';
  document.dispatchEvent(new Event('visibilitychange'));
  assert.equal(opened().length, 1);
});

test('the page opens a new stream after sleep and on another network', () => {
  streams()[0].emit('open');
  mock.timers.tick(20_000);
  assert.equal(streams().length, 1);
  mock.timers.setTime(Date.now() + 3_600_000);
  mock.timers.tick(10_000);
  assert.equal(streams().length, 2);
  assert.equal(opened().length, 1);
  listeners.dispatchEvent(new Event('online'));
  assert.equal(streams().length, 3);
  assert.equal(opened().length, 1);
});
