// Kernel perceptrons [thesis] section 2.1.3: an example that is not scored well enough when it comes changes its own
// coefficients, and no others.
//
//   two classes    f(x) = sum_i alpha_i k(x_i, x), y = -1 or +1, no bias
//                  m = y f(x); alpha += y step
//   more classes   S(x, y) = sum_i beta_i^y k(x_i, x), r the wrong class with the largest score
//                  m = S(x, y) - S(x, r); beta^y += step, beta^r -= step        [larank] section 1, "Kernel
//                  Perceptrons"
//
// A rule makes the step from the margin m. Two classes have one column of coefficients, more have one column each.
//
// The average of all decision functions, one after each example [thesis] "Averaged Perceptron", costs nothing extra on
// the way: what example t = 1, 2, ... adds to a coefficient is in T - t + 1 of the T functions, so the average is
// coefficient - early / T, where `early` sums up (t - 1) times what was added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernel/patternsolver.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

// What a rule sees of an example. A step of size s raises the margin by s * gain.
struct Margin {
    double value;
    double gain;  // k(x, x) times the number of columns a step changes
    double cost;
};

struct PerceptronRule {
    double margin = 0;  // beta of [thesis] algorithm 4

    double step(const Margin& m) const { return m.value <= margin ? m.cost : 0.0; }  // [thesis] algorithm 2, line 4
    // What a step on one column would have been on two.
    static constexpr double share_of_two_columns = 1;
};

// What a passive-aggressive step weighs against the change it makes: C times the loss that it leaves, or C times its
// square. With 1 - m the loss before, the best step is (1 - m) / gain up to C, or (1 - m) / (gain + 1 / (2 C)).
enum class StepLoss { hinge, squared_hinge };

struct PassiveAggressiveRule {
    StepLoss loss = StepLoss::hinge;

    double step(const Margin& m) const {
        // An example at the origin of feature space scores zero whatever its coefficient is.
        if (!(m.value < 1) || !(m.gain > 0)) return 0.0;
        if (loss == StepLoss::squared_hinge) return (1 - m.value) / (m.gain + 1 / (2 * m.cost));  // PA-II
        return std::min(m.cost, (1 - m.value) / m.gain);  // PA-I, [thesis] algorithm 3, line 5
    }
    static constexpr double share_of_two_columns = 0.5;
};

struct PerceptronCounters {
    int64_t visits = 0;    // examples, each with one arg max
    int64_t mistakes = 0;  // of them not scored above all wrong classes
    int64_t updates = 0;   // of them with a step
    int64_t removals = 0;  // support patterns that went over the budget

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(visits, mistakes, updates, removals);
    }
};

template <class T, class Rule>
class Perceptron : public PatternSolver<T, Perceptron<T, Rule>> {
  public:
    using Base = PatternSolver<T, Perceptron<T, Rule>>;
    using Base::table, Base::stay_within_limit;

    static constexpr int64_t no_budget = std::numeric_limits<int64_t>::max();

    Perceptron(const Rule& rule, int64_t budget, int64_t memory_limit)
        : Base(memory_limit, budget != no_budget, births_to_settle), rule_(rule), budget_(budget), columns_(1) {}

    // From one column for two classes to a column for each; from here on there may be any number of them.
    void split_column() {
        if (!is_single_) return;
        is_single_ = false;
        if (table().size() == 0) return columns_.clear();
        columns_.push_back(columns_.front());
        for (int32_t y : {0, 1}) columns_[std::size_t(y)].scale((y ? 1 : -1) * Rule::share_of_two_columns);
        for (const int32_t slot : table().present()) {
            const int32_t place = table()[slot].vectors.front().place;
            table().add_vector(slot, 1, place);
            for (SupportVector& v : table()[slot].vectors)
                v.beta = columns_[std::size_t(v.label)].beta[std::size_t(place)];
        }
    }

    void feed(const Block<T>& block, const Examples& examples) {
        if (is_single_ &&
            std::any_of(examples.labels, examples.labels + examples.count, [](int32_t y) { return y > 1; }))
            throw std::invalid_argument("labels must be 0 or 1 while there is one column of coefficients");
        Base::feed(block, examples);
    }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        while (at_ < end) {
            process(at_++);
            while (table().size() > budget_) remove_one();
        }
    }

    SupportArrays support() const {
        return arrays_of(table(), [](SupportArrays& arrays, int32_t, const Pattern& p) {
            for (const SupportVector& v : p.vectors) arrays.put(v.label, v.beta);
        });
    }
    // A pattern of a saved model. `row` holds its kernel values with the slots before it and itself; only a budget
    // needs it.
    void restore(const T* row, const SupportArrays& saved, std::size_t n) {
        const int64_t id = saved.ids[n];
        const int32_t label = saved.labels[n];
        const double cost = saved.costs[n], diagonal = saved.diagonal[n];
        make_column(label);
        const int32_t slot =
            has_budget() ? rows_.restore(row, id, label, cost, diagonal) : table().add(id, label, cost, diagonal);
        if (has_budget()) {
            score(row);
            begin_scores(slot);
        }
        for (std::size_t e = std::size_t(saved.starts[n]); e < std::size_t(saved.starts[n + 1]); ++e) {
            make_column(saved.columns[e]);
            add_to_coefficient(slot, saved.columns[e], saved.coefficients[e], row);
        }
        stay_within_limit(slot);
    }
    bool knows(int32_t label) const { return !is_single_ || label <= 1; }
    bool accepts(int32_t column, double) const { return is_single_ ? column == 0 : column >= 0; }

    // The sums `early` of all coefficients, in the order in which `support` has these.
    std::vector<double> early() const {
        std::vector<double> sums;
        for_each_vector(table(), [&](const SupportVector& v) {
            sums.push_back(columns_[std::size_t(v.label)].early[std::size_t(v.place)]);
        });
        return sums;
    }
    void set_early(const double* sums) {
        for_each_vector(table(), [&](const SupportVector& v) {
            columns_[std::size_t(v.label)].early[std::size_t(v.place)] = *sums++;
        });
    }

    bool has_budget() const { return budget_ != no_budget; }
    bool is_single() const { return is_single_; }
    int64_t columns() const { return int64_t(columns_.size()); }
    int64_t classes() const { return is_single_ ? 2 : columns(); }  // that it can tell apart
    const PerceptronCounters& counters() const { return counters_; }
    void set_counters(const PerceptronCounters& counters) { counters_ = counters; }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(table(), is_single_, columns_, counters_);
        if constexpr (Snapshot::reads) check_columns();
    }
    void bring_all_rows() { rows_.bring_all(make_room()); }

    int64_t bytes_beside_rows() const {
        int64_t total = 0;
        for (const Column& column : columns_) total += column.bytes();
        return total;
    }

  private:
    using Base::at_, Base::examples_, Base::make_room, Base::rows_;

    static constexpr int64_t births_to_settle = 256;

    // The coefficients of one column side by side. With a budget also, by slot, the scores that support patterns would
    // have without their own coefficients.
    struct Column {
        std::vector<int32_t> slots, free;
        LargeVector<double> beta, early, scores;

        int64_t size() const { return int64_t(slots.size()); }
        int64_t bytes() const {
            return int64_t((slots.capacity() + free.capacity()) * 4 +
                           (beta.capacity() + early.capacity() + scores.capacity()) * 8);
        }
        template <class Snapshot>
        void exchange(Snapshot& snapshot) {
            snapshot(slots, free, beta, early, scores);
        }
        void scale(double factor) {
            for (auto* values : {&beta, &early, &scores})
                for (double& value : *values) value *= factor;
        }
        int32_t place_for(int32_t slot) {
            if (free.empty()) {
                slots.push_back(slot), beta.push_back(0), early.push_back(0);
                return int32_t(slots.size()) - 1;
            }
            const int32_t place = free.back();
            free.pop_back();
            slots[std::size_t(place)] = slot;
            return place;
        }
    };

    void check_columns() const {
        must_hold(!is_single_ || columns() == 1, "two classes have one column");
        for (const Column& column : columns_) {
            must_hold(column.beta.size() == column.slots.size() && column.early.size() == column.slots.size() &&
                          int64_t(column.scores.size()) == (has_budget() ? table().slots() : 0),
                      "the coefficients of a column differ in number");
            must_hold(are_within(column.slots, 0, table().slots()) && are_within(column.free, 0, column.size()),
                      "a coefficient is out of range");
            must_hold(are_finite(column.beta) && are_finite(column.early) && are_finite(column.scores),
                      "a coefficient is not finite");
        }
        for (const int32_t slot : table().present())
            must_hold(table()[slot].label < classes(), "a label is out of range");
        table().each_vector([&](int32_t slot, const Pattern&, const SupportVector& v) {
            must_hold(v.label >= 0 && v.label < columns(), "a label is out of range");
            const Column& column = columns_[std::size_t(v.label)];
            must_hold(v.place >= 0 && v.place < column.size() && column.slots[std::size_t(v.place)] == slot &&
                          column.beta[std::size_t(v.place)] == v.beta,
                      "columns and patterns do not agree");
        });
    }

    // The class to beat: the score of the label minus its score, and its column.
    struct Rival {
        double margin = std::numeric_limits<double>::infinity();
        int32_t column = -1;
    };

    void process(int64_t b) {
        const int32_t label = examples_.labels[b];
        make_column(label);
        score(rows_.of_example(b));
        const Rival rival = rival_of(label);
        const double gain = examples_.diagonal[b] * (is_single_ ? 1 : 2);
        const double step = rule_.step({rival.margin, gain, examples_.costs[b]});
        if (step > 0) update(b, label, rival, step);
        counters_.mistakes += rival.margin <= 0;
        counters_.updates += step > 0;
        ++counters_.visits;
    }

    // A class takes part from its first example on.
    void make_column(int32_t label) {
        while (!is_single_ && columns() <= label) {
            columns_.emplace_back();
            if (has_budget()) columns_.back().scores.assign(std::size_t(table().slots()), 0);
        }
    }

    void score(const T* k) {
        scores_.resize(columns_.size());
        for (std::size_t c = 0; c < columns_.size(); ++c)
            scores_[c] =
                units<T>().dot_row_at(k, columns_[c].slots.data(), columns_[c].beta.data(), columns_[c].size());
    }

    static double sign_of(int32_t label) { return label ? 1.0 : -1.0; }
    // By the scores that were computed last.
    Rival rival_of(int32_t label) const {
        if (is_single_) return {sign_of(label) * scores_[0], 0};
        Rival rival;
        for (int32_t r = 0; r < columns(); ++r) {
            const double margin = scores_[std::size_t(label)] - scores_[std::size_t(r)];
            if (r != label && margin < rival.margin) rival = {margin, r};
        }
        return rival;
    }

    void update(int64_t b, int32_t label, const Rival& rival, double step) {
        const T* const k = rows_.of_example(b);
        int32_t slot = table().slot_of(examples_.ids[b]);
        if (slot < 0) slot = add_pattern(b);
        if (is_single_) {
            add_to_coefficient(slot, 0, sign_of(label) * step, k);
        } else {
            add_to_coefficient(slot, label, step, k);
            add_to_coefficient(slot, rival.column, -step, k);
        }
        stay_within_limit(slot);
    }

    int32_t add_pattern(int64_t b) {
        const auto& e = examples_;
        if (!has_budget()) return rows_.add_without_row(b, e.ids[b], e.labels[b], e.costs[b], e.diagonal[b]);
        const int32_t slot = rows_.add(b, e.ids[b], e.labels[b], e.costs[b], e.diagonal[b]);
        begin_scores(slot);
        return slot;
    }

    // A new pattern has the scores that were computed last.
    void begin_scores(int32_t slot) {
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            columns_[c].scores.resize(std::size_t(table().slots()));
            columns_[c].scores[std::size_t(slot)] = scores_[c];
        }
    }

    // `k` holds the kernel values of the pattern with all slots.
    void add_to_coefficient(int32_t slot, int32_t c, double change, const T* k) {
        Column& column = columns_[std::size_t(c)];
        SupportVector* v = table()[slot].find(c);
        if (!v) {
            table().add_vector(slot, c, column.place_for(slot));
            v = &table()[slot].vectors.back();
        }
        v->beta += change;
        column.beta[std::size_t(v->place)] = v->beta;
        column.early[std::size_t(v->place)] += change * double(counters_.visits);
        if (!has_budget()) return;
        const double own = column.scores[std::size_t(slot)];
        units<T>().add_row_values(k, change, table().slots(), column.scores.data());
        column.scores[std::size_t(slot)] = own;
    }

    // One support pattern leaves: the one that would be scored best without its own coefficients.
    void remove_one() {  // [thesis] algorithm 4, line 7
        const int32_t leaving = least_needed();
        if (!rows_.find(leaving)) rows_.bring({leaving}, make_room());
        for (const SupportVector& v : table()[leaving].vectors)
            add_to_coefficient(leaving, v.label, -v.beta, rows_[leaving]);
        table().remove_zeros(leaving, [&](const SupportVector& v) {
            Column& column = columns_[std::size_t(v.label)];
            column.beta[std::size_t(v.place)] = column.early[std::size_t(v.place)] = 0;
            column.free.push_back(v.place);
        });
        ++counters_.removals;
        stay_within_limit(-1);  // rows grow when they are brought up to date
    }

    int32_t least_needed() {
        int32_t best = -1;
        double largest = -std::numeric_limits<double>::infinity();
        for (int32_t slot = 0; slot < table().slots(); ++slot) {
            if (!table().contains(slot)) continue;
            const double margin = margin_without_itself(slot);
            if (best < 0 || margin > largest) largest = margin, best = slot;
        }
        return best;
    }

    // y_i (f(x_i) - alpha_i k(x_i, x_i)); with more classes the margin of S without beta_i.
    double margin_without_itself(int32_t slot) {
        scores_.resize(columns_.size());
        for (std::size_t c = 0; c < columns_.size(); ++c) scores_[c] = columns_[c].scores[std::size_t(slot)];
        return rival_of(table()[slot].label).margin;
    }

    template <class Table, class Visit>
    static void for_each_vector(Table& table, Visit visit) {
        for (int32_t slot = 0; slot < table.slots(); ++slot)
            if (table.contains(slot))
                for (const SupportVector& v : table[slot].vectors) visit(v);
    }

    Rule rule_;
    int64_t budget_;
    std::vector<Column> columns_;
    bool is_single_ = true;
    std::vector<double> scores_;
    PerceptronCounters counters_;
};

}  // namespace larank
