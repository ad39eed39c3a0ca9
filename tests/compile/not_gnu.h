/* Makes a GNU compiler look like one that has no attributes to the headers that follow; the system's own are through by then. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#undef __GNUC__
