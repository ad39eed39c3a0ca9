/* The table of built-in optimizers. An optimizer has one row here, and one formula in
   2_core/math/optimizer_steps.inl. They give the enum, the number of state arrays and the launch.
   They also give the CPU loops for every dtype, the vector kernels, the CUDA kernel and the tests.
   docs/ADDING_AN_OPTIMIZER.md explains it, also for optimizers that a program adds without a row.

   Columns
     name        DVTI_OP_<name>, and V(update_<name>) in optimizer_steps.inl
     kind        DVT_OPTIMIZER_<kind> of dvt_optimizer_kind
     make        RATE        dvt_optimizer_<name>(learning_rate)
                 RATE_DECAY  dvt_optimizer_<name>(learning_rate, weight_decay)
     epsilon     its default
     few, many   the smallest and the largest number of state arrays that vector kernels support.
                 With other numbers, elements are computed one by one
     states      the number of state arrays, computed from o, the dvt_optimizer
     flag        a switch of the formula, computed from o
     p0 .. p3    numbers of the formula, computed from o, rate (the learning rate of this step) and
                 count (the number of the step, from 1)
     doc         one line */
#ifndef DVTI_OPTIMIZER_TABLE_H
#define DVTI_OPTIMIZER_TABLE_H

/* name, kind, make, epsilon, few, many, states, flag, p0, p1, p2, p3, doc */
#define DVTI_OPTIMIZER_TABLE(O)                                                                    \
    O(sgd, SGD, RATE, 1e-8, 0, 1, o->momentum != 0 ? 1 : 0, o->nesterov, o->momentum, 0, 0, 0,     \
      "stochastic gradient descent, with momentum or Nesterov's")                                  \
    O(adam, ADAM, RATE, 1e-8, 2, 2, 2, false, o->beta1, o->beta2, o->epsilon,                      \
      dvti_adam_rate(o, rate, count), "Adam")                                                      \
    O(adamw, ADAMW, RATE_DECAY, 1e-8, 2, 2, 2, false, o->beta1, o->beta2, o->epsilon,              \
      dvti_adam_rate(o, rate, count), "Adam with decoupled weight decay")                          \
    O(rmsprop, RMSPROP, RATE, 1e-8, 1, 1, o->centered ? 3 : 1, o->centered, o->rho, o->momentum,   \
      o->epsilon, 0, "RMSProp, also centered")                                                     \
    O(adagrad, ADAGRAD, RATE, 1e-7, 1, 1, 1, false, 0, 0, o->epsilon, 0, "AdaGrad")

#endif
