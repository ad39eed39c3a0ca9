/* Begins a range of files that check, plan and dispatch. They run once per call and compute no
   elements. level_end.inl ends it. Clang compiles them for size. GCC uses -O1 without some passes
   that find little in such code; that takes 40 % of the time of -O2. Files that dominate calls of a
   few elements keep the program's level. */
#define DVTI_LEVEL_PLAN 1
#if DVTI_LEVELS && defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif DVTI_LEVELS
#pragma GCC push_options
#pragma GCC optimize("O1,no-tree-pta,no-tree-dominator-opts,no-tree-ccp,no-tree-sra")
#endif
