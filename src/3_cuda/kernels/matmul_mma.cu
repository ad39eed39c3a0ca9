/* matmul_mma. */
