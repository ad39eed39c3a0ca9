/* Begins a range of files that run once per call of milliseconds, or start long work on a GPU:
   gradients, files, CUDA, training. The few files that every operation on a GPU runs keep the
   program's level. level_end.inl ends the range. Both compilers optimize it for size, GCC without
   some passes that find little in such code. */
#define DVTI_LEVEL_PLAN 1
#if DVTI_LEVELS && defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif DVTI_LEVELS
#pragma GCC push_options
#pragma GCC optimize(                                                                              \
    "Os,no-tree-pta,no-tree-dominator-opts,no-tree-ccp,no-tree-sra,no-tree-pre,no-tree-vrp",       \
    "no-gcse,no-expensive-optimizations,no-ipa-cp,no-ipa-sra,no-ipa-icf,no-tree-tail-merge",       \
    "no-thread-jumps,no-schedule-insns2")
#endif
