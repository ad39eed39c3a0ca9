/* Begins files that check, plan and dispatch: they run once per call, and the elements are computed
   elsewhere. level_end.inl ends them. Clang compiles them for size, and GCC with -O1 less passes
   that find little in such code: 40 % of the time of -O2. Files that calls of a few elements spend
   their time in stay at the program's level. */
#define DVTI_LEVEL_PLAN 1
#if DVTI_LEVELS && defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif DVTI_LEVELS
#pragma GCC push_options
#pragma GCC optimize("O1,no-tree-pta,no-tree-dominator-opts,no-tree-ccp,no-tree-sra")
#endif
