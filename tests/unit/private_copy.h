/* Selects a private copy of the library, whose internals the including test sees. It leaves out
   what these tests do not need, and compiles in a fifth of the time. */
#define DEVTENSOR_STATIC
#undef DEVTENSOR_NO_SIMD
#define DEVTENSOR_NO_SIMD
#undef DEVTENSOR_NO_CUDA
#define DEVTENSOR_NO_CUDA
#undef DEVTENSOR_NO_NN
#define DEVTENSOR_NO_NN
#undef DEVTENSOR_NO_FORMATS
#define DEVTENSOR_NO_FORMATS
