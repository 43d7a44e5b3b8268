// LaRank on chains: LaRankExact and LaRankGreedy, [thesis] section 5.3.3, algorithms 17 to 21.
//
//   max   - sum_{i,y} Delta(y, y_i) beta_i^y - 1/2 |w|^2     with w = sum_{i,y} beta_i^y Phi(x_i, y)   (5.11), (5.12)
//   s.t.  beta_i^y <= C_i [y = y_i],   sum_y beta_i^y = 0
//
// A pattern i is a stretch, an output y its labels. Kept are alpha_i^y = -beta_i^y >= 0 of outputs other than the true
// one, whose coefficient is their sum. The features are explicit, so derivatives are computed when they are needed. All
// that matters of them are differences to the derivative of the true output,
//
//   h_i(y) = g_{i,y_i} - g_{i,y} = Delta(y, y_i) + <w, Phi(x_i, y) - Phi(x_i, y_i)>,     h_i(y_i) = 0:
//
// SMOSTEP goes from the smallest h that may lose weight to the largest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "chain/chain.hpp"
#include "memory/prefetch.hpp"
#include "training/random.hpp"

namespace larank {

// A stretch of its own, in one piece of memory, with the outputs that have a coefficient.
template <class T>
class ChainPattern {
  public:
    // One output y other than the true one, with |Phi(x, y) - Phi(x, y_i)|^2.
    struct Output {
        double alpha;
        double loss;
        double distance;
        int32_t only_label;  // of a stretch of one token
    };

    ChainPattern(const Stretch<T>& x, int64_t order, int64_t number, double largest_sum)
        : id(number),
          cost(largest_sum),
          length_(x.length),
          order_(order),
          previous_(x.previous),
          remaining_(x.remaining),
          count_(x.rows.indptr[x.first + x.length] - x.rows.indptr[x.first]),
          has_values_(x.rows.values != nullptr) {
        block_.reset(new char[std::size_t(block_bytes())]);
        const int64_t begin = x.rows.indptr[x.first];
        for (int64_t t = 0; t <= length_; ++t) indptr()[t] = x.rows.indptr[x.first + t] - begin;
        if (has_values_) std::copy_n(x.rows.values + begin, count_, values());
        std::copy_n(x.rows.indices + begin, count_, indices());
        std::copy_n(x.truth, length_, truth());
        std::copy_n(x.history, order_, history());
    }

    Stretch<T> stretch(const T* ones) const {
        return {{indptr(), indices(), has_values_ ? values() : nullptr, ones},
                0,
                length_,
                truth(),
                history(),
                previous_,
                remaining_};
    }

    int64_t longest_token() const {
        int64_t longest = 0;
        for (int64_t t = 0; t < length_; ++t) longest = std::max(longest, indptr()[t + 1] - indptr()[t]);
        return longest;
    }

    const std::vector<Output>& outputs() const { return outputs_; }
    Output& output(std::size_t n) { return outputs_[n]; }
    const int32_t* labels(std::size_t n) const {
        return length_ == 1 ? &outputs_[n].only_label : labels_.data() + n * std::size_t(length_);
    }

    // The index of an output among those that have a coefficient; how many there are if it has none.
    std::size_t find(const int32_t* y) const {
        std::size_t n = 0;
        while (n < outputs_.size() && !std::equal(y, y + length_, labels(n))) ++n;
        return n;
    }

    void add(const int32_t* y, double loss, double distance) {
        outputs_.push_back({0.0, loss, distance, y[0]});
        if (length_ > 1) labels_.insert(labels_.end(), y, y + length_);
    }

    void remove(std::size_t n) {
        outputs_[n] = outputs_.back();
        outputs_.pop_back();
        if (length_ == 1) return;
        std::copy(labels_.end() - length_, labels_.end(), labels_.begin() + std::ptrdiff_t(n) * length_);
        labels_.resize(labels_.size() - std::size_t(length_));
    }

    double alpha_sum() const {
        double sum = 0;
        for (const Output& output : outputs_) sum += output.alpha;
        return sum;
    }

    int64_t bytes() const {
        return int64_t(sizeof *this) + block_bytes() + int64_t(outputs_.capacity() * sizeof(Output)) +
               int64_t(labels_.capacity() * sizeof(int32_t));
    }

    // Asks for what a look at the pattern reads, ahead of it: first the pattern itself, then what it points to, then
    // the weights of tokens that have another label in an output than in truth.
    void prefetch_own() const { prefetch_bytes(this, sizeof *this); }
    void prefetch_block() const {
        prefetch_bytes(block_.get(), std::size_t(block_bytes()));
        prefetch_bytes(outputs_.data(), outputs_.size() * sizeof(Output));
        prefetch_bytes(labels_.data(), labels_.size() * sizeof(int32_t));
    }
    void prefetch_weights(const T* weights, int64_t lanes) const {
        constexpr std::size_t most = 8;  // further outputs mostly differ at the same tokens
        for (std::size_t n = 0; n < std::min(outputs_.size(), most); ++n)
            for (int64_t t = 0; t < length_; ++t) {
                if (labels(n)[t] == truth()[t]) continue;
                for (int64_t j = indptr()[t]; j < indptr()[t + 1]; ++j) {
                    const T* row = weights + indices()[j] * lanes;
                    prefetch(row + truth()[t]), prefetch(row + labels(n)[t]);
                }
            }
    }

    int64_t id;
    double cost;

  private:
    static void prefetch_bytes(const void* first, std::size_t bytes) {
        constexpr std::size_t line = 64, most = 4096;
        for (std::size_t at = 0; at < std::min(bytes, most); at += line) prefetch(static_cast<const char*>(first) + at);
    }

    int64_t block_bytes() const {
        return (length_ + 1) * 8 + (has_values_ ? count_ * int64_t(sizeof(T)) : 0) + (count_ + length_ + order_) * 4;
    }

    int64_t* indptr() const { return reinterpret_cast<int64_t*>(block_.get()); }
    T* values() const { return reinterpret_cast<T*>(indptr() + length_ + 1); }
    int32_t* indices() const { return reinterpret_cast<int32_t*>(values() + (has_values_ ? count_ : 0)); }
    int32_t* truth() const { return indices() + count_; }
    int32_t* history() const { return truth() + length_; }

    int64_t length_, order_;
    int32_t previous_;
    int64_t remaining_, count_;
    bool has_values_;
    std::unique_ptr<char[]> block_;
    std::vector<Output> outputs_;
    std::vector<int32_t> labels_;
};

template <class T>
class ChainLaRank {
  public:
    struct Settings {
        double tau;            // a step is worth taking from this difference of derivatives on
        int64_t n_reprocess;   // n_R
        int64_t memory_limit;  // bytes of support patterns
        bool returns;          // whether stretches come again, in a further epoch
        uint64_t seed;
    };

    static constexpr int64_t optimize_per_reprocess = 10;  // [thesis] section 5.1.3

    ChainLaRank(ChainModel<T>& model, const Settings& settings)
        : model_(model), search_(model), settings_(settings), random_(settings.seed) {}

    // One example of algorithm 21: PROCESSNEW, then n_R times REPROCESS. Returns h of the worst output, or -1 where
    // there is no such look at the stretch.
    double process(const Stretch<T>& x, int64_t id, double cost) {
        const double violation = process_new(x, id, cost);
        for (int64_t r = 0; r < settings_.n_reprocess; ++r) {
            process_old();
            for (int64_t n = 0; n < optimize_per_reprocess; ++n) optimize();
        }
        keep_within_limit();
        return violation;
    }

    // Algorithm 18.
    double process_new(const Stretch<T>& x, int64_t id, double cost) {
        ++counts_.process_new;
        if (settings_.returns && slot_of(id) != none) return -1;
        worst_.resize(std::size_t(x.length));
        const double violation = find_worst(x);
        if (violation <= settings_.tau) return std::max(violation, 0.0);
        patterns_.emplace_back(x, model_.weights.order(), id, cost);
        if (settings_.returns) slots_[std::size_t(id)] = int32_t(patterns_.size()) - 1;
        ChainPattern<T>& pattern = patterns_.back();
        grow_ones(pattern);
        pattern.add(worst_.data(), model_.loss(x.truth, worst_.data(), x.length),
                    search_.squared_distance(x, x.truth, worst_.data()));
        bytes_ += pattern.bytes();
        smo_step(patterns_.size() - 1, is_truth, 0, violation);
        return violation;
    }

    // Algorithm 19.
    void process_old() {
        if (patterns_.empty()) return;
        ++counts_.process_old;
        const std::size_t slot = draw();
        ChainPattern<T>& pattern = patterns_[slot];
        const Stretch<T> x = pattern.stretch(ones_.data());
        worst_.resize(std::size_t(x.length));
        const double violation = find_worst(x);
        const Choice choice = choose(pattern, x);
        if (violation - choice.smallest <= settings_.tau) return;
        std::size_t to = is_truth;
        if (!std::equal(x.truth, x.truth + x.length, worst_.data())) {
            to = pattern.find(worst_.data());
            if (to == pattern.outputs().size()) {
                bytes_ -= pattern.bytes();
                pattern.add(worst_.data(), model_.loss(x.truth, worst_.data(), x.length),
                            search_.squared_distance(x, x.truth, worst_.data()));
                bytes_ += pattern.bytes();
            }
        }
        smo_step(slot, choice.from, to, violation - choice.smallest);
    }

    // Algorithm 20.
    void optimize() {
        if (patterns_.empty()) return;
        ++counts_.optimize;
        const std::size_t slot = draw();
        const Choice choice = choose(patterns_[slot], patterns_[slot].stretch(ones_.data()));
        if (choice.largest - choice.smallest > settings_.tau)
            smo_step(slot, choice.from, choice.to, choice.largest - choice.smallest);
    }

    const std::vector<ChainPattern<T>>& patterns() const { return patterns_; }
    std::vector<std::pair<const char*, int64_t>> operations() const {
        return {{"process_new", counts_.process_new}, {"process_old", counts_.process_old},
                {"optimize", counts_.optimize},       {"steps", counts_.steps},
                {"argmax", counts_.argmax},           {"frozen", counts_.frozen}};
    }
    int64_t argmax_calls() const { return counts_.argmax; }
    uint64_t random_state() const { return random_.state(); }
    double dual() const { return dual_; }
    double linear() const { return linear_; }
    double half_squared_norm() const { return linear_ - dual_; }
    int64_t bytes() const { return bytes_; }

    // The dual objective from the weights as they are.
    double dual_from_weights() const { return linear_ - model_.weights.squared_norm() / 2; }

    // Takes up a state that was kept elsewhere.
    void restore(double linear, std::vector<ChainPattern<T>>&& patterns) {
        patterns_ = std::move(patterns);
        slots_.clear();
        bytes_ = 0;
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot) {
            bytes_ += patterns_[slot].bytes();
            grow_ones(patterns_[slot]);
            if (settings_.returns) slot_of(patterns_[slot].id) = int32_t(slot);
        }
        linear_ = linear;
        dual_ = dual_from_weights();
    }

  private:
    static constexpr std::size_t is_truth = std::numeric_limits<std::size_t>::max();
    static constexpr int32_t none = -1, frozen = -2;

    // The outputs with the smallest h that may lose weight and with the largest h, of those that have a coefficient.
    struct Choice {
        std::size_t from = is_truth, to = is_truth;
        double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    };

    // A random pattern. Those that come after it, as far as no pattern goes or comes meanwhile, are asked for already:
    // patterns lie anywhere in memory, and waiting for them would take most of the time.
    std::size_t draw() {
        const uint32_t count = uint32_t(patterns_.size());
        const std::size_t slot = random_.below(count);
        Random ahead = random_;
        patterns_[ahead.below(count)].prefetch_weights(model_.weights.tokens(), model_.weights.lanes());
        patterns_[ahead.below(count)].prefetch_block();
        patterns_[ahead.below(count)].prefetch_own();
        return slot;
    }

    int32_t& slot_of(int64_t id) {
        if (id >= int64_t(slots_.size())) slots_.resize(std::size_t(id) + 1 + std::size_t(id) / 2, none);
        return slots_[std::size_t(id)];
    }

    // Lets go of random patterns until the rest fits. Their coefficients stay as they are: w and the dual keep them,
    // and they are not looked at again.
    void keep_within_limit() {
        while (bytes_ > settings_.memory_limit && patterns_.size() > 1) {
            const std::size_t slot = random_.below(uint32_t(patterns_.size()));
            if (settings_.returns) slots_[std::size_t(patterns_[slot].id)] = frozen;
            drop(slot);
            ++counts_.frozen;
        }
    }

    // As many ones as the longest token of a pattern has features.
    void grow_ones(const ChainPattern<T>& pattern) {
        const std::size_t longest = std::size_t(pattern.longest_token());
        if (ones_.size() < longest) ones_.resize(longest, T(1));
    }

    // h of the output that the loss-augmented search finds, which is left in worst_.
    double find_worst(const Stretch<T>& x) {
        ++counts_.argmax;
        search_.argmax(search_.augmented(x), worst_.data());
        return model_.loss(x.truth, worst_.data(), x.length) + search_.lead(x, worst_.data());
    }

    Choice choose(const ChainPattern<T>& pattern, const Stretch<T>& x) {
        Choice choice;
        double sum = 0;
        search_.begin_leads(x);
        for (std::size_t n = 0; n < pattern.outputs().size(); ++n) {
            const auto& output = pattern.outputs()[n];
            const double h = output.loss + search_.next_lead(x, pattern.labels(n));
            sum += output.alpha;
            if (h < choice.smallest) choice.smallest = h, choice.from = n;
            if (h > choice.largest) choice.largest = h, choice.to = n;
        }
        if (choice.smallest > 0 && sum < pattern.cost) choice.smallest = 0, choice.from = is_truth;
        return choice;
    }

    // Algorithm 17, eq. (5.6) and (5.7): weight goes to `from`, as the coefficient beta that grows, away from `to`.
    void smo_step(std::size_t slot, std::size_t from, std::size_t to, double difference) {
        ChainPattern<T>& pattern = patterns_[slot];
        const Stretch<T> x = pattern.stretch(ones_.data());
        const int32_t* plus = from == is_truth ? x.truth : pattern.labels(from);
        const int32_t* minus = to == is_truth ? x.truth : pattern.labels(to);
        const double room = from == is_truth ? pattern.cost - pattern.alpha_sum() : pattern.outputs()[from].alpha;
        const double distance = from == is_truth ? pattern.outputs()[to].distance
                                : to == is_truth ? pattern.outputs()[from].distance
                                                 : search_.squared_distance(x, plus, minus);
        const double free = distance > 0 ? difference / distance : std::numeric_limits<double>::infinity();
        const double step = std::max(0.0, std::min(free, room));
        if (step > 0) {
            ++counts_.steps;
            add_difference(model_.weights, x, plus, minus, step);
            dual_ += step * difference - step * step * distance / 2;
            if (from != is_truth) {
                auto& output = pattern.output(from);
                output.alpha = step == room ? 0.0 : output.alpha - step;
                linear_ -= step * output.loss;
            }
            if (to != is_truth) pattern.output(to).alpha += step, linear_ += step * pattern.outputs()[to].loss;
        }
        remove_zeros(slot);
    }

    void remove_zeros(std::size_t slot) {
        ChainPattern<T>& pattern = patterns_[slot];
        for (std::size_t n = pattern.outputs().size(); n-- > 0;)
            if (pattern.outputs()[n].alpha == 0) pattern.remove(n);
        if (!pattern.outputs().empty()) return;
        if (settings_.returns) slots_[std::size_t(pattern.id)] = none;
        drop(slot);
    }

    void drop(std::size_t slot) {
        bytes_ -= patterns_[slot].bytes();
        if (slot + 1 < patterns_.size()) {
            patterns_[slot] = std::move(patterns_.back());
            if (settings_.returns) slots_[std::size_t(patterns_[slot].id)] = int32_t(slot);
        }
        patterns_.pop_back();
    }

    ChainModel<T>& model_;
    ChainSearch<T> search_;
    Settings settings_;
    Random random_;
    struct {
        int64_t process_new = 0, process_old = 0, optimize = 0, steps = 0, argmax = 0, frozen = 0;
    } counts_;
    std::vector<ChainPattern<T>> patterns_;
    std::vector<int32_t> slots_;  // of the patterns that may come again: where they are, or none, or frozen
    std::vector<int32_t> worst_;
    std::vector<T> ones_;
    double dual_ = 0, linear_ = 0;
    int64_t bytes_ = 0;
};

}  // namespace larank
