#include "ctl/server.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/file.h"
#include "config/state_dir.h"
#include "http/client.h"

enum { BACKUP_TIMEOUT_MS = 3600 * 1000 };

/* The socket's path, from the configuration that the daemon was started with. */
static char *socket_path(const struct ctl *ctl)
{
	struct error why = {0};
	char *state_dir, *path;

	if (config_state_dir(ctl->config_path, &state_dir, &why)) {
		fprintf(stderr,
		    "outpostctl: where is the service? %s\n"
		    "Name the configuration that outpostd runs with: outpostctl -c FILE\n",
		    why.text);
		return NULL;
	}
	path = path_join(state_dir, "control.sock");
	free(state_dir);
	return path;
}

/* Why nobody can be reached on this socket: 0, or an errno. */
static int try_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, why = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		why = errno;
	if (fd >= 0)
		close(fd);
	return why;
}

/* libcurl's own words name a host and a port, which do not exist here. */
static void explain_silence(const char *path, const struct error *e)
{
	int why = try_socket(path);

	if (why == ENOENT || why == ECONNREFUSED)
		fprintf(stderr, "outpostctl: outpostd does not run (nobody listens on %s)\n", path);
	else if (why == EACCES)
		fprintf(stderr,
		    "outpostctl: %s: %s; run this as the user of outpostd, or as root\n", path,
		    strerror(why));
	else
		fprintf(stderr, "outpostctl: outpostd does not answer on %s: %s\n", path,
		    why ? strerror(why) : e->text);
}

static int answer_of(const struct http_call *call, json_t **ret)
{
	struct error why = {0};

	if (json_parse(call->answer.data ? call->answer.data : "", call->answer.len, ret, &why)) {
		fprintf(
		    stderr, "outpostctl: the service answered what is no JSON (%s)\n", why.text);
		return EXIT_FAILED;
	}
	if (call->status >= 400) {
		const char *text = json_get_str(*ret, "error");
		struct buf line = BUF_INIT(SIZE_MAX / 2);

		/* It may quote what somebody outside wrote. */
		escape_line(&line, text ? text : "the service refused", 0);
		fprintf(stderr, "outpostctl: %s\n", buf_str(&line));
		buf_release(&line);
		json_decref(*ret);
		*ret = NULL;
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

int server_ask(
    const struct ctl *ctl, const char *method, const char *path, const json_t *body, json_t **ret)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	char *socket = socket_path(ctl), *text = body ? json_text(body) : NULL;
	char *url = xasprintf("http://localhost%s", path);
	struct http_call call = {
	    .method = method,
	    .url = url,
	    .headers = headers,
	    .body = text,
	    .body_bytes = text ? strlen(text) : 0,
	    .unix_socket_path = socket,
	    .allow_plain_http = true,
	    .total_timeout_ms = BACKUP_TIMEOUT_MS,
	};
	int exit_code = EXIT_FAILED;

	*ret = NULL;
	if (socket) {
		if (http_call_blocking(&call))
			explain_silence(socket, &call.why);
		else
			exit_code = answer_of(&call, ret);
		http_call_release(&call);
	}
	free(socket);
	free(text);
	free(url);
	return exit_code;
}

int server_print_json(json_t *v)
{
	json_dumpf(v, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(v);
	return EXIT_DONE;
}
