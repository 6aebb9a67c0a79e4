// The visible lines of short and long logs, while lines arrive and after the end.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ROW, View } from '../../web/src/log/scroll.js';

const HEIGHT = 600;

function viewOf(lines) {
  const view = new View();
  view.height = HEIGHT;
  view.grow(lines);
  return view;
}

const isInSight = (view, line) => {
  const [from, to] = view.drawn;
  const top = view.isAtEnd ? view.lines - HEIGHT / ROW : view.top + view.offset / ROW;
  return line >= from && line < to && line >= top && line + 1 <= top + HEIGHT / ROW;
};
const none = () => undefined;

for (const lines of [10, 1000, 100_000, 200_000, 200_001, 1_000_000, 13_000_000]) {
  describe(`${lines} lines`, () => {
    test('any line can be shown, and no space is drawn below the last', () => {
      const view = viewOf(lines);
      for (const line of [0, 1, 9, lines / 3 | 0, lines / 2 | 0, lines - 40, lines - 25, lines - 2, lines - 1].filter((one) => one >= 0 && one < lines)) {
        view.show(line);
        if (lines > 30) assert.ok(isInSight(view, line), `line ${line}`);
        assert.ok(view.isAtEnd || (lines - view.top) * ROW - view.offset > HEIGHT, `line ${line}: there is space below the last line`);
        assert.ok(view.drawn[1] - view.drawn[0] <= HEIGHT / ROW + 10, 'only lines near the visible ones are drawn');
        assert.ok(view.tall <= 4_000_000);
        assert.ok(view.scrollTop >= 0 && view.scrollTop <= view.tall - HEIGHT || view.tall === HEIGHT);
      }
    });

    test('the wheel reaches the end, and no space is drawn below it', () => {
      const view = viewOf(lines);
      view.show(Math.max(0, lines - 500));
      let bar = view.scrollTop;
      for (let i = 0; i < 200 && !view.isAtEnd; i++) {
        const next = Math.min(bar + 100, view.tall - HEIGHT);
        if (next === bar) break;
        view.scrolled(bar, next, none);
        bar = i % 10 ? next : view.scrollTop; // a scroll bar at rest gets its exact position
      }
      assert.ok(view.isAtEnd || lines <= HEIGHT / ROW);
    });
  });
}

test('a line that is shown stays in its place while later lines arrive', () => {
  const view = viewOf(500);
  view.show(499);
  assert.ok(view.isAtEnd);
  for (const lines of [510, 550, 700]) assert.equal(view.grow(lines), lines <= 700);
  assert.ok(isInSight(view, 499));
  const { top } = view;
  assert.equal(view.grow(100_000), false, 'new lines do not move the view');
  assert.equal(view.top, top);
});

test('new lines do not move a reader who scrolled away', () => {
  const view = viewOf(500);
  view.show(499);
  view.scrolled(view.scrollTop, 0, none);
  assert.equal(view.grow(600), false);
  assert.equal(view.top, 0);
});

test('a reader who follows stays at the end', () => {
  const view = viewOf(500);
  view.show(450);
  view.follows = true;
  assert.equal(view.grow(600), false);
  view.follows = false;
  assert.equal(view.grow(700), false);
});
