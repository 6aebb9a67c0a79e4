/* A temporary folder with a configuration, which is the working folder: setup and teardown for tests that load files. */
#pragma once

#include <setjmp.h>

#include <cmocka.h>

#include <ftw.h>

#include "config/config.h"
#include "test_keys.h"

#define MINIMAL_YML                                                                                                    \
	"public_url: https://outpost.example.org\n"                                                                    \
	"state_dir: state\n"                                                                                           \
	"github:\n"                                                                                                    \
	"  app_id: 12345\n"                                                                                            \
	"  private_key_file: key.pem\n"                                                                                \
	"  webhook_secret_file: webhook\n"

static char folder_path[64];
static char *folder_before;

/* Writes a file below the folder, making the folders on the way. */
static inline void folder_write(const char *path, const char *text)
{
	struct error e = {0};
	char *parent = path_folder(path);

	for (char *slash = parent; *slash; slash++)
		if (*slash == '/' && slash != parent) {
			*slash = '\0';
			mkdir(parent, 0700);
			*slash = '/';
		}
	mkdir(parent, 0700);
	free(parent);
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &e), 0);
}

static inline void folder_write_key(const char *path)
{
	EVP_PKEY *key = shared_rsa_key();
	char *parent = path_folder(path);
	FILE *f;

	mkdir(parent, 0700);
	free(parent);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
	EVP_PKEY_free(key);
}

static inline int folder_setup(void **state)
{
	(void)state;
	folder_before = getcwd(NULL, 0);
	snprintf(folder_path, sizeof(folder_path), "/tmp/outpost-config-XXXXXX");
	assert_non_null(mkdtemp(folder_path));
	assert_int_equal(chdir(folder_path), 0);
	folder_write_key("key.pem");
	folder_write("webhook", "s3cret\n");
	folder_write("outpost.yml", MINIMAL_YML);
	return 0;
}

static inline int folder_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int folder_teardown(void **state)
{
	(void)state;
	assert_int_equal(chdir(folder_before), 0);
	FREE_AND_NULL(folder_before);
	return nftw(folder_path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Loads outpost.yml, which must be valid. config_unref(). */
static inline struct config *folder_load(void)
{
	struct buf messages = BUF_INIT(1 << 20);
	struct config *c;
	int rc = config_load("outpost.yml", &c, &messages);

	assert_string_equal(buf_str(&messages), "");
	assert_int_equal(rc, 0);
	buf_release(&messages);
	return c;
}

/* Loads outpost.yml, which must give exactly these messages. */
static inline void folder_expect(const char *expected)
{
	struct buf messages = BUF_INIT(1 << 20);
	struct config *c;
	int rc = config_load("outpost.yml", &c, &messages);

	assert_string_equal(buf_str(&messages), expected);
	assert_int_equal(rc, ERR_INVALID);
	assert_null(c);
	buf_release(&messages);
}
