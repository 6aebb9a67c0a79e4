/* A git repository for the registry's tests, built with libgit2's own objects, so that it may contain entries that
 * the git program would not write. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <git2.h>

struct repo_entry {
	unsigned mode; /* 0100644, 0120000, 0160000, 0040000 */
	const char *name;
	git_oid id;
};

static inline git_oid repo_blob(git_repository *repo, const void *data, size_t n)
{
	git_oid id;

	assert_int_equal(git_blob_create_from_buffer(&id, repo, data, n), 0);
	return id;
}

static inline struct repo_entry repo_file(git_repository *repo, const char *name, const char *text)
{
	return (struct repo_entry){0100644, name, repo_blob(repo, text, strlen(text))};
}

/* Writes the entries unchanged: any name, any order, any mode. */
static inline git_oid repo_tree(git_repository *repo, const struct repo_entry *list, size_t n)
{
	struct buf raw = BUF_INIT(8 << 20);
	git_odb *odb;
	git_oid id;

	for (size_t i = 0; i < n; i++) {
		buf_appendf(&raw, "%o %s", list[i].mode, list[i].name);
		buf_append(&raw, "", 1);
		buf_append(&raw, list[i].id.id, GIT_OID_RAWSZ);
	}
	assert_int_equal(git_repository_odb(&odb, repo), 0);
	assert_int_equal(git_odb_write(&id, odb, buf_str(&raw), raw.len, GIT_OBJECT_TREE), 0);
	git_odb_free(odb);
	buf_release(&raw);
	return id;
}

/* Commits these files in accelerators.d (empty: without accelerators) at the tip of main. */
static inline git_oid repo_commit(git_repository *repo, const struct repo_entry *list, size_t n)
{
	struct repo_entry folder = {.mode = 0040000, .name = "accelerators.d"};
	git_signature *who;
	git_reference *ref;
	git_tree *tree;
	git_oid root, id;

	folder.id = repo_tree(repo, list, n);
	root = repo_tree(repo, &folder, n ? 1 : 0);
	assert_int_equal(git_tree_lookup(&tree, repo, &root), 0);
	assert_int_equal(git_signature_new(&who, "a", "a@example.org", 1, 0), 0);
	assert_int_equal(git_commit_create(&id, repo, NULL, who, who, NULL, "commit", tree, 0, NULL), 0);
	assert_int_equal(git_reference_create(&ref, repo, "refs/heads/main", &id, 1, NULL), 0);
	git_reference_free(ref);
	git_signature_free(who);
	git_tree_free(tree);
	return id;
}

static inline git_oid repo_commit_text(git_repository *repo, const char *name, const char *text)
{
	struct repo_entry file = repo_file(repo, name, text);

	return repo_commit(repo, &file, 1);
}
