// Lists that come in pages, while what they are of goes on: drawn without a browser, against pages that are made up.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { h, options, render } from 'preact';
import { usePages } from '../../web/src/parts/pages_of.js';

const tick = () => new Promise((resolve) => setImmediate(resolve));
options.requestAnimationFrame = (done) => setImmediate(done); // when effects run
options.debounceRendering = (done) => setImmediate(done);

const settle = async () => { for (let i = 0; i < 20; i++) await tick(); };

let asked;
let pages; // path → {items, next}
let shown;
let root;

// A place for a component that draws nothing.
const place = () => ({ nodeType: 1, childNodes: [], firstChild: null, namespaceURI: 'http://www.w3.org/1999/xhtml', insertBefore() {}, contains: () => false });

function List({ first, list = 'a' }) {
  shown = usePages({ first, next: first.next, pathOf: (cursor) => `/${list}/${cursor}`, itemsOf: (body) => body.items });
  return null;
}

async function draw(props) {
  render(h(List, props), root);
  await settle();
}

beforeEach(() => {
  mock.timers.enable({ apis: ['setTimeout'] });
  asked = [];
  root = place();
  globalThis.fetch = async (path) => {
    asked.push(path);
    return { ok: true, status: 200, headers: new Headers(), json: async () => structuredClone(pages[path]) };
  };
});

afterEach(async () => {
  render(null, root);
  await settle(); // it ends its timer
  mock.timers.reset();
});

const pass = async (ms) => { mock.timers.tick(ms); await settle(); };

test('what has been read is read again, also where the first page changes each second', async () => {
  pages = { '/a/1': { items: ['b0'], next: '2' }, '/a/2': { items: ['c0'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await settle();
  shown.more();
  await settle();
  assert.deepEqual(shown.items, ['b0', 'c0']);
  assert.equal(shown.next, null);
  const before = shown.items;
  pages['/a/2'].items = ['c1'];
  for (let second = 0; second < 7; second++) {
    await draw({ first: { next: '1' } });
    assert.equal(shown.items.length, 2, 'nothing goes while it is read');
    await pass(1000);
  }
  assert.deepEqual(shown.items, ['b0', 'c1']);
  assert.notEqual(shown.items, before, 'who made something of it is told');
  assert.ok(asked.length >= 4 && asked.length <= 6, asked.join(' '));
});

test('pages of another list are not shown with this one', async () => {
  pages = { '/a/1': { items: ['a1'], next: null }, '/b/1': { items: ['b1'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await settle();
  assert.deepEqual(shown.items, ['a1']);
  await draw({ first: { next: '1' }, list: 'b' });
  assert.deepEqual(shown.items, []);
  assert.equal(shown.next, '1');
  shown.more();
  await settle();
  assert.deepEqual(shown.items, ['b1']);
});

test('a list that has become short loses its pages', async () => {
  pages = { '/a/1': { items: ['a1'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await settle();
  await draw({ first: { next: null } });
  await pass(5000);
  assert.deepEqual(shown.items, []);
  assert.equal(shown.next, null);
});

test('a first page that changes does not take away what somebody waits for', async () => {
  pages = { '/a/1': { items: ['a1'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await draw({ first: { next: '1' } });
  await settle();
  assert.deepEqual(shown.items, ['a1']);
});
