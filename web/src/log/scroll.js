// The visible lines. The scroll bar stands for all lines, but only visible text is drawn: no element of a browser can be as tall as a
// million lines, and the height of a wrapped line is known only after it was drawn.

export const ROW = 20; // px, of a line that is not wrapped
const TALL_MAX = 4_000_000; // px; every browser supports this height
const BEFORE = 8; // lines drawn above the visible ones
const ROOM = 100; // with fewer lines below, the end of the text that was read keeps a line from its place

export class View {
  top = 0; // the first visible line
  offset = 0; // px of it above the upper edge
  isAtEnd = false;
  follows = false;
  isWrapped = false;
  lines = 0;
  height = 400; // visible px
  rowHeight = ROW; // an estimate if lines are wrapped

  #held = null; // the line that was shown last, while lines after it may still arrive

  // Takes the number of lines. Returns true if that moved the text.
  grow(lines) {
    if (lines === this.lines) return false;
    this.lines = lines;
    if (this.follows) this.#held = null;
    if (this.#held === null) return false;
    this.show(this.#held);
    return true;
  }

  // True if a pixel of the bar is a pixel of the text.
  get isDirect() { return !this.isWrapped && this.lines * ROW <= TALL_MAX; }

  // The scrolled element's height.
  get tall() { return Math.max(this.height, Math.min(TALL_MAX, Math.ceil(this.lines * (this.isWrapped ? this.rowHeight : ROW)))); }

  // Lines to draw: [from, to).
  get drawn() {
    const n = Math.ceil(this.height / ROW) + 2;
    if (this.isAtEnd) return [Math.max(0, this.lines - n - BEFORE), this.lines];
    return [Math.max(0, this.top - BEFORE), Math.min(this.lines, this.top + n)];
  }

  get #last() { return Math.max(0, this.lines - this.height / (this.isWrapped ? this.rowHeight : ROW)); }

  // The position of the bar.
  get scrollTop() {
    const room = this.tall - this.height;
    if (this.isAtEnd) return room;
    if (this.isDirect) return Math.min(room, this.top * ROW + this.offset);
    return this.#last ? Math.min(room, Math.round(((this.top + this.offset / this.rowHeight) / this.#last) * room)) : 0;
  }

  // Follows a move of the bar. heightOf(line): undefined for a line that is not drawn.
  scrolled(before, after, heightOf) {
    const room = this.tall - this.height;
    const by = after - before;
    this.#held = null;
    this.isAtEnd = room > 0 && after >= room - 1;
    if (this.isAtEnd) return;
    if (this.isDirect) {
      this.#put(after / ROW);
    } else if (after <= 0) {
      this.#put(0);
    } else if (Math.abs(by) < this.height * 3) {
      this.move(by, heightOf);
    } else {
      this.#put((after / room) * this.#last);
    }
  }

  #put(position) {
    this.top = Math.max(0, Math.min(this.lines - 1, Math.floor(position)));
    this.offset = Math.max(0, position - this.top) * (this.isWrapped ? this.rowHeight : ROW);
  }

  // Moves by so many pixels of text.
  move(by, heightOf) {
    const rowOf = (line) => (this.isWrapped ? heightOf(line) ?? this.rowHeight : ROW);
    this.offset += by;
    while (this.offset < 0 && this.top > 0) this.offset += rowOf(--this.top);
    while (this.offset >= rowOf(this.top) && this.top < this.lines - 1) this.offset -= rowOf(this.top++);
    this.offset = Math.max(0, this.offset);
    this.#endIfBeyond();
  }

  // Keeps the last line at the lower edge. If lines are wrapped, this needs their heights after drawing.
  #endIfBeyond() {
    if (!this.isWrapped && (this.lines - this.top) * ROW - this.offset <= this.height) this.isAtEnd = true;
  }

  // A third below the edge.
  show(line) {
    this.isAtEnd = false;
    this.#held = line + ROOM < this.lines ? null : line;
    this.#put(Math.max(0, Math.min(line, this.lines - 1) - Math.floor(this.height / ROW / 3)));
    this.#endIfBeyond();
  }
}
