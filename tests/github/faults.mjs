// Faults that a test can inject, in the forms that GitHub documents or has shown.
//
// A rule: {kind, method?, path?, count?, probability?, skip?, when?, ...the kind's own fields}
//   path         "/repos/{owner}/{repo}/dispatches" ({…} is one segment, a trailing * the rest) or a RegExp
//   count        how often it strikes (default: 1, or without end when probability is given)
//   skip         how many matching requests pass first
//   when         "before" (default): nothing has happened; "after": the effect took place, its answer is lost
// kinds: status {status, message?}, reset, close (a proper end, and no byte of an answer), hang, slow {ms}, truncate,
//        secondary {retryAfter?, status?}, primary {resetIn}, expired, unprocessable {message?}, notFound
const DOCS = 'https://docs.github.com/rest';

// A small generator with a seed (mulberry32), so that a run with faults can be repeated.
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function pathMatcher(pattern) {
  if (pattern === undefined) return () => true;
  if (pattern instanceof RegExp) return (path) => pattern.test(path);
  const source = pattern.split('/')
    .map((segment) => (/^\{.*\}$/.test(segment) ? '[^/]+' : segment === '*' ? '.*' : segment.replace(/[.+?^$()|[\]\\]/g, '\\$&')))
    .join('/');
  const regexp = new RegExp(`^${source}$`, 'i');
  return (path) => regexp.test(path);
}

const json = (status, body, headers = {}) => ({ status, headers, body: JSON.stringify({ ...body, documentation_url: DOCS }) });

// The answer of a fault, or undefined for the kinds without an answer.
function answerFor(rule, limit) {
  switch (rule.kind) {
    case 'status':
      return rule.status >= 502 && rule.status <= 504
        ? { status: rule.status, headers: { 'content-type': 'text/html' }, body: '<html><body>Unicorn!</body></html>' }
        : json(rule.status, { message: rule.message ?? 'Server Error' });
    case 'secondary':
      return json(rule.status ?? 403, {
        message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      }, rule.retryAfter === undefined ? {} : { 'retry-after': String(rule.retryAfter) });
    case 'primary':
      return json(403, { message: 'API rate limit exceeded for installation.' }, {
        'x-ratelimit-remaining': '0', 'x-ratelimit-used': String(limit),
        'x-ratelimit-reset': String(Math.floor(Date.now() / 1000) + (rule.resetIn ?? 2)),
      });
    case 'expired':
      return json(401, { message: 'Bad credentials' });
    case 'unprocessable':
      return json(422, { message: rule.message ?? 'Validation Failed', errors: [] });
    case 'notFound':
      return json(404, { message: 'Not Found' });
    default:
      return undefined;
  }
}

const KINDS = ['status', 'reset', 'close', 'hang', 'slow', 'truncate', 'secondary', 'primary', 'expired', 'unprocessable', 'notFound'];

export class Faults {
  #rules = [];
  #next = 1;
  #limit;

  constructor({ limit }) {
    this.#limit = limit;
  }

  add(rule) {
    if (!KINDS.includes(rule.kind)) throw new Error(`no such fault: ${rule.kind} (there are: ${KINDS.join(', ')})`);
    const entry = {
      ...rule, id: this.#next++, left: rule.count ?? (rule.probability === undefined ? 1 : Infinity), toSkip: rule.skip ?? 0,
      struck: 0, matches: pathMatcher(rule.path), draw: random(rule.seed ?? 1),
    };
    this.#rules.push(entry);
    return { id: entry.id, get struck() { return entry.struck; }, remove: () => this.remove(entry.id) };
  }

  remove(id) {
    this.#rules = id === undefined ? [] : this.#rules.filter((rule) => rule.id !== id);
  }

  list() {
    return this.#rules.map(({ id, kind, method, path, left, struck }) => ({ id, kind, method, path: String(path ?? '*'), left, struck }));
  }

  // The fault for this request, or undefined.
  strike(method, path) {
    for (const rule of this.#rules) {
      if (rule.left <= 0 || (rule.method && rule.method !== method) || !rule.matches(path)) continue;
      if (rule.toSkip > 0) {
        rule.toSkip--;
        continue;
      }
      if (rule.probability !== undefined && rule.draw() >= rule.probability) continue;
      rule.left--;
      rule.struck++;
      const when = rule.kind === 'truncate' || rule.kind === 'slow' ? 'after' : rule.when ?? 'before';
      return { kind: rule.kind, ms: rule.ms ?? 1000, when, answer: answerFor(rule, this.#limit) };
    }
    return undefined;
  }
}
