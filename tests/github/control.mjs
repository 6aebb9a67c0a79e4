// The rig's methods over HTTP with JSON, for other processes: the demo, the fake vendors, tests in other languages.
//
//   GET    /_rig/                         addresses and counts
//   GET    /_rig/requests?after=SEQ&method=&path=
//   GET    /_rig/violations
//   GET    /_rig/dispatches?repository=&after=SEQ&wait=MS     waits for the first if there is none
//   GET    /_rig/deliveries               as the rig sent them, newest last
//   POST   /_rig/deliver                  {event, payload, options} → {id, guid, status_code, response}
//   PUT    /_rig/target                   {url}
//   GET|POST|DELETE /_rig/faults          a rule as in faults.mjs; path is a pattern in text
//   POST   /_rig/pulls                    {repository, …} as openPull
//   PATCH  /_rig/pulls                    {repository, number, …} as updatePull
//   POST   /_rig/push                     {repository, branch?, sha?, files?} → {sha}
//   GET    /_rig/comments?repository=&number=      GET /_rig/check-runs?repository=&sha=
//   POST   /_rig/comments                 {repository, number, body, author} → {id}
//   POST   /_rig/expire-tokens            PUT /_rig/installed {repository, installed}
const MAX_WAIT = 30_000;

const pick = ({ id, guid, event, action, redelivery, status, status_code, duration, response }) =>
  ({ id, guid, event, action, redelivery, status, status_code, duration, response });

const routes = {
  'GET /_rig/': (rig) => ({
    url: rig.url, app: { id: rig.app.id, slug: rig.app.slug }, requests: rig.requests().length,
    dispatches: rig.dispatches().length, deliveries: rig.deliveries.list().length, violations: rig.violations().length,
  }),
  'GET /_rig/requests': (rig, { query }) => rig.requests({ method: query.get('method') ?? undefined, path: query.get('path') ?? undefined, after: Number(query.get('after') ?? 0) }),
  'GET /_rig/violations': (rig) => rig.violations(),
  'GET /_rig/dispatches': async (rig, { query }) => {
    const filter = { repository: query.get('repository') ?? undefined, after: Number(query.get('after') ?? 0) };
    const wait = Math.min(MAX_WAIT, Number(query.get('wait') ?? 0));
    if (wait > 0) await rig.waitForDispatch(filter, wait).catch(() => {});
    return rig.dispatches(filter);
  },
  'GET /_rig/deliveries': (rig) => rig.deliveries.list().map(pick),
  'POST /_rig/deliver': async (rig, { body }) => pick(await rig.deliver(body.event, body.payload, body.options)),
  'PUT /_rig/target': (rig, { body }) => rig.setTarget(body.url),
  'GET /_rig/faults': (rig) => rig.faults.list(),
  'POST /_rig/faults': (rig, { body }) => ({ id: rig.fault(body).id }),
  'DELETE /_rig/faults': (rig, { query }) => rig.faults.remove(query.has('id') ? Number(query.get('id')) : undefined),
  'POST /_rig/pulls': (rig, { body: { repository, ...options } }) => rig.openPull(repository, options),
  'PATCH /_rig/pulls': (rig, { body: { repository, number, ...changes } }) => rig.updatePull(repository, number, changes),
  'POST /_rig/push': (rig, { body: { repository, ...options } }) => ({ sha: rig.push(repository, options) }),
  'GET /_rig/comments': (rig, { query }) => rig.comments(query.get('repository'), Number(query.get('number'))),
  'POST /_rig/comments': (rig, { body: { repository, number, ...comment } }) => ({ id: rig.world.comment(repository, number, comment) }),
  'GET /_rig/check-runs': (rig, { query }) => rig.checkRuns(query.get('repository'), query.get('sha') ?? undefined),
  'POST /_rig/expire-tokens': (rig) => rig.expireTokens(),
  'PUT /_rig/installed': (rig, { body }) => rig.world.setInstalled(body.repository, body.installed),
};

export async function control(rig, request, response, url, readBody) {
  const text = await readBody(request);
  const send = (status, value) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value ?? {}));
  const route = routes[`${request.method} ${url.pathname}`];
  if (!route) return send(404, { error: `no such control: ${request.method} ${url.pathname}` });
  try {
    return send(200, await route(rig, { query: url.searchParams, body: text ? JSON.parse(text) : {} }));
  } catch (error) {
    return send(400, { error: error.message });
  }
}
