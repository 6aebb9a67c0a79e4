// Examples of files, which the pages show. outpostd --check accepts each: tests/integration/page-examples.test.mjs.
export const FIRST_FILE = `name: my-accelerator
title: My Accelerator
level: L2
runners:
  - name: ci
    github: {repository: my-org/pytorch-tests}
triggers:
  pull_request: {}
  push: {branches: [main]}`;

export const SCHEDULE = `triggers:
  schedule: ["0 3 * * *"]`;

export const PERIODIC = `${SCHEDULE}
source:
  git_url: https://github.com/my-org/my-extension.git
  branch: main`;
