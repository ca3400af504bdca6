# What there is to do with a checkout; `make help` lists it. Each target is a script of its own
# under scripts/, so that a step can be read, and run, without make.

SHELL = /bin/bash
PREFIX ?= /usr/local
DESTDIR ?=
SOURCE ?= /usr/share
# Where cargo puts what it builds; cargo reads the same variable.
CARGO_TARGET_DIR ?= target

program = $(CARGO_TARGET_DIR)/release/takeup

.PHONY: help build mpi package site release demo test test-long install clean-demo

help:
	@echo 'make build       the release binary, $(program)'
	@echo 'make mpi         $(CARGO_TARGET_DIR)/release/takeup-mpi, for many hosts; needs libopenmpi-dev and libclang-dev'
	@echo 'make package     a static binary, .tar.gz, .deb and .rpm of it, in $(CARGO_TARGET_DIR)/package'
	@echo 'make site        the documents as a site, in $(CARGO_TARGET_DIR)/site/html'
	@echo 'make release     tests, packages, site and tag of VERSION=...; nothing is sent'
	@echo 'make demo        back up $(SOURCE), verify it, restore it, compare (SOURCE=DIR, KEEP=1)'
	@echo 'make test        everything that CI runs; installs missing Debian packages when root'
	@echo 'make test-long   the long campaigns: kill -9, fuzzing, a million files, all peers, the replay, Ceph and ZFS'
	@echo 'make install     binary, manual pages, completions below PREFIX=$(PREFIX)'
	@echo 'make clean-demo  remove what KEEP=1 left behind'

build:
	@source scripts/toolchain && use_pinned_toolchain && cargo build --locked --release --workspace --bin takeup

# It can be built only where MPI is installed; takeup itself never links it.
mpi:
	@source scripts/toolchain && use_pinned_toolchain && cargo build --locked --release --package takeup-mpi --features mpi

package:
	@scripts/package

site:
	@scripts/site

release:
	@scripts/release '$(VERSION)'

demo:
	@SOURCE='$(SOURCE)' scripts/demo

test:
	@scripts/test

test-long:
	@scripts/test-long

# Building is not done here: `make build` first, so that nothing is compiled as root.
install:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install '$(program)'

clean-demo:
	rm -rf '$(CARGO_TARGET_DIR)/demo'
