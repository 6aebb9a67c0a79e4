// GitHub's own OpenAPI description, applied by Prism: a request that breaks it does not reach the rig's state, and an answer that
// breaks it is recorded. Prism runs in this process in proxy mode with our own forwarder as its HTTP client. Prism's mock answers
// requests that the rig does not serve.
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fetchOpenapi } from './fetch-openapi.mjs';
import { library } from './libraries.mjs';

const require = createRequire(import.meta.url);
const { factory, route, validateInput, validateOutput, validateSecurity } = library('prism');
const wholePrism = () => library('wholePrism');

const silent = { info() {}, warn() {}, error() {}, debug() {}, trace() {}, success() {}, fatal() {}, child() { return silent; } };
const right = (value) => ({ _tag: 'Right', right: value });
const left = (value) => ({ _tag: 'Left', left: value });

class Refused extends Error {
  constructor(violations) {
    super('the request breaks the description');
    this.violations = violations;
  }
}

export class NotServed extends Error {}

const plain = (violations) => violations.map(({ message, path, code }) => ({ at: (path ?? []).join('.'), code, message }));

// The description as Prism parses it. Parsing takes most of a rig's start, so the result is cached next to the description.
let operations;
async function readOperations() {
  const spec = await fetchOpenapi();
  const digest = createHash('sha256').update(require('@stoplight/prism-http/package.json').version).update(await fs.readFile(spec)).digest('hex').slice(0, 16);
  const kept = path.join(path.dirname(spec), `operations-${digest}.json`);
  try {
    return JSON.parse(await fs.readFile(kept, 'utf8'));
  } catch {
    const read = await wholePrism().getHttpOperationsFromSpec(spec);
    const own = `${kept}.${process.pid}`; // another process may write it at the same time
    await fs.writeFile(own, JSON.stringify(read));
    await fs.rename(own, kept);
    return read;
  }
}

// Prism compiles the schema of each list of parameters once, and the lists of most operations differ only in the ids that its reader
// gives them: makes equal lists one list.
function shareParameters(operations) {
  const shared = new Map();
  for (const { request } of operations) {
    for (const place of ['headers', 'path', 'query']) {
      const list = request?.[place];
      if (!list) continue;
      const text = JSON.stringify(list.map(({ id, ...rest }) => rest), (key, value) => (key === 'x-stoplight' ? undefined : value));
      request[place] = shared.get(text) ?? list;
      shared.set(text, request[place]);
    }
  }
  return operations;
}

export class Description {
  #operations;
  #mockConfig = { isProxy: false, mock: { dynamic: false }, validateRequest: true, validateResponse: true, errors: true };

  static async open() {
    const description = new Description();
    description.#operations = await (operations ??= readOperations().then(shareParameters));
    return description;
  }

  // One Prism per request, because the forwarder closes over the request. It is cheap.
  #prism(serve) {
    return factory({
      isProxy: true, upstream: new URL('http://127.0.0.1'), mock: { dynamic: false },
      validateRequest: true, validateResponse: true, errors: true,
    }, {
      logger: silent, route, validateInput, validateSecurity,
      validateOutput: ({ resource, element }) => (element.isUnchecked ? right(element) : validateOutput({ resource, element })),
      forward: ({ validations }, _base, _proxy, operation) => () => async () => {
        try {
          return right(await serve(operation, validations));
        } catch (error) {
          return left(error);
        }
      },
    });
  }

  // Returns {answer, route, request: [violation], response: [violation]}. serve(operation) gives
  // {statusCode, headers, body} with a parsed body, or throws NotServed, which leaves it to the mock. With isUnchecked the answer
  // is not compared with the description: to compile the schema of an answer takes up to a tenth of a second.
  async apply({ method, path, query, headers, body }, serve) {
    const input = { method: method.toLowerCase(), url: { path, query }, headers, body };
    let route;
    const served = async (operation, violations) => {
      route = operation.path;
      if (violations.length > 0) throw new Refused(violations);
      return serve(operation);
    };
    let result = await this.#prism(served).request(input, this.#operations)();
    if (result._tag === 'Left' && result.left instanceof NotServed) {
      result = await wholePrism().createInstance(this.#mockConfig, { logger: silent }).request(input, this.#operations)();
    }
    if (result._tag === 'Right') {
      const { output, validations } = result.right;
      return { answer: output, route, request: plain(validations.input), response: plain(validations.output) };
    }
    const error = result.left;
    if (error instanceof Refused) return { route, request: plain(error.violations), response: [] };
    if (error.name?.startsWith('https://stoplight.io/prism/errors#'))
      return { route, request: [{ at: '', code: error.name.split('#')[1], message: error.detail ?? error.message }], response: [] };
    throw error;
  }
}
