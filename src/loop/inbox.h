/* An inbox: other threads hand results to the loop.
 *
 * Thread: loop, except where a function says otherwise. Owns: the caller owns an inbox until inbox_close(). */
#ifndef LOOP_INBOX_H
#define LOOP_INBOX_H

#include <stdbool.h>

struct loop;

struct inbox_item {
	struct inbox_item *next;
	void (*on_loop)(
	    struct inbox_item *item); /* runs once, on the loop thread; it may free the item */
};
struct inbox;
struct inbox *inbox_new(struct loop *l);
/* Queues the item, which its owner keeps alive until on_loop. Items run in order.
 * Thread: any, until inbox_close(). Never blocks on work, never fails. */
void inbox_post(struct inbox *in, struct inbox_item *item);
/* The same for a chain linked by next (NULL-terminated), in that order, with one wake-up. */
void inbox_post_list(struct inbox *in, struct inbox_item *first, struct inbox_item *last);
/* Whether an open inbox keeps loop_run() and loop_run_until() running. A new one does. */
void inbox_keep_loop(struct inbox *in, bool is_kept);
/* Call it after the posting threads were joined. Runs the queued items (inside this call), then frees the
 * inbox. NULL is fine. */
void inbox_close(struct inbox *in);

#endif
