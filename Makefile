# make demo | test | check | portable | bench | install | proofs. Each installs what it needs when root, else prints the line to run.
BUILD ?= build
JOBS  ?= $(shell nproc)
PREFIX ?= /usr/local
CORE   = g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libxxhash-dev libsqlite3-dev ccache mold
TESTS  = libgtest-dev clang libtcc-dev glpk-utils z3
# Software drivers for the tests of targets: pocl 253 MB (with LLVM), lavapipe 37 MB, glslang and spirv-val 38 MB installed.
DRIVERS = pocl-opencl-icd ocl-icd-libopencl1 mesa-vulkan-drivers libvulkan1 glslang-tools spirv-tools
PEERS  = libopenblas-dev libbenchmark-dev
WEB    = emscripten  # 842 MB installed; only `make portable` asks for it
PROOFS = coq libcoq-coquelicot libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra libcoq-flocq

.PHONY: demo test check portable bench bench-tune install proofs tang configured need-core need-tests need-drivers need-peers need-web need-proofs clean

demo: configured
	@ninja -C $(BUILD) -j $(JOBS) tang_demo
	@$(BUILD)/tang_demo

# The command itself.
tang: configured
	@ninja -C $(BUILD) -j $(JOBS) tang

configured: need-core
	@cmake -S . -B $(BUILD) -G Ninja -DTANG_TESTS=OFF -DTANG_UNITY=ALL > $(BUILD).log 2>&1 || (cat $(BUILD).log; exit 1)

test: need-core need-tests need-drivers need-proofs
	@sh tools/need_webgpu.sh $(BUILD)-test
	@sh tools/test.sh $(BUILD)-test $(JOBS)

check: need-core
	@python3 tools/check.py

# The same texts from g++, clang++ and emscripten under node.
portable: need-core need-tests need-web
	@sh tools/portable.sh $(JOBS)

bench: need-core need-peers
	@cmake -S . -B $(BUILD)-bench -G Ninja -DTANG_TESTS=OFF -DTANG_BENCH=ON -DTANG_UNITY=ALL > /dev/null
	@ninja -C $(BUILD)-bench -j $(JOBS)
	@sh tools/bench.sh $(BUILD)-bench

# Every schedule of a few kernels timed, and the floor tested: docs/results/tune.md.
bench-tune: need-core
	@cmake -S . -B $(BUILD)-bench -G Ninja -DTANG_TESTS=OFF -DTANG_BENCH=ON -DTANG_UNITY=ALL > /dev/null
	@ninja -C $(BUILD)-bench -j $(JOBS) bench_tune bench_tune_cuda
	@sh tools/bench_tune.sh $(BUILD)-bench

# The laws, and what this compiler prints: monoids, facts, fusion steps, max eliminations, certificates.
proofs: tang need-proofs
	@$(MAKE) -C proofs -j $(JOBS) all
	@JOBS=$(JOBS) $(MAKE) -C proofs check
	@JOBS=$(JOBS) $(MAKE) -C proofs exported TANG="$(realpath .)/$(BUILD)/tang"

install: need-core
	@cmake -S . -B $(BUILD) -G Ninja -DTANG_TESTS=OFF -DTANG_UNITY=ALL > /dev/null
	@ninja -C $(BUILD) -j $(JOBS)
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD) $(BUILD)-test $(BUILD)-bench build-portable .rooms

need-core:   ; @sh tools/need.sh $(CORE)
need-tests:  ; @sh tools/need.sh $(TESTS)
need-drivers: ; @sh tools/need.sh $(DRIVERS)
need-peers:  ; @sh tools/need.sh $(PEERS)
need-web:    ; @sh tools/need.sh $(WEB)
need-proofs: ; @sh tools/need.sh $(PROOFS)
