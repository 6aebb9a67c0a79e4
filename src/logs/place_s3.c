/* Finished logs as objects of S3 or a service like it (MinIO, Ceph, Swift): GET of a range, PUT, DELETE and ListObjectsV2, each
 * signed by libcurl. The bucket is a part of the path. A key has only characters that need no escape, because libcurl 7.88 signs
 * path and query as they are.
 *
 * A PUT blocks a thread of the pool, because it reads a file; there is one at a time. All others are on the loop. */
#include <sys/eventfd.h>

#include "logs/logs_internal.h"

enum {
	LIST_MAX_BYTES = 4 << 20,
	ERROR_MAX_BYTES = 64 * 1024,
	CODE_BYTES = 64,
	CHECK_TIMEOUT_MS = 10 * 1000,
	PUT_TIMEOUT_MS = 30 * 60 * 1000, /* a connection that stands still ends earlier */
};
#define AGENT "outpost/" OUTPOST_VERSION

struct place_s3 {
	struct log_place base;
	struct loop *loop;
	struct http_client *client;
	char *bucket_url, *prefix, *region; /* prefix: "" or with a slash at its end */
	struct secret *access_key, *secret_key, *session_token;
	int stop_fd; /* readable once the place stops */
	LIST_HEAD(, s3_call) calls;
};

/* One request to the server. */
struct s3_call {
	struct place_s3 *s3;
	struct log_request *r;
	struct http_call call;
	char *url, *range, *digest, *token;
	const char *headers[4];
	struct secret *access_key, *secret_key;
	struct http_signing signing;
	/* PUT */
	struct http_file file;
	struct pool_work work;
	LIST_ENTRY(s3_call) link;
};

/* ---- the request ---- */

static char *list_url(const struct place_s3 *s3, int64_t after, int max)
{
	char name[LOG_OBJECT_NAME_BYTES];
	struct buf url = BUF_INIT(8192);

	/* The parameters are sorted. */
	buf_appendf(&url, "%s?list-type=2&max-keys=%d&prefix=", s3->bucket_url, max);
	percent_encode(&url, s3->prefix, strlen(s3->prefix), "");
	if (after) {
		buf_append_str(&url, "&start-after=");
		percent_encode(&url, s3->prefix, strlen(s3->prefix), "");
		log_object_name(after, name);
		percent_encode(&url, name, strlen(name), "");
	}
	return buf_detach(&url);
}

/* With the keys of now. Takes over url. */
static void s3_call_init(struct s3_call *c, struct place_s3 *s3, char *url)
{
	*c = (struct s3_call){
	    .s3 = s3, .url = url, .access_key = secret_ref(s3->access_key), .secret_key = secret_ref(s3->secret_key)};
	if (s3->session_token)
		c->token = xasprintf("x-amz-security-token: %s", secret_text(s3->session_token));
	c->call.max_answer_bytes = ERROR_MAX_BYTES;
}

/* digest: of the body. Any thread: it uses nothing that changes. */
static void s3_call_set(struct s3_call *c, const char *method, const uint8_t digest[SHA256_BYTES])
{
	char hex[2 * SHA256_BYTES + 1];
	size_t n = 0;

	c->digest = xasprintf("x-amz-content-sha256: %s", hex_encode(digest, SHA256_BYTES, hex));
	c->headers[n++] = c->digest;
	if (c->token)
		c->headers[n++] = c->token;
	if (c->range)
		c->headers[n++] = c->range;
	c->signing = (struct http_signing){c->s3->region, c->access_key, c->secret_key};
	c->call.method = method;
	c->call.url = c->url;
	c->call.headers = c->headers;
	c->call.signing = &c->signing;
}

static void s3_call_free(struct s3_call *c)
{
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	http_call_release(&c->call);
	FREE_ALL(c->url, c->range, c->digest, c->token);
	secret_unref(c->access_key);
	secret_unref(c->secret_key);
}

/* ---- the answer ---- */

/* Copies the text of the first such element in [at, end) into out; false: there is none, or it is too long. */
static bool xml_text(const char *at, const char *end, const char *tag, char *out, size_t size)
{
	const char *begin = memmem(at, (size_t)(end - at), tag, strlen(tag));

	if (!begin)
		return false;
	begin += strlen(tag);
	const char *close = memchr(begin, '<', (size_t)(end - begin));
	size_t n = close ? (size_t)(close - begin) : size;
	if (n >= size)
		return false;
	memcpy(out, begin, n);
	out[n] = '\0';
	return true;
}

/* The server's word for the error, such as NoSuchKey, or "". */
static const char *s3_code(const struct buf *answer, char out[CODE_BYTES])
{
	const char *text = buf_str(answer);

	if (!xml_text(text, text + answer->len, "<Code>", out, CODE_BYTES))
		out[0] = '\0';
	for (char *c = out; *c; c++)
		*c = isalnum((unsigned char)*c) ? *c : '?';
	return out;
}

/* Why the exchange did not bring what was requested: an error that the operator has to correct is ERR_DENIED. */
static int s3_fail(const struct place_s3 *s3, const struct http_call *call, struct error *e)
{
	char code[CODE_BYTES];

	if (call->err)
		return error_set(e, call->err == ERR_CANCELLED ? ERR_CLOSING : ERR_NETWORK, "%s: %s", s3->bucket_url,
		    call->why.text);
	s3_code(&call->answer, code);
	int status = call->status;
	bool is_mistake = (status >= 300 && status < 500 && status != 408 && status != 429) &&
			  !str_eq(code, "RequestTimeout") && !str_eq(code, "SlowDown");
	return error_set(e, is_mistake ? ERR_DENIED : ERR_NETWORK, "%s: the server answered %d%s%s", s3->bucket_url,
	    status, *code ? " " : "", code);
}

static bool has_succeeded(const struct http_call *call)
{
	return !call->err && call->status >= 200 && call->status < 300;
}

/* Content-Range: bytes 0-99/1234 */
static void read_range(struct s3_call *c)
{
	struct log_request *r = c->r;
	struct buf *answer = &c->call.answer;
	char range[80] = "";
	long long from = 0, to = (long long)answer->len - 1, all = (long long)answer->len;

	/* 200: the answer is the whole object. */
	bool is_right = c->call.status == 200 || (http_call_header(&c->call, "Content-Range", range, sizeof(range)) &&
						     sscanf(range, "bytes %lld-%lld/%lld", &from, &to, &all) == 3);
	if (!is_right || from < 0 || to < from || to - from != (long long)answer->len - 1 || to >= all ||
	    (r->at >= 0 ? from != r->at || answer->len != r->n : to != all - 1)) {
		r->err = error_set(&r->why, ERR_CORRUPT, "%s: the server sent another range", c->url);
		return;
	}
	r->at = from;
	r->n = answer->len;
	r->object_bytes = all;
	r->bytes = buf_detach(answer);
}

void place_s3_read_list(const char *xml, size_t n, const char *prefix, struct log_request *r)
{
	static const char begin_tag[] = "<Contents>", end_tag[] = "</Contents>";
	const char *end = xml + n, *at = xml;
	char key[1200], written[RFC3339_BYTES];

	while (r->n_objects < LOG_LIST_MAX && (at = memmem(at, (size_t)(end - at), begin_tag, strlen(begin_tag)))) {
		const char *next = memmem(at, (size_t)(end - at), end_tag, strlen(end_tag));
		struct log_object o;

		if (!next)
			break;
		if (xml_text(at, next, "<Key>", key, sizeof(key)) && str_has_prefix(key, prefix) &&
		    (o.job_id = log_object_job(key + strlen(prefix))) > 0 &&
		    xml_text(at, next, "<LastModified>", written, sizeof(written)) &&
		    rfc3339_parse(written, &o.written_ms) == 0)
			*ARRAY_PUSH(r->objects, r->n_objects) = o;
		at = next;
	}
}

/* Fills the request's out fields and ends it. On the loop. */
static void end_s3_call(struct s3_call *c)
{
	struct log_request *r = c->r;
	struct http_call *call = &c->call;
	char code[CODE_BYTES];
	bool is_gone = !call->err && call->status == 404 && !str_eq(s3_code(&call->answer, code), "NoSuchBucket");

	if (is_gone && (r->op == LOG_READ || r->op == LOG_REMOVE))
		r->err = error_set(&r->why, ERR_NOT_FOUND, "there is no log");
	else if (!call->err && call->status == 416)
		r->err = error_set(&r->why, ERR_CORRUPT, "%s: too short", c->url);
	else if (!has_succeeded(call))
		r->err = s3_fail(c->s3, call, &r->why);
	else if (r->op == LOG_READ)
		read_range(c);
	else if (r->op == LOG_LIST)
		place_s3_read_list(buf_str(&call->answer), call->answer.len, c->s3->prefix, r);
	LIST_REMOVE(c, link);
	s3_call_free(c);
	free(c);
	r->done(r);
}

static void on_s3_answer(struct http_call *call) { end_s3_call(CONTAINER_OF(call, struct s3_call, call)); }

/* ---- putting a file, in the pool ---- */

static void put_work(struct pool_work *w)
{
	struct s3_call *c = CONTAINER_OF(w, struct s3_call, work);
	uint8_t digest[SHA256_BYTES];
	struct http_puller *puller;
	struct stat st;

	/* The digest is signed, so the server refuses another content. */
	if (fstat(c->r->fd, &st) || sha256_file(c->r->fd, digest)) {
		c->call.err = error_set(&c->call.why, ERR_IO, "the log's file: %m");
		return;
	}
	c->file = (struct http_file){.fd = c->r->fd, .bytes = st.st_size};
	c->call.file = &c->file;
	s3_call_set(c, "PUT", digest);
	puller = http_puller_new(AGENT);
	/* The answer has no body, or a short one that explains the error and comes with the head. */
	if (http_pull_start(puller, &c->call, c->s3->stop_fd))
		assert(c->call.err);
	http_puller_free(puller);
}

static void after_put(struct pool_work *w) { end_s3_call(CONTAINER_OF(w, struct s3_call, work)); }

/* ---- the place ---- */

static void s3_start(struct log_place *p, struct log_request *r)
{
	struct place_s3 *s3 = CONTAINER_OF(p, struct place_s3, base);
	struct s3_call *c = xmalloc(sizeof(*c));
	char name[LOG_OBJECT_NAME_BYTES];
	uint8_t nothing[SHA256_BYTES];

	s3_call_init(c, s3,
	    r->op == LOG_LIST ? list_url(s3, r->job_id, LOG_LIST_MAX)
			      : xasprintf("%s/%s%s", s3->bucket_url, s3->prefix, log_object_name(r->job_id, name)));
	c->r = r;
	LIST_INSERT_HEAD(&s3->calls, c, link);
	if (r->op == LOG_PUT) {
		c->call.total_timeout_ms = PUT_TIMEOUT_MS;
		c->work = (struct pool_work){.work = put_work, .after = after_put};
		pool_submit(s3->loop, &c->work);
		return;
	}
	if (r->op == LOG_READ && r->at < 0)
		c->range = xasprintf("Range: bytes=-%zu", r->n);
	else if (r->op == LOG_READ)
		c->range =
		    xasprintf("Range: bytes=%lld-%lld", (long long)r->at, (long long)r->at + (long long)r->n - 1);
	if (r->op == LOG_READ)
		c->call.max_answer_bytes += r->n;
	else if (r->op == LOG_LIST)
		c->call.max_answer_bytes = LIST_MAX_BYTES;
	c->call.done = on_s3_answer;
	sha256("", 0, nothing);
	s3_call_set(c, r->op == LOG_REMOVE ? "DELETE" : "GET", nothing);
	http_call_start(s3->client, &c->call);
}

static void s3_use_keys(struct log_place *p, const struct log_place_options *o)
{
	struct place_s3 *s3 = CONTAINER_OF(p, struct place_s3, base);
	struct secret *old[] = {s3->access_key, s3->secret_key, s3->session_token};

	s3->access_key = secret_ref(o->access_key);
	s3->secret_key = secret_ref(o->secret_key);
	s3->session_token = o->session_token ? secret_ref(o->session_token) : NULL;
	for (size_t i = 0; i < ARRAY_LEN(old); i++)
		secret_unref(old[i]);
}

static void s3_stop(struct log_place *p)
{
	struct place_s3 *s3 = CONTAINER_OF(p, struct place_s3, base);
	struct s3_call *c;
	uint64_t one = 1;

	if (write(s3->stop_fd, &one, sizeof(one)) != sizeof(one))
		log_event(LOG_WARN, "log_not_cancelled", LOG_S("why", strerror(errno)));
	LIST_FOREACH (c, &s3->calls, link)
		http_call_cancel(s3->client, &c->call);
}

static void s3_free(struct log_place *p)
{
	struct place_s3 *s3 = CONTAINER_OF(p, struct place_s3, base);

	close(s3->stop_fd);
	secret_unref(s3->access_key);
	secret_unref(s3->secret_key);
	secret_unref(s3->session_token);
	FREE_ALL(s3->bucket_url, s3->prefix, s3->region, s3);
}

struct log_place *place_s3_new(struct loop *l, const struct log_place_options *o, struct http_client *client)
{
	struct place_s3 *s3 = xcalloc(1, sizeof(*s3));
	int bucket_chars = (int)strcspn(o->s3, "/");
	const char *prefix = o->s3 + bucket_chars + (o->s3[bucket_chars] == '/');

	*s3 = (struct place_s3){
	    .base = {.start = s3_start, .use_keys = s3_use_keys, .stop = s3_stop, .free = s3_free},
	    .loop = l,
	    .client = client,
	    .bucket_url = xasprintf("%s/%.*s", o->s3_endpoint, bucket_chars, o->s3),
	    .prefix = xasprintf("%s%s", prefix, *prefix ? "/" : ""),
	    .region = xstrdup(o->s3_region),
	    .stop_fd = eventfd(0, EFD_CLOEXEC),
	};
	LIST_INIT(&s3->calls);
	s3_use_keys(&s3->base, o);
	return &s3->base;
}

int place_s3_check(const struct log_place_options *o, struct error *e)
{
	struct log_place *place = place_s3_new(NULL, o, NULL);
	struct place_s3 *s3 = CONTAINER_OF(place, struct place_s3, base);
	struct s3_call c;
	uint8_t nothing[SHA256_BYTES];
	int rc;

	s3_call_init(&c, s3, list_url(s3, 0, 1));
	sha256("", 0, nothing);
	s3_call_set(&c, "GET", nothing);
	c.call.total_timeout_ms = CHECK_TIMEOUT_MS;
	rc = http_call_blocking(&c.call, AGENT, NULL);
	if (rc || !has_succeeded(&c.call))
		rc = s3_fail(s3, &c.call, e);
	s3_call_free(&c);
	s3_free(place);
	return rc;
}
