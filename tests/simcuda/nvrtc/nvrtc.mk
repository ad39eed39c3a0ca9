# The test double of NVRTC, under the names that programs open.
NVRTC_OBJECTS = $(patsubst $(SIM)/nvrtc/%.c,$(O)/nvrtc/%.o,$(wildcard $(SIM)/nvrtc/*.c))
PROGRAMS += $(O)/lib/libnvrtc.so.13 $(O)/lib/libnvrtc.so.12 $(O)/lib/libnvrtc.so

$(O)/nvrtc/%.o: $(SIM)/nvrtc/%.c
	@mkdir -p $(@D)
	$(SIM_CC) -c $< -o $@

$(O)/lib/libnvrtc.so.13: $(NVRTC_OBJECTS) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libnvrtc.so.13 $^ -o $@ -ldl -lpthread

$(O)/lib/libnvrtc.so.12: $(NVRTC_OBJECTS) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -Wl,-soname,libnvrtc.so.12 $^ -o $@ -ldl -lpthread

$(O)/lib/libnvrtc.so: $(O)/lib/libnvrtc.so.13
	ln -sf libnvrtc.so.13 $@
