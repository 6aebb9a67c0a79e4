/* Drains the outbox of dispatches: claims rows that are due, sends them side by side, and
 * writes down how each ended.
 *
 * Rule guarded here: a vendor that is down, slow or lying hurts no other. GitHub and the
 * vendors' own servers are separate lanes; within a lane each target (a repository, a
 * server's host and port) has its own ceiling on the wire, and may hold the lane's room
 * only while nobody else wants it. Thread: loop. */
#ifndef DISPATCH_SENDER_H
#define DISPATCH_SENDER_H

struct dispatch;
struct sender;
struct attempt;

struct sender *sender_new(struct dispatch *d);
/* Something may be due. */
void sender_ring(struct sender *s);
/* What is on the wire gets two seconds to be answered, then it is cut off. */
void sender_close(struct sender *s);

/* ---- for attempt.c ---- */
struct payloads *sender_payloads(struct sender *s);
/* It is off the wire with a result; the sender writes that down and frees it. Never inside
 * attempt_begin(). */
void sender_attempt_over(struct sender *s, struct attempt *a);

#endif
