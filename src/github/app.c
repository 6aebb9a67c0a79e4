/* The App itself: the JWT that proves who asks for tokens (RS256, at most ten minutes,
 * dated back by one for clocks that differ), and the name under which it writes. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/jwt.h"
#include "base/str.h"
#include "github/github_internal.h"

enum {
	JWT_BACKDATE_S = 60,
	JWT_LIFE_S = 540, /* with the backdating exactly GitHub's ten minutes */
	JWT_REUSE_MS = 480 * 1000,
};

const char *app_jwt(struct github *g)
{
	int64_t now = clock_wall_ms(), age = now - g->jwt_made_wall_ms;
	char issuer[24];
	json_t *claims;

	if (g->jwt && age >= 0 && age < JWT_REUSE_MS)
		return g->jwt;
	app_jwt_drop(g);
	snprintf(issuer, sizeof(issuer), "%lld", (long long)g->app_id);
	claims = json_object();
	json_set_int(claims, "iat", now / 1000 - JWT_BACKDATE_S);
	json_set_int(claims, "exp", now / 1000 + JWT_LIFE_S);
	json_set_str(claims, "iss", issuer);
	if (jwt_make_rs256(claims, g->private_key_pem, &g->jwt))
		g->jwt = NULL;
	json_decref(claims);
	g->jwt_made_wall_ms = now;
	return g->jwt;
}

void app_jwt_drop(struct github *g)
{
	free_secret(g->jwt);
	g->jwt = NULL;
}

void app_forget(struct github *g)
{
	app_jwt_drop(g);
	FREE_AND_NULL(g->slug);
	FREE_AND_NULL(g->bot_login);
}

/* The slug is compared with comments' authors and commands' addressee: it is kept only as
 * GitHub spells slugs. */
static bool is_slug(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	return n && n <= 100 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

bool app_read(struct request *r)
{
	struct github *g = r->g;
	const char *slug = json_get_str(r->call->answer, "slug");

	if (r->generation != g->generation)
		return false; /* that was another App: ask again */
	if (!is_slug(slug)) {
		r->call->result.err = error_set(
		    &r->call->result.why, ERR_PROTOCOL, "GET /app gave no slug that could be one");
		return true;
	}
	if (!str_eq(g->slug, slug)) {
		free(g->slug);
		free(g->bot_login);
		g->slug = xstrdup(slug);
		g->bot_login = xasprintf("%s[bot]", slug);
	}
	return true;
}

void github_app_get(struct github *g, struct github_call *call)
{
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_APP,
		.what = "the App's own entry",
		.method = "GET",
		.path = xstrdup("/app"),
		.answer = ANSWER_OBJECT,
		.on_answer = app_read,
	    });
}

const char *github_app_slug(const struct github *g)
{
	return g->slug;
}

const char *github_bot_login(const struct github *g)
{
	return g->bot_login;
}
