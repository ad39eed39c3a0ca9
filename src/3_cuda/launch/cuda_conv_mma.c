/* Convolution on the tensor cores (kernels/conv_mma.cu): which tiles there are, and when. The rest is cuda_conv.c's. */
#include "3_cuda/launch/cuda_conv.h"

#define DVTI_CUDA_CONV_MMA_TILES 3
static const dvti_cuda_conv_tile dvti_cuda_conv_mma_tile[DVTI_CUDA_CONV_MMA_TILES] = {
    {128, 128, 16, 1.0, 2, 4},
    {64, 64, 16, 0.6, 2, 2},
    {32, 128, 16, 0.55, 1, 4},
};

DVTI_FN void dvti_cuda_describe_conv_mma(uint64_t variant, dvti_text *text) {
    const dvti_cuda_conv_tile *tiles = dvti_cuda_conv_mma_tile;
    int how = dvti_cuda_conv_describe(variant, tiles, DVTI_CUDA_CONV_MMA_TILES, text);
    dvti_text_add(text, "#define MMA 1\n#define WARPS_M %d\n#define WARPS_N %d\n", tiles[how].down,
                  tiles[how].across);
}

DVTI_FN const dvti_cuda_conv_tile *dvti_cuda_conv_mma_tiles(const dvti_cuda_gpu *gpu,
                                                            const dvti_launch *launch, int *count) {
    dvt_dtype dtype = launch->out[0].dtype;
    bool tf32 = dtype == DVT_F32 && (launch->i[7] & 1);
    if (dvti_cuda_card_of(gpu)->cc < 80 || (dtype != DVT_F16 && dtype != DVT_BF16 && !tf32))
        return NULL;
    *count = DVTI_CUDA_CONV_MMA_TILES;
    return dvti_cuda_conv_mma_tile;
}

#undef DVTI_CUDA_CONV_MMA_TILES
