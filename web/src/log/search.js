// Searches lines block by block, so that a page stays usable while it searches 100 MB.
import { withoutEscapes } from './ansi.js';

export const FOUND_MAX = 100_000; // matching lines that are kept; the page only says that there are more

// Patterns of errors of compilers, Python, test runners, shells and CI systems.
const ERRORS = new RegExp([
  '##\\[error\\]', '^::error',
  '\\b(?:[A-Z]\\w*(?:Error|Exception)|(?:fatal |internal compiler )?error|fatal|panic)(?: ?\\[[\\w-]+\\]| [A-Z]+\\d+)?:',
  '\\bFAILED\\b', '(?:^|[ \\tZ])(?:FAIL|ERROR)(?::|\\s|$)', '^E {3}',
  'Traceback \\(most recent call last\\)', 'Segmentation fault', '\\(core dumped\\)', 'Assertion .{0,300}failed',
  'undefined reference to', 'No space left on device', '[Oo]ut of memory', '\\bKilled$', 'Sanitizer:',
  '\\*\\*\\* .{0,300}(?:Error \\d|Stop\\.)', 'npm ERR!', 'exit(?:ed with)? code [1-9]',
].join('|'));

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

// A pattern for one line, or null for an empty text. isExact: upper and lower case differ.
export const textPattern = (text, isExact) => (text ? new RegExp(escaped(text), isExact ? '' : 'iu') : null);
export const ERROR_PATTERN = ERRORS;

// [[from, to], …] in one line's text, at most a limit, because a line may consist of matches.
export function rangesIn(text, pattern) {
  const ranges = [];
  const all = new RegExp(pattern.source, `g${pattern.flags}`);
  for (let found = all.exec(text); found && ranges.length < 500; found = all.exec(text)) {
    ranges.push([found.index, found.index + found[0].length]);
    if (!found[0]) all.lastIndex++;
  }
  return ranges;
}

// The numbers, from 0, of the lines of a text that match, in order.
export function linesIn(text, pattern) {
  const found = [];
  const plain = withoutEscapes(text);
  const all = new RegExp(pattern.source, `gm${pattern.flags}`);
  let line = 0;
  let from = 0; // of that line
  for (let match = all.exec(plain); match; match = all.exec(plain)) {
    for (let next = plain.indexOf('\n', from); next >= 0 && next < match.index; next = plain.indexOf('\n', from)) {
      line++;
      from = next + 1;
    }
    found.push(line);
    const end = plain.indexOf('\n', match.index);
    if (end < 0) break;
    all.lastIndex = end + 1;
  }
  return found;
}

// The matching lines so far. The last block grows, so it is searched again.
export class Search {
  lines = [];
  block = 0; // the next one to search, or the last one, which grows
  end = 0; // of the searched text, in bytes
  isMore = false;

  constructor(pattern) { this.pattern = pattern; }

  // Takes the matches of a block, as line numbers within it; to: its end; isClosed: the block is complete.
  put(block, first, found, to, isClosed) {
    while (this.lines.length && this.lines.at(-1) >= first) this.lines.pop();
    for (const line of found) {
      if (this.lines.length >= FOUND_MAX) this.isMore = true;
      else this.lines.push(first + line);
    }
    this.block = isClosed ? block + 1 : block;
    this.end = to;
  }

  // The index in `lines` of the next match after (or before) a line; it wraps at the ends. -1: there is no match.
  next(line, isBackward) {
    const { lines } = this;
    if (!lines.length) return -1;
    let low = 0;
    let high = lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBackward ? lines[middle] < line : lines[middle] <= line) low = middle + 1;
      else high = middle;
    }
    return isBackward ? (low + lines.length - 1) % lines.length : low % lines.length;
  }
}
