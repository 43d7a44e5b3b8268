// A multiclass kernel machine: S(x, y) = sum_i beta_i^y k(x_i, x), its support vectors class by class.
//
// Each class keeps its support vectors side by side, with their coefficients and scores, and, where memory allows, the
// sets E(y, i) = { k(x_i, x_j) : (x_j, y) in S } of [larank] section 3: a change of one coefficient is one
// streaming pass over one such set. Where memory does not allow them, the values are gathered from the pattern's row.
//
// Where patterns are let go (kernel/forgetting.hpp), the model is an average of the coefficients over the stream, as
// kernel/looks.hpp has it, from the first that left on. Those who stay hardly change from there, so an average needs
// no others.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "blocks/rowsums.hpp"
#include "kernel/gram.hpp"
#include "kernel/looks.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"
#include "memory/heap.hpp"
#include "simd/units.hpp"

namespace larank {

template <class T>
class KernelMachine {
  public:
    using Value = T;

    explicit KernelMachine(int64_t memory_limit, bool averages = false)
        : rows_(memory_limit, 1, 256), averages_(averages) {}

    PatternRows<T>& rows() { return rows_; }
    const PatternRows<T>& rows() const { return rows_; }
    SupportTable& table() { return rows_.table(); }
    const SupportTable& table() const { return rows_.table(); }
    int64_t classes() const { return int64_t(classes_.size()); }
    void add_class() {
        classes_.emplace_back();
        classes_.back().sets = Gram<T>(1, sets_);
    }

    void begin_another_epoch() {}

    void feed(const Block<T>& block) {
        rows_.feed(block);
        stay_within_limit(-1);
    }

    // S(x, y) of an example by its kernel values with the slots, for all classes.
    void scores_of(const T* row, double* scores) const {
        for (std::size_t y = 0; y < classes_.size(); ++y) {
            const ClassList& list = classes_[y];
            scores[y] = units<T>().dot_row_at(row, list.slots.data(), list.beta.data(), list.size());
        }
    }

    // S(x, y) of example b of the block, for all classes. Returns the work: an example also pays for its kernel values.
    int64_t scores_of_new(int64_t b, double* scores) const {
        scores_of(rows_.of_example(b), scores);
        return table().vectors() + kernel_value_work * table().size();
    }

    // The same for a pattern that is ready.
    int64_t scores_of_old(int32_t slot, double* scores) const {
        scores_of(rows_[slot], scores);
        return table().vectors();
    }

    // S(x_i, y) of the pattern's own support vectors, which are kept up to date.
    int64_t scores_of_vectors(int32_t slot, double* scores) const {
        for (const SupportVector& v : table()[slot].vectors)
            *scores++ = classes_[std::size_t(v.label)].scores[std::size_t(v.place)];
        return visit_work;
    }

    // Whether the pattern's row of kernel values is here and up to date, or must be brought first.
    bool has_row(int32_t slot) { return rows_.is_ready(slot, make_room()); }
    // Whether its coefficients can be changed.
    bool can_step(int32_t slot) { return keeps_sets_ || has_row(slot); }
    void bring_rows(const std::vector<int32_t>& slots) { rows_.bring(slots, make_room()); }
    void require(int32_t slot) { rows_.require(slot, make_room()); }
    // The kernel values of a pattern with all others, once its row is here.
    static constexpr bool compares_patterns = true;
    const T* kernel_row(int32_t slot) const { return rows_[slot]; }

    // Example b becomes a pattern, without support vectors yet.
    int32_t add_pattern(int64_t b, int64_t id, int32_t label, double cost, double diagonal) {
        const int32_t slot = rows_.add(b, id, label, cost, diagonal);
        stay_within_limit(slot);
        return slot;
    }

    // The same for a pattern of a saved model; `row` holds its kernel values with the slots before it.
    int32_t restore_pattern(const T* row, int64_t id, int32_t label, double cost, double diagonal, double* scores) {
        const int32_t slot = rows_.restore(row, id, label, cost, diagonal);
        stay_within_limit(slot);
        scores_of(rows_[slot], scores);
        return slot;
    }

    // (x_i, y) joins the support vectors with coefficient zero and the score given.
    void add_vector(int32_t slot, int32_t y, double score) {
        ClassList& list = classes_[std::size_t(y)];
        int32_t place = int32_t(list.size());
        if (list.free.empty()) {
            list.slots.push_back(slot), list.beta.push_back(0), list.scores.push_back(score);
        } else {
            place = list.free.back();
            list.free.pop_back();
            list.slots[std::size_t(place)] = slot;
            list.scores[std::size_t(place)] = score;
        }
        table().add_vector(slot, y, place);
        if (keeps_sets_) gather_set(slot, table()[slot].vectors.back());
        stay_within_limit(slot);
    }

    // beta_i^y <- beta, and the scores of the class follow: S(x_j, y) += change k(x_i, x_j)  [larank] eq. (8).
    // Returns the number of scores touched.
    int64_t set_coefficient(int32_t slot, SupportVector& v, double beta) {
        const double change = beta - v.beta;
        v.beta = beta;
        return change_scores(slot, v, change);
    }
    // The same for what it inherits, and for a pattern that leaves.
    void inherit_coefficient(int32_t slot, SupportVector& v, double change) {
        ClassList& list = classes_[std::size_t(v.label)];
        list.inherited.resize(list.slots.size());
        list.inherited[std::size_t(v.place)] += change;
        change_scores(slot, v, change);
    }
    void clear_coefficient(int32_t slot, SupportVector& v) {
        ClassList& list = classes_[std::size_t(v.label)];
        const double change = -coefficient(v);
        v.beta = 0;
        if (std::size_t(v.place) < list.inherited.size()) list.inherited[std::size_t(v.place)] = 0;
        if (std::size_t(v.place) < list.averaged.size()) list.averaged[std::size_t(v.place)] = 0;
        change_scores(slot, v, change);
    }
    // Its own and what it has inherited from patterns that were let go, see kernel/forgetting.hpp.
    double coefficient(const SupportVector& v) const { return v.beta + inherited(v); }

    // The average of the coefficients until the last look, 0 where there was none, and until now, which is not
    // remembered.
    bool averages() const { return averages_; }
    double averaged(const SupportVector& v) const { return value_of(v, classes_[std::size_t(v.label)].averaged); }
    double model_coefficient(const SupportVector& v) const {
        if (!looks_.have_begun()) return coefficient(v);
        return averaged(v) + looks_.share() * (coefficient(v) - averaged(v));
    }
    void after_example() {
        if (!averages_) return;
        looks_.after_example();
        if (!have_left_ || looks_.since_last() < examples_between_looks || !looks_.are_due()) return;
        for (ClassList& list : classes_) list.look(looks_.share());
        looks_.look();
    }
    // A pattern leaves: its average goes the way of its coefficients, in these shares to patterns that have vectors of
    // its classes.
    void begin_leaving(int32_t slot) {
        have_left_ = true;
        left_.clear();
        for (const SupportVector& v : table()[slot].vectors)
            if (averaged(v) != 0) left_.emplace_back(v.label, averaged(v));
    }
    void inherit_average(int32_t slot, double share) {
        for (const auto& [label, value] : left_) {
            ClassList& list = classes_[std::size_t(label)];
            list.averaged.resize(list.slots.size());
            list.averaged[std::size_t(table()[slot].find(label)->place)] += share * value;
        }
    }
    // |w|^2 of the model, by the rows of all patterns.
    double model_squared_norm() {
        const std::vector<int32_t> present = table().present();
        std::vector<std::vector<double>> values;
        for (const ClassList& list : classes_) values.emplace_back(list.slots.size());
        table().each_vector([&](int32_t, const Pattern&, const SupportVector& v) {
            values[std::size_t(v.label)][std::size_t(v.place)] = model_coefficient(v);
        });
        double sum = 0;
        for (const int32_t slot : present) {
            require(slot);
            for (const SupportVector& v : table()[slot].vectors) {
                const ClassList& list = classes_[std::size_t(v.label)];
                sum += model_coefficient(v) * units<T>().dot_row_at(rows_[slot], list.slots.data(),
                                                                    values[std::size_t(v.label)].data(), list.size());
            }
        }
        return sum;
    }

    // beta_i^y <- beta, while the scores wait for `sum_up_scores`.
    void replace_coefficient(SupportVector& v, double beta) {
        v.beta = beta;
        classes_[std::size_t(v.label)].beta[std::size_t(v.place)] = coefficient(v);
    }
    // The scores of the pattern's own support vectors, from the coefficients. Its row must be here.
    void sum_up_scores(int32_t slot) {
        for (const SupportVector& v : table()[slot].vectors) {
            ClassList& list = classes_[std::size_t(v.label)];
            list.scores[std::size_t(v.place)] =
                units<T>().dot_row_at(rows_[slot], list.slots.data(), list.beta.data(), list.size());
        }
    }

    // S(x_i, y) of all slots, class by class, from all rows at once; false where some are not here.
    bool scores_of_all(std::vector<double>& scores) {
        if (!rows_.settle_all()) return false;
        std::vector<const T*> rows;
        std::vector<double> values;
        std::vector<int64_t> starts{0};
        for (const ClassList& list : classes_) {
            for (int64_t place = 0; place < list.size(); ++place) {
                if (list.beta[std::size_t(place)] == 0) continue;
                rows.push_back(rows_[list.slots[std::size_t(place)]]);
                values.push_back(list.beta[std::size_t(place)]);
            }
            starts.push_back(int64_t(rows.size()));
        }
        const int64_t slots = table().slots();
        scores.resize(std::size_t(classes() * slots));
        sum_up<T>({rows.data(), values.data(), starts.data(), classes()}, 0, slots, slots, scores.data());
        return true;
    }

    // Coefficients and scores as they are now, and back to them.
    void remember() {
        table().remember();
        for (ClassList& list : classes_) list.remembered_beta = list.beta, list.remembered_scores = list.scores;
    }
    void go_back() {
        table().go_back();
        for (ClassList& list : classes_) list.beta = list.remembered_beta, list.scores = list.remembered_scores;
    }

    void swap_remembered() {
        table().swap_remembered();
        for (ClassList& list : classes_)
            std::swap(list.beta, list.remembered_beta), std::swap(list.scores, list.remembered_scores);
    }

    void remove_zeros(int32_t slot) {
        table().remove_zeros(
            slot, [&](const SupportVector& v) { classes_[std::size_t(v.label)].free.push_back(v.place); },
            [&](const SupportVector& v) { return inherited(v) != 0 || averaged(v) != 0; });
    }

    // What an OPTIMIZE on this pattern will read, the two stages some time apart.
    void prefetch_scores(int32_t slot) const {
        for (const SupportVector& v : table()[slot].vectors) {
            const ClassList& list = classes_[std::size_t(v.label)];
            prefetch(list.scores.data() + v.place);
            if (keeps_sets_) list.sets.prefetch_entry(v.place);
        }
    }
    void prefetch_kernel_values(int32_t slot, int32_t y_plus, int32_t y_minus) const {
        for (const SupportVector& v : table()[slot].vectors)
            if (v.label == y_plus || v.label == y_minus) classes_[std::size_t(v.label)].sets.prefetch_row(v.place);
    }

    int64_t bytes() const { return rows_.bytes() + bytes_beside_rows(); }
    // What others hold on behalf of this machine, such as the patterns themselves.
    void set_foreign_bytes(int64_t bytes) {
        rows_.set_foreign_bytes(bytes);
        stay_within_limit(-1);
    }
    // Sets grow when they catch up, and must not go before both coefficients of a step are changed.
    void after_step(int32_t slot) {
        if (have_sets_grown_) stay_within_limit(slot);
        have_sets_grown_ = false;
    }
    bool keeps_sets() const { return keeps_sets_; }

    // All but kernel values, which `bring_all_rows` has computed again.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(table(), classes_, averages_, have_left_, looks_);
        if constexpr (Snapshot::reads) {
            check_classes();
            for (ClassList& list : classes_) list.sets = Gram<T>(1, sets_);
        }
    }
    void bring_all_rows() {
        rows_.bring_all(make_room());
        for (const int32_t slot : std::vector<int32_t>(table().present()))
            for (const SupportVector& v : table()[slot].vectors) {
                if (!keeps_sets_) return;
                if (!has_row(slot)) rows_.bring({slot}, make_room());
                if (keeps_sets_) gather_set(slot, v);
                stay_within_limit(slot);
            }
    }
    int64_t rows_at_once() const { return rows_.at_once(); }

  private:
    // The schedule weighs dual increase against work, in units of a coefficient touched. An example must pay for its
    // kernel values, and a visit for finding its pattern in memory: charging less starves reprocessing or wastes it,
    // charging more buys little dual for the time. docs/kernel/larank.md says what was tried.
    static constexpr int64_t kernel_value_work = 10, visit_work = 50;
    static constexpr int64_t births_to_settle = 64;  // of a class: most of its sets will be used soon
    // A look costs about as much as the scores of an example.
    static constexpr int64_t examples_between_looks = 64;
    static constexpr int average_doublings = 1;  // to the power of 2; 4 and 8 lost up to 0.7 points on noisy streams

    struct ClassList {
        std::vector<int32_t> slots;
        LargeVector<double> beta, scores, remembered_beta, remembered_scores;
        LargeVector<double> inherited;  // the part of beta that is; those beyond its end have none
        LargeVector<double> averaged;   // likewise
        std::vector<int32_t> free;
        Gram<T> sets;

        int64_t size() const { return int64_t(slots.size()); }
        int64_t bytes() const {
            return int64_t(slots.capacity() * 4 + 2 * (beta.capacity() + scores.capacity()) * 8 +
                           (inherited.capacity() + averaged.capacity()) * 8);
        }
        void look(double share) {
            averaged.resize(slots.size());
            for (std::size_t n = 0; n < averaged.size(); ++n) averaged[n] += share * (beta[n] - averaged[n]);
        }

        template <class Snapshot>
        void exchange(Snapshot& snapshot) {
            snapshot(slots, beta, scores, inherited, averaged, free);
        }
    };

    void check_classes() const {
        std::size_t places = 0, free = 0;
        for (const ClassList& list : classes_) {
            must_hold(list.beta.size() == list.slots.size() && list.scores.size() == list.slots.size(),
                      "the support vectors of a class differ in number");
            must_hold(are_within(list.slots, 0, table().slots()) && are_within(list.free, 0, list.size()),
                      "a support vector of a class is out of range");
            must_hold(are_finite(list.beta) && are_finite(list.scores), "a score is not finite");
            must_hold(list.inherited.size() <= list.slots.size() && are_finite(list.inherited),
                      "what support vectors have inherited makes no sense");
            must_hold(list.averaged.size() <= list.slots.size() && are_finite(list.averaged),
                      "the average of coefficients makes no sense");
            places += list.slots.size(), free += list.free.size();
            for (const int32_t place : list.free)
                must_hold(list.beta[std::size_t(place)] == 0, "a free place is in use");
        }
        must_hold(int64_t(places - free) == table().vectors(), "classes and patterns do not agree");
        table().each_vector([&](int32_t slot, const Pattern&, const SupportVector& v) {
            must_hold(v.label >= 0 && v.label < classes(), "a label is out of range");
            const ClassList& list = classes_[std::size_t(v.label)];
            must_hold(v.place >= 0 && v.place < list.size() && list.slots[std::size_t(v.place)] == slot &&
                          list.beta[std::size_t(v.place)] == coefficient(v),
                      "classes and patterns do not agree");
        });
    }

    double inherited(const SupportVector& v) const { return value_of(v, classes_[std::size_t(v.label)].inherited); }
    static double value_of(const SupportVector& v, const LargeVector<double>& values) {
        return std::size_t(v.place) < values.size() ? values[std::size_t(v.place)] : 0.0;
    }

    // A coefficient has changed by so much.
    int64_t change_scores(int32_t slot, const SupportVector& v, double change) {
        ClassList& list = classes_[std::size_t(v.label)];
        list.beta[std::size_t(v.place)] = coefficient(v);
        if (keeps_sets_) {
            const int64_t before = sets_->bytes();
            const T* const set = list.sets.find(v.place, list.size());
            have_sets_grown_ |= sets_->bytes() > before;
            units<T>().add_row_values(set, change, list.size(), list.scores.data());
        } else {
            units<T>().add_row_values_at(rows_[slot], list.slots.data(), change, list.size(), list.scores.data());
        }
        return list.size();
    }

    // The kernel values of a support vector whose row is here with all others of its class.
    void gather_set(int32_t slot, const SupportVector& v) {
        ClassList& list = classes_[std::size_t(v.label)];
        const T* const row = rows_[slot];
        T* const set = list.sets.add(v.place, list.size());
        for (int64_t j = 0; j < list.size(); ++j) set[j] = row[list.slots[std::size_t(j)]];
        if (list.sets.births() >= births_to_settle) list.sets.settle(list.size());
    }

    int64_t bytes_beside_rows() const {
        int64_t total = sets_->bytes();
        for (const ClassList& list : classes_) total += list.bytes() + list.sets.bytes_beside_values();
        return total;
    }

    // The sets E(y, i) go first, all together; they can be gathered from the rows. Then the rows used least recently,
    // but not that of `kept`.
    void stay_within_limit(int32_t kept) {
        if (keeps_sets_) {
            do {
                if (rows_.fit_with(bytes_beside_rows())) return;
            } while (sets_->drop_spare());
            keeps_sets_ = false;
            for (ClassList& list : classes_) list.sets.clear();
            while (sets_->drop_spare()) continue;
            trim_heap();
        }
        rows_.drop_until_fit(bytes_beside_rows(), kept);
    }

    auto make_room() {
        return [this](int32_t kept) { stay_within_limit(kept); };
    }

    PatternRows<T> rows_;
    typename Gram<T>::Pool sets_ = std::make_shared<RowPool<T>>();  // of all classes
    std::vector<ClassList> classes_;
    bool keeps_sets_ = true, have_sets_grown_ = false;
    bool averages_, have_left_ = false;  // patterns, to others
    Looks looks_{average_doublings};
    std::vector<std::pair<int32_t, double>> left_;  // by a pattern that leaves: the average of its coefficients
};

}  // namespace larank
