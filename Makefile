# What a person does with this repository: make demo, make test. The rest is for those who change it.
# Every target installs what it needs (Debian packages when root) and says what it installs.

CARGO ?= cargo
TARGET := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
MUSL := x86_64-unknown-linux-musl
# Seconds for each fuzz target.
SECONDS ?= 60

# What differs from one checkout to the next and would get into the binary: folders, in Rust and in C.
FROM_TO = $(CURDIR)=/neph $(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo $(abspath $(TARGET))=/target
REPRODUCIBLE = RUSTFLAGS="$(strip $(RUSTFLAGS) $(FROM_TO:%=--remap-path-prefix=%))" \
	CFLAGS="$(strip $(CFLAGS) $(FROM_TO:%=-ffile-prefix-map=%))"

# Flannel's daemon, built from its Go module: two minutes of two cores the first time.
FLANNEL = github.com/flannel-io/flannel@v0.26.7

.PHONY: flannel test-flannel help demo gallery test test-fast test-system test-delivery check deny release static image deb manifests sbom reproducible advisories fuzz truth docs api man cargo cargo-deb lab-packages test-packages

help:
	@echo "make demo    build neph, measure over an emulated network, write a report (about 90 s after the build)"
	@echo "make gallery every published finding in its emulated network, with its control (about an hour; root)"
	@echo "make test    every test; as root also those that make network namespaces"
	@echo "make test-fast  those that need no root, several at a time (some three minutes)"
	@echo "make test-system  the others: sockets, network namespaces, other programs; one at a time"
	@echo "make test-delivery  package, image and units alone, after building the static binary that they need"
	@echo "make flannel Flannel's daemon, for overlays of its kind: $(TARGET)/flannel/flanneld; make test-flannel tries it"
	@echo "make check   formatting, lints, and the language and links of pages, comments and output"
	@echo "make deny    licences, sources and advisories of dependencies"
	@echo "make release the release binary, the same bytes in any folder, with its bill of materials (CycloneDX)"
	@echo "make reproducible  builds it twice in two clean clones and compares"
	@echo "make sbom    the bill of materials alone: $(TARGET)/neph.cdx.json"
	@echo "make advisories  refreshes supply/advisories.tsv, which make test checks dependencies against"
	@echo "make static  one static binary for containers and guests: $(TARGET)/$(MUSL)/release/neph"
	@echo "make image   a container image of it, without an engine: $(TARGET)/image, OCI layout and docker-archive"
	@echo "make deb     the Debian package: $(TARGET)/debian"
	@echo "make manifests  holds deploy/kubernetes to the schemas of Kubernetes (needs Go)"
	@echo "make fuzz    every parser of outside bytes, SECONDS=$(SECONDS) each; with EXECUTIONS=N until each"
	@echo "             has run so often, going on where it was ended"
	@echo "make truth   how often reports are wrong, in worlds whose truth is known (some minutes)"
	@echo "make docs    the documentation as a book: $(TARGET)/book/html/index.html"
	@echo "make api     the documentation of the code"
	@echo "make man     man pages and completions into $(TARGET)/man and $(TARGET)/completions"

cargo:
	@command -v $(CARGO) >/dev/null || { \
		echo "cargo is missing: install Rust 1.95 or newer, best with rustup (minimal profile),"; \
		echo "then open a new shell and run make again."; exit 1; }
	@command -v cc >/dev/null || tools/need cc:gcc ld:binutils
	@test -e /usr/include/stdlib.h || tools/need no-such-program:libc6-dev

lab-packages:
	@tools/need ip:iproute2

test-packages: lab-packages
	@tools/need python3:python3 iperf3:iperf3 nft:nftables openssl:openssl bird:bird2 haproxy:haproxy \
		nginx:nginx-light dockerd:docker.io busybox:busybox-static mtr:mtr-tiny scamper:scamper \
		ping:iputils-ping tshark:tshark tcpdump:tcpdump zstd:zstd dnsmasq:dnsmasq-base mosquitto:mosquitto systemd-analyze:systemd prometheus:prometheus linux.uml:user-mode-linux qemu-system-x86_64:qemu-system-x86
	@gst-inspect-1.0 x264enc >/dev/null 2>&1 && gst-inspect-1.0 rtspsrc >/dev/null 2>&1 \
		&& /usr/bin/python3 -c 'import gi; gi.require_version("GstRtspServer", "1.0")' >/dev/null 2>&1 \
		|| tools/need no-such-program:gstreamer1.0-tools no-such-program:gstreamer1.0-plugins-good \
			no-such-program:gstreamer1.0-plugins-ugly no-such-program:python3-gi \
			no-such-program:gir1.2-gst-rtsp-server-1.0
	@ls /boot/vmlinuz-* >/dev/null 2>&1 || tools/need no-such-program:linux-image-cloud-amd64
	@python3 -m ensurepip --version >/dev/null 2>&1 || tools/need no-such-program:python3-venv

demo: cargo lab-packages
	$(CARGO) build --release -p neph
	$(TARGET)/release/neph demo

# Goes on where it was stopped. Not part of make test: it measures for an hour.
gallery: cargo lab-packages
	$(CARGO) build --release -p neph
	$(TARGET)/release/neph gallery --all

# Those that need nothing but this folder, several at a time; then those that use sockets, namespaces and
# other programs, one at a time: many of them measure, and two that measure disturb each other.
FAST = --lib --test architecture --test docs --test paths --test plans --test prose --test reference --test report --test schemas \
	--test supply
SYSTEM = --test cli --test delivery --test diagnosis --test gate --test kill --test lab --test probe --test tshark
TEST = $(CARGO) test --workspace --no-fail-fast
WITH_READERS = NEPH_PYTHON=$$(tools/readers $(TARGET)/readers); \
	test -z "$$NEPH_PYTHON" || export NEPH_PYTHON;

test: cargo test-packages
	@$(WITH_READERS) tools/tests "$(TEST) $(FAST)" "$(TEST) --doc" "RUST_TEST_THREADS=1 $(TEST) $(SYSTEM)"

test-fast: cargo
	@$(WITH_READERS) tools/tests "$(TEST) $(FAST)"

test-system: cargo test-packages
	@$(WITH_READERS) tools/tests "RUST_TEST_THREADS=1 $(TEST) $(SYSTEM)"

# Package and image need the static binary and cargo-deb, which make test does not build.
test-delivery: static test-packages cargo-deb
	@tools/need podman:podman
	RUST_TEST_THREADS=1 $(CARGO) test -p neph --test delivery --test packaging

flannel:
	@test -x $(TARGET)/flannel/flanneld || { command -v go >/dev/null \
		|| { echo "flanneld is built with Go, which is missing: install it from https://go.dev/dl"; exit 1; }; \
		set -x; mkdir -p $(TARGET)/flannel && cd $(TARGET)/flannel && \
		GOBIN=$$PWD GOFLAGS=-mod=mod go install -ldflags '-s -w' $(FLANNEL) && mv flannel flanneld; }

# Overlays by Flannel itself: fetches Go modules, which make test does not.
test-flannel: flannel test-packages
	@tools/need etcd:etcd-server etcdctl:etcd-client
	PATH="$(abspath $(TARGET))/flannel:$$PATH" RUST_TEST_THREADS=1 $(CARGO) test -p neph-lab --test lab flannel -- --ignored

cargo-deb: cargo
	@command -v cargo-deb >/dev/null || $(CARGO) install cargo-deb --locked

# The fuzz targets are outside of the workspace: without the check they fall behind it unseen.
ADVISORIES := https://github.com/rustsec/advisory-db
check: cargo
	@$(CARGO) clippy --version >/dev/null 2>&1 && $(CARGO) fmt --version >/dev/null 2>&1 || \
		rustup component add clippy rustfmt
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) test --workspace --quiet --test prose --test docs
	@if $(CARGO) fetch --manifest-path fuzz/Cargo.toml >/dev/null 2>&1; then \
		set -x; CFLAGS=-O0 $(CARGO) check --manifest-path fuzz/Cargo.toml; \
	else \
		echo "what the fuzz targets need cannot be fetched: they are not checked"; \
	fi

# Not part of make test, which checks the same rules against a snapshot of the advisories
# (crates/neph/tests/supply.rs). Where the network does not reach the database, the snapshot is it.
deny: cargo
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	cargo deny check --hide-inclusion-graph licenses bans sources
	@if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote -q $(ADVISORIES) HEAD >/dev/null 2>&1; then \
		set -x; cargo deny check advisories; \
	else \
		echo "$(ADVISORIES) cannot be reached: advisories are checked against the snapshot"; \
		grep '^# date' supply/advisories.tsv; \
		set -x; $(CARGO) test -p neph --test supply advisories; \
	fi

release: cargo
	$(REPRODUCIBLE) $(CARGO) build --locked --release -p neph
	@tools/sbom --binary $(TARGET)/release/neph --output $(TARGET)/release/neph.cdx.json
	@echo "$(TARGET)/release/neph, and what is in it: $(TARGET)/release/neph.cdx.json"

sbom: cargo
	@mkdir -p $(TARGET)
	tools/sbom --output $(TARGET)/neph.cdx.json

reproducible: cargo
	tools/reproducible

advisories:
	tools/advisories

static: cargo
	@if command -v rustup >/dev/null; then \
		rustup target list --installed | grep -qx $(MUSL) || rustup target add $(MUSL); \
	elif ! test -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)"; then \
		echo "the Rust target $(MUSL) is missing: rustup target add $(MUSL), or rust-std for it from https://static.rust-lang.org"; exit 1; \
	fi
	@tools/need musl-gcc:musl-tools
	$(REPRODUCIBLE) CC_x86_64_unknown_linux_musl=musl-gcc \
		$(CARGO) build --locked --release -p neph --target $(MUSL)
	@tools/sbom --target $(MUSL) --binary $(TARGET)/$(MUSL)/release/neph \
		--output $(TARGET)/$(MUSL)/release/neph.cdx.json
	@file $(TARGET)/$(MUSL)/release/neph 2>/dev/null || ls -l $(TARGET)/$(MUSL)/release/neph

image: static
	tools/image

deb: release cargo-deb
	tools/deb

manifests:
	tools/manifests

fuzz: cargo
	@command -v cargo-fuzz >/dev/null || $(CARGO) install cargo-fuzz --locked
ifdef EXECUTIONS
	CFLAGS=-O0 $(CARGO) +nightly fuzz build -s none --no-trace-compares
	python3 fuzz/run.py --executions $(EXECUTIONS)
else
	CFLAGS=-O0 $(CARGO) +nightly fuzz build
	for target in $$($(CARGO) +nightly fuzz list); do \
		dict=fuzz/dictionaries/$$target.dict; test -e $$dict && dict=-dict=$$dict || dict=; \
		CFLAGS=-O0 $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(SECONDS) \
			-rss_limit_mb=1024 -timeout=10 $$dict || exit 1; \
	done
endif

docs: cargo
	@command -v mdbook >/dev/null || $(CARGO) install mdbook --locked --no-default-features --features search
	tools/book $(TARGET)/book

api: cargo
	$(CARGO) doc --workspace --no-deps --document-private-items
	@echo "open $(TARGET)/doc/neph/index.html"

# A table in Markdown; docs/internals/statistics-truth.md summarises the last one. Not part of make test: it counts over
# a thousand reports of each world.
truth: cargo
	$(CARGO) run --release -q -p neph-report --example truth

man: cargo
	$(CARGO) build --release -p neph
	$(TARGET)/release/neph man --output $(TARGET)/man
	@mkdir -p $(TARGET)/completions
	@for shell in bash zsh fish; do \
		$(TARGET)/release/neph completions $$shell > $(TARGET)/completions/neph.$$shell || exit 1; \
	done
	@echo "man pages in $(TARGET)/man, completions in $(TARGET)/completions"
