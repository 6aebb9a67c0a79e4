// Renders a comment with GitHub's own renderer (cmark-gfm), and finds the mentions and references that GitHub's filters would link.
//
//   const page = await rendered(markdown);
//   page.strange({ links: ['https://…/'] })     // → [] if all markup is Outpost's own
//   page.table                                  // rows of cells as text, the heading first
import { runProgram } from './outpost.mjs';

// Without GitHub's filter of tags and its sanitizer, because the Markdown must not contain what these remove.
const ARGUMENTS = ['--unsafe', '-t', 'html', ...['table', 'autolink', 'strikethrough', 'tasklist'].flatMap((name) => ['-e', name])];

// The tags of Outpost's own comments. Any other tag is strange.
const ATTRIBUTES = { a: /^ href="[^"]*"$/, th: /^( align="(left|center)")?$/, td: /^( align="(left|center)")?$/ };
const ELEMENTS = new Set(['p', 'strong', 'code', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'ul', 'li', 'hr', 'details', 'summary']);

// Mentions, references, commits, addresses, emoji, footnotes, mathematics.
const REFERENCES = /@|#\w|\bGH-\d|:\/\/|www\.|\b[0-9a-f]{7,40}\b|:[\w+-]+:|\[\^|\$/i;

// Invisible characters, and characters that move their neighbours.
export const UNSEEN = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e0fff}]/u;

const plain = (html) => html.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&amp;/g, '&');

// cmark-gfm escapes < > & " outside tags.
function tokens(html) {
  return [...html.matchAll(/<!--[^]*?-->|<(\/?)([a-zA-Z][\w-]*)([^>]*?)( ?\/)?>|[^<]+|</g)].map(([whole, close, element, attributes]) => (
    element ? { element, attributes, close: close === '/' } : whole.startsWith('<') ? { odd: whole } : { text: plain(whole) }));
}

class Page {
  links = [];
  table = [];
  codes = [];
  #found = [];

  constructor(html) {
    this.html = html;
    const open = [];
    for (const token of tokens(html)) {
      if (token.odd !== undefined) this.#found.push(`markup: ${token.odd}`);
      else if (token.element) this.#tag(token, open);
      else this.#text(token.text, open);
    }
  }

  #tag({ element, attributes, close }, open) {
    if (!ELEMENTS.has(element)) this.#found.push(`element: ${element}${attributes}`);
    if (close) {
      open.pop();
      return;
    }
    if (!(ATTRIBUTES[element] ?? /^$/).test(attributes)) this.#found.push(`attributes: ${element}${attributes}`);
    if (element !== 'hr') open.push(element);
    if (element === 'a') this.links.push(plain(attributes.slice(' href="'.length, -1)));
    if (element === 'tr') this.table.push([]);
    if (element === 'th' || element === 'td') this.table.at(-1).push('');
  }

  #text(text, open) {
    const cell = open.includes('th') || open.includes('td');
    if (cell) this.table.at(-1).push(this.table.at(-1).pop() + text);
    if (open.includes('code')) this.codes.push(text);
    else if (REFERENCES.test(text)) this.#found.push(`reference: ${text}`);
    if (UNSEEN.test(text)) this.#found.push(`unseen: ${JSON.stringify(text)}`);
  }

  strange({ links = [] } = {}) {
    const foreign = this.links.filter((url) => !links.some((ours) => url.startsWith(ours)));
    return [...this.#found.slice(0), ...foreign.map((url) => `link: ${url}`)].filter((what) => what !== 'markup: <!-- outpost:results -->');
  }
}

export async function rendered(markdown) {
  const { code, stdout, stderr } = await runProgram('cmark-gfm', ARGUMENTS, { input: markdown });
  if (code !== 0) throw new Error(`cmark-gfm: ${stderr}`);
  return new Page(stdout);
}
