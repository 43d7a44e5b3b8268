// SMO on the members of a binary problem, with shrinking: the finishing step of LaSVM, [thesis] 4.2.4.
//
// Steps take the pair of largest gradient and, against it, the partner that gains most. Every so often members at a
// bound that cannot be in a violating pair leave the active set, and the kept rows of kernel values become as much
// shorter. When the active set has no violating pair left, the gradients of the others are brought up to date and all
// of them are looked at again.
//
// It works on a copy: the members it was made from go on as if nothing had happened, unless they take over the outcome.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/binaryproblem.hpp"
#include "kernel/patternrows.hpp"
#include "memory/rowcache.hpp"
#include "simd/units.hpp"

namespace larank {

enum class Progress { done, needs_rows, needs_products, more };

template <class T>
class Smo {
  public:
    // `slots` are those of the members' patterns. Free places may be among them; nobody is there.
    Smo(const Members& members, std::vector<int32_t> slots, PatternRows<T>& rows, double tau)
        : all_(members), slots_(std::move(slots)), rows_(rows), tau_(tau) {
        for (std::size_t n = 0; n < slots_.size(); ++n) is_by_slot_ = is_by_slot_ && slots_[n] == int32_t(n);
        become_whole();
    }

    // So many bytes for rows of the active set.
    void keep_rows(int64_t cache_bytes) {
        cache_bytes_ = cache_bytes;
        cache_ = RowCache<T>(int64_t(active_.size()), cache_bytes_, 2);
    }

    // So many steps, or until no violating pair is left.
    Progress run(int64_t steps) {
        needed_.clear();
        waits_for_products_ = false;
        for (; steps > 0; --steps) {
            if (extremes_.largest - extremes_.smallest <= tau_) {
                if (int64_t(active_.size()) == all_.size()) return Progress::done;
                write_back();
                waits_for_products_ = !departed_.empty();
                if (waits_for_products_) return Progress::needs_products;
                become_whole();
                continue;
            }
            if (!step()) return Progress::needs_rows;
            if (++since_look_ >= std::min(look_every, work_.size() / 8 + 1)) shrink();
        }
        return Progress::more;
    }

    // Rows without which it cannot go on, and some that it will ask for next.
    const std::vector<int32_t>& needed() const { return needed_; }

    // Where it waits for products: those who left the active set last, and whose coefficients have changed since.
    std::vector<int32_t> stale() const {
        std::vector<int32_t> slots;
        if (!waits_for_products_ || departed_.empty()) return slots;
        for (const int32_t n : departed_.back().members) slots.push_back(slots_[std::size_t(n)]);
        return slots;
    }
    std::vector<int32_t> changed() const {
        std::vector<int32_t> slots;
        if (!waits_for_products_ || departed_.empty()) return slots;
        for (std::size_t n = 0; n < slots_.size(); ++n)
            if (all_.alpha(int64_t(n)) != departed_.back().alpha[n]) slots.push_back(slots_[n]);
        return slots;
    }
    // `kernel` has a row for some of the stale, from place `first` on, and a column for each of the changed. After the
    // last of them the ones that left before have their turn.
    void bring_back(int64_t first, int64_t count, const T* kernel) {
        const Departed& group = departed_.back();
        std::vector<double> changes;
        for (std::size_t n = 0; n < slots_.size(); ++n)
            if (const double change = all_.alpha(int64_t(n)) - group.alpha[n]; change != 0) changes.push_back(change);
        for (int64_t m = 0; m < count; ++m)
            all_.gradients()[group.members[std::size_t(first + m)]] -=
                units<T>().dot_row(kernel + std::size_t(m) * changes.size(), changes.data(), int64_t(changes.size()));
        if (std::size_t(first + count) == group.members.size()) departed_.pop_back();
    }

    // All members; gradients of those outside the active set are those of some time ago.
    const Members& members() {
        write_back();
        return all_;
    }
    const std::vector<int32_t>& slots() const { return slots_; }
    bool is_up_to_date() const { return active_.size() == slots_.size(); }
    double gain() const { return gain_; }
    double linear_change() const { return linear_change_; }  // of sum_i alpha_i y_i
    int64_t steps() const { return steps_; }
    Extremes extremes() const { return extremes_; }
    // The rows are of no use any more.
    void release_rows() {
        cache_ = RowCache<T>();
        cache_bytes_ = 0;
    }
    int64_t bytes() const {
        int64_t total = cache_.bytes() + 2 * all_.bytes();
        for (const Departed& group : departed_) total += int64_t(group.alpha.size() * sizeof(double));
        return total;
    }

  private:
    // [thesis] 4.2.4: "about every 1000 iterations"; less often where a return to the whole set costs more than it
    // saves.
    static constexpr int64_t look_every = 1000;
    static constexpr int64_t rows_ahead = 31;
    static constexpr double worth_shrinking = 0.1;  // of the active set, for rows must be rewritten

    void begin() {
        work_ = all_.at(active_);
        cache_ = RowCache<T>(int64_t(active_.size()), cache_bytes_, 2);
        extremes_ = units<T>().find_extremes(work_.gradients(), work_.up(), work_.down(), work_.size());
        since_look_ = 0;
    }

    bool step() {
        const int64_t i = extremes_.at_largest;
        const T* const ki = row(i);
        if (!ki) return ask(i);
        const int64_t j = units<T>().best_partner(ki, work_.diagonals(), work_.diagonal(i), work_.g(i),
                                                  work_.gradients(), work_.down(), work_.size());
        const T* const kj = row(j);
        if (!kj) return ask(j);
        const PairStep taken = work_.step(i, j, double(row(i)[j]));
        extremes_ = units<T>().move_gradient(row(i), kj, taken.lambda, work_.up(), work_.down(), work_.size(),
                                             work_.gradients());
        work_.settle(taken, i, j, extremes_);
        gain_ += taken.gain;
        linear_change_ += taken.lambda * (work_.y(i) - work_.y(j));
        ++steps_;
        return true;
    }

    // A member's kernel values with the active set; null if its pattern's row must be computed first.
    const T* row(int64_t place) {
        if (const T* const kept = cache_.find(place)) return kept;
        const int32_t slot = slots_[std::size_t(active_[std::size_t(place)])];
        if (!rows_.find(slot)) return nullptr;
        const T* const whole = rows_[slot];
        if (is_by_slot_ && is_up_to_date()) return whole;
        T* const values = cache_.make(place);
        for (std::size_t n = 0; n < active_.size(); ++n) values[n] = whole[slots_[std::size_t(active_[n])]];
        return values;
    }

    // The row of this member, and of those next in line.
    bool ask(int64_t place) {
        const auto slot_at = [&](int64_t n) { return slots_[std::size_t(active_[std::size_t(n)])]; };
        needed_ = {slot_at(place)};
        const auto is_missing = [&](int64_t n) { return n != place && !cache_.has(n) && !rows_.is_kept(slot_at(n)); };
        const std::size_t more = std::size_t(std::min(rows_ahead, rows_.at_once() - 1));
        for (const int32_t n : next_in_line(work_, extremes_, tau_, more, is_missing)) needed_.push_back(slot_at(n));
        return false;
    }

    void shrink() {
        since_look_ = 0;
        std::vector<int32_t> kept;
        for (int64_t n = 0; n < work_.size(); ++n) {
            const bool only_shrinks = !work_.can_grow(n) && work_.g(n) > extremes_.largest;
            const bool only_grows = !work_.can_shrink(n) && work_.g(n) < extremes_.smallest;
            if (work_.is_member(n) && !only_shrinks && !only_grows) kept.push_back(int32_t(n));
        }
        if (double(kept.size()) > (1 - worth_shrinking) * double(work_.size())) return;
        write_back();
        leave(kept);
        cache_.narrow(kept);
        std::vector<int32_t> fewer(kept.size());
        for (std::size_t n = 0; n < kept.size(); ++n) fewer[n] = active_[std::size_t(kept[n])];
        active_ = std::move(fewer);
        work_ = work_.at(kept);
        extremes_ = units<T>().find_extremes(work_.gradients(), work_.up(), work_.down(), work_.size());
    }

    // Those of the active set that are not kept.
    void leave(const std::vector<int32_t>& kept) {
        departed_.push_back({{}, {all_.alphas(), all_.alphas() + all_.size()}});
        for (std::size_t n = 0, k = 0; n < active_.size(); ++n)
            if (k < kept.size() && kept[k] == int32_t(n))
                ++k;
            else if (work_.is_member(int64_t(n)))
                departed_.back().members.push_back(active_[n]);
        if (departed_.back().members.empty()) departed_.pop_back();
    }

    void write_back() {
        for (std::size_t n = 0; n < active_.size(); ++n) {
            all_.set_alpha(active_[n], work_.alpha(int64_t(n)));
            all_.gradients()[active_[n]] = work_.g(int64_t(n));
        }
    }

    void become_whole() {
        active_.resize(slots_.size());
        for (std::size_t n = 0; n < slots_.size(); ++n) active_[n] = int32_t(n);
        begin();
    }

    // Members that left the active set together, and the coefficients that their gradients are of.
    struct Departed {
        std::vector<int32_t> members;
        std::vector<double> alpha;
    };

    Members all_;
    std::vector<int32_t> slots_;
    PatternRows<T>& rows_;
    double tau_;
    int64_t cache_bytes_ = 0;

    std::vector<int32_t> active_;  // places in `all_`
    Members work_;                 // the active ones
    RowCache<T> cache_;
    Extremes extremes_;
    std::vector<Departed> departed_;
    bool is_by_slot_ = true;  // rows of the patterns need not be copied for the whole set
    bool waits_for_products_ = false;
    std::vector<int32_t> needed_;
    int64_t since_look_ = 0, steps_ = 0;
    double gain_ = 0, linear_change_ = 0;
};

}  // namespace larank
