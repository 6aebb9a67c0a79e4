/* One claimed row on its way: comment.c reads and decides, learn.c asks GitHub for the App's
 * name, comment_write.c writes. Private to publish/. */
#ifndef PUBLISH_WRITING_H
#define PUBLISH_WRITING_H

#include "publish/publish_internal.h"

struct writing {
	struct claimed claimed;
	struct get_change change;
	struct get_comment known;
	struct github_call call;
	struct github_comment_search search;
	struct put_comment put;
	struct comment text;
	int64_t comment_id; /* 0: not known */
	int64_t change_id;  /* the head that it tells of */
	bool has_red;
	bool has_searched; /* GitHub was asked whether ours is there */
};

/* Asks for the App's name where that is not known, then writing_decide(), whatever came of it. */
void writing_learn(struct writing *w);
void writing_decide(struct writing *w);
/* Writes w->text to GitHub and records it. */
void writing_write(struct writing *w);

#endif
