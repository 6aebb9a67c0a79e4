/* GitHub refuses a client_payload over 64 KB, so a body over CLIENT_PAYLOAD_MAX_BYTES is cut, level by level, until it
 * fits:
 *
 *   1. texts: every `body`, `message` and `description` to 256 bytes
 *   2. a push's lists of files (`added`, `removed`, `modified`)
 *   3. each `*_url` except html_url and clone_url
 *   4. a push's commits except the last one, and labels after the first 50
 *   5. everything except the fields of the list KEPT
 *
 *   6. an experiment's tests, half of them at a time: a test that is not sent does not run, so it is decided without the experiment
 *
 * The fields in CRCR's guide (action, number, pull_request.number, .head.sha, after, repository.full_name) survive each
 * level. docs/vendors.md promises that to vendors. */
#include "model/client_payload.h"

static const char PREFIX[] = CALLBACK_TOKEN_PREFIX;
enum { TOKEN_MAX_BYTES = 512, MAC_TEXT_BYTES = 43 };

static void append_mac(struct buf *text, const struct secret *key)
{
	uint8_t mac[SHA256_BYTES];

	hmac_sha256(secret_text(key), secret_bytes(key), text->data, text->len, mac);
	buf_append_char(text, '.');
	base64url_encode(mac, sizeof(mac), text);
}

char *callback_token_make(
    const struct secret *key, const char *dispatch_id, const char *accelerator, int64_t expires_wall_ms)
{
	struct buf text = BUF_INIT(TOKEN_MAX_BYTES);

	buf_appendf(&text, "%s%s.%s.%lld", PREFIX, dispatch_id, accelerator, (long long)(expires_wall_ms / 1000));
	append_mac(&text, key);
	return buf_detach(&text);
}

char *callback_token_dispatch(const char *token)
{
	if (!str_has_prefix(token, PREFIX))
		return NULL;
	token += sizeof(PREFIX) - 1;
	size_t n = strcspn(token, ".");
	return token[n] && n < TOKEN_MAX_BYTES ? xstrndup(token, n) : NULL;
}

int callback_token_check(
    const struct secret *key, const char *token, const char *dispatch_id, int64_t now_wall_ms, char **ret_accelerator)
{
	struct buf signed_part = BUF_INIT(TOKEN_MAX_BYTES);
	size_t n = strnlen(token, TOKEN_MAX_BYTES);
	int64_t expires_s;
	int rc = ERR_AUTH;

	*ret_accelerator = NULL;
	if (n >= TOKEN_MAX_BYTES || n <= MAC_TEXT_BYTES + 1 || !str_has_prefix(token, PREFIX) ||
	    token[n - MAC_TEXT_BYTES - 1] != '.')
		return ERR_AUTH;
	/* The signature first: no code reads an unsigned token. */
	buf_append(&signed_part, token, n - MAC_TEXT_BYTES - 1);
	append_mac(&signed_part, key);
	char *copy = xstrndup(token + sizeof(PREFIX) - 1, n - (sizeof(PREFIX) - 1) - MAC_TEXT_BYTES - 1);
	if (signed_part.len == n && equal_constant_time(signed_part.data, token, n)) {
		char *rest = copy, *id = strsep(&rest, "."), *accelerator = strsep(&rest, "."),
		     *expiry = strsep(&rest, ".");

		if (expiry && !rest && str_eq(id, dispatch_id) && !parse_int64(expiry, &expires_s))
			rc = now_wall_ms / 1000 > expires_s ? ERR_TIMEOUT : 0;
		if (!rc)
			*ret_accelerator = xstrdup(accelerator);
	}
	free(copy);
	buf_release(&signed_part);
	return rc;
}

enum {
	N_LEVELS = 6,
	TEXT_MAX_BYTES = 256,
	LABELS_MAX = 50,
	ACTION_MAX_BYTES = 1024,
	BLOCK_MAX_BYTES = 64 << 20, /* more than an experiment's tests take */
};

struct client_payload {
	char *raw; /* GitHub's body with sent_action; most go out like this, so they never become a tree */
	size_t raw_bytes;
	json_t *body; /* the same as a tree; NULL: nothing had to be cut yet */
	char *event_type, *delivery_id;
	int level;             /* how far `body` has been cut */
	char *texts[N_LEVELS]; /* {"event_type":…,"payload":… without the closing brace, by level */
};

/* The body with another action; "": as it is. Inserts a missing one. */
static int replace_action(struct json_slice body, struct json_slice old, const char *action, struct buf *ret)
{
	const char *rest = body.p;

	if (*action) {
		json_t *value = json_string(action);
		char *text = json_dumps(value, JSON_ENCODE_ANY);

		if (old.p) {
			buf_append(ret, body.p, (size_t)(old.p - body.p));
			buf_append_str(ret, text);
			rest = old.p + old.n;
		} else {
			bool is_empty = body.p[1 + strspn(body.p + 1, " \t\r\n")] == '}';

			buf_appendf(ret, "{\"action\":%s%s", text, is_empty ? "" : ",");
			rest = body.p + 1;
		}
		free(text);
		json_decref(value);
	}
	return buf_append(ret, rest, (size_t)(body.p + body.n - rest));
}

int client_payload_new(const char *event_type, const char *delivery_id, const char *sent_action, const char *body,
    size_t n, const struct json_slice *action, struct client_payload **ret, struct error *e)
{
	static const char *const keys[] = {"action", NULL};
	struct buf raw = BUF_INIT(n + ACTION_MAX_BYTES);
	struct json_slice whole = {body, n}, old;
	int rc = action ? 0 : json_slice_check(body, n, &whole, e);

	*ret = NULL;
	if (!rc && *whole.p != '{')
		rc = error_set(e, ERR_INVALID, "the payload is not a JSON object");
	if (action)
		old = *action;
	else if (!rc)
		rc = json_slice_members(whole, "", keys, &old, e);
	if (!rc)
		rc = replace_action(whole, old, sent_action, &raw);
	if (rc) {
		buf_release(&raw);
		return rc;
	}
	*ret = xcalloc(1, sizeof(**ret));
	**ret = (struct client_payload){
	    .raw_bytes = raw.len, .event_type = xstrdup(event_type), .delivery_id = xstrdup(delivery_id)};
	(*ret)->raw = buf_detach(&raw);
	return 0;
}

void client_payload_free(struct client_payload *p)
{
	if (!p)
		return;
	json_decref(p->body);
	FREE_ALL(p->raw, p->event_type, p->delivery_id);
	for (int i = 0; i < N_LEVELS; i++)
		free(p->texts[i]);
	free(p);
}

/* Calls visit() for each member of each object below v; visit() may change or delete it. */
static void for_each_member(json_t *v, void (*visit)(json_t *obj, const char *key, json_t *value))
{
	const char *key;
	json_t *child;
	size_t i;
	void *next;

	if (json_is_array(v)) {
		json_array_foreach(v, i, child) for_each_member(child, visit);
	} else if (json_is_object(v)) {
		json_object_foreach_safe(v, next, key, child)
		{
			for_each_member(child, visit);
			visit(v, key, child);
		}
	}
}

static void cut_text(json_t *obj, const char *key, json_t *value)
{
	const char *text = json_string_value(value);
	size_t n = json_string_length(value);

	if (!text || n <= TEXT_MAX_BYTES ||
	    !(str_eq(key, "body") || str_eq(key, "message") || str_eq(key, "description")))
		return;
	json_object_set_new(obj, key, json_stringn(text, utf8_cut(text, n, TEXT_MAX_BYTES)));
}

static void drop_file_list(json_t *obj, const char *key, json_t *value)
{
	if (json_is_array(value) && (str_eq(key, "added") || str_eq(key, "removed") || str_eq(key, "modified")))
		json_object_del(obj, key);
}

static void drop_url(json_t *obj, const char *key, json_t *value)
{
	(void)value;
	if (str_has_suffix(key, "_url") && !str_eq(key, "html_url") && !str_eq(key, "clone_url"))
		json_object_del(obj, key);
}

/* Level 5: the fields that a workflow needs. A dot descends. */
static const char *const KEPT[] = {"action", "number", "ref", "before", "after", "head_sha", "deleted", "forced",
    "compare", "label.name", "sender.login", "repository.full_name", "repository.name", "repository.html_url",
    "repository.clone_url", "repository.default_branch", "repository.owner.login", "head_commit.id",
    "head_commit.timestamp", "pull_request.number", "pull_request.html_url", "pull_request.state", "pull_request.draft",
    "pull_request.merged", "pull_request.author_association", "pull_request.user.login", "pull_request.head.sha",
    "pull_request.head.ref", "pull_request.head.repo.full_name", "pull_request.head.repo.clone_url",
    "pull_request.base.sha", "pull_request.base.ref", "pull_request.base.repo.full_name", NULL};

/* Copies the scalar at `path` (cut to size when it is text) from one object to another. */
static void copy_path(json_t *from, json_t *to, const char *path)
{
	char name[64];
	const char *dot;

	while ((dot = strchr(path, '.')) != NULL) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		from = json_object_get(from, name);
		if (!json_is_object(from))
			return;
		if (!json_object_get(to, name))
			json_object_set_new(to, name, json_object());
		to = json_object_get(to, name);
		path = dot + 1;
	}
	from = json_object_get(from, path);
	if (json_is_string(from))
		json_object_set_new(to, path,
		    json_stringn(json_string_value(from),
			utf8_cut(json_string_value(from), json_string_length(from), TEXT_MAX_BYTES)));
	else if (from && !json_is_object(from) && !json_is_array(from))
		json_object_set(to, path, from);
}

/* Cuts the tree down to this level. */
static void cut_body(struct client_payload *p, int level)
{
	while (p->level < level) {
		static void (*const cuts[])(json_t * obj, const char *key, json_t *value) = {
		    cut_text, drop_file_list, drop_url};
		int cut = p->level++;

		if (cut < 3) {
			for_each_member(p->body, cuts[cut]);
		} else if (cut == 3) {
			json_t *commits = json_object_get(p->body, "commits");
			json_t *labels = json_at(p->body, "pull_request", "labels", NULL);

			while (json_array_size(commits) > 1)
				json_array_remove(commits, 0);
			while (json_array_size(labels) > LABELS_MAX)
				json_array_remove(labels, LABELS_MAX);
		} else {
			json_t *small = json_object();

			for (const char *const *path = KEPT; *path; path++)
				copy_path(p->body, small, *path);
			json_decref(p->body);
			p->body = small;
		}
	}
}

/* The texts up to NULL, one after the other. They are long, and a format would copy them byte by byte. free() */
static char *join_texts(const char *const *list, size_t *ret_bytes)
{
	size_t n = 0;
	char *text, *to;

	for (const char *const *one = list; *one; one++)
		n += strlen(*one);
	text = to = xmalloc(n + 1);
	for (const char *const *one = list; *one; one++)
		to = stpcpy(to, *one);
	*ret_bytes = n;
	return text;
}

/* NULL: the body is not what json_parse() accepts. */
static const char *text_at(struct client_payload *p, int level)
{
	if (p->texts[level])
		return p->texts[level];
	if (level > 0 && !p->body && json_parse(p->raw, p->raw_bytes, &p->body, NULL))
		return NULL;
	cut_body(p, level);
	json_t *names = json_pack("{s:s, s:s}", "event_type", p->event_type, "delivery_id", p->delivery_id);
	char *head = json_text(names), *cut = level > 0 ? json_text(p->body) : NULL;

	size_t n;

	head[strlen(head) - 1] = '\0'; /* its closing brace */
	p->texts[level] = join_texts((const char *const[]){head, ",\"payload\":", cut ? cut : p->raw, NULL}, &n);
	json_decref(names);
	FREE_ALL(head, cut);
	return p->texts[level];
}

static void put_source(struct buf *out, const char *key, const struct source_head *h)
{
	json_out_open(out, key, '{');
	json_out_text(out, "git_url", h->git_url);
	json_out_text(out, "branch", h->branch);
	json_out_text(out, "sha", h->sha);
	json_out_close(out, '}');
}

/* The object "outpost" as text, free(). Without a tree, because each target of a change has its own. */
static char *outpost_text(const struct outpost_block *o, bool is_truncated, size_t n_tests)
{
	struct buf out = BUF_INIT(BLOCK_MAX_BYTES);

	json_out_open(&out, NULL, '{');
	json_out_int(&out, "schema", 1);
	json_out_text(&out, "dispatch_id", o->dispatch_id);
	json_out_text(&out, "action", o->action ? o->action : "");
	json_out_open(&out, "accelerators", '[');
	for (const char *const *name = o->accelerators; name && *name; name++)
		json_out_text(&out, NULL, *name);
	json_out_close(&out, ']');
	json_out_text(&out, "callback_url", o->callback_url);
	json_out_text(&out, "change_url", o->change_url);
	if (o->callback_token)
		json_out_text(&out, "callback_token", o->callback_token);
	if (o->n_sources)
		put_source(&out, "source", &o->sources[0]);
	if (o->n_sources && o->accelerators[1]) { /* several accelerators: also by name */
		json_out_open(&out, "sources", '{');
		for (size_t i = 0; i < o->n_sources; i++)
			put_source(&out, o->sources[i].accelerator, &o->sources[i]);
		json_out_close(&out, '}');
	}
	if (o->experiment)
		json_out_value(&out, "experiment", experiment_json(o->experiment, n_tests));
	if (is_truncated)
		json_out_raw(&out, "truncated", "true");
	json_out_close(&out, '}');
	return buf_detach(&out);
}

int client_payload_text(
    struct client_payload *p, const struct outpost_block *o, bool is_bounded, char **ret, size_t *ret_bytes)
{
	size_t n_tests = o->experiment ? strv_len((const char *const *)o->experiment->tests) : 1;
	int level = 0;

	*ret = NULL;
	while (n_tests > 0) {
		const char *head = text_at(p, level);
		if (!head)
			return ERR_INVALID;
		char *block = outpost_text(o, level > 0, n_tests);

		const char *const parts[] = {
		    o->before ? o->before : "", head, ",\"outpost\":", block, "}", o->after ? o->after : "", NULL};

		*ret = join_texts(parts, ret_bytes);
		free(block);
		if (!is_bounded || *ret_bytes - strlen(parts[0]) - strlen(parts[5]) <= CLIENT_PAYLOAD_MAX_BYTES)
			return 0;
		FREE_AND_NULL(*ret);
		if (level < N_LEVELS - 1)
			level++;
		else
			n_tests /= 2;
	}
	return ERR_TOO_BIG;
}
