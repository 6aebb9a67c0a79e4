// What failures say. Numbers, addresses, paths and times differ from run to run; the words are the failure's own,
// or those that many failures share, or say nothing at all.
const SYLLABLES = ['ko', 'lu', 'mi', 'tor', 'gan', 'zu', 'pex', 'ril', 'su', 'von', 'wik', 'yol', 'nim', 'hos', 'jut', 'qua'];

export const newWord = (dice) => Array.from({ length: 4 }, () => dice.pick(SYLLABLES)).join('');

const hex = (dice, n) => Array.from({ length: n }, () => dice.below(16).toString(16)).join('');

const OWN = [
  (word, dice) => `RuntimeError: ${word} is not implemented for 'PrivateUse1', at 0x7f${hex(dice, 10)}, line ${dice.below(4000)}`,
  (word, dice) => `AssertionError: ${word}: expected ${dice.number().toFixed(4)}, got ${dice.number().toFixed(4)}`,
  (word, dice) => `/tmp/build-${dice.below(100_000)}/torch/${word}.py:${dice.below(900)}: ${word} took ${dice.below(90_000)} ms`,
  (word, dice) => `${word} failed on rank ${dice.below(8)} at 2026-0${dice.between(1, 9)}-1${dice.below(9)}T1${dice.below(9)}:2${dice.below(9)}:00Z (${hex(dice, 40)})`,
];
const COMMON = [
  (dice) => `AssertionError: Tensor-likes are not close! Mismatched elements: ${dice.below(400)} / 512 (${dice.below(90)}.${dice.below(9)}%)`,
  (dice) => `RuntimeError: out of memory. Tried to allocate ${dice.between(2, 900)}.00 MiB`,
  (dice) => `TypeError: forward() takes ${dice.between(2, 9)} positional arguments but ${dice.between(2, 9)} were given`,
];
const GENERIC = ['Killed', 'Process completed with exit code 1', 'AssertionError', 'Process completed with exit code 137', 'Error: The operation was canceled.'];

// Vendors write what they like, and some would like to be more than text.
const INFRA = [
  (word, dice) => `device ${dice.below(8)} of ${word} lost: ECC error at 0x${hex(dice, 12)}`,
  (word) => `| ${word} | @octocat see #12, pytorch/pytorch#34 and GH-56 | \`code |`,
  (word) => `<img src=x onerror=alert(1)> <details><summary>${word}</summary> <!-- ${word} -->`,
  (word) => `[${word}](https://evil.example/) ![x](https://evil.example/x.png) https://evil.example www.evil.example a@evil.example`,
  (word) => `*${word}* __${word}__ ~~${word}~~ $x^2$ :tada: [^1] \\| \`\`\` \`\` \u202e${word}`,
];

export function message({ style, word, generic = word.length, common = 0 }, dice) {
  if (style === 'generic') return GENERIC[generic % GENERIC.length];
  if (style === 'common') return COMMON[common % COMMON.length](dice);
  if (style === 'outage') return `${word}: no device found, tried ${dice.between(1, 9)} times`;
  if (style === 'infra') return dice.pick(INFRA)(word, dice);
  return OWN[word.length % OWN.length](word, dice);
}

// What two failures of one style say alike; undefined: nothing that would show anything.
export function sameness({ style, word, common = 0 }) {
  if (style === 'generic') return undefined;
  return style === 'common' ? `common ${common % COMMON.length}` : word;
}

// Titles of commits and pull requests, which anybody may write as they like.
export const harmless = (dice) => dice.pick(['Fix typo', 'Refactor dispatcher', 'Speed up reduction', '[inductor] Fuse | more', 'Revert "@octocat\'s change" (#12)', 'Add <b>tests</b>']);

// A failure in this run: what differs from run to run is filled in. {n} a number, {f} a fraction, {hex} an address, {ms} a time,
// {rank} 0 to 7, {test} the test's own name, {pad} 600 bytes that are always the same.
export function fill(template, dice, test) {
  return template.replace(/\{(\w+)\}/g, (whole, kind) => {
    switch (kind) {
      case 'n': return String(dice.below(5000));
      case 'f': return dice.number().toFixed(5);
      case 'hex': return hex(dice, 12);
      case 'ms': return String(dice.below(90_000));
      case 'rank': return String(dice.below(8));
      case 'test': return test;
      case 'pad': return PAD;
      default: return whole;
    }
  });
}
const PAD = Array.from({ length: 12 }, (_, i) => `  File "torch/nn/modules/module.py", line ${1000 + i}, in _call_impl`).join('\n');
