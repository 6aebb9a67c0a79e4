// Numbers, durations and names as people read them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, bytes, count, duration, listed, measure, ownPath, percent, plural, roughly, safeUrl, testName, utc, utcDay, visible } from '../../web/src/format.js';

const each = (fn, cases) => { for (const [input, expected] of cases) assert.equal(fn(...[input].flat()), expected, JSON.stringify(input)); };

test('a share shows 100 % or 0 % only if it is exactly that', () => {
  each(percent, [[null, '—'], [1, '100 %'], [0, '0 %'], [0.99999, '99.9 %'], [0.00001, '0.1 %'], [0.5, '50 %'], [0.9481, '94.8 %']]);
});

test('durations have at most two units and omit a unit that is zero', () => {
  each(duration, [[null, '—'], [0, '0 s'], [0.0002, '1 ms'], [0.34, '340 ms'], [0.9996, '1 s'], [12.5, '12.5 s'], [12, '12 s'], [59.94, '59.9 s'], [59.96, '1 min'], [61, '1 min 1 s'], [3600, '1 h'], [3661, '1 h 1 min'], [7325, '2 h 2 min'], [86400 * 3 + 7200, '3 d 2 h'], [86400 * 400, '400 d']]);
});

test('ages have one unit and are never negative', () => {
  each(roughly, [[0, '0 s'], [59, '59 s'], [60, '1 min'], [3599, '59 min'], [86399, '23 h'], [86400 * 9, '9 d']]);
  each(([then, now]) => ago(then, now), [[[[0, 9_000]], 'just now'], [[[0, 60_000]], '1 min ago'], [[[7_200_000, 0]], 'in 2 h'], [[[5_000, 0]], 'just now']]);
});

test('times are UTC', () => {
  assert.equal(utc(Date.UTC(2026, 10, 9, 3, 4, 5)), '2026-11-09 03:04:05 UTC');
  assert.equal(utcDay(Date.UTC(2026, 10, 9, 23, 59)), '2026-11-09');
});

test('numbers keep their significant digits and their unit', () => {
  each(([value, unit]) => measure(value, unit), [[[[null, 'ms']], '—'], [[[31.23456, 'tokens/s']], '31.23 tokens/s'], [[[0, 'ms']], '0 ms'], [[[123456.7, '']], '123,457'], [[[0.0000123, 's']], '1.230e-5 s'], [[[-4.5, 'GiB']], '-4.5 GiB']]);
  each(bytes, [[null, '—'], [1, '1 byte'], [1023, '1,023 bytes'], [1024, '1.0 KiB'], [1536, '1.5 KiB'], [104857600, '100 MiB']]);
  each(count, [[null, '—'], [1234567, '1,234,567']]);
});

test('plurals, lists and test names are written out', () => {
  assert.equal(plural(1, 'test'), '1 test');
  assert.equal(plural(0, 'test'), '0 tests');
  assert.equal(plural(2, 'dispatch', 'dispatches'), '2 dispatches');
  each((names) => listed(names), [[[[]], ''], [[['A']], 'A'], [[['A', 'B']], 'A and B'], [[['A', 'B', 'C']], 'A, B and C']]);
  assert.equal(testName({ suite: 'model', test: 'bert', dtype: 'bf16' }), 'model/bert (bf16)');
  assert.equal(testName({ suite: 'model', name: 'bert', dtype: null }), 'model/bert');
});

test('invisible characters are escaped, and visible text stays as it is', () => {
  assert.equal(visible('a\u202eb\u0007c\td\n'), 'a\\u202eb\\u0007c\td\n');
  assert.equal(visible('\u061c\u00ad\u2028\u3164\u{e0041}'), '\\u061c\\u00ad\\u2028\\u3164\\ue0041');
  assert.equal(visible('größe 名 📦'), 'größe 名 📦');
});

test('only addresses with an allowed scheme become links', () => {
  for (const good of ['https://a.example/x', 'http://127.0.0.1/', '/jobs/3']) assert.equal(safeUrl(good), good);
  for (const bad of ['javascript:alert(1)', ' https://a', '//evil.example', 'data:text/html,x', null, 7, '']) assert.equal(safeUrl(bad), null);
  assert.equal(ownPath('https://o.example/jobs/3', 'https://o.example'), '/jobs/3');
  assert.equal(ownPath('https://o.example.evil/jobs/3', 'https://o.example'), 'https://o.example.evil/jobs/3');
  assert.equal(ownPath(null, 'https://o.example'), null);
});
