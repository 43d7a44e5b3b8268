// A linear multiclass machine: S(x, y) = w_y' x with W kept explicitly, no kernel values and no stored scores. With an
// intercept, x has a last feature that is 1.
//
// A fresh score costs as much as keeping a stored one up to date, so nothing is stored (thesis section 5.3). The
// patterns in the table are copied: the stream they came from may be gone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/matrix.hpp"
#include "kernel/support.hpp"
#include "kernel/weightaverage.hpp"
#include "memory/aligned.hpp"
#include "simd/units.hpp"

namespace larank {

template <class T>
class LinearMachine {
  public:
    using Value = T;

    explicit LinearMachine(int64_t features, bool intercept = false, bool averages = false)
        : features_(features), intercept_(T(intercept)), W_(weight_rows() * padded<T>(1)), average_(averages) {}

    SupportTable& table() { return table_; }
    const SupportTable& table() const { return table_; }
    int64_t classes() const { return classes_; }
    int64_t features() const { return features_; }
    T intercept() const { return intercept_; }
    int64_t weight_rows() const { return features_ + (intercept_ != 0); }
    int64_t lanes() const { return padded<T>(classes_); }
    const AlignedArray<T>& weights() const { return W_; }

    // The average of the weights over the stream, where one is wanted; what is looked at here is not remembered.
    bool averages() const { return average_.is_kept(); }
    AlignedArray<T> averaged_weights() const { return averages() ? average_.until_now(W_) : W_; }
    void set_average(AlignedArray<T> weights, int64_t examples) { average_.set(std::move(weights), examples); }
    void after_example() { average_.after_example(W_); }

    void add_class() {
        const int64_t before = std::max<int64_t>(lanes(), padded<T>(1));
        ++classes_;
        if (lanes() == before) return;
        const auto widened = [&](const AlignedArray<T>& narrow) {
            AlignedArray<T> wider(weight_rows() * lanes());
            for (int64_t j = 0; j < weight_rows(); ++j)
                std::copy_n(narrow.data() + j * before, before, wider.data() + j * lanes());
            return wider;
        };
        W_ = widened(W_);
        average_.widen(widened);
    }

    // On its first visit an example is charged more than its scores cost, so that the schedule makes the most of the
    // examples before: 30 brought one pass over news20 to 94 % of the optimal dual, 1 to 79 %. There is a next time for
    // those seen before.
    void begin_another_epoch() { new_example_work_ = 1; }

    void feed(const Matrix<T>& block) {
        block_ = block;
        block_.intercept = intercept_;
    }
    Row<T> block_row(int64_t b) const { return block_.row(b); }

    int64_t scores_of_new(int64_t b, double* scores) { return new_example_work_ * scores_of(block_.row(b), scores); }
    int64_t scores_of_old(int32_t slot, double* scores) { return scores_of(row(slot), scores); }

    int64_t scores_of_vectors(int32_t slot, double* scores) {
        const auto& vectors = table_[slot].vectors;
        const int64_t count = int64_t(vectors.size());
        labels_.resize(vectors.size());
        some_.resize(vectors.size());
        for (std::size_t n = 0; n < vectors.size(); ++n) labels_[n] = vectors[n].label;
        units<T>().scores_of(row(slot), W_.data(), lanes(), labels_.data(), count, some_.data());
        std::copy(some_.begin(), some_.end(), scores);
        return worked(count * width(row(slot)));
    }

    Row<T> row(int32_t slot) const {
        const Stored& x = rows_[std::size_t(slot)];
        return {x.values.data(),
                x.columns32.empty() ? nullptr : x.columns32.data(),
                x.columns64.empty() ? nullptr : x.columns64.data(),
                int64_t(x.values.size()),
                intercept_,
                features_};
    }

    static constexpr bool compares_patterns = false;
    double coefficient(const SupportVector& v) const { return v.beta; }
    double model_coefficient(const SupportVector& v) const { return v.beta; }
    void require(int32_t) const {}
    bool has_row(int32_t) const { return true; }
    bool can_step(int32_t) const { return true; }
    void bring_rows(const std::vector<int32_t>&) const {}
    int64_t rows_at_once() const { return 1; }
    void after_step(int32_t) const {}

    int32_t add_pattern(int64_t b, int64_t id, int32_t label, double cost, double diagonal) {
        return add_row(block_.row(b), id, label, cost, diagonal);
    }
    int32_t restore_pattern(const Row<T>& x, int64_t id, int32_t label, double cost, double diagonal, double* scores) {
        scores_of(x, scores);
        return restore_pattern(x, id, label, cost, diagonal);
    }
    int32_t restore_pattern(const Row<T>& x, int64_t id, int32_t label, double cost, double diagonal) {
        return add_row(x, id, label, cost, diagonal);
    }
    void add_vector(int32_t slot, int32_t y, double) { table_.add_vector(slot, y, -1); }

    int64_t set_coefficient(int32_t slot, SupportVector& v, double beta) {
        const T change = T(beta - v.beta);
        v.beta = beta;
        units<T>().add_row_of(row(slot), &change, &v.label, 1, lanes(), W_.data());
        return worked(width(row(slot)));
    }

    // The same for all classes at once, without a look at the table.
    void add_to_coefficients(int32_t slot, const double* changes) {
        if (all_.size() < lanes()) all_ = AlignedArray<T>(lanes());
        std::fill(std::copy(changes, changes + classes_, all_.data()), all_.data() + lanes(), T(0));
        units<T>().add_row(row(slot), all_.data(), lanes(), W_.data());
    }
    void leave(int32_t) const {}

    void remember() {
        table_.remember();
        remembered_ = W_;
        remembered_work_ = average_.work();
    }
    void go_back() {
        table_.go_back();
        W_ = remembered_;
        average_.set_work(remembered_work_);
    }

    void swap_remembered() {
        table_.swap_remembered();
        std::swap(W_, remembered_);
        const int64_t work = average_.work();
        average_.set_work(remembered_work_);
        remembered_work_ = work;
    }

    void remove_zeros(int32_t slot) {
        table_.remove_zeros(slot, [](const SupportVector&) {});
    }

    void prefetch_scores(int32_t slot) const { prefetch(rows_[std::size_t(slot)].values.data()); }
    void prefetch_kernel_values(int32_t, int32_t, int32_t) const {}
    static constexpr bool keeps_sets() { return false; }  // of kernel values

    // All but the patterns themselves, which `put_row` brings.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        std::vector<T> weights(W_.data(), W_.data() + W_.size());
        snapshot(table_, classes_, weights, new_example_work_);
        average_.exchange(snapshot, int64_t(weights.size()));
        if constexpr (!Snapshot::reads) return;
        must_hold(classes_ >= 0 && classes_ <= int64_t(weights.size()), "the number of classes is out of range");
        const int64_t size = weight_rows() * std::max<int64_t>(lanes(), padded<T>(1));
        must_hold(int64_t(weights.size()) == size && are_finite(weights), "the weights do not fit the features");
        W_ = AlignedArray<T>(size);
        std::copy(weights.begin(), weights.end(), W_.data());
        table_.each_vector([&](int32_t, const Pattern&, const SupportVector& v) {
            must_hold(v.label >= 0 && v.label < classes_, "a label is out of range");
        });
        rows_.resize(std::size_t(table_.slots()));
    }
    void put_row(int32_t slot, const Row<T>& x) {
        Stored& kept = rows_[std::size_t(slot)];
        stored_bytes_ -= bytes_of(kept);
        kept.values.assign(x.values, x.values + x.count);
        kept.columns32.assign(x.columns32, x.columns32 + (x.columns32 ? x.count : 0));
        kept.columns64.assign(x.columns64, x.columns64 + (x.columns64 ? x.count : 0));
        stored_bytes_ += bytes_of(kept);
    }

    int64_t bytes() const {
        const int64_t weights = (W_.size() + remembered_.size()) * int64_t(sizeof(T)) + average_.bytes();
        return table_.bytes() + stored_bytes_ + weights;
    }

  private:
    struct Stored {
        std::vector<T> values;
        std::vector<int32_t> columns32;
        std::vector<int64_t> columns64;
    };

    // The features that a product touches.
    static int64_t width(const Row<T>& x) { return x.count + (x.intercept != 0); }

    int64_t scores_of(const Row<T>& x, double* scores) {
        if (all_.size() < lanes()) all_ = AlignedArray<T>(lanes());
        units<T>().scores(x, W_.data(), lanes(), true, all_.data());
        std::copy_n(all_.data(), classes_, scores);
        return worked(width(x) * classes_);
    }
    int64_t worked(int64_t work) {
        average_.add_work(work);
        return work;
    }

    int32_t add_row(const Row<T>& x, int64_t id, int32_t label, double cost, double diagonal) {
        const int32_t slot = table_.add(id, label, cost, diagonal);
        if (slot >= int32_t(rows_.size())) rows_.emplace_back();
        put_row(slot, x);
        return slot;
    }

    static int64_t bytes_of(const Stored& x) {
        return int64_t(sizeof(Stored) + x.values.capacity() * sizeof(T) + x.columns32.capacity() * 4 +
                       x.columns64.capacity() * 8);
    }

    int64_t features_;
    T intercept_;  // the value of the constant feature, 0 where there is none
    int64_t classes_ = 0;
    AlignedArray<T> W_;  // [feature][class], classes padded to whole lanes
    AlignedArray<T> remembered_{0};
    WeightAverage<T> average_;
    int64_t remembered_work_ = 0;
    SupportTable table_;
    std::vector<Stored> rows_;
    int64_t stored_bytes_ = 0;
    Matrix<T> block_;
    int64_t new_example_work_ = 30;
    AlignedArray<T> all_{0};
    std::vector<T> some_;
    std::vector<int32_t> labels_;
};

}  // namespace larank
