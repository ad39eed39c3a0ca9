/* Ends a range that level_plan.inl, level_size.inl or level_cold.inl began. */
#if DVTI_LEVELS && defined(__clang__) && DVTI_LEVEL_PLAN
#pragma clang attribute pop
#elif DVTI_LEVELS && defined(__clang__)
#pragma clang optimize on
#pragma pop_macro("DVT_NOTE_BREAK")
#elif DVTI_LEVELS
#pragma GCC pop_options
#endif
#undef DVTI_LEVEL_PLAN
