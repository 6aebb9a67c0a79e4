// The parts of the log viewer: line index, colours, anchors, search.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runsOf, withMatches, withoutEscapes } from '../../web/src/log/ansi.js';
import { anchorAfterClick, formatAnchor, parseAnchor } from '../../web/src/log/anchor.js';
import { BLOCK_BYTES, LineIndex } from '../../web/src/log/lines.js';
import { PIECE_BYTES, Pieces } from '../../web/src/log/pieces.js';
import { ERROR_PATTERN, linesIn, rangesIn, Search, textPattern } from '../../web/src/log/search.js';

const bytesOf = (text) => new TextEncoder().encode(text);

function indexOf(text, sizes) {
  const bytes = bytesOf(text);
  const index = new LineIndex();
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const n = sizes[i % sizes.length];
    index.append(bytes.subarray(at, at + n));
    at += n;
  }
  return { index, bytes };
}

// Each block's bytes are the lines that it claims, and the blocks together cover all lines.
function assertBlocks(index, bytes, text) {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  assert.equal(index.lines, lines.length);
  let [line, at] = [0, 0];
  for (let i = 0; i < index.blocks; i++) {
    const block = index.block(i);
    assert.equal(block.line, line);
    assert.equal(block.from, at);
    const want = lines.slice(line, line + block.lines).map((l) => `${l}\n`).join('');
    const is = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(block.from, block.to));
    assert.ok(is === want || `${is}\n` === want, `block ${i}`);
    if (block.lines) assert.equal(index.blockOf(line), i);
    if (block.lines) assert.equal(index.blockOf(line + block.lines - 1), i);
    line += block.lines;
    at = block.to;
  }
  assert.equal(line, lines.length);
  assert.equal(at, bytes.length);
}

test('lines do not depend on how the bytes are split', () => {
  const texts = ['', '\n', 'a', 'a\n', 'a\nb', '\n\n\n', 'ä€😀\r\nb\r\n\r\nc', `${'x'.repeat(BLOCK_BYTES * 3)}\ny\n`, `a\n${'x'.repeat(BLOCK_BYTES * 2)}`,
    Array.from({ length: 5000 }, (_, i) => `${'é'.repeat(i % 90)}${i}`).join('\n')];
  for (const text of texts) {
    for (const sizes of [[1], [2, 3], [7, 1, 64], [65536], [1 << 30]]) {
      if (text.length > 1e5 && sizes[0] < 64) continue;
      const { index, bytes } = indexOf(text, sizes);
      assertBlocks(index, bytes, text);
    }
  }
});

test('a long line has its own block', () => {
  const { index } = indexOf(`short\n${'x'.repeat(1 << 20)}\nshort\n`, [10_000]);
  const long = index.block(index.blockOf(1));
  assert.deepEqual([long.line, long.lines, long.to - long.from], [1, 1, (1 << 20) + 1]);
  assert.equal(index.lines, 3);
});

test('the index of a million lines has fewer than 3000 blocks', () => {
  const line = '2026-11-21T03:00:00.0000000Z [ 42%] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/x.cpp.o\n';
  const piece = bytesOf(line.repeat(10_000));
  const index = new LineIndex();
  for (let i = 0; i < 100; i++) index.append(piece);
  assert.equal(index.lines, 1_000_000);
  assert.ok(index.blocks < 3000);
  assert.equal(index.block(index.blockOf(987_654)).line <= 987_654, true);
});

test('millions of empty lines need few blocks', () => {
  const index = new LineIndex();
  for (let i = 0; i < 16; i++) index.append(new Uint8Array(1 << 20).fill(10));
  assert.equal(index.lines, 16 << 20);
  assert.ok(index.blocks <= (16 << 20) / 512 + 1);
});

test('the cache returns its pieces and drops the least recently used one', () => {
  const pieces = new Pieces(3);
  const bytes = new Uint8Array(PIECE_BYTES * 4 + 100).map((_, i) => i * 31);
  for (let at = 0; at < bytes.length; at += 99_991) pieces.put(at, bytes.subarray(at, at + 99_991));
  assert.equal(pieces.count, 3);
  assert.equal(pieces.get(0, 10), null);
  const [from, to] = [PIECE_BYTES * 3 - 50, PIECE_BYTES * 4 + 100];
  assert.deepEqual(pieces.get(from, to), bytes.slice(from, to));
  assert.equal(pieces.get(from, to + 1), null);
  pieces.put(0, bytes.subarray(0, PIECE_BYTES));
  assert.deepEqual(pieces.get(5, 50), bytes.slice(5, 50));
  pieces.put(PIECE_BYTES * 9 + 1, bytes.subarray(0, 10)); // would leave a hole
  assert.equal(pieces.get(PIECE_BYTES * 9 + 1, PIECE_BYTES * 9 + 2), null);
});

test('colours come from SGR; other escapes are dropped', () => {
  const flat = (line) => runsOf(line).map(({ text, classes }) => [text, classes]);
  assert.deepEqual(flat('plain'), [['plain', '']]);
  assert.deepEqual(flat('\x1b[31mred\x1b[0m plain'), [['red', 'fg1'], [' plain', '']]);
  assert.deepEqual(flat('\x1b[1;92;44mx\x1b[22;39;49my'), [['x', 'bg4 fg10 bold'], ['y', '']]);
  assert.deepEqual(flat('\x1b[38;5;196mx\x1b[38;2;10;200;10my\x1b[38;5;240mz'), [['x', 'fg1'], ['y', 'fg2'], ['z', 'fg8']]);
  assert.deepEqual(flat('\x1b[7mx\x1b[32my'), [['x', 'bgon fgoff'], ['y', 'bg2 fgoff']]);
  assert.deepEqual(flat('\x1b[mx'), [['x', '']]);
  assert.deepEqual(flat('a\x1b[2Kb\x1b[1;1Hc\x1b]0;title\x07d\x1b]8;;http://x\x1b\\e\x1b(Bf\x1b7g\x1bPq#1\x1b\\h'), [...'abcdefgh'].map((c) => [c, '']));
  assert.deepEqual(flat('cut off \x1b['), [['cut off ', '']]);
  assert.deepEqual(flat('\x1b[38;5mx\x1b[38mx\x1b[99999mx\x1b[?25lx'), [['x', ''], ['x', ''], ['x', ''], ['x', '']]);
  assert.equal(withoutEscapes('\x1b[31mer\x1b[1mror\x1b[0m:'), 'error:');
});

test('invisible characters are shown as escapes, and no text is lost', () => {
  const flat = (line) => runsOf(line).map(({ text, classes }) => [text, classes]);
  assert.deepEqual(flat('a\rb\0\x07c\td\x7f'), [['a', ''], ['\\r', 'unseen'], ['b', ''], ['\\0\\x07', 'unseen'], ['c\td', ''], ['\\x7F', 'unseen']]);
  assert.deepEqual(flat('x\u202ey\u200b\ufeff'), [['x', ''], ['U+202E', 'unseen'], ['y', ''], ['U+200BU+FEFF', 'unseen']]);
  assert.deepEqual(flat('👩‍🔧 ok'), [['👩‍🔧 ok', '']]); // a joiner inside an emoji
  const wild = '\x1b[1mx\u202e'.repeat(4000);
  const runs = runsOf(wild);
  assert.ok(runs.length <= 1001);
  assert.equal(runs.map(({ text }) => text).join(''), 'xU+202E'.repeat(4000));
});

test('matches split the runs and keep the text', () => {
  const runs = [{ text: 'abc', classes: 'fg1' }, { text: 'def', classes: '' }];
  assert.deepEqual(withMatches(runs, [[1, 2], [2, 4]]).map(({ text, isMatch }) => [text, Boolean(isMatch)]),
    [['a', false], ['b', true], ['c', true], ['d', true], ['ef', false]]);
  assert.equal(withMatches(runs, []), runs);
});

test('anchors name a line or a range, and a click with Shift extends the range', () => {
  assert.deepEqual(parseAnchor('#L12'), { first: 12, last: 12 });
  assert.deepEqual(parseAnchor('#L12-L30'), { first: 12, last: 30 });
  assert.deepEqual(parseAnchor('#L30-12'), { first: 12, last: 30 });
  for (const none of ['', '#', '#L', '#L0', '#L-3', '#L1-', '#l3', '#tests', '#L99999999999', '#L3-L4-L5', '#L1x']) assert.equal(parseAnchor(none), null, none);
  assert.equal(formatAnchor({ first: 3, last: 3 }), '#L3');
  assert.deepEqual(parseAnchor(formatAnchor({ first: 3, last: 9 })), { first: 3, last: 9 });
  let state = anchorAfterClick(null, null, 10, true);
  assert.deepEqual(state, { anchor: { first: 10, last: 10 }, origin: 10 });
  state = anchorAfterClick(state.anchor, state.origin, 5, true);
  assert.deepEqual(state.anchor, { first: 5, last: 10 });
  state = anchorAfterClick(state.anchor, state.origin, 12, true);
  assert.deepEqual(state.anchor, { first: 10, last: 12 });
});

test('a search ignores colours, matches case only on request, and takes special characters literally', () => {
  const text = 'Alpha\r\nbeta (x)\n\nALPHA alpha\ngr\x1b[31mün\x1b[0me\nlast alpha';
  assert.deepEqual(linesIn(text, textPattern('alpha', false)), [0, 3, 5]);
  assert.deepEqual(linesIn(text, textPattern('alpha', true)), [3, 5]);
  assert.deepEqual(linesIn(text, textPattern('(x)', false)), [1]);
  assert.deepEqual(linesIn(text, textPattern('GRÜNE', false)), [4]);
  assert.deepEqual(linesIn(text, textPattern('.*', false)), []);
  assert.deepEqual(rangesIn('ALPHA alpha', textPattern('alpha', false)), [[0, 5], [6, 11]]);
  assert.equal(textPattern('', true), null);
  for (const c of '\\^$.*+?()[]{}|/-#&~') assert.deepEqual(linesIn(`a\n${c}\n`, textPattern(c, false)), [1], c);
});

test('the error search finds the error lines of common tools', () => {
  const red = ['foo.c:3:1: error: expected', '2026-11-21T03:00:00Z ##[error]Process completed with exit code 1.', 'FAILED test_ops.py::test_add',
    'Traceback (most recent call last):', 'AssertionError: 1 != 2', 'torch.OutOfMemoryError: x', 'Segmentation fault (core dumped)', 'E   assert 1 == 2',
    'ERROR: test_x (T)', 'FAIL: test_y', 'make: *** [all] Error 2', 'ld: undefined reference to `x\'', 'fatal: not a git repository', 'error[E0308]: mismatched',
    'x.cu(3): error C2065: y', '==1==ERROR: AddressSanitizer: heap', 'npm ERR! code 1', 'Process exited with code 137', 'OSError: [Errno 28] No space left on device'];
  for (const line of red) assert.deepEqual(linesIn(`fine\n${line}\r\nfine`, ERROR_PATTERN), [1], line);
  const green = ['0 errors', 'test_error_handling PASSED', '-- Looking for strerror - found', 'errors=0', 'PASSED [ 10%]', 'terror: a film', 'exit code 0', 'no failures'];
  for (const line of green) assert.deepEqual(linesIn(line, ERROR_PATTERN), [], line);
});

test('a search wraps around and searches a block that grew again', () => {
  const search = new Search(textPattern('x', true));
  assert.equal(search.next(0, false), -1);
  search.put(0, 0, [1, 4], 100, true);
  search.put(1, 10, [0, 2], 150, false);
  assert.deepEqual(search.lines, [1, 4, 10, 12]);
  search.put(1, 10, [0, 2, 7], 200, false);
  assert.deepEqual(search.lines, [1, 4, 10, 12, 17]);
  assert.deepEqual([search.block, search.end], [1, 200]);
  assert.equal(search.lines[search.next(4, false)], 10);
  assert.equal(search.lines[search.next(4, true)], 1);
  assert.equal(search.lines[search.next(17, false)], 1);
  assert.equal(search.lines[search.next(1, true)], 17);
});
