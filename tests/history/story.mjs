// The language of named scenarios (README.md, "Named scenarios"): each is a few lines of text with a statement per line.
//
//   = green on the base, red on the pull request
//   # a comment
//   commits a
//   run a
//   pull A by ann breaks t "ValueError: bad stride {n}"
//   run A
import fs from 'node:fs';
import path from 'node:path';

const TOKEN = /"(?:[^"\\]|\\.)*"|[,:]|[^\s,:"]+/g;

// Reads the words of one statement from left to right.
export class Words {
  #words;
  #at = 0;

  constructor(line) {
    this.#words = line.match(TOKEN) ?? [];
  }

  get isDone() { return this.#at >= this.#words.length; }
  peek() { return this.#words[this.#at]; }

  next(what) {
    if (this.isDone) throw new Error(`${what} is missing at the end`);
    return this.#words[this.#at++];
  }

  // Reads the word if it comes next.
  take(word) {
    if (this.peek() !== word) return false;
    this.#at++;
    return true;
  }

  number(what) {
    const word = this.next(what);
    if (!/^\d+$/.test(word)) throw new Error(`${what} must be a number, not ${word}`);
    return Number(word);
  }

  // All words up to one of these.
  until(...ends) {
    const list = [];
    while (!this.isDone && !ends.includes(this.peek())) list.push(this.next());
    return list;
  }

  end() {
    if (!this.isDone) throw new Error(`unexpected ${this.peek()}`);
  }
}

// → [{name, file, statements: [{verb, line, text}]}]
export function parseStories(text, file) {
  const stories = [];
  for (const [i, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (line.startsWith('= ')) {
      stories.push({ name: line.slice(2).trim(), file, line: i + 1, statements: [] });
      continue;
    }
    if (stories.length === 0) throw new Error(`${file}:${i + 1}: a statement before the first scenario`);
    const verb = /^[a-z]+/.exec(line)?.[0];
    if (!verb) throw new Error(`${file}:${i + 1}: no statement begins with ${line.split(' ')[0]}`);
    stories.at(-1).statements.push({ verb, line: i + 1, text: line.slice(verb.length) });
  }
  return stories;
}

export function readStories(folder) {
  const stories = fs.readdirSync(folder).filter((name) => name.endsWith('.txt')).sort()
    .flatMap((name) => parseStories(fs.readFileSync(path.join(folder, name), 'utf8'), `${path.basename(folder)}/${name}`));
  const names = new Set();
  for (const { name, file, line } of stories) {
    if (names.has(name)) throw new Error(`${file}:${line}: a second scenario is called "${name}"`);
    names.add(name);
  }
  return stories;
}
