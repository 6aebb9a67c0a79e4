#include "http/client.h"

#include <openssl/ssl.h>
#include <signal.h>

#include "http/client_transfer.h"

enum {
	PENDING_BYTES_MAX = 8 * 1024 * 1024, /* libcurl delivers less in one round */
	WAIT_MS = 1000,                      /* libcurl's own deadlines wake it earlier */
};

struct http_puller {
	struct http_client client; /* only the fields that a transfer reads */
	CURLM *multi;
	struct http_transfer *transfer;
	struct http_call *call; /* NULL: none */
	size_t n_taken;         /* bytes of call->answer that the caller has */
	int cancel_fd;
	bool is_done;
};

struct http_puller *http_puller_new(const char *user_agent)
{
	struct http_puller *p = xcalloc(1, sizeof(*p));

	curl_global_init(CURL_GLOBAL_DEFAULT);
	http_client_init(&p->client, user_agent);
	p->multi = curl_multi_init();
	if (!p->multi) {
		fputs("libcurl: no multi handle\n", stderr);
		abort();
	}
	p->transfer = http_transfer_new(&p->client);
	return p;
}

void http_puller_free(struct http_puller *p)
{
	if (!p)
		return;
	http_pull_end(p);
	http_transfer_free(p->transfer);
	curl_multi_cleanup(p->multi);
	http_client_release(&p->client);
	free(p);
	curl_global_cleanup();
	/* Frees OpenSSL's memory for this thread. Otherwise it would stay: threads of the pool run as long as the
	 * loop. */
	OPENSSL_thread_stop();
}

static int puller_conclude(struct http_puller *p, CURLcode code)
{
	http_transfer_conclude(p->transfer, code);
	p->is_done = true;
	return p->call->err;
}

static int puller_fail(struct http_puller *p, int err, const char *why)
{
	p->transfer->err = err;
	error_set(&p->call->why, err, "%s", why);
	return puller_conclude(p, CURLE_ABORTED_BY_CALLBACK);
}

static bool has_pending(const struct http_puller *p) { return p->n_taken < p->call->answer.len; }

/* Waits until there are bytes to take or the exchange has ended. */
static int puller_work(struct http_puller *p)
{
	struct curl_waitfd cancel = {.fd = p->cancel_fd, .events = CURL_WAIT_POLLIN};
	unsigned int n_extra = p->cancel_fd >= 0;

	while (!p->is_done && !has_pending(p)) {
		int n_running, n_left;
		CURLMcode code = curl_multi_perform(p->multi, &n_running);
		CURLMsg *m;

		while ((m = curl_multi_info_read(p->multi, &n_left)))
			if (m->msg == CURLMSG_DONE)
				puller_conclude(p, m->data.result);
		if (code == CURLM_OK && !p->is_done && !has_pending(p))
			code = curl_multi_poll(p->multi, &cancel, n_extra, WAIT_MS, NULL);
		if (code != CURLM_OK)
			return puller_fail(p, ERR_NETWORK, curl_multi_strerror(code));
		if (cancel.revents)
			return puller_fail(p, ERR_CANCELLED, "cancelled");
	}
	return has_pending(p) ? 0 : p->call->err;
}

int http_pull_start(struct http_puller *p, struct http_call *call, int cancel_fd)
{
	struct http_transfer *t = p->transfer;
	long status = 0;

	http_pull_end(p);
	call->max_answer_bytes = PENDING_BYTES_MAX;
	p->call = call;
	p->cancel_fd = cancel_fd;
	p->n_taken = 0;
	p->is_done = false;
	int err = http_transfer_prepare(t, call);
	if (err)
		return puller_fail(p, err, call->why.text);
	/* A small answer could unpack to far more than the caller takes at a time. */
	curl_easy_setopt(t->easy, CURLOPT_ACCEPT_ENCODING, NULL);
	CURLMcode code = curl_multi_add_handle(p->multi, t->easy);
	if (code != CURLM_OK)
		return puller_fail(p, ERR_BUSY, curl_multi_strerror(code));
	t->is_in_multi = true;
	err = puller_work(p);
	if (err)
		return err;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	call->status = (int)status;
	return 0;
}

int http_pull_read(struct http_puller *p, void *to, size_t size, size_t *ret_n)
{
	struct buf *answer = &p->call->answer;
	int err;

	*ret_n = 0;
	if (!has_pending(p)) {
		buf_clear(answer);
		p->n_taken = 0;
		err = puller_work(p);
		if (err)
			return err;
	}
	size_t n = answer->len - p->n_taken;
	n = n < size ? n : size;
	if (n)
		memcpy(to, answer->data + p->n_taken, n);
	p->n_taken += n;
	*ret_n = n;
	return 0;
}

void http_pull_end(struct http_puller *p)
{
	if (!p->call)
		return;
	if (p->transfer->is_in_multi)
		curl_multi_remove_handle(p->multi, p->transfer->easy);
	p->transfer->is_in_multi = false;
	http_transfer_reset(p->transfer);
	p->call = NULL;
}

int http_call_blocking(struct http_call *call, const char *user_agent, const char *ca_file)
{
	struct http_puller *p = http_puller_new(user_agent);

	signal(SIGPIPE, SIG_IGN); /* a write to a closed connection is an error code, as on a loop */
	if (ca_file)
		http_client_use_ca(&p->client, ca_file);
	p->transfer->err = http_transfer_prepare(p->transfer, call);
	http_transfer_conclude(
	    p->transfer, p->transfer->err ? CURLE_FAILED_INIT : curl_easy_perform(p->transfer->easy));
	http_puller_free(p);
	return call->err;
}
