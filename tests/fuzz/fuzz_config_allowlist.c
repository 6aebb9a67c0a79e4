/* Any bytes as CRCR's allowlist: it is read without a crash and in bounded time, and either refused with
 * messages of one line each, or every repository in it is one runner of one accelerator. */

#include "config/allowlist.h"
#include "config/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every message is one line that begins with its place. */
static void check_messages(struct problems *p)
{
	struct buf out = BUF_INIT(4 << 20);
	size_t n_lines = 0;

	problems_print(p, &out);
	assert(buf_status(&out) == 0);
	for (const char *at = buf_str(&out); *at; at = strchr(at, '\n') + 1) {
		assert(strncmp(at, "f:", 2) == 0 && at[2] >= '1' && at[2] <= '9');
		n_lines++;
	}
	assert(n_lines == (p->n < 1000 ? p->n : p->n > 1000 ? 1001 : 1000));
	buf_release(&out);
	problems_release(p);
}

static void check_list(const struct allowlist *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct accelerator *a = &l->items[i];

		assert(a->name[0] && a->level >= LEVEL_1 && a->level <= LEVEL_4);
		assert(a->trust == TRUST_ANYONE && a->n_runners);
		assert(a->n_runners == 1 || a->level == LEVEL_3);
		for (size_t k = 0; k < a->n_runners; k++) {
			assert(a->runners[k].kind == RUNNER_GITHUB && a->runners[k].name[0]);
			for (size_t m = 0; m < k; m++)
				assert(strcasecmp(a->runners[k].repository, a->runners[m].repository) != 0);
		}
		for (char **login = a->oncall; *login; login++)
			assert(**login && **login != '@' && !strpbrk(*login, " ,\n"));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct problems p = {0};
	struct reader r = {.file = "f", .problems = &p, .path = ""};
	struct node *root = allowlist_parse("f", (const char *)data, n, &p);
	struct allowlist l;

	assert(root || p.n);
	if (root) {
		allowlist_read(&r, root, &l);
		if (!p.n)
			check_list(&l);
		allowlist_release(&l);
	}
	tree_free(root);
	check_messages(&p);
	return 0;
}
