#!/bin/bash
# Inside the environment: ninja_by_content TREE TARGETS... is ninja for checkouts of any age. Ninja
# goes by the time of files, and would take what it built from a newer checkout for up to date.
ninja_by_content() {
  local tree=$1 built=$1/sources.built now=$1/sources.now status=0
  shift
  (cd /tablestore && find CMakeLists.txt src -type f -print0 | sort -z |
    xargs -0 sha256sum) >"$now"
  if ! are_changes_newer "$now" "$built"; then
    echo "sources as old as what was built of others: all is built again (most is in ccache)"
    ninja -C "$tree" -t clean
  fi
  rm -f "$built"   # who is killed from here on leaves nobody knows what
  ninja -C "$tree" "$@" || status=$?
  touch "$now"
  mv "$now" "$built"
  return "$status"
}

# Whether each file that has changed since $2 was written is newer than it, as ninja needs it.
are_changes_newer() { # NOW BUILT
  local sum path
  [ -e "$2" ] || return 1
  while read -r sum path; do
    [ "/tablestore/$path" -nt "$2" ] || return 1
  done < <(comm -23 <(sort "$1") <(sort "$2"))
}
