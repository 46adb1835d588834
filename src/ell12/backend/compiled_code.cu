__device__ double over_block(double mine) {  // the sum over a block's threads, in an order that never changes
    __shared__ double shared[THREADS];
    __syncthreads();  // nobody reads what was there before
    shared[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    __syncthreads();
    return shared[0];
}
