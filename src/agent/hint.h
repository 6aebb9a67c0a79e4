/* What a person looks at first when the server cannot be reached: the words of libcurl and OpenSSL
 * say what happened, and not which setting it is about. */
#ifndef AGENT_HINT_H
#define AGENT_HINT_H

/* `status`: the answer's, 0: there was none. `why`: what is known of it. NULL: nothing to add. */
const char *hint_text(int status, const char *why);

#endif
