#include "config/config.h"
#include "ctl/command.h"
#include "http/server.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

int cmd_check(const struct ctl *ctl, int argc, char **argv)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct config *config = NULL;
	struct error why = {0};
	int rc;

	if (argc > 0)
		return command_wrong("check", "what is '%s'?", argv[0]);
	rc = config_load(ctl->config_path, &config, &messages);
	if (!rc && config->tls_certificate_pem) {
		rc = http_tls_check(config->tls_certificate_pem, config->tls_private_key_pem, &why);
		if (rc)
			buf_appendf(
			    &messages, "%s:1: tls: %s\n", config->tls_certificate_file, why.text);
	}
	fputs(buf_str(&messages), stdout);
	if (!rc)
		fprintf(stderr, "%s: ok, %zu accelerator%s%s\n", ctl->config_path,
		    config->n_accelerators, config->n_accelerators == 1 ? "" : "s",
		    config->accelerators_git_url ? ", without those of accelerators.git: outpostd "
						   "--check reads what it fetched last"
						 : "");
	config_unref(config);
	buf_release(&messages);
	return rc ? EXIT_FAILED : EXIT_DONE;
}
