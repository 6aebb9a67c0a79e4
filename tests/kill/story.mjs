// A sequence of webhooks as data: the same seed gives the same story, so that a run with kills can be compared with one without.
// This module does not use the daemon.
//
// A story has parallel lines: one for each pull request, and one for the pushes. The steps of a line follow each other, as GitHub's
// events of one pull request do.
//
// step: {event, action?, guid, at (ISO), head, base?, labels, number, wait, starts, copyOf?}
//   starts  true: the step starts a round of dispatches for its head
//   wait    "nothing": the next step of the line comes at once; "reached": when every runner has the dispatch;
//           "settled": when every runner has reported, too; "answered": when a command has its reaction
//   command a member's command to the bot
import { fakeSha } from '../github/payloads.mjs';
import { random } from '../github/faults.mjs';

export const LABEL = 'ciflow/crcr/spyre';
const MEMBER = 'alice';
const PUSHES_OF_LINE = 100;
const COMMANDS = ['?', 'status', 'retest', 'retest npu', 'make coffee'];
// The first commits of main. The pull requests begin at the third, when the results that attribute their failures exist.
export const BASE = Array.from({ length: 5 }, (_, i) => fakeSha(`commit ${i} of the base`));

export class Dice {
  #draw;

  constructor(seed) {
    this.#draw = random(seed);
  }

  number() { return this.#draw(); }
  below(n) { return Math.floor(this.#draw() * n); }
  between(low, high) { return low + this.below(high - low + 1); }
  chance(p) { return this.#draw() < p; }
  pick(list) { return list[this.below(list.length)]; }

  guid() {
    const hex = Array.from({ length: 32 }, () => this.below(16).toString(16)).join('');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}

class Line {
  steps = [];
  #dice;
  #story;

  constructor(story, dice) {
    this.#story = story;
    this.#dice = dice;
  }

  step(fields) {
    // GitHub's times are whole seconds; events of one pull request are a minute apart here.
    const at = new Date(this.#story.start + 60_000 * this.#story.ticks++).toISOString().replace('.000Z', 'Z');
    const step = { guid: this.#dice.guid(), at, wait: 'nothing', starts: false, ...fields };
    this.steps.push(step);
    return step;
  }
}

function writePull(story, dice, number, length) {
  const line = new Line(story, dice);
  const isStranger = dice.chance(0.15);
  const state = { number, head: fakeSha(`story ${story.seed} pull ${number} head 0`), labels: [] };
  let heads = 0;
  const event = (action, more) => line.step({ event: 'pull_request', action, number, head: state.head, labels: [...state.labels], ...more });
  const wait = () => (dice.chance(0.5) ? 'reached' : 'nothing');

  event('opened', { starts: true, wait: isStranger ? 'held' : wait() });
  if (isStranger) line.step({ event: 'issue_comment', action: 'created', number, head: state.head, author: MEMBER, body: '@BOT ok-to-test', starts: true, wait: 'reached' });
  while (line.steps.length < length) {
    const what = dice.number();
    if (what < 0.45 && !isStranger) {
      state.head = fakeSha(`story ${story.seed} pull ${number} head ${++heads}`);
      event('synchronize', { starts: true, wait: wait() });
    } else if (what < 0.55 && state.labels.length === 0) {
      state.labels.push(LABEL);
      event('labeled', { label: LABEL });
    } else if (what < 0.7) {
      event('closed', { wait: wait() });
      event('reopened', { starts: true, wait: wait() });
    } else if (what < 0.8) {
      event('edited', { starts: true, wait: wait() });
    } else if (what < 0.85) {
      const command = dice.pick(COMMANDS);
      line.step({ event: 'issue_comment', action: 'created', number, head: state.head, labels: [...state.labels], author: MEMBER, body: `@BOT ${command}`, command, wait: 'answered' });
    } else if (what < 0.92) { // the same delivery again
      const last = line.steps.at(-1);
      line.steps.push({ ...last, copyOf: last.guid, wait: 'nothing', starts: false });
    } else { // the same event under another GUID
      const last = line.steps.at(-1);
      line.steps.push({ ...last, guid: dice.guid(), copyOf: last.copyOf ?? last.guid, wait: 'nothing', starts: false });
    }
  }
  // The end does not depend on speed: the last head has all its results.
  const last = line.steps.at(-1);
  if (!last.starts || last.wait === 'nothing') {
    if (isStranger) event('edited', { starts: true, wait: 'settled' });
    else {
      state.head = fakeSha(`story ${story.seed} pull ${number} head ${++heads}`);
      event('synchronize', { starts: true, wait: 'settled' });
    }
  } else {
    last.wait = 'settled';
  }
  const isClosed = dice.chance(0.5);
  if (isClosed) event('closed', { wait: 'reached' });
  return { kind: 'pull', number, isStranger, isClosed, finalHead: state.head, isLabeled: state.labels.length > 0, steps: line.steps };
}

function writeBase(story, dice) {
  const line = new Line(story, dice);
  BASE.forEach((head, i) => line.step({ event: 'push', head, before: BASE[i - 1], starts: true, wait: 'settled' }));
  return { kind: 'pushes', isFirst: true, steps: line.steps };
}

function writePushes(story, dice, first, end) {
  const line = new Line(story, dice);
  for (let i = first; i < end; i++)
    line.step({ event: 'push', head: fakeSha(`story ${story.seed} push ${i}`), starts: true, wait: dice.chance(0.3) ? 'reached' : 'nothing' });
  return { kind: 'pushes', steps: line.steps };
}

// deliveries: the minimum number of webhooks, with copies; pushShare: the share of pushes, which have no comment.
export function writeStory({ seed, deliveries, pushShare = 0.1 }) {
  const dice = new Dice(seed);
  const story = { seed, start: Math.floor(Date.now() / 1000) * 1000 - 3 * 86_400_000, ticks: 0, lines: [] };
  const pushes = Math.ceil(deliveries * pushShare);
  story.lines.push(writeBase(story, dice));
  for (let first = 0; first < pushes; first += PUSHES_OF_LINE) story.lines.push(writePushes(story, dice, first, Math.min(pushes, first + PUSHES_OF_LINE)));
  let nWebhooks = pushes + BASE.length;
  for (let number = 1; nWebhooks < deliveries; number++) {
    const line = writePull(story, dice, number, dice.between(6, 14));
    story.lines.push(line);
    nWebhooks += line.steps.length;
  }
  story.deliveries = nWebhooks;
  return story;
}
