# Test programs: check_*.c, each with its own main, linked with the helpers of this directory and the translator.
CHECK_HELPERS = $(patsubst $(SIM)/check/%.c,$(O)/check/%.o,$(filter-out $(SIM)/check/check_%,$(wildcard $(SIM)/check/*.c)))
TRANSLATOR_CHECKS = $(patsubst $(SIM)/check/%.c,$(O)/check/%,$(wildcard $(SIM)/check/check_*.c))
CHECKS += $(TRANSLATOR_CHECKS)

# What the tests of the translator need, without the driver.
translator: $(TRANSLATOR_CHECKS) $(O)/lib/libnvrtc.so.13 $(O)/lib/libnvrtc.so.12 $(O)/lib/libnvrtc.so $(O)/bin/ptx2c

$(O)/check/%.o: $(SIM)/check/%.c
	@mkdir -p $(@D)
	$(SIM_CC) -Wno-overlength-strings -ffp-contract=off -c $< -o $@

$(O)/check/check_%: $(O)/check/check_%.o $(CHECK_HELPERS) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@ -ldl -lm -lpthread
