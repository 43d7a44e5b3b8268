// What solvers share that work on the patterns of a block, with rows of kernel values between patterns.
#pragma once

#include <cstdint>

#include "kernel/patternrows.hpp"
#include "kernel/support.hpp"

namespace larank {

// `Solver` derives from it and says in `bytes_beside_rows` what it keeps beside patterns and rows.
template <class T, class Solver>
class PatternSolver {
  public:
    using Value = T;

    PatternRows<T>& rows() { return rows_; }
    const PatternRows<T>& rows() const { return rows_; }
    SupportTable& table() { return rows_.table(); }
    const SupportTable& table() const { return rows_.table(); }
    int64_t support_patterns() const { return table().size(); }

    void feed(const Block<T>& block, const Examples& examples) {
        rows_.feed(block);
        table().forget_newborn();
        examples_ = examples;
        at_ = 0;
        self().stay_within_limit(-1);
    }
    // Where there is nothing to do before a model is taken, or another epoch begins.
    void finish() {}
    void begin_another_epoch() {}

    int64_t bytes() const { return rows_.bytes() + static_cast<const Solver&>(*this).bytes_beside_rows(); }
    void set_foreign_bytes(int64_t bytes) {
        rows_.set_foreign_bytes(bytes);
        self().stay_within_limit(-1);
    }
    // The rows used least recently go, but not that of `kept`.
    void stay_within_limit(int32_t kept) { rows_.drop_until_fit(self().bytes_beside_rows(), kept); }

  protected:
    PatternSolver(int64_t memory_limit, int64_t rows_in_use, int64_t births_to_settle)
        : rows_(memory_limit, rows_in_use, births_to_settle) {}

    auto make_room() {
        return [this](int32_t kept) { self().stay_within_limit(kept); };
    }

    PatternRows<T> rows_;
    Examples examples_;
    int64_t at_ = 0;  // examples of the block that are done

  private:
    Solver& self() { return static_cast<Solver&>(*this); }
};

}  // namespace larank
