// The Huller [thesis] section 4.1: an online solver of the hard margin SVM, as the nearest points of two convex hulls.
//
//   min_alpha  1/2 |X_P - X_N|^2     X_P = sum_P alpha_i x_i,  X_N = sum_N alpha_j x_j                (4.3), (4.4)
//                                    with alpha >= 0, the alpha of each class adding up to one
//   f(x) = 2 ( <X_P - X_N, x> + (|X_N|^2 - |X_P|^2) / 2 ) / |X_P - X_N|^2       (4.5), so that f(X_P) = 1, f(X_N) = -1
//
// HULLERUPDATE(k) (algorithm 9) moves the hull's point of x_k's class along the line through x_k, as near to the other
// point as the constraints allow. PROCESS does so for a new example, REPROCESS for a random support vector, which may
// leave (algorithm 10).
//
// Certificate, with w = X_P - X_N: the hulls are at least as far apart as their projections on w,
//
//   1/2 |X_P - X_N|^2  >=  optimum  >=  1/2 (max(0, min_P <w, x> - max_N <w, x>) / |w|)^2
//                                    =  1/2 |w|^2 max(0, (min_P f + min_N -f) / 2)^2,
//
// and the two sides meet at the optimum and nowhere else, unless the hulls intersect. They are the reciprocals of the
// objectives of the hard margin SVM, min 1/2 |v|^2 with y (<v, x> + b) >= 1: its dual at 2 alpha / |w|^2 is 2 / |w|^2 =
// 1 / left side, its primal at v parallel to w with the smallest margin 1 is 1 / right side. Where w does not separate
// the classes that primal is infinite and the right side zero.
//
// More than two classes are several problems, each class against the rest, with patterns and kernel values in common.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/notfinite.hpp"
#include "kernel/patternsolver.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"
#include "training/random.hpp"

namespace larank {

// One class of one problem: its support vectors, and their coefficients alpha = scale * weight, so that multiplying
// all of them is one multiplication.
struct Hull {
    std::vector<int32_t> slots;
    LargeVector<double> weights;
    double scale = 1;
    int64_t averaged = 0;  // examples that its first point is the average of

    int64_t size() const { return int64_t(slots.size()); }
    double alpha(int32_t place) const { return scale * weights[std::size_t(place)]; }
    int64_t bytes() const { return int64_t(slots.capacity() * 4 + weights.capacity() * 8); }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(slots, weights, scale, averaged);
    }
};

// A class against the rest: side 1 is the class, P in the paper, side 0 is N.
struct HullPair {
    std::array<Hull, 2> sides;
    std::array<double, 2> squared{};                                 // |X_N|^2, |X_P|^2
    double cross = 0;                                                // <X_N, X_P>
    bool is_begun = false;                                           // the first points are averaged
    std::array<double, 2> smallest_margin = {no_margin, no_margin};  // y f(x) of what was processed in this epoch

    static constexpr double no_margin = std::numeric_limits<double>::infinity();

    bool has_both() const { return sides[0].size() > 0 && sides[1].size() > 0; }
    double squared_distance() const { return std::max(0.0, squared[0] - 2 * cross + squared[1]); }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(sides, squared, cross, is_begun, smallest_margin);
    }
};

struct HullerCounters {
    int64_t process = 0, reprocess = 0, insertions = 0, removals = 0;

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(process, reprocess, insertions, removals);
    }
};

// What must be remembered beside the patterns to go on.
struct HullerState {
    int32_t classes = 0;
    uint64_t random = 0;
    std::vector<std::array<double, 3>> products;  // |X_N|^2, <X_N, X_P>, |X_P|^2 of each problem
    std::vector<std::array<int64_t, 3>> begun;    // examples averaged on both sides, and whether that is over
};

template <class T>
class Huller : public PatternSolver<T, Huller<T>> {
  public:
    using Base = PatternSolver<T, Huller<T>>;
    using Base::table, Base::stay_within_limit;

    Huller(uint64_t seed, int64_t memory_limit)
        : Base(memory_limit, 1, births_to_settle), random_(seed), problems_(2) {}

    // Classes that have arrived. With two of them, problem 1 says it all; from the third on problem p is about class p.
    int32_t classes() const { return classes_; }
    int32_t first_problem() const { return classes_ > 2 ? 0 : 1; }
    int32_t problems() const { return int32_t(problems_.size()); }
    int64_t columns() const { return problems() - first_problem(); }  // problem p has column p - first_problem
    const HullPair& problem(int32_t p) const { return problems_[std::size_t(p)]; }
    static int side_of(int32_t p, int32_t label) { return label == p; }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        while (at_ < end) {
            process_example(at_++);
            for (std::size_t n = 0; n < visits_.size(); ++n) reprocess(n);
        }
    }

    void begin_another_epoch() {
        for (HullPair& pair : problems_) pair.smallest_margin = {HullPair::no_margin, HullPair::no_margin};
    }

    // 1/2 |X_P - X_N|^2 of all problems.
    double objective() const {
        double sum = 0;
        for (int32_t p = first_problem(); p < problems(); ++p) sum += problem(p).squared_distance() / 2;
        return sum;
    }
    // The lower bound of it, from the margins that were seen in this epoch, each as it was then.
    double estimated_bound() const {
        double sum = 0;
        for (int32_t p = first_problem(); p < problems(); ++p) {
            const HullPair& pair = problem(p);
            const auto [negative, positive] = pair.smallest_margin;
            if (std::min(negative, positive) == HullPair::no_margin) continue;
            // Support vectors, which are not looked at, are at margin 1 once all is well.
            const double margin = std::max(0.0, (std::min(1.0, negative) + std::min(1.0, positive)) / 2);
            sum += pair.squared_distance() / 2 * margin * margin;
        }
        return sum;
    }

    int64_t bytes_beside_rows() const {
        int64_t total = 0;
        for (const HullPair& pair : problems_) total += pair.sides[0].bytes() + pair.sides[1].bytes();
        return total;
    }
    const HullerCounters& counters() const { return counters_; }

    // Alpha, above zero on both sides.
    SupportArrays support() const {
        return arrays_of(table(), [this](SupportArrays& arrays, int32_t, const Pattern& pattern) {
            for (const SupportVector& v : pattern.vectors) {
                const std::size_t side = std::size_t(side_of(v.label, pattern.label));
                arrays.put(v.label - first_problem(), problem(v.label).sides[side].alpha(v.place));
            }
        });
    }
    // A pattern of a saved model: `row` has its kernel values with the slots before it. The classes must be there
    // already.
    void restore(const T* row, const SupportArrays& saved, std::size_t n) {
        const int32_t label = saved.labels[n];
        const int32_t slot = rows_.restore(row, saved.ids[n], label, saved.costs[n], saved.diagonal[n]);
        for (std::size_t e = std::size_t(saved.starts[n]); e < std::size_t(saved.starts[n + 1]); ++e) {
            const int32_t p = saved.columns[e] + first_problem();
            join(p, side_of(p, label), slot, saved.coefficients[e]);
        }
        stay_within_limit(slot);
    }
    bool knows(int32_t label) const { return label < classes_; }
    bool accepts(int32_t column, double alpha) const { return column >= 0 && column < columns() && alpha > 0; }
    HullerState state() const {
        HullerState state{classes_, random_.state(), {}, {}};
        for (const HullPair& pair : problems_) {
            state.products.push_back({pair.squared[0], pair.cross, pair.squared[1]});
            state.begun.push_back({pair.sides[0].averaged, pair.sides[1].averaged, pair.is_begun});
        }
        return state;
    }
    void set_state(const HullerState& state) {
        while (classes_ < state.classes) add_class();
        random_ = Random(state.random);
        for (std::size_t p = 0; p < problems_.size(); ++p) {
            HullPair& pair = problems_[p];
            pair.squared = {state.products[p][0], state.products[p][2]};
            pair.cross = state.products[p][1];
            for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
                pair.sides[side].averaged = state.begun[p][side];
            pair.is_begun = state.begun[p][2] != 0;
        }
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(table(), random_, problems_, classes_, counters_);
        if constexpr (Snapshot::reads) check_hulls();
    }
    void bring_all_rows() { rows_.bring_all(make_room()); }

  private:
    using Base::at_, Base::examples_, Base::make_room, Base::rows_;

    void check_hulls() const {
        must_hold(classes_ >= 0 && problems() == std::max(2, classes_), "the problems do not fit the classes");
        int64_t places = 0;
        for (const HullPair& pair : problems_)
            for (const Hull& hull : pair.sides) {
                must_hold(hull.slots.size() == hull.weights.size(), "the points of a hull differ in number");
                must_hold(are_within(hull.slots, 0, table().slots()), "a point of a hull is out of range");
                must_hold(are_finite(hull.weights) && std::isfinite(hull.scale), "a weight is not finite");
                places += hull.size();
            }
        must_hold(places == table().vectors(), "hulls and patterns do not agree");
        table().each_vector([&](int32_t slot, const Pattern& p, const SupportVector& v) {
            must_hold(p.label < classes_ && v.label >= 0 && v.label < problems(), "a label is out of range");
            const Hull& hull = problem(v.label).sides[std::size_t(side_of(v.label, p.label))];
            must_hold(v.place >= 0 && v.place < hull.size() && hull.slots[std::size_t(v.place)] == slot,
                      "hulls and patterns do not agree");
        });
        for (const HullPair& pair : problems_) must_hold(!pair.is_begun || pair.has_both(), "a hull is empty");
    }

    // Each point begins as the average of so many examples: "a few", algorithm 10.
    static constexpr int64_t averaged_at_first = 3;
    static constexpr int64_t births_to_settle = 256;
    static constexpr double tiny_scale = 1e-100, large_scale = 1e100;

    struct Visit {
        int32_t problem, slot;
    };
    // <x_k, X_own>, <x_k, X_other> and |x_k|^2: line 1 of algorithm 9.
    struct Products {
        double own, other, squared;
    };
    struct Step {
        double lambda = 0;
        bool removes = false;  // x_k leaves
    };

    // PROCESS in every problem. Where one was tried, a support vector is chosen for REPROCESS.
    void process_example(int64_t b) {
        while (classes_ <= examples_.labels[b]) add_class();
        visits_.clear();
        for (int32_t p = first_problem(); p < problems(); ++p)
            if (process(p, b)) visits_.push_back({p, pick(p)});
    }

    // The third class makes a problem of class 0 against the rest, which so far is class 1: problem 1 with its sides
    // exchanged. A new class has no examples yet.
    void add_class() {
        ++classes_;
        if (classes_ > problems()) problems_.emplace_back();
        if (classes_ == 3) mirror();
        stay_within_limit(-1);
    }
    void mirror() {
        const HullPair& from = problems_[1];
        HullPair& to = problems_[0];
        to.squared = {from.squared[1], from.squared[0]};
        to.cross = from.cross;
        to.is_begun = from.is_begun;
        for (const int side : {0, 1}) {
            const Hull& hull = from.sides[std::size_t(1 - side)];
            to.sides[std::size_t(side)].averaged = hull.averaged;
            for (int32_t place = 0; place < hull.size(); ++place)
                join(0, side, hull.slots[std::size_t(place)], hull.alpha(place));
        }
    }

    // False while the first points are averaged, or there is no other hull yet.
    bool process(int32_t p, int64_t b) {
        HullPair& pair = problems_[std::size_t(p)];
        const int side = side_of(p, examples_.labels[b]);
        Hull& hull = pair.sides[std::size_t(side)];
        const int32_t slot = table().slot_of(examples_.ids[b]);
        if (slot >= 0 && table()[slot].find(p)) {  // it is a support vector already
            pair.is_begun |= pair.has_both();
            return pair.is_begun;
        }
        const bool averages = !pair.is_begun && hull.averaged < averaged_at_first;
        if (!averages && !pair.has_both()) return false;
        const Products x = products(pair, side, rows_.of_example(b), examples_.diagonal[b]);
        Step step;
        if (averages) {
            step.lambda = 1.0 / double(++hull.averaged);
        } else {
            pair.is_begun = true;
            ++counters_.process;
            note_margin(pair, side, x);
            step = best_step(pair, side, x, 0);
        }
        if (step.lambda > 0) insert(p, side, b, step, x);
        return !averages;
    }

    void insert(int32_t p, int side, int64_t b, const Step& step, const Products& x) {
        int32_t slot = table().slot_of(examples_.ids[b]);
        if (slot < 0)
            slot = rows_.add(b, examples_.ids[b], examples_.labels[b], examples_.costs[b], examples_.diagonal[b]);
        ++counters_.insertions;
        move(p, side, slot, step, x);
        stay_within_limit(slot);
    }

    int32_t pick(int32_t p) {
        const HullPair& pair = problem(p);
        const uint32_t first = uint32_t(pair.sides[0].size()), both = first + uint32_t(pair.sides[1].size());
        const uint32_t n = random_.below(both);
        return n < first ? pair.sides[0].slots[n] : pair.sides[1].slots[n - first];
    }

    // REPROCESS of the support vector chosen for a problem.
    void reprocess(std::size_t visit) {
        const auto [p, slot] = visits_[visit];
        const Pattern& pattern = table()[slot];
        HullPair& pair = problems_[std::size_t(p)];
        const int side = side_of(p, pattern.label);
        const Hull& hull = pair.sides[std::size_t(side)];
        const bool is_alone = hull.size() == 1;  // X is x_k
        if (!is_alone && !rows_.is_ready(slot, make_room())) bring_rows(visit);
        ++counters_.reprocess;
        if (is_alone) return;
        const Products x = products(pair, side, rows_[slot], pattern.diagonal);
        const Step step = best_step(pair, side, x, hull.alpha(table()[slot].find(p)->place));
        if (step.lambda != 0) move(p, side, slot, step, x);
    }

    // The row for this visit, and with it those for the visits after it.
    void bring_rows(std::size_t visit) {
        const int32_t urgent = visits_[visit].slot;
        std::vector<int32_t> needed;
        for (std::size_t n = visits_.size(); n-- > visit + 1 && int64_t(needed.size()) + 1 < rows_.at_once();) {
            const int32_t slot = visits_[n].slot;
            const bool is_known = std::find(needed.begin(), needed.end(), slot) != needed.end();
            if (slot != urgent && !is_known && !rows_.is_ready(slot, make_room())) needed.push_back(slot);
        }
        needed.push_back(urgent);
        rows_.bring(needed, make_room());
    }

    Products products(const HullPair& pair, int side, const T* row, double squared) const {
        const auto dot = [&](const Hull& hull) {
            return hull.scale * units<T>().dot_row_at(row, hull.slots.data(), hull.weights.data(), hull.size());
        };
        return {dot(pair.sides[std::size_t(side)]), dot(pair.sides[std::size_t(1 - side)]), squared};
    }

    // Equations (4.6), (4.7) and (4.8); alpha_k is zero for an example that is no support vector.
    static Step best_step(const HullPair& pair, int side, const Products& x, double alpha_k) {
        const double own = pair.squared[std::size_t(side)];
        const double numerator = own - pair.cross - x.own + x.other;  // <X_own - X_other, X_own - x_k>
        const double denominator = own + x.squared - 2 * x.own;       // |X_own - x_k|^2
        constexpr double rounding = 4 * std::numeric_limits<T>::epsilon();
        // x_k is X_own, as far as can be seen; or the kernel is indefinite, and what is between them no distance.
        if (!(denominator > rounding * (std::abs(own) + std::abs(x.squared)))) return {};
        const double lambda = numerator / denominator;  // [thesis] eq. (4.6), (4.7)
        // Rounding may leave nothing of the others, and then there is no bound.
        const double lowest = alpha_k < 1 ? -alpha_k / (1 - alpha_k) : -std::numeric_limits<double>::infinity();
        if (alpha_k > 0 && lambda <= lowest) return {lowest, true};
        // A step that ends within rounding of x_k ends there: what was left of the others would be rounding only.
        if (lambda > 1 - 1e-14) return {1, false};
        return {std::max(lowest, lambda), false};  // [thesis] eq. (4.8)
    }

    // y f(x) with the class of the side as the positive one, eq. (4.5).
    static void note_margin(HullPair& pair, int side, const Products& x) {
        const double squared_distance = pair.squared_distance();
        if (!(squared_distance > 0)) return;
        const std::size_t own = std::size_t(side), other = 1 - own;
        const double f = (2 * (x.own - x.other) + pair.squared[other] - pair.squared[own]) / squared_distance;
        pair.smallest_margin[own] = std::min(pair.smallest_margin[own], f);
    }

    // Lines 4 to 6 of algorithm 9.
    void move(int32_t p, int side, int32_t slot, const Step& step, const Products& x) {
        HullPair& pair = problems_[std::size_t(p)];
        Hull& hull = pair.sides[std::size_t(side)];
        const double lambda = step.lambda, rest = 1 - lambda;
        double& own = pair.squared[std::size_t(side)];
        own =
            rest * rest * own + 2 * lambda * rest * x.own + lambda * lambda * x.squared;  // [thesis] eq. (4.9), (4.10)
        pair.cross = rest * pair.cross + lambda * x.other;                                // [thesis] eq. (4.9), (4.10)
        if (lambda == 1) leave_all_but(p, side, slot);
        hull.scale = lambda == 1 ? 1 : hull.scale * rest;
        SupportVector* const vector = table()[slot].find(p);
        const double weight = (vector && lambda != 1 ? vector->beta : 0) + lambda / hull.scale;
        if (step.removes || !(weight > 0)) {
            ++counters_.removals;
            leave(p, side, slot);
            hull.scale = 1 / std::accumulate(hull.weights.begin(), hull.weights.end(), 0.0);
        } else if (vector) {
            set_weight(hull, *vector, weight);
        } else {
            join(p, side, slot, weight);
        }
        if (hull.scale < tiny_scale || hull.scale > large_scale) fold_scale(p, side);
    }

    void fold_scale(int32_t p, int side) {
        Hull& hull = problems_[std::size_t(p)].sides[std::size_t(side)];
        std::vector<int32_t> vanished;
        for (const int32_t slot : hull.slots) {
            SupportVector& vector = *table()[slot].find(p);
            set_weight(hull, vector, hull.scale * vector.beta);
            if (vector.beta == 0) vanished.push_back(slot);
        }
        hull.scale = 1;
        for (const int32_t slot : vanished) leave(p, side, slot);
    }

    // The table has the weights, too: what is not zero is in use.
    static void set_weight(Hull& hull, SupportVector& vector, double weight) {
        vector.beta = weight;
        hull.weights[std::size_t(vector.place)] = weight;
    }

    void join(int32_t p, int side, int32_t slot, double weight) {
        Hull& hull = problems_[std::size_t(p)].sides[std::size_t(side)];
        table().add_vector(slot, p, int32_t(hull.size()));
        table()[slot].vectors.back().beta = weight;
        hull.slots.push_back(slot);
        hull.weights.push_back(weight);
    }

    // The last support vector of the hull takes the place of the one that leaves; a pattern that no problem uses goes.
    void leave(int32_t p, int side, int32_t slot) {
        Hull& hull = problems_[std::size_t(p)].sides[std::size_t(side)];
        SupportVector* const found = table()[slot].find(p);
        if (!found) throw NotFinite();
        SupportVector& vector = *found;
        const std::size_t place = std::size_t(vector.place);
        const int32_t last = hull.slots.back();
        hull.slots[place] = last;
        hull.weights[place] = hull.weights.back();
        table()[last].find(p)->place = int32_t(place);
        hull.slots.pop_back();
        hull.weights.pop_back();
        vector.beta = 0;
        table().remove_zeros(slot, [](const SupportVector&) {});
    }

    void leave_all_but(int32_t p, int side, int32_t kept) {
        const std::vector<int32_t> slots = problem(p).sides[std::size_t(side)].slots;
        for (const int32_t slot : slots)
            if (slot != kept) leave(p, side, slot), ++counters_.removals;
    }

    Random random_;
    std::vector<HullPair> problems_;
    int32_t classes_ = 0;
    std::vector<Visit> visits_;  // to be reprocessed after the example at hand
    HullerCounters counters_;
};

}  // namespace larank
