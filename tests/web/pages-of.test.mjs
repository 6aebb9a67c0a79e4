// Lists that come in pages while their contents change: rendered without a browser, from fake pages.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { h, options, render } from 'preact';
import { usePages } from '../../web/src/parts/pages_of.js';

const tick = () => new Promise((resolve) => setImmediate(resolve));
options.requestAnimationFrame = (done) => setImmediate(done); // so that effects run
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
  await settle(); // the component ends its timer
  mock.timers.reset();
});

const pass = async (ms) => { mock.timers.tick(ms); await settle(); };

test('loaded pages are reloaded, even if the first page changes each second', async () => {
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
    assert.equal(shown.items.length, 2, 'the list keeps its items during the reload');
    await pass(1000);
  }
  assert.deepEqual(shown.items, ['b0', 'c1']);
  assert.notEqual(shown.items, before, 'new items are a new array, so that memoized values are computed again');
  assert.ok(asked.length >= 4 && asked.length <= 6, asked.join(' '));
});

test('another list does not show the pages of the previous one', async () => {
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

test('a list that shrinks to one page loses the others', async () => {
  pages = { '/a/1': { items: ['a1'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await settle();
  await draw({ first: { next: null } });
  await pass(5000);
  assert.deepEqual(shown.items, []);
  assert.equal(shown.next, null);
});

test('a changed first page does not cancel a page that is loading', async () => {
  pages = { '/a/1': { items: ['a1'], next: null } };
  await draw({ first: { next: '1' } });
  shown.more();
  await draw({ first: { next: '1' } });
  await settle();
  assert.deepEqual(shown.items, ['a1']);
});
