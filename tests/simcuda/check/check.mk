# Test programs: check_*.c, each with its own main, linked with the helpers beside it and the translator.
CHECK_HELPERS = $(patsubst $(SIM)/check/%.c,$(O)/check/%.o,$(filter-out $(SIM)/check/check_%,$(wildcard $(SIM)/check/*.c)))
CHECKS += $(patsubst $(SIM)/check/%.c,$(O)/check/%,$(wildcard $(SIM)/check/check_*.c))

$(O)/check/%.o: $(SIM)/check/%.c
	@mkdir -p $(@D)
	$(SIM_CC) -ffp-contract=off -c $< -o $@

$(O)/check/check_%: $(O)/check/check_%.o $(CHECK_HELPERS) $(PTX_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $^ -o $@ -ldl -lm -lpthread
