/* Any bytes as outpost.yml, as a vendor's file and as outpost-runner's file: each is read without a crash in bounded
 * time, and is either valid or refused with a message of one line. */

#include "config/accelerator_file.h"
#include "config/main_file.h"
#include "config/runner_file.h"

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

static void read_main(const char *text, size_t n)
{
	struct problems p = {0};
	struct reader r = {.file = "f", .problems = &p, .path = ""};
	struct node *root = tree_parse("f", text, n, &p);
	struct main_file m;

	if (root) {
		main_file_read(&r, root, &m);
		assert(p.n || (m.c.public_url && m.state_dir.path && m.private_key.path));
		assert(p.n || (m.c.upstream_branches[0] && m.c.oidc_issuers));
		main_file_release(&m);
	}
	assert(root || p.n);
	tree_free(root);
	check_messages(&p);
}

static void read_vendor(const char *text, size_t n)
{
	struct problems p = {0};
	struct network_list none = {0};
	struct reader r = {.file = "f", .problems = &p, .path = "", .allowed = &none};
	struct node *root = tree_parse("f", text, n, &p);
	struct accelerator_file f;

	if (root) {
		accelerator_file_read(&r, root, &f);
		assert(p.n || (f.a.name && f.a.title && f.a.level));
		for (size_t i = 0; !p.n && i < f.a.n_runners; i++)
			assert(f.a.runners[i].name);
		accelerator_file_release(&f);
	}
	tree_free(root);
	check_messages(&p);
}

static void read_machine(const char *text, size_t n)
{
	struct problems p = {0};
	struct reader r = {.file = "f", .problems = &p, .path = ""};
	struct node *root = tree_parse("f", text, n, &p);
	struct runner_file f;

	if (root) {
		runner_file_read(&r, root, &f);
		assert(p.n || (f.c.server && f.c.name && f.token.path && f.c.n_steps));
		for (size_t i = 0; !p.n && i < f.c.n_steps; i++)
			assert(f.c.steps[i].name && f.c.steps[i].run && f.c.steps[i].timeout_ms);
		runner_file_release(&f);
		runner_config_release(&f.c);
	}
	tree_free(root);
	check_messages(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;

	read_main(text, n);
	read_vendor(text, n);
	read_machine(text, n);
	return 0;
}
