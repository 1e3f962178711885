#!/bin/bash
# Inside the environment: a build tree is of one checkout. Ninja goes by the time of files, and would
# take what it has built from a newer checkout for up to date; so what is of another is built again,
# most of it from ccache.
own_build_tree() { # TREE
  local checkout
  checkout=$(stat -c %d:%i /tablestore)
  if [ -e "$1/build.ninja" ] && [ "$(cat "$1/checkout" 2>/dev/null)" != "$checkout" ]; then
    echo "[$1] is of another checkout: all is built again"
    cmake "$1"
    ninja -C "$1" -t clean
  fi
  mkdir -p "$1"
  echo "$checkout" >"$1/checkout"
}
