/* The words are those of libcurl 7 and 8 with OpenSSL; others get no hint, which is no harm. */
#include "agent/hint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const struct {
	const char *part, *hint;
} hints[] = {
    {"certificate has expired", "look whether this machine's clock is right"},
    {"certificate is not yet valid", "look whether this machine's clock is right"},
    {"alternative certificate subject name",
	"write the host in `server` as the certificate names it"},
    {"certificate",
	"where Outpost or a proxy has a CA of its own, name its certificate in ca_file"},
    {"wrong version number", "what answers there speaks no TLS: look at the port in `server`"},
    {"response 407", "the proxy wants a login: https_proxy=http://USER:PASSWORD@HOST:PORT"},
    {"CONNECT", "it is the proxy that refused: look at https_proxy and no_proxy"},
    {"resolve proxy", "look at https_proxy"},
};

static bool has_proxy(void)
{
	static const char *const names[] = {
	    "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};

	for (const char *const *name = names; *name; name++) {
		const char *value = getenv(*name);

		if (value && *value)
			return true;
	}
	return false;
}

const char *hint_text(int status, const char *why)
{
	if (status == 404)
		return "what answers there is no Outpost, or `server` has a path too many";
	if (status)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strstr(why, hints[i].part))
			return hints[i].hint;
	if (strstr(why, "connect") && has_proxy())
		return "https_proxy is set: it may be the proxy that is not there";
	return NULL;
}
