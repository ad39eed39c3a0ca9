"""devtensor for Python: arrays on contexts, gradients, and the array API standard's namespace.

One file over the shared library of devtensor.h (`make shared`), with the standard library only. The
library is found by DEVTENSOR_LIBRARY, next to this file, or in build/ of the source tree.

Array wraps a dvt_array. `lib.NAME` calls dvt_NAME of C with errors as exceptions, for all that has
no function here. `const.NAME` is the enumerator DVT_NAME. docs/PYTHON.md describes the module.
"""
import atexit
import builtins as py  # this module has its own abs, all, any, bool, max, min, pow, round and sum
import collections
import ctypes
import gc
import glob
import itertools
import logging
import math
import numbers
import operator
import os
import sys
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p
from types import SimpleNamespace

__version__ = "0.1.0"
__array_api_version__ = "2025.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

# ---- generated: begin ----
# By tools/python_api.py: do not edit. name:result:arguments, see _LETTERS. A * marks results that
# another object owns. Left out: get_virtual_model, get_jit_stats, arg_array, arg_int, arg_real,
# block_mixed_precision, schedule_custom, transform_new, loader_get_state.
_SIGNATURES = """
empty:a:SiC zeros:a:SiC ones:a:SiC full:a:SdiC zeros_like:a:p ones_like:a:p full_like:a:pd
scalar:a:diC eye:a:qqqiC arange:a:dddiC linspace:a:ddqiC from_host:a:pSiC from_memory:a:pSpippC
shape_of:S:p ndim:i:p dim:q:pi size:q:p nbytes:q:p dtype_of:i:p ctx_of:C:p stride:q:pi
is_contiguous:?:p shares_memory:?:pp made_at:s:p data:p:p mark_written:e:p to_host:e:ppq
set_from_host:e:ppq item:d:p item_int:q:p item_at:d:pS slice:a:piqqq rows:a:pqq index:a:pq t:a:p
transpose:a:pX swapaxes:a:pii reshape:a:pS flatten:a:p expand_dims:a:pi squeeze:a:pX
broadcast_to:a:pS contiguous:a:p copyto:a:pC as_in_ctx:a:pC copy:a:p copy_into:a:pp astype:a:pi
as_in_dtype:a:pi fill:a:pd record_begin:R:ii record_end:v:p is_recording:?: is_training:?:
attach_grad:e:pi grad:a*:p zero_grad:e:p backward:e:p backward_from:e:ppii gradients:e:ppipiip
detach:a:p has_history:?:p checkpoint_save:e:ps checkpoint_load:e:ps checkpoint_latest:?:spz
checkpoint_keep_best:e:psii cpu:C: cpu_id:C:i gpu:C:i tpu:C:i ctx_equal:?:CC ctx_name:s:C
ctx_parse:e:sp ctx_list_format:z:Lpz num_gpus:i: gpu_reason:s: try_gpu:C:i num_tpus:i:
try_tpu_gpu:C:i try_all_gpus:L: try_all_gpus_or_cpu:L: default_ctx:C: ctx_scope_begin:H:C
ctx_scope_end:v:p set_virtual_gpus:e:iq set_virtual_model:e:p virtual_seconds:d: device_query:e:Cp
devices_format:z:pz print_devices:v: get_stats:T: reset_stats:v: set_transfer_guard:i:i wait:e:p
synchronize:e:C wait_all:e: allow_tf32:?:? allow_tf32x3:?:? allow_winograd:?:? set_num_threads:e:i
num_threads:i: cpu_isa:s: set_cpu_isa:e:s cpu_query:e:p seconds:d: trainer_set_parts:e:pi
trainer_next_part:?:ppppp trainer_add_loss:e:pp trainer_loss:d:p distributed_init:e:
distributed_end:e: rank:i: num_ranks:i: all_reduce_ranks:e:p broadcast_ranks:e:pi barrier_ranks:e:
rank_bytes:q: trainer_set_bucket_bytes:e:pq from_dlpack:a:p from_dlpack_versioned:a:p to_dlpack:p:p
to_dlpack_versioned:p:pi memory_query:e:Cp trim_memory:q:C set_memory_limit:e:qC prewarm:e:C
cuda_stream:p:C set_cuda_stream:e:pC cuda_order_after:e:pC cuda_order_before:e:pC cuda_address:Q:p
empty_pinned:a:SiC print:e:p print_file:e:pp set_print_style:i:i ctx_format:z:Cipz format:e:pppzp
array_list_len:i:p array_list_at:a*:pi array_list_name:s:pi array_list_find:a*:ps
array_list_metadata:s:ps array_list_metadata_at:s:pip save_npy:e:sp load_npy:a:sC save_params:e:sppi
load_params:array_list:sC save_safetensors:e:sppip load_safetensors:array_list:sC
save_safetensors_shards:e:sppipq save_gguf:e:sppip load_gguf:array_list:sC load_arrays:array_list:sC
save_arrays:e:sppi save_idx:e:sp load_idx:a:sC save_npz:e:sppi save_npz_compressed:e:sppi
load_npz:array_list:sC load_image:a:sC save_image:e:sp read_npy:a:pzC read_params:array_list:pzC
read_safetensors:array_list:pzC read_gguf:array_list:pzC read_arrays:array_list:pzC read_idx:a:pzC
read_npz:array_list:pzC read_image:a:pzC load_csv:a:spC read_csv:a:pzpC
load_csv_columns:array_list:spC read_csv_columns:array_list:pzpC save_csv:e:spp load_bytes:a:sC
save_bytes:e:sp map_arrays:array_list:sC map_npy:a:sC map_bytes:a:sC save_cifar10:e:spp
save_cifar100:e:sppp read_cifar10:e:pzpp read_cifar100:e:pzipp kernel_new:kernel:ss
kernel_expression:kernel:ss kernel_set_host:e:ppp kernel_set_element:e:ppp kernel_launch:e:pSSqpq
kernel_apply:a:ppq loss_softmax_cross_entropy:a:pp loss_softmax_cross_entropy_with:a:ppp
loss_nll:a:pp loss_l1:a:pp loss_l2:a:pp loss_huber:a:ppd loss_sigmoid_bce:a:pp
loss_sigmoid_bce_weighted:a:ppp loss_kl_div:a:pp? loss_hinge:a:ppd loss_squared_hinge:a:ppd
loss_poisson_nll:a:pp? loss_triplet:a:pppd loss_cosine_embedding:a:pppd shape_make:S:iqqqqqqqq
axes_make:X:iiiiiiiii ctx_list_make:L:iCCCCCCCC nn_sequential_add:e:pipppppppppppppppp
from_values:a:pqSiC init_uniform:N:d init_normal:N:d init_xavier:N: init_msra:N:id init_zero:N:
init_one:N: init_constant:N:d param_name:s:p param_shape:S:p param_data:a*:pC param_grad:a*:pC
param_ctxs:L:p param_set_data:e:pp param_set_grad_req:e:pi param_set_lr_mult:e:pd
param_set_wd_mult:e:pd param_set_init:e:pN block_collect_params:params:ps params_len:i:p
params_at:param*:pi params_find:param*:ps params_initialize:e:pNL params_reinitialize:e:pNL
params_reset_ctx:e:pL params_set_grad_req:e:pi params_zero_grad:e:p nn_sequential:block:
nn_dense:block:qi nn_dense_with:block:p nn_conv2d:block:qii nn_conv2d_with:block:p
nn_conv2d_transpose:block:qiii nn_conv2d_transpose_with:block:p nn_conv1d:block:qii
nn_conv1d_transpose:block:qiii nn_conv1d_with:block:p nn_conv1d_transpose_with:block:p
nn_max_pool2d:block:ii nn_avg_pool2d:block:ii nn_max_pool2d_with:block:p nn_avg_pool2d_with:block:p
nn_global_avg_pool2d:block: nn_max_pool1d:block:ii nn_avg_pool1d:block:ii
nn_global_avg_pool1d:block: nn_adaptive_avg_pool2d:block:qq nn_upsample2d:block:i?
nn_upsample2d_with:block:p nn_flatten:block: nn_activation:block:i nn_leaky_relu:block:d
nn_elu:block:d nn_prelu:block:q nn_dropout:block:d nn_batch_norm:block: nn_batch_norm_with:block:p
nn_layer_norm:block: nn_rms_norm:block:d nn_group_norm:block:i nn_instance_norm:block:?
nn_embedding:block:qq block_new:block:p block_add_param:param*:psSiN param_set_shape:e:pS
block_add_child:e:pp block_len:i:p block_at:block*:pi block_param:param*:ps block_data:a*:psC
block_kind:s:p block_user:p:p block_initialize:e:pNL block_reinitialize:e:pNL block_forward:a:pp
block_infer_shapes:e:pSip block_format:z:ppz block_print:v:p block_print_summary:e:pS
block_measure:e:pSp block_save:e:ps block_load:e:psL block_load_with:e:pspL
block_set_mixed_precision:e:pi block_set_loss_scaling:e:pp nn_rnn:block:q nn_lstm:block:q
nn_gru:block:q nn_rnn_with:block:p nn_lstm_with:block:p nn_gru_with:block:p
recurrent_forward:a:pppip attention:a:ppppp rotary:a:pp add:a:pp add_:a:pp add_scalar:a:pd
add_scalar_:a:pd scalar_add:a:dp sub:a:pp sub_:a:pp sub_scalar:a:pd sub_scalar_:a:pd scalar_sub:a:dp
mul:a:pp mul_:a:pp mul_scalar:a:pd mul_scalar_:a:pd scalar_mul:a:dp div:a:pp div_:a:pp
div_scalar:a:pd div_scalar_:a:pd scalar_div:a:dp floor_div:a:pp floor_div_:a:pp
floor_div_scalar:a:pd floor_div_scalar_:a:pd scalar_floor_div:a:dp mod:a:pp mod_:a:pp
mod_scalar:a:pd mod_scalar_:a:pd scalar_mod:a:dp pow:a:pp pow_:a:pp pow_scalar:a:pd pow_scalar_:a:pd
scalar_pow:a:dp minimum:a:pp minimum_:a:pp minimum_scalar:a:pd minimum_scalar_:a:pd
scalar_minimum:a:dp maximum:a:pp maximum_:a:pp maximum_scalar:a:pd maximum_scalar_:a:pd
scalar_maximum:a:dp atan2:a:pp atan2_:a:pp atan2_scalar:a:pd atan2_scalar_:a:pd scalar_atan2:a:dp
hypot:a:pp hypot_:a:pp hypot_scalar:a:pd hypot_scalar_:a:pd scalar_hypot:a:dp equal:a:pp
equal_scalar:a:pd scalar_equal:a:dp not_equal:a:pp not_equal_scalar:a:pd scalar_not_equal:a:dp
less:a:pp less_scalar:a:pd scalar_less:a:dp less_equal:a:pp less_equal_scalar:a:pd
scalar_less_equal:a:dp greater:a:pp greater_scalar:a:pd scalar_greater:a:dp greater_equal:a:pp
greater_equal_scalar:a:pd scalar_greater_equal:a:dp logical_and:a:pp logical_and_scalar:a:pd
scalar_logical_and:a:dp logical_or:a:pp logical_or_scalar:a:pd scalar_logical_or:a:dp
logical_xor:a:pp logical_xor_scalar:a:pd scalar_logical_xor:a:dp neg:a:p neg_:a:p abs:a:p abs_:a:p
sign:a:p sign_:a:p square:a:p square_:a:p relu:a:p relu_:a:p floor:a:p floor_:a:p ceil:a:p ceil_:a:p
round:a:p round_:a:p trunc:a:p trunc_:a:p reciprocal:a:p reciprocal_:a:p sqrt:a:p sqrt_:a:p
rsqrt:a:p rsqrt_:a:p exp:a:p exp_:a:p exp2:a:p exp2_:a:p expm1:a:p expm1_:a:p log:a:p log_:a:p
log2:a:p log2_:a:p log10:a:p log10_:a:p log1p:a:p log1p_:a:p sin:a:p sin_:a:p cos:a:p cos_:a:p
tan:a:p tan_:a:p asin:a:p asin_:a:p acos:a:p acos_:a:p atan:a:p atan_:a:p sinh:a:p sinh_:a:p
cosh:a:p cosh_:a:p tanh:a:p tanh_:a:p sigmoid:a:p sigmoid_:a:p softplus:a:p softplus_:a:p erf:a:p
erf_:a:p gelu:a:p gelu_:a:p isnan:a:p isinf:a:p isfinite:a:p logical_not:a:p where:a:ppp
where_scalar:a:ppd scalar_where:a:pdp clip:a:pdd clip_:a:pdd sum:a:pX prod:a:pX mean:a:pX var:a:pXd
std:a:pXd min:a:pX max:a:pX argmin:a:pX argmax:a:pX any:a:pX all:a:pX norm:a:pX logsumexp:a:pX
isclose:a:ppddi allclose:?:ppddi array_equal:?:ppi cumsum:a:pi sort:a:pii argsort:a:pii topk:a:pqiip
softmax:a:pi log_softmax:a:pi matmul:a:pp matmul_with:a:ppp dot:a:pp concat:a:pii stack:a:pii
split:e:piip array_split:e:piip take:a:ppi take_along_axis:a:ppi pick:a:ppX one_hot:a:pqi
conv2d:a:pppp conv1d:a:pppp conv2d_transpose:a:pppp conv1d_transpose:a:pppp max_pool2d:a:pp
avg_pool2d:a:pp max_pool1d:a:pp avg_pool1d:a:pp adaptive_avg_pool2d:a:pqq upsample2d:a:pp
leaky_relu:a:pd prelu:a:pp elu:a:pd selu:a:p silu:a:p mish:a:p hard_sigmoid:a:p hard_swish:a:p
glu:a:pi swiglu:a:pi linear:a:ppp dropout:a:pd batch_norm:a:pppppidd layer_norm:a:pppd
rms_norm:a:ppd group_norm:a:pippd instance_norm:a:pppd event_record:event:C event_done:?:p
event_wait:e:p event_elapsed:d:pp range_push:e:s range_pop:e: seed:v:Q seed_ctx:v:QC uniform:a:ddSiC
normal:a:ddSiC randint:a:qqSiC bernoulli:a:dSiC permutation:a:qC key_new:K:Q key_split:v:Kip
key_fold_in:K:KI key_uniform:a:KddSiC key_normal:a:KddSiC key_randint:a:KqqSiC key_bernoulli:a:KdSiC
key_permutation:a:KqC set_rng_engine:i:i trace_begin:e:s trace_begin_to:e:pp trace_end:e:
transfers_format:z:pz print_transfers:v: histogram_of:e:pip histogram_format:z:ppz
print_histogram:e:pi image_grid:a:pqq confusion_matrix:a:ppq confusion_save:e:pps board_new:board:s
board_scalar:e:psdq board_histogram:e:pspq board_image:e:pspq board_text:e:pssq scope_begin:G:
scope_end:v:p keep:p:p retain:p:p release:v:p discard:v:p discard_all:v: error_code:e: error:s:
error_site:s: clear_error:v: status_name:s:i status_meaning:s:i status_fix:s:i set_logger:v:pp
set_log_level:v:i set_allocator:v:p version:s: version_number:i: schedule_factor:U:qdd
schedule_multi_factor:U:pid schedule_poly:U:qdd schedule_cosine:U:qd schedule_rate:d:pdq
optimizer_sgd:O:d optimizer_adam:O:d optimizer_adamw:O:dd optimizer_rmsprop:O:d
optimizer_adagrad:O:d optimizer_custom:O:pd trainer_new:trainer:pO trainer_step:e:pq
trainer_step_partial:e:pq trainer_allreduce:e:p trainer_update:e:pq trainer_learning_rate:d:p
trainer_set_learning_rate:e:pd trainer_steps:q:p clip_global_norm:d:pid
trainer_clip_global_norm:d:pd dataset_arrays:dataset:pp dataset_idx:dataset:ss
dataset_fashion_mnist:dataset:si dataset_mnist:dataset:si dataset_cifar10:dataset:si
dataset_cifar100:dataset:sii dataset_len:q:p dataset_get:e:pqpp transform_to_tensor:transform:
transform_normalize:transform:ppi transform_compose:transform:pi transform_apply:a:pp
dataset_transform_first:dataset:pp dataset_transform_second:dataset:pp dataset_split:e:ppiQp
transform_one_hot:transform:q transform_center_crop:transform:qq transform_random_crop:transform:qqq
transform_random_flip:transform:d transform_resize:transform:qq transform_color_jitter:transform:ddd
mixup:e:ppdKpp loader_new:loader:pp loader_len:q:p loader_next:?:ppp loader_next_parts:?:ppp
loader_reset:v:p loader_set_state:e:pp split_and_load:e:pLp array_split_and_load:e:pLp
metric_accuracy:metric: metric_top_k_accuracy:metric:i metric_mean_loss:metric:
metric_custom:metric:p metric_update:e:ppp metric_get:d:p metric_name:s:p metric_reset:v:p
progress_new:progress:sq progress_update:v:pqd progress_finish:v:p progress_format:z:pdipz
curve_new:curve:sss curve_add:e:psdd curve_set_log:e:p?? curve_save:e:ps dtype_name:s:i
dtype_parse:e:sp dtype_size:q:i dtype_is_float:?:i dtype_is_int:?:i promote:i:ii shape_equal:?:SS
shape_size:q:S keepdims:X:X
"""
_CONSTANTS = """
ERR_OK=0 ERR_HOST_MEMORY=101 ERR_DEVICE_MEMORY=102 ERR_IO=103 ERR_FORMAT=104 ERR_RANK_LOST=110
ERR_NULL_ARGUMENT=201 ERR_SHAPE=202 ERR_DTYPE=203 ERR_AXIS=204 ERR_RANGE=205 ERR_CONTEXT=206
ERR_VALUE=207 ERR_GRAD=208 ERR_UNINITIALIZED=209 ERR_STALE_GRAD=210 ERR_NAME=211 ERR_NOT_BUILT=301
ERR_NO_DEVICE=401 ERR_DEVICE_LOST=402 ERR_UNSUPPORTED=403 ERR_FORKED=404 ERR_NO_COMPILER=405
ERR_INTERNAL=901 GRAD_WRITE=0 GRAD_ADD=1 GRAD_NULL=2 UNCHANGED=-1 OFF=0 ON=1 FREE_GRAPH=0
RETAIN_GRAPH=1 CREATE_GRAPH=2 TRANSFER_ALLOW=0 TRANSFER_LOG=1 TRANSFER_FORBID=2 DL_CPU=1 DL_CUDA=2
DL_CUDA_HOST=3 DL_CUDA_MANAGED=13 DL_INT=0 DL_UINT=1 DL_FLOAT=2 DL_BFLOAT=4 DL_BOOL=6
DL_COPY_IF_NEEDED=0 DL_COPY_ALWAYS=1 DL_COPY_NEVER=2 PRINT_MXNET=0 PRINT_NP=1 PRINT_STR=2
PRINT_JAX=3 PRINT_TORCH=4 PRINT_TF=5 PRINT_DEFAULT=6 CIFAR100_FINE=0 CIFAR100_COARSE=1 ARG_NONE=0
ARG_IN=1 ARG_OUT=2 ARG_INOUT=3 ARG_INT32=4 ARG_INT64=5 ARG_FLOAT=6 ARG_DOUBLE=7 INIT_DEFAULT=0
INIT_UNIFORM=1 INIT_NORMAL=2 INIT_XAVIER=3 INIT_MSRA=4 INIT_ZERO=5 INIT_ONE=6 INIT_CONSTANT=7
FAN_AVG=0 FAN_IN=1 FAN_OUT=2 IDENTITY=0 RELU=1 SIGMOID=2 TANH=3 SOFTPLUS=4 GELU=5 SELU=6 SILU=7
MISH=8 HARD_SIGMOID=9 HARD_SWISH=10 TNC=0 NTC=1 NAN_DIFFERS=0 NAN_EQUALS=1 ASCENDING=0 DESCENDING=1
LARGEST=0 SMALLEST=1 RNG_PHILOX=0 RNG_MXNET=1 RNG_JAX=2 LOG_DEBUG=0 LOG_INFO=1 LOG_WARNING=2
LOG_ERROR=3 LOG_OFF=4 SCHEDULE_CONSTANT=0 SCHEDULE_FACTOR=1 SCHEDULE_MULTI_FACTOR=2 SCHEDULE_POLY=3
SCHEDULE_COSINE=4 SCHEDULE_CUSTOM=5 OPTIMIZER_SGD=0 OPTIMIZER_ADAM=1 OPTIMIZER_ADAMW=2
OPTIMIZER_RMSPROP=3 OPTIMIZER_ADAGRAD=4 OPTIMIZER_CUSTOM=5 DATASET_TRAIN=0 DATASET_TEST=1
LAST_KEEP=0 LAST_DISCARD=1 LAST_ROLLOVER=2 F32=0 F64=1 F16=2 BF16=3 I8=4 U8=5 I32=6 I64=7 BOOL=8
DEVICE_DEFAULT=0 DEVICE_CPU=1 DEVICE_GPU=2 DEVICE_TPU=3 DEVICE_META=4
"""
# ---- generated: end ----


# ---- structs of C: name:letter, and the length of arrays. tests/python compares them with C ----
def _encoded(text):
    data = os.fsencode(text)
    if b"\0" in data:
        raise ValueError(f"embedded null character in {text!r}")
    return data


class _Text:
    @staticmethod
    def from_param(text):
        return c_char_p.from_param(text if text is None else _encoded(text))


# Letters of _SIGNATURES and of structs. In results "a" is an array, "e" a status, and words are
# other objects. The structs are added below.
_LETTERS = {
    "v": None, "?": ctypes.c_bool, "i": c_int, "I": ctypes.c_uint32, "q": c_int64,
    "Q": ctypes.c_uint64, "z": c_size_t, "d": ctypes.c_double, "s": _Text, "p": c_void_p,
    "B": ctypes.c_uint8
}


def _struct(letter, name, fields):
    rows = []
    for field in fields.split():
        field, kind = field.split(":")
        kind, length = kind[0], kind[1:]
        rows.append((field, _LETTERS[kind] * int(length) if length else _LETTERS[kind]))
    _LETTERS[letter] = type(name, (ctypes.Structure,), {"_fields_": rows, "__module__": __name__})
    return _LETTERS[letter]


Shape = _struct("S", "Shape", "ndim:i dim:q8")
Axes = _struct("X", "Axes", "n:i axis:i8 keepdims:?")
Context = _struct("C", "Context", "type:i id:i")
ContextList = _struct("L", "ContextList", "n:i ctx:C32")
Key = _struct("K", "Key", "word:I2")
ScopeGuard = _struct("G", "ScopeGuard", "mark:z depth:i once:i")
ContextGuard = _struct("H", "ContextGuard", "previous:C once:i")
RecordGuard = _struct("R", "RecordGuard", "recording:i training:i once:i")
Stats = _struct("T", "Stats", "to_device_count:q to_device_bytes:q to_host_count:q to_host_bytes:q "
                "between_devices_count:q between_devices_bytes:q kernels:q waits:q "
                "implicit_reads:q arrays:q blocks_of_memory:q")
Init = _struct("N", "Init", "kind:i value:d fan:i gaussian:?")
Schedule = _struct("U", "Schedule", "kind:i factor:d minimum:d final:d power:d every:q total:q "
                   "at:q16 n_at:i warmup:q warmup_begin:d rate:p user:p")
OptimizerDesc = _struct("D", "OptimizerDesc", "name:p states:i step:p user:p")
Optimizer = _struct("O", "Optimizer", "kind:i learning_rate:d weight_decay:d momentum:d nesterov:? "
                    "beta1:d beta2:d rho:d centered:? epsilon:d clip_gradient:d schedule:U "
                    "custom:D")
PrintOptions = _struct("P", "PrintOptions", "style:i precision:i threshold:q edge_items:i "
                       "line_width:i suppress:?")
DLTensor = _struct("1", "DLTensor", "data:p device_type:i device_id:i ndim:i dtype:B4 shape:p "
                   "strides:p byte_offset:Q")
DLManaged = _struct("2", "DLManaged", "tensor:1 manager:p deleter:p")
DLVersioned = _struct("3", "DLVersioned", "major:I minor:I manager:p deleter:p flags:Q tensor:1")
# A context compares with contexts, prints as "gpu(1)", and is a key of dicts.
Context.__eq__ = lambda self, other: (self.type, self.id) == (other.type, other.id) if \
    isinstance(other, Context) else NotImplemented
Context.__hash__ = lambda self: hash((self.type, self.id))
Context.__repr__ = lambda self: lib.ctx_name(self)
ContextList.__iter__ = lambda self: iter(self.ctx[:self.n])


# ---- constants and errors ----
const = SimpleNamespace(**{
    name: int(value) for name, _, value in (row.partition("=") for row in _CONSTANTS.split())})


class Error(Exception):
    """A failure of the library. Its text is the library's sentence; `status` is "ERR_SHAPE"."""
    status = ""


def _error_class(name, code):
    """Makes errors.SHAPE and so on, which are Python's own errors too."""
    bases = {"HOST_MEMORY": MemoryError, "DEVICE_MEMORY": MemoryError, "IO": OSError,
             "FORMAT": ValueError, "DTYPE": TypeError, "AXIS": (IndexError, ValueError),
             "RANGE": (IndexError, ValueError), "NAME": (KeyError, ValueError),
             "NOT_BUILT": NotImplementedError, "UNSUPPORTED": NotImplementedError}
    own = bases.get(name, ValueError if 200 < code < 208 else RuntimeError)
    return type(name, (Error,) + (own if isinstance(own, tuple) else (own,)),
                {"status": "ERR_" + name, "__str__": Exception.__str__,
                 "__module__": __name__ + ".errors"})


_errors = {code: _error_class(name[4:], code) for name, code in vars(const).items()
           if name.startswith("ERR_") and code}
errors = SimpleNamespace(**{kind.__name__: kind for kind in _errors.values()})


# ---- the library ----
def _open():
    names = ["libdevtensor.so", "libdevtensor.dylib", "devtensor.dll"]
    here = os.path.dirname(os.path.abspath(__file__))
    given = os.environ.get("DEVTENSOR_LIBRARY")
    places = [given] if given else [
        path for folder in (here, os.path.join(here, "..", "build", "release"),
                            os.path.join(here, "..", "build", "*"))
        for name in names for path in sorted(glob.glob(os.path.join(folder, name)))]
    if not places:
        raise ImportError("devtensor: no shared library next to devtensor.py or in build/; build "
                          "it with `make shared`, or set DEVTENSOR_LIBRARY to its path")
    return places[0]


_path = _open()
_dll = ctypes.CDLL(_path)  # other threads run during its calls
_quick = ctypes.PyDLL(_path)


def _declared(library, name, result, *arguments):
    function = library[name]
    function.restype, function.argtypes = result, arguments
    return function


_error_code = _declared(_quick, "dvt_error_code", c_int)
_error_text = _declared(_quick, "dvt_error", c_char_p)
_clear_error = _declared(_quick, "dvt_clear_error", None)
_retain = _declared(_quick, "dvt_retain", c_void_p, c_void_p)
_discard = _declared(_dll, "dvt_discard", None, c_void_p)
_release = _declared(_dll, "dvt_release", None, c_void_p)


# The log goes to Python's logging. Failures are exceptions, so there they are of level DEBUG.
@ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
def _log(user, level, message):
    logging.getLogger("devtensor").log((10, 20, 30, 10)[level], message.decode("utf-8", "replace"))


if "DEVTENSOR_LOG" not in os.environ:
    _dll.dvt_set_logger(_log, None)
    atexit.register(_dll.dvt_set_logger, None, None)


def _fail():
    """Raises the thread's kept failure."""
    error = _errors.get(_error_code(), Error)(_error_text().decode("utf-8", "replace"))
    _clear_error()
    raise error


def _check_status(status, function, arguments):
    return _fail() if status else None


def _check_value(value, function, arguments):
    if _error_code():
        _fail()
    return value.decode("utf-8", "replace") if type(value) is bytes else value


class _Library:
    """Functions of the library by their names without dvt_, declared at their first use."""
    _rows = {name: (result, arguments) for name, result, arguments in
             (row.split(":") for row in _SIGNATURES.split())}

    def __getattr__(self, name):
        if name not in self._rows:
            raise AttributeError(f"dvt_{name} is not a function of the library")
        result, arguments = self._rows[name]
        try:
            function = _dll["dvt_" + name]
        except AttributeError:
            raise NotImplementedError(f"dvt_{name} is not in this build of {_path}") from None
        function.argtypes = [_LETTERS[letter] for letter in arguments]
        kind = result.rstrip("*")
        if kind == "e":
            function.restype, function.errcheck = c_int, _check_status
        elif kind == "s":
            function.restype, function.errcheck = c_char_p, _check_value
        elif len(kind) == 1 and kind != "a":
            function.restype, function.errcheck = _LETTERS[kind], _check_value
        else:
            function.restype = c_void_p
            function.errcheck = _check_object(kind, borrowed=result != kind)
        setattr(self, name, function)
        return function

    def __dir__(self):
        return list(self._rows)


lib = _Library()


class Object:
    """Owns an object of the library other than an array. net.initialize(...) of a dvt_block calls
    dvt_block_initialize(net, ...), and so on for each kind."""
    __slots__ = ("_as_parameter_", "kind", "__weakref__")

    def __del__(self, release=_release):
        release(self._as_parameter_)

    def __getattr__(self, name):
        function = getattr(lib, self.kind + "_" + name)
        return lambda *arguments: function(self, *arguments)

    def __call__(self, x):
        return (lib.block_forward if self.kind == "block" else lib.transform_apply)(self, x)

    def __len__(self):
        return getattr(lib, self.kind + "_len")(self)

    def __bool__(self):
        return True

    def __repr__(self):
        return _text(lib.block_format, self) if self.kind == "block" else f"<{self.kind}>"


def _own(handle, kind="a", borrowed=False):
    """Makes the owner of a new object, which then belongs to no scope, or of a borrowed one."""
    owner = object.__new__(Array if kind == "a" else Object)
    owner._as_parameter_ = _retain(handle)
    if kind == "a":
        owner._dtype = owner._shape = None
    else:
        owner.kind = kind
    if not borrowed:
        _discard(handle)
    return owner


def _check_object(kind, borrowed):
    def check(handle, function, arguments):
        if not handle:
            _fail()
        for x in arguments:  # dvt_add_(x, y) and dvt_as_in_ctx(x, ...) may return x itself
            if type(x) is Array and x._as_parameter_ == handle:
                return x
        return _own(handle, kind, borrowed)
    return check


def _text(function, *arguments):
    """Returns the text of a function that writes into a buffer and returns the length."""
    size = function(*arguments, None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    function(*arguments, buffer, size)
    return buffer.value.decode()


def _handles(objects):
    return (c_void_p * py.max(1, len(objects)))(
        *[x if x is None else x._as_parameter_ for x in objects])


# ---- dtypes ----
class DType:
    """An element type: name, size in bytes, and kind: b, i, u, f as in NumPy."""
    __slots__ = ("_as_parameter_", "name", "kind", "size", "format")

    def __init__(self, code, name, kind, size, format):
        self._as_parameter_, self.name, self.kind = code, name, kind
        self.size, self.format = size, format

    def __repr__(self):
        return "devtensor." + self.name

    def __reduce__(self):
        return self.name


_dtypes = [DType(code, *row) for code, row in enumerate([
    ("float32", "f", 4, "f"), ("float64", "f", 8, "d"), ("float16", "f", 2, "e"),
    ("bfloat16", "f", 2, None), ("int8", "i", 1, "b"), ("uint8", "u", 1, "B"),
    ("int32", "i", 4, "i"), ("int64", "i", 8, "q"), ("bool", "b", 1, "?")])]
float32, float64, float16, bfloat16, int8, uint8, int32, int64, bool = _dtypes
_STANDARD = (bool, int8, int32, int64, uint8, float32, float64)
_MISSING = ("int16", "uint16", "uint32", "uint64", "complex64", "complex128")


def __getattr__(name):
    if name in _MISSING:
        raise AttributeError(f"devtensor has no dtype {name}")
    if name in ("linalg", "fft"):
        raise AttributeError(f"devtensor does not have the extension {name} of the standard")
    raise AttributeError(f"module 'devtensor' has no attribute '{name}'")


def _dtype(dtype):
    """Returns a dtype from a DType, or a name."""
    if isinstance(dtype, DType):
        return dtype
    for known in _dtypes:
        if dtype == known.name:
            return known
    if str(dtype) in _MISSING:
        raise NotImplementedError(f"devtensor has no dtype {dtype}")
    raise TypeError(f"{dtype!r} is no dtype of devtensor")


# ---- contexts, scopes of modes ----
def cpu(id=0):
    return Context(const.DEVICE_CPU, id)


def gpu(id=0):
    return Context(const.DEVICE_GPU, id)


def _context(device):
    """Returns a context from one, from its name, or from None: the default."""
    if device is None:
        return lib.default_ctx()
    if isinstance(device, Context):
        return device
    context = Context()
    lib.ctx_parse(device, ctypes.byref(context))
    return context


class _Guard:
    def __init__(self, begin, end, *arguments):
        self._begin, self._end, self._arguments = begin, end, arguments

    def __enter__(self):
        self._guard = getattr(lib, self._begin)(*self._arguments)
        return self

    def __exit__(self, *raised):
        getattr(lib, self._end)(ctypes.byref(self._guard))


def record(train=True):
    """Records operations in the block: `with record(): loss = ...`."""
    return _Guard("record_begin", "record_end", const.ON, const.ON if train else const.OFF)


def pause(train=False):
    return _Guard("record_begin", "record_end", const.OFF, const.ON if train else const.OFF)


def default_device(device):
    """Sets the default context in the block: `with default_device(gpu(1)): ...`."""
    return _Guard("ctx_scope_begin", "ctx_scope_end", _context(device))


# ---- memory of Python and of the library ----
_Buffer = _struct("Y", "Py_buffer", "buf:p obj:p len:z itemsize:z readonly:i ndim:i format:p "
                  "shape:p strides:p suboffsets:p internal:p")
_buffer_get = _declared(ctypes.pythonapi, "PyObject_GetBuffer", c_int, ctypes.py_object, c_void_p,
                        c_int)
_buffer_release = _declared(ctypes.pythonapi, "PyBuffer_Release", None, c_void_p)
_END = -2**63  # DVT_END
_PYBUF_FULL_RO = 0x11C
_owners, _numbers = {}, itertools.count(1)  # what arrays of dvt_from_memory need, by a number


@ctypes.CFUNCTYPE(None, c_void_p)
def _give_back(key):
    owner = _owners.pop(key, None)
    if isinstance(owner, _Buffer):
        _buffer_release(ctypes.byref(owner))


def _borrow(address, shape, strides, dtype, owner, device):
    """Makes an array on memory that `owner` keeps alive."""
    key = next(_numbers)
    _owners[key] = owner
    try:
        return lib.from_memory(address, _shape(shape), strides, dtype, _give_back, key, device)
    except Error:
        del _owners[key]
        raise


def _buffer_dtype(buffer):
    form = (c_char_p(buffer.format).value or b"B").decode()
    order, letter = (form[0], form[1:]) if form[0] in "@=<>!" else ("@", form)
    swapped = order in ("<" if sys.byteorder == "big" else ">!") and buffer.itemsize > 1
    kind = "f" if letter in ("e", "f", "d") else "b" if letter == "?" else \
        "i" if letter in ("b", "h", "i", "l", "q", "n") else \
        "u" if letter in ("B", "H", "I", "L", "Q", "N", "c") else ""
    for dtype in _dtypes:
        if dtype.format and (dtype.kind, dtype.size) == (kind, buffer.itemsize) and not swapped:
            return dtype
    raise NotImplementedError(f"asarray: elements of format {form!r} and {buffer.itemsize} bytes "
                              "have no dtype in devtensor: convert them first")


def _from_buffer(obj, dtype, device, copy):
    """Makes an array on an exported buffer. Copies if asked, for another device or dtype, and for
    memory that is read-only or not aligned to its elements."""
    buffer = _Buffer()
    _buffer_get(obj, ctypes.addressof(buffer), _PYBUF_FULL_RO)
    x = None
    try:
        own = _buffer_dtype(buffer)
        sizes = ctypes.c_ssize_t * buffer.ndim
        shape = list(sizes.from_address(buffer.shape)) if buffer.ndim else []
        strides = list(sizes.from_address(buffer.strides)) if buffer.strides else None
        direct = device.type == const.DEVICE_CPU and (dtype is None or dtype is own) and \
            not buffer.readonly and not buffer.suboffsets and buffer.buf and \
            py.all(s % own.size == 0 for s in [buffer.buf] + (strides or []))
        if copy is False and not direct:
            raise ValueError("asarray: this buffer cannot be used without a copy: it is read-only, "
                             "not aligned, or of another dtype or device")
        if direct and not copy:
            steps = strides and (c_int64 * 8)(*[s // own.size for s in strides])
            x = _borrow(buffer.buf, shape, steps, own, buffer, device)
            return x
        data = memoryview(obj).tobytes()
        made = lib.from_host(data, _shape(shape), own, device)
        return made if dtype is None else lib.as_in_dtype(made, dtype)
    finally:
        if x is None:
            _buffer_release(ctypes.byref(buffer))


# DLPack's capsules. They keep the address of their name. A destructor may not take a reference, so
# capsules are passed by address.
_NAMES = {name: ctypes.create_string_buffer(name) for name in
          (b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned")}
_capsule_new = _declared(ctypes.pythonapi, "PyCapsule_New", ctypes.py_object, c_void_p, c_void_p,
                         c_void_p)
_capsule_pointer = _declared(ctypes.pythonapi, "PyCapsule_GetPointer", c_void_p, c_void_p, c_void_p)
_capsule_name = _declared(ctypes.pythonapi, "PyCapsule_GetName", c_char_p, c_void_p)
_capsule_rename = _declared(ctypes.pythonapi, "PyCapsule_SetName", c_int, c_void_p, c_void_p)
_capsule_valid = _declared(ctypes.pythonapi, "PyCapsule_IsValid", c_int, c_void_p, c_void_p)


def _references(holder):
    return sys.getrefcount(holder[0])


# Capsules have no destructor in Python. It may run while the exception of a consumer that refuses
# the tensor is on its way, and would lose that exception.
_capsules, _ALONE = collections.deque(), _references([object()])
atexit.register(_capsules.clear)


def _end_capsules(phase="stop", info=None):
    """Gives up the tensors of capsules that nobody has and no consumer took. Is called when the
    next array is exported or ends, and by the garbage collector."""
    for _ in range(len(_capsules) if phase == "stop" else 0):
        try:
            holder = [_capsules.popleft()]
        except IndexError:  # another thread has taken the last one
            return
        if _references(holder) != _ALONE:
            _capsules.append(holder[0])
            continue
        for name, layout in ((b"dltensor", DLManaged), (b"dltensor_versioned", DLVersioned)):
            if _capsule_valid(id(holder[0]), ctypes.addressof(_NAMES[name])):
                pointer = _capsule_pointer(id(holder[0]), ctypes.addressof(_NAMES[name]))
                ctypes.CFUNCTYPE(None, c_void_p)(layout.from_address(pointer).deleter)(pointer)


gc.callbacks.append(_end_capsules)
atexit.register(gc.callbacks.remove, _end_capsules)


def _take_capsule(capsule):
    name = _capsule_name(id(capsule))
    if name not in (b"dltensor", b"dltensor_versioned"):
        raise ValueError("from_dlpack: the capsule is no tensor, or was used already")
    call = lib.from_dlpack if name == b"dltensor" else lib.from_dlpack_versioned
    x = call(_capsule_pointer(id(capsule), ctypes.addressof(_NAMES[name])))
    _capsule_rename(id(capsule), ctypes.addressof(_NAMES[b"used_" + name]))
    return x


def from_dlpack(x, /, *, device=None, copy=None):
    """Makes an array on the memory of another library's array, or a copy."""
    target = None if device is None else _context(device)
    kind, index = x.__dlpack_device__()
    source = Context(const.DEVICE_GPU if kind in (2, 13) else const.DEVICE_CPU,
                     index if kind == 2 else 0)
    if copy is False and target not in (None, source):
        raise ValueError(f"from_dlpack: copy=False, but the array is on {source}, not on {target}")
    order = {"stream": lib.cuda_stream(source) or 1} if source.type == const.DEVICE_GPU else {}
    try:
        capsule = x.__dlpack__(max_version=(1, 1), copy=copy, **order)
    except TypeError:  # a library from before version 1
        capsule = x.__dlpack__(**order)
    made = _take_capsule(capsule)
    if target is not None:
        made = lib.as_in_ctx(made, target)
    return lib.copy(made) if copy and not isinstance(x, Array) else made


# ---- shapes and axes ----
def _shape(shape):
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(extents) > 8:
        raise errors.SHAPE(f"{len(extents)} axes were given; an array has at most 8")
    return Shape(len(extents), (c_int64 * 8)(*[operator.index(n) for n in extents]))


def _axes(axes, keepdims=False):
    axes = () if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    if len(axes) > 8:
        raise errors.AXIS(f"{len(axes)} axes were given; an array has at most 8")
    return Axes(len(axes), (c_int * 8)(*axes), keepdims)


def _axis(axis, ndim):
    if not -ndim <= axis < ndim:
        raise errors.AXIS(f"axis {axis} is out of range for an array of {ndim} axes")
    return axis % ndim


# ---- Python's values ----
def _leaves(obj, flat):
    """Appends the numbers of nested sequences to flat and returns their shape."""
    if isinstance(obj, Array):
        obj = obj.tolist()
    if not isinstance(obj, (list, tuple, range)):
        flat.append(obj)
        return ()
    shapes = [_leaves(item, flat) for item in obj]
    if py.any(shape != shapes[0] for shape in shapes):
        raise errors.SHAPE(f"asarray: nested sequences of different shapes: {sorted(set(shapes))}")
    return (len(shapes),) + (shapes[0] if shapes else ())


def _check_int(value, dtype):
    low, high = _limits(dtype)
    if not low <= value <= high:
        raise OverflowError(f"{value} does not fit into {dtype.name}")


def _limits(dtype):
    bits = 8 * dtype.size - (dtype.kind == "i")
    return (-2**bits if dtype.kind == "i" else 0), 2**bits - 1


def _from_values(obj, dtype, device):
    flat = []
    shape = _leaves(obj, flat)
    try:
        if py.any(isinstance(v, complex) for v in flat):
            raise NotImplementedError("devtensor has no complex dtypes")
        floats = py.any(not hasattr(v, "__index__") for v in flat)
        if floats or (dtype.kind == "f" if dtype else not flat):
            made, kind = (ctypes.c_double * len(flat))(*flat), float64
            dtype = dtype or float32
        elif dtype is bool or (dtype is None and py.all(isinstance(v, py.bool) for v in flat)):
            made, kind = (ctypes.c_bool * len(flat))(*[v != 0 for v in flat]), bool
        else:
            flat = [operator.index(v) for v in flat]
            checked = dtype if dtype and dtype.kind in "iu" else int64
            for value in (py.min(flat), py.max(flat)) if flat else ():
                _check_int(value, checked)
            made, kind = (c_int64 * len(flat))(*flat), int64
    except TypeError as error:
        raise TypeError(f"asarray: {error}") from None
    return lib.as_in_dtype(lib.from_host(made, _shape(shape), kind, device), dtype or kind)


def _number(x, value):
    """Returns what stands for a Python number in an operation with x: a float for the form of C
    with a number, or an array where the number has another kind or more digits than a float."""
    kind = x.dtype.kind
    if isinstance(value, numbers.Real) and not isinstance(value, (int, float)):  # NumPy's
        value = int(value) if isinstance(value, numbers.Integral) else float(value)
    if isinstance(value, int):
        if kind == "f" or (kind in "iu" and -2**53 <= value <= 2**53):
            if kind in "iu":
                _check_int(value, x.dtype)
            return float(value)
        return asarray(value, dtype=x.dtype if kind in "iu" else None, device=x.device)
    if isinstance(value, float):
        return value if kind == "f" else asarray(value, dtype=float32, device=x.device)
    if isinstance(value, complex):
        raise NotImplementedError("devtensor has no complex dtypes")
    return NotImplemented


def _apply(op, a, b):
    """Calls a binary operation with two arrays, or an array and a number."""
    if isinstance(a, Array):
        b = b if isinstance(b, Array) else _number(a, b)
        if b is NotImplemented:
            return b
        return getattr(lib, op if isinstance(b, Array) else op + "_scalar")(a, b)
    if not isinstance(b, Array):
        return NotImplemented
    a = _number(b, a)
    if a is NotImplemented:
        return a
    return getattr(lib, op if isinstance(a, Array) else "scalar_" + op)(a, b)


def _pair(x1, x2):
    """Returns both arguments as arrays of their common dtype."""
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        raise TypeError("one of both arguments must be an array of devtensor")
    like = x1 if isinstance(x1, Array) else x2
    x1, x2 = [x if isinstance(x, Array) else asarray(
        x, dtype=like.dtype if isinstance(x, int) and like.dtype.kind != "b" or
        isinstance(x, float) and like.dtype.kind == "f" else None, device=like.device)
        for x in (x1, x2)]
    dtype = result_type(x1, x2)
    return lib.as_in_dtype(x1, dtype), lib.as_in_dtype(x2, dtype)


# ---- arrays ----
class Array:
    """An array of devtensor. Made by asarray, zeros and so on, and by operations."""
    __slots__ = ("_as_parameter_", "_dtype", "_shape", "__weakref__")
    __array_ufunc__ = None  # NumPy's operators leave mixed operands to us, and we refuse them
    __hash__ = None

    def __new__(cls):
        raise TypeError("arrays are made by devtensor.asarray, zeros, empty and others")

    def __del__(self, release=_release, capsules=_capsules, end=_end_capsules):
        release(self._as_parameter_)
        if capsules:
            end()

    @property
    def dtype(self):
        if self._dtype is None:
            self._dtype = _dtypes[lib.dtype_of(self)]
        return self._dtype

    @property
    def shape(self):
        if self._shape is None:
            shape = lib.shape_of(self)
            self._shape = tuple(shape.dim[:shape.ndim])
        return self._shape

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return lib.size(self)

    @property
    def nbytes(self):
        return lib.nbytes(self)

    @property
    def strides(self):
        """The distance between neighbors along each axis, in elements."""
        return tuple(lib.stride(self, axis) for axis in range(self.ndim))

    @property
    def device(self):
        return lib.ctx_of(self)

    @property
    def T(self):
        if self.ndim != 2:
            raise errors.SHAPE(f"T needs 2 axes, not {self.ndim}: use permute_dims or mT")
        return lib.t(self)

    @property
    def mT(self):
        return matrix_transpose(self)

    def to_device(self, device, /, *, stream=None):
        return lib.as_in_ctx(self, _context(device))

    def __array_namespace__(self, /, *, api_version=None):
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ValueError(f"devtensor has no namespace of version {api_version!r}")
        return sys.modules[__name__]

    # ---- gradients ----
    def attach_grad(self, req=const.GRAD_WRITE):
        lib.attach_grad(self, req)
        return self

    @property
    def grad(self):
        """The attached gradient. errors.GRAD if there is none."""
        return lib.grad(self)

    def backward(self, head_grad=None, *, retain_graph=False, create_graph=False):
        lib.backward_from(_handles([self]), None if head_grad is None else _handles([head_grad]),
                          1, _graph_use(retain_graph, create_graph))

    def detach(self):
        return lib.detach(self)

    # ---- values in host memory ----
    def item(self):
        if self.dtype.kind == "f":
            return lib.item(self)
        return py.bool(lib.item_int(self)) if self.dtype is bool else lib.item_int(self)

    def tobytes(self):
        """The elements in C order. Waits, and copies from a GPU."""
        data = bytearray(self.nbytes)
        lib.to_host(self, (ctypes.c_char * len(data)).from_buffer(data), len(data))
        return bytes(data)

    def tolist(self):
        if self.dtype in (float16, bfloat16):
            return lib.astype(self, float32).tolist()
        flat = iter(memoryview(self.tobytes()).cast(self.dtype.format))

        def nested(shape):
            return [nested(shape[1:]) for _ in range(shape[0])] if shape else next(flat)

        return nested(self.shape)

    def memoryview(self):
        """A view of the elements without a copy, for arrays on cpu() that are contiguous. After
        writes through it call lib.mark_written(x) if x belongs to a recorded computation."""
        if not lib.is_contiguous(self) or self.dtype in (float16, bfloat16):
            raise BufferError("memoryview: needs a contiguous array, and no float of 16 bits: copy "
                              "it by lib.contiguous, or convert it first")
        buffer = (ctypes.c_char * self.nbytes).from_address(lib.data(self) or 0)
        buffer.owner = self
        flat = memoryview(buffer).cast("B").cast(self.dtype.format)
        return flat.cast("B").cast(self.dtype.format, self.shape) if self.size else flat

    def __buffer__(self, flags):  # used by Python 3.12 and later
        return self.memoryview()

    @property
    def __array_interface__(self):
        """Lets NumPy use the elements without a copy. Fails for arrays on a GPU."""
        if not self.dtype.format:
            raise AttributeError(f"NumPy has no dtype for {self.dtype.name}: convert it first")
        strides = tuple(n * self.dtype.size for n in self.strides)
        order = "|" if self.dtype.size == 1 else "<" if sys.byteorder == "little" else ">"
        return {"version": 3, "shape": self.shape, "strides": strides,
                "typestr": f"{order}{self.dtype.kind}{self.dtype.size}",
                "data": (lib.data(self) or 0, 0 in self.strides)}

    def __dlpack_device__(self):
        device = self.device
        if device.type == const.DEVICE_CPU:
            return (const.DL_CPU, 0)
        try:
            lib.cuda_address(self)
        except (errors.CONTEXT, errors.NOT_BUILT):
            raise BufferError(f"DLPack has no device for {device}, a virtual GPU: copy the array "
                              "by to_device(cpu())") from None
        return (const.DL_CUDA, device.id)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Returns a capsule. A tensor that no consumer takes uses its memory until the next array
        is exported or ends."""
        x = self
        _end_capsules()
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if tuple(dl_device) != (const.DL_CPU, 0) or copy is False:
                raise BufferError(f"__dlpack__: {self.device} cannot be exported to {dl_device}")
            x = lib.copyto(self, cpu())
        elif x.__dlpack_device__()[0] == const.DL_CUDA and stream != -1:
            lib.cuda_order_before(None if stream == 1 else stream, x.device)
        name = b"dltensor"
        try:
            if max_version is not None and max_version[0] >= 1:
                name = b"dltensor_versioned"
                pointer = lib.to_dlpack_versioned(
                    x, const.DL_COPY_IF_NEEDED if copy is None else
                    const.DL_COPY_ALWAYS if copy else const.DL_COPY_NEVER)
            else:
                if copy is False and x.size and py.any(step <= 0 and n > 1 for step, n in
                                            zip(x.strides, x.shape)):
                    raise BufferError("__dlpack__: version 0 needs a copy of this view")
                pointer = lib.to_dlpack(lib.copy(x) if copy else x)
        except Error as error:
            raise BufferError(str(error)) from error
        capsule = _capsule_new(pointer, ctypes.addressof(_NAMES[name]), None)
        _capsules.append(capsule)
        return capsule

    def __bool__(self):
        return py.bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if self.dtype.kind not in "iu":
            raise TypeError(f"an array of {self.dtype.name} is no index")
        return lib.item_int(self)

    def __len__(self):
        if not self.ndim:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self):
        return (lib.index(self, i) for i in range(len(self)))

    def __repr__(self):
        return self._formatted(const.PRINT_JAX)

    def __str__(self):
        return self._formatted(const.PRINT_STR)

    def _formatted(self, style):
        length, options = c_size_t(), PrintOptions(style=style)
        lib.format(self, ctypes.byref(options), None, 0, ctypes.byref(length))
        buffer = ctypes.create_string_buffer(length.value + 1)
        lib.format(self, ctypes.byref(options), buffer, len(buffer), None)
        return buffer.value.decode().rstrip("\n")

    # ---- indexing ----
    def __getitem__(self, key, /):
        key = key if isinstance(key, tuple) else (key,)
        if len(key) == 1 and _is_mask(key[0]):
            mask = _mask_of(key[0], self)
            rest = self.shape[mask.ndim:]
            if not mask.size or not self.size:
                return lib.zeros(_shape((lib.item_int(lib.sum(mask, _axes(None))),) + rest),
                                 self.dtype, self.device)
            return lib.take(lib.reshape(self, _shape((mask.size,) + rest)), _true_positions(mask),
                            0)
        x, arrays = _basic(self, key)
        return _gather(x, arrays) if arrays else x

    def __setitem__(self, key, value, /):
        key = key if isinstance(key, tuple) else (key,)
        if len(key) == 1 and _is_mask(key[0]):
            _set_masked(self, _mask_of(key[0], self), value)
            return
        x, arrays = _basic(self, key)
        if arrays:
            raise NotImplementedError("devtensor cannot write to the positions of an integer "
                                      "array: dvt has no scatter")
        _write(x, value)

    def __invert__(self, /):
        return bitwise_invert(self)

    def __neg__(self, /):
        return lib.neg(self)

    def __pos__(self, /):
        return lib.copy(self)

    def __abs__(self, /):
        return lib.abs(self)


def _write(x, value):
    """Writes a number or an array into x."""
    if isinstance(value, Array):
        lib.copy_into(x, value)
        return
    if x.dtype is bool and isinstance(value, numbers.Real):
        value = py.bool(value)
    if x.dtype.kind in "iu" and isinstance(value, numbers.Real) and \
            not isinstance(value, numbers.Integral):
        raise TypeError(f"{value} does not go into an array of {x.dtype.name}")
    number = _number(x, value)
    if number is NotImplemented:
        number = asarray(value, device=x.device)
    if isinstance(number, Array):
        lib.copy_into(x, number)
    else:
        lib.fill(x, number)


def _is_mask(key):
    return isinstance(key, py.bool) or (isinstance(key, Array) and key.dtype is bool)


def _mask_of(key, x):
    mask = key if isinstance(key, Array) else asarray(key, device=x.device)
    if mask.ndim > x.ndim or py.any(m not in (0, n) for m, n in zip(mask.shape, x.shape)):
        raise IndexError(f"a mask of shape {mask.shape} does not fit an array of shape {x.shape}")
    return mask


def _true_positions(mask):
    """Returns the positions of true elements in C order. Waits for their number."""
    flat = lib.reshape(mask, _shape((mask.size,)))
    if not mask.size:
        return lib.zeros(_shape(0), int64, mask.device)
    order = lib.argsort(lib.astype(flat, uint8), 0, const.DESCENDING)  # stable
    return lib.slice(order, 0, 0, lib.item_int(lib.sum(flat, _axes(None))), 1)


def _set_masked(x, mask, value):
    """Writes value where mask holds: a number, an array of one element, or one row per true."""
    if not mask.size or not x.size:
        return
    wide = lib.reshape(mask, _shape(mask.shape + (1,) * (x.ndim - mask.ndim)))
    if not isinstance(value, Array):
        value = full((), value, dtype=x.dtype, device=x.device)
    elif value.ndim and value.shape[0] != 1:
        positions = lib.cumsum(lib.reshape(mask, _shape((mask.size,))), 0)
        if lib.item_int(lib.slice(positions, 0, -1, _END, 1)) != value.shape[0]:
            raise errors.SHAPE(f"{value.shape[0]} rows do not fit the number of true elements")
        rows = lib.take(value, maximum(lib.sub_scalar(positions, 1), 0), 0)
        value = lib.reshape(rows, _shape(mask.shape + value.shape[1:]))
    lib.copy_into(x, lib.where(wide, lib.as_in_dtype(value, x.dtype), x))


def _basic(x, key):
    """Applies slices, integers, None and one Ellipsis. Returns a view and {axis: integer array};
    integers next to arrays become arrays."""
    given = [k for k in key if k is not None and k is not Ellipsis]
    if len(given) > x.ndim or py.sum(k is Ellipsis for k in key) > 1:
        raise IndexError(f"{len(given)} indices were given for {x.ndim} axes")
    several = py.any(isinstance(k, Array) for k in given)
    keys, seen = [], False
    for k in key:
        if k is Ellipsis:
            seen = True
            keys += [slice(None)] * (x.ndim - len(given))
        else:
            keys.append(k)
    keys += [] if seen else [slice(None)] * (x.ndim - len(given))
    axis, dropped, arrays = 0, [], {}
    for k in keys:
        if k is None:
            x = lib.expand_dims(x, axis)
        elif isinstance(k, slice):
            n = x.shape[axis]
            inside = range(n)[k]
            if not inside:
                x = lib.slice(x, axis, 0, 0, 1)
            elif len(inside) != n or inside.step != 1:
                stop = inside[-1] + (1 if inside.step > 0 else -1)
                x = lib.slice(x, axis, inside[0], _END if stop < 0 else stop, inside.step)
        elif isinstance(k, Array) or several:
            if _is_mask(k):
                raise IndexError("a mask must be the only index")
            if k.dtype.kind == "f" if isinstance(k, Array) else not hasattr(k, "__index__"):
                raise IndexError(f"{k!r} is no index")
            arrays[axis] = k if isinstance(k, Array) else asarray(operator.index(k),
                                                                  device=x.device)
        else:
            if isinstance(k, py.bool) or not hasattr(k, "__index__"):
                raise IndexError(f"{k!r} is no index")
            i, n = operator.index(k), x.shape[axis]
            if not -n <= i < n:
                raise errors.RANGE(f"index {i} is out of range for an axis of extent {n}")
            x = lib.slice(x, axis, i % n, i % n + 1, 1)
            dropped.append(axis)
        axis += 1
    return (lib.squeeze(x, _axes(dropped)) if dropped else x), arrays


def _gather(x, arrays):
    """Takes x at integer arrays along axes that are neighbors."""
    axes = list(arrays)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise NotImplementedError("devtensor takes integer arrays only on axes that are neighbors")
    if len(axes) == 1:
        return lib.take(x, arrays[axes[0]], axes[0])
    extents = x.shape[axes[0]:axes[-1] + 1]
    position = 0
    for i, n in zip(broadcast_arrays(*arrays.values()), extents):
        i = lib.astype(i, int64)
        if x.device.type == const.DEVICE_CPU and py.bool(any(logical_or(i < -n, i >= n))):
            raise errors.RANGE(f"an index is out of range for an axis of extent {n}")
        position = position * n + where(i < 0, i + n, i)
    joined = lib.reshape(x, _shape(x.shape[:axes[0]] + (math.prod(extents),) +
                                   x.shape[axes[-1] + 1:]))
    return lib.take(joined, position, axes[0])


def _operators():
    """Adds the binary operators to Array."""
    def add(name, forward, in_place):
        def method(self, other, /):
            return forward(self, other)

        def reflected(self, other, /):
            return forward(other, self)

        def inplace(self, other, /):
            return in_place(self, other)

        for prefix, function in (("", method), ("r", reflected), ("i", inplace)):
            function.__name__ = f"__{prefix}{name}__"
            setattr(Array, function.__name__, function)

    def in_place_of(op):
        def in_place(x, other):
            other = other if isinstance(other, Array) else _number(x, other)
            if other is NotImplemented:
                return other
            if isinstance(other, Array):
                if result_type(x, other) is not x.dtype:
                    raise TypeError(f"{x.dtype.name} cannot hold the result with "
                                    f"{other.dtype.name}")
                return getattr(lib, op + "_")(x, other)
            return getattr(lib, op + "_scalar_")(x, other)
        return in_place

    def tried(function):
        def call(a, b):
            if not py.all(isinstance(v, (Array, numbers.Real)) for v in (a, b)):
                return NotImplemented
            return function(a, b)
        return call

    def assigned(function):
        def in_place(x, other):
            result = tried(function)(x, other)
            if result is NotImplemented:
                return result
            if result.dtype is not x.dtype:
                raise TypeError(f"{x.dtype.name} cannot hold a result of {result.dtype.name}")
            return lib.copy_into(x, result)
        return in_place

    for name, op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"),
                     ("floordiv", "floor_div"), ("mod", "mod"), ("pow", "pow")):
        add(name, lambda a, b, op=op: _apply(op, a, b), in_place_of(op))
    for name, function in (("and", bitwise_and), ("or", bitwise_or), ("xor", bitwise_xor),
                           ("lshift", bitwise_left_shift), ("rshift", bitwise_right_shift),
                           ("matmul", lambda a, b: lib.matmul(*_matrices(a, b)))):
        add(name, tried(function), assigned(function))
    for name, op in (("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("le", "less_equal"),
                     ("gt", "greater"), ("ge", "greater_equal")):
        def compare(self, other, /, op=op):
            return _apply(op, self, other)
        setattr(Array, f"__{name}__", compare)


def _matrices(a, b):
    if not isinstance(a, Array) or not isinstance(b, Array):
        raise TypeError("matmul needs two arrays")
    return _pair(a, b)


def _graph_use(retain, create):
    return const.CREATE_GRAPH if create else const.RETAIN_GRAPH if retain else const.FREE_GRAPH


def gradients(heads, variables, head_grads=None, *, retain_graph=False, create_graph=False):
    """Returns the gradients of the sum of heads with respect to variables, as new arrays."""
    out = (c_void_p * len(variables))()
    lib.gradients(_handles(heads), head_grads and _handles(head_grads), len(heads),
                  _handles(variables), len(variables), _graph_use(retain_graph, create_graph), out)
    return [_own(handle) for handle in out]


def sequential(*blocks):
    """Makes a net of blocks: sequential(lib.nn_dense(10, const.RELU), lib.nn_dense(1, 0))."""
    net = lib.nn_sequential()
    for block in blocks:
        lib.nn_sequential_add(net, 1, block, *[None] * 15)
    return net


def load(path, device=None):
    """Reads the arrays of a file by their names: .safetensors and the index of several
    (.safetensors.index.json), .gguf, .npz, .params."""
    arrays = lib.load_arrays(_encoded(path), _context(device))
    return {lib.array_list_name(arrays, i): lib.array_list_at(arrays, i)
            for i in range(len(arrays))}


def save(path, arrays):
    """Writes a dict of arrays, or of what asarray takes, as .safetensors, .gguf, .npz or
    .params, by the end of the path."""
    names = (c_char_p * py.max(1, len(arrays)))(*[_encoded(name) for name in arrays])
    values = [asarray(x) for x in arrays.values()]
    lib.save_arrays(_encoded(path), _handles(values), names, len(arrays))


def seed(value):
    lib.seed(value)


def uniform(low, high, shape, *, dtype=None, device=None):
    return lib.uniform(low, high, _shape(shape), _dtype(dtype or float32), _context(device))


def normal(mean, deviation, shape, *, dtype=None, device=None):
    return lib.normal(mean, deviation, _shape(shape), _dtype(dtype or float32), _context(device))


def randint(low, high, shape, *, dtype=None, device=None):
    return lib.randint(low, high, _shape(shape), _dtype(dtype or int64), _context(device))


# ==== the array API standard: functions with its names; data-apis.org describes them ====

# ---- creation ----
def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Makes an array of an array, a buffer, an object with __dlpack__, numbers, nested sequences.
    copy=None copies where it must, False never, True always."""
    dtype = None if dtype is None else _dtype(dtype)
    if isinstance(obj, Array):
        made = obj if device is None else lib.as_in_ctx(obj, _context(device))
        made = made if dtype is None else lib.as_in_dtype(made, dtype)
        if copy is False and made is not obj:
            raise ValueError("asarray: copy=False, but the dtype or the device differs")
        return lib.copy(obj) if copy and made is obj else made
    target = _context(device)
    try:
        memoryview(obj)
    except (TypeError, ValueError, BufferError):  # no buffer, or elements that have no format
        if hasattr(obj, "__dlpack__"):
            made = from_dlpack(obj, device=device, copy=copy)
            return made if dtype is None else lib.as_in_dtype(made, dtype)
    else:
        return _from_buffer(obj, dtype, target, copy)
    if copy is False:
        raise ValueError("asarray: copy=False, but numbers of Python have to be copied")
    return _from_values(obj, dtype, target)


def _kind_of(value):
    """Returns the default dtype of a Python number."""
    if isinstance(value, complex):
        raise NotImplementedError("devtensor has no complex dtypes")
    return bool if isinstance(value, py.bool) else int64 if isinstance(value, int) else float32


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    if stop is None:
        start, stop = 0, start
    whole = py.all(isinstance(v, int) for v in (start, stop, step))
    dtype = _dtype(dtype) if dtype else int64 if whole else float32
    if not whole:
        return lib.arange(start, stop, step, dtype, _context(device))
    if step == 0:
        raise ValueError("arange: step is 0")
    values = range(start, stop, step)
    for value in (values[0], values[-1]) if values and dtype.kind in "iu" else ():
        _check_int(value, dtype)
    x = lib.arange(0, len(values), 1, int64, _context(device))
    return lib.as_in_dtype(x * step + start if (start, step) != (0, 1) and values else x, dtype)


def _filled(name):
    def function(shape, *, dtype=None, device=None):
        return getattr(lib, name)(_shape(shape), _dtype(dtype or float32), _context(device))

    def like(x, /, *, dtype=None, device=None):
        return function(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    _define(name, function, f"a new array, by dvt_{name}")
    _define(name + "_like", like, "a new array with the shape, dtype and device of x")


def _define(name, function, text):
    """Makes a function of this module."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Returns {text}."
    globals()[name] = function


for _name in ("empty", "zeros", "ones"):
    _filled(_name)


def full(shape, fill_value, *, dtype=None, device=None):
    x = empty(shape, dtype=dtype or (fill_value.dtype if isinstance(fill_value, Array) else
                                     _kind_of(fill_value)), device=device)
    _write(x, fill_value)
    return x


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    return lib.eye(n_rows, n_rows if n_cols is None else n_cols, k, _dtype(dtype or float32),
                   _context(device))


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    x = lib.linspace(start, stop, num + (not endpoint), _dtype(dtype or float32),
                     _context(device))
    return x if endpoint else x[:num]


def meshgrid(*arrays, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is {indexing!r}, not 'xy' or 'ij'")
    n, swap = len(arrays), indexing == "xy" and len(arrays) > 1
    places = [1, 0] + list(range(2, n)) if swap else list(range(n))
    return broadcast_arrays(*[reshape(x, (1,) * place + (x.size,) + (1,) * (n - 1 - place))
                              for x, place in zip(arrays, places)])


def _triangle(x, k, upper):
    rows, columns = [lib.arange(0, n, 1, int64, x.device) for n in x.shape[-2:]]
    below = lib.less_equal(columns, lib.expand_dims(rows + (k - 1 if upper else k), 1))
    kept = lib.logical_not(below) if upper else below
    return lib.where(kept, x, lib.scalar(0, x.dtype, x.device))


def tril(x, /, *, k=0):
    return _triangle(x, k, False)


def triu(x, /, *, k=0):
    return _triangle(x, k, True)


# ---- dtypes ----
def astype(x, dtype, /, *, copy=True, device=None):
    x = x if device is None else lib.as_in_ctx(x, _context(device))
    return (lib.astype if copy else lib.as_in_dtype)(x, _dtype(dtype))


_RANK = {"b": 0, "i": 1, "u": 1, "f": 2}


def result_type(*arrays_and_dtypes):
    dtypes = [v.dtype if isinstance(v, Array) else v for v in arrays_and_dtypes]
    known = [v for v in dtypes if isinstance(v, DType)]
    if not known:
        raise ValueError("result_type: needs at least one array or dtype")
    result = known[0]
    for dtype in known[1:]:
        result = _dtypes[lib.promote(result, dtype)]
    for value in dtypes:  # a number of Python counts only if its kind is higher
        own = None if isinstance(value, DType) else _kind_of(value)
        if own and _RANK[own.kind] > _RANK[result.kind]:
            result = _dtypes[lib.promote(result, own)]
    return result


def can_cast(from_, to, /):
    from_ = from_.dtype if isinstance(from_, Array) else _dtype(from_)
    return _dtypes[lib.promote(from_, _dtype(to))] is _dtype(to)


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return py.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype is kind
    kinds = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
             "real floating": "f", "complex floating": "", "numeric": "iuf"}
    if kind not in kinds:
        raise ValueError(f"isdtype: {kind!r} is not one of {', '.join(kinds)}")
    return dtype.kind in kinds[kind]


_Float = collections.namedtuple("finfo", "bits eps max min smallest_normal dtype")
_Int = collections.namedtuple("iinfo", "bits max min dtype")


def finfo(type, /):
    dtype = type.dtype if isinstance(type, Array) else _dtype(type)
    if dtype.kind != "f":
        raise TypeError(f"finfo: {dtype.name} is no float")
    digits, exponent = {"float16": (11, 16), "bfloat16": (8, 128), "float32": (24, 128),
                        "float64": (53, 1024)}[dtype.name]
    largest = (2 - 2.0**(1 - digits)) * 2.0**(exponent - 1)
    return _Float(8 * dtype.size, 2.0**(1 - digits), largest, -largest, 2.0**(2 - exponent), dtype)


def iinfo(type, /):
    dtype = type.dtype if isinstance(type, Array) else _dtype(type)
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo: {dtype.name} is no integer")
    low, high = _limits(dtype)
    return _Int(8 * dtype.size, high, low, dtype)


class __array_namespace_info__:
    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self):
        return lib.default_ctx()

    def default_dtypes(self, *, device=None):
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def devices(self):
        return (cpu(),) + tuple(lib.try_all_gpus())

    def dtypes(self, *, device=None, kind=None):
        return {d.name: d for d in _STANDARD if kind is None or isdtype(d, kind)}


# ---- element by element ----
def _unary(name, op=None):
    def function(x, /):
        return getattr(lib, op or name)(x)
    _define(name, function, f"dvt_{op or name}(x)")


def _binary(name, op=None):
    def function(x1, x2, /):
        result = _apply(op or name, x1, x2)
        if result is NotImplemented:
            raise TypeError(f"{name}: needs arrays of devtensor, or one and a number, not "
                            f"{type(x1).__name__} and {type(x2).__name__}")
        return result
    _define(name, function, f"dvt_{op or name}(x1, x2)")


for _name in ("abs acos asin atan cos cosh sin sinh tan tanh ceil exp expm1 floor isfinite isinf "
              "isnan log log1p log2 log10 logical_not reciprocal round sign square sqrt trunc "
              ).split():
    _unary(_name)
_unary("negative", "neg")
for _name in ("atan2 equal greater greater_equal hypot less less_equal logical_and logical_or "
              "logical_xor maximum minimum not_equal pow").split():
    _binary(_name)
for _name, _op in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"),
                   ("floor_divide", "floor_div"), ("remainder", "mod")):
    _binary(_name, _op)


def positive(x, /):
    return lib.copy(x)


def real(x, /):
    return x


def conj(x, /):
    return x


def imag(x, /):
    raise NotImplementedError("devtensor has no complex dtypes")


def clip(x, /, min=None, max=None):
    dtype = x.dtype
    for bound, function in ((min, maximum), (max, minimum)):
        if bound is not None:
            x = function(x, bound)
    return lib.copy(x) if min is max is None else lib.as_in_dtype(x, dtype)


def logaddexp(x1, x2, /):
    x1, x2 = broadcast_arrays(*_pair(x1, x2))
    return lib.logsumexp(lib.stack(_handles([x1, x2]), 2, 0), _axes(0))


def asinh(x, /):
    """Composed: log1p for |x| up to 1e8 (float16 and bfloat16: by float32), log beyond."""
    a = lib.abs(_wide(x))
    square = minimum(a, 1e8) ** 2
    small = lib.log1p(a + square / (lib.sqrt(square + 1) + 1))
    y = where(a > 1e8, lib.log(a) + math.log(2), small)
    return lib.as_in_dtype(where(x < 0, -y, where(x == 0, _wide(x), y)), _float_of(x))


def acosh(x, /):
    """Composed, as asinh."""
    t = _wide(x) - 1
    near = minimum(t, 1e8)
    far = lib.log(_wide(x)) + math.log(2)
    y = where(t > 1e8, far, lib.log1p(near + lib.sqrt(near * 2 + near ** 2)))
    return lib.as_in_dtype(where(t < 0, nan, y), _float_of(x))


def atanh(x, /):
    """Composed of log1p."""
    x, a = _wide(x), lib.abs(_wide(x))
    y = lib.log1p(a * 2 / (1 - a)) / 2
    return lib.as_in_dtype(where(x < 0, -y, where(x == 0, x, y)), _float_of(x))


def _float_of(x):
    return x.dtype if x.dtype.kind == "f" else float32


def _wide(x):
    return lib.as_in_dtype(x, float64 if x.dtype is float64 else float32)


def _bits(x, dtype):
    """Returns a view of the same memory as another dtype of the same size."""
    x = lib.contiguous(x)
    if x.device.type != const.DEVICE_CPU:
        raise NotImplementedError(f"devtensor reads the bits of floats on cpu() only, not on "
                                  f"{x.device}")
    return _borrow(lib.data(x), x.shape, None, dtype, x, x.device) if x.size else \
        lib.zeros(_shape(x.shape), dtype, x.device)


def signbit(x, /):
    x = _wide(x)
    return _bits(x, int64 if x.dtype is float64 else int32) < 0


def copysign(x1, x2, /):
    x1, x2 = _pair(x1, x2)
    size = lib.abs(x1)
    return where(signbit(x2), -size, size)


def nextafter(x1, x2, /):
    x1, x2 = [lib.contiguous(x) for x in broadcast_arrays(*_pair(x1, x2))]
    if x1.dtype not in (float32, float64):
        raise NotImplementedError(f"nextafter: devtensor has no integers of the size of "
                                  f"{x1.dtype.name}")
    whole = int64 if x1.dtype is float64 else int32
    bits, up = _bits(x1, whole), x2 > x1
    away = equal(up, x1 > 0)
    low = where(up, 1, asarray(iinfo(whole).min + 1, dtype=whole, device=x1.device))
    moved = where(x1 == 0, lib.as_in_dtype(low, whole), where(away, bits + 1, bits - 1))
    y = where(equal(x1, x2), x2, _bits(lib.as_in_dtype(moved, whole), x1.dtype))
    return where(logical_or(lib.isnan(x1), lib.isnan(x2)), x1 + x2, y)


# ---- bits of integers: C has no such functions, so these go bit by bit, with up to 64 steps ----
def _integers(name, x1, x2):
    x1, x2 = _pair(x1, x2)
    if x1.dtype.kind == "f":
        raise TypeError(f"{name}: needs integers or bools, not {x1.dtype.name}")
    return x1, x2


def _and(a, b):
    total = lib.mul(lib.mod_scalar(a, 2), lib.mod_scalar(b, 2))
    low = _limits(a.dtype)[0]
    for bit in range(1, 8 * a.dtype.size):
        a, b = lib.floor_div_scalar(a, 2), lib.floor_div_scalar(b, 2)
        weight = low if low and bit == 8 * a.dtype.size - 1 else 2**bit
        total = total + lib.mul(lib.mod_scalar(a, 2), lib.mod_scalar(b, 2)) * weight
    return total


def bitwise_and(x1, x2, /):
    x1, x2 = _integers("bitwise_and", x1, x2)
    return lib.logical_and(x1, x2) if x1.dtype is bool else _and(x1, x2)


def bitwise_or(x1, x2, /):
    x1, x2 = _integers("bitwise_or", x1, x2)
    return lib.logical_or(x1, x2) if x1.dtype is bool else x1 + x2 - _and(x1, x2)


def bitwise_xor(x1, x2, /):
    x1, x2 = _integers("bitwise_xor", x1, x2)
    return lib.logical_xor(x1, x2) if x1.dtype is bool else x1 + x2 - _and(x1, x2) * 2


def bitwise_invert(x, /):
    if x.dtype.kind == "f":
        raise TypeError(f"bitwise_invert: needs integers or bools, not {x.dtype.name}")
    if x.dtype is bool:
        return lib.logical_not(x)
    return lib.scalar_sub(_limits(x.dtype)[1] if x.dtype.kind == "u" else -1, x)


def _power_of_2(n):
    return lib.pow(lib.full_like(n, 2), n)


def bitwise_left_shift(x1, x2, /):
    x1, x2 = _integers("bitwise_left_shift", x1, x2)
    return lib.mul(x1, _power_of_2(x2))


def bitwise_right_shift(x1, x2, /):
    x1, x2 = _integers("bitwise_right_shift", x1, x2)
    x2 = minimum(x2, 8 * x1.dtype.size)
    half = lib.floor_div_scalar(x2, 2)  # 2 to the whole power may not fit
    return lib.floor_div(lib.floor_div(x1, _power_of_2(half)), _power_of_2(x2 - half))


# ---- linear algebra ----
def matmul(x1, x2, /):
    return lib.matmul(*_matrices(x1, x2))


def matrix_transpose(x, /):
    if x.ndim < 2:
        raise errors.SHAPE(f"matrix_transpose: needs 2 axes or more, not {x.ndim}")
    return lib.swapaxes(x, -1, -2)


def vecdot(x1, x2, /, *, axis=-1):
    x1, x2 = [moveaxis(x, axis, -1) for x in _matrices(x1, x2)]
    if x1.shape[-1] != x2.shape[-1]:
        raise errors.SHAPE("vecdot: the extents along the axis differ")
    x1, x2 = broadcast_arrays(x1, x2)
    y = lib.matmul(lib.expand_dims(x1, x1.ndim - 1), lib.expand_dims(x2, x2.ndim))
    return lib.squeeze(y, _axes((-2, -1)))


def tensordot(x1, x2, /, *, axes=2):
    x1, x2 = _matrices(x1, x2)
    if isinstance(axes, int):
        axes = range(x1.ndim - axes, x1.ndim), range(axes)
    first, second = [[_axis(a, x.ndim) for a in one] for one, x in zip(axes, (x1, x2))]
    if [x1.shape[a] for a in first] != [x2.shape[a] for a in second]:
        raise errors.SHAPE("tensordot: the extents of the summed axes differ")
    keep1 = [a for a in range(x1.ndim) if a not in first]
    keep2 = [a for a in range(x2.ndim) if a not in second]
    k = math.prod([x1.shape[a] for a in first])
    outer1, outer2 = [x1.shape[a] for a in keep1], [x2.shape[a] for a in keep2]
    y = lib.matmul(reshape(permute_dims(x1, keep1 + first), (math.prod(outer1), k)),
                   reshape(permute_dims(x2, second + keep2), (k, math.prod(outer2))))
    return reshape(y, outer1 + outer2)


# ---- shapes ----
def broadcast_shapes(*shapes):
    result = []
    for place in range(1, 1 + py.max([len(shape) for shape in shapes], default=0)):
        extents = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        if len(extents) > 1:
            raise errors.SHAPE(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def broadcast_to(x, /, shape):
    return x if tuple(shape) == x.shape else lib.broadcast_to(x, _shape(shape))


def broadcast_arrays(*arrays):
    shape = broadcast_shapes(*[x.shape for x in arrays])
    return tuple(broadcast_to(x, shape) for x in arrays)


def _joined(function, arrays, axis):
    arrays = list(arrays)
    dtype = result_type(*arrays)
    arrays = [lib.as_in_dtype(x, dtype) for x in arrays]
    return function(_handles(arrays), len(arrays), axis)


def concat(arrays, /, *, axis=0):
    if axis is None:
        arrays, axis = [reshape(x, (x.size,)) for x in arrays], 0
    return _joined(lib.concat, arrays, axis)


def stack(arrays, /, *, axis=0):
    return _joined(lib.stack, arrays, axis)


def unstack(x, /, *, axis=0):
    return tuple(moveaxis(x, axis, 0))


def expand_dims(x, /, axis):
    axes = (axis,) if isinstance(axis, int) else axis
    ndim = x.ndim + len(axes)
    places = sorted(_axis(a, ndim) for a in axes)
    if len(set(places)) != len(places):
        raise errors.AXIS(f"expand_dims: axes {axis} are repeated")
    for place in places:
        x = lib.expand_dims(x, place)
    return x


def squeeze(x, /, axis):
    return lib.squeeze(x, _axes(axis)) if axis != () else x


def reshape(x, /, shape, *, copy=None):
    y = lib.reshape(x, _shape(shape))
    if copy is False and not lib.shares_memory(x, y):
        raise ValueError("reshape: copy=False, but this view needs a copy")
    return lib.copy(y) if copy and lib.shares_memory(x, y) else y


def permute_dims(x, /, axes):
    if len(axes) != x.ndim:
        raise errors.AXIS(f"permute_dims: {len(axes)} axes were given for {x.ndim}")
    return lib.transpose(x, _axes(axes)) if x.ndim else x


def moveaxis(x, source, destination, /):
    source, destination = [[_axis(a, x.ndim) for a in ((v,) if isinstance(v, int) else v)]
                           for v in (source, destination)]
    order = [a for a in range(x.ndim) if a not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return permute_dims(x, order)


def flip(x, /, *, axis=None):
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for a in axes:
        x = lib.slice(x, a, -1, _END, -1)
    return x


def roll(x, /, shift, *, axis=None):
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = (shift,) * len(axes) if isinstance(shift, int) else shift
    for a, by in zip(axes, shifts):
        n = x.shape[_axis(a, x.ndim)]
        if n and by % n:
            x = concat([lib.slice(x, a, n - by % n, n, 1), lib.slice(x, a, 0, n - by % n, 1)],
                       axis=a)
    return x


def repeat(x, repeats, /, *, axis=None):
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = _axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(repeats, Array) and repeats.size == 1:
        repeats = int(repeats)
    if isinstance(repeats, int):
        wide = x.shape[:axis + 1] + (repeats,) + x.shape[axis + 1:]
        return reshape(broadcast_to(lib.expand_dims(x, axis + 1), wide),
                       x.shape[:axis] + (n * repeats,) + x.shape[axis + 1:])
    if repeats.shape != (n,):
        raise errors.SHAPE(f"repeat: repeats has shape {repeats.shape}, expected ({n},)")
    ends = lib.cumsum(repeats, 0)
    total = int(ends[-1]) if n else 0
    return take(x, searchsorted(ends, lib.arange(0, total, 1, int64, x.device), side="right"),
                axis=axis)


def tile(x, repetitions, /):
    n = py.max(x.ndim, len(repetitions))
    repetitions = (1,) * (n - len(repetitions)) + tuple(repetitions)
    shape = (1,) * (n - x.ndim) + x.shape
    x = reshape(x, shape)
    for axis in range(n):
        x = x if repetitions[axis] == 1 else moveaxis(_repeated(moveaxis(x, axis, 0),
                                                                repetitions[axis]), 0, axis)
    return x


def _repeated(x, times):
    return reshape(broadcast_to(lib.expand_dims(x, 0), (times,) + x.shape),
                   (times * x.shape[0],) + x.shape[1:])


# ---- indexing, searching, sorting ----
def take(x, indices, /, *, axis=None):
    if axis is None and x.ndim != 1:
        raise errors.AXIS(f"take: an array of {x.ndim} axes needs an axis")
    axis = _axis(axis or 0, x.ndim)
    if not x.shape[axis] and not indices.size:  # C refuses an empty axis
        return zeros(x.shape[:axis] + indices.shape + x.shape[axis + 1:], dtype=x.dtype,
                     device=x.device)
    return lib.take(x, indices, axis)


def take_along_axis(x, indices, /, *, axis=-1):
    return lib.take_along_axis(x, indices, axis)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return sum(lib.not_equal_scalar(x, 0), axis=axis, keepdims=keepdims)


def nonzero(x, /):
    if not x.ndim:
        raise errors.SHAPE("nonzero: needs an array with axes")
    flat, found = _true_positions(lib.not_equal_scalar(x, 0)), []
    for extent in reversed(x.shape):
        found.append(lib.mod_scalar(flat, py.max(1, extent)))
        flat = lib.floor_div_scalar(flat, py.max(1, extent))
    return tuple(reversed(found))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """Counts in one stable sort of both arrays how many of x1 stand before each of x2."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is {side!r}, not 'left' or 'right'")
    x1 = x1 if sorter is None else take(x1, sorter, axis=0)
    x2 = x2 if isinstance(x2, Array) else _pair(x1, x2)[1]
    n, m, wanted = x1.size, x2.size, reshape(x2, (x2.size,))
    if not n or not m:
        return zeros(x2.shape, dtype=int64, device=x1.device)
    left = side == "left"
    order = lib.argsort(concat([wanted, x1] if left else [x1, wanted]), 0, const.ASCENDING)
    before = lib.cumsum(order >= m if left else order < n, 0)
    place = lib.argsort(order, 0, const.ASCENDING)
    return reshape(lib.take(before, place[:m] if left else place[n:], 0), x2.shape)


def where(condition, x1, x2, /):
    if not isinstance(x1, Array) and not isinstance(x2, Array):
        x1 = asarray(x1, dtype=result_type(_kind_of(x1), _kind_of(x2)), device=condition.device)
    return lib.where(condition, *_pair(x1, x2))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return lib.argsort(x, axis, const.DESCENDING if descending else const.ASCENDING)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return lib.sort(x, axis, const.DESCENDING if descending else const.ASCENDING)


# ---- sets, by sorting ----
_All = collections.namedtuple("unique_all_result", "values indices inverse_indices counts")
_Counts = collections.namedtuple("unique_counts_result", "values counts")
_Inverse = collections.namedtuple("unique_inverse_result", "values inverse_indices")


def unique_all(x, /):
    flat = reshape(x, (x.size,))
    n = flat.size
    if not n:
        none = zeros((0,), dtype=int64, device=x.device)
        return _All(flat, none, reshape(none, x.shape), none)
    order = lib.argsort(flat, 0, const.ASCENDING)
    sorted_ = lib.take(flat, order, 0)
    first = concat([ones((1,), dtype=bool, device=x.device), sorted_[1:] != sorted_[:-1]])
    starts = _true_positions(first)
    counts = concat([starts[1:], asarray([n], device=x.device)]) - starts
    number = lib.cumsum(first, 0) - 1
    inverse = lib.take(number, lib.argsort(order, 0, const.ASCENDING), 0)
    return _All(lib.take(sorted_, starts, 0), lib.take(order, starts, 0),
                reshape(inverse, x.shape), counts)


def unique_counts(x, /):
    found = unique_all(x)
    return _Counts(found.values, found.counts)


def unique_inverse(x, /):
    found = unique_all(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_values(x, /):
    return unique_all(x).values


def isin(x1, x2, /, *, invert=False):
    x1, x2 = _pair(x1, x2)
    if not x1.size or not x2.size:
        return full(x1.shape, invert, dtype=bool, device=x1.device)
    known = lib.sort(reshape(x2, (x2.size,)), 0, const.ASCENDING)
    place = minimum(searchsorted(known, x1), known.size - 1)
    found = equal(lib.take(known, place, 0), x1)
    return lib.logical_not(found) if invert else found


# ---- statistics ----
def _reduced(op, x, axis, keepdims, *more):
    if axis == ():  # C's empty list means all axes
        return getattr(lib, op)(lib.expand_dims(x, x.ndim), _axes(-1), *more)
    return getattr(lib, op)(x, _axes(axis, keepdims), *more)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    x = x if dtype is None else lib.as_in_dtype(x, _dtype(dtype))
    y = _reduced("sum", x, axis, keepdims)
    return y if dtype is None else lib.as_in_dtype(y, x.dtype)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    x = lib.as_in_dtype(x, _dtype(dtype) if dtype else x.dtype if x.dtype.kind == "f" else int64)
    y = _reduced("prod", x, axis, keepdims)
    return y if dtype is None else lib.as_in_dtype(y, x.dtype)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _reduced("std", x, axis, keepdims, correction)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    return _reduced("var", x, axis, keepdims, correction)


def _reduction(name):
    def function(x, /, *, axis=None, keepdims=False):
        return _reduced(name, x, axis, keepdims)
    _define(name, function, f"dvt_{name}(x, axes)")


for _name in ("mean", "min", "max", "all", "any", "argmin", "argmax"):
    _reduction(_name)


def _cumulative(x, axis, dtype, scan, first):
    if axis is None:
        if x.ndim != 1:
            raise errors.AXIS(f"a cumulative sum or product of {x.ndim} axes needs an axis")
        axis = 0
    axis = _axis(axis, x.ndim)
    x = lib.as_in_dtype(x, _dtype(dtype) if dtype else x.dtype if x.dtype.kind == "f" else int64)
    y = lib.as_in_dtype(scan(x, axis), x.dtype)
    shape = x.shape[:axis] + (1,) + x.shape[axis + 1:]
    return y if first is None else concat([full(shape, first, dtype=x.dtype, device=x.device), y],
                                          axis=axis)


def _cumprod(x, axis):
    """Hillis and Steele's scan: C has no cumulative product. Twice the reach in every step."""
    reach, n = 1, x.shape[axis]
    while reach < n:
        x = concat([lib.slice(x, axis, 0, reach, 1), lib.mul(
            lib.slice(x, axis, reach, n, 1), lib.slice(x, axis, 0, n - reach, 1))], axis=axis)
        reach *= 2
    return x


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    return _cumulative(x, axis, dtype, lib.cumsum, 0 if include_initial else None)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    return _cumulative(x, axis, dtype, _cumprod, 1 if include_initial else None)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    axis = _axis(axis, x.ndim)
    x = concat([part for part in (prepend, x, append) if part is not None], axis=axis)
    for _ in range(n):
        later, earlier = [lib.slice(x, axis, *ends, 1) for ends in ((1, _END), (0, -1))]
        x = lib.not_equal(later, earlier) if x.dtype is bool else lib.sub(later, earlier)
    return x


_operators()
