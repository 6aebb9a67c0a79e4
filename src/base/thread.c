#include "base/thread.h"

#include <sys/resource.h>

enum { NICE = 10 }; /* a tenth of the weight of nice 0 */

void thread_give_way(void)
{
	/* On Linux it is the thread's own, not the process's: setpriority(2), "C library/kernel
	 * differences". Who may not is as before. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}
