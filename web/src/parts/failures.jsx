// The failures of a change and their causes; failures with the same message are one group.
import { useState } from 'preact/hooks';
import { groupAlike, isToLookAt, keyOf } from '../change_rows.js';
import { count, plural, testName, visible } from '../format.js';
import { GROUP, Mark, RERUN, STATUS } from '../status.jsx';
import { Foreign, GITHUB, Out } from './links.jsx';
import { Section } from './section.jsx';

const FAILURES_AT_ONCE = 10;
const ALIKE_AT_ONCE = 8;

function Contact({ a }) {
  const help = a?.links?.help ?? a?.links?.docs;
  return <>{help && <Out href={help}>contact</Out>}{a?.oncall?.length > 0 && <span>on call {a.oncall.map((login, i) => <span key={login}>{i > 0 && ', '}<code>{login}</code></span>)}</span>}</>;
}

function Place({ cell, body }) {
  if (!cell.file) return null;
  return <a class="sha" href={`${GITHUB}/${body.repository}/blob/${body.head_sha}/${encodeURI(cell.file)}${cell.line ? `#L${cell.line}` : ''}`}><Foreign text={cell.file} />{cell.line && `:${cell.line}`}</a>;
}

// Links to the evidence: the job, or the row in "Run again" if the test ran again.
function Rerun({ of: { rerun, rerun_job: job } }) {
  if (!rerun) return null;
  if (rerun === 'over_limit' || rerun === 'called_off') return <span class="tag">{RERUN[rerun]}</span>;
  return <a class="tag" href={job ? `/jobs/${job}` : '#experiments'}>{RERUN[rerun]}</a>;
}

// The cause of a red cell, with its evidence.
export function Details({ cell, a, body }) {
  const why = GROUP[cell.group];
  return (
    <div class="details">
      <p class="row">
        <Mark of={STATUS[cell.status]} />{why?.word && <Mark of={{ symbol: '', word: why.word, tone: cell.group === 'new' ? 'fail' : 'plain' }} />}
        <span>on <a href={`/accelerators/${cell.accelerator}`}><Foreign text={a?.title ?? cell.accelerator} /></a></span>
        {cell.late && <span class="tag">reported late</span>}
        <Rerun of={cell} />
      </p>
      {cell.message && <pre><Foreign text={cell.message} /></pre>}
      <p class="row">
        <span>{cell.reason ? <Foreign text={cell.reason} /> : why ? why.text : 'not classified yet'}</span>
        {cell.evidence_url && <Out href={cell.evidence_url}>{cell.attribution === 'KNOWN' ? 'issue' : 'evidence'}</Out>}
        {cell.job && <a href={`/jobs/${cell.job}`}>this job</a>}
        <Place cell={cell} body={body} />
        <Contact a={a} />
      </p>
    </div>
  );
}

// Failures with the same message, probably of one cause: the message once, then its tests.
function Alike({ cells, byName, body }) {
  const [isWhole, setWhole] = useState(false);
  const [first] = cells;
  const why = GROUP[first.group];
  const tests = new Set(cells.map(keyOf)).size;
  const reasons = new Set(cells.map(({ reason }) => reason));
  return (
    <>
      <h3>{tests === 1 ? <code><Foreign text={testName(first)} /></code> : `${count(tests)} tests with ${cells.every(({ message }) => message === first.message) ? '' : 'nearly '}the same message`}</h3>
      <div class="details">
        <p class="row">
          <Mark of={STATUS[first.status]} />{why?.word && <Mark of={{ symbol: '', word: why.word, tone: first.group === 'new' ? 'fail' : 'plain' }} />}
          <span>on {plural(new Set(cells.map(({ accelerator }) => accelerator)).size, 'accelerator')}</span>
        </p>
        <pre><Foreign text={first.message} /></pre>
        <p>{reasons.size === 1 && first.reason ? <Foreign text={first.reason} /> : why ? why.text : 'not classified yet'}</p>
        <ul class="plain alike">
          {(isWhole ? cells : cells.slice(0, ALIKE_AT_ONCE)).map((cell) => (
            <li key={`${cell.accelerator} ${keyOf(cell)}`} class="row" title={visible(cell.message)}>
              {tests > 1 && <code><Foreign text={testName(cell)} /></code>}
              <span>on <a href={`/accelerators/${cell.accelerator}`}><Foreign text={byName.get(cell.accelerator)?.title ?? cell.accelerator} /></a></span>
              {cell.late && <span class="tag">reported late</span>}
              <Rerun of={cell} />
              {reasons.size > 1 && cell.reason && <Foreign class="quiet" text={cell.reason} />}
              {cell.job && <a href={`/jobs/${cell.job}`}>this job</a>}
              {cell.evidence_url && <Out href={cell.evidence_url}>{cell.attribution === 'KNOWN' ? 'issue' : 'evidence'}</Out>}
              <Place cell={cell} body={body} />
            </li>
          ))}
        </ul>
        {!isWhole && cells.length > ALIKE_AT_ONCE && <button type="button" class="link" onClick={() => setWhole(true)}>show all {count(cells.length)}</button>}
      </div>
    </>
  );
}

function Alone({ cell, byName, body }) {
  return <><h3><code><Foreign text={testName(cell)} /></code></h3><Details cell={cell} a={byName.get(cell.accelerator)} body={body} /></>;
}

export function Failures({ rows, byName, body }) {
  const [shown, show] = useState(FAILURES_AT_ONCE);
  const red = rows.flatMap((row) => [...row.cells.values()].filter(isToLookAt));
  if (red.length === 0) return null;
  const groups = groupAlike(red);
  return (
    <Section id="failures" title="To look at" aside={`${plural(red.length, 'failure')} that this change may have caused`}>
      <ul class="plain stack">
        {groups.slice(0, shown).map(({ key, cells }) => <li key={key} class="panel">{cells.length > 1 ? <Alike cells={cells} byName={byName} body={body} /> : <Alone cell={cells[0]} byName={byName} body={body} />}</li>)}
      </ul>
      {groups.length > shown && <div class="more"><button type="button" onClick={() => show(shown + 50)}>Show more</button><span class="quiet small">{count(shown)} of {count(groups.length)}</span></div>}
    </Section>
  );
}
