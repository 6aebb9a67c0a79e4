/* Sends the outbox rows of dispatches: requests to GitHub and to vendors' own CI. The engine in src/outbox does the work;
 * here are the kinds of effect and their lanes. GitHub and the vendors' own servers are separate lanes.
 *
 * Thread: loop. Owns: struct dispatch, until sender_close(). */
#ifndef DISPATCH_SENDER_H
#define DISPATCH_SENDER_H

struct dispatch;
struct payloads;
struct sender;

struct sender *sender_new(struct dispatch *d);
/* There is a new configuration. */
void sender_configure(struct sender *s);
/* Something may be due. */
void sender_ring(struct sender *s);
int sender_n_claimed(const struct sender *s);
/* Requests on the wire get two seconds to be answered, then they are cut off. Frees itself then, and calls
 * dispatch_part_closed(). */
void sender_close(struct sender *s);
/* For attempts. */
struct payloads *sender_payloads(struct sender *s);

#endif
