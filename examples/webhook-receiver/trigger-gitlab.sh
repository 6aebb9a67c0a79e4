#!/bin/sh
# receive.py's command for GitLab: starts a pipeline, which reports by itself (docs/vendors.md).
# GITLAB_PROJECT: https://gitlab.example.com/api/v4/projects/42; GITLAB_TRIGGER_TOKEN: the project's pipeline trigger token.
exec curl -fsS --retry 5 "$GITLAB_PROJECT/trigger/pipeline" -F "token=$GITLAB_TRIGGER_TOKEN" -F ref=main \
	-F "variables[OUTPOST_HEAD_SHA]=$OUTPOST_HEAD_SHA" -F "variables[OUTPOST_PR]=$OUTPOST_PR" \
	-F "variables[OUTPOST_CALLBACK_URL]=$OUTPOST_CALLBACK_URL"
