// A list in pages: the next page is requested on demand. When the first page has changed, all pages are read again, at most every 5 s;
// until they are complete, the old ones are shown.
import { useEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { get } from '../api.js';

const AGAIN_MS = 5000;

// next: the cursor after the first page, or null. pathOf(cursor): the path of a page, which differs for each list;
// itemsOf(body): the items of a page.
//   {items, next, isBusy, error, more(), all()}
export function usePages({ first, next, pathOf, itemsOf }) {
  const [, redraw] = useReducer((n) => n + 1, 0);
  const list = pathOf('');
  const held = useRef(null);
  const run = useRef(0);
  const timer = useRef(null);
  const newest = useRef(next);
  newest.current = next;

  const stop = () => {
    run.current++;
    clearTimeout(timer.current);
    timer.current = null;
  };
  if (held.current?.list !== list) {
    stop();
    held.current = { list, pages: [], next, isBusy: false, error: null };
  }
  const put = (change) => { held.current = { ...held.current, ...change }; redraw(); };

  const readOn = async (pages, cursor, requested, isAgain) => {
    const mine = ++run.current;
    put({ isBusy: true, error: null });
    try {
      while (cursor && pages.length < requested) {
        const { body } = await get(pathOf(cursor));
        if (mine !== run.current) return;
        pages = [...pages, itemsOf(body)];
        cursor = body.next ?? body.jobs_next ?? null;
        if (!isAgain) put({ pages, next: cursor });
      }
      put({ pages, next: cursor, isBusy: false });
    } catch (error) {
      if (mine === run.current) put({ isBusy: false, error });
    }
  };

  useEffect(() => {
    const { pages, isBusy } = held.current;
    if (pages.length === 0 && !isBusy) put({ next });
    if (pages.length === 0 || timer.current) return; // a page that changes every second is still read again
    timer.current = setTimeout(() => {
      timer.current = null;
      readOn([], newest.current, held.current.pages.length, true);
    }, AGAIN_MS);
  }, [first, next, list]);
  useEffect(() => stop, []);

  const { pages, isBusy, error } = held.current;
  return {
    items: useMemo(() => pages.flat(), [pages]), next: held.current.next, isBusy, error,
    more: () => readOn(pages, held.current.next, pages.length + 1),
    all: () => readOn(pages, held.current.next, Infinity),
  };
}
