/* Which thread goes first where there are more of them than cores. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/* The calling thread gives way to all that have not called this. Costs nothing while a core is
 * free. For work that somebody looks forward to, but no other work waits for. */
void thread_give_way(void);

#endif
