#!/usr/bin/env bash
# sysctl where the kernel is everybody's: what may not be read is left out, and nothing is written.
case ${1-} in --system | --load* | -p* | -w) exit 0 ;; esac
/usr/sbin/sysctl "$@" 2>/dev/null || true
