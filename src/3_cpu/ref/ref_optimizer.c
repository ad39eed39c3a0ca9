/* Optimiser steps. */
#include "3_cpu/dvt_cpu.h"
