// The online multiclass SVM under ambiguous supervision [thesis] section 6.1.2.
//
//   primal   min_w  |w|^2 / 2 + sum_i c_i L_w(x_i, y_i)                                          (6.5), (6.8)
//   dual     max_beta  sum_i sum_{y in y_i} beta_i^y - |w|^2 / 2,    w_c = sum_i beta_i^c Phi(x_i)
//            where beta_i^y = sum_z a_i^yz, beta_i^z = -sum_y a_i^yz, 0 <= a_i^yz <= c_i v_y / q_i
//
// L is the mean pairwise loss of ambiguous/pairwise.hpp; the labels of examples are the numbers of their sets.
//
//   AMBIGSVMDUALSTEP  (algorithm 23) for an example that is new: alpha = L / |Psi|^2, clipped to [0, c_i]
//   REPROCESS         for one that was seen: its best coefficients, those of all others held fixed. It goes to random
//                     support patterns after each new example, and to all examples from the second epoch on. This is
//                     our extension: the thesis makes one pass of new examples.
//
// Every step raises the dual by at least c_i L - c_i^2 rho / 2, rho = 2 max_i k(x_i, x_i), which is all that the proof
// of proposition 13 needs: sum_i c_i (L_{w_i} - L_w) <= |w|^2 / 2 + rho / 2 sum_i c_i^2 for every w.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "ambiguous/candidates.hpp"
#include "ambiguous/pairwise.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"
#include "training/random.hpp"

namespace larank {

struct AmbigCounters {
    int64_t process_new = 0;
    int64_t reprocess = 0;
    int64_t steps = 0;  // of both, with a change

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(process_new, reprocess, steps);
    }
};

// What proposition 13 is about: the examples as they came, each by the weights before it.
struct OnlineSums {
    int64_t examples = 0;
    double costs = 0;          // sum_i c_i
    double squared_costs = 0;  // sum_i c_i^2
    double losses = 0;         // sum_i c_i L_{w_i}
    double largest = 0;        // max_i k(x_i, x_i)

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(examples, costs, squared_costs, losses, largest);
    }
};

struct AmbigState {
    double dual = 0, linear = 0, loss = 0;
    OnlineSums online;
    uint64_t random = 0;
};

template <class Machine>
class AmbigSVM {
  public:
    using Value = typename Machine::Value;

    template <class... Arguments>
    AmbigSVM(int64_t n_reprocess, uint64_t seed, Arguments... arguments)
        : machine_(arguments...), n_reprocess_(n_reprocess), random_(seed) {}

    Machine& machine() { return machine_; }
    const Machine& machine() const { return machine_; }
    auto& rows() { return machine_.rows(); }
    const auto& rows() const { return machine_.rows(); }
    SupportTable& table() { return machine_.table(); }
    const SupportTable& table() const { return machine_.table(); }
    CandidateSets& sets() { return sets_; }
    const CandidateSets& sets() const { return sets_; }

    template <class Block>
    void feed(const Block& block, const Examples& examples) {
        for (int64_t b = 0; b < examples.count; ++b) {
            if (int64_t(examples.labels[b]) >= sets_.size())
                throw std::invalid_argument("labels must be numbers of candidate sets");
            if (sets_[examples.labels[b]].classes > machine_.classes())
                throw std::invalid_argument("the session must have the classes of all candidate sets");
        }
        machine_.feed(block);
        table().forget_newborn();
        examples_ = examples;
        at_ = 0;
    }

    // A class joins: from now on it is a wrong one of the patterns, too. Their coefficients may exceed the bounds,
    // which are smaller then, until they are visited again.
    void add_class() {
        machine_.add_class();
        for (const int32_t slot : table().present()) {
            const CandidateSet set = sets_[table()[slot].label];
            const std::vector<int32_t> labels(set.labels, set.labels + set.size);
            const std::vector<double> weights(set.weights, set.weights + set.size);
            table()[slot].label = sets_.number_of(labels.data(), weights.data(), set.size, classes());
        }
    }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        while (at_ < end) {
            process(at_++);
            for (int64_t n = 0; n < n_reprocess_ && table().size() > 0; ++n) reprocess(table().pick(random_));
        }
    }
    void finish() {}
    void begin_another_epoch() {
        loss_ = 0;
        is_first_epoch_ = false;
        machine_.begin_another_epoch();
    }

    SupportArrays support() const {
        return arrays_of(table(), [](SupportArrays& arrays, int32_t, const Pattern& p) {
            for (const SupportVector& v : p.vectors) arrays.put(v.label, v.beta);
        });
    }
    // A pattern of a saved model; `row` is what the machine takes it from.
    template <class Row>
    void restore(Row row, const SupportArrays& saved, std::size_t n) {
        make_room_for_classes();
        const int32_t slot =
            machine_.restore_pattern(row, saved.ids[n], saved.labels[n], saved.costs[n], saved.diagonal[n]);
        std::fill(beta_.begin(), beta_.end(), 0.0);
        for (auto e = std::size_t(saved.starts[n]); e < std::size_t(saved.starts[n + 1]); ++e)
            beta_[std::size_t(saved.columns[e])] = saved.coefficients[e];
        machine_.add_to_coefficients(slot, beta_.data());
        keep_coefficients(slot);
    }
    bool knows(int32_t label) const { return label < sets_.size(); }  // they are numbers of candidate sets
    bool accepts(int32_t column, double) const { return column >= 0 && column < classes(); }

    // The losses of examples by the scores of their classes.
    double loss_of(int32_t set, const double* scores) {
        make_room_for_classes();
        return loss_of_.ascend(sets_[set], scores, psi_.data()).loss;
    }

    int64_t classes() const { return machine_.classes(); }
    int64_t columns() const { return classes(); }
    int64_t support_patterns() const { return table().size(); }
    int64_t bytes() const { return machine_.bytes() + sets_.bytes(); }
    void set_foreign_bytes(int64_t bytes) { machine_.set_foreign_bytes(bytes + sets_.bytes()); }
    double dual() const { return dual_; }
    double half_squared_norm() const { return linear_ - dual_; }
    double loss() const { return loss_; }
    const OnlineSums& online() const { return online_; }
    const AmbigCounters& counters() const { return counters_; }

    AmbigState state() const { return {dual_, linear_, loss_, online_, random_.state()}; }
    void set_state(const AmbigState& state) {
        dual_ = state.dual, linear_ = state.linear, loss_ = state.loss;
        online_ = state.online;
        random_ = Random(state.random);
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(machine_, sets_, random_, is_first_epoch_, dual_, linear_, loss_, counters_, online_);
        if constexpr (!Snapshot::reads) return;
        for (const int32_t slot : table().present()) {
            must_hold(table()[slot].label < sets_.size(), "a candidate set is out of range");
            must_hold(sets_[table()[slot].label].classes <= classes(), "a candidate set has too many classes");
        }
    }
    void bring_all_rows() { machine_.bring_all_rows(); }

  private:
    void make_room_for_classes() {
        const auto classes = std::size_t(machine_.classes());
        for (auto* values : {&scores_, &psi_, &beta_, &change_, &without_}) values->resize(classes);
    }

    // What a step must know of an example beside its scores.
    struct Visit {
        CandidateSet set;
        double cost, diagonal;
    };

    void process(int64_t b) {
        make_room_for_classes();
        machine_.scores_of_new(b, scores_.data());
        check_scores();
        const Visit visit{sets_[examples_.labels[b]], examples_.costs[b], examples_.diagonal[b]};
        const int32_t slot = table().slot_of(examples_.ids[b]);
        const Ascent at = loss_of_.ascend(visit.set, scores_.data(), psi_.data());
        loss_ += visit.cost * at.loss;
        ++counters_.process_new;
        if (is_first_epoch_) count_online(visit, at);
        const bool is_new = is_first_epoch_ && slot < 0;
        if (is_new ? dual_step(visit, at) : solve(visit, slot)) step(slot < 0 ? newborn(b) : slot, visit);
    }

    void reprocess(int32_t slot) {
        make_room_for_classes();
        machine_.require(slot);
        machine_.scores_of_old(slot, scores_.data());
        check_scores();
        const Pattern& p = table()[slot];
        const Visit visit{sets_[p.label], p.cost, p.diagonal};
        ++counters_.reprocess;
        if (solve(visit, slot)) step(slot, visit);
    }

    void check_scores() const {
        double sum = 0;
        for (const double score : scores_) sum += score;
        if (!std::isfinite(sum)) throw std::domain_error("scores overflow: scale the features, or choose a smaller C");
    }

    void count_online(const Visit& visit, const Ascent& at) {
        ++online_.examples;
        online_.costs += visit.cost;
        online_.squared_costs += visit.cost * visit.cost;
        online_.losses += visit.cost * at.loss;
        online_.largest = std::max(online_.largest, visit.diagonal);
    }

    int32_t newborn(int64_t b) {
        const auto& e = examples_;
        return machine_.add_pattern(b, e.ids[b], e.labels[b], e.costs[b], e.diagonal[b]);
    }

    // [thesis] algorithm 23, lines 3 and 4: the coefficients of a new example.
    bool dual_step(const Visit& visit, const Ascent& at) {
        if (!(at.loss > 0)) return false;
        const double alpha = step_size(visit, at);
        std::fill(beta_.begin(), beta_.end(), 0.0);
        for (int64_t c = 0; c < visit.set.classes; ++c) beta_[std::size_t(c)] = alpha * psi_[std::size_t(c)];
        change_ = beta_;
        return alpha > 0;
    }
    // An example at the origin of feature space has zero scores whatever its coefficients are.
    static double step_size(const Visit& visit, const Ascent& at) {
        const double curvature = visit.diagonal * at.squared_norm;
        return curvature > 0 ? std::min(visit.cost, at.loss / curvature) : visit.cost;
    }

    // The best coefficients of an example, while all others stay; those it has now are in its slot, if it has one.
    bool solve(const Visit& visit, int32_t slot) {
        std::fill(change_.begin(), change_.end(), 0.0);
        if (slot >= 0)
            for (const SupportVector& v : table()[slot].vectors) change_[std::size_t(v.label)] = v.beta;
        for (std::size_t c = 0; c < change_.size(); ++c) without_[c] = scores_[c] - visit.diagonal * change_[c];
        std::fill(beta_.begin(), beta_.end(), 0.0);
        if (visit.diagonal > 0) {
            loss_of_.solve(visit.set, without_.data(), visit.diagonal, visit.cost, beta_.data());
        } else {
            const Ascent at = loss_of_.ascend(visit.set, without_.data(), psi_.data());
            for (int64_t c = 0; c < visit.set.classes; ++c)
                beta_[std::size_t(c)] = step_size(visit, at) * psi_[std::size_t(c)];
        }
        double largest = 0;
        for (std::size_t c = 0; c < change_.size(); ++c) {
            change_[c] = beta_[c] - change_[c];
            largest = std::max(largest, std::abs(change_[c]));
        }
        return largest > rounding * visit.cost;
    }

    // From the coefficients the pattern has to those in `beta_`, which are by `change_` larger.
    void step(int32_t slot, const Visit& visit) {
        double linear = 0, first = 0, second = 0;
        for (int64_t n = 0; n < visit.set.size; ++n) linear += change_[std::size_t(visit.set.labels[n])];
        for (std::size_t c = 0; c < change_.size(); ++c) {
            first += change_[c] * scores_[c];
            second += change_[c] * change_[c];
        }
        linear_ += linear;
        dual_ += linear - first - visit.diagonal * second / 2;
        machine_.add_to_coefficients(slot, change_.data());
        keep_coefficients(slot);
        ++counters_.steps;
    }

    // Writes `beta_` to the table; a pattern without coefficients leaves.
    void keep_coefficients(int32_t slot) {
        for (SupportVector& v : table()[slot].vectors) {
            v.beta = beta_[std::size_t(v.label)];
            beta_[std::size_t(v.label)] = 0;
        }
        for (std::size_t c = 0; c < beta_.size(); ++c) {
            if (beta_[c] == 0) continue;
            table().add_vector(slot, int32_t(c), -1);
            table()[slot].vectors.back().beta = beta_[c];
        }
        table().remove_zeros(slot, [](const SupportVector&) {});
        const bool stays = table().contains(slot);
        if (!stays) machine_.leave(slot);
        machine_.after_step(stays ? slot : -1);
    }

    static constexpr double rounding = 1e-13;

    Machine machine_;
    CandidateSets sets_;
    PairwiseLoss loss_of_;
    int64_t n_reprocess_;
    Random random_;
    Examples examples_;
    int64_t at_ = 0;  // examples of the block that are done
    bool is_first_epoch_ = true;
    double dual_ = 0, linear_ = 0, loss_ = 0;
    OnlineSums online_;
    AmbigCounters counters_;
    std::vector<double> scores_, psi_, beta_, change_, without_;
};

}  // namespace larank
