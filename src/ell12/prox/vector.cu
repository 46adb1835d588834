__device__ REAL above(REAL z, REAL t) {
    return z > t ? z - t : (z < -t ? z + t : (z == z ? REAL(0) : z));
}

extern "C" __global__ void square_above(const REAL* z, double* sums, double entries, double threshold) {
    const long long size = entries;
    const REAL t = threshold;
    const long long stride = (long long)gridDim.x * THREADS;
    REAL total[4] = {0, 0, 0, 0};
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + 3 * stride < size; i += 4 * stride) {
        REAL read[4];
        for (int k = 0; k < 4; ++k) read[k] = z[i + k * stride];
        for (int k = 0; k < 4; ++k) { REAL u = above(read[k], t); total[k] += u * u; }
    }
    for (; i < size; i += stride) { REAL u = above(z[i], t); total[0] += u * u; }
    double sum = over_block((double)total[0] + total[1] + total[2] + total[3]);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void shrink(
    const REAL* z, double* sums, REAL* x, double entries, double threshold, double growth
) {
    const long long size = entries;
    const REAL t = threshold;
    double mine = 0;
    for (int k = threadIdx.x; k < gridDim.x; k += THREADS) mine += sums[k];
    double square = over_block(mine);
    if (blockIdx.x == 0 && threadIdx.x == 0) sums[gridDim.x] = square;
    const REAL factor = 1 + growth / sqrt(square);
    const long long stride = (long long)gridDim.x * THREADS;
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + 3 * stride < size; i += 4 * stride) {
        REAL read[4];
        for (int k = 0; k < 4; ++k) read[k] = z[i + k * stride];
        for (int k = 0; k < 4; ++k) x[i + k * stride] = above(read[k], t) * factor;
    }
    for (; i < size; i += stride) x[i] = above(z[i], t) * factor;
}
