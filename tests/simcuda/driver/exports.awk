# Prints a linker map of the exports that are not newer than `newest`, from symbols.def and old_abi.c.
BEGIN { print "{ global:" }
/^SYMBOL\(/ { split($0, f, /[(), ]+/); if (f[4] <= newest) print f[3] ";" }
/^OLD\(/ { split($0, f, /[()]/); print f[2] ";" }
END { print "sim_*; local: *; };" }
