/* What a vendor's CI calls: one PUT with its credential, so that nobody needs curl and jq. The
 * report is read first, because the answer to a wrong one is better here than from afar. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "config/runner_file.h"
#include "config/state_dir.h"
#include "ctl/arguments.h"
#include "ctl/report_input.h"
#include "ctl/server.h"
#include "http/client.h"

enum { TOKEN_MAX_BYTES = 16 << 10, ANSWER_MAX_BYTES = 1 << 20, PUSH_TIMEOUT_MS = 600 * 1000 };

struct push {
	const char *path, *url, *token_file;
	int64_t job;
};

static int say(const char *what, const char *detail)
{
	fprintf(stderr, "outpostctl: %s%s\n", what, detail);
	return EXIT_FAILED;
}

static bool read_arguments(struct push *p, int argc, char **argv)
{
	static const char name[] = "report push";
	const struct argument_option options[] = {{.name = "--job", .number = &p->job, .min = 1},
	    {.name = "--url", .text = &p->url}, {.name = "--token-file", .text = &p->token_file},
	    {.name = NULL}};

	*p = (struct push){.path = NULL};
	if (!arguments_read(name, argc, argv, options, &p->path, 1, 1))
		return false;
	if (!p->job)
		(void)command_usage(name);
	if (!p->url)
		p->url = getenv("OUTPOST_URL");
	return p->job > 0;
}

/* The service's address without a trailing slash. NULL after having said why. free(). */
static char *service_url(const struct ctl *ctl, const struct push *p)
{
	struct error e = {0};
	char *url = p->url && *p->url ? xstrdup(p->url) : NULL, why[WHY_BYTES];
	int rc = url ? 0 : config_public_url(ctl->config_path, &url, &e);

	if (rc) {
		say("where is the service? Give --url or OUTPOST_URL; ", e.text);
		return NULL;
	}
	if (!check_server_url(NULL, url, why)) {
		fprintf(stderr, "outpostctl: %s: must be %s\n", url, why);
		FREE_AND_NULL(url);
	}
	for (size_t n = url ? strlen(url) : 0; n > 0 && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
	return url;
}

/* A header that carries the credential. NULL after having said why. free(), wiped. */
static char *authorization(const struct push *p)
{
	struct buf text = BUF_INIT(TOKEN_MAX_BYTES);
	const char *from = getenv("OUTPOST_TOKEN");
	struct error why = {0};
	char *header = NULL;
	size_t n;

	if (p->token_file && file_read(p->token_file, &text, &why)) {
		say(why.text, "");
		goto out;
	}
	if (p->token_file)
		from = buf_str(&text);
	n = from ? strcspn(from, " \t\r\n") : 0;
	if (n == 0)
		say("no token: set OUTPOST_TOKEN, or give --token-file FILE", "");
	else if (from[n + strspn(from + n, "\r\n")] || n > TOKEN_MAX_BYTES)
		say("the token must be one word on one line", "");
	else
		header = xasprintf("Authorization: Bearer %.*s", (int)n, from);
out:
	if (text.data)
		explicit_bzero(text.data, text.len);
	buf_release(&text);
	return header;
}

static int print_answer(const struct ctl *ctl, const struct push *p, const struct http_call *call)
{
	const char *text = call->answer.data ? call->answer.data : "";
	json_t *v = NULL;
	int rc = json_parse(text, call->answer.len, &v, NULL);
	const char *detail = json_get_str(v, "detail");
	int64_t n_cut = json_get_int(v, "cut", 0);
	int exit_code = EXIT_DONE;

	if (call->status != 200 || rc) {
		fprintf(stderr, "outpostctl: job %lld: %s (HTTP %d)%s\n", (long long)p->job,
		    detail ? detail : "the service refused the report", call->status,
		    call->status == 503 || call->status == 429 ? "; try again later" : "");
		exit_code = EXIT_FAILED;
	} else if (ctl->is_json) {
		server_print_json(json_incref(v));
	} else {
		printf("job %lld: %lld tests", (long long)p->job,
		    (long long)json_get_int(v, "tests", 0));
		if (n_cut)
			printf(", %lld cut", (long long)n_cut);
		puts("");
	}
	json_decref(v);
	return exit_code;
}

static int put(const struct ctl *ctl, const struct push *p, const struct report_input *in,
    const char *url, const char *header)
{
	const char *type = in->format == REPORT_JUNIT ? "Content-Type: application/xml"
						      : "Content-Type: application/json";
	const char *const headers[] = {header, type, NULL};
	char *target = xasprintf("%s/api/v1/jobs/%lld/report", url, (long long)p->job);
	struct http_call call = {
	    .method = "PUT",
	    .url = target,
	    .headers = headers,
	    .body = buf_str(&in->text),
	    .body_bytes = in->text.len,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .total_timeout_ms = PUSH_TIMEOUT_MS,
	};
	int exit_code;

	if (http_call_blocking(&call))
		exit_code = say("", call.why.text);
	else
		exit_code = print_answer(ctl, p, &call);
	http_call_release(&call);
	free(target);
	return exit_code;
}

int cmd_report_push(const struct ctl *ctl, int argc, char **argv)
{
	struct report_input in;
	char *url = NULL, *header = NULL;
	int exit_code = EXIT_FAILED, rc;
	struct push p;

	if (!read_arguments(&p, argc, argv))
		return EXIT_USAGE;
	rc = report_input_read(&in, p.path, N_REPORT_FORMATS);
	if (rc)
		say(in.why.text, "");
	else
		url = service_url(ctl, &p);
	if (url)
		header = authorization(&p);
	if (header) {
		exit_code = put(ctl, &p, &in, url, header);
		explicit_bzero(header, strlen(header));
	}
	free(header);
	free(url);
	report_input_release(&in);
	return exit_code;
}
