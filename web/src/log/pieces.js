// A cache of a log's bytes in pieces of one size. Beyond a limit, the least recently used are dropped; they can be requested again.

export const PIECE_BYTES = 256 * 1024;
const PIECES_MAX = 128; // 32 MiB

export class Pieces {
  #pieces = new Map(); // number → {bytes, filled}, in the order of use
  #max;

  constructor(max = PIECES_MAX) { this.#max = max; }

  get count() { return this.#pieces.size; }

  #use(number) {
    const piece = this.#pieces.get(number);
    if (!piece) return null;
    this.#pieces.delete(number);
    this.#pieces.set(number, piece);
    return piece;
  }

  // A piece is filled from its beginning; bytes that would leave a hole are not kept.
  put(offset, bytes) {
    for (let done = 0; done < bytes.length;) {
      const at = offset + done;
      const number = Math.floor(at / PIECE_BYTES);
      const inside = at - number * PIECE_BYTES;
      const n = Math.min(PIECE_BYTES - inside, bytes.length - done);
      let piece = this.#use(number);
      if (!piece && inside === 0) {
        piece = { bytes: new Uint8Array(PIECE_BYTES), filled: 0 };
        this.#pieces.set(number, piece);
        if (this.#pieces.size > this.#max) this.#pieces.delete(this.#pieces.keys().next().value);
      }
      if (piece && piece.filled >= inside) {
        piece.bytes.set(bytes.subarray(done, done + n), inside);
        piece.filled = Math.max(piece.filled, inside + n);
      }
      done += n;
    }
  }

  // The bytes, or null if some are not in the cache.
  get(from, to) {
    const first = Math.floor(from / PIECE_BYTES);
    const last = Math.floor((to - 1) / PIECE_BYTES);
    const out = first === last ? null : new Uint8Array(to - from);
    for (let number = first; number <= last; number++) {
      const piece = this.#use(number);
      const base = number * PIECE_BYTES;
      const end = Math.min(to - base, PIECE_BYTES);
      if (!piece || piece.filled < end) return null;
      const part = piece.bytes.subarray(Math.max(from - base, 0), end);
      if (!out) return part;
      out.set(part, Math.max(base - from, 0));
    }
    return out;
  }
}
