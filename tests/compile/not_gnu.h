/* Makes a GNU compiler look like one without attributes to the headers that follow; system headers
   are included before. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#undef __GNUC__
