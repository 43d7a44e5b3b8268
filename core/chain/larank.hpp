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
//
// To a gap, rounds follow the first pass, [thesis] algorithm 5: outputs that violate by epsilon more than those known
// join a working set, w staying as it is, and then the problem on the set is solved.
//
// After passes the model may be the average of w over the stream, of which about the last sixteenth counts: the last
// weights owe much to the last few stretches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "chain/average.hpp"
#include "chain/chain.hpp"
#include "chain/pattern.hpp"
#include "chain/workingset.hpp"
#include "memory/snapshot.hpp"
#include "training/random.hpp"

namespace larank {

template <class T>
class ChainLaRank {
  public:
    struct Settings {
        double tau;            // a step is worth taking from this difference of derivatives on
        int64_t n_reprocess;   // n_R
        int64_t memory_limit;  // bytes of support patterns
        bool returns;          // whether stretches come again, in a further epoch
        uint64_t seed;
        int64_t max_patterns = 0;  // that are returned to, 0 for any number
        bool averages = false;
    };

    static constexpr int64_t optimize_per_reprocess = 10;  // [thesis] section 5.1.3

    ChainLaRank(ChainModel<T>& model, const Settings& settings)
        : model_(model),
          search_(model),
          settings_(settings),
          random_(settings.seed),
          average_(model.weights.order(), settings.averages, average_power) {}

    // Another one at the same point, on a copy of its model; not in the middle of rounds.
    ChainLaRank(ChainModel<T>& copy, const ChainLaRank& other)
        : model_(copy),
          search_(copy),
          settings_(other.settings_),
          random_(other.random_),
          average_(other.average_),
          counts_(other.counts_),
          patterns_(other.patterns_),
          slots_(other.slots_),
          ones_(other.ones_),
          dual_(other.dual_),
          linear_(other.linear_),
          bytes_(other.bytes_) {}

    // One example of algorithm 21: PROCESSNEW, then n_R times REPROCESS. Returns h of the worst output, or -1 where
    // there is no such look at the stretch.
    double process(const Stretch<T>& x, int64_t id, double cost) {
        if (set_) return visit_again(x, id, cost);
        average_.begin_stretch();
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
        const std::size_t slot = add_pattern(x, id, cost);
        add_worst(slot, x);
        smo_step(slot, is_truth, 0, violation);
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
            if (to == pattern.outputs().size()) add_worst(slot, x);
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

    bool has_rounds() const { return set_ != nullptr; }

    // Whether rounds keep within the limit on memory: a working set takes about as much as the patterns.
    bool has_room_for_rounds() const { return counts_.frozen == 0 && 2 * bytes_ <= settings_.memory_limit; }

    // From now on outputs that violate by epsilon more than those known join the set, from which none goes, and their
    // patterns take steps if they violate by the accuracy.
    void begin_round(double epsilon, double accuracy) {
        epsilon_ = epsilon, accuracy_ = accuracy;
        if (set_) return;
        begin_set(random_.next());
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot)
            join_with_outputs(slot, patterns_[slot].alpha_sum());
        set_->look(0.0);
    }

    // Looks at the working set and makes some sweeps over what violates by the accuracy; true once its gap is `small`.
    bool optimize_set(double accuracy, double small) {
        const int64_t before = set_->steps();
        const bool is_solved = set_->advance(accuracy, small, 1);
        counts_.steps += set_->steps() - before;
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot) take_coefficients(slot);
        dual_ = dual_from_weights();
        return is_solved;
    }

    // Lets go of what has no coefficient; passes go on as usual.
    void end_rounds() {
        if (!set_) return;
        set_.reset();
        for (std::size_t slot = patterns_.size(); slot-- > 0;) remove_zeros(slot);
    }

    const std::vector<ChainPattern<T>>& patterns() const { return patterns_; }
    std::vector<std::pair<const char*, int64_t>> operations() const {
        return {{"process_new", counts_.process_new},
                {"process_old", counts_.process_old},
                {"optimize", counts_.optimize},
                {"steps", counts_.steps},
                {"visit_again", counts_.visit_again},
                {"argmax", counts_.argmax},
                {"frozen", counts_.frozen}};
    }
    int64_t argmax_calls() const { return counts_.argmax; }
    uint64_t random_state() const { return random_.state(); }
    double dual() const { return dual_; }
    double linear() const { return linear_; }
    double half_squared_norm() const { return linear_ - dual_; }
    int64_t bytes() const { return bytes_; }
    const ChainAverage<T>& average() const { return average_; }
    ChainAverage<T>& average() { return average_; }

    // From the weights to their average.
    void average(ChainWeights<T>& w) const {
        average_.take_from(w);
        for (const ChainPattern<T>& pattern : patterns_) {
            const Stretch<T> x = pattern.stretch(ones_.data());
            for (std::size_t n = 0; n < pattern.outputs().size(); ++n)
                if (const double early = pattern.outputs()[n].early; early != 0)
                    add_difference(w, x, x.truth, pattern.labels(n), -early * average_.share());
        }
    }

    void shorten_average(double coming, double share) {
        each_early([factor = average_.shorten(coming, share)](double& early) { early *= factor; });
    }

    // The dual objective from the weights as they are.
    double dual_from_weights() const { return linear_ - model_.weights.squared_norm() / 2; }

    // What outputs have left in the average, pattern by pattern.
    template <class Take>
    void each_early(Take take) {
        for (ChainPattern<T>& pattern : patterns_)
            for (std::size_t n = 0; n < pattern.outputs().size(); ++n) take(pattern.output(n).early);
    }

    // Takes up a state that was kept elsewhere.
    void restore(double linear, std::vector<ChainPattern<T>>&& patterns) {
        patterns_ = std::move(patterns);
        slots_.clear();
        bytes_ = 0;
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot) {
            bytes_ += patterns_[slot].bytes();
            grow_ones(patterns_[slot]);
            if (!settings_.returns) continue;
            must_hold(slot_of(patterns_[slot].id) == none, "a stretch is two patterns");
            slot_of(patterns_[slot].id) = int32_t(slot);
        }
        linear_ = linear;
        dual_ = dual_from_weights();
    }

    // All that weights, patterns and coefficients do not tell. Who reads it has restored these before.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        Progress progress;
        if constexpr (!Snapshot::reads) progress = this->progress();
        snapshot(random_, average_, counts_, dual_, linear_, epsilon_, accuracy_, progress);
        if constexpr (Snapshot::reads) go_on_from(progress);
    }

  private:
    static constexpr std::size_t is_truth = std::numeric_limits<std::size_t>::max();
    static constexpr int32_t none = -1, frozen = -2;
    static constexpr int64_t most_room = int64_t(1) << 20;  // outputs of one pattern
    static constexpr int average_power = 16;                // as that of linear machines, kernel/weightaverage.hpp

    struct Progress {
        std::vector<int64_t> rooms;      // of the patterns
        std::vector<uint8_t> is_frozen;  // stretch by stretch, up to the last one that is
        bool has_rounds = false;
        std::vector<double> truths;  // in rounds: the coefficient of each pattern's true output,
        Random random{0};            // and what the working set draws from

        template <class Snapshot>
        void exchange(Snapshot& snapshot) {
            snapshot(rooms, is_frozen, has_rounds, truths, random);
        }
    };

    Progress progress() const {
        Progress progress;
        for (const ChainPattern<T>& pattern : patterns_) progress.rooms.push_back(pattern.room());
        for (std::size_t id = 0; id < slots_.size(); ++id)
            if (slots_[id] == frozen) progress.is_frozen.resize(id + 1), progress.is_frozen[id] = 1;
        progress.has_rounds = has_rounds();
        if (!set_) return progress;
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot)
            progress.truths.push_back(set_->beta()[std::size_t(set_->vectors_of(int64_t(slot))[0])]);
        progress.random = set_->random();
        return progress;
    }

    void go_on_from(const Progress& progress) {
        must_hold(std::isfinite(dual_) && std::isfinite(linear_), "an objective is not finite");
        must_hold(progress.rooms.size() == patterns_.size(), "it has other patterns than the session");
        bytes_ = 0;
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot) {
            ChainPattern<T>& pattern = patterns_[slot];
            const int64_t room = progress.rooms[slot];
            must_hold(room >= int64_t(pattern.outputs().size()) && room <= most_room, "the room of a pattern");
            pattern.set_room(room);
            bytes_ += pattern.bytes();
        }
        const int64_t gone = std::count(progress.is_frozen.begin(), progress.is_frozen.end(), 1);
        must_hold(are_within(progress.is_frozen, 0, 2) && gone == (settings_.returns ? counts_.frozen : 0),
                  "it has let go of other patterns than it counts");
        for (std::size_t id = 0; id < progress.is_frozen.size(); ++id) {
            if (!progress.is_frozen[id]) continue;
            must_hold(slot_of(int64_t(id)) == none, "a pattern was let go and is there");
            slot_of(int64_t(id)) = frozen;
        }
        if (!progress.has_rounds) return;
        must_hold(settings_.returns && counts_.frozen == 0, "there cannot be rounds");
        must_hold(progress.truths.size() == patterns_.size() && are_finite(progress.truths),
                  "a coefficient is missing");
        begin_set(0);
        for (std::size_t slot = 0; slot < patterns_.size(); ++slot) join_with_outputs(slot, progress.truths[slot]);
        set_->random() = progress.random;
    }

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
        const auto are_too_many = [&] {
            const bool is_over = settings_.max_patterns > 0 && int64_t(patterns_.size()) > settings_.max_patterns;
            return is_over || (bytes_ > settings_.memory_limit && patterns_.size() > 1);
        };
        while (are_too_many()) {
            const std::size_t slot = random_.below(uint32_t(patterns_.size()));
            if (settings_.returns) slots_[std::size_t(patterns_[slot].id)] = frozen;
            drop(slot);
            ++counts_.frozen;
        }
    }

    // The visit of a stretch in a round: its worst output joins, and the pattern takes steps. Returns h of that output.
    double visit_again(const Stretch<T>& x, int64_t id, double cost) {
        ++counts_.visit_again;
        worst_.resize(std::size_t(x.length));
        const double violation = find_worst(x);
        if (slot_of(id) == none) {
            if (violation <= epsilon_) return std::max(violation, 0.0);
            join(add_pattern(x, id, cost), 0.0);
        }
        const std::size_t slot = std::size_t(slot_of(id)), outputs = patterns_[slot].outputs().size();
        const double known = -set_->look_at(int64_t(slot)).worst;
        if (violation - known > epsilon_ && patterns_[slot].find(worst_.data()) == outputs) {
            add_worst(slot, x);
            join_output(slot, outputs);
        }
        dual_ += set_->step_on(int64_t(slot), accuracy_);
        take_coefficients(slot);
        return std::max(violation, 0.0);
    }

    // From the set to the pattern.
    void take_coefficients(std::size_t slot) {
        for (const int32_t v : set_->vectors_of(int64_t(slot))) {
            const int32_t n = set_->rows().place(v).second;
            if (n == ChainRows<T>::is_truth) continue;
            auto& output = patterns_[slot].output(std::size_t(n));
            const double alpha = -set_->beta()[std::size_t(v)];
            linear_ += (alpha - output.alpha) * output.loss;
            output.alpha = alpha;
        }
    }

    void begin_set(uint64_t seed) { set_ = std::make_unique<ChainWorkingSet<T>>(seed, model_, patterns_, ones_); }
    // A pattern, with the coefficient of its true output.
    void join(std::size_t slot, double beta) {
        set_->add_pattern(patterns_[slot].cost);
        set_->rows().add(slot, ChainRows<T>::is_truth);
        set_->add_vector(int64_t(slot), 0.0, beta);
    }
    void join_with_outputs(std::size_t slot, double beta) {
        join(slot, beta);
        for (std::size_t n = 0; n < patterns_[slot].outputs().size(); ++n) join_output(slot, n);
    }
    void join_output(std::size_t slot, std::size_t n) {
        const auto& output = patterns_[slot].outputs()[n];
        set_->rows().add(slot, int32_t(n));
        set_->add_vector(int64_t(slot), output.loss, -output.alpha);
    }

    std::size_t add_pattern(const Stretch<T>& x, int64_t id, double cost) {
        patterns_.emplace_back(x, model_.weights.order(), id, cost);
        if (settings_.returns) slots_[std::size_t(id)] = int32_t(patterns_.size()) - 1;
        grow_ones(patterns_.back());
        bytes_ += patterns_.back().bytes();
        return patterns_.size() - 1;
    }

    // The output that was found last, which the pattern does not have.
    void add_worst(std::size_t slot, const Stretch<T>& x) {
        ChainPattern<T>& pattern = patterns_[slot];
        bytes_ -= pattern.bytes();
        pattern.add(worst_.data(), model_.loss(x.truth, worst_.data(), x.length),
                    search_.squared_distance(x, x.truth, worst_.data()));
        bytes_ += pattern.bytes();
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
            const double early = step * average_.factor();
            if (from != is_truth) {
                auto& output = pattern.output(from);
                output.early -= early;
                output.alpha = step == room ? 0.0 : output.alpha - step;
                linear_ -= step * output.loss;
            }
            if (to != is_truth) {
                auto& output = pattern.output(to);
                output.early += early;
                output.alpha += step;
                linear_ += step * output.loss;
            }
        }
        remove_zeros(slot);
    }

    void remove_zeros(std::size_t slot) {
        ChainPattern<T>& pattern = patterns_[slot];
        for (std::size_t n = pattern.outputs().size(); n-- > 0;)
            if (pattern.outputs()[n].alpha == 0) forget_early(pattern, n), pattern.remove(n);
        if (!pattern.outputs().empty()) return;
        if (settings_.returns) slots_[std::size_t(pattern.id)] = none;
        drop(slot);
    }

    // What an output has left in the average is summed up with the rest.
    void forget_early(ChainPattern<T>& pattern, std::size_t n) {
        const Stretch<T> x = pattern.stretch(ones_.data());
        average_.add(model_.weights, x, x.truth, pattern.labels(n), pattern.outputs()[n].early);
        pattern.output(n).early = 0;
    }

    void drop(std::size_t slot) {
        for (std::size_t n = 0; n < patterns_[slot].outputs().size(); ++n) forget_early(patterns_[slot], n);
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
    ChainAverage<T> average_;
    struct Counts {
        int64_t process_new = 0, process_old = 0, optimize = 0, steps = 0, visit_again = 0, argmax = 0, frozen = 0;

        template <class Snapshot>
        void exchange(Snapshot& snapshot) {
            snapshot(process_new, process_old, optimize, steps, visit_again, argmax, frozen);
        }
    } counts_;
    std::vector<ChainPattern<T>> patterns_;
    std::vector<int32_t> slots_;  // of the patterns that may come again: where they are, or none, or frozen
    std::vector<int32_t> worst_;
    std::vector<T> ones_;
    std::unique_ptr<ChainWorkingSet<T>> set_;  // in rounds
    double epsilon_ = 0, accuracy_ = 0;
    double dual_ = 0, linear_ = 0;
    int64_t bytes_ = 0;
};

}  // namespace larank
