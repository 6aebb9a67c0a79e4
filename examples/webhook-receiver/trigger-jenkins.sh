#!/bin/sh
# receive.py's command for Jenkins: starts a parameterized job, which reports by itself (docs/vendors.md).
# JENKINS_JOB: https://jenkins.example.com/job/npu; JENKINS_USER: NAME:API_TOKEN.
exec curl -fsS --retry 5 -u "$JENKINS_USER" "$JENKINS_JOB/buildWithParameters" \
	--data-urlencode "OUTPOST_HEAD_SHA=$OUTPOST_HEAD_SHA" --data-urlencode "OUTPOST_PR=$OUTPOST_PR" \
	--data-urlencode "OUTPOST_CALLBACK_URL=$OUTPOST_CALLBACK_URL"
