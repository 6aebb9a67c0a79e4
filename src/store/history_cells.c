#include "store/history_cells.h"

#include "base/varint.h"

enum { PACKED_BYTES_MAX = 16 << 20 };

void cell_packer_init(struct cell_packer *p)
{
	*p = (struct cell_packer){.out = BUF_INIT(PACKED_BYTES_MAX)};
}

/* A stretch: how many tests are left out before it, how many it is, and what they came out as. */
static void put_run(struct cell_packer *p)
{
	if (!p->n_run)
		return;
	varint_put(&p->out, (uint64_t)(p->run.test_id - p->end));
	varint_put(&p->out, (uint64_t)p->n_run);
	varint_put(&p->out, (uint64_t)p->run.job * N_TEST_STATUSES + p->run.status);
	p->end = p->run.test_id + p->n_run;
	p->n_run = 0;
}

void cell_packer_add(struct cell_packer *p, const struct history_cell *c)
{
	if (p->n_run && c->test_id == p->run.test_id + p->n_run && c->status == p->run.status &&
	    c->job == p->run.job) {
		p->n_run++;
		return;
	}
	put_run(p);
	p->run = *c;
	p->n_run = 1;
}

const struct buf *cell_packer_end(struct cell_packer *p)
{
	put_run(p);
	return &p->out;
}

void cell_packer_release(struct cell_packer *p)
{
	buf_release(&p->out);
}

struct cell_reader cell_reader_of(const void *p, size_t n)
{
	const uint8_t *at = p;

	return (struct cell_reader){.p = at, .end = n ? at + n : at};
}

/* False: it was the last, or what follows is none. */
static bool next_run(struct cell_reader *r)
{
	int64_t gap, n, code;

	if (!varint_get(&r->p, r->end, &gap) || !varint_get(&r->p, r->end, &n) ||
	    !varint_get(&r->p, r->end, &code) || n == 0 || code / N_TEST_STATUSES > INT32_MAX) {
		r->p = r->end;
		return false;
	}
	r->next.test_id += gap;
	r->next.status = (enum test_status)(code % N_TEST_STATUSES);
	r->next.job = (int)(code / N_TEST_STATUSES);
	r->n_left = n;
	return true;
}

bool cell_reader_next(struct cell_reader *r, struct history_cell *ret)
{
	if (!r->n_left && !next_run(r))
		return false;
	*ret = r->next;
	r->next.test_id++;
	r->n_left--;
	return true;
}

bool cell_reader_find(struct cell_reader *r, int64_t test_id, struct history_cell *ret)
{
	while (r->n_left || next_run(r)) {
		if (test_id < r->next.test_id)
			return false;
		if (test_id < r->next.test_id + r->n_left) {
			*ret = r->next;
			ret->test_id = test_id;
			return true; /* the stretch stays: the next one may be in it */
		}
		r->next.test_id += r->n_left;
		r->n_left = 0;
	}
	return false;
}
