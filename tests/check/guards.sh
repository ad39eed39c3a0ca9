#!/bin/sh
# Makes changes to a copy of the sources that the generators, and the list of public declarations,
# must reject with the right reason. Environment: BUILD, CC, PYTHON.
. tests/lib.sh
D=$BUILD/guards
fresh() {
    rm -rf "$D"
    mkdir -p "$D"
    cp -r src tools devtensor.h devtensor_kernels.cu.inc "$D/"
}
refuses() { # text that the message must contain, after the change
    if $PYTHON "$D/tools/call_sites.py" --check >"$D/said" 2>&1 &&
        $PYTHON "$D/tools/amalgamate.py" --check >"$D/said" 2>&1; then
        fail "guards" "not refused: $1"
    elif grep -q "$1" "$D/said" && grep -q "Why: " "$D/said" && grep -q "Fix: " "$D/said"; then
        pass
    else
        fail "guards" "instead of '$1': $(cat "$D/said")"
    fi
}
add() { printf '%s\n' "$2" >>"$D/src/$1"; }
core=2_core/dvt_shape.c

fresh
try "an unchanged copy" \
    sh -c "$PYTHON $D/tools/call_sites.py --check && $PYTHON $D/tools/amalgamate.py --check"
fresh; add $core '/* edited */'; refuses 'stale: devtensor.h'
fresh; echo '/* edited by hand */' >>"$D/devtensor.h"; refuses 'stale: devtensor.h'
fresh; mkdir -p "$D/src/3_cuda/kernels"; echo '// edited' >>"$D/src/3_cuda/kernels/a.cu"
refuses 'stale: devtensor_kernels.cu.inc'
fresh; add 0_api/dvt_array.h 'DVT_API dvt_array *dvt_one_more(dvt_array *x);'
refuses 'stale: dvt_call_sites.h'
fresh; add $core '#include "4_ops/dvt_op.h"'; refuses '2_core may not know 4_ops'
fresh; add 5_grad/grad_view.c '#include "5_io/dvt_io_internal.h"'
refuses '5_grad may not know 5_io'
fresh; add 3_cpu/dvt_cpu.h '#include "3_cuda/dvt_cuda.h"'; refuses '3_cpu may not know 3_cuda'
fresh; echo '/* lost */' >"$D/src/2_core/lost.c"
refuses 'not reachable from the spine: src/2_core/lost.c'
fresh; add $core '#include "2_core/nothing.h"'; refuses 'which is not there'
fresh; echo 'int dvti_x;' >"$D/src/2_core/lost.c"
add devtensor_spine.h '#include "2_core/lost.c"'; refuses 'does not begin with a comment'
fresh; add $core '#include <stdio.h>'; refuses 'includes <stdio.h>'
fresh; add 0_api/dvt_io.h '#include <stdio.h>'; refuses 'includes <stdio.h>'
fresh; add $core 'static CUdevice dvti_gpu;'; refuses 'names CUdevice'
fresh; add 4_ops/op_view.c 'static void f(dvti_device *d) { d->backend->upload(d, 0, 0, 0); }'
refuses 'moves bytes'
fresh; add $core '#if 1'; refuses 'ends inside an #if'
fresh
awk 'BEGIN { for (i = 0; i < 1001; i++) print "/* line */" }' >>"$D/src/$core"
refuses 'the limit is 1000'
fresh; add 2_core/dvt_core.h '#if defined(DEVTENSOR_X)
#include "2_core/new.h"
#endif'
echo '/* new */' >"$D/src/2_core/new.h"; add $core '#include "2_core/new.h"'
refuses 'pasted above under'
fresh; echo '/* new */' >"$D/src/4_ops/new.h"; add 4_ops/op_view.c '#include "4_ops/new.h"'
refuses 'first after 1_base/level_plan.inl'
fresh; sed '/isa_target.inl/d' "$D/src/3_cpu/simd/target_avx2.c" >"$D/t"
for target in avx2 avx512 plain; do cp "$D/t" "$D/src/3_cpu/simd/target_$target.c"; done
refuses 'isa_target.inl is not included'
fresh; add $core '/* a comment with #include "4_ops/dvt_op.h" and CUdevice is allowed */'
refuses 'stale: devtensor.h'

breaks() { # text that the message must contain, after a change of the public declarations
    (cd "$D" && $PYTHON "$OLDPWD/tests/check/api_list.py") >"$D/said" 2>&1 &&
        fail "guards" "not refused: $1" && return
    if grep -q -e "$1" "$D/said" && grep -q "Why: $2" "$D/said" && grep -q "Fix: " "$D/said"; then
        pass
    else
        fail "guards" "instead of '$1': $(cat "$D/said")"
    fi
}
swap() { sed "s/$2/$3/" "$D/src/0_api/$1" >"$D/t" && cp "$D/t" "$D/src/0_api/$1"; }
broken='a removed or changed line'
fresh; swap dvt_array.h 'DVT_API int dvt_ndim' 'DVT_API int64_t dvt_ndim'
breaks '^- function int dvt_ndim(const dvt_array \*)$' "$broken"
fresh; swap dvt_types.h '    DVT_F64,' ''; breaks '^- enum dvt_dtype: DVT_F64 = 1$' "$broken"
fresh; swap dvt_types.h 'bool keepdims;' 'int keepdims;'
breaks '^- struct dvt_axes, field 3: bool keepdims$' "$broken"
fresh; swap dvt_types.h 'DVT_SCALAR ' 'DVT_NO_AXES '; breaks '^- macro DVT_SCALAR$' "$broken"
fresh; swap dvt_config.h ' DEVTENSOR_ISA ' ' DEVTENSOR_CPU '
breaks '^- variable DEVTENSOR_ISA$' "$broken"
fresh; add 0_api/dvt_array.h 'DVT_API dvt_array *dvt_one_more(dvt_array *x);'
breaks '^+ function dvt_array \*dvt_one_more(dvt_array \*)$' 'tests/check/api.txt lists all'
rm -rf "$D"
finish
