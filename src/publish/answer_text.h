/* The text of a reply to commands (store/commands.h: the facts; docs/commands.md: the words). Pure: any
 * thread. The caller owns the texts.
 *
 * Never here: a word of the commenter outside of a code span, the marker of the results comment, or
 * a mention. Private to publish/. */
#ifndef PUBLISH_ANSWER_TEXT_H
#define PUBLISH_ANSWER_TEXT_H

#include <jansson.h>

#include "text/comment.h"

/* `commands` of a REPLY row holds `status`: answer_text() needs the change. */
bool answer_needs_view(const json_t *facts);
/* "<!-- outpost:reply:ID -->": by it, and by its author, a reply that may have arrived is found
 * again. free(). */
char *answer_marker(const json_t *facts);
/* Markdown, marker first; free(). v NULL: nothing is known of the change. */
char *answer_text(
    const json_t *facts, const struct change_view *v, const struct comment_options *o);

#endif
