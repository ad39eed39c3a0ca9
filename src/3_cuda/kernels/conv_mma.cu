/* conv_mma. */
