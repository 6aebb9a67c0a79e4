/* What to check first when the server cannot be reached or refuses: the texts of libcurl and
 * OpenSSL say what happened, but not which setting it is about. */
#ifndef AGENT_HINT_H
#define AGENT_HINT_H

/* `status`: the answer's, not a success; 0: there was no answer. `why`: what is known of it.
 * Never NULL or empty. */
const char *hint_text(int status, const char *why);

#endif
