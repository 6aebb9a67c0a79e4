#include "steps/steps.h"

#include "steps/child.h"
#include "steps/job.h"
#include "steps/sandbox.h"

enum { TRY_TIMEOUT_MS = 30 * 1000, OUTPUT_MAX_BYTES = 4096 };

/* Keeps what fits: the last line of a short output is enough. */
static void on_check_output(void *ctx, const char *p, size_t n) { buf_append(ctx, p, n); }

/* Runs the program; `line` gets the last line of its output, made safe to show. */
static int try_program(const char *const *argv, const char *folder, const struct sandbox *sandbox,
    struct child_end *ret, struct buf *line, struct error *e)
{
	struct buf output = BUF_INIT(OUTPUT_MAX_BYTES);
	const struct child_spec spec = {.argv = argv,
	    .folder = folder,
	    .sandbox = sandbox,
	    .timeout_ms = TRY_TIMEOUT_MS,
	    .on_output = on_check_output,
	    .ctx = &output};
	int rc = child_run_check(&spec, ret, e);

	while (output.len > 0 && output.data[output.len - 1] == '\n')
		output.data[--output.len] = '\0';
	const char *last = output.data ? strrchr(output.data, '\n') : NULL;
	escape_line(line, last ? last + 1 : buf_str(&output), 200);
	buf_release(&output);
	return rc;
}

/* True if the kernel setting has this value. */
static bool is_setting(const char *path, char value)
{
	struct buf text = BUF_INIT(64);
	bool has = !file_read(path, &text, NULL) && text.len > 0 && text.data[0] == value &&
		   (text.len == 1 || text.data[1] == '\n');

	buf_release(&text);
	return has;
}

/* How to let bubblewrap make namespaces on this machine. */
static const char *sandbox_advice(void)
{
	if (is_setting("/proc/sys/kernel/unprivileged_userns_clone", '0'))
		return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1";
	if (is_setting("/proc/sys/user/max_user_namespaces", '0'))
		return "allow user namespaces: sysctl user.max_user_namespaces=15000";
	if (is_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
		return "AppArmor keeps user namespaces from unknown programs: give bwrap a profile "
		       "with `userns`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0";
	if (!access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK))
		return "this is a container: it has to be started so that it may make namespaces, "
		       "or set `sandbox: none` and let the container be the sandbox";
	return "run `bwrap --ro-bind / / --unshare-all true` to see it fail, or set `sandbox: none`";
}

/* Every path that `allow` lists must exist, and none may show the folders of other jobs. */
static int check_allowed_paths(const struct runner_config *c, struct error *e)
{
	char *const *const lists[] = {c->allow_devices, c->allow_read, c->allow_write};
	static const char *const keys[] = {"allow.devices", "allow.read", "allow.write"};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		for (char *const *path = lists[i]; path && *path; path++) {
			if (access(*path, F_OK))
				return error_set(e, ERR_NOT_FOUND, "%s: %s: %s", keys[i], *path, strerror(errno));
			char *real = realpath(*path, NULL), *work_dir = realpath(c->work_dir, NULL);
			size_t n = work_dir ? strlen(work_dir) : 0;
			bool shows_jobs = n && real && !strncmp(real, work_dir, n) &&
					  (!real[n] || !strncmp(real + n, "/jobs/", 6) || !strcmp(real + n, "/jobs"));
			free(real);
			free(work_dir);
			if (shows_jobs)
				return error_set(e, ERR_INVALID,
				    "%s: %s would show a step the files of other jobs: name a folder beside work_dir",
				    keys[i], *path);
		}
	return 0;
}

static int check_sandbox(const struct runner_config *c, struct error *e)
{
	char *folder = xasprintf("%s/.try-XXXXXX", c->work_dir);
	const struct sandbox_places places = {.work = folder, .temporary = folder};
	struct sandbox sandbox;
	struct buf line = BUF_INIT(1024);
	struct child_end end;
	struct error why = {0}, ignored = {0};
	int rc = check_allowed_paths(c, e);

	if (!rc && !mkdtemp(folder))
		rc = error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
	if (rc) {
		free(folder);
		return rc;
	}
	rc = sandbox_open(c, &places, "exit 0", &sandbox, &why);
	if (!rc)
		rc = try_program((const char *const *)sandbox.argv, folder, &sandbox, &end, &line, &why);
	if (rc == ERR_NOT_FOUND)
		rc = error_set(e, ERR_NOT_FOUND,
		    "sandbox: bubblewrap is not installed: apt-get install bubblewrap (Debian, Ubuntu), dnf install "
		    "bubblewrap (Fedora, RHEL, openEuler), or set `sandbox: none`");
	else if (rc || end.exit_code != 0)
		rc = error_set(e, ERR_DENIED, "sandbox: bubblewrap does not work here: %s; %s",
		    rc ? why.text : buf_str(&line), sandbox_advice());
	buf_release(&line);
	sandbox_close(&sandbox);
	if (job_folder_remove(folder, &ignored) && !rc)
		rc = error_set(e, ERR_IO, "%s", ignored.text);
	free(folder);
	return rc;
}

int steps_check(const struct runner_config *c, struct error *e)
{
	const char *git[] = {"git", "--version", NULL};
	struct buf line = BUF_INIT(1024);
	struct child_end end;
	char *probe = xasprintf("%s/.probe", c->work_dir);
	struct error why = {0};
	int rc = 0;

	if (mkdir(c->work_dir, 0700) && errno != EEXIST)
		error_set(&why, ERR_IO, "%s: %s", c->work_dir, strerror(errno));
	if (why.code || file_write_atomic(probe, "", 0, 0600, &why))
		rc = error_set(e, ERR_DENIED,
		    "work_dir: %s: make the folder and give it to the user that runs outpost-runner", why.text);
	unlink(probe);
	free(probe);
	why = (struct error){0};

	if (!rc && c->has_checkout && (try_program(git, c->work_dir, NULL, &end, &line, &why) || end.exit_code != 0))
		rc = error_set(e, ERR_NOT_FOUND,
		    "checkout needs the git program (%s): apt-get install git, or dnf install git",
		    why.code ? why.text : buf_str(&line));
	buf_release(&line);
	if (!rc && c->sandbox == SANDBOX_BUBBLEWRAP)
		rc = check_sandbox(c, e);
	return rc;
}

int steps_run(const struct runner_config *c, const char *folder, struct error *e)
{
	struct steps_pace pace = {.kill_after_ms = STEPS_KILL_AFTER_MS, .retry_ms = 2000};

	return job_run(c, folder, &pace, e);
}
