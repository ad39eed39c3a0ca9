# The driver, a second one with only the exports of a CUDA 11.4 driver, and their check programs.
# Part of tests/simcuda/Makefile. Alone it builds without the translator:
# make -f tests/simcuda/driver/driver.mk driver
O ?= build/simcuda
CC ?= cc
CFLAGS ?= -O2 -g
CUDA_HOME ?= /usr/local/cuda
SIM ?= tests/simcuda
DRIVER_CC = $(CC) -std=gnu11 $(CFLAGS) -fPIC -fvisibility=hidden -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wvla \
	-Werror -MMD -MP -isystem $(CUDA_HOME)/include
DRIVER_OBJECTS = $(patsubst $(SIM)/driver/%.c,$(O)/driver/%.o,$(wildcard $(SIM)/driver/*.c))
DRIVER_LIBRARIES = $(O)/lib/libcuda.so.1 $(O)/lib-11040/libcuda.so.1
DRIVER_CHECKS = $(patsubst %,$(O)/check/driver/%,correct planted streams memory graphs launches personalities compiled counts speed)
PROGRAMS += $(DRIVER_LIBRARIES)
CHECKS += $(DRIVER_CHECKS) $(O)/check/driver/kernels.so

driver: $(DRIVER_LIBRARIES) $(DRIVER_CHECKS) $(O)/check/driver/kernels.so

$(O)/driver/%.o: $(SIM)/driver/%.c
	@mkdir -p $(@D)
	$(DRIVER_CC) -c $< -o $@

$(O)/lib/libcuda.so.1: $(DRIVER_OBJECTS) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs $^ -o $@ -ldl -lm -lpthread

$(O)/lib-11040/libcuda.so.1: $(DRIVER_OBJECTS) $(PTX_OBJECTS) $(SIM)/driver/symbols.def $(SIM)/driver/exports.awk
	@mkdir -p $(@D)
	awk -v newest=11040 -f $(SIM)/driver/exports.awk $(SIM)/driver/symbols.def $(SIM)/driver/old_abi.c >$(@D)/exports.map
	$(CC) $(CFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(@D)/exports.map \
		$(DRIVER_OBJECTS) $(PTX_OBJECTS) -o $@ -ldl -lm -lpthread

$(O)/check/driver/check.o: $(SIM)/check/driver/check.c
	@mkdir -p $(@D)
	$(DRIVER_CC) -c $< -o $@

KERNELS = kernels.c kernels_right.c kernels_wrong.c
$(O)/check/driver/kernels.so: $(KERNELS:%=$(SIM)/check/driver/%) $(wildcard $(SIM)/check/driver/*.h) $(SIM)/sim_module.h
	@mkdir -p $(@D)
	$(filter-out -MMD -MP,$(DRIVER_CC)) -shared $(filter %.c,$^) -o $@

$(DRIVER_CHECKS): $(O)/check/driver/%: $(SIM)/check/driver/%.c $(O)/check/driver/check.o
	@mkdir -p $(@D)
	$(DRIVER_CC) $< $(O)/check/driver/check.o -o $@ -ldl -lm -lpthread

-include $(wildcard $(O)/driver/*.d $(O)/check/driver/*.d)

.PHONY: driver
