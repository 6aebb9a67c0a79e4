// Which way to install fits a choice, and why one does not. Pure: tests/web/platform.test.mjs.
import { listed } from './format.js';

export const WORDS = {
  build: { stable: 'Stable', nightly: 'Nightly' },
  os: { linux: 'Linux', macos: 'macOS', windows: 'Windows' },
  package: { pip: 'pip', conda: 'conda', libtorch: 'LibTorch', docker: 'Docker', source: 'Source' },
  language: { python: 'Python', cpp: 'C++' },
};
// What gives way first when not everything that was asked for can be had.
export const DIMENSIONS = ['platform', 'os', 'package', 'language', 'build', 'version'];

const OF_ALL = DIMENSIONS.filter((d) => d !== 'version'); // each platform has versions of its own

export const word = (dimension, value) => WORDS[dimension]?.[value] ?? value ?? 'any';

// Every way to install, of all platforms: their `platform` is here the platform's name, and `version` what the API calls platform.
export const entriesOf = (platforms) => platforms.flatMap((one) => one.install.map((entry) => ({ ...entry, platform: one.name, version: entry.platform ?? '', title: one.title || one.name })));

const fits = (entry, choice, dimensions = DIMENSIONS) => dimensions.every((d) => entry[d] === choice[d]);

const newer = (a, b) => (b.torch ?? '').localeCompare(a.torch ?? '', 'en', { numeric: true });

// The entries of a choice, the newest PyTorch that is offered first.
export const matching = (entries, choice) => entries.filter((e) => fits(e, choice)).sort((a, b) => b.offered - a.offered || newer(a, b));

// The entry that keeps as much of the choice as can be kept: what is named first is kept before what is named later.
export function nearest(entries, choice, keep = []) {
  let left = entries.filter((e) => keep.every((d) => e[d] === choice[d]));
  for (const d of DIMENSIONS) {
    const same = left.filter((e) => e[d] === choice[d]);
    if (same.length) left = same;
  }
  return [...left].sort((a, b) => b.offered - a.offered || newer(a, b))[0] ?? null;
}

export const choiceOf = (entry) => Object.fromEntries(DIMENSIONS.map((d) => [d, entry[d]]));

// What one begins with: what the address names, else what is offered first, on this system if it is.
export function firstChoice(entries, wanted, os) {
  const named = Object.fromEntries(DIMENSIONS.filter((d) => wanted[d]).map((d) => [d, wanted[d]]));
  const start = entries.find((e) => e.offered && e.os === os && e.build === 'stable') ?? entries.find((e) => e.offered && e.build === 'stable') ?? entries.find((e) => e.offered && e.os === os) ?? entries.find((e) => e.offered) ?? entries[0];
  if (!start) return null;
  const asked = { ...choiceOf(start), ...named };
  if (matching(entries, asked).length || Object.keys(named).length === DIMENSIONS.length) return asked;
  const near = nearest(entries, asked, DIMENSIONS.filter((d) => d in named));
  return near ? choiceOf(near) : asked;
}

// Each value of a dimension: state "offered", "not offered" (with why), or "none" (no such way beside the rest of the choice).
export function optionsOf(entries, choice, dimension, values) {
  return values.map((value) => {
    const found = entries.filter((e) => fits(e, { ...choice, [dimension]: value }, dimension === 'platform' ? OF_ALL : DIMENSIONS)).sort((a, b) => b.offered - a.offered);
    if (found.length) return { value, state: found[0].offered ? 'offered' : 'not offered', why: found[0].why_not };
    return { value, state: 'none', why: null };
  });
}

// A platform is chosen: what else was chosen stays as far as it has that.
export function chosen(entries, choice, dimension, value) {
  const next = { ...choice, [dimension]: value };
  if (dimension !== 'platform' || matching(entries, next).length) return next;
  const near = nearest(entries, next, ['platform']);
  return near ? choiceOf(near) : next;
}

// Why there is nothing for a choice, in one sentence.
export function whyNone(entries, choice, title) {
  const own = entries.filter((e) => e.platform === choice.platform);
  if (own.length === 0) return `Nothing is said on how to install it for ${title}.`;
  for (const d of ['os', 'package', 'language', 'build', 'version']) {
    const has = [...new Set(own.map((e) => e[d]))];
    if (!has.includes(choice[d])) return `${title} is there for ${listed(has.map((value) => word(d, value)))}, not for ${word(d, choice[d])}.`;
  }
  return `${title} is not there as ${word('package', choice.package)} for ${word('os', choice.os)}, ${word('language', choice.language)}, ${word('build', choice.build)}${choice.version ? `, ${choice.version}` : ''}.`;
}

export const choiceFromUrl = (search) => {
  const params = new URLSearchParams(search);
  return Object.fromEntries(DIMENSIONS.map((d) => [d, params.get(d)]).filter(([, value]) => value));
};
export const urlOfChoice = (choice) => `?${new URLSearchParams(DIMENSIONS.filter((d) => choice[d]).map((d) => [d, choice[d]]))}`;
