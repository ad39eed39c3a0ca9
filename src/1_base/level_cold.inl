/* Begins files that run rarely: devices, files, networks. level_end.inl ends them. GCC compiles
   them with -O1 where the program has -O2 or more. */
#if defined(__GNUC__) && !defined(__clang__) && DVTI_OPTIMIZED && !DVTI_OPTIMIZED_FOR_SIZE
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif
