// The first byte of each line of a log, found while its bytes arrive.
// A mark is kept per block of lines, not per line, so 256 MiB of empty lines cost some megabytes and not a gigabyte.

export const BLOCK_BYTES = 64 * 1024;
const BLOCK_LINES = 512;
const LF = 10;

const grown = (array) => {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
};

export class LineIndex {
  #lines = new Uint32Array(1024); // of each mark: the line that begins there (0 is the first)
  #bytes = new Uint32Array(1024);
  #marks = 1; // the first is line 0 at byte 0
  #closed = 0; // complete lines
  #start = 0; // of the incomplete line

  end = 0;

  get blocks() { return this.#marks; }

  get lines() { return this.#closed + (this.end > this.#start ? 1 : 0); }

  append(bytes) {
    let from = 0;
    for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, from)) {
      const next = this.end + at + 1;
      this.#markIfLong(next);
      this.#closed++;
      this.#start = next;
      from = at + 1;
      const i = this.#marks - 1;
      if (next - this.#bytes[i] >= BLOCK_BYTES || this.#closed - this.#lines[i] >= BLOCK_LINES) this.#mark();
    }
    this.end += bytes.length;
    this.#markIfLong(this.end);
  }

  // A long line has a block of its own, so that its neighbours can be read without it.
  #markIfLong(end) {
    if (end - this.#start > BLOCK_BYTES && this.#bytes[this.#marks - 1] !== this.#start) this.#mark();
  }

  #mark() {
    if (this.#marks === this.#lines.length) {
      this.#lines = grown(this.#lines);
      this.#bytes = grown(this.#bytes);
    }
    this.#lines[this.#marks] = this.#closed;
    this.#bytes[this.#marks++] = this.#start;
  }

  // The last block may still grow.
  block(i) {
    const isLast = i === this.#marks - 1;
    return {
      line: this.#lines[i], from: this.#bytes[i],
      lines: (isLast ? this.lines : this.#lines[i + 1]) - this.#lines[i],
      to: isLast ? this.end : this.#bytes[i + 1],
    };
  }

  // The number of the block that contains this line.
  blockOf(line) {
    let low = 0;
    let high = this.#marks - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#lines[middle] <= line) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
