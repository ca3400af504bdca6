#!/bin/bash
# Makes the golden archives of a format version, beside the tree of tree.sh: TAKEUP FOLDER.
set -eu
takeup=$1; out=$2; mkdir -p "$out"; rm -f "$out"/*
"$takeup" backup tree -q --to "$out/none.tar"
"$takeup" backup tree -q --to "$out/zstd.tar.zst" --compress zstd
"$takeup" backup tree -q --to "$out/gzip.tar.gz" --compress gzip
mkdir -p drive
"$takeup" sim tape drive --time none --medium "$out/tape.medium" 2>/dev/null & 
for _ in $(seq 100); do [ -e drive/nst0 ] && break; sleep 0.1; done
"$takeup" backup tree -q --to drive/nst0 -b 4k --segment-size 16k
umount drive; wait; rmdir drive
