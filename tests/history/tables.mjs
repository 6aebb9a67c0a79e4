// The rows of all tables of a daemon's database in a form that two runs of one history have in common: names instead of ids and GUIDs,
// and without times.
import { randomUUID } from 'node:crypto';
import { psql, urlOf } from '../postgres.mjs';

// Of the process, of the engine, or of the order of events: the values of these tables may differ.
const LEFT_OUT = ['body_base', 'content_write', 'log', 'log_object', 'log_piece', 'node', 'node_independent', 'outpost_schema', 'seat', 'setting', 'staged', 'unfinished_copy'];
// Columns of ids, and the table of each.
const REFERENCES = {
  change_id: 'change', run_change_id: 'change', first_bad_change: 'change', ended_change: 'change', job_id: 'job', evidence_job: 'job', first_bad_job: 'job', last_good_job: 'job',
  test_id: 'test', dispatch_id: 'dispatch', experiment_id: 'experiment', issue_id: 'known_issue', list_id: 'test_list', delivery_guid: 'delivery',
};
// Values that follow from ids, ports, random numbers or the wall clock; `*`: of every table. GitHub's ids follow from the order of its requests.
const RANDOM = {
  '*': ['id', 'epoch'],
  delivery: ['guid', 'body', 'base_id'], outbox: ['text', 'delivery_guid', 'number'], test_list: ['tests', 'base_id'], comment: ['comment_id', 'body_hash'], check_run: ['check_id', 'digest'],
  packed_job: ['cells'], red_episode: ['issue_number'],
  day: ['queue_times', 'run_times'], day_jobs: ['end_to_end'], run_jobs: ['end_to_end'], 
};
const isTime = (column) => column.endsWith('_ms');

// Reads the database of a stopped daemon. Rows of SQLite are read from a copy in PostgreSQL, where packed results are readable.
export async function readTables(outpost) {
  const { database } = outpost;
  if (database.isOnServer) return readDatabase(database.name);
  const name = `outpost_${randomUUID().replaceAll('-', '')}`;
  await psql(urlOf('postgres'), `CREATE DATABASE ${name} TEMPLATE template0 LOCALE 'C'`);
  try {
    const { code, stderr } = await outpost.ctl('store', 'copy', '--to', urlOf(name));
    if (code !== 0) throw new Error(`outpostctl store copy: ${stderr}`);
    return await readDatabase(name);
  } finally {
    await psql(urlOf('postgres'), `DROP DATABASE ${name} WITH (FORCE)`);
  }
}

async function readDatabase(database) {
  const names = JSON.parse(await psql(urlOf(database), "SELECT json_agg(table_name) FROM information_schema.tables WHERE table_schema = 'public'"));
  const tables = {};
  for (const name of names.filter((one) => !LEFT_OUT.includes(one)).sort())
    tables[name] = JSON.parse(await psql(urlOf(database), `SELECT COALESCE(json_agg(r), '[]') FROM "${name}" r`));
  return tables;
}

// The name of each row that others refer to, by its id.
export class Names {
  #of = {};

  constructor(tables) {
    const name = (table, id, of) => { this.#of[table] = new Map(tables[table].map((row) => [row[id], of(row)])); };
    name('test', 'id', (row) => [row.suite, row.name, row.dtype].join('/'));
    name('delivery', 'guid', (row) => (row.is_synthetic ? `made by Outpost: ${row.event}` : row.guid));
    name('experiment', 'id', () => '');
    // The change of an experiment's run has its id, and the experiment has the change that it explains.
    name('change', 'id', (row) => `${row.kind} ${row.head_sha}`);
    const changes = new Map(this.#of.change);
    const tests = new Map();
    for (const { experiment_id: id, test_id: test } of tables.experiment_test) tests.set(id, [...tests.get(id) ?? [], this.of('test', test)].sort());
    name('experiment', 'id', (row) => `${row.cause} ${row.side} ${row.round} at ${row.sha} of ${changes.get(row.change_id)} on ${row.accelerator}: ${tests.get(row.id)}`);
    name('change', 'id', (row) => `${changes.get(row.id)}${row.experiment_id ? `, ${this.of('experiment', row.experiment_id)}` : ''}`);
    name('dispatch', 'id', (row) => `dispatch ${row.round} of ${this.of('change', row.change_id)} to ${row.accelerator} ${row.runner}`);
    name('job', 'id', (row) => `job ${row.workflow}/${row.name} ${row.run_attempt} of ${this.of('dispatch', row.dispatch_id)}`);
    name('red_episode', 'id', (row) => `red ${row.ref} on ${row.accelerator} since ${this.of('change', row.first_bad_change)}`);
    name('test_list', 'id', (row) => row.digest);
    name('known_issue', 'id', (row) => row.pattern);
  }

  of(table, id) { return this.#of[table].get(id) ?? id; }

  // A text with names in place of ids and of the daemon's port.
  ofText(text) {
    return text.replace(/http:\/\/127\.0\.0\.1:\d+/g, 'https://outpost').replace(/\/jobs\/(\d+)/g, (whole, id) => `/jobs/${encodeURIComponent(this.of('job', Number(id)))}`)
      .replace(/^(dispatch|cancel):(\w+)$/, (whole, kind, id) => `${kind}: ${this.of('dispatch', id)}`).replace(/^(red|notice)[:-](\d+)/, (whole, kind, id) => `${kind} of ${this.of('red_episode', Number(id))}`);
  }
}

// → for each table the texts of its rows, in order
export function comparable(tables, names) {
  return Object.fromEntries(Object.entries(tables).map(([table, rows]) => [`table ${table}`, rows.map((row) => comparableRow(table, row, names)).sort()]));
}

function comparableRow(table, row, names) {
  const value = {};
  for (const column of Object.keys(row).sort()) {
    const one = row[column];
    if (RANDOM['*'].includes(column) || RANDOM[table]?.includes(column)) continue;
    if (isTime(column) && one !== null) value[column] = 'a time';
    else if (REFERENCES[column] && one !== null) value[column] = names.ofText(String(names.of(REFERENCES[column], one)));
    else if (column === 'ids' && one) value.tests = one.map((id) => names.of('test', id));
    else value[column] = typeof one === 'string' ? names.ofText(one) : one;
  }
  return JSON.stringify(value);
}
