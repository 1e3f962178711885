#!/bin/sh
# In the place of cryptsetup, where the kernel has no device-mapper: header, keys and tokens are
# cryptsetup's own. To open it has to have the right key; what is behind the header is then a loop
# device with the name of a mapping, in plain text.
real=$(dirname "$0")/cryptsetup.real
mapper=/dev/mapper
quick="--pbkdf-force-iterations 4 --pbkdf-memory 32 --pbkdf-parallel 1"

for word; do
  case $word in
    luksFormat) exec "$real" $quick "$@" ;;
    luksOpen) action=open ;;
    luksClose) action=close ;;
  esac
  device=$last last=$word
done
case $action in
  open)
    "$real" --test-passphrase "$@" || exit
    offset=$("$real" luksDump "$device" | sed -n 's/^\toffset: \([0-9]*\) \[bytes\]$/\1/p')
    loop=$(losetup --find) && mknod "$mapper/$last" b 7 "${loop#/dev/loop}" || exit
    mount --bind /dev/null "$loop"   # nobody finds it by that name
    losetup --offset "$offset" "$mapper/$last" "$device" || { rm "$mapper/$last"; exit 1; }
    ;;
  close)
    loop=/dev/loop$(stat -c %Lr "$mapper/$last") && losetup --detach "$mapper/$last" &&
      rm "$mapper/$last" && umount "$loop"
    ;;
  *) exec "$real" "$@" ;;
esac
