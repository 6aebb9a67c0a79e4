// The data that the server wrote into the page. Ages are counted from the server's clock, not the reader's.
const text = typeof document === 'undefined' ? null : document.getElementById('data')?.textContent;
export const data = text ? JSON.parse(text) : { api: '', status: 200, body: null, base: '', upstream: '', version: '' };

let offset = (Date.parse(data.now) || Date.now()) - Date.now();

export const now = () => Date.now() + offset;

// An answer's Date header corrects the clock after it was set or the machine slept.
export function correctClock(date) {
  const then = Date.parse(date ?? '');
  if (Math.abs(then - now()) > 3000) offset = then - Date.now();
}
