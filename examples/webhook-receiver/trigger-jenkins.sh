#!/bin/sh
# receive.py's command for Jenkins: starts a parameterized job, which reports by itself (docs/vendors.md).
# JENKINS_JOB: https://jenkins.example.com/job/npu; JENKINS_USER: NAME:API_TOKEN.
# An experiment's list goes as base64, because names of tests are hostile. In the job's `sh` step, in single quotes:
#   [ -z "$OUTPOST_TESTS_BASE64" ] || { printf %s "$OUTPOST_TESTS_BASE64" | base64 -d >outpost-tests; export OUTPOST_TESTS=$PWD/outpost-tests; }
base64 -w 0 "${OUTPOST_TESTS:-/dev/null}" | curl -fsS --retry 5 -u "$JENKINS_USER" "$JENKINS_JOB/buildWithParameters" \
	--data-urlencode "OUTPOST_HEAD_SHA=$OUTPOST_HEAD_SHA" --data-urlencode "OUTPOST_PR=$OUTPOST_PR" \
	--data-urlencode "OUTPOST_CALLBACK_URL=$OUTPOST_CALLBACK_URL" --data-urlencode OUTPOST_TESTS_BASE64@-
