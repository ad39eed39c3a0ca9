/* Begins a range of files that run rarely: drivers, printing, networks. level_end.inl ends it. GCC
   compiles them as those of level_size.inl, clang without optimization. */
#define DVTI_LEVEL_PLAN 0
#if DVTI_LEVELS && defined(__clang__)
#pragma clang optimize off
/* Without optimization a call that is never reached warns. */
#pragma push_macro("DVT_NOTE_BREAK")
#undef DVT_NOTE_BREAK
#define DVT_NOTE_BREAK(macro) ((void)0)
#elif DVTI_LEVELS
#pragma GCC push_options
#pragma GCC optimize(                                                                              \
    "Os,no-tree-pta,no-tree-dominator-opts,no-tree-ccp,no-tree-sra,no-tree-pre,no-tree-vrp",       \
    "no-gcse,no-expensive-optimizations,no-ipa-cp,no-ipa-sra,no-ipa-icf,no-tree-tail-merge",       \
    "no-thread-jumps,no-schedule-insns2")
#endif
