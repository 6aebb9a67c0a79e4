/* One exchange in libcurl's terms: its options, the limits on its answer, and its result. The address check happens at
 * the socket, after name look-up, so a name cannot point elsewhere between check and use. */
#include "http/client_transfer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "http/client_group.h"

enum {
	SPARE_MAX = 64,
	ANSWER_BYTES_MAX = 8 * 1024 * 1024,
	HEADER_BYTES_MAX = 64 * 1024,
	CONNECT_TIMEOUT_MS = 10 * 1000,
	TOTAL_TIMEOUT_MS = 30 * 1000,
	FLOOR_BYTES_PER_S = 100,
	OVERDUE_MS = 500, /* so libcurl's own timeout, whose error text is better, comes first */
	FLOOR_S = 45,     /* longer than the silence of a runner's long poll */
};

/* curl_easy_setopt() fails if this libcurl lacks the option or memory runs out. A TLS or limit option must never be
 * missing without notice. */
#define SET(easy, option, value)                                                                                       \
	do {                                                                                                           \
		if (curl_easy_setopt(easy, option, value) != CURLE_OK) {                                               \
			fputs("libcurl: cannot set " #option "\n", stderr);                                            \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

struct http_transfer *http_transfer_new(struct http_client *c)
{
	struct http_transfer *t = c->n_spare ? TAILQ_FIRST(&c->spare) : NULL;

	if (t) {
		TAILQ_REMOVE(&c->spare, t, link);
		c->n_spare--;
		return t;
	}
	t = xcalloc(1, sizeof(*t));
	t->client = c;
	t->easy = curl_easy_init();
	if (!t->easy) {
		fputs("libcurl: no easy handle\n", stderr);
		abort();
	}
	return t;
}

void http_transfer_reset(struct http_transfer *t)
{
	curl_easy_reset(t->easy);
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	t->call = NULL;
}

void http_transfer_free(struct http_transfer *t)
{
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	free(t);
}

void http_transfer_put_back(struct http_transfer *t)
{
	struct http_client *c = t->client;

	if (c->n_spare == SPARE_MAX) {
		http_transfer_free(t);
		return;
	}
	http_transfer_reset(t);
	TAILQ_INSERT_HEAD(&c->spare, t, link);
	c->n_spare++;
}

void http_transfers_free_spare(struct http_client *c)
{
	struct http_transfer *t;

	while (c->n_spare && (t = TAILQ_FIRST(&c->spare))) {
		TAILQ_REMOVE(&c->spare, t, link);
		c->n_spare--;
		http_transfer_free(t);
	}
}

/* ---- callbacks of libcurl ---- */

static void transfer_read_status(struct http_transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->call->status = (int)status;
}

static size_t on_curl_body(char *p, size_t size, size_t n, void *owner)
{
	struct http_transfer *t = owner;

	if (buf_append(&t->call->answer, p, size * n)) {
		t->err = ERR_TOO_BIG;
		error_set(&t->call->why, ERR_TOO_BIG, "the answer is over %zu bytes", t->call->answer.max);
		transfer_read_status(t);
		return 0;
	}
	return size * n;
}

static size_t on_curl_header(char *p, size_t size, size_t n, void *owner)
{
	struct http_transfer *t = owner;

	n *= size;
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
		buf_clear(&t->call->answer_headers); /* the lines before it were an interim answer */
	if (buf_append(&t->call->answer_headers, p, n)) {
		t->err = ERR_TOO_BIG;
		error_set(&t->call->why, ERR_TOO_BIG, "the answer's headers are over %d bytes", HEADER_BYTES_MAX);
		return 0;
	}
	return n;
}

static size_t on_curl_read(char *to, size_t size, size_t n, void *owner)
{
	struct http_transfer *t = owner;
	int64_t left = t->call->file->bytes - t->n_sent;
	ssize_t got;

	n = (int64_t)(n * size) < left ? n * size : (size_t)left;
	do
		got = pread(t->call->file->fd, to, n, t->n_sent);
	while (got < 0 && errno == EINTR);
	if (got < 0 || (got == 0 && n > 0)) {
		t->err = error_set(&t->call->why, ERR_IO, "the file of the request became shorter or unreadable");
		return CURL_READFUNC_ABORT;
	}
	t->n_sent += got;
	return (size_t)got;
}

/* libcurl sends the body again if a reused connection was closed. */
static int on_curl_seek(void *owner, curl_off_t offset, int origin)
{
	struct http_transfer *t = owner;

	t->n_sent = offset;
	return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

/* False: the call ends with ERR_DENIED. */
static bool transfer_allows(struct http_transfer *t, const uint8_t address[16])
{
	struct http_call *call = t->call;
	char text[INET6_ADDRSTRLEN];

	if (!call->allow_address || call->unix_socket_path)
		return true;
	if (call->allow_address(address, call->allow_owner))
		return true;
	http_address_format(address, text);
	t->err = ERR_DENIED;
	error_set(&call->why, ERR_DENIED, "the address %s is not allowed", text);
	return false;
}

static curl_socket_t on_curl_open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct http_transfer *t = owner;
	uint8_t address[16];
	int fd;

	(void)purpose;
	if (to->family == AF_INET)
		http_address_map_v4(&((const struct sockaddr_in *)(const void *)&to->addr)->sin_addr, address);
	else if (to->family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)&to->addr)->sin6_addr, 16);
	else if (t->call->allow_address && !t->call->unix_socket_path)
		return CURL_SOCKET_BAD;
	if ((to->family == AF_INET || to->family == AF_INET6) && !transfer_allows(t, address))
		return CURL_SOCKET_BAD;
	fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
	if (fd >= 0 && to->protocol == IPPROTO_TCP && t->client->confirm_ms)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &t->client->confirm_ms, sizeof(t->client->confirm_ms));
	return fd;
}

/* Runs right before a request goes out. It also checks a connection that another call opened, perhaps under another
 * rule. */
static int on_curl_request(void *owner, char *peer, char *local, int peer_port, int local_port)
{
	struct http_transfer *t = owner;
	uint8_t address[16], v4[4];
	/* RFC 9110 section 9.2.2: a repetition of other methods has no further effect. A PATCH may add annotations to
	 * a check run. */
	bool is_idempotent = !str_eq(t->call->method, "POST") && !str_eq(t->call->method, "PATCH");

	(void)local;
	(void)peer_port;
	(void)local_port;
	/* libcurl repeats a request if a reused connection closed. The server may have acted on the
	 * first one, so only the caller, who can check that, may repeat it. */
	if (t->call->was_sent && !is_idempotent) {
		t->err = error_set(&t->call->why, ERR_NETWORK, "the connection was closed before the answer came");
		return CURL_PREREQFUNC_ABORT;
	}
	if (t->call->may_go_out && !t->call->may_go_out(t->call->going_owner)) {
		t->err = error_set(&t->call->why, ERR_CANCELLED, "it may not be sent any more");
		return CURL_PREREQFUNC_ABORT;
	}
	if (t->err == ERR_DENIED) {
		/* another address of this name was refused before */
		t->err = 0;
		t->call->why = (struct error){0};
	}
	if (t->call->allow_address && !t->call->unix_socket_path) {
		if (peer && inet_pton(AF_INET, peer, v4) == 1)
			http_address_map_v4(v4, address);
		else if (!peer || inet_pton(AF_INET6, peer, address) != 1)
			return CURL_PREREQFUNC_ABORT;
		if (!transfer_allows(t, address))
			return CURL_PREREQFUNC_ABORT;
	}
	t->call->was_sent = true;
	return CURL_PREREQFUNC_OK;
}

/* ---- setting up ---- */

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

static bool is_header_given(const struct http_call *call, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *h = call->headers; h && *h; h++)
		if (strncasecmp(*h, name, n) == 0 && (*h)[n] == ':')
			return true;
	return false;
}

static void transfer_add_header(struct http_transfer *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (!list) {
		fputs("libcurl: out of memory\n", stderr);
		abort();
	}
	t->headers = list;
}

static int transfer_set_headers(struct http_transfer *t)
{
	struct http_call *call = t->call;

	for (const char *const *h = call->headers; h && *h; h++) {
		/* the message leaves the value out: it may be a credential */
		if (has_control(*h))
			return error_set(&call->why, ERR_INVALID, "a header has a control character");
		transfer_add_header(t, *h);
	}
	/* An empty value drops a header that libcurl would add. But libcurl 7.88 would sign these two, and not send them. */
	if (!call->signing)
		transfer_add_header(t, "Expect:"); /* avoids a round trip */
	if (!call->signing && !is_header_given(call, "Content-Type"))
		transfer_add_header(t, "Content-Type:"); /* else libcurl adds that of a form */
	SET(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return 0;
}

static void transfer_set_method(struct http_transfer *t)
{
	const struct http_call *call = t->call;

	if (call->file) {
		SET(t->easy, CURLOPT_UPLOAD, 1L);
		SET(t->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->file->bytes);
		SET(t->easy, CURLOPT_READFUNCTION, on_curl_read);
		SET(t->easy, CURLOPT_READDATA, t);
		SET(t->easy, CURLOPT_SEEKFUNCTION, on_curl_seek);
		SET(t->easy, CURLOPT_SEEKDATA, t);
	} else if (call->body || str_eq(call->method, "POST")) {
		SET(t->easy, CURLOPT_POSTFIELDS, call->body ? call->body : "");
		SET(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes);
	} else if (str_eq(call->method, "HEAD")) {
		SET(t->easy, CURLOPT_NOBODY, 1L);
	} else {
		SET(t->easy, CURLOPT_HTTPGET, 1L);
	}
	SET(t->easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void transfer_sign(struct http_transfer *t)
{
	const struct http_signing *s = t->call->signing;
	char *scope = xasprintf("aws:amz:%s:s3", s->region);

	SET(t->easy, CURLOPT_AWS_SIGV4, scope);
	SET(t->easy, CURLOPT_USERNAME, secret_text(s->access_key));
	SET(t->easy, CURLOPT_PASSWORD, secret_text(s->secret_key));
	free(scope);
}

static void call_clear(struct http_call *call)
{
	http_call_release(call);
	buf_init(&call->answer, call->max_answer_bytes ? call->max_answer_bytes : ANSWER_BYTES_MAX);
	buf_init(&call->answer_headers, HEADER_BYTES_MAX);
	call->err = 0;
	call->status = 0;
	call->was_sent = false;
	call->why = (struct error){0};
}

int http_transfer_prepare(struct http_transfer *t, struct http_call *call)
{
	int64_t total = call->total_timeout_ms ? call->total_timeout_ms : TOTAL_TIMEOUT_MS;
	bool is_http_allowed = call->allow_plain_http || !call->allow_address;
	bool is_plain = strncasecmp(call->url, "http:", 5) == 0;

	call_clear(call);
	t->call = call;
	t->err = 0;
	t->error_text[0] = '\0';
	t->n_sent = 0;
	t->overdue_mono_ms = clock_mono_ms() + total + OVERDUE_MS;
	SET(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	SET(t->easy, CURLOPT_TIMEOUT_MS, (long)total);
	SET(t->easy, CURLOPT_LOW_SPEED_LIMIT, (long)FLOOR_BYTES_PER_S);
	SET(t->easy, CURLOPT_LOW_SPEED_TIME, (long)FLOOR_S);
	SET(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	SET(t->easy, CURLOPT_NOSIGNAL, 1L);
	/* else a timeout blocks the loop until the look-up's thread ends */
	SET(t->easy, CURLOPT_QUICK_EXIT, 1L);
	/* the message leaves the URL out: a vendor's may contain a secret */
	if (has_control(call->url) || strlen(call->url) > 8192)
		return error_set(&call->why, ERR_INVALID, "the URL is too long or not a URL");
	SET(t->easy, CURLOPT_URL, call->url);
	SET(t->easy, CURLOPT_PROTOCOLS_STR, is_http_allowed ? "http,https" : "https");
	SET(t->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	SET(t->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	SET(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* Sets both: with only one of them, libcurl would also trust the system's other one. */
	if (t->client->ca_file || t->client->ca_folder) {
		SET(t->easy, CURLOPT_CAINFO, t->client->ca_file);
		SET(t->easy, CURLOPT_CAPATH, t->client->ca_folder);
	}
	SET(t->easy, CURLOPT_SHARE, t->client->share);
	/* HTTP/2 by ALPN only. With it, calls wait for a shared connection instead of opening their own. Without TLS
	 * they would wait for a whole exchange. */
	SET(t->easy, CURLOPT_HTTP_VERSION, (long)(is_plain ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
	SET(t->easy, CURLOPT_PIPEWAIT, is_plain ? 0L : 1L);
	SET(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_curl_open_socket);
	SET(t->easy, CURLOPT_OPENSOCKETDATA, t);
	SET(t->easy, CURLOPT_PREREQFUNCTION, on_curl_request);
	SET(t->easy, CURLOPT_PREREQDATA, t);
	if (call->unix_socket_path)
		SET(t->easy, CURLOPT_UNIX_SOCKET_PATH, call->unix_socket_path);
	if (call->unix_socket_path || call->allow_address)
		SET(t->easy, CURLOPT_PROXY, "");
	transfer_set_method(t);
	int err = transfer_set_headers(t);
	if (err)
		return err;
	SET(t->easy, CURLOPT_ERRORBUFFER, t->error_text);
	SET(t->easy, CURLOPT_PRIVATE, t);
	SET(t->easy, CURLOPT_USERAGENT, t->client->user_agent);
	/* A range of an S3 object is a range of its own bytes. */
	SET(t->easy, CURLOPT_ACCEPT_ENCODING, call->signing ? NULL : "gzip");
	if (call->signing)
		transfer_sign(t);
	SET(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(t->easy, CURLOPT_WRITEFUNCTION, on_curl_body);
	SET(t->easy, CURLOPT_WRITEDATA, t);
	SET(t->easy, CURLOPT_HEADERFUNCTION, on_curl_header);
	SET(t->easy, CURLOPT_HEADERDATA, t);
	return 0;
}

/* ---- the end ---- */

static int err_of_curl(CURLcode code)
{
	switch ((int)code) { /* libcurl's list of codes is long and grows */
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return ERR_TIMEOUT;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return ERR_INVALID;
	case CURLE_FILESIZE_EXCEEDED:
		return ERR_TOO_BIG;
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_PARTIAL_FILE:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_HTTP2:
	case CURLE_HTTP2_STREAM:
		return ERR_PROTOCOL;
	default:
		return ERR_NETWORK;
	}
}

void http_transfer_conclude(struct http_transfer *t, CURLcode code)
{
	struct http_call *call = t->call;

	call->err = t->err ? t->err : err_of_curl(code);
	if (call->err) {
		error_set(&call->why, call->err, "%s", t->error_text[0] ? t->error_text : curl_easy_strerror(code));
		return;
	}
	transfer_read_status(t);
}

bool http_call_header(const struct http_call *call, const char *name, char *out, size_t n)
{
	const char *at = buf_str(&call->answer_headers);
	size_t name_len = strlen(name);
	bool is_found = false;

	while (*at) {
		const char *end = strchr(at, '\n');
		const char *next = end ? end + 1 : at + strlen(at);

		if (strncasecmp(at, name, name_len) == 0 && at[name_len] == ':') {
			const char *v = at + name_len + 1;

			end = next;
			while (v < end && (*v == ' ' || *v == '\t'))
				v++;
			while (end > v && strchr(" \t\r\n", end[-1]))
				end--;
			is_found = (size_t)(end - v) < n;
			if (is_found) {
				memcpy(out, v, (size_t)(end - v));
				out[end - v] = '\0';
			}
		}
		at = next;
	}
	return is_found;
}
