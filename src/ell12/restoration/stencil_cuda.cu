struct Numbers { REAL t, growth, unit, l2_weight, lengthening, alone, mark, scale[3]; };

#if ISOTROPIC
// d - prox(d) of the differences d, which it replaces, and their envelope but for what the whole image's norm relieves;
// to beyond is added the square of what exceeds t, or a mark where a step would be kept if no other exceeded t.
// Lengths are in units of t.
__device__ REAL residual(REAL* d, const Numbers& c, REAL* beyond) {
    REAL square = 0;
    for (int k = 0; k < NDIM; ++k) square += d[k] * c.unit * d[k] * c.unit;
    if (!(square > 1)) {
        if (square > c.alone) *beyond += c.mark;
        return c.t * c.t * square / 2;
    }
    const REAL root = rsqrt(square), over = square * root - 1, factor = root - c.lengthening * over * root;
    for (int k = 0; k < NDIM; ++k) d[k] *= factor;
    *beyond += over * over;
    return c.t * c.t * (over + REAL(0.5));
}
#else
// d - prox(d) of the differences d, which it replaces, and their envelope. Squares are safe, being in units of t.
__device__ REAL residual(REAL* d, const Numbers& c, REAL*) {
    REAL size[NDIM], top = 0, square = 0, envelope = 0;
    int largest = 0;
    for (int k = 0; k < NDIM; ++k) {
        size[k] = fabs(d[k]);
        if (size[k] > top) { top = size[k]; largest = k; }
    }
    const bool some = top > c.t;
    for (int k = 0; k < NDIM; ++k) {
        const REAL most = !some && k == largest ? c.growth : c.t, cut = size[k] < most ? size[k] : most;
        const REAL over = (size[k] - cut) * c.unit;
        square += over * over;
        envelope += cut * (size[k] - cut / 2);
        d[k] = copysign(cut, d[k]);
        size[k] -= cut;
    }
    if (some) {
        const REAL factor = c.l2_weight * rsqrt(square);
        for (int k = 0; k < NDIM; ++k) d[k] -= copysign(factor * size[k], d[k]);
        envelope -= c.t * c.t * (square * factor + c.l2_weight * c.l2_weight / 2);
    }
    return envelope;
}
#endif

struct Grid { int length[NDIM]; long long stride[NDIM]; bool periodic; };

__device__ void differences(const REAL* z, const int* place, const Grid& grid, const Numbers& c, REAL* d) {
    for (int k = 0; k < NDIM; ++k) {
        const int last = grid.length[k] - 1;
        if (place[k] < last) d[k] = z[grid.stride[k]] - z[0];
        else d[k] = grid.periodic ? z[-last * grid.stride[k]] - z[0] : REAL(0);
        d[k] *= c.scale[k];
    }
}

// The gradient of the penalty over mu at a pixel, of which z is the address; the sums there are added.
__device__ REAL slope(const REAL* z, int* place, const Grid& grid, const Numbers& c, REAL* envelope, REAL* beyond) {
    REAL d[NDIM], total = 0, ignored = 0;
    differences(z, place, grid, c, d);
    *envelope += residual(d, c, beyond);
    for (int k = 0; k < NDIM; ++k) total -= c.scale[k] * d[k];
    for (int k = 0; k < NDIM; ++k) {
        const int here = place[k];
        if (here == 0 && !grid.periodic) continue;
        place[k] = here == 0 ? grid.length[k] - 1 : here - 1;
        differences(z + (place[k] - here) * grid.stride[k], place, grid, c, d);
        residual(d, c, &ignored);
        total += c.scale[k] * d[k];
        place[k] = here;
    }
    return total;
}

extern "C" __global__ void sweep(
    const REAL* z, const REAL* u, const REAL* y, const REAL* weight, REAL* new_z, REAL* new_u, double* sums,
    double all_rows, double planes, double lines, double width, double flips, double periodic,
    double curvature, double threshold, double l2_weight, double bounded, double least, double most,
    double scale_of_planes, double scale_of_lines, double scale_of_columns,
    double lengthening, double alone, double mark,
    double stepping, double weighted, double step, double inertia, double back
) {
    const int rows = all_rows, lengths[3] = {(int)planes, (int)lines, (int)width};
    const double scales[3] = {scale_of_planes, scale_of_lines, scale_of_columns};
    Numbers c = {
        (REAL)threshold, (REAL)((1 - l2_weight) * threshold), (REAL)(1 / threshold), (REAL)l2_weight,
        (REAL)lengthening, (REAL)alone, (REAL)mark
    };
    for (int k = 0; k < NDIM; ++k) c.scale[k] = scales[3 - NDIM + k];
    const REAL mu = curvature, low = least, high = most, size = step, momentum = inertia, left = back;
    Grid grid;
    long long stride = 1, origin = 0;  // of an axis that is flipped the last pixel comes first
    for (int k = NDIM - 1; k >= 0; --k) {
        const bool flipped = (int)flips >> k & 1;
        grid.length[k] = lengths[3 - NDIM + k];
        grid.stride[k] = flipped ? -stride : stride;
        origin += flipped ? stride * (grid.length[k] - 1) : 0;
        stride *= grid.length[k];
    }
    grid.periodic = periodic != 0;
    REAL envelope = 0, loss = 0, square = 0, turn = 0, beyond = 0;
    const int column = blockIdx.x * THREADS + threadIdx.x;
    for (int row = blockIdx.y; column < lengths[2] && row < rows; row += gridDim.y) {
        const int places[3] = {row / lengths[1] % lengths[0], row % lengths[1], column};
        int place[NDIM];
        for (int k = 0; k < NDIM; ++k) place[k] = places[3 - NDIM + k];
        long long i = origin + row / (lengths[0] * lengths[1]) * stride;
        for (int k = 0; k < NDIM; ++k) i += place[k] * grid.stride[k];
        REAL gradient = mu * slope(z + i, place, grid, c, &envelope, &beyond);
        if (stepping == 0) { new_z[i] = gradient; continue; }
        const REAL pixel = z[i], away = pixel - y[i], pull = weighted != 0 ? weight[i] * away : away;
        gradient += pull;
        const REAL move = pixel - u[i];
        REAL residual = gradient, moved = pixel - size * gradient + momentum * move, after = pixel - left * gradient;
        if (bounded != 0) {
            residual = pixel - fmin(fmax(pixel - gradient, low), high);
            moved = fmin(fmax(moved, low), high);
            after = fmin(fmax(after, low), high);
        }
        new_z[i] = moved;  // either may lie where u was
        if (left != 0) new_u[i] = after;
        loss += pull * away;
        square += residual * residual;
        turn += gradient * move;
    }
    const double all[5] = {envelope, loss, square, turn, beyond};
    const long long block = (long long)blockIdx.y * gridDim.x + blockIdx.x;
    for (int k = 0; k < 5; ++k) {
        const double sum = over_block(all[k]);
        if (threadIdx.x == 0) sums[5 * block + k] = sum;
    }
}
