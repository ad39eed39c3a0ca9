# The parts of the suite of the CUDA backend, the longest first, so that none is left to run alone at the end. A file of card tests is a
# part, and a folder with a script of its name.
CUDA_FILES=$(cd tests/cuda && ls test_card_*.c | sed 's/^test_card_\(.*\)[.]c$/card-\1/')
CUDA_FOLDERS=$(for folder in faults drivers orders exit rehearsal; do [ ! -f "tests/cuda/$folder/$folder.sh" ] || echo $folder; done)
CUDA_LONGEST="compile card-reduce card-elementwise faults gradients units orders tutorials card-conv card-matmul"
CUDA_PARTS=$CUDA_LONGEST
for part in simcuda-check simcuda-driver blocks compile $CUDA_FILES $CUDA_FOLDERS cache examples headers; do
    case " $CUDA_LONGEST " in
    *" $part "*) ;;
    *) CUDA_PARTS="$CUDA_PARTS $part" ;;
    esac
done
