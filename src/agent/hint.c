/* The texts to look for are those of libcurl 7 and 8 with OpenSSL. */
#include "agent/hint.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* In this order: the first that fits counts. */
static const struct {
	const char *part, *hint;
} hints[] = {
    {"certificate has expired", "check this machine's clock"},
    {"certificate is not yet valid", "check this machine's clock"},
    {"alternative certificate subject name",
	"write the host in `server` as the certificate names it"},
    {"certificate",
	"where Outpost or a proxy has a CA of its own, name its certificate in ca_file"},
    {"wrong version number", "the server there does not speak TLS: check the port in `server`"},
    {"response 407", "the proxy wants a login: https_proxy=http://USER:PASSWORD@HOST:PORT"},
    {"CONNECT", "the proxy refused: check https_proxy and no_proxy"},
    {"resolve proxy", "check https_proxy"},
    {"resolve host", "check the host in `server` and this machine's DNS (getent hosts HOST); a "
		     "network that is reached through a proxy only needs https_proxy"},
    {"SSL", "the TLS handshake failed: check the port in `server` and what stands between "
	    "(openssl s_client -connect HOST:PORT)"},
    {"TLS", "the TLS handshake failed: check the port in `server` and what stands between "
	    "(openssl s_client -connect HOST:PORT)"},
    {"imed out", "no answer in time: a firewall may drop the connection, or the network needs "
		 "https_proxy"},
    {"imeout", "no answer in time: a firewall may drop the connection, or the network needs "
	       "https_proxy"},
    {"too slow", "the network is too slow, or a proxy holds the data back"},
    {"unreachable", "this machine has no route to the server: check its network, or set "
		    "https_proxy"},
    {"No route", "this machine has no route to the server: check its network, or set https_proxy"},
    {"onnect to", "nothing listens at that host and port: check `server`, the firewall, and "
		  "whether outpostd runs"},
    {"refused", "nothing listens at that host and port: check `server`, the firewall, and whether "
		"outpostd runs"},
    {"Empty reply", "the connection ended without an answer: check the port in `server`, and any "
		    "proxy or firewall between"},
    {"reset", "the connection was cut: check the port in `server`, and any proxy or firewall "
	      "between"},
    {"HTTP", "the answer is not HTTP: check the port in `server`"},
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

static const char *hint_of_answer(int status)
{
	switch (status) {
	case 401:
		return "token_file needs what `outpostctl runner add` printed for this machine; a "
		       "new "
		       "token is made the same way";
	case 403:
		return "`name` and `accelerator` must be those of `outpostctl runner add`";
	case 404:
		return "the server there is not Outpost or is older than this program, or `server` "
		       "has "
		       "a path too many";
	case 407:
		return "the proxy wants a login: https_proxy=http://USER:PASSWORD@HOST:PORT";
	case 429:
		return "too many requests from this address: wait for a minute";
	default:
		return status >= 500
			   ? "Outpost is starting, busy or stopping, or a proxy does not reach it"
			   : "check `server`: another service may answer there";
	}
}

const char *hint_text(int status, const char *why)
{
	if (status)
		return hint_of_answer(status);
	if (has_proxy() && (strstr(why, "onnect to") || strstr(why, "refused")))
		return "https_proxy is set: the proxy may be the one that does not answer";
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strstr(why, hints[i].part))
			return hints[i].hint;
	return "check `server`, this machine's network, and https_proxy";
}
