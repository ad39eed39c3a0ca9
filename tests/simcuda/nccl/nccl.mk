# The test double of NCCL.
CUDA_HOME ?= /usr/local/cuda
PROGRAMS += $(O)/lib/libnccl.so.2

$(O)/lib/libnccl.so.2: $(SIM)/nccl/nccl.c $(O)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I$(CUDA_HOME)/include -shared \
		-Wl,-soname,libnccl.so.2 $^ -o $@
