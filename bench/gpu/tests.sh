# The files of GPU tests, for first.sh and pack.sh. FIRST: the families of kernels that most
# programs need, and those that a simulated GPU shows least of. OTHERS: the other files.
FIRST="matmul_wgmma matmul_mma matmul elementwise reduce conv softmax norms copies sort"
OTHERS=
for file in tests/cuda/test_gpu_*.c; do
    name=${file#tests/cuda/test_gpu_}
    case " $FIRST " in
    *" ${name%.c} "*) ;;
    *) OTHERS="$OTHERS ${name%.c}" ;;
    esac
done

# Prints a sum of the sources that the programs and kernels of a pack are made of.
sum_of_sources() {
    cat devtensor.h bench/gpu/*.[ch] tests/cuda/*.[ch] tests/dvt_test.[ch] 2>/dev/null | cksum |
        cut -d ' ' -f 1
}
# Prints the commit, if this is a checkout; a + marks changes.
commit_here() {
    git rev-parse --short HEAD 2>/dev/null || return 0
    git diff --quiet HEAD 2>/dev/null || echo +
}
