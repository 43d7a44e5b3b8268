// The per-example QPs, solved exactly.
//
// All three formulations keep signed coefficients a_i^m with w_m = sum_i a_i^m x_i. With z the unconstrained minimiser
// along each coordinate, the solution has one unknown scalar:
//   Crammer-Singer   [sdm] (10): change^m = min(room^m, theta - g^m/A), room = C^m - a, sum (a + change) = 0
//   Weston-Watkins   [sdm] (21): alpha^m = clip(z^m - t, 0, C), z = alpha - g/A, t = sum of the changes
//   One-versus-rest  [sdm] sec. 4: alpha^m = clip(z^m, 0, C^m), each class on its own
// The first two are roots of a monotone piecewise linear function: Newton's method lands on them after a few steps.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "simd/lanes.hpp"

namespace larank {
inline namespace LARANK_UNIT {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// The class lanes of one row, vector by vector. `Vectors` is a constant for few classes, so that loops unroll.
template <class T, class Vectors>
struct RowLanes {
    const RowProblem<T>& row;
    Vectors vectors;
    Lanes<T> zero = broadcast(T(0));
    Lanes<T> one = broadcast(T(1));

    template <class Visit>
    void each(Visit visit) const {
        Lanes<T> index = class_indices<T>();
        const Lanes<T> step = broadcast(T(lane_count<T>)), label = broadcast(T(row.label)),
                       classes = broadcast(T(row.classes));
        for (int64_t v = 0; v < vectors; ++v, index = index + step)
            visit(v * lane_count<T>, index == label, classes > index);
    }
    Lanes<T> scores(int64_t at) const { return load(row.scores + at); }
    Lanes<T> coefficients(int64_t at) const { return load(row.coefficients + at); }
};

struct CrammerSinger {
    template <class T, class Vectors>
    static RowStep<T> solve(const RowProblem<T>& row, Vectors vectors, T* v, T* change) {
        const RowLanes<T, Vectors> lanes{row, vectors};
        const Lanes<T> zero = lanes.zero, one = lanes.one, none = broadcast(-infinity<T>),
                       never = broadcast(infinity<T>), cost = broadcast(row.C), scale = broadcast(T(1) / row.A),
                       own = broadcast(row.scores[row.label]);
        Lanes<T> most = none, least = never;
        lanes.each([&](int64_t at, auto is_label, auto is_class) {
            const Lanes<T> a = lanes.coefficients(at), bound = select(is_label, cost, zero);
            // [sdm] (5), less the label's score: near the margin nothing is rounded, and a shift of g is of no account.
            const Lanes<T> g = select(is_class, lanes.scores(at) - own + select(is_label, zero, one), none);
            const Lanes<T> open = select(is_class, select(bound > a, g, never), never);
            most = larger(most, g);
            least = smaller(least, open);
            store(v + at, g);
        });
        const T highest = greatest(most);
        const T violation = highest + greatest(zero - least);  // [sdm] (6)
        RowStep<T> step{violation, highest, violation > row.skip};
        if (!step.moved) return step;

        // From the largest g down, all that matters is of the size of the change.
        const Lanes<T> peak = broadcast(highest);
        Lanes<T> total = zero, sums = zero, terms = zero;
        lanes.each([&](int64_t at, auto is_label, auto) {
            const Lanes<T> a = lanes.coefficients(at), wanted = (load(v + at) - peak) * scale;
            const Lanes<T> likely = select(is_label, one, select(a == zero, select(wanted == zero, one, zero), one));
            store(v + at, wanted);
            store(change + at, select(is_label, cost, zero) - a);
            total = total + a;
            sums = sums + select(likely > zero, wanted, zero);
            terms = terms + likely;
        });
        const T all = sum(total), start = (sum(sums) - all) / sum(terms);
        const Lanes<T> level = broadcast(threshold(vectors, v, change, all, start));
        for (int64_t at = 0; at < vectors * lane_count<T>; at += lane_count<T>)
            store(change + at, smaller(load(change + at), level - load(v + at)));
        return step;
    }

    // theta with sum min(room, theta - v) = -total, v = g/A. The sum is concave in theta: from a lower bound Newton's
    // iterates only rise, and when the set of lanes below their room stays, so does theta. Any set of lanes, had none
    // of it a bound, gives such a lower bound: the start is that of the label, the lanes with a coefficient and the one
    // of the largest g, which mostly is the solution's. C enters through lanes at their bounds alone, so that theta is
    // as precise as the coefficients however large C is.
    template <class T, class Vectors>
    static T threshold(Vectors vectors, const T* v, const T* room, T total, T start) {
        const Lanes<T> zero = broadcast(T(0)), one = broadcast(T(1));
        for (T theta = start;;) {
            const Lanes<T> level = broadcast(theta);
            Lanes<T> sums = zero, terms = zero;
            for (int64_t at = 0; at < vectors * lane_count<T>; at += lane_count<T>) {
                const Lanes<T> wanted = load(v + at), most = load(room + at);
                const auto bounded = level > wanted + most;
                sums = sums + select(bounded, zero - most, wanted);
                terms = terms + select(bounded, zero, one);
            }
            const T next = (sum(sums) - total) / sum(terms);
            if (!(next > theta)) return theta;
            theta = next;
        }
    }
};

struct WestonWatkins {
    template <class T, class Vectors>
    static RowStep<T> solve(const RowProblem<T>& row, Vectors vectors, T* z, T* change) {
        const RowLanes<T, Vectors> lanes{row, vectors};
        const Lanes<T> zero = lanes.zero, one = lanes.one, none = broadcast(-infinity<T>), cost = broadcast(row.C),
                       scale = broadcast(T(1) / row.A), own = broadcast(row.scores[row.label]);
        Lanes<T> worst = zero, losses = zero, total = zero;
        lanes.each([&](int64_t at, auto is_label, auto is_class) {
            const Lanes<T> alpha = select(is_label, zero, zero - lanes.coefficients(at));
            const Lanes<T> g = own - lanes.scores(at) - one;  // [sdm] (17)
            const Lanes<T> raise = select(cost > alpha, zero - g, zero), lower = select(alpha > zero, g, zero);
            const Lanes<T> violation = larger(raise, lower);  // [sdm] (18)
            const auto other = [&](const Lanes<T>& v, const Lanes<T>& otherwise) {
                return select(is_label, otherwise, select(is_class, v, otherwise));
            };
            worst = larger(worst, other(violation, zero));
            losses = losses + larger(other(zero - g, zero), zero);
            total = total + alpha;
            store(z + at, other(alpha - g * scale, none));
        });
        RowStep<T> step{greatest(worst), sum(losses), false};
        step.moved = step.violation > row.skip;
        if (!step.moved) return step;

        const Lanes<T> shift = broadcast(total_change(row, vectors, z, sum(total)));
        Lanes<T> changes = zero;
        lanes.each([&](int64_t at, auto is_label, auto) {
            const Lanes<T> alpha = smaller(larger(load(z + at) - shift, zero), cost);
            const Lanes<T> delta = select(is_label, zero, zero - alpha - lanes.coefficients(at));
            changes = changes - delta;
            store(change + at, delta);
        });
        change[row.label] = sum(changes);  // [sdm] Algorithm 3.1
        return step;
    }

    // t with t = sum clip(z - t, 0, C) - sum alpha: strictly monotone, so Newton's step kept inside a bracket.
    template <class T, class Vectors>
    static T total_change(const RowProblem<T>& row, Vectors vectors, const T* z, T total) {
        const Lanes<T> zero = broadcast(T(0)), one = broadcast(T(1)), cost = broadcast(row.C);
        T low = -total, high = T(row.classes) * row.C - total, t = 0;
        for (int iteration = 0; iteration < 100; ++iteration) {
            const Lanes<T> shift = broadcast(t);
            Lanes<T> alphas = zero, free = zero;
            for (int64_t v = 0; v < vectors; ++v) {
                const Lanes<T> open = load(z + v * lane_count<T>) - shift;
                alphas = alphas + smaller(larger(open, zero), cost);
                free = free + select(open > zero, select(cost > open, one, zero), zero);
            }
            const T now = sum(alphas), excess = now - total - t;
            (excess > 0 ? low : high) = t;
            T next = t + excess / (1 + sum(free));
            if (!(next > low && next < high)) next = next == t ? t : low + (high - low) / 2;
            const T moved = next > t ? next - t : t - next;
            t = next;
            if (moved <= std::numeric_limits<T>::epsilon() * (now + total)) break;  // the rounding of the sums
        }
        return t;
    }
};

struct OneVsRest {
    template <class T, class Vectors>
    static RowStep<T> solve(const RowProblem<T>& row, Vectors vectors, T*, T* change) {
        const RowLanes<T, Vectors> lanes{row, vectors};
        const Lanes<T> zero = lanes.zero, one = lanes.one, own = broadcast(row.C), rest = broadcast(row.C_rest),
                       scale = broadcast(T(1) / row.A);
        Lanes<T> worst = zero, own_loss = zero, rest_losses = zero;
        lanes.each([&](int64_t at, auto is_label, auto is_class) {
            const Lanes<T> cost = select(is_label, own, rest);
            const Lanes<T> sign = select(is_label, one, zero - one);
            const Lanes<T> alpha = sign * lanes.coefficients(at), g = sign * lanes.scores(at) - one;
            const Lanes<T> raise = select(cost > alpha, zero - g, zero), lower = select(alpha > zero, g, zero);
            worst = larger(worst, select(is_class, larger(raise, lower), zero));
            const Lanes<T> loss = select(is_class, larger(zero - g, zero), zero);
            own_loss = own_loss + select(is_label, loss, zero);
            rest_losses = rest_losses + select(is_label, zero, loss);
            const Lanes<T> moved = smaller(larger(alpha - g * scale, zero), cost) - alpha;
            store(change + at, select(is_class, sign * moved, zero));
        });
        RowStep<T> step{greatest(worst), sum(own_loss), false, sum(rest_losses)};
        step.moved = step.violation > row.skip;
        return step;
    }
};

template <class Rule, class T>
RowStep<T> solve_row(const RowProblem<T>& row, T* work, T* change) {
    switch (row.lanes / lane_count<T>) {
        case 1: return Rule::solve(row, std::integral_constant<int64_t, 1>{}, work, change);
        case 2: return Rule::solve(row, std::integral_constant<int64_t, 2>{}, work, change);
        case 3: return Rule::solve(row, std::integral_constant<int64_t, 3>{}, work, change);
        case 4: return Rule::solve(row, std::integral_constant<int64_t, 4>{}, work, change);
        default: return Rule::solve(row, row.lanes / lane_count<T>, work, change);
    }
}

}  // namespace LARANK_UNIT
}  // namespace larank
