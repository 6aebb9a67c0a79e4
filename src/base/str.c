bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_has_prefix(const char *s, const char *prefix) { return strncmp(s, prefix, strlen(prefix)) == 0; }

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

int parse_int64(const char *s, int64_t *ret)
{
	const char *digits = *s == '-' ? s + 1 : s;
	char *end;

	if (*digits < '0' || *digits > '9')
		return ERR_INVALID;
	errno = 0;
	intmax_t value = strtoimax(s, &end, 10);
	if (errno || *end != '\0' || value < INT64_MIN || value > INT64_MAX)
		return ERR_INVALID;
	*ret = value;
	return 0;
}

size_t utf8_sequence_bytes(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return n >= 2 && (s[1] & 0xc0) == 0x80 ? 2 : 0;
	if (s[0] >= 0xe0 && s[0] <= 0xef) {
		unsigned char lo = s[0] == 0xe0 ? 0xa0 : 0x80, hi = s[0] == 0xed ? 0x9f : 0xbf;

		return n >= 3 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 ? 3 : 0;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		unsigned char lo = s[0] == 0xf0 ? 0x90 : 0x80, hi = s[0] == 0xf4 ? 0x8f : 0xbf;

		return n >= 4 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 && (s[3] & 0xc0) == 0x80 ? 4 : 0;
	}
	return 0;
}

size_t utf8_decode(const char *s, uint32_t *ret)
{
	size_t n = utf8_sequence_bytes(s, strnlen(s, 4));

	*ret = n == 0 ? 0xFFFD : n == 1 ? (unsigned char)*s : (unsigned char)*s & (0xFFu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | ((unsigned char)s[i] & 0x3F);
	return n ? n : 1;
}

bool utf8_is_valid(const char *s, size_t n)
{
	const uint64_t high_bits = UINT64_C(0x8080808080808080);
	const char *end = s + n;
	uint64_t eight;

	while (s < end) {
		/* Most texts are ASCII. */
		if (end - s >= 8 && (memcpy(&eight, s, 8), (eight & high_bits) == 0)) {
			s += 8;
			continue;
		}
		size_t len = utf8_sequence_bytes(s, (size_t)(end - s));

		if (!len)
			return false;
		s += len;
	}
	return true;
}

char *utf8_repair(const char *s)
{
	char *ret = xmalloc(3 * strlen(s) + 1), *to = ret;

	while (*s) {
		size_t n = utf8_sequence_bytes(s, strnlen(s, 4));

		to = n ? mempcpy(to, s, n) : stpcpy(to, "\xEF\xBF\xBD");
		s += n ? n : 1;
	}
	*to = '\0';
	return ret;
}

size_t utf8_cut(const char *s, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max > 0 && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

enum { EDIT_MAX = 64 }; /* longer words are not compared */

static size_t edit_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), row[EDIT_MAX];

	if (n >= EDIT_MAX || m >= EDIT_MAX)
		return EDIT_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[m];
}

/* The length of the folder with which both begin, with its '/'. */
static size_t common_folder(const char *a, const char *b)
{
	size_t n = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			n = i + 1;
	return n;
}

/* is_near: at most half of the word is wrong, not counting a folder that both names begin with. */
static const char *list_nearest(const char *s, const char *const *list, bool is_near)
{
	const char *found = NULL;
	size_t best = EDIT_MAX;

	for (; *list; list++) {
		size_t d = edit_distance(s, *list);

		if (d < best && (!is_near || d <= strlen(s + common_folder(s, *list)) / 2)) {
			best = d;
			found = *list;
		}
	}
	return found;
}

const char *str_nearest(const char *s, const char *const *list) { return list_nearest(s, list, true); }

const char *str_least_far(const char *s, const char *const *list) { return list_nearest(s, list, false); }

static bool is_name_part(const char *s, size_t n)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	return n > 0 && n <= 100 && strspn(s, chars) >= n && !(n <= 2 && strspn(s, ".") >= n);
}

bool is_repository_name(const char *s)
{
	const char *slash = strchr(s, '/');

	return slash && is_name_part(s, (size_t)(slash - s)) && is_name_part(slash + 1, strlen(slash + 1));
}

bool is_sha1(const char *s) { return strspn(s, "0123456789abcdef") == 40 && s[40] == '\0'; }

/* ---- arrays ---- */

void strv_free(char **v)
{
	for (char **p = v; p && *p; p++)
		free(*p);
	free(v);
}

size_t strv_len(const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

bool strv_contains(const char *const *v, const char *s)
{
	for (; v && *v; v++)
		if (strcmp(*v, s) == 0)
			return true;
	return false;
}

bool strv_contains_nocase(const char *const *v, const char *s)
{
	for (; v && *v; v++)
		if (strcasecmp(*v, s) == 0)
			return true;
	return false;
}

void strv_add(char ***v, const char *s)
{
	size_t n = strv_len((const char *const *)*v);

	*v = xrealloc(*v, (n + 2) * sizeof(**v));
	(*v)[n] = xstrdup(s);
	(*v)[n + 1] = NULL;
}

char **strv_copy(const char *const *v)
{
	size_t n = strv_len(v);
	char **copy = xcalloc(n + 1, sizeof(*copy));

	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(v[i]);
	return copy;
}
