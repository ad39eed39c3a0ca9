# The parts of the suite of the CUDA backend, the longest first, so that none runs alone at the end.
# Each file test_gpu_*.c is a part, and each directory with a script of its name.
CUDA_FILES=$(cd tests/cuda && ls test_gpu_*.c | sed 's/^test_gpu_\(.*\)[.]c$/gpu-\1/')
CUDA_DIRECTORIES=$(for name in faults drivers orders exit compiling rehearsal first model; do
    [ ! -f "tests/cuda/$name/$name.sh" ] || echo $name
done)
CUDA_LONGEST="compile rehearsal gpu-matmul_wgmma units gpu-conv gpu-elementwise gpu-matmul"
CUDA_LONGEST="$CUDA_LONGEST simcuda-check gradients faults orders gpu-reduce tutorials model"
# Plans depend on the number of multiprocessors; make test-long also runs those of a large GPU.
[ -z "$DVT_TEST_FULL" ] || CUDA_LONGEST="processors $CUDA_LONGEST"
CUDA_PARTS=$CUDA_LONGEST
for part in simcuda-check simcuda-driver blocks compile $CUDA_FILES $CUDA_DIRECTORIES cache \
    examples headers; do
    case " $CUDA_LONGEST " in
    *" $part "*) ;;
    *) CUDA_PARTS="$CUDA_PARTS $part" ;;
    esac
done
