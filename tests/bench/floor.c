/* The least CPU that a webhook can cost: prints the microseconds that its HMAC and its compression (zstd, level 1) take, warm,
 * for the measurement of intake beside it.
 *
 *   floor BODY_FILE
 *
 * It uses the functions that the daemon uses. */

enum { BODY_MAX_BYTES = 25 << 20, ROUNDS = 4000, PARTS = 8 };

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void do_once(struct hmac *h, struct compressor *c, const struct buf *body, struct buf *packed)
{
	uint8_t digest[SHA256_BYTES];

	hmac_reset(h);
	hmac_update(h, body->data, body->len);
	hmac_final(h, digest);
	if (compress(c, body->data, body->len, packed))
		abort();
}

int main(int argc, char **argv)
{
	struct buf body = BUF_INIT(BODY_MAX_BYTES), packed = BUF_INIT(BODY_MAX_BYTES);
	struct hmac *h = hmac_new("secret", 6);
	struct compressor *c = compressor_new(1);
	struct error e = {0};
	double least_us = 1e9;

	if (argc != 2 || file_read(argv[1], &body, &e)) {
		fprintf(stderr, "usage: floor BODY_FILE %s\n", e.text);
		return 2;
	}
	/* The fastest part, because another process may use the same core during the others. */
	for (int part = 0; part < PARTS; part++) {
		double begun_us = cpu_us();

		for (int i = 0; i < ROUNDS / PARTS; i++)
			do_once(h, c, &body, &packed);
		if (cpu_us() - begun_us < least_us)
			least_us = cpu_us() - begun_us;
	}
	printf("%.3f\n", least_us / (ROUNDS / PARTS));
	hmac_free(h);
	compressor_free(c);
	buf_release(&body);
	buf_release(&packed);
	return 0;
}
