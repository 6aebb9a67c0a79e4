// Checks each version of a comment with GitHub's own parser (cmark-gfm): it has one table with complete rows and no markup of a
// vendor or an author.
import { spawn } from 'node:child_process';
import { text as readAll } from 'node:stream/consumers';

const ARGUMENTS = ['-t', 'xml', ...['table', 'strikethrough', 'autolink', 'tagfilter'].flatMap((name) => ['-e', name])];
const MOST = 65_536; // characters, GitHub's limit
const AT_ONCE = 100;
const CUT = (i) => `<!-- history:${i} -->`;

// The only HTML of Outpost. A summary contains text without markup.
const HTML = /^(?:<!-- outpost:[a-z]+ -->|<\/?details>|<summary>[^<>&@#]*<\/summary>|<br ?\/?>|\s)*$/;
const SOURCES = ['https://ci.example/', 'https://docs.example/', 'https://github.com/pytorch/pytorch/'];
// Mentions, references, addresses, emoji, footnotes and mathematics, which GitHub finds in plain text.
const ACTIVE = /(?:^|[^\w`])@\w|#\d|\bGH-\d|:\/\/|www\.|:[a-z+-]+:|\[\^|\$\S|[\u200b-\u200f\u202a-\u202e]/i;

const plain = (xml) => xml.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&amp;/g, '&');

async function parse(markdown) {
  const child = spawn('cmark-gfm', ARGUMENTS, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(markdown);
  return readAll(child.stdout);
}

const nodes = (xml) => [...xml.matchAll(/<(html_block|html_inline|text|link|image|table|table_header|table_row)\b([^>]*?)(?:\/>|>(?:([^<]*)<\/\1>)?)/g)]
  .map(([, kind, attributes, text = '']) => ({ kind, text: plain(text), url: plain(/destination="([^"]*)"/.exec(attributes)?.[1] ?? '') }));

// Counts the cells of the table's source rows. An unescaped bar ends a cell, even in code.
const width = (line) => line.replace(/\\\\/g, '').replace(/\\\|/g, '').split('|').length - 2;

function faults(markdown, found, ours) {
  const wrong = [];
  const rows = markdown.split('\n').filter((line) => line.startsWith('|'));
  const count = (...kinds) => found.filter(({ kind }) => kinds.includes(kind)).length;
  if (count('table') !== (rows.length > 0 ? 1 : 0)) wrong.push(`${count('table')} tables`);
  if (rows.length > 0 && count('table_header', 'table_row') !== rows.length - 1) wrong.push(`${rows.length - 1} rows written, ${count('table_header', 'table_row')} in the table`);
  for (const row of rows) if (width(row) !== width(rows[0])) wrong.push(`row of ${width(row)} cells under ${width(rows[0])}: ${row}`);
  for (const { kind, text, url } of found) {
    if (kind.startsWith('html') && !HTML.test(text)) wrong.push(`raw HTML: ${text}`);
    if (kind === 'text' && ACTIVE.test(text)) wrong.push(`not plain: ${text}`);
    if (kind === 'image' || (kind === 'link' && ![ours, ...SOURCES].some((one) => url.startsWith(one)))) wrong.push(`${kind}: ${url}`);
  }
  if ([...markdown].length > MOST) wrong.push(`${[...markdown].length} characters`);
  return wrong;
}

// bodies: [{number, body}] → {n, text, problems: [text]}
export async function checkComments(bodies, ours) {
  const problems = [];
  const distinct = [...new Map(bodies.map((one) => [one.body, one])).values()];
  const withTable = distinct.filter(({ body }) => /^\|/m.test(body)).length;
  for (let from = 0; from < distinct.length; from += AT_ONCE) {
    const batch = distinct.slice(from, from + AT_ONCE);
    const xml = await parse(batch.map(({ body }, i) => `${body}\n\n${CUT(i)}\n\n`).join(''));
    // A comment with unclosed markup swallows the mark after it.
    const parts = xml.split(/<html_block xml:space="preserve">&lt;!-- history:\d+ --&gt;\n<\/html_block>/);
    const whole = parts.length === batch.length + 1;
    for (const [i, { number, body }] of batch.entries()) {
      const found = nodes(whole ? parts[i] : await parse(body));
      for (const what of faults(body, found, ours)) problems.push(`comment on #${number}: ${what}`);
    }
    if (!whole) problems.push(`one of the comments ${batch.map(({ number }) => `#${number}`).join(', ')} leaves markup open`);
  }
  const longest = Math.max(0, ...distinct.map(({ body }) => body.length));
  return { n: distinct.length, problems, text: `${distinct.length} comments rendered, ${withTable} with a table, the longest ${longest} characters` };
}
