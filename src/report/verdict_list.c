#include "report/verdict_list.h"

#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/json.h"

enum { KEY_PARTS = 4, KEY_MAX_BYTES = 1024 };

/* A cell's place in the order: suite, test, dtype, accelerator. */
struct key {
	const char *part[KEY_PARTS];
};

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static struct key key_of(const struct change_view *v, const struct verdict_view *w)
{
	return (struct key){{or_empty(w->suite), or_empty(w->test), or_empty(w->dtype),
	    v->accelerators[w->accelerator].name}};
}

/* Of bytes that came from outside: what is missing is empty. They end with a NUL. */
static struct key key_read(const char *p, size_t n)
{
	const char *end = p + n;
	struct key k;

	for (int i = 0; i < KEY_PARTS; i++) {
		k.part[i] = p < end ? p : "";
		if (p < end)
			p += strlen(p) + 1;
	}
	return k;
}

static int key_compare(const struct key *a, const struct key *b)
{
	int order = 0;

	for (int i = 0; i < KEY_PARTS && !order; i++)
		order = strcmp(a->part[i], b->part[i]);
	return order;
}

static void set_cursor(json_t *obj, const struct key *k)
{
	struct buf bytes = BUF_INIT(KEY_MAX_BYTES), text = BUF_INIT(2 * KEY_MAX_BYTES);

	for (int i = 0; i < KEY_PARTS; i++)
		buf_append(&bytes, k->part[i], strlen(k->part[i]) + (i < KEY_PARTS - 1));
	base64url_encode(buf_str(&bytes), bytes.len, &text);
	json_set_str(obj, "next", buf_str(&text));
	buf_release(&bytes);
	buf_release(&text);
}

static bool is_chosen(
    const struct change_view *v, const struct verdict_view *w, const struct verdict_choice *c)
{
	if (v->accelerators[w->accelerator].level <= LEVEL_1)
		return false;
	if (c->statuses && !(c->statuses >> w->status & 1))
		return false;
	return !c->attributions || c->attributions >> w->attribution & 1;
}

void verdict_list_json(json_t *obj, const struct change_view *v,
    const struct verdict_choice *choice,
    json_t *(*cell)(
	const struct change_view *v, const struct verdict_view *w, const char *public_url),
    const char *public_url)
{
	struct key after = key_read(choice->after, choice->after_bytes), last = after;
	json_t *list = json_array();
	bool is_more = false;
	int64_t n_total = 0;
	size_t n = 0;

	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];
		struct key k = key_of(v, w);

		if (!is_chosen(v, w, choice))
			continue;
		n_total++;
		if (is_more || (choice->after_bytes && key_compare(&k, &after) <= 0))
			continue;
		is_more = choice->limit && n == choice->limit;
		if (is_more)
			continue;
		json_array_append_new(list, cell(v, w, public_url));
		last = k;
		n++;
	}
	json_object_set_new(obj, "verdicts", list);
	json_set_int(obj, "verdicts_total", n_total);
	if (is_more)
		set_cursor(obj, &last);
	else
		json_set_str(obj, "next", NULL);
}
