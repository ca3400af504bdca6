#!/bin/bash
# What is in a restored tree: FOLDER objects|attributes. Objects are what every tar restores.
set -eu
cd "$1"
case $2 in
objects)
    find . -mindepth 1 -printf '%P|%y|%m|%U|%G|%s|%T@|%l|%n\n' |
        sed 's/^\(.*|d|.*|.*|.*|\)[0-9]*\(|.*|\)[0-9]*$/\1-\2-/' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum ;;
attributes)
    find . -print0 | sort -z | xargs -0 getfattr --physical --dump --match='^user\.' --
    find . ! -type l -print0 | sort -z |
        xargs -0 getfacl --numeric --absolute-names --skip-base -- ;;
esac
