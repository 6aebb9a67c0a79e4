// Tests that ran again, on this head and on its merge base: evidence for the cause of a failure.
import { useState } from 'preact/hooks';
import { experimentRows, openOf, passedOf } from '../experiment_rows.js';
import { count, plural, testName } from '../format.js';
import { Symbol } from '../status.jsx';
import { Foreign } from './links.jsx';
import { Section } from './section.jsx';
import { Table } from './table.jsx';

const ROWS_AT_ONCE = 50;

function Runs({ runs }) {
  if (runs.length === 0) return <td class="quiet">not run</td>;
  const passed = passedOf(runs);
  const [last] = runs.slice(-1);
  return (
    <td>
      <span class="row">{runs.map((run) => <span key={run.id} title={`${run.of.word}, run ${run.round}`}>{run.job ? <a class="cell-link" href={`/jobs/${run.job}`} aria-label={`${run.of.word}, run ${run.round}`}><Symbol of={run.of} /></a> : <Symbol of={run.of} />}</span>)}</span>
      <div class="small quiet">{passed || <Foreign text={last.of.word} />}</div>
    </td>
  );
}

export function Experiments({ columns }) {
  const [shown, show] = useState(ROWS_AT_ONCE);
  const rows = experimentRows(columns);
  if (rows.length === 0) return null;
  const titles = new Map(columns.map(({ name, title }) => [name, title || name]));
  return (
    <Section id="experiments" title="Run again" aside={`${plural(rows.length, 'test')}${openOf(rows)}`}>
      <p class="small quiet">These tests ran again on this head and on its merge base, because the evidence did not show the cause of their failure. Each sign links to the job of that run.</p>
      <Table label="Tests that ran again">
        <thead><tr><th scope="col">Test</th><th scope="col">On this head</th><th scope="col">On its merge base</th></tr></thead>
        <tbody>{rows.slice(0, shown).map((row) => (
          <tr key={row.key}>
            <th scope="row" class="test"><code><Foreign text={testName(row)} /></code>{row.cause === 'stress' && <> <span class="tag" title="A member asked for these runs in a comment">stress</span></>}
              <div class="small"><a href={`/accelerators/${row.accelerator}`}><Foreign text={titles.get(row.accelerator)} /></a></div></th>
            <Runs runs={row.head} />
            <Runs runs={row.base} />
          </tr>
        ))}</tbody>
      </Table>
      {rows.length > shown && <div class="more"><button type="button" onClick={() => show(shown + 4 * ROWS_AT_ONCE)}>Show more</button><span class="quiet small">{count(shown)} of {count(rows.length)}</span></div>}
    </Section>
  );
}
