static int code_of_errno(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERR_DENIED;
	case ENOSPC:
	case EDQUOT:
		return ERR_FULL;
	default:
		return ERR_IO;
	}
}

static int errno_error(struct error *e, const char *path)
{
	int err = errno;

	return error_set(e, code_of_errno(err), "%s: %s", path, strerror(err));
}

int file_open(const char *path, int flags, int *ret_fd, struct error *e)
{
	*ret_fd = open(path, flags | O_CLOEXEC);
	return *ret_fd < 0 ? errno_error(e, path) : 0;
}

int file_read(const char *path, struct buf *out, struct error *e)
{
	int fd, rc = file_open(path, O_RDONLY, &fd, e);

	if (rc)
		return rc;
	for (;;) {
		char chunk[16384];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = errno_error(e, path);
		else if (n > 0 && buf_append(out, chunk, (size_t)n))
			rc = error_set(e, ERR_TOO_BIG, "%s: larger than %zu bytes", path, out->max);
		if (n <= 0 || rc)
			break;
	}
	close(fd);
	return rc;
}

int file_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct error *e)
{
	char *temporary = xasprintf("%s.new", path), *folder = path_folder(path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode), rc = 0;

	if (fd < 0 || fchmod(fd, mode))
		rc = errno_error(e, temporary);
	for (const char *from = p, *end = from + n; !rc && from < end;) {
		ssize_t done = write(fd, from, (size_t)(end - from));

		if (done >= 0)
			from += done;
		else if (errno != EINTR)
			rc = errno_error(e, temporary);
	}
	if (!rc && fsync(fd))
		rc = errno_error(e, temporary);
	if (fd >= 0)
		close(fd);
	if (!rc && rename(temporary, path))
		rc = errno_error(e, path);
	if (!rc) {
		/* The new name is on disk once the folder is. */
		fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fsync(fd))
			rc = errno_error(e, path);
		if (fd >= 0)
			close(fd);
	}
	if (rc)
		unlink(temporary);
	FREE_ALL(folder, temporary);
	return rc;
}

char *path_join(const char *dir, const char *name)
{
	return name[0] == '/' ? xstrdup(name) : xasprintf("%s/%s", dir, name);
}

char *path_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}
