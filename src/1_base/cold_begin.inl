/* Rooms that decide and describe, and leave the computing to others, begin here. GCC compiles them with -O1 where the program has -O2 or
   more: that takes a third off the library's compile time, and nothing that can be measured off its speed. cold_end.inl ends it. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif
