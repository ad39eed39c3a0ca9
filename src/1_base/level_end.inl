/* Ends what level_cold.inl began. */
#if defined(__GNUC__) && !defined(__clang__) && DVTI_OPTIMIZED && !DVTI_OPTIMIZED_FOR_SIZE
#pragma GCC pop_options
#endif
