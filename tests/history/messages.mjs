// The messages of failures. shapes.mjs has the templates, and this module fills in the parts that differ between runs.
const SYLLABLES = ['ko', 'lu', 'mi', 'tor', 'gan', 'zu', 'pex', 'ril', 'su', 'von', 'wik', 'yol', 'nim', 'hos', 'jut', 'qua'];
const PAD = Array.from({ length: 12 }, (_, i) => `  File "torch/nn/modules/module.py", line ${1000 + i}, in _call_impl`).join('\n');

export const newWord = (dice) => Array.from({ length: 4 }, () => dice.pick(SYLLABLES)).join('');

const hex = (dice, n) => Array.from({ length: n }, () => dice.below(16).toString(16)).join('');

// {n} a number, {f} a fraction, {hex} an address, {ms} a time, {rank} 0 to 7, {test} the test's name, {word} the cause's word,
// {pad} 700 constant bytes.
export function fill(template, dice, test, word = '') {
  return template.replace(/\{(\w+)\}/g, (whole, kind) => {
    switch (kind) {
      case 'n': return String(dice.below(5000));
      case 'f': return dice.number().toFixed(5);
      case 'hex': return hex(dice, 12);
      case 'ms': return String(dice.below(90_000));
      case 'rank': return String(dice.below(8));
      case 'test': return test;
      case 'word': return word;
      case 'pad': return PAD;
      default: return whole;
    }
  });
}

// The common part of two failures' messages.
export const sameness = ({ template, word }) => (template.includes('{word}') ? `${word}: ${template}` : template);
export const isSpecific = ({ template }) => template.includes('{word}');

const CATALOGUE = ['RuntimeError: {word} is not implemented for \'PrivateUse1\', at 0x7f{hex}, line {n}', 'AssertionError: {word}: expected {f}, got {f}', '{word} failed on rank {rank} after {ms} ms'];
export const patternOf = (dice) => dice.pick(CATALOGUE);

// Titles of commits and pull requests, which may contain any text.
export const harmless = (dice) => (dice.chance(0.02) ? 'Revert "@octocat\'s change" (#98765)' : dice.pick(['Fix typo', 'Refactor dispatcher', 'Speed up reduction', '[inductor] Fuse | more', 'Undo "@octocat\'s change" (#98765)', 'Add <b>tests</b>']));
