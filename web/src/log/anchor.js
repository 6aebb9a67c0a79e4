// '#L12' and '#L12-L30' name lines, counted from 1. Other fragments are ignored.

const LINE_MAX = 2 ** 32;

export function parseAnchor(hash) {
  const found = /^#L(\d{1,10})(?:-L?(\d{1,10}))?$/.exec(hash);
  if (!found) return null;
  const [a, b] = [Number(found[1]), Number(found[2] ?? found[1])];
  if (!a || !b || a > LINE_MAX || b > LINE_MAX) return null;
  return { first: Math.min(a, b), last: Math.max(a, b) };
}

export const formatAnchor = ({ first, last }) => (first === last ? `#L${first}` : `#L${first}-L${last}`);

// A click selects a line; a click with shift selects all lines from the first click on.
export function anchorAfterClick(before, origin, line, isShift) {
  if (isShift && before) return { anchor: { first: Math.min(origin, line), last: Math.max(origin, line) }, origin };
  return { anchor: { first: line, last: line }, origin: line };
}
