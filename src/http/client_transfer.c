/* One exchange in libcurl's terms: what is asked for, what is let in, and what its end
 * means. The address check sits at the socket, behind name look-up, so that a name that
 * changes its mind between check and use gains nothing. */
#include "http/client_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum {
	ANSWER_BYTES_MAX = 8 * 1024 * 1024,
	HEADER_BYTES_MAX = 64 * 1024,
	CONNECT_TIMEOUT_MS = 10 * 1000,
	TOTAL_TIMEOUT_MS = 30 * 1000,
	FLOOR_BYTES_PER_S = 100,
	OVERDUE_MS = 500, /* for libcurl's own timeout, which says more, to come first */
	FLOOR_S = 45,     /* longer than a runner's long poll is silent */
};

/* curl_easy_setopt() fails for options that this libcurl lacks and for lack of memory;
 * a TLS or limit option that was not taken must not go unnoticed. */
#define SET(easy, option, value)                                                                   \
	do {                                                                                       \
		if (curl_easy_setopt(easy, option, value) != CURLE_OK) {                           \
			fputs("libcurl: cannot set " #option "\n", stderr);                        \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct http_transfer *http_transfer_new(struct http_client *c)
{
	struct http_transfer *t = xcalloc(1, sizeof(*t));

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

/* ---- what libcurl calls while it works ---- */

static void read_status(struct http_transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	t->call->status = (int)status;
}

static size_t on_body(char *p, size_t size, size_t n, void *owner)
{
	struct http_transfer *t = owner;

	if (buf_append(&t->call->answer, p, size * n)) {
		t->err = ERR_TOO_BIG;
		error_set(&t->call->why, ERR_TOO_BIG, "the answer is over %zu bytes",
		    t->call->answer.max);
		read_status(t);
		return 0;
	}
	return size * n;
}

static size_t on_header(char *p, size_t size, size_t n, void *owner)
{
	struct http_transfer *t = owner;

	n *= size;
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
		buf_clear(&t->call->answer_headers); /* what came before was an interim answer */
	if (buf_append(&t->call->answer_headers, p, n)) {
		t->err = ERR_TOO_BIG;
		error_set(&t->call->why, ERR_TOO_BIG, "the answer's headers are over %d bytes",
		    HEADER_BYTES_MAX);
		return 0;
	}
	return n;
}

static bool is_allowed(struct http_transfer *t, const uint8_t address[16])
{
	struct http_call *call = t->call;
	char text[INET6_ADDRSTRLEN] = "";

	if (!call->allow_address || call->unix_socket_path)
		return true;
	if (call->allow_address(address, call->allow_owner))
		return true;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)address))
		inet_ntop(AF_INET, address + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, address, text, sizeof(text));
	t->err = ERR_DENIED;
	error_set(&call->why, ERR_DENIED, "the address %s is not allowed", text);
	return false;
}

static void map_v4(const void *v4, uint8_t out[16])
{
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, v4, 4);
}

static curl_socket_t on_open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct http_transfer *t = owner;
	uint8_t address[16];

	(void)purpose;
	if (to->family == AF_INET)
		map_v4(&((const struct sockaddr_in *)(const void *)&to->addr)->sin_addr, address);
	else if (to->family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)&to->addr)->sin6_addr,
		    16);
	else if (t->call->allow_address && !t->call->unix_socket_path)
		return CURL_SOCKET_BAD;
	if ((to->family == AF_INET || to->family == AF_INET6) && !is_allowed(t, address))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* RFC 9110, 9.2.2: said twice is said once. A PATCH is not: it adds annotations to a check run. */
static bool is_idempotent(const char *method)
{
	return !str_eq(method, "POST") && !str_eq(method, "PATCH");
}

/* Right before a request goes out. A connection that another call opened, perhaps under
 * another rule, is checked here. */
static int on_request(void *owner, char *peer, char *local, int peer_port, int local_port)
{
	struct http_transfer *t = owner;
	uint8_t address[16], v4[4];

	(void)local;
	(void)peer_port;
	(void)local_port;
	/* libcurl sends again by itself what it sent on a reused connection that then closed.
	 * What the server may have acted on is the caller's to repeat, who can look first. */
	if (t->call->was_sent && !is_idempotent(t->call->method)) {
		t->err = error_set(
		    &t->call->why, ERR_NETWORK, "the connection was closed before the answer came");
		return CURL_PREREQFUNC_ABORT;
	}
	if (t->err == ERR_DENIED) {
		/* one address of the name's was refused, but this is another */
		t->err = 0;
		t->call->why = (struct error){0};
	}
	if (t->call->allow_address && !t->call->unix_socket_path) {
		if (peer && inet_pton(AF_INET, peer, v4) == 1)
			map_v4(v4, address);
		else if (!peer || inet_pton(AF_INET6, peer, address) != 1)
			return CURL_PREREQFUNC_ABORT;
		if (!is_allowed(t, address))
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

static void add_header(struct http_transfer *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (!list) {
		fputs("libcurl: out of memory\n", stderr);
		abort();
	}
	t->headers = list;
}

static int set_headers(struct http_transfer *t)
{
	struct http_call *call = t->call;

	for (const char *const *h = call->headers; h && *h; h++) {
		/* the value may be a credential: it is not repeated */
		if (has_control(*h))
			return error_set(
			    &call->why, ERR_INVALID, "a header has a control character");
		add_header(t, *h);
	}
	add_header(t, "Expect:"); /* a round trip that no server here wants */
	if (!is_header_given(call, "Content-Type"))
		add_header(t, "Content-Type:"); /* libcurl would claim a form */
	SET(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return 0;
}

static void set_method(struct http_transfer *t)
{
	const struct http_call *call = t->call;

	if (call->body || str_eq(call->method, "POST")) {
		SET(t->easy, CURLOPT_POSTFIELDS, call->body ? call->body : "");
		SET(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_bytes);
	} else if (str_eq(call->method, "HEAD")) {
		SET(t->easy, CURLOPT_NOBODY, 1L);
	} else {
		SET(t->easy, CURLOPT_HTTPGET, 1L);
	}
	SET(t->easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_limits(struct http_transfer *t)
{
	struct http_call *call = t->call;
	size_t max = call->max_answer_bytes ? call->max_answer_bytes : ANSWER_BYTES_MAX;
	int64_t connect = call->connect_timeout_ms ? call->connect_timeout_ms : CONNECT_TIMEOUT_MS;
	int64_t total = call->total_timeout_ms ? call->total_timeout_ms : TOTAL_TIMEOUT_MS;

	t->overdue_mono_ms = clock_mono_ms() + total + OVERDUE_MS;
	buf_init(&call->answer, max);
	buf_init(&call->answer_headers, HEADER_BYTES_MAX);
	SET(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect);
	SET(t->easy, CURLOPT_TIMEOUT_MS, (long)total);
	SET(t->easy, CURLOPT_LOW_SPEED_LIMIT, (long)FLOOR_BYTES_PER_S);
	SET(t->easy, CURLOPT_LOW_SPEED_TIME, (long)FLOOR_S);
	SET(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	SET(t->easy, CURLOPT_NOSIGNAL, 1L);
	/* else a timeout waits on the loop for the look-up's thread */
	SET(t->easy, CURLOPT_QUICK_EXIT, 1L);
}

static void set_connection(struct http_transfer *t)
{
	struct http_call *call = t->call;
	bool is_http_allowed = call->allow_plain_http || !call->allow_address;
	bool is_plain = strncasecmp(call->url, "http:", 5) == 0;

	SET(t->easy, CURLOPT_PROTOCOLS_STR, is_http_allowed ? "http,https" : "https");
	SET(t->easy, CURLOPT_SSL_VERIFYPEER, 1L);
	SET(t->easy, CURLOPT_SSL_VERIFYHOST, 2L);
	SET(t->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* Both: libcurl would otherwise trust the system's folder besides the file that is given. */
	if (t->client->ca_file || t->client->ca_folder) {
		SET(t->easy, CURLOPT_CAINFO, t->client->ca_file);
		SET(t->easy, CURLOPT_CAPATH, t->client->ca_folder);
	}
	SET(t->easy, CURLOPT_SHARE, t->client->share);
	/* HTTP/2 by ALPN only. Then calls wait for a connection that they may share rather
	 * than open one each; without TLS that would be a wait for a whole exchange. */
	SET(t->easy, CURLOPT_HTTP_VERSION,
	    (long)(is_plain ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
	SET(t->easy, CURLOPT_PIPEWAIT, is_plain ? 0L : 1L);
	SET(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
	SET(t->easy, CURLOPT_OPENSOCKETDATA, t);
	SET(t->easy, CURLOPT_PREREQFUNCTION, on_request);
	SET(t->easy, CURLOPT_PREREQDATA, t);
	if (call->unix_socket_path)
		SET(t->easy, CURLOPT_UNIX_SOCKET_PATH, call->unix_socket_path);
	if (call->unix_socket_path || call->allow_address)
		SET(t->easy, CURLOPT_PROXY, "");
}

int http_transfer_prepare(struct http_transfer *t)
{
	struct http_call *call = t->call;
	int err;

	set_limits(t);
	/* not repeated either: a vendor's URL may hold what only its operator may see */
	if (has_control(call->url) || strlen(call->url) > 8192)
		return error_set(&call->why, ERR_INVALID, "the URL is too long or not a URL");
	SET(t->easy, CURLOPT_URL, call->url);
	set_connection(t);
	set_method(t);
	err = set_headers(t);
	if (err)
		return err;
	t->error_text[0] = '\0';
	SET(t->easy, CURLOPT_ERRORBUFFER, t->error_text);
	SET(t->easy, CURLOPT_PRIVATE, t);
	SET(t->easy, CURLOPT_USERAGENT, t->client->user_agent);
	SET(t->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	SET(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	SET(t->easy, CURLOPT_WRITEDATA, t);
	SET(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	SET(t->easy, CURLOPT_HEADERDATA, t);
	return 0;
}

/* ---- the end ---- */

static int err_of(CURLcode code)
{
	switch ((int)code) { /* libcurl's list is long, and grows */
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

	call->err = t->err ? t->err : err_of(code);
	if (call->err) {
		error_set(&call->why, call->err, "%s",
		    t->error_text[0] ? t->error_text : curl_easy_strerror(code));
		return;
	}
	read_status(t);
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
