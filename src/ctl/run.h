/* From the command line to a command. */
#ifndef CTL_RUN_H
#define CTL_RUN_H

/* Returns the exit code. */
int ctl_run(int argc, char **argv);

#endif
