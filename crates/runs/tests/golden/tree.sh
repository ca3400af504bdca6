#!/bin/bash
# Makes the tree of the golden archives in ./tree, as root, where there are attributes and ACLs.
set -eu
rm -rf tree; mkdir tree; cd tree
mkdir -p folder/inner
printf 'hello\n' > folder/file
seq 1 4000 > folder/large
ln folder/file folder/hard-link
ln -s folder/file symbolic-link
long=$(printf 'long%.0s' $(seq 30))
mkdir -p "$long/$long"
printf 'deep\n' > "$long/$long/name"
: > empty
printf 'set-id\n' > set-id
chown 1234:2345 set-id; chmod 4751 set-id
truncate -s 1M sparse
printf 'in the middle' | dd of=sparse bs=1 seek=524288 conv=notrunc status=none
mkfifo fifo
printf 'attributed\n' > attributed
setfattr -n user.colour -v green attributed
setfattr -n user.empty attributed
printf 'access\n' > access
setfacl -m u:1234:rw-,g:2345:r-- access
setfacl -d -m u:1234:rwx folder/inner
printf 'old\n' > old
printf 'umlaut\n' > $'n\xc3\xa4me'
find . -depth -exec touch -h -d '2024-05-06 07:08:09.123456789 UTC' {} +
touch -d '1969-12-31 23:59:58 UTC' old
touch -d '2020-01-01 00:00:00 UTC' empty
