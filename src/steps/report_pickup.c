#include "steps/report_pickup.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "report/report_file.h"

/* Of all files together: what a stranger's step leaves behind must not keep the machine for long. */
#define ALL_MAX_BYTES (INT64_C(8) * REPORT_FILE_MAX_BYTES)

static int read_all(int fd, const char *path, struct buf *out, struct error *e)
{
	for (;;) {
		char chunk[65536];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(e, ERR_INVALID, "%s: %s", path, strerror(errno));
		if (n == 0)
			return 0;
		if (buf_append(out, chunk, (size_t)n))
			return error_set(e, ERR_INVALID, "%s: larger than %d MiB", path,
			    REPORT_FILE_MAX_BYTES >> 20);
	}
}

static int read_file(const struct job *j, const char *path, struct buf *out, struct error *e)
{
	int fd = report_open(j->work, path), rc;
	struct stat st;

	if (fd < 0)
		return error_set(e, ERR_INVALID, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		rc = error_set(e, ERR_INVALID, "%s: not a regular file", path);
	else
		rc = read_all(fd, path, out, e);
	close(fd);
	return rc;
}

/* Adds one file's cases to `all`. */
static int take_file(
    const struct job *j, const char *path, struct report_file *all, struct error *e)
{
	enum report_format format = report_format_parse(j->config->report_format);
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_file one = {.n_tests = 0};
	struct error why = {0};
	int rc = read_file(j, path, &text, e);

	if (!rc && report_file_parse(format, buf_str(&text), text.len, &one, &why))
		rc = error_set(e, ERR_INVALID, "%s: %s", path, why.text);
	if (!rc)
		report_file_merge(all, &one);
	report_file_release(&one);
	buf_release(&text);
	return rc;
}

static void mask_in_place(const struct masks *m, char **text)
{
	char *masked;

	if (!*text)
		return;
	masked = masks_text(m, *text);
	free(*text);
	*text = masked;
}

/* A report is shown to everybody, and a failing test likes to print its environment. */
static void mask_report(const struct masks *m, struct report_file *r)
{
	json_t *environment = NULL;

	for (size_t i = 0; i < r->n_tests; i++) {
		struct test_result *t = &r->tests[i];

		mask_in_place(m, &t->suite);
		mask_in_place(m, &t->name);
		mask_in_place(m, &t->dtype);
		mask_in_place(m, &t->message);
		mask_in_place(m, &t->trace);
		mask_in_place(m, &t->log_url);
		mask_in_place(m, &t->unit);
	}
	mask_in_place(m, &r->environment);
	/* a mask may have taken a part of its form with it */
	if (r->environment &&
	    json_parse(r->environment, strlen(r->environment), &environment, NULL))
		FREE_AND_NULL(r->environment);
	json_decref(environment);
}

static int write_report(const struct job *j, struct report_file *all, struct error *e)
{
	size_t n = 0;
	char *text;
	int rc;

	mask_report(j->masks, all);
	text = report_file_text(all, &n);
	rc = job_folder_write(j->folder, "report.json", text, n, e);
	free(text);
	return rc;
}

static char *patterns_text(char *const *patterns)
{
	struct buf out = BUF_INIT(300);

	for (char *const *p = patterns; *p; p++)
		buf_appendf(&out, "%s%s", p == patterns ? "" : ", ", *p);
	return out.data ? buf_take(&out) : xstrdup("report.files");
}

static int say_missing(const struct job *j, size_t n_old, struct error *e)
{
	char *patterns = patterns_text(j->config->report_globs);

	error_set(e, ERR_INVALID,
	    n_old > 0 ? "no report: what matches %s came with the checkout"
		      : "no report: nothing matches %s in the job's work folder",
	    patterns);
	free(patterns);
	return ERR_INVALID;
}

static bool may_go_on(struct job *j, int64_t n_bytes, struct error *e)
{
	struct error why = {0};

	if (stop_wait(&j->stop, 0))
		error_set(&why, ERR_CANCELLED, "cancelled while the report was read");
	else if (n_bytes > ALL_MAX_BYTES)
		error_set(&why, ERR_INVALID, "report: more than %d MiB in all files together",
		    (int)(ALL_MAX_BYTES >> 20));
	else
		return true;
	job_log_say(j->log, "%s", why.text);
	error_set(e, why.code, "%s", why.text);
	return false;
}

static size_t take_files(struct job *j, const struct found_files *now,
    const struct found_files *before, struct report_file *all, struct error *e)
{
	size_t n_old = 0;
	int64_t n_bytes = 0;

	for (size_t i = 0; i < now->n; i++) {
		struct error why = {0};

		if (found_files_has_same(before, &now->list[i])) {
			n_old++;
			continue;
		}
		n_bytes += now->list[i].st.st_size;
		if (!may_go_on(j, n_bytes, e))
			break;
		if (take_file(j, now->list[i].path, all, &why))
			error_set(e, ERR_INVALID, "report: %s", why.text);
		job_log_say(j->log, "report: %s%s%s", now->list[i].path, why.code ? ": " : "",
		    why.code ? why.text : "");
	}
	return n_old;
}

int report_pickup(
    struct job *j, const struct found_files *before, bool *ret_has_report, struct error *e)
{
	struct report_file all = {.n_tests = 0};
	struct found_files now;
	size_t n_old;
	int rc = 0;

	*ret_has_report = false;
	if (!j->config->report_globs || !*j->config->report_globs)
		return 0;
	report_find(j->work, j->config->report_globs, &now);
	n_old = take_files(j, &now, before, &all, e);
	if (now.is_cut)
		error_set(e, ERR_INVALID, "report: more than %d files", REPORT_FILES_MAX);
	if (now.n == n_old)
		rc = say_missing(j, n_old, e);
	if (all.n_tests > 0)
		rc = write_report(j, &all, e);
	*ret_has_report = all.n_tests > 0 && !rc;
	*ret_has_report = *ret_has_report && !j->stop.is_wanted;
	if (!rc && e->code)
		rc = e->code;
	found_files_release(&now);
	report_file_release(&all);
	return rc;
}
