/* Any bytes as CRCR's ci_providers.yml: it is read without a crash and in bounded time, and either refused with
 * messages of one line each, or every pipeline in it is mapped to one repository and each claim that it requires
 * has a value. The issuer is never another than Buildkite. */

#include "config/main_file.h"
#include "config/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_messages(struct problems *p)
{
	struct buf out = BUF_INIT(4 << 20);

	problems_print(p, &out);
	assert(buf_status(&out) == 0);
	for (const char *at = buf_str(&out); *at; at = strchr(at, '\n') + 1)
		assert(strncmp(at, "f:", 2) == 0 && at[2] >= '1' && at[2] <= '9');
	buf_release(&out);
	problems_release(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct problems p = {0};
	struct reader r = {.file = "f", .problems = &p, .path = ""};
	struct node *root = tree_parse("f", (const char *)data, n, &p);
	struct oidc_issuer issuer;

	assert(root || p.n);
	if (root) {
		ci_providers_read(&r, root, &issuer);
		assert(str_eq(issuer.issuer, "https://agent.buildkite.com"));
		for (size_t i = 0; !p.n && i < issuer.n_mappings; i++) {
			const struct oidc_mapping *m = &issuer.mappings[i];

			assert(strchr(m->key, '/') && is_repository_name(m->repository));
			for (size_t k = 0; k < m->n_claims; k++)
				assert(m->claims[k].values[0]);
			for (size_t k = 0; k < i; k++)
				assert(!str_eq(m->key, issuer.mappings[k].key));
		}
		oidc_issuer_release(&issuer);
	}
	tree_free(root);
	check_messages(&p);
	return 0;
}
