// A kernel machine whose patterns may have a coefficient for every class: S(x, c) = sum_i beta_i^c k(x_i, x).
//
// No scores are stored. The coefficients of a class stand side by side, one for each slot, so that a score is one dense
// product of a row of kernel values with them.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

template <class T>
class ExpansionMachine {
  public:
    using Value = T;

    // Without rows between patterns it can only be shown examples of blocks.
    ExpansionMachine(int64_t memory_limit, bool keeps_rows) : rows_(memory_limit, keeps_rows, births_to_settle) {}

    PatternRows<T>& rows() { return rows_; }
    const PatternRows<T>& rows() const { return rows_; }
    SupportTable& table() { return rows_.table(); }
    const SupportTable& table() const { return rows_.table(); }
    int64_t classes() const { return int64_t(columns_.size()); }
    void add_class() { columns_.emplace_back(std::size_t(table().slots()), 0.0); }
    void begin_another_epoch() {}

    void feed(const Block<T>& block) {
        rows_.feed(block);
        stay_within_limit(-1);
    }

    void scores_of_new(int64_t b, double* scores) const { scores_of(rows_.of_example(b), scores); }
    // Of a pattern that was required.
    void scores_of_old(int32_t slot, double* scores) const { scores_of(rows_[slot], scores); }
    void require(int32_t slot) {
        rows_.require(slot, [this](int32_t kept) { stay_within_limit(kept); });
    }

    int32_t add_pattern(int64_t b, int64_t id, int32_t label, double cost, double diagonal) {
        return grown(rows_.are_kept() ? rows_.add(b, id, label, cost, diagonal)
                                      : rows_.add_without_row(b, id, label, cost, diagonal));
    }
    // A pattern of a saved model; `row` holds its kernel values with the slots before it and itself, if any are kept.
    int32_t restore_pattern(const T* row, int64_t id, int32_t label, double cost, double diagonal) {
        return grown(rows_.are_kept() ? rows_.restore(row, id, label, cost, diagonal)
                                      : table().add(id, label, cost, diagonal));
    }

    void add_to_coefficients(int32_t slot, const double* changes) {
        for (std::size_t c = 0; c < columns_.size(); ++c) columns_[c][std::size_t(slot)] += changes[c];
    }
    // Its coefficients are zero to the last bit, whatever the changes have added up to.
    void leave(int32_t slot) {
        for (auto& column : columns_) column[std::size_t(slot)] = 0;
    }
    void after_step(int32_t slot) { stay_within_limit(slot); }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(table(), columns_);
        if constexpr (!Snapshot::reads) return;
        for (const auto& column : columns_)
            must_hold(int64_t(column.size()) == table().slots() && are_finite(column),
                      "the coefficients of a class differ in number");
        table().each_vector([&](int32_t, const Pattern&, const SupportVector& v) {
            must_hold(v.label >= 0 && v.label < classes(), "a label is out of range");
        });
    }
    void bring_all_rows() {
        rows_.bring_all([this](int32_t kept) { stay_within_limit(kept); });
    }

    int64_t bytes() const { return rows_.bytes() + bytes_beside_rows(); }
    void set_foreign_bytes(int64_t bytes) {
        rows_.set_foreign_bytes(bytes);
        stay_within_limit(-1);
    }

  private:
    static constexpr int64_t births_to_settle = 256;
    static constexpr int64_t vectors_in_table = 4;  // that the table counts for each slot

    void scores_of(const T* row, double* scores) const {
        for (std::size_t c = 0; c < columns_.size(); ++c)
            scores[c] = units<T>().dot_row(row, columns_[c].data(), table().slots());
    }

    int32_t grown(int32_t slot) {
        for (auto& column : columns_) column.resize(std::size_t(table().slots()));
        return slot;
    }

    int64_t bytes_beside_rows() const {
        int64_t total = (table().vectors() - vectors_in_table * table().slots()) * int64_t(sizeof(SupportVector));
        if (total < 0) total = 0;
        for (const auto& column : columns_) total += int64_t(column.capacity() * sizeof(double));
        return total;
    }
    void stay_within_limit(int32_t kept) { rows_.drop_until_fit(bytes_beside_rows(), kept); }

    PatternRows<T> rows_;
    std::vector<LargeVector<double>> columns_;
};

}  // namespace larank
