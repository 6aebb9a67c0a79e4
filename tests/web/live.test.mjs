// The stream behind a page, against one that is made up: it breaks, it is refused, the machine sleeps, nobody looks.
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

  tell(what) { if (this.readyState !== 2) this.dispatchEvent(new Event(what)); }
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
  assert.equal(opened().length, 0, 'nothing stays open');
  mock.timers.reset();
});

test('what is refused is asked every 30 s, and is live again once there is a stream', () => {
  assert.equal(streams()[0].url, '/api/v1/events?watch=pulls%2F7');
  streams()[0].tell('open');
  streams()[0].fail(true);
  for (let n = 1; n <= 3; n++) {
    mock.timers.tick(29_000);
    assert.equal(changes, n - 1);
    mock.timers.tick(1000);
    assert.equal(changes, n, 'it was asked');
    assert.equal(streams().length, n + 1);
    if (n < 3) streams()[n].fail(true);
  }
  streams()[3].tell('open');
  streams()[3].tell('change');
  mock.timers.tick(25_000);
  assert.equal(changes, 4);
  assert.equal(streams().length, 4, 'no more is asked');
  assert.deepEqual(states, ['live', 'reconnecting', 'reconnecting', 'reconnecting', 'live']);
});

test('what breaks is left to the browser', () => {
  streams()[0].tell('open');
  streams()[0].fail(false);
  mock.timers.tick(30_000);
  assert.equal(streams().length, 1);
  streams()[0].tell('open');
  assert.deepEqual(states, ['live', 'reconnecting', 'live']);
});

test('nothing is open while nobody looks', () => {
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

test('after sleep, and on another network, the line is a new one', () => {
  streams()[0].tell('open');
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
