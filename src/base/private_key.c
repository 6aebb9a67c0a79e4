#include "base/private_key.h"

#include <limits.h>
#include <stdatomic.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/alloc.h"

struct private_key {
	atomic_int n_refs;
	EVP_PKEY *pkey;
};

/* libcrypto would ask for the password at the terminal. */
static int no_password(char *out, int n, int is_writing, void *owner)
{
	(void)out;
	(void)n;
	(void)is_writing;
	*(bool *)owner = true;
	return -1;
}

int private_key_parse(const struct secret *pem, struct private_key **ret, struct error *e)
{
	bool is_encrypted = false;
	BIO *bio;
	EVP_PKEY *pkey;

	*ret = NULL;
	if (secret_bytes(pem) > INT_MAX)
		return error_set(e, ERR_INVALID, "too large for a private key");
	bio = BIO_new_mem_buf(secret_text(pem), (int)secret_bytes(pem));
	pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, &is_encrypted) : NULL;
	BIO_free(bio);
	/* libcrypto keeps failures in a queue per thread, where a later TLS connection would
	 * take them for its own. */
	ERR_clear_error();
	if (!pkey && is_encrypted)
		return error_set(e, ERR_INVALID,
		    "the private key is encrypted; store it without a password, readable by the "
		    "service alone");
	if (!pkey)
		return error_set(e, ERR_INVALID, "not a private key in PEM, or damaged");
	*ret = xmalloc(sizeof(**ret));
	atomic_init(&(*ret)->n_refs, 1);
	(*ret)->pkey = pkey;
	return 0;
}

struct private_key *private_key_ref(struct private_key *k)
{
	atomic_fetch_add(&k->n_refs, 1);
	return k;
}

void private_key_unref(struct private_key *k)
{
	if (!k || atomic_fetch_sub(&k->n_refs, 1) != 1)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

struct evp_pkey_st *private_key_pkey(const struct private_key *k)
{
	return k->pkey;
}
