/* Any output with any secrets, in any pieces: the result does not depend on the pieces, is UTF-8 without NUL, and
 * contains no secret. The first two bytes set the length of the secret and of the pieces. */

#include "steps/job_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char *clean(const char *p, size_t n, size_t piece)
{
	struct clean_text c = {.n_held = 0};
	struct buf out = BUF_INIT(1 << 22);

	for (size_t i = 0; i < n; i += piece)
		clean_text_feed(&c, p + i, n - i < piece ? n - i : piece, &out);
	clean_text_end(&c, &out);
	return out.data ? buf_detach(&out) : xstrdup("");
}

static char *mask(const struct masks *m, const char *text, size_t piece)
{
	struct buf out = BUF_INIT(1 << 22);
	struct mask_stream s;
	size_t n = strlen(text);

	mask_stream_init(&s, m);
	for (size_t i = 0; i < n; i += piece)
		mask_stream_feed(&s, text + i, n - i < piece ? n - i : piece, &out);
	mask_stream_end(&s, &out);
	mask_stream_release(&s);
	return out.data ? buf_detach(&out) : xstrdup("");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *p = (const char *)data;
	size_t n_secret, piece;
	char *secret, *secret_text, *whole, *pieces, *masked, *masked_in_pieces;
	struct masks *m;

	if (n < 2)
		return 0;
	n_secret = data[0] % 32 < n - 2 ? data[0] % 32 : n - 2;
	piece = data[1] % 16 + 1;
	p += 2;
	secret = xstrndup(p, n_secret);
	m = masks_new();
	masks_add(m, secret);
	whole = clean(p + n_secret, n - 2 - n_secret, SIZE_MAX / 2);
	pieces = clean(p + n_secret, n - 2 - n_secret, piece);
	assert(!strcmp(whole, pieces));
	assert(utf8_is_valid(whole, strlen(whole)));
	masked = mask(m, whole, SIZE_MAX / 2);
	masked_in_pieces = mask(m, whole, piece);
	assert(!strcmp(masked, masked_in_pieces));
	/* each line of a secret with several lines is masked; otherwise only its final newline is ignored */
	for (size_t i = strlen(secret); i > 0 && strchr("\r\n", secret[i - 1]); i--)
		secret[i - 1] = '\0';
	if (strchr(secret, '\n'))
		secret[strcspn(secret, "\r\n")] = '\0';
	secret_text = clean(secret, strlen(secret), SIZE_MAX / 2);
	/* a mask and the text beside it may look like a secret that contains a star */
	if (strlen(secret) >= MASK_MIN_BYTES && !strchr(secret, '*'))
		assert(!strstr(masked, secret_text));
	free(masked_in_pieces);
	free(masked);
	free(pieces);
	free(whole);
	free(secret_text);
	free(secret);
	masks_free(m);
	return 0;
}
