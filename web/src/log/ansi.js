// Shows a line with a terminal's colours and without its other features: no cursor, no title, no link.
// Characters that cannot be seen or change the direction of the text are made visible.

// Each line begins uncoloured: lines are drawn one by one, from anywhere.
const NONE = Object.freeze({ color: null, background: null, bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false });

// CSI; OSC, DCS, PM, APC, SOS up to their end; any other escape of two or three characters.
const ESCAPES = /\x1b(?:\[([0-?]*)[ -/]*([@-~]?)|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)/g;

const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+/;

const RUNS_MAX = 1000; // a line may consist of colours only

const CUBE = [0, 95, 135, 175, 215, 255];

// The nearest of the page's eight colours, so that the contrast is good enough.
function nearest(r, g, b) {
  const top = Math.max(r, g, b);
  if (top - Math.min(r, g, b) < 48) return top < 64 ? 0 : top > 192 ? 7 : 8;
  const half = top / 2;
  return (r > half ? 1 : 0) + (g > half ? 2 : 0) + (b > half ? 4 : 0);
}

function colorOf256(n) {
  if (n < 16) return n;
  if (n >= 232) return nearest(8 + (n - 232) * 10, 8 + (n - 232) * 10, 8 + (n - 232) * 10);
  const i = n - 16;
  return nearest(CUBE[Math.floor(i / 36)], CUBE[Math.floor(i / 6) % 6], CUBE[i % 6]);
}

// 38;5;N and 38;2;R;G;B (also with colons): the number of codes, and the colour.
function extended(codes, i) {
  if (codes[i + 1] === 5) return [2, codes[i + 2] <= 255 ? colorOf256(codes[i + 2]) : null];
  if (codes[i + 1] === 2) return [4, nearest(codes[i + 2] || 0, codes[i + 3] || 0, codes[i + 4] || 0)];
  return [1, null];
}

const FLAGS = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'inverse', 9: 'strike' };
const OFF = { 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'], 27: ['inverse'], 29: ['strike'] };

function applied(before, parameters) {
  const codes = parameters.split(/[;:]/, 32).map(Number);
  let style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const n = codes[i];
    if (n === 0) style = { ...NONE };
    else if (FLAGS[n]) style[FLAGS[n]] = true;
    else if (OFF[n]) for (const name of OFF[n]) style[name] = false;
    else if (n >= 30 && n <= 37) style.color = n - 30;
    else if (n >= 90 && n <= 97) style.color = n - 82;
    else if (n >= 40 && n <= 47) style.background = n - 40;
    else if (n >= 100 && n <= 107) style.background = n - 92;
    else if (n === 39) style.color = null;
    else if (n === 49) style.background = null;
    else if (n === 38 || n === 48) {
      const [taken, color] = extended(codes, i);
      if (color !== null) style[n === 38 ? 'color' : 'background'] = color;
      i += taken;
    }
  }
  return style;
}

// The classes of a run of text, or ''.
export function classesOf(style) {
  const [color, background] = style.inverse ? [style.background ?? 'off', style.color ?? 'on'] : [style.color, style.background];
  const names = ['bold', 'dim', 'italic', 'underline', 'strike'].filter((name) => style[name]);
  if (color !== null) names.unshift(`fg${color}`);
  if (background !== null) names.unshift(`bg${background}`);
  return names.join(' ');
}

const NAMES = { '\0': '\\0', '\b': '\\b', '\v': '\\v', '\f': '\\f', '\r': '\\r' };

const picture = (text) => [...text].map((c) => {
  const code = c.charCodeAt(0).toString(16).toUpperCase();
  return NAMES[c] ?? (c < '\x80' ? `\\x${code.padStart(2, '0')}` : `U+${code.padStart(4, '0')}`);
}).join('');

export function withoutEscapes(text) {
  return text.includes('\x1b') ? text.replace(ESCAPES, '') : text;
}

function putVisible(runs, text, classes) {
  for (let rest = text; rest;) {
    const { 0: unseen = '', index: at = rest.length } = UNSEEN.exec(rest) ?? {};
    if (at) runs.push({ text: rest.slice(0, at), classes });
    if (unseen) runs.push({ text: picture(unseen), classes: 'unseen' });
    rest = rest.slice(at + unseen.length);
  }
}

// [{text, classes}], about RUNS_MAX at most; unseen characters are runs of their own, with the class `unseen`.
export function runsOf(line) {
  const runs = [];
  let style = NONE;
  let from = 0;
  for (const found of line.matchAll(ESCAPES)) {
    putVisible(runs, line.slice(from, found.index), classesOf(style));
    from = found.index + found[0].length;
    if (found[2] === 'm' && /^[\d;:]*$/.test(found[1])) style = applied(style, found[1]);
    if (runs.length > RUNS_MAX) break;
  }
  putVisible(runs, withoutEscapes(line.slice(from)), classesOf(style));
  if (runs.length <= RUNS_MAX) return runs;
  return [...runs.slice(0, RUNS_MAX), { text: runs.slice(RUNS_MAX).map(({ text }) => text).join(''), classes: '' }];
}

// Cuts the runs where a match begins or ends: the runs of a match have isMatch. ranges: [[from, to], …] in the runs' joined text, ascending.
export function withMatches(runs, ranges) {
  if (!ranges.length) return runs;
  const cut = [];
  let at = 0;
  let i = 0;
  for (const run of runs) {
    const end = at + run.text.length;
    let from = at;
    while (from < end) {
      while (i < ranges.length && ranges[i][1] <= from) i++;
      const [start, stop] = ranges[i] ?? [Infinity, Infinity];
      const isMatch = start <= from;
      const to = Math.min(end, isMatch ? stop : start);
      cut.push({ ...run, text: run.text.slice(from - at, to - at), isMatch });
      from = to;
    }
    at = end;
  }
  return cut;
}
