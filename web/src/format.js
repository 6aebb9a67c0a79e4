// Numbers, durations and names for people. Pure: tests/web/format.test.mjs.

export const UNKNOWN = '—'; // not "–", which says skipped

export const count = (n) => (n == null ? UNKNOWN : n.toLocaleString('en-US'));
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// "A", "A and B", "A, B and C"
export const listed = (names) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`);

// A share as percent. 100 and 0 appear only for exactly 1 and 0.
export function percent(share) {
  if (share == null) return UNKNOWN;
  const value = share * 100;
  if (value === 0 || value === 100) return `${value} %`;
  return `${Math.min(99.9, Math.max(0.1, value)).toFixed(1).replace(/\.0$/, '')} %`;
}

const UNITS = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];

// Seconds in the two largest units: "2 h 5 min", "12.5 s", "340 ms".
export function duration(s) {
  if (s == null) return UNKNOWN;
  if (s > 0 && s < 0.9995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 59.95) return `${s.toFixed(1).replace(/\.0$/, '')} s`;
  let rest = Math.round(s);
  const i = UNITS.findIndex(([, size]) => rest >= size);
  const [unit, size] = UNITS[i];
  const text = `${Math.floor(rest / size)} ${unit}`;
  rest %= size;
  const [smaller, part] = UNITS[i + 1] ?? [];
  const n = part ? Math.floor(rest / part) : 0;
  return n ? `${text} ${n} ${smaller}` : text;
}

// Seconds in one unit, for ages.
export function roughly(s) {
  for (const [unit, size] of UNITS) if (s >= size) return `${Math.floor(s / size)} ${unit}`;
  return '0 s';
}

// The time since then, or until then: "just now", "3 min ago", "in 2 h".
export function ago(then, now) {
  const s = Math.round((now - then) / 1000);
  if (Math.abs(s) < 10) return 'just now';
  return s > 0 ? `${roughly(s)} ago` : `in ${roughly(-s)}`;
}

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (n) => String(n).padStart(2, '0');
export const utcDay = (ms) => new Date(ms).toISOString().slice(0, 10);
export function utc(ms) {
  const d = new Date(ms);
  return `${utcDay(ms)} ${two(d.getUTCHours())}:${two(d.getUTCMinutes())}:${two(d.getUTCSeconds())} UTC`;
}

export function bytes(n) {
  if (n == null) return UNKNOWN;
  if (n < 1024) return plural(n, 'byte');
  const i = Math.min(4, Math.floor(Math.log2(n) / 10));
  const value = n / 1024 ** i;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][i]}`;
}

// A measured number with four significant digits and its unit.
export function measure(value, unit) {
  if (value == null) return UNKNOWN;
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-4 || size >= 1e15) ? value.toExponential(3)
    : value.toLocaleString('en-US', { maximumSignificantDigits: Math.max(4, Math.ceil(Math.log10(size + 1))) });
  return unit ? `${text} ${unit}` : text;
}

export const shortSha = (sha) => sha?.slice(0, 7) ?? 'unknown commit';
export const testName = ({ suite, test, name, dtype }) => `${suite}/${test ?? name}${dtype ? ` (${dtype})` : ''}`;

// Makes characters visible that cannot be seen or change the direction of the text; vendors' text may contain them.
export const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\u3164\ufeff\u{e0000}-\u{e007f}]/gu,
  (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);

// The address if a link may have it; any other address of a vendor is shown as text.
export const safeUrl = (url) => (typeof url === 'string' && /^(https?:\/\/|\/(?!\/))/i.test(url) ? url : null);

// The address of one of our pages without the host, so that it also works under another host name.
export function ownPath(url, base) {
  return url && base && url.startsWith(`${base}/`) ? url.slice(base.length) : url;
}
