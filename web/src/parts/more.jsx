import { count } from '../format.js';

// The button for the next part of a list in pages. shown, total (null: not known), what: "jobs".
export function More({ pages, shown, total, what, canAll = false }) {
  if (!pages.next && !pages.error) return null;
  return (
    <div class="more">
      <button type="button" onClick={pages.more} disabled={pages.isBusy}>{pages.isBusy ? 'Loading…' : pages.error ? 'Try again' : `More ${what}`}</button>
      {canAll && <button type="button" onClick={pages.all} disabled={pages.isBusy}>Load all</button>}
      <span class="quiet small" role="status">{pages.error ? pages.error.message : total == null ? '' : `${count(shown)} of ${count(total)} are here`}</span>
    </div>
  );
}
