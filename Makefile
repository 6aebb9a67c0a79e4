# make                 build/release/{outpostd,outpostctl,outpost-runner}
# make check           lints, unit tests, whole-program tests; ALL=1, as CI: also fuzzing, PostgreSQL, clusters, days of history
# make quick           after an edit: builds, runs the unit tests whose program changed and eight whole-program tests
# make demo            the main job on real input, on loopback; then demo-history
# make demo-history    sixty days of seven accelerators, and their dashboard, left running; demo-stop ends it
# make demo-cluster    three daemons on one database; one is killed under load, and nothing is missing
# make demo-torch      model validation through a pull runner, on this machine's PyTorch
# make runner-bundle   outpost-runner and its libraries in one tarball
# make check-postgres  the unit tests of the store, and the whole-program tests, on PostgreSQL
# make check-loaded    the tests on a machine that is made busy; check-one-core: on a single core
# make bench           speed, as ratios inside one run; BEFORE=PROGRAM: the results a second beside another outpostd
# make bench-cluster   PostgreSQL and several daemons beside SQLite and one
# make bench-attacks   attacks from one address, and what others notice of them; SECONDS_EACH=n
# make soak            the long tests: kills, memory, valgrind
# make history         ten histories of red cells against their truth, in both modes; SEED=n MODE=with|without: one of them
# make fuzz            every parser; RUNS=n or SECONDS_EACH=n
# make screens         docs/screens anew: each page, at two widths, in light and dark
# make comments        docs/comments anew: each text and its picture
# make size            how large src/ is, and its shape; the figures that docs/architecture.md lists
# make lint deps install clean
# make VARIANT=asan    any variant: release debug asan tsan fuzz; V=1 shows the commands
#
# One static library per folder of src/; a unit test links its folder and those
# below it, so an upward call does not link.

VARIANT ?= release
O       ?= build
B       := $(O)/$(VARIANT)

# Lowest first. The order in which a layer may use another is in tests/lint/layers.txt.
LAYERS   := base model documents text config steps loop http agent db store verdict experiments history views logs github outbox registry webhook \
	dispatch evidence runners publish web ctl daemon
PROGRAMS := outpostd outpostctl outpost-runner
PKGS     := libuv libcurl openssl sqlite3 jansson yaml-0.1 libzstd expat libgit2 libseccomp

# ccache is used where it is installed; an object does not depend on the folder of the checkout.
CCACHE   := $(shell command -v ccache)
export CCACHE_NOHASHDIR := 1
CC       := $(CCACHE) $(if $(filter fuzz,$(VARIANT)),clang-14,gcc)
CFLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
CFLAGS_debug   := -O0 -g3
# -g1: line numbers for the sanitizers' reports; it compiles and links faster than -g
CFLAGS_asan    := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-ffunction-sections -fdata-sections -fsanitize-address-globals-dead-stripping
LDFLAGS_release := -pie -Wl,-z,relro,-z,now
# Hundreds of test programs are linked: by the fastest linker that is here.
linker_of    = $(firstword $(foreach l,$1,$(if $(shell command -v ld.$l),-fuse-ld=$l)))
FAST_LINKER := $(call linker_of,mold lld gold)
# In the program, because the start of each is faster so than from shared libraries. libfaketime, which tests of the daemon use, needs those.
STATIC_SANITIZERS := -static-libasan -static-libubsan
LDFLAGS_asan := $(FAST_LINKER) $(STATIC_SANITIZERS)
LDFLAGS_tsan := $(FAST_LINKER)
# Not mold: it also reports symbols as undefined that only dropped functions use.
LDFLAGS_fuzz := $(call linker_of,lld gold)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum \
	-Wwrite-strings -Wpointer-arith -Wvla -Wformat=2 -Wundef -fno-common -Werror=incompatible-pointer-types
# OUTPOST_VERSION: what --version, the User-Agent and the status page show.
VERSION := $(shell cat VERSION)
override CFLAGS += -std=gnu11 -DOUTPOST_VERSION='"$(VERSION)"' -D_GNU_SOURCE $(WARN) $(if $(WERROR),-Werror) $(CFLAGS_$(VARIANT)) \
	-include src/base/base.h -Isrc $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
# as-needed: outpost-runner must not ask for libraries that only the daemon uses
override LDFLAGS += -Wl,--as-needed $(LDFLAGS_$(VARIANT))
override LDLIBS  += $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lpthread -lm

# one line a step; V=1 shows the commands
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-3s %s\n' '$1' '$2')

src_of   = $(wildcard src/$1/*.c)
obj_of   = $(patsubst src/%.c,$(B)/%.o,$(call src_of,$1))
lib_of   = $(B)/lib$1.a
# the archives a layer may link: itself and everything below it, highest first
below    = $(if $2,$(if $(filter $1,$(firstword $2)),$(firstword $2),$(call below,$1,$(wordlist 2,99,$2)) $(firstword $2)))
# store/, verdict/, experiments/ and history/ work inside one transaction and call each other: they link together, with what
# shows them, in views/.
LAYERS_OF_THE_STORE := db store verdict experiments history views
libs_for = $(foreach l,$(call below,$(if $(filter $1,$(LAYERS_OF_THE_STORE)),views,$1),$(LAYERS)),$(call lib_of,$l))
in_group = -Wl,--start-group $1 -Wl,--end-group

all: $(PROGRAMS:%=$(B)/%)

# main() of each program: kept out of the archives.
MAINS := src/daemon/main.c src/ctl/main.c src/agent/main.c
$(B)/outpostd: override LDFLAGS := $(filter-out $(STATIC_SANITIZERS),$(LDFLAGS))
$(B)/outpostd: $(B)/daemon/main.o $(call libs_for,daemon)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call in_group,$^) $(LDLIBS)
$(B)/outpostctl: $(B)/ctl/main.o $(call libs_for,ctl)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call in_group,$^) $(LDLIBS)

$(B)/outpost-runner: $(B)/agent/main.o $(call libs_for,agent)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call in_group,$^) $(LDLIBS)

# The pages, bundled into one C file. They need npm's packages, which `make deps` brings as well.
NODE_PACKAGES := node_modules/.outpost
$(NODE_PACKAGES): package-lock.json
	$(Q)tools/deps.sh --npm && touch $@
$(O)/web/assets.c: $(wildcard web/* web/*/* web/*/*/*) $(NODE_PACKAGES)
	@mkdir -p $(@D)
	$(call say,WEB,$@)
	$(Q)tools/node.sh web/build.mjs $@
$(B)/web_assets.o: $(O)/web/assets.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<
EXTRA_OBJ_web := $(B)/web_assets.o

# The schema: one script a version, as strings.
$(O)/db/schema_steps.c: $(wildcard src/db/*.sql) tools/embed-sql.sh
	@mkdir -p $(@D)
	$(Q)tools/embed-sql.sh > $@.new && mv $@.new $@
$(B)/schema_steps.o: $(O)/db/schema_steps.c src/db/schema.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<
EXTRA_OBJ_db := $(B)/schema_steps.o

define layer
$(call lib_of,$1): $(patsubst src/%.c,$(B)/%.o,$(filter-out $(MAINS),$(call src_of,$1))) $(EXTRA_OBJ_$1)
	@rm -f $$@
	$$(call say,AR,$$@)
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call layer,$l)))

$(B)/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<
-include $(wildcard $(B)/*/*.d) $(wildcard $(B)/tests/*.d)

# tests/unit/test_<layer>_<what>.c links that layer and lower ones only. The test's own source is built
# with -O0: it is the most expensive file to compile, and the code under test keeps its optimisation.
# --wrap: a test may define functions of another layer itself, for example a store that fails (tests/unit/replaces.h).
TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
.PRECIOUS: $(B)/tests/%.o
$(B)/tests/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -O0 -MMD -MP -Itests/unit -c -o $@ $<
.SECONDEXPANSION:
$(B)/tests/%: $(B)/tests/%.o $$(call libs_for,$$(word 2,$$(subst _, ,$$*)))
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $$(nm $< | sed -n 's/.* T __wrap_/-Wl,--wrap=/p') $(call in_group,$(filter %.a,$^)) $(LDLIBS) -lcmocka $(LDLIBS_$*)
LDLIBS_test_text_markdown := -lcmark-gfm -lcmark-gfm-extensions
LDLIBS_test_text_markdown_hostile := $(LDLIBS_test_text_markdown)
LDLIBS_test_text_golden := $(LDLIBS_test_text_markdown)
LDLIBS_fuzz_text_markdown := $(LDLIBS_test_text_markdown)
LDLIBS_fuzz_dispatch_command := -lcmark-gfm

headers: $(patsubst src/%.h,$(B)/%.h.ok,$(wildcard src/*/*.h))
$(B)/%.h.ok: src/%.h
	@mkdir -p $(@D)
	@echo '#include "$*.h"' | $(CC) $(CFLAGS) -fsyntax-only -x c - && touch $@

tests: $(TESTS)
run-unit: $(TESTS)
	tests/run-unit.sh $^
# Runs a test when the content of its program, or of the files that tests read, has changed since it passed. A changed archive links all
# tests again, and most of them do not contain the changed object.
UNIT_INPUTS := $(shell find tests/data docs config -type f) tests/integration/lib/s3-server.py
$(O)/unit-inputs: $(UNIT_INPUTS)
	@mkdir -p $(@D)
	@sha256sum $^ > $@
$(B)/tests/%.passed: $(B)/tests/% $(O)/unit-inputs
	@sha256sum --check --status $@ 2>/dev/null && touch $@ || { tests/run-unit.sh --one $< && sha256sum $^ > $@; }
run-changed: $(TESTS:%=%.passed)

# tests/fuzz/fuzz_<layer>_<what>.c, built with VARIANT=fuzz. A parser uses a few files: a target links its layer's lower ones of
# FUZZED_LAYERS, and of the layers above these only the files that it names here. The linker drops the functions that the target does
# not use, so the rest of these files needs no other file.
FUZZED_LAYERS           := base model documents text config
FUZZED_steps_git_url    := steps/git
FUZZED_steps_log        := steps/job_log
FUZZED_http_request     := http/client_group http/head http/inlet http/request
FUZZED_db_note          := db/notes db/touched
FUZZED_logs_s3          := logs/finished logs/place_s3 logs/seekable
FUZZED_webhook_payload  := webhook/payload
FUZZED_webhook_skim     := webhook/skim
FUZZED_dispatch_command := dispatch/command
FUZZED_runners_callback := runners/admission runners/submission
FUZZED_runners_jwks     := runners/issuer_keys
FUZZED_runners_lease    := runners/admission runners/machine
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $$(addprefix $(B)/,$$(addsuffix .o,$$(FUZZED_$$*))) \
	$$(filter $(foreach l,$(FUZZED_LAYERS),$(call lib_of,$l)),$$(call libs_for,$$(word 1,$$(subst _, ,$$*))))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -Wl,--gc-sections -o $@ $(filter %.c %.o,$^) $(call in_group,$(filter %.a,$^)) $(LDLIBS) $(LDLIBS_fuzz_$*)
fuzzers: $(FUZZERS)
# The same targets in any variant, with a main() that plays their corpus without a fuzzer.
REPLAYS := $(patsubst tests/fuzz/%.c,$(B)/replay/%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $$(call libs_for,$$(word 2,$$(subst _, ,$$*)))
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -O0 $(LDFLAGS) -o $@ $(filter %.c,$^) $(call in_group,$(filter %.a,$^)) $(LDLIBS) $(LDLIBS_$*)
replays: $(REPLAYS)

# ---- what people call; each installs what it needs first ----

JOBS   := $(shell nproc)
# One test or more for each place where two threads meet: the store's writer and readers, loop/'s pool and inbox, logs, git, pages.
# make soak runs all tests of these layers under ThreadSanitizer.
UNITS_UNDER_TSAN := loop_bell loop_inbox loop_timer http_client http_client_group http_shared http_stream db_open db_touched \
	store_outbox views_change store_report logs_append logs_trouble logs_folder logs_growing logs_s3 dispatch_planner dispatch_sender runners_callback registry_checkout \
	registry_rounds registry_remote_head webhook_intake web_render web_gate web_events web_job_log agent_run
LAYERS_WITH_THREADS := loop http db store verdict views logs dispatch publish runners registry webhook web agent

deps:
	tools/deps.sh

lint: headers
	tests/lint/layers.sh
	tests/lint/callers.sh
	tests/lint/states.sh
	tests/lint/format.sh
	tests/lint/length.sh
	tests/lint/names.sh

# How large src/ is. CHECK=1 fails when a figure is over its limit.
size:
	@tools/size.sh $(if $(CHECK),--check)

# Each SQL statement, prepared on SQLite and on PostgreSQL.
lint-sql:
	tools/node.sh tests/lint/sql.mjs

# Once more on PostgreSQL: the unit tests of the store and of the layers that work inside its transactions, and the whole-program tests.
# `make check ALL=1` runs a part of them (PART=1): the unit tests in which an engine shows itself most, and a program's way from a webhook to
# the comment. The tests that are left out are about SQLite's file.
POSTGRES_LAYERS := store verdict experiments history views
ONLY_ON_SQLITE  := store_packed_trouble store_space
POSTGRES_TESTS  := db_clock db_notes db_postgres db_records db_retry db_seats db_touched logs_growing \
	$(filter-out $(ONLY_ON_SQLITE),$(foreach l,$(POSTGRES_LAYERS),$(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_$l_*.c))))
POSTGRES_PART_TESTS := store_nodes db_clock db_notes db_seats db_postgres db_records db_retry db_touched store_outbox verdict_skips views_change views_feed
POSTGRES_PART_PROGRAMS := round intake pull known attribution kill-runners
UNITS_ON_POSTGRES := $(patsubst %,$(O)/asan/tests/test_%,$(if $(PART),$(POSTGRES_PART_TESTS),$(POSTGRES_TESTS)))
check-postgres: deps
	$(MAKE) --no-print-directory VARIANT=asan WERROR=1 -j$(JOBS) all $(UNITS_ON_POSTGRES)
	$(MAKE) --no-print-directory -j$(JOBS) all
	$(MAKE) --no-print-directory run-postgres
run-postgres:
	PROGRAM_MINUTES=60 tools/node.sh tests/postgres.mjs sh -c 'tests/run-unit.sh $(UNITS_ON_POSTGRES) && tests/run-programs.sh $(O) $(if $(PART),$(POSTGRES_PART_PROGRAMS))'

check:
	tests/check.sh $(O) $(if $(ALL),all)

# Once more under ThreadSanitizer; ALL=1: all unit tests of the layers with threads.
TSAN_TESTS := $(if $(ALL),$(foreach l,$(LAYERS_WITH_THREADS),$(patsubst tests/unit/%.c,$(O)/tsan/tests/%,$(wildcard tests/unit/test_$l_*.c))),\
	$(UNITS_UNDER_TSAN:%=$(O)/tsan/tests/test_%))
tsan-tests:
	$(MAKE) --no-print-directory VARIANT=tsan WERROR=1 -j$(JOBS) $(TSAN_TESTS)
run-tsan: $(TSAN_TESTS:%=%.passed)
check-tsan: tsan-tests
	$(MAKE) --no-print-directory VARIANT=tsan WERROR=1 -k -j$(JOBS) run-tsan

# Whole programs against the stand-in GitHub; the daemon is the one with sanitizers.
check-programs:
	tests/run-programs.sh $(O)

# The inner loop: at most a minute and a half after an edit of one file. The programs mostly wait, so they run beside the unit tests.
SMOKE := round intake pull re-running known tokens badge-feed metrics
quick:
	$(MAKE) --no-print-directory VARIANT=asan WERROR=1 -j$(JOBS) all
	tests/run-programs.sh $(O) $(SMOKE) & programs=$$!; \
	$(MAKE) --no-print-directory VARIANT=asan WERROR=1 -j$(JOBS) run-changed; units=$$?; \
	wait $$programs && exit $$units

# Unit tests and whole programs once more, on a machine that is busy, and on a single core. Nothing is built meanwhile.
UNDER_LOAD := sh -c 'tests/run-unit.sh $(patsubst tests/unit/%.c,$(O)/asan/tests/%,$(wildcard tests/unit/test_*.c)) && tests/run-programs.sh $(O)'
built-for-load: deps
	$(MAKE) --no-print-directory VARIANT=asan WERROR=1 -j$(JOBS) all tests
	$(MAKE) --no-print-directory WERROR=1 -j$(JOBS) all
check-loaded: built-for-load
	tests/under-load.sh busy $(UNDER_LOAD)
check-one-core: built-for-load
	tests/under-load.sh one-core $(UNDER_LOAD)

# The same at length: 200 kills, memory over 200,000 webhooks, valgrind.
soak: deps
	$(MAKE) --no-print-directory -j$(JOBS) all
	$(MAKE) --no-print-directory check-tsan ALL=1
	tests/run-soak.sh $(O)

# Ten histories of red cells with known truth, with vendors that run experiments and without; SEED=n MODE=with|without plays one.
history: deps
	$(MAKE) --no-print-directory -j$(JOBS) all
	OUTPOSTD=$(abspath $(O))/release/outpostd tools/node.sh tests/history/$(if $(SEED),simulate.mjs --seed $(SEED) --mode $(or $(MODE),with),history.mjs)

fuzz: deps
	$(MAKE) --no-print-directory VARIANT=fuzz -j$(JOBS) fuzzers
	tests/fuzz/run.sh $(O)/fuzz/fuzz $(RUNS) $(SECONDS_EACH)

demo: deps
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tools/node.sh demo/demo.mjs $(O)/release
	@tools/node.sh demo/history/history.mjs $(O)/release $(DAYS)

# Plays sixty days to a daemon, which is left running with its dashboard, until demo-stop.
demo-history: deps
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tools/node.sh demo/history/history.mjs $(O)/release $(DAYS)
demo-stop:
	@[ ! -f $(O)/demo/pid ] || kill $$(cat $(O)/demo/pid) && rm -f $(O)/demo/pid

# Three daemons, PostgreSQL and nginx on this machine; one daemon is killed under load.
demo-cluster: deps
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tools/node.sh demo/cluster.mjs $(O)/release

# The model-validation suite through a pull runner, on the PyTorch that is here; Debian's where there is none.
demo-torch: deps
	@tools/torch.sh
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	@tools/node.sh demo/torch.mjs $(O)/release $(KEEP_IN)

# outpost-runner with its libraries, for machines that have none of our packages.
runner-bundle: deps
	@$(MAKE) --no-print-directory -s -j$(JOBS) all
	tools/runner-bundle.sh $(O)/release/outpost-runner $(VERSION) $(O)

# What the comment says of typical changes, and how GitHub shows it.
comments: deps
	@$(MAKE) --no-print-directory VARIANT=asan -j$(JOBS) $(O)/asan/tests/test_text_golden
	OUTPOST_WRITE_COMMENTS=1 $(O)/asan/tests/test_text_golden
	tools/node.sh tools/comments.mjs

screens: deps
	$(MAKE) --no-print-directory -j$(JOBS) all
	tools/node.sh tools/screens.mjs $(O)/release

$(B)/bench/%: tests/bench/%.c $(call libs_for,store)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(call in_group,$(filter %.a,$^)) $(LDLIBS)

bench: deps
	$(MAKE) --no-print-directory -j$(JOBS) all $(B)/bench/fill $(B)/bench/floor $(B)/bench/results $(B)/bench/retention $(B)/bench/wire
	tools/node.sh tests/bench/bench.mjs $(O)/release $(if $(BEFORE),--before $(BEFORE))
	$(if $(BEFORE),,tools/node.sh tests/bench/paint.mjs $(O)/release)

bench-attacks: deps
	$(MAKE) --no-print-directory -j$(JOBS) all
	tools/node.sh tests/bench/attacks.mjs $(O)/release $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH))

bench-cluster: deps
	$(MAKE) --no-print-directory -j$(JOBS) all $(B)/bench/fill
	tools/node.sh tests/bench/cluster.mjs $(O)/release

PREFIX ?= /usr/local
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)$(PREFIX)/share/outpost \
	    $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 755 $(PROGRAMS:%=$(B)/%) $(DESTDIR)$(PREFIX)/bin
	install -m 644 docs/man/outpostd.8 $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 644 docs/man/outpostctl.1 docs/man/outpost-runner.1 $(DESTDIR)$(PREFIX)/share/man/man1
	cp -R config $(DESTDIR)$(PREFIX)/share/outpost/
	chmod -R u=rwX,go=rX $(DESTDIR)$(PREFIX)/share/outpost/config
	for unit in outpostd outpost-runner; do \
	    sed 's|@PREFIX@|$(PREFIX)|g' systemd/$$unit.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit.service && \
	    chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit.service || exit 1; \
	done

clean:
	rm -rf $(O)

.PHONY: all headers tests run-unit run-changed quick fuzzers replays deps lint lint-sql check-postgres run-postgres size check tsan-tests run-tsan check-tsan check-programs built-for-load check-loaded check-one-core soak history demo-history demo-stop screens fuzz \
	demo demo-cluster demo-torch runner-bundle comments bench bench-attacks bench-cluster install clean
