# The translator as objects, for the libraries that turn PTX into modules; and ptx2c.
PTX_OBJECTS = $(patsubst $(SIM)/ptx/%.c,$(O)/ptx/%.o,$(filter-out %/ptx2c.c,$(wildcard $(SIM)/ptx/*.c)))
PROGRAMS += $(O)/bin/ptx2c $(O)/lib/libptx.a

$(O)/ptx/%.o: $(SIM)/ptx/%.c
	@mkdir -p $(@D)
	$(SIM_CC) -DPTX_DIR='"$(SIM)/ptx"' -c $< -o $@

# .incbin is not seen by -MMD
$(O)/ptx/ptx_prelude.o: $(wildcard $(SIM)/ptx/rt/*.h) $(SIM)/sim_module.h

$(O)/lib/libptx.a: $(PTX_OBJECTS)
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rcs $@ $^

$(O)/bin/ptx2c: $(O)/ptx/ptx2c.o $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@
