#!/bin/sh
# receive.py's command for GitLab: starts a pipeline, which reports by itself (docs/vendors.md).
# GITLAB_PROJECT: https://gitlab.example.com/api/v4/projects/42; GITLAB_TRIGGER_TOKEN: the project's pipeline trigger token.
# An experiment's list goes as base64, because GitLab expands `$` in variables and names of tests are hostile. In the job:
#   [ -z "$OUTPOST_TESTS_BASE64" ] || { printf %s "$OUTPOST_TESTS_BASE64" | base64 -d >outpost-tests; export OUTPOST_TESTS=$PWD/outpost-tests; }
base64 -w 0 "${OUTPOST_TESTS:-/dev/null}" | curl -fsS --retry 5 "$GITLAB_PROJECT/trigger/pipeline" -F "token=$GITLAB_TRIGGER_TOKEN" -F ref=main \
	-F "variables[OUTPOST_HEAD_SHA]=$OUTPOST_HEAD_SHA" -F "variables[OUTPOST_PR]=$OUTPOST_PR" \
	-F "variables[OUTPOST_CALLBACK_URL]=$OUTPOST_CALLBACK_URL" -F 'variables[OUTPOST_TESTS_BASE64]=<-'
