#!/bin/bash
# Makes a golden chain in a folder for its format version: TAKEUP FOLDER.
set -eu
takeup=$1; out=$(realpath -m "$2"); rm -rf "$out"; mkdir -p "$out"
here=$(cd "$(dirname "$0")"; pwd); work=$(mktemp -d); cd "$work"
export TZ=UTC LC_ALL=C
day() {
    sleep 1.2
    "$takeup" backup tree -q --to "$out/sets/" --job golden "${@:2}"
    bash "$here/describe.sh" . > "$out/day$1.txt"
}
umask 022; mkdir -p tree/folder/inner tree/moved tree/becomes-a-file
echo one > tree/one; echo two > tree/two; seq 1 3000 > tree/folder/large
ln tree/one tree/folder/link; ln -s one tree/symbolic; mkfifo tree/fifo
echo deep > tree/folder/inner/deep; echo inside > tree/moved/inside
: > tree/becomes-a-file/gone
truncate -s 1M tree/sparse
echo middle | dd of=tree/sparse bs=1 seek=500000 conv=notrunc status=none
find tree -depth -exec touch -h -d '2024-05-06 07:08:09.123456789' {} +
day 1
rm tree/two; mv tree/moved tree/was-moved
rm -r tree/becomes-a-file; echo file > tree/becomes-a-file
day 2 --incremental --compress zstd
echo more >> tree/folder/large; rm tree/fifo; mkdir tree/fifo; chmod 600 tree/folder/inner/deep
ln tree/one tree/third-name
day 3 --incremental --compress gzip
rm -f "$out/sets/.takeup-lock"; rm -r "$work"
