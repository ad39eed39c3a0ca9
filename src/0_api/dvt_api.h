/* The public declarations, in reading order. */
#ifndef DVT_API_H
#define DVT_API_H
#include "0_api/dvt_intro.h"
#include "0_api/dvt_config.h"
#include "0_api/dvt_status.h"
#include "0_api/dvt_types.h"
#include "0_api/dvt_scope.h"
#include "0_api/dvt_context.h"
#include "0_api/dvt_array.h"
#include "0_api/dvt_ops.h"
#include "0_api/dvt_random.h"
#include "0_api/dvt_autograd.h"
#include "0_api/dvt_io.h"
#include "0_api/dvt_dlpack.h"
#include "0_api/dvt_gpu.h"
#include "0_api/dvt_kernel.h"
#if !defined(DEVTENSOR_NO_NN)
#include "0_api/dvt_nn.h"
#include "0_api/dvt_nn_sequence.h"
#include "0_api/dvt_loss.h"
#include "0_api/dvt_train.h"
#include "0_api/dvt_distributed.h"
#include "0_api/dvt_checkpoint.h"
#endif
#include "0_api/dvt_report.h"
#include "0_api/dvt_profile.h"
#include "0_api/dvt_macros.h"
#endif
