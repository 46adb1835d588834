__device__ double largest_over_block(double mine) {
    __shared__ double shared[THREADS];
    shared[threadIdx.x] = mine;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        const double other = threadIdx.x < half ? shared[threadIdx.x + half] : 0;
        if (other > shared[threadIdx.x] || other != other) shared[threadIdx.x] = other;
    }
    return shared[0];
}

extern "C" __global__ void norms(const REAL* x, const REAL* y, double* parts, double entries, double differ) {
    const long long size = entries, stride = (long long)gridDim.x * THREADS;
    double l1 = 0, square = 0;
    REAL largest = 0;
    for (long long i = (long long)blockIdx.x * THREADS + threadIdx.x; i < size; i += stride) {
        const REAL modulus = fabs(differ != 0 ? x[i] - y[i] : x[i]);
        l1 += modulus;
        square += (double)modulus * modulus;
        if (modulus > largest || modulus != modulus) largest = modulus;  // NaN stays
    }
    const double sums[2] = {over_block(l1), over_block(square)}, top = largest_over_block(largest);
    if (threadIdx.x > 0) return;
    parts[blockIdx.x] = sums[0];
    parts[gridDim.x + blockIdx.x] = sums[1];
    parts[2 * gridDim.x + blockIdx.x] = top;
}
