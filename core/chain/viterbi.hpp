// The best labels of a chain: score(y) = sum_t nodes[t][y^t] + sum_t sum_{s=1..k} T_s[y^{t-s}][y^t], [thesis]
// section 5.3.
//
// Exact: Viterbi on states (y^{t-k+1}, .., y^t), so time grows with labels^(k+1). Greedy: one label after the other,
// the labels before it frozen, any k. The labels before the first are given, or absent. A `Grammar` forbids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "chain/grammar.hpp"
#include "simd/units.hpp"

namespace larank {

constexpr int32_t absent = -1;

// T_s[previous][y]: for each lag a row for the absent label and one per label, padded to `lanes`.
template <class T>
struct Transitions {
    const T* weights;
    int64_t order;
    int64_t labels;
    int64_t lanes;

    int64_t rows() const { return labels + 1; }
    const T* matrix(int64_t lag) const { return weights + (lag - 1) * rows() * lanes; }
    const T* row(int64_t lag, int64_t previous) const { return matrix(lag) + (previous + 1) * lanes; }
};

// What is asked: the scores of labels at each position, with -infinity in the padding, and what stands around them.
template <class T>
struct Lattice {
    const T* nodes;  // [length][lanes]
    int64_t length;
    const int32_t* history;     // history[s - 1]: the label s before the first, or absent
    int32_t previous = absent;  // the label before the first, as the grammar sees it
    int64_t remaining = 0;      // labels after the last, for the grammar
};

struct Path {
    std::vector<int32_t> labels;
    double score;
};

template <class T>
class Decoder {
  public:
    static constexpr T impossible = -std::numeric_limits<T>::infinity();

    // How many states the exact search has between two positions.
    static double states(int64_t labels, int64_t order) {
        double count = 1;
        for (int64_t s = 0; s < std::max<int64_t>(order, 1); ++s) count *= double(labels + 1);
        return count;
    }

    // The best label at the first position of the lattice, all before it given; `impossible` if none is allowed.
    T best_label(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar, int32_t& label) {
        const T* scores = label_scores(lattice, with, grammar);
        const T* best = std::max_element(scores, scores + with.labels);
        label = int32_t(best - scores);
        return *best;
    }

    // All scores of labels at the first position.
    const T* label_scores(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar) {
        sum_.assign(lattice.nodes, lattice.nodes + with.lanes);
        for (int64_t s = 1; s <= with.order; ++s) add(with.row(s, lattice.history[s - 1]), with.lanes);
        if (grammar) {
            add(grammar->after(lattice.previous), with.lanes);
            add(grammar->completing(lattice.remaining), with.lanes);
        }
        return sum_.data();
    }

    // [thesis] eq. (5.10): the labels in their order. Returns whether the grammar left a way.
    bool greedy_path(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar, int32_t* path) {
        history_.assign(lattice.history, lattice.history + with.order);
        Lattice<T> rest = lattice;
        for (int64_t t = 0; t < lattice.length; ++t) {
            rest.nodes = lattice.nodes + t * with.lanes;
            rest.history = history_.data();
            rest.remaining = lattice.remaining + lattice.length - 1 - t;
            if (best_label(rest, with, grammar, path[t]) == impossible) return false;
            rest.previous = path[t];
            if (with.order > 0) {
                std::copy_backward(history_.begin(), history_.end() - 1, history_.end());
                history_[0] = path[t];
            }
        }
        return true;
    }

    // [thesis] eq. (5.9): the labels with the highest score of all, and that score; `impossible` if none is allowed.
    T best_path(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar, int32_t* path) {
        begin(lattice, with, grammar);
        back_.resize(std::size_t(lattice.length * middles_ * lanes_));
        for (int64_t t = 0; t < lattice.length; ++t) {
            std::fill(next_.begin(), next_.end(), impossible);
            for (int64_t m = 0; m < middles_; ++m) {
                T* back = back_.data() + (t * middles_ + m) * lanes_;
                units<T>().max_plus(scores_.data() + m, middles_, oldest_, digits_, lanes_, best_.data(), back);
                arrive(lattice, with, grammar, t, m);
                for (int64_t y = 0; y < with.labels; ++y)
                    next_[std::size_t(m * digits_ + y + 1)] = best_[std::size_t(y)];
            }
            scores_.swap(next_);
        }
        return trace(lattice, grammar, path);
    }

    // The `count` best label sequences, best first; fewer if there are not so many.
    std::vector<Path> best_paths(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar,
                                 int64_t count) {
        begin(lattice, with, grammar);
        const std::size_t states = scores_.size();
        std::vector<std::vector<std::vector<Arrival>>> arrivals(std::size_t(lattice.length) + 1);
        arrivals[0].resize(states);
        for (std::size_t s = 0; s < states; ++s)
            if (scores_[s] != impossible) arrivals[0][s].push_back({0.0, -1, -1});
        for (int64_t t = 0; t < lattice.length; ++t) extend(lattice, with, grammar, t, count, arrivals);
        return collect(lattice, grammar, count, arrivals);
    }

  private:
    // One way to be in a state: its score, and where it came from.
    struct Arrival {
        double score;
        int64_t state;
        int64_t rank;
        bool operator<(const Arrival& other) const {
            return score != other.score ? score > other.score
                                        : (state != other.state ? state < other.state : rank < other.rank);
        }
    };

    void add(const T* row, int64_t lanes) {
        for (int64_t y = 0; y < lanes; ++y) sum_[std::size_t(y)] += row[y];
    }

    // A state is k digits, the label at t last, absent 0 and label y written y + 1. The middle of a step are the digits
    // that both its states have.
    void begin(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar) {
        const int64_t order = std::max<int64_t>(with.order, 1);
        digits_ = with.rows(), lanes_ = with.lanes, middles_ = 1;
        for (int64_t s = 1; s < order; ++s) middles_ *= digits_;
        scores_.assign(std::size_t(middles_ * digits_), impossible);
        next_.resize(scores_.size());
        best_.resize(std::size_t(lanes_));
        int64_t state = 0;
        for (int64_t s = order; s >= 1; --s)
            state = state * digits_ + (s <= with.order ? lattice.history[s - 1] + 1 : 0);
        scores_[std::size_t(state)] = 0;
        oldest_ = with.matrix(order);
        if (order == 1 && (grammar || with.order == 0)) {
            // Steps on all transitions of lag 1 at once, the grammar's penalties added to them.
            penalised_.assign(std::size_t(digits_ * lanes_), T(0));
            if (with.order == 1) penalised_.assign(oldest_, oldest_ + digits_ * lanes_);
            if (grammar)
                for (int64_t p = 0; p < digits_; ++p)
                    for (int64_t y = 0; y < lanes_; ++y)
                        penalised_[std::size_t(p * lanes_ + y)] += grammar->after(p - 1)[y];
            oldest_ = penalised_.data();
        }
    }

    // What a step through the middle m to position t adds besides the transition from the oldest label, upon best_.
    void arrive(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar, int64_t t,
                int64_t m) {
        const auto upon_best = [&](const T* row) {
            for (int64_t y = 0; y < lanes_; ++y) best_[std::size_t(y)] += row[y];
        };
        upon_best(lattice.nodes + t * lanes_);
        int64_t rest = m;
        for (int64_t s = 1; s < with.order; ++s, rest /= digits_) upon_best(with.row(s, rest % digits_ - 1));
        if (grammar && middles_ > 1) upon_best(grammar->after(t == 0 ? lattice.previous : m % digits_ - 1));
    }

    T trace(const Lattice<T>& lattice, const Grammar<T>* grammar, int32_t* path) const {
        T best = impossible;
        int64_t state = 0;
        for (int64_t s = 0; s < int64_t(scores_.size()); ++s) {
            if (s % digits_ == 0) continue;
            const T end = grammar ? grammar->completing(lattice.remaining)[s % digits_ - 1] : T(0);
            if (scores_[std::size_t(s)] + end > best) best = scores_[std::size_t(s)] + end, state = s;
        }
        if (best == impossible) return best;
        for (int64_t t = lattice.length - 1; t >= 0; --t) {
            const int64_t m = state / digits_, y = state % digits_ - 1;
            path[t] = int32_t(y);
            state = int64_t(back_[std::size_t((t * middles_ + m) * lanes_ + y)]) * middles_ + m;
        }
        return best;
    }

    void extend(const Lattice<T>& lattice, const Transitions<T>& with, const Grammar<T>* grammar, int64_t t,
                int64_t count, std::vector<std::vector<std::vector<Arrival>>>& arrivals) {
        const auto& before = arrivals[std::size_t(t)];
        auto& now = arrivals[std::size_t(t) + 1];
        now.resize(before.size());
        for (int64_t m = 0; m < middles_; ++m) {
            std::fill(best_.begin(), best_.end(), T(0));
            arrive(lattice, with, grammar, t, m);
            for (int64_t y = 0; y < with.labels; ++y) {
                std::vector<Arrival> nearest;
                for (int64_t f = 0; f < digits_; ++f) {
                    const std::vector<Arrival>& ways = before[std::size_t(f * middles_ + m)];
                    const double step = step_to(y, f);
                    if (step != double(impossible) && !ways.empty())
                        nearest.push_back({ways[0].score + step, f * middles_ + m, 0});
                }
                now[std::size_t(m * digits_ + y + 1)] = merged(std::move(nearest), before, y, count);
            }
        }
    }

    // What the step from an oldest label to y adds, `arrive` having summed up the rest.
    double step_to(int64_t y, int64_t oldest) const {
        return double(oldest_[oldest * lanes_ + y]) + double(best_[std::size_t(y)]);
    }

    // The `count` best ways to y, given the best one from each state before: the ways of a state are in order, so the
    // next of all is the next of one of them.
    std::vector<Arrival> merged(std::vector<Arrival> heads, const std::vector<std::vector<Arrival>>& before, int64_t y,
                                int64_t count) const {
        const auto is_behind = [](const Arrival& a, const Arrival& b) { return b < a; };
        std::make_heap(heads.begin(), heads.end(), is_behind);
        std::vector<Arrival> found;
        while (!heads.empty() && int64_t(found.size()) < count) {
            std::pop_heap(heads.begin(), heads.end(), is_behind);
            Arrival& way = heads.back();
            found.push_back(way);
            const std::vector<Arrival>& ways = before[std::size_t(way.state)];
            if (std::size_t(++way.rank) == ways.size()) {
                heads.pop_back();
                continue;
            }
            way.score = ways[std::size_t(way.rank)].score + step_to(y, way.state / middles_);
            std::push_heap(heads.begin(), heads.end(), is_behind);
        }
        return found;
    }

    std::vector<Path> collect(const Lattice<T>& lattice, const Grammar<T>* grammar, int64_t count,
                              const std::vector<std::vector<std::vector<Arrival>>>& arrivals) const {
        std::vector<Arrival> ends;
        const auto& last = arrivals.back();
        for (std::size_t s = 0; s < last.size(); ++s) {
            const int64_t y = int64_t(s) % digits_ - 1;
            if (y < 0 || (grammar && grammar->completing(lattice.remaining)[y] != 0)) continue;
            for (std::size_t r = 0; r < last[s].size(); ++r) ends.push_back({last[s][r].score, int64_t(s), int64_t(r)});
        }
        std::sort(ends.begin(), ends.end());
        if (int64_t(ends.size()) > count) ends.resize(std::size_t(count));
        std::vector<Path> paths;
        for (const Arrival& end : ends) {
            Path path{std::vector<int32_t>(std::size_t(lattice.length)), end.score};
            int64_t state = end.state, rank = end.rank;
            for (int64_t t = lattice.length; t > 0; --t) {
                path.labels[std::size_t(t) - 1] = int32_t(state % digits_ - 1);
                const Arrival& way = arrivals[std::size_t(t)][std::size_t(state)][std::size_t(rank)];
                state = way.state, rank = way.rank;
            }
            paths.push_back(std::move(path));
        }
        return paths;
    }

    int64_t digits_ = 0, lanes_ = 0, middles_ = 1;
    const T* oldest_ = nullptr;  // transitions from the label that leaves the state
    std::vector<T> scores_, next_, best_, back_, penalised_, sum_;
    std::vector<int32_t> history_;
};

}  // namespace larank
