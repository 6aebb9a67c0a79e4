/* Any bytes as an S3 server's list of objects, and as the end of a log's object: read without a crash, in bounded memory, and
 * with only possible results. */
#include "logs/logs_internal.h"
#include "logs/seekable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_list(const char *text, size_t n)
{
	struct log_request r = {0};
	char name[LOG_OBJECT_NAME_BYTES];

	place_s3_read_list(text, n, "p/", &r);
	assert(r.n_objects <= LOG_LIST_MAX);
	for (size_t i = 0; i < r.n_objects; i++) {
		log_object_name(r.objects[i].job_id, name);
		assert(r.objects[i].job_id > 0 && log_object_job(name) == r.objects[i].job_id);
	}
	free(r.objects);
}

static void check_table(const char *end, size_t n)
{
	struct seekable_index x;
	char out[1000];
	size_t n_read;

	if (seekable_index_parse(end, n, (int64_t)n, &x) == 0) {
		const struct seekable_source from = {.fd = -1, .p = end, .n = n};

		assert(seekable_frame_with(&x, x.text_bytes) == x.n_frames);
		for (int64_t at = 0; at < x.text_bytes; at += 100000)
			if (seekable_read(&from, &x, at, out, sizeof(out), &n_read) == 0)
				assert(n_read <= sizeof(out) && at + (int64_t)n_read <= x.text_bytes);
	}
	seekable_index_release(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = xmemdup(data, n);

	check_list(text, n);
	check_table(text, n);
	free(text);
	return 0;
}
