#!/bin/sh
set -eux
cc -O2 -Wall -o test addmm_relu.c test.c -lm
