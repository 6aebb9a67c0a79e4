// A pull request's head or a commit in full: the verdict, the state of each accelerator, every cell and the cause of each red one.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, withParams } from '../api.js';
import { Page } from '../app.jsx';
import { columnsOf, filterRows, OUTCOMES, rowsOf, tallyCells, UNREPORTED, urgency, VERDICTS, whyNothing } from '../change_rows.js';
import { now } from '../data.js';
import { count, plural, roughly, shortSha, testName } from '../format.js';
import { useAnswer } from '../live.js';
import { Experiments } from '../parts/experiments.jsx';
import { Details, Failures } from '../parts/failures.jsx';
import { Foreign, PullRequest, Sha } from '../parts/links.jsx';
import { More } from '../parts/more.jsx';
import { usePages } from '../parts/pages_of.js';
import { Section } from '../parts/section.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Table } from '../parts/table.jsx';
import { DISPATCH, GROUP, isRed, jobMark, Mark, STATUS, Symbol } from '../status.jsx';
import { Since, Time } from '../time.jsx';

const ROWS_AT_ONCE = 200;

function Verdict({ body }) {
  const { summary } = body;
  const of = body.state === 'superseded' ? STATUS.SKIP : VERDICTS[summary.verdict] ?? VERDICTS.unknown;
  const [lead, ...rest] = summary.text.split('; ');
  return <p class={`verdict t-${of.tone}`}><span class="symbol" aria-hidden="true">{of.symbol}</span><span><strong><Foreign text={lead} /></strong>{rest.length > 0 && <Foreign text={`; ${rest.join('; ')}`} />}</span></p>;
}

const STATE_TEXTS = {
  superseded: 'A newer commit replaced this one: its running jobs were cancelled, and the results that were reported are kept here.',
  closed: 'The pull request is closed: Outpost starts no more runs for it.',
};

function Head({ body }) {
  const name = body.number ? `#${body.number}` : shortSha(body.head_sha);
  const age = body.merge_base_at && roughly(Math.max(0, (now() - Date.parse(body.merge_base_at)) / 1000));
  return (
    <div class="lead">
      <h1><span class="quiet">{name}</span> <Foreign text={body.title || (body.number ? 'Pull request' : 'Commit')} /></h1>
      <p class="lead-line">
        {body.number && <span><PullRequest number={body.number} repository={body.repository} /></span>}
        {body.author && <span>by <Foreign text={body.author} /></span>}
        <span>{body.kind === 'nightly' ? 'periodic run of ' : 'tested commit '}<Sha sha={body.head_sha} repository={body.repository} /></span>
        {body.merge_base_sha && <span>merge base <Sha sha={body.merge_base_sha} to={`/commits/${body.merge_base_sha}`} />{age && <>, <time dateTime={body.merge_base_at} title={body.merge_base_at}>{age} old</time></>}</span>}
        <span>received <Time at={body.created_at} /></span>
        {body.labels.map((label) => <span key={label} class="tag"><Foreign text={label} /></span>)}
      </p>
      {STATE_TEXTS[body.state] && <p class="notice"><strong>{body.state === 'closed' ? 'Closed' : 'Superseded'}.</strong> {STATE_TEXTS[body.state]}</p>}
      <Verdict body={body} />
    </div>
  );
}

function DispatchCell({ a }) {
  const d = a.dispatches.find(({ current }) => current) ?? a.dispatches[0];
  if (!d) return <td class="quiet">not sent</td>;
  const others = a.dispatches.filter((other) => other !== d && other.current);
  return (
    <td>
      {[d, ...others].map((one) => (
        <div key={one.id} class="row"><Mark of={DISPATCH[one.state]} /><span class="small quiet"><Foreign text={one.runner} />{one.due_at && <>, due <Time at={one.due_at} /></>}</span>
          {(one.held_reason || one.error) && <span class="small"><Foreign text={one.held_reason ?? one.error} /></span>}</div>
      ))}
    </td>
  );
}

const DELTAS = [['newly_failing', 'newly failing'], ['fixed', 'fixed'], ['disappeared', 'disappeared'], ['newly_skipped', 'newly skipped']];

function Delta({ of, hasEnded }) {
  const parts = of ? DELTAS.filter(([key]) => of[key]) : [];
  if (!of) return <span class="quiet">no full run of the base to compare with</span>;
  if (parts.length === 0) return <span class="quiet">{hasEnded ? 'as on the base' : 'nothing to compare yet'}</span>;
  return <>{parts.map(([key, word]) => of[`${key}_tests`]?.length > 0 ? <details key={key} class="small"><summary>{count(of[key])} {word}</summary><ul>{of[`${key}_tests`].map((test) => <li key={test}><code><Foreign text={test} /></code></li>)}</ul></details> : <div key={key} class="small">{count(of[key])} {word}</div>)}</>;
}

function Accelerators({ body, columns }) {
  const outcomes = new Map((body.summary.accelerators ?? []).map((one) => [one.name, one]));
  const counts = [['new', 'new'], ['unclassified', 'not classified'], ['missing', 'without a result'], ['known', 'known'], ['base', 'on the base'], ['flaky', 'flaky'], ['not_counted', 'not counted'], ['passed', 'passed']];
  return (
    <Section id="accelerators" title="Accelerators" aside="worst first">
      <Table label="State of each accelerator">
        <thead><tr><th scope="col">Accelerator</th><th scope="col">Outcome</th><th scope="col">Sent</th><th scope="col">Jobs</th><th scope="col">Against the base</th></tr></thead>
        <tbody>{columns.map((a) => {
          const o = outcomes.get(a.name);
          const lacking = a.required.filter(({ state }) => state !== 'met' && state !== 'unknown');
          return (
            <tr key={a.name}>
              <th scope="row" class="who"><span class="row"><a class="who-name" href={`/accelerators/${a.name}`}><Foreign text={a.title || a.name} /></a><span class="tag">{a.level}</span></span>
                {a.red_since && <span class="small quiet">{a.red_by === 'silence' ? 'no report' : 'red'} on the branch for <Since at={a.red_since} />{a.overdue && ', overdue'}</span>}</th>
              <td>{o ? <><Mark of={OUTCOMES[o.outcome] ?? OUTCOMES.nothing} /><div class="small quiet">{counts.filter(([key]) => o[key]).map(([key, word]) => `${count(o[key])} ${word}`).join(', ')}</div></> : <span class="quiet">results are not shown</span>}
                {lacking.length > 0 && <div class="small">required: {lacking.map((r, i) => <span key={i}>{i > 0 && ', '}<code><Foreign text={r.suite ?? r.test} /></code> {r.state.replace('_', ' ')}</span>)}</div>}</td>
              <DispatchCell a={a} />
              <td>{a.jobs.length === 0 ? <span class="quiet">none yet</span> : <ul class="plain jobs">{a.jobs.map((job) => <li key={job.id}><Symbol of={jobMark(job)} /> <a href={`/jobs/${job.id}`}><Foreign text={job.workflow === job.name ? job.name : `${job.workflow} / ${job.name}`} /></a>{job.run_attempt > 1 && <span class="small quiet"> attempt {job.run_attempt}</span>}{job.late && <span class="tag">late</span>}</li>)}</ul>}</td>
              <td><Delta of={a.delta} hasEnded={a.jobs.some(({ status }) => status === 'completed')} /></td>
            </tr>
          );
        })}</tbody>
      </Table>
    </Section>
  );
}

// A cell without a report, and why.
function Nothing({ of }) {
  return <td class="mid">{of === UNREPORTED ? <span class="quiet"><span aria-hidden="true">{of.symbol}</span><span class="visually-hidden">{of.word}</span></span> : <Symbol of={of} />}</td>;
}

function Row({ row, columns, outcomes, body }) {
  const [open, setOpen] = useState('');
  const cell = open && row.cells.get(open);
  return (
    <>
      <tr>
        <th scope="row" class="test"><code><Foreign text={testName(row)} /></code></th>
        {columns.map(({ name }) => {
          const one = row.cells.get(name);
          if (!one) return <Nothing key={name} of={whyNothing(columns.find((a) => a.name === name), outcomes.get(name))} />;
          const of = STATUS[one.status];
          const word = one.group ? GROUP[one.group].word : '';
          const tone = one.group === 'not_counted' ? 'skip' : of.tone;
          if (isRed(one.status)) return <td key={name} class="mid"><button type="button" class={`cell t-${tone} ${urgency(one) > 2 ? 'is-other' : ''}`} aria-expanded={open === name} aria-label={`${of.word}${word && `, ${word}`}: why`} title={one.message ?? of.word} onClick={() => setOpen(open === name ? '' : name)}><span class="symbol">{of.symbol}</span>{word && ` ${word}`}</button></td>;
          return <td key={name} class="mid">{one.job ? <a class="cell-link" href={`/jobs/${one.job}`}><Symbol of={of} /></a> : <Symbol of={of} />}</td>;
        })}
      </tr>
      {cell && <tr class="opened"><td colSpan={columns.length + 1}><div class="opened-in"><Details cell={cell} a={columns.find(({ name }) => name === open)} body={body} /></div></td></tr>}
    </>
  );
}

function Choice({ label, value, onChange, options }) {
  return <label>{label}<select value={value} onChange={(event) => onChange(event.currentTarget.value)}>{options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}</select></label>;
}

function Tests({ body, rows, pages, columns }) {
  const [filter, setFilter] = useState({ q: '', status: '', group: '', accelerator: '' });
  const [shown, show] = useState(ROWS_AT_ONCE);
  const change = (part) => { setFilter({ ...filter, ...part }); show(ROWS_AT_ONCE); };
  const found = useMemo(() => filterRows(rows, filter), [rows, filter]);
  const n = useMemo(() => tallyCells(rows), [rows]);
  const outcomes = new Map((body.summary.accelerators ?? []).map(({ name, outcome }) => [name, outcome]));
  const picked = filter.accelerator ? columns.filter(({ name }) => name === filter.accelerator) : columns;
  const isAll = !Object.values(filter).some(Boolean);
  const total = body.verdicts_total ?? body.verdicts.length;

  return (
    <Section id="tests" title="Tests" aside={`${plural(total, 'result')}, worst first`}>
      {rows.length === 0 ? <Empty title={body.accelerators.length ? 'No test has been reported yet' : 'No accelerator tests this change'}>{body.accelerators.length > 0 && <p>Each row appears as soon as a job reports it.</p>}</Empty> : (
        <>
          <div class="filters">
            <label>Find<input type="search" value={filter.q} placeholder="test or message" onInput={(event) => change({ q: event.currentTarget.value })} /></label>
            <Choice label="Status" value={filter.status} onChange={(status) => change({ status })} options={[['', 'every'], ['red', 'red'], ...Object.keys(n.status).map((key) => [key, `${STATUS[key].word}, ${count(n.status[key])}`])]} />
            <Choice label="Why red" value={filter.group} onChange={(group) => change({ group })} options={[['', 'every'], ...Object.keys(GROUP).filter((key) => n.group[key]).map((key) => [key, `${GROUP[key].word || STATUS.MISS.word}, ${count(n.group[key])}`])]} />
            <Choice label="Accelerator" value={filter.accelerator} onChange={(accelerator) => change({ accelerator })} options={[['', `all ${columns.length}`], ...columns.map(({ name, title }) => [name, (title || name).slice(0, 60)])]} />
            <span class="small quiet" role="status">{plural(found.length, 'test')}{pages.isBusy && ', loading'}{!isAll && <> <button type="button" class="link" onClick={() => change({ q: '', status: '', group: '', accelerator: '' })}>clear</button></>}</span>
          </div>
          {pages.next && !isAll && <p class="small quiet">Looked for in what is here: every red result, and {count(rows.length)} tests. Load all to look everywhere.</p>}
          {found.length === 0 ? <Empty title="No test fits" /> : (
            <Table label="Tests by accelerator" class="matrix">
              <thead><tr><th scope="col">Test</th>{picked.map((a) => <th key={a.name} scope="col" class="mid"><a href={`/accelerators/${a.name}`} title={a.title}><Foreign class="clip" text={a.title || a.name} /></a></th>)}</tr></thead>
              <tbody>{found.slice(0, shown).map((row) => <Row key={row.key} row={row} columns={picked} outcomes={outcomes} body={body} />)}</tbody>
            </Table>
          )}
          {found.length > shown
            ? <div class="more"><button type="button" onClick={() => show(shown + ROWS_AT_ONCE)}>Show {Math.min(ROWS_AT_ONCE, found.length - shown)} more</button><span class="quiet small">{count(shown)} of {count(found.length)} tests are shown</span></div>
            : <More pages={pages} shown={rows.reduce((sum, row) => sum + row.cells.size, 0)} total={total} what="tests" canAll />}
          <Legend n={n} nothing={new Set(picked.filter((a) => found.some((row) => !row.cells.has(a.name))).map((a) => whyNothing(a, outcomes.get(a.name))))} />
        </>
      )}
    </Section>
  );
}

function Legend({ n, nothing }) {
  const marks = new Map([...Object.keys(STATUS).filter((key) => n.status[key]).map((key) => STATUS[key]), ...nothing].map((of) => [of.symbol + of.word, of]));
  return (
    <ul class="legend below">
      {[...marks].map(([key, of]) => <li key={key}><span class={`symbol t-${of.tone}`} aria-hidden="true">{of.symbol}</span>{of.word}</li>)}
      {Object.keys(GROUP).filter((key) => n.group[key] && GROUP[key].word).map((key) => <li key={key}><strong>{GROUP[key].word}</strong> {GROUP[key].text}</li>)}
    </ul>
  );
}

// If the first answer has only a part of the cells, all red ones are requested at once.
function useRed(api, body) {
  const [red, set] = useState([]);
  useEffect(() => {
    if (!body.next) { set([]); return undefined; }
    const ended = new AbortController();
    get(withParams(api, { attribution: 'red', limit: 500, cursor: null }), { signal: ended.signal }).then((got) => set(got.body.verdicts), () => {});
    return () => ended.abort();
  }, [body]);
  return red;
}

function Change({ body, api }) {
  const columns = columnsOf(body);
  const byName = new Map(columns.map((a) => [a.name, a]));
  const red = useRed(api, body);
  const pages = usePages({ first: body, next: body.next ?? null, pathOf: (cursor) => withParams(api, { limit: 500, cursor }), itemsOf: (got) => got.verdicts });
  const rows = useMemo(() => rowsOf([...pages.items, ...body.verdicts, ...red]), [body, red, pages.items]);
  return (
    <>
      <Head body={body} />
      {body.state !== 'superseded' && <Failures rows={rows} byName={byName} body={body} />}
      {columns.length > 0 && <Accelerators body={body} columns={columns} />}
      <Experiments columns={columns} />
      <Tests body={body} rows={rows} pages={pages} columns={columns} />
    </>
  );
}

export function ChangePage({ api }) {
  const answer = useAnswer(api);
  const { body } = answer;
  const title = body ? `${body.number ? `#${body.number}` : shortSha(body.head_sha)} ${body.title ?? ''}`.trim().slice(0, 80) : 'Change';
  return <Page title={title} state={answer.state} api={api}><Answer answer={answer}>{(got) => <Change body={got} api={api} />}</Answer></Page>;
}
