// The way to install that fits a choice, or why there is none. Pure: tests/web/platform.test.mjs.
import { listed } from './format.js';

export const WORDS = {
  build: { stable: 'Stable', nightly: 'Nightly' },
  os: { linux: 'Linux', macos: 'macOS', windows: 'Windows' },
  package: { pip: 'pip', conda: 'conda', libtorch: 'LibTorch', docker: 'Docker', source: 'Source' },
  language: { python: 'Python', cpp: 'C++' },
};
// The order in which parts of a choice are dropped if no way to install fits all of it.
export const DIMENSIONS = ['platform', 'os', 'package', 'language', 'build', 'version'];

const OF_ALL = DIMENSIONS.filter((d) => d !== 'version'); // each platform has versions of its own

export const word = (dimension, value) => WORDS[dimension]?.[value] ?? value ?? 'any';

// Every way to install, of all platforms. Here `platform` is the platform's name, and `version` is the API's `platform`.
export const entriesOf = (platforms) => platforms.flatMap((one) => one.install.map((entry) => ({ ...entry, platform: one.name, version: entry.platform ?? '', title: one.title || one.name })));

const fits = (entry, choice, dimensions = DIMENSIONS) => dimensions.every((d) => entry[d] === choice[d]);

const newer = (a, b) => (b.torch ?? '').localeCompare(a.torch ?? '', 'en', { numeric: true });

// The entries of a choice; the newest PyTorch on offer comes first.
export const matching = (entries, choice) => entries.filter((e) => fits(e, choice)).sort((a, b) => b.offered - a.offered || newer(a, b));

// The entry that keeps as much of the choice as possible; a dimension that is named earlier is kept first.
export function nearest(entries, choice, keep = []) {
  let left = entries.filter((e) => keep.every((d) => e[d] === choice[d]));
  for (const d of DIMENSIONS) {
    const same = left.filter((e) => e[d] === choice[d]);
    if (same.length) left = same;
  }
  return [...left].sort((a, b) => b.offered - a.offered || newer(a, b))[0] ?? null;
}

export const choiceOf = (entry) => Object.fromEntries(DIMENSIONS.map((d) => [d, entry[d]]));

// The first choice: that of the address, else the first offer, for this system if there is one.
export function firstChoice(entries, requested, os) {
  const named = Object.fromEntries(DIMENSIONS.filter((d) => requested[d]).map((d) => [d, requested[d]]));
  const start = entries.find((e) => e.offered && e.os === os && e.build === 'stable') ?? entries.find((e) => e.offered && e.build === 'stable') ?? entries.find((e) => e.offered && e.os === os) ?? entries.find((e) => e.offered) ?? entries[0];
  if (!start) return null;
  const preferred = { ...choiceOf(start), ...named };
  if (matching(entries, preferred).length || Object.keys(named).length === DIMENSIONS.length) return preferred;
  const near = nearest(entries, preferred, DIMENSIONS.filter((d) => d in named));
  return near ? choiceOf(near) : preferred;
}

// Each value of a dimension with its state: "offered", "not offered" (with the reason), or "none" (no way to install has it with the rest
// of the choice).
export function optionsOf(entries, choice, dimension, values) {
  return values.map((value) => {
    const found = entries.filter((e) => fits(e, { ...choice, [dimension]: value }, dimension === 'platform' ? OF_ALL : DIMENSIONS)).sort((a, b) => b.offered - a.offered);
    if (found.length) return { value, state: found[0].offered ? 'offered' : 'not offered', why: found[0].why_not };
    return { value, state: 'none', why: null };
  });
}

// Chooses a platform: the rest of the choice stays if the platform has it.
export function chosen(entries, choice, dimension, value) {
  const next = { ...choice, [dimension]: value };
  if (dimension !== 'platform' || matching(entries, next).length) return next;
  const near = nearest(entries, next, ['platform']);
  return near ? choiceOf(near) : next;
}

// Why no way to install fits a choice, in one sentence.
export function whyNone(entries, choice, title) {
  const own = entries.filter((e) => e.platform === choice.platform);
  if (own.length === 0) return `There are no install instructions for ${title} yet.`;
  for (const d of ['os', 'package', 'language', 'build', 'version']) {
    const has = [...new Set(own.map((e) => e[d]))];
    if (!has.includes(choice[d])) return `${title} is available for ${listed(has.map((value) => word(d, value)))}, not for ${word(d, choice[d])}.`;
  }
  return `${title} is not available as ${word('package', choice.package)} for ${word('os', choice.os)}, ${word('language', choice.language)}, ${word('build', choice.build)}${choice.version ? `, ${choice.version}` : ''}.`;
}

export const choiceFromUrl = (search) => {
  const params = new URLSearchParams(search);
  return Object.fromEntries(DIMENSIONS.map((d) => [d, params.get(d)]).filter(([, value]) => value));
};
export const urlOfChoice = (choice) => `?${new URLSearchParams(DIMENSIONS.filter((d) => choice[d]).map((d) => [d, choice[d]]))}`;
