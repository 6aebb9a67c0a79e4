// The verdicts in one version of a comment: the table's cells and the lists below it.

const EXCUSES = { known: 'KNOWN', base: 'BASE', flaky: 'FLAKY', new: 'NEW' };
const LISTS = [[/^\*\*Known\*\*/, 'KNOWN'], [/^\*\*Red on the base/, 'BASE'], [/^\*\*Flaky\*\*/, 'FLAKY'], [/^\*\*New failures\*\*/, 'NEW']];

const link = /\[((?:[^\]\\]|\\.)*)\]\([^)]*\)/g;
const plain = (text) => text.replace(link, '$1').replace(/[`*]/g, '').replace(/\\(.)/g, '$1').trim();
const cells = (row) => row.replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map(plain);

// The comment's commit, or undefined.
export const commitOf = (body) => /\/commit\/([0-9a-f]{40})/.exec(body.split('\n').find((line) => line.startsWith('Tested commit')) ?? '')?.[1];

// → [{test: "suite/name", accelerator: title, verdict: KNOWN | BASE | FLAKY | NEW}]
export function wordsIn(body) {
  const found = [];
  let titles, list;
  for (const line of body.split('\n')) {
    if (line.startsWith('|')) {
      const row = cells(line);
      if (!titles) titles = row;
      else row.slice(1).forEach((text, i) => {
        const word = /^[✗!❌⚠]\S* (\w+)/u.exec(text)?.[1];
        if (EXCUSES[word]) found.push({ test: row[0].replace(/ \(\w+\)$/, ''), accelerator: titles[i + 1], verdict: EXCUSES[word] });
      });
      continue;
    }
    if (line.startsWith('**')) list = LISTS.find(([pattern]) => pattern.test(line))?.[1];
    if (line.startsWith('</details>')) list = undefined;
    const bullet = list && list !== 'NEW' && /^- \S+ `([^`]+)`(?: \(\w+\))? on ([^:]+):/.exec(line);
    if (bullet) found.push({ test: bullet[1], accelerator: plain(bullet[2]), verdict: list });
  }
  return found;
}
