// The prox of problems whose entries are neighbours or lie APART, or, with NORMS, their norms. What is measured of a
// problem: norm^2 = scale^2 square of what exceeds the thresholds, and the entry that alone stays where nothing does.
__device__ float product(float a, float b) { return __fmul_rn(a, b); }  // rounded, as by plain operations: ties are
__device__ double product(double a, double b) { return __dmul_rn(a, b); }  // then the same

#ifdef GROUP
typedef REAL Sum;
typedef int Index;
#else
typedef double Sum;
typedef long long Index;
#endif

struct Problem {
    const REAL *z, *w;
    Index length;
    long long stride, w_stride;
    REAL t, l2_weight, growth;  // growth: what the entry that alone stays gains over its order
};

struct Entry { REAL u, order; };

struct Measure { REAL scale, best; Sum square; Index index; };

// The positive part of u = |z| - t w, NaN if that is, and by what the first largest entry is found.
__device__ Entry entry_of(const Problem& p, REAL z, REAL w) {
    const REAL size = NONNEGATIVE ? z : fabs(z);
    REAL u = size - p.t, order = size;
    if (WEIGHTED) {
        u = size - product(p.t, w);
        order = size + product(p.t, p.l2_weight - w);
        if (w > 0 && w == 2 * w && size == size) u = order = -w;  // an infinite weight holds an entry at zero
    }
    return {u < 0 ? REAL(0) : u, order};
}

__device__ long long place_of(const Problem& p, long long j) { return APART ? j * p.stride : j; }

// WEIGHTED is 1 where weights are neighbours, 2 where they are anywhere.
__device__ REAL weight_at(const Problem& p, long long j) {
    return WEIGHTED ? p.w[WEIGHTED == 1 ? j : j * p.w_stride] : REAL(1);
}

__device__ Measure nothing(const Problem& p) { return {1, -p.growth, 0, -1}; }

__device__ void take_best(Measure& m, REAL order, Index j) {
    if (order > m.best) { m.best = order; m.index = j; }
}

__device__ void take_top(REAL& top, REAL u) {
    if (u > top || u != u) top = u;  // NaN stays
}

// Whether a sum of squares of positive numbers, of which top is the largest, neither overflowed nor lost digits.
__device__ bool fits(REAL square, REAL top) {
    const REAL least = sizeof(REAL) == 4 ? 1e-25 : 1e-280, most = sizeof(REAL) == 4 ? 1e30 : 1e280;
    return top <= 0 || (square > least && square < most);
}

__device__ Measure merged(Measure a, const Measure& b) {
    if (b.best > a.best || (b.best == a.best && b.index < a.index)) { a.best = b.best; a.index = b.index; }
    if (a.scale == b.scale) { a.square += b.square; return a; }
    if (b.square == 0) return a;
    if (a.square == 0) { a.square = b.square; a.scale = b.scale; return a; }
    REAL top = a.scale;
    take_top(top, b.scale);
    const Sum of_a = (Sum)a.scale / top, of_b = (Sum)b.scale / top;
    a.square = of_a * of_a * a.square + of_b * of_b * b.square;
    a.scale = top;
    return a;
}

// What becomes of an entry. Nothing is scaled by more than it needs, so that no number leaves the range.
__device__ REAL shrunk(const Problem& p, const Measure& m, REAL inverse, REAL u, bool is_best, bool negative) {
    REAL x = is_best ? m.best + p.growth : REAL(0);
    if (m.square != 0) x = u + p.l2_weight * (p.t * ((m.scale == 1 ? u : u / m.scale) * inverse));
    return negative && !NONNEGATIVE ? -x : x;
}

__device__ REAL norm(const Measure& m) { return m.scale * sqrt((REAL)m.square); }

__device__ REAL inverse_norm(const Measure& m) { return 1 / sqrt((REAL)m.square); }

__device__ long long quotient(long long a, long long b) {  // a division of 64 bits takes as long as all the rest
    return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);
}

struct Arrangement {
    long long outer, length, inner, w_outer, w_entry, w_inner;
    double t, l2_weight;
    bool each;
};

__device__ Problem problem_of(
    const Arrangement& a, const REAL* z, const REAL* w, const REAL* each, long long outer, long long inner
) {
    const double t = a.each ? (double)each[outer * a.inner + inner] : a.t;
    Problem p = {
        z + outer * a.length * a.inner + inner, w + outer * a.w_outer + inner * a.w_inner, (Index)a.length, a.inner,
        a.w_entry, (REAL)t, (REAL)a.l2_weight, (REAL)(WEIGHTED ? 0 : t * (a.l2_weight - 1))
    };
    return p;
}

#define NUMBERS \
    double outer, double length, double inner, double w_outer, double w_entry, double w_inner, \
    double threshold, double l2_weight, double each_own
#define ARRANGEMENT { \
    (long long)outer, (long long)length, (long long)inner, (long long)w_outer, (long long)w_entry, \
    (long long)w_inner, threshold, l2_weight, each_own != 0 \
}

#ifdef GROUP
// GROUP threads of a warp have a problem, ENTRIES of it each, which they keep; then they take another.
__device__ Measure other_thread(const Measure& m, int distance) {
    const unsigned all = 0xffffffff;
    return {
        __shfl_xor_sync(all, m.scale, distance), __shfl_xor_sync(all, m.best, distance),
        __shfl_xor_sync(all, m.square, distance), __shfl_xor_sync(all, m.index, distance)
    };
}

// The measure of what u holds, which becomes its positive part; the signs become bits.
__device__ Measure measured(const Problem& p, REAL* u, unsigned& negative, int lane) {
    Measure m = nothing(p);
    REAL top = 0, weight[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k)
        weight[k] = lane + k * GROUP < p.length ? weight_at(p, lane + k * GROUP) : REAL(0);
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const Entry e = entry_of(p, u[k], weight[k]);
        const bool inside = lane + k * GROUP < p.length;
        negative |= (unsigned)(u[k] < 0) << k;
        u[k] = inside ? e.u : REAL(0);
        if (inside) take_best(m, e.order, lane + k * GROUP);
        take_top(top, u[k]);
        m.square += u[k] * u[k];
    }
    if (!fits(m.square, top)) {
        m.scale = top;
        m.square = 0;
#pragma unroll
        for (int k = 0; k < ENTRIES; ++k) m.square += (u[k] / top) * (u[k] / top);
    }
#pragma unroll
    for (int distance = 1; distance < GROUP; distance *= 2) m = merged(m, other_thread(m, distance));
    return m;
}

extern "C" __global__ void short_rows(const REAL* z, const REAL* w, const REAL* each, REAL* x, NUMBERS) {
    const Arrangement a = ARRANGEMENT;
    const long long problems = a.outer * a.inner, step = (long long)gridDim.x * (THREADS / GROUP);
    const int lane = threadIdx.x % GROUP, own = threadIdx.x / GROUP;
    for (long long first = (long long)blockIdx.x * (THREADS / GROUP); first < problems; first += step) {
        const bool inside = first + own < problems;  // the others take part in what follows, and write nothing
        const long long number = inside ? first + own : first;
        const long long row = a.inner == 1 ? number : quotient(number, a.inner), place = number - row * a.inner;
        const Problem p = problem_of(a, z, w, each, row, place);
        REAL u[ENTRIES];
        unsigned negative = 0;
#pragma unroll
        for (int k = 0; k < ENTRIES; ++k) {
            const int j = lane + k * GROUP;
            u[k] = j < p.length ? p.z[place_of(p, j)] : REAL(0);
        }
        const Measure m = measured(p, u, negative, lane);
        if (NORMS) {
            if (inside && lane == 0) x[number] = norm(m);
            continue;
        }
        const REAL inverse = inverse_norm(m);
        REAL* const out = x + (p.z - z);
#pragma unroll
        for (int k = 0; k < ENTRIES; ++k) {
            const int j = lane + k * GROUP;
            if (inside && j < p.length)
                out[place_of(p, j)] = shrunk(p, m, inverse, u[k], j == m.index, negative >> k & 1);
        }
    }
}

#else
// A block has ACROSS neighbouring problems, and the entries of each are dealt out to DOWN threads, of one block or
// of several.
#define DOWN (THREADS / ACROSS)

__device__ Measure measured(const Problem& p, Index first, Index end) {
    Measure m = nothing(p);
    REAL top = 0;
    Index j = first;
    for (; j + 3 * DOWN < end; j += 4 * DOWN) {  // four reads under way at a time
        REAL value[4], weight[4], square = 0;
        for (int k = 0; k < 4; ++k) value[k] = p.z[place_of(p, j + k * DOWN)];
        for (int k = 0; k < 4; ++k) weight[k] = weight_at(p, j + k * DOWN);
        for (int k = 0; k < 4; ++k) {
            const Entry e = entry_of(p, value[k], weight[k]);
            take_best(m, e.order, j + k * DOWN);
            take_top(top, e.u);
            square += e.u * e.u;
        }
        m.square += square;
    }
    for (; j < end; j += DOWN) {
        const Entry e = entry_of(p, p.z[place_of(p, j)], weight_at(p, j));
        take_best(m, e.order, j);
        take_top(top, e.u);
        m.square += e.u * e.u;
    }
    if (fits((REAL)m.square, top)) return m;
    m.scale = top;
    m.square = 0;
    for (j = first; j < end; j += DOWN) {
        const REAL q = entry_of(p, p.z[place_of(p, j)], weight_at(p, j)).u / top;
        m.square += q * q;
    }
    return m;
}

// What all threads with the same problem have measured together, in an order that never changes.
__device__ Measure over_threads(const Measure& mine) {
    __shared__ Measure shared[THREADS];
    shared[threadIdx.x] = mine;
    for (int half = THREADS / 2; half >= ACROSS; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x] = merged(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
    return shared[threadIdx.x % ACROSS];
}

__device__ void write_entries(const Problem& p, const Measure& m, REAL* x, Index first, Index end) {
    const REAL inverse = inverse_norm(m);
    Index j = first;
    for (; j + 3 * DOWN < end; j += 4 * DOWN) {
        REAL value[4], weight[4];
        for (int k = 0; k < 4; ++k) value[k] = p.z[place_of(p, j + k * DOWN)];
        for (int k = 0; k < 4; ++k) weight[k] = weight_at(p, j + k * DOWN);
        for (int k = 0; k < 4; ++k) {
            const REAL u = entry_of(p, value[k], weight[k]).u;
            x[place_of(p, j + k * DOWN)] = shrunk(p, m, inverse, u, j + k * DOWN == m.index, value[k] < 0);
        }
    }
    for (; j < end; j += DOWN) {
        const REAL value = p.z[place_of(p, j)], u = entry_of(p, value, weight_at(p, j)).u;
        x[place_of(p, j)] = shrunk(p, m, inverse, u, j == m.index, value < 0);
    }
}

// Where a thread's problem is, and which of its entries are the thread's: every DOWN-th from first to end.
struct Part { long long outer, inner, tile; Index first, end; };

__device__ Part part_of(const Arrangement& a, long long parts) {
    const long long tiles = quotient(a.inner + ACROSS - 1, ACROSS), all = quotient(blockIdx.x, parts);
    const long long row = quotient(all, tiles), place = (all - row * tiles) * ACROSS + threadIdx.x % ACROSS;
    const long long turns = quotient(quotient(a.length + DOWN - 1, DOWN) + parts - 1, parts) * DOWN;
    const long long begin = (blockIdx.x - all * parts) * turns, end = begin + turns < a.length ? begin + turns : a.length;
    if (place >= a.inner) return {row, 0, all, 0, 0};
    return {row, place, all, begin + threadIdx.x / ACROSS, end};
}

extern "C" __global__ void whole_rows(const REAL* z, const REAL* w, const REAL* each, REAL* x, NUMBERS) {
    const Arrangement a = ARRANGEMENT;
    const Part part = part_of(a, 1);
    const Problem p = problem_of(a, z, w, each, part.outer, part.inner);
    const Measure m = over_threads(measured(p, part.first, part.end));
    if (!NORMS) write_entries(p, m, x + (p.z - z), part.first, part.end);
    else if (threadIdx.x < ACROSS && part.end > 0) x[part.outer * a.inner + part.inner] = norm(m);
}

extern "C" __global__ void measure_parts(
    const REAL* z, const REAL* w, const REAL* each, double* found, NUMBERS, double parts
) {
    const Arrangement a = ARRANGEMENT;
    const Part part = part_of(a, (long long)parts);
    const Problem p = problem_of(a, z, w, each, part.outer, part.inner);
    const Measure m = over_threads(measured(p, part.first, part.end));
    if (threadIdx.x >= ACROSS) return;
    found += 4 * ((long long)blockIdx.x * ACROSS + threadIdx.x);
    found[0] = m.scale;
    found[1] = m.square;
    found[2] = m.best;
    found[3] = m.index;
}

extern "C" __global__ void write_parts(
    const REAL* z, const REAL* w, const REAL* each, const double* found, REAL* x, NUMBERS, double parts
) {
    const Arrangement a = ARRANGEMENT;
    const Part part = part_of(a, (long long)parts);
    const Problem p = problem_of(a, z, w, each, part.outer, part.inner);
    Measure m = nothing(p);
    for (Index k = threadIdx.x / ACROSS; k < (Index)parts; k += DOWN) {
        const double* own = found + 4 * ((part.tile * (Index)parts + k) * ACROSS + threadIdx.x % ACROSS);
        m = merged(m, Measure{(REAL)own[0], (REAL)own[2], own[1], (Index)own[3]});
    }
    m = over_threads(m);
    write_entries(p, m, x + (p.z - z), part.first, part.end);
}
#endif
