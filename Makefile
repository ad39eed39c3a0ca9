# devtensor needs a C compiler and make. All output is below build/; `make` alone lists the targets.
# Contributors also need Python 3, for the targets header, docs and check.

config = release
PREFIX = /usr/local
CC = cc
CXX = c++
PYTHON = python3
# -g1 has functions and lines, which backtraces need, and compiles in a quarter less time than -g.
CFLAGS = -O2 -g1
LIBS = -lm -ldl -lpthread

# Each config changes flags, the language, or what is tested (by default the generated devtensor.h).
FLAGS := $(CFLAGS)
COMPILE = $(CC) -std=gnu11
LINK = $(CC)
FORM = -I.
CONFIGS = release debug asan ubsan tsan msan cxx split split-sanitized spine nothreads nonn \
	nofiles nosites
SANITIZE_asan = -fsanitize=address -fno-omit-frame-pointer
SANITIZE_ubsan = -fsanitize=undefined -fno-sanitize-recover=all
# Its sources compile in parallel, so it takes half the time of two sanitizers' builds.
# GCC takes minutes for AVX-512 with sanitizers; asan and ubsan compile it.
SANITIZE_split-sanitized = $(SANITIZE_asan) $(SANITIZE_ubsan) -DDEVTENSOR_NO_AVX512
SANITIZE_tsan = -fsanitize=thread
# Clang 14 reports AVX-512 permutations with uninitialized unused lanes; it tracks AVX2 per lane.
SANITIZE_msan = -fsanitize=memory -fno-omit-frame-pointer -DDEVTENSOR_NO_AVX512
ifeq ($(config),msan) # only Clang has it
  override CC := $(if $(findstring clang,$(CC)),$(CC),clang)
endif
ifeq ($(config),debug)
  FLAGS = -O0 -g
else ifneq ($(SANITIZE_$(config)),)
  FLAGS = -O1 -g1 $(SANITIZE_$(config))
else ifeq ($(config),cxx)
  COMPILE = $(CXX) -x c++ -std=c++17
  LINK = $(CXX)
else ifeq ($(config),spine)
  FORM = -DDVT_TEST_SPINE -Isrc -I.
else ifeq ($(config),split) # FORM follows below
else ifeq ($(config),nothreads)
  FORM = -I. -DDEVTENSOR_NO_THREADS
else ifeq ($(config),nonn)
  FORM = -I. -DDEVTENSOR_NO_NN
else ifeq ($(config),nofiles)
  FORM = -I. -DDEVTENSOR_NO_FILES
else ifeq ($(config),nosites)
  FORM = -I. -DDEVTENSOR_NO_CALL_SITES
else ifneq ($(config),release)
  $(error config=$(config): choose one of $(CONFIGS))
endif

ifeq ($(filter -j%,$(MAKEFLAGS)),)
  MAKEFLAGS += -j$(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
endif

B = build/$(config)
# The library is compiled once and linked by all programs, which do not compile the implementation.
ifneq ($(filter split split-sanitized,$(config)),)
  FORM = -DDVT_TEST_SPINE -Isrc -I.
  LIBRARY = $(patsubst src/%.c,$B/src/%.o,$(shell find src -name '*.c'))
else
  LIBRARY = $B/devtensor.o
endif
UNIT = $(patsubst tests/%.c,$B/%.o,$(wildcard tests/unit/*.c))
LONG = $(patsubst tests/%.c,$B/%.o,$(wildcard tests/long/*.c))
CUDA = $(patsubst tests/%.c,$B/%.o,$(wildcard tests/cuda/*.c))
TARGETS = $(patsubst tests/%.c,$B/%.o,$(wildcard tests/isa/*.c))
# Replays the inputs that fuzzing has found, without libFuzzer; not in configs without files.
FUZZ = $(patsubst tests/%.c,$B/%.o,$(filter-out tests/fuzz/corpus.c,$(wildcard tests/fuzz/*.c)))
FUZZ_TESTS = $(if $(filter nonn nofiles,$(config)),,$B/fuzz/tests)
EXAMPLES = $(patsubst %.c,$B/%,$(wildcard examples/*.c examples/tutorials/*.c))
EXAMPLES_CXX = $(if $(shell command -v $(CXX)),$(patsubst %.cpp,$B/%,$(wildcard examples/*.cpp)))
BENCH = $(patsubst %.c,$B/%,$(wildcard bench/*.c))
# Every directory of tests with a run.sh is a suite; see tests/README.md. Suites of the header do
# not depend on the config, so they run once. Configs without a part of the library run the unit
# tests.
PROGRAM_SUITES = $(wildcard tests/tutorials/run.sh tests/examples/run.sh)
ifeq ($(config),release)
  SUITES = tests/caches/run.sh tests/compile/run.sh tests/matrix/run.sh \
	tests/install/run.sh tests/plugin/run.sh tests/dlpack/run.sh tests/cxx/run.sh tests/resume/run.sh \
	tests/nvtx/run.sh tests/python/run.sh tests/mpi/run.sh \
	tests/neon/run.sh tests/windows/run.sh $(PROGRAM_SUITES) tests/cuda/run.sh
  SUITE_PROGRAMS = $B/cuda/tests
else ifeq ($(filter nonn nofiles nosites,$(config)),)
  SUITES = $(PROGRAM_SUITES)
endif
ENVIRONMENT = CC="$(CC)" CXX="$(CXX)" PYTHON="$(PYTHON)" BUILD="$B" LIBRARY="$(LIBRARY)" \
	LIBS="$(LIBS)" MAKE="$(MAKE)" CONFIGS="$(CONFIGS)" FORM="$(FORM)"

help:
	@echo 'make run              the devices, a tour, then LeNet on Fashion-MNIST; ARGS="--epochs 10"'
	@echo 'make test             all tests that can run here; ends in "N passed, N failed, N skipped"'
	@echo 'make test-long        the tests that take minutes; the unit tests in every configuration'
	@echo 'make gpu-check        all tests on a real GPU; writes a dated report to bench/results/'
	@echo 'make gpu-first        smoke tests, benchmarks and tests on a GPU machine, in ten minutes;'
	@echo '                      DIR=results; gpu-pack prepares it without a GPU, gpu-report reports'
	@echo 'make unit T=text      the unit tests whose name contains the text, verbosely'
	@echo 'make isa T=text     the kernel tests of each ISA target, verbosely'
	@echo 'make matrix T=text    other compilers, flags and machines: rows of docs/PORTABILITY.md'
	@echo 'make fuzz             fuzz the readers and parsers, an hour each; SECONDS=60 TARGET=npy'
	@echo 'make check            check generated files, layers, symbols, layout, documents'
	@echo 'make header           regenerate devtensor.h after a change in src/'
	@echo 'make docs             regenerate the tables in README.md and docs/'
	@echo 'make site             the documentation as web pages with a search: build/site/index.html'
	@echo 'make bench            compare cpu() with other libraries; the budgets; to bench/results/'
	@echo '                      SHORT=1: a selection in five minutes, printed only'
	@echo '                      ROW=text, THREADS=1 or 2: a part, printed only; OUT=directory'
	@echo 'make bench-cpu        the same without the budgets; DEVTENSOR_ISA=avx2: limited to AVX2'
	@echo 'make bench-sweep      find slow sizes, in ten minutes; ISA="avx512 avx2", OUT=directory'
	@echo 'make bench-blocks     predicted blocks of products and others, in a minute; ISA, OUT=file'
	@echo 'make bench-before     BASE=commit: the same rows, before and now, without other libraries'
	@echo 'make bench-budgets    bytes, compile times, sizes; make bench-accuracy: LeNet'
	@echo 'make bench-gpu-host   the cost of GPU operations on the host, without a GPU'
	@echo 'make gpu-model        modeled times of the CUDA kernels; gpu-model-update counts again'
	@echo 'make bench-jit        time to compile the CUDA kernels without a cache'
	@echo 'make bench-misses     simulated cache misses of products; CACHES="32K/8 512K/8"'
	@echo 'make bench-neon-model modeled cycles of the loops on 64-bit ARM cores, by llvm-mca'
	@echo 'make bench-flags      the kernels of programs compiled with -O0, -Os and -O2'
	@echo 'make bench-fork-join  time to start a job on all threads, compared with OpenMP'
	@echo 'make bench-heap       time to allocate memory'
	@echo 'make bench-parts      the cost of training in parts'
	@echo 'make examples         build the example programs, and print their directory'
	@echo 'make shared           the shared library that python/devtensor.py uses'
	@echo 'make install          header, pkg-config file and CMake package, under PREFIX=$(PREFIX)'
	@echo 'make format           format the sources with clang-format 14'
	@echo 'make clean            remove build/'
	@echo
	@echo 'config=X with run, test, unit or examples: $(CONFIGS)'

run: $B/examples/run
	@$B/examples/run $(ARGS)

test: $B/unit/tests $B/isa/tests $(FUZZ_TESTS) $(SUITE_PROGRAMS) $(if $(SUITES),examples) \
	simulated-driver
	@$(ENVIRONMENT) T=quick OBJECTS="$B" sh tests/run.sh $B/unit/tests $B/isa/tests \
		$(FUZZ_TESTS) $(SUITES)

# tests/mpi and tests/cuda use it, maybe at the same time. They build it too, and report errors.
CUDA_HOME ?= /usr/local/cuda
simulated-driver:
	-@[ "$(config)" != release ] || [ ! -f "$(CUDA_HOME)/include/cuda.h" ] || MAKEFLAGS= $(MAKE) \
		-s -f tests/simcuda/Makefile O=build/simcuda CC="$(CC)" CUDA_HOME="$(CUDA_HOME)" all

# For a machine with a GPU. PARTS selects some of its parts, REHEARSE=1 uses the simulated driver.
gpu-check: $B/unit/tests $B/cuda/tests $B/examples/run examples
	@$(ENVIRONMENT) sh tests/gpu_check.sh $(PARTS)

library: $(LIBRARY)

unit: $B/unit/tests
	@$B/unit/tests -v $(T)

unit-quiet: $B/unit/tests
	@$B/unit/tests

isa: $B/isa/tests
	@$B/isa/tests -v $(T)

# Tests that take minutes, suites that `make test` leaves out, all unit tests in every
# configuration.
LONG_SUITES = tests/caches/run.sh tests/compile/run.sh tests/bigendian/run.sh \
	tests/windows/run.sh tests/cuda/run.sh tests/matrix/run.sh tests/mpi/run.sh tests/configs.sh
test-long: $(if $(LONG),$B/long/tests) $B/unit/tests $B/isa/tests $B/cuda/tests examples \
	simulated-driver
	@$(ENVIRONMENT) OBJECTS="$B" DVT_TEST_FULL=1 sh tests/run.sh $(if $(LONG),$B/long/tests) \
		$(LONG_SUITES)

# T=quick selects the rows of `make test`, T=text the rows whose name contains the text.
matrix:
	@$(ENVIRONMENT) T="$(T)" sh tests/matrix/run.sh

# SECONDS=60 is the time for each target. TARGET=npy selects one.
fuzz:
	@$(ENVIRONMENT) SECONDS_EACH="$(or $(SECONDS),3600)" sh tests/fuzz/run.sh $(TARGET)

fuzz-replay: $B/fuzz/tests
	@$B/fuzz/tests -v $(T)

check: $(LIBRARY)
	@$(ENVIRONMENT) sh tests/check/run.sh

header:
	@$(PYTHON) tools/call_sites.py
	@$(PYTHON) tools/amalgamate.py
	@$(PYTHON) tools/python_api.py

# With `make header docs`, objects are compiled after the files that `header` writes. The recipe
# makes make look at their times again, which change only if their content does.
ifneq ($(filter header,$(MAKECMDGOALS)),)
devtensor.h devtensor_kernels.cu.inc src/0_api/dvt_call_sites.h \
	src/0_api/dvt_call_sites_off.h: header
	@:
$(LIBRARY) $(UNIT) $(LONG) $(CUDA) $(TARGETS) $(FUZZ) $B/dvt_test.o $B/isa/library.o: | header
endif

docs: $(LIBRARY)
	@$(ENVIRONMENT) sh tools/docs.sh

site:
	@$(PYTHON) tools/site.py --check

RUNNERS = $(patsubst %,$B/bench/cpu/%,ours first blas sleef machine)
# Sequential, because compilation would disturb measurements.
bench: bench-cpu
ifneq ($(filter bench,$(MAKECMDGOALS)),)
  ifeq ($(ROW)$(THREADS)$(SHORT),)
bench-cpu: bench-budgets
bench-budgets: | $(RUNNERS)
  endif
endif

bench-budgets: $(LIBRARY)
	@$(ENVIRONMENT) sh bench/budgets.sh

bench-jit:
	@$(ENVIRONMENT) sh bench/jit.sh $(ARGS)

# Compares cpu() with other libraries. ROW=text selects rows with that text, THREADS=1 rows with one
# thread, SHORT=1 a selection; these are only printed, unless OUT is given. The whole table replaces
# that of the same processor and ISA target. DEVTENSOR_ISA=avx2 limits devtensor and the peers to
# AVX2. bench/cpu runs our process and the peers'; those may use OpenMP freely.
bench-cpu: $(RUNNERS)
	@BUILD="$B" PYTHON="$(PYTHON)" ROW="$(ROW)" SHORT="$(SHORT)" THREADS="$(THREADS)" \
		OUT="$(OUT)" sh bench/cpu/run.sh

# Simulates the cache misses of products on another machine: CACHES="32K/8 512K/8".
bench-misses: $B/bench/misses
	@BUILD="$B" sh bench/misses.sh $(CACHES)

# Compares the blocks predicted for this machine with those for other caches. ISA=list, OUT=file.
bench-blocks: $B/bench/cpu/ours
	@"$(PYTHON)" bench/cpu/blocks.py --program $B/bench/cpu/ours --isa $(ISA) \
		$(addprefix --out ,$(OUT))

# Models the loops of the 64-bit ARM target on cores that nobody here has.
bench-neon-model:
	@BUILD="$B" PYTHON="$(PYTHON)" sh bench/neon_model.sh

# Looks for sizes that are slower than the sizes around them, in products and in functions. ISA=list
# of ISA targets; the default is the best.
bench-sweep: $B/bench/cpu/ours
	@for kind in products functions; do \
		"$(PYTHON)" bench/cpu/sweep.py $$kind --program $B/bench/cpu/ours \
			--out "$(or $(OUT),build/bench-sweep)" --isa $(ISA) || exit 1; \
	done

# The same program with the flags that users may choose.
FLAGGED = $(patsubst %,$B/bench/flags/%,gcc-O2 gcc-Os gcc-O0 \
	$(if $(shell command -v clang),clang-O2))
bench-flags: $(FLAGGED)
	@BUILD="$B" PYTHON="$(PYTHON)" OUT="$(or $(OUT),bench/results)" \
		sh bench/cpu/run.sh flags $(FLAGGED)

$B/bench/flags/%: bench/cpu/ours.c bench/cpu/lenet_cases.h devtensor.h
	@mkdir -p $(@D)
	@$(firstword $(subst -, ,$*)) -std=gnu11 -$(lastword $(subst -, ,$*)) -I. $< -o $@ $(LIBS)

$B/bench/cpu/ours $B/bench/cpu/first: %: %.program.o $(LIBRARY)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

$B/bench/cpu/blas $B/bench/cpu/sleef $B/bench/cpu/machine: $B/%: %.c bench/cpu/runner.h Makefile
	@mkdir -p $(@D)
	@$(COMPILE) $(FLAGS) $(OPENMP) -Wno-psabi $< -o $@ $(LIBS)

# The first call on a machine with a GPU, of at most ten minutes; DIR= receives the results.
# gpu-pack prepares it where there is no GPU; gpu-report writes tables from DIR, anywhere. The
# scripts build the programs.
gpu-first:
	@$(ENVIRONMENT) sh bench/gpu/first.sh "$(or $(DIR),build/gpu-first)" $(STEPS)

gpu-pack:
	@$(ENVIRONMENT) sh bench/gpu/pack.sh

gpu-report:
	@$(PYTHON) bench/gpu/report.py "$(or $(DIR),build/gpu-first)" $(if $(OUT),"$(OUT)")

bench-gpu-host: $B/bench/gpu/host_cost
	@$(ENVIRONMENT) OUT="$(or $(OUT),bench/results)" sh bench/gpu/host_cost.sh

$B/bench/gpu/ours $B/bench/gpu/host_cost: %: %.program.o $(LIBRARY)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

# Modeled times of the kernels, from the counts in tests/cuda/model/expected.txt; the second target
# counts again on the simulated driver (docs/GPU_MODEL.md).
gpu-model:
	@$(PYTHON) bench/gpu/model.py

gpu-model-update: $(LIBRARY)
	@$(ENVIRONMENT) sh tests/cuda/model/model.sh --update

.PHONY: gpu-first gpu-pack gpu-report bench-gpu-host gpu-model gpu-model-update

# Compares the kernels of BASE=commit with those of the working tree, row by row. ROW=text selects
# rows.
bench-before: $B/bench/cpu/ours
	@test -n "$(BASE)" || { echo 'BASE=commit says what to compare with'; exit 2; }
	@rm -rf build/before && mkdir -p build/before && git archive $(BASE) | tar -x -C build/before
	@$(MAKE) -s -C build/before build/release/bench/cpu/ours
	@$(PYTHON) bench/cpu/before.py --row "$(ROW)" \
		build/before/build/release/bench/cpu/ours $B/bench/cpu/ours

bench-accuracy: $B/bench/lenet_accuracy
	@$B/bench/lenet_accuracy $(ARGS)

# Compares with OpenMP where the compiler supports it.
OPENMP = $(shell echo 'int main(void) { return 0; }' | \
	$(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo -fopenmp)
bench-fork-join:
	@mkdir -p $B/bench
	@$(COMPILE) $(FLAGS) $(OPENMP) $(FORM) bench/fork_join.c -o $B/bench/fork_join $(LIBS)
	@$B/bench/fork_join $(ARGS)

bench-heap: $B/bench/heap
	@$B/bench/heap

bench-parts: $B/bench/parts
	@$B/bench/parts

examples: $(EXAMPLES) $(EXAMPLES_CXX)
	@echo 'The programs are in $B/examples: $(patsubst $B/examples/%,%,$^)'

install:
	@sh tools/install.sh "$(DESTDIR)" "$(PREFIX)"

format:
	@sh tools/format.sh

clean:
	rm -rf build

# The object gets the time when its compilation began: a header that was written during the
# compilation is newer, and the object is compiled again. tests/compile reads the warnings, because
# some need an optimizing compiler, which takes a minute.
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla
$B/devtensor.o: tests/implementation.c devtensor.h Makefile
	@mkdir -p $(@D)
	@touch $@.began
	$(COMPILE) $(FLAGS) $(if $(filter release,$(config)),$(WARNINGS)) $(FORM) -Itests -MMD -MP \
		-c $< -o $@ 2>$@.warnings || { cat $@.warnings; exit 1; }
	@cat $@.warnings
	@touch -r $@.began $@

SHARED = $B/$(if $(filter Windows_NT,$(OS)),devtensor.dll,libdevtensor.$(if \
	$(filter Darwin,$(shell uname -s)),dylib,so))
shared: $(SHARED)

$(SHARED): tests/implementation.c devtensor.h Makefile
	@mkdir -p $(@D)
	$(COMPILE) $(FLAGS) $(FORM) -Itests -fPIC -shared $< -o $@ $(LIBS)

$B/src/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	@$(COMPILE) $(FLAGS) -DDVTI_FN=extern -Isrc -I. -MMD -MP -c $< -o $@

# The speed of the tests' own code does not matter: -O1 cuts their compile time by 50 %.
$B/%.o: tests/%.c Makefile
	@mkdir -p $(@D)
	@$(COMPILE) $(FLAGS) -O1 $(FORM) -Itests -MMD -MP -c $< -o $@

$B/unit/tests: $B/dvt_test.o $(UNIT) $(LIBRARY)
	@mkdir -p $(@D)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

$B/long/tests: $B/dvt_test.o $(LONG) $(LIBRARY)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

# These call kernels directly, so the library's internal functions are visible to them. On x86 they
# also include the plain ISA target.
VISIBLE = $(COMPILE) $(FLAGS) -DDVTI_FN=extern -DDEVTENSOR_PLAIN_TARGET -Isrc -I. -Itests -MMD -MP

$B/isa/library.o: src/devtensor_spine.h Makefile
	@mkdir -p $(@D)
	@printf '#define DEVTENSOR_IMPLEMENTATION\n#include "devtensor_spine.h"\n' >$(@D)/library.c
	@$(VISIBLE) -c $(@D)/library.c -o $@

$B/isa/%.o: tests/isa/%.c Makefile
	@mkdir -p $(@D)
	@$(VISIBLE) -O1 -c $< -o $@

$B/isa/tests: $B/dvt_test.o $(TARGETS) $B/isa/library.o
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

$B/fuzz/%.o: tests/fuzz/%.c Makefile
	@mkdir -p $(@D)
	@$(VISIBLE) -O1 -DDVT_FUZZ_REPLAY -c $< -o $@

$B/fuzz/tests: $B/dvt_test.o $(FUZZ) $B/isa/library.o
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

$B/cuda/tests: $B/dvt_test.o $(CUDA) $(LIBRARY)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

$B/%.program.o: %.c Makefile
	@mkdir -p $(@D)
	@$(COMPILE) $(FLAGS) $(FORM) -D_GNU_SOURCE -DDEVTENSOR_IMPLEMENTED -MMD -MP -c $< -o $@

$B/%.program.o: %.cpp Makefile
	@mkdir -p $(@D)
	@$(CXX) -std=gnu++17 $(FLAGS) $(FORM) -DDEVTENSOR_IMPLEMENTED -MMD -MP -c $< -o $@

$(EXAMPLES_CXX): %: %.program.o $(LIBRARY)
	@$(CXX) $(FLAGS) $^ -o $@ $(LIBS)

$(EXAMPLES) $(BENCH): %: %.program.o $(LIBRARY)
	@$(LINK) $(FLAGS) $^ -o $@ $(LIBS)

-include $(shell find build/$(config) -type f -name '*.d' 2>/dev/null)

.PHONY: help run library test simulated-driver gpu-check unit unit-quiet isa test-long matrix fuzz \
	fuzz-replay check header docs site bench bench-budgets bench-flags bench-jit bench-accuracy \
	bench-before bench-cpu bench-sweep bench-blocks bench-misses bench-neon-model \
	bench-fork-join bench-heap bench-parts examples install format clean shared
