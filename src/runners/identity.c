#include "runners/identity.h"

#include "base/alloc.h"
#include "base/clock.h"

enum { IDS_TEXT_BYTES = 128 };

bool identity_is_checked(const struct oidc_caller *caller)
{
	return caller->issuer->n_mappings == 0;
}

static const char *ids_text(struct repository_ids ids, char out[IDS_TEXT_BYTES])
{
	char repository[32] = "missing", owner[32] = "missing";

	if (ids.repository_id)
		snprintf(repository, sizeof(repository), "%lld", (long long)ids.repository_id);
	if (ids.owner_id)
		snprintf(owner, sizeof(owner), "%lld", (long long)ids.owner_id);
	snprintf(
	    out, IDS_TEXT_BYTES, "repository_id %s, repository_owner_id %s", repository, owner);
	return out;
}

static void refuse(struct identity_check *c)
{
	const struct check_identity *op = &c->op;
	bool is_pin = op->outcome == IDENTITY_NOT_AS_PINNED;
	char token[IDS_TEXT_BYTES], recorded[IDS_TEXT_BYTES], pinned[IDS_TEXT_BYTES];
	int64_t n_skipped;

	c->runners->counters.n_identity_refused++;
	ids_text(op->token, token);
	ids_text(op->pinned, pinned);
	ids_text(op->recorded, recorded);
	if (is_pin)
		c->err = error_set(&c->why, ERR_DENIED,
		    "the token's ids (%s) are not those that the registry pins for %s", token,
		    op->repository);
	else
		c->err = error_set(&c->why, ERR_DENIED,
		    "the token's ids (%s) are not those on record for %s (%s): if the repository "
		    "was "
		    "moved or made again on purpose, the operator accepts it with `outpostctl "
		    "identities forget %s`",
		    token, op->repository, recorded, op->repository);
	if (log_limit_pass(&c->runners->identity_lines, loop_now_ms(c->runners->loop), &n_skipped))
		log_event(LOG_WARN, "identity_refused", LOG_S("repository", op->repository),
		    LOG_S("issuer", op->issuer), LOG_S("token", token),
		    LOG_S(is_pin ? "pinned" : "recorded", is_pin ? pinned : recorded),
		    LOG_I("more", n_skipped));
}

static void on_checked(struct store_op *op)
{
	struct identity_check *c = CONTAINER_OF(op, struct identity_check, op.op);

	c->err = op->err;
	if (!op->err && c->op.outcome == IDENTITY_RECORDED)
		log_event(LOG_INFO, "identity_recorded", LOG_S("repository", c->op.repository),
		    LOG_S("issuer", c->op.issuer),
		    LOG_I("repository_id", c->op.token.repository_id),
		    LOG_I("repository_owner_id", c->op.token.owner_id));
	else if (!op->err && c->op.outcome != IDENTITY_ACCEPTED)
		refuse(c);
	c->done(c);
}

void identity_check_init(struct identity_check *c, const struct oidc_issuer *issuer,
    const char *repository, struct repository_ids ids, const struct access *access)
{
	c->op = (struct check_identity){
	    .op.done = on_checked,
	    .issuer = issuer->issuer,
	    .repository = repository,
	    .token = ids,
	    .pinned = access->pinned,
	    .now_ms = clock_wall_ms(),
	};
}

int identity_check_start(struct identity_check *c)
{
	return store_check_identity(c->runners->store, &c->op);
}
