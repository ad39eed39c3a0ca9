# The test double of NCCL.
CUDA_HOME ?= /usr/local/cuda
PROGRAMS += $(O)/lib/libnccl.so.2

$(O)/lib/libnccl.so.2: $(SIM)/nccl/nccl.c $(SIM)/nccl/shared.c $(O)/lib/libcuda.so.1 $(SIM)/nccl/shared.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I$(CUDA_HOME)/include -shared \
		-Wl,-soname,libnccl.so.2 $(filter-out %.h,$^) -o $@
