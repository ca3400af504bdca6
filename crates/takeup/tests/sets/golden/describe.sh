#!/bin/bash
# Describes the tree of a golden chain: FOLDER.
set -eu
export TZ=UTC LC_ALL=C
cd "$1"
find tree -printf '%y|%m|%s|%TY-%Tm-%Td %TH:%TM:%TS|%n|%p|%l\n' |
    sed 's/^d|\([0-9]*\)|[0-9]*|\([^|]*\)|[0-9]*|/d|\1|-|\2|-|/' | sort
find tree -type f -exec md5sum {} + | sort -k 2
