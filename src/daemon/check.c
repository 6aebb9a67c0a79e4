#include "daemon/check.h"

#include "http/server.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

int daemon_load_config(const char *path, struct config **ret, struct buf *messages)
{
	struct error why = {0};
	int rc = config_load(path, ret, messages);

	if (rc || !(*ret)->tls_certificate_pem)
		return rc;
	rc = http_tls_check((*ret)->tls_certificate_pem, (*ret)->tls_private_key_pem, &why);
	if (rc) {
		buf_appendf(messages, "%s:1: tls: %s\n", (*ret)->tls_certificate_file, why.text);
		config_unref(*ret);
		*ret = NULL;
	}
	return rc;
}

int daemon_check(const char *config_path)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct config *config = NULL;
	int rc = daemon_load_config(config_path, &config, &messages);

	fputs(buf_str(&messages), stdout);
	if (!rc)
		fprintf(stderr, "%s: ok, %zu accelerator%s\n", config_path, config->n_accelerators,
		    config->n_accelerators == 1 ? "" : "s");
	config_unref(config);
	buf_release(&messages);
	return rc ? 1 : 0;
}
