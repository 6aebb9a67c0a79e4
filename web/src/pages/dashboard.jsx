// The state of every accelerator on upstream's branch, worst first, and the running work.
import { useState } from 'preact/hooks';
import { Page } from '../app.jsx';
import { stateText, suiteCell } from '../dashboard_state.js';
import { data, now } from '../data.js';
import { count, percent, plural } from '../format.js';
import { FIRST_FILE } from '../examples.js';
import { useAnswer } from '../live.js';
import { Change, Foreign, Sha } from '../parts/links.jsx';
import { Section } from '../parts/section.jsx';
import { Answer, Empty } from '../parts/states.jsx';
import { Spark, Strip } from '../parts/strip.jsx';
import { Table } from '../parts/table.jsx';
import { DISPATCH, Mark, OUTCOME, STATUS, Symbol } from '../status.jsx';
import { Time, useTick } from '../time.jsx';

const NIGHTS = 14; // as many as fit into the row; the accelerator's own page has all

function SuiteCell({ of }) {
  if (!of) return <td class="quiet"><span class="symbol" aria-hidden="true">·</span><span class="visually-hidden">not reported</span></td>;
  const { status, text, note, title } = suiteCell(of);
  const body = <><Symbol of={STATUS[status]} title={title} /> <span class="n">{text}</span></>;
  return <td class="nowrap" title={title}>{of.job ? <a class="cell-link" href={`/jobs/${of.job}`}>{body}</a> : body}{note && <span class="small quiet"> {note}</span>}</td>;
}

function Tested({ commit }) {
  if (!commit) return <td class="quiet">nothing</td>;
  const behind = commit.distance === 0 ? 'newest' : commit.distance === null ? '' : `${plural(commit.distance, 'commit')} behind`;
  return <td class="nowrap"><Sha sha={commit.sha} to={`/commits/${commit.sha}`} /><br /><span class="small quiet">{behind || <Time at={commit.at} />}</span></td>;
}

// A red state links to its beginning, a missing report to the commit.
function State({ a }) {
  const mark = <Mark of={a.state}>{stateText(a.state, now())}</Mark>;
  const to = a.red_since ? `/accelerators/${a.name}#red` : a.no_report && `/commits/${a.no_report.sha}`;
  return to ? <a href={to}>{mark}</a> : mark;
}

// Periodic runs are not pushes: their failures are shown next to the state of the branch.
function NightlyState({ a }) {
  const bad = a.bad_night && OUTCOME[a.bad_night];
  return bad && <a href={`/nightly?accelerator=${encodeURIComponent(a.name)}`}><Mark of={bad}>periodic {bad.word}</Mark></a>;
}

function Row({ a, suites, hasNights }) {
  return (
    <tr>
      <th scope="row" class="who">
        <span class="row"><a class="who-name" href={`/accelerators/${a.name}`}><Foreign text={a.title || a.name} /></a><span class="tag">{a.level}</span></span>
        <span class="who-state"><State a={a} /><NightlyState a={a} />{a.last_report && a.state.name !== 'silent' && <span class="small quiet"><span class="visually-hidden">last report </span><Time at={a.last_report} /></span>}</span>
      </th>
      {suites.map((suite) => <SuiteCell key={suite} of={a.suites.find((s) => s.suite === suite)} />)}
      <Tested commit={a.commit} />
      <td class="nowrap"><Spark values={a.trend.map((t) => t.pass_rate)} label="Pass rate, 30 days" width={96} /><span class="small quiet">{a.pass_rate === null ? 'no runs' : percent(a.pass_rate)}</span></td>
      {hasNights && <td class="nights"><a href={`/accelerators/${a.name}#periodic`}><Strip days={a.nightly.slice(-NIGHTS)} label={`Periodic runs of ${a.name},`} /></a></td>}
    </tr>
  );
}

function Matrix({ body }) {
  const [only, choose] = useState('');
  const [word, search] = useState('');
  const { states, suites } = body;
  const hasNights = body.accelerators.some((a) => a.nightly.some(({ outcome }) => outcome));
  const searched = word.trim().toLowerCase();
  const shown = body.accelerators.filter((a) => (!only || a.state.name === only) && (!searched || `${a.name} ${a.title} ${a.vendor}`.toLowerCase().includes(searched)));
  return (
    <Section id="accelerators" title="Accelerators" aside="worst first; how many tests of each suite, at the newest commit that it tested">
      {body.accelerators.length > 8 && (
        <div class="filters">
          <label>Find<input type="search" value={word} onInput={(event) => search(event.currentTarget.value)} placeholder="name or vendor" /></label>
          <div class="chips" role="group" aria-label="State">
            <button type="button" class="chip" aria-pressed={only === ''} onClick={() => choose('')}>all {count(body.accelerators.length)}</button>
            {states.map(({ name, word, symbol, tone, accelerators: n }) => <button key={name} type="button" class="chip" aria-pressed={only === name} onClick={() => choose(only === name ? '' : name)}><span class={`symbol t-${tone}`} aria-hidden="true">{symbol}</span>{word.split(',')[0]} {count(n)}</button>)}
          </div>
        </div>
      )}
      {shown.length === 0 ? <Empty title="No accelerator matches"><button type="button" onClick={() => { choose(''); search(''); }}>Show all</button></Empty> : (
        <Table label="Accelerators by suite" class="matrix">
          <thead><tr><th scope="col">Accelerator</th>{suites.map((suite) => <th key={suite} scope="col"><Foreign class="clip" text={suite} /></th>)}<th scope="col">Commit</th><th scope="col">Pass rate, 30 days</th>{hasNights && <th scope="col">Periodic, {NIGHTS} days</th>}</tr></thead>
          <tbody>{shown.map((a) => <Row key={a.name} a={a} suites={suites} hasNights={hasNights} />)}</tbody>
        </Table>
      )}
    </Section>
  );
}

function Running({ body }) {
  return (
    <Section id="running" title="Running now" aside={body.running_total > 0 && plural(body.running_total, 'dispatch', 'dispatches')}>
      {body.running.length === 0 ? <p class="quiet">Nothing is running.</p> : (
        <Table label="Running now">
          <thead><tr><th scope="col">Change</th><th scope="col">Accelerator</th><th scope="col">State</th><th scope="col">Since</th><th scope="col">Due</th><th scope="col">Runner</th></tr></thead>
          <tbody>{body.running.map((r) => (
            <tr key={r.dispatch}>
              <th scope="row" class="what"><Change change={r} /> <Foreign class="quiet clamp" text={r.title} /></th>
              <td><a href={`/accelerators/${r.accelerator}`}>{r.accelerator}</a></td>
              <td><Mark of={DISPATCH[r.state]} /></td>
              <td><Time at={r.since} /></td>
              <td><Time at={r.due} none="no deadline" /></td>
              <td><Foreign text={r.runner} /></td>
            </tr>
          ))}</tbody>
        </Table>
      )}
      {body.running_total > body.running.length && <p class="small quiet">The first {body.running.length} are shown.</p>}
    </Section>
  );
}

function Fresh() {
  return (
    <Empty title="No accelerator is registered yet">
      <p>Put a file into <code>accelerators.d</code>, check it with <code>outpostctl check</code>, and send <code>outpostd</code> a SIGHUP:</p>
      <pre>{FIRST_FILE}</pre>
      <p>Outpost sends it the next push to {data.upstream || 'upstream'} and the next pull request there, and shows its results here.</p>
    </Empty>
  );
}

function Dashboard({ body }) {
  useTick();
  if (body.accelerators.length === 0) return <><h1>Outpost is ready</h1><Fresh /></>;
  const said = body.headline;
  return (
    <>
      <div class="lead">
        <h1 class={`headline t-${said.tone}`}><span class="symbol" aria-hidden="true">{said.symbol}</span> <Foreign text={said.text} /></h1>
        {said.rest && <p><Foreign text={said.rest} /></p>}
        {body.newest
          ? <p class="lead-line"><span>Newest tested commit of <code>{body.repository}</code>: <Sha sha={body.newest.sha} to={`/commits/${body.newest.sha}`} /> <Foreign text={body.newest.title} /></span><span>{body.newest.author && <><Foreign text={body.newest.author} />, </>}<Time at={body.newest.at} /></span><span>tested by {body.newest.accelerators} of {body.accelerators.length}</span></p>
          : <p class="quiet">The next push is sent by itself; <code>outpostctl retest SHA</code> sends a commit that Outpost knows already.</p>}
      </div>
      <Matrix body={body} />
      <Running body={body} />
    </>
  );
}

export function DashboardPage({ api }) {
  const answer = useAnswer(api);
  return <Page title="Dashboard" state={answer.state} api={api}><Answer answer={answer}>{(body) => <Dashboard body={body} />}</Answer></Page>;
}
