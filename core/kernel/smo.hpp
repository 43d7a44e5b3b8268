// SMO on the members of a binary problem, with shrinking: the finishing step of LaSVM, [thesis] 4.2.4.
//
// Steps take the pair of largest gradient and, against it, the partner that gains most. Every so often members at a
// bound that cannot be in a violating pair leave the active set, and the kept rows of kernel values become as much
// shorter. When the active set has no violating pair left, the gradients of the others are brought up to date and all
// of them are looked at again. Where rounding may have moved gradients by a share of tau, as with high costs and large
// kernel values, they are summed up anew.
//
// It works on a copy: the members it was made from go on as if nothing had happened, unless they take over the outcome.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "blocks/source.hpp"
#include "kernel/binaryproblem.hpp"
#include "kernel/notfinite.hpp"
#include "kernel/patternrows.hpp"
#include "memory/rowcache.hpp"
#include "simd/units.hpp"

namespace larank {

enum class Progress { done, more, whole_again };

template <class T>
class Smo {
  public:
    // `slots` are those of the members' patterns. Free numbers may be among them; nobody is there.
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

    // What so many members take, and at work at least with them: two rows, and what each shrinking remembers.
    static int64_t bytes_for(int64_t members) { return 2 * Members::bytes_for(members); }
    static int64_t bytes_at_work(int64_t members) {
        return members * int64_t(most_shrinks * sizeof(double) + 2 * sizeof(T));
    }

    // So many steps at most. It also ends with a step for which rows had to be computed, or with the products by which
    // the whole set becomes active again. `bring(slots)` computes the rows of patterns.
    template <class Bring>
    Progress run(int64_t steps, Bring bring) {
        for (bool has_brought = false; steps > 0 && !has_brought; --steps) {
            const bool is_resting = extremes_.largest - extremes_.smallest <= tau_;
            const bool has_drifted = drift_ > worth_summing * tau_ && since_sums_ >= all_.size() * (is_resting ? 1 : 8);
            if (is_resting && is_up_to_date() && !has_drifted) return Progress::done;
            if (is_resting || has_drifted) {
                write_back();
                while (!departed_.empty()) bring_back();
                if (has_drifted) sum_up_gradients();
                become_whole();
                return Progress::whole_again;
            }
            has_brought = step(bring);
            if (++since_look_ >= std::min(look_every, work_.size() / 8 + 1)) shrink();
        }
        return Progress::more;
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
    static constexpr std::size_t most_shrinks = 24;  // each keeps the coefficients of all members; 0.9^24 is 8 %
    static constexpr double worth_shrinking = 0.1;   // of the active set, for rows must be rewritten
    static constexpr double worth_summing = 0.25;    // of tau, by which rounding may have changed gradients

    void begin() {
        work_ = all_.at(active_);
        cache_ = RowCache<T>(int64_t(active_.size()), cache_bytes_, 2);
        extremes_ = units<T>().find_extremes(work_.gradients(), work_.up(), work_.down(), work_.size());
        since_look_ = 0;
    }

    // Returns whether rows had to be computed for it.
    template <class Bring>
    bool step(Bring bring) {
        const int64_t i = extremes_.at_largest;
        bool has_brought = require(i, bring);
        const int64_t j = units<T>().best_partner(row(i), work_.diagonals(), work_.diagonal(i), work_.g(i),
                                                  work_.gradients(), work_.down(), work_.size());
        if (j < 0) throw NotFinite();
        while (require(j, bring) || require(i, bring)) has_brought = true;  // one may have pushed the other out
        const T *const kj = row(j), *const ki = row(i);
        const PairStep taken = work_.step(i, j, double(ki[j]));
        extremes_ =
            units<T>().move_gradient(ki, kj, taken.lambda, work_.up(), work_.down(), work_.size(), work_.gradients());
        work_.settle(taken, i, j, extremes_);
        gain_ += taken.gain;
        linear_change_ += taken.lambda * (work_.y(i) - work_.y(j));
        ++steps_, ++since_sums_;
        drift_ += std::numeric_limits<double>::epsilon() * taken.lambda *
                  (std::abs(work_.diagonal(i)) + std::abs(work_.diagonal(j)));
        return has_brought;
    }

    int32_t slot_of(int64_t member) const { return slots_[std::size_t(active_[std::size_t(member)])]; }

    // Sees to it that a member's kernel values are here; with them come those of members that are next in line. Returns
    // whether any had to be computed.
    template <class Bring>
    bool require(int64_t member, Bring bring) {
        if (cache_.has(member) || rows_.find(slot_of(member))) return false;
        const auto is_missing = [&](int64_t n) { return n != member && !cache_.has(n) && !rows_.is_kept(slot_of(n)); };
        const std::size_t more = std::size_t(std::min(rows_ahead, rows_.at_once() - 1));
        std::vector<int32_t> needed;
        for (const int32_t n : next_in_line(work_, extremes_, tau_, more, is_missing)) needed.push_back(slot_of(n));
        std::reverse(needed.begin(), needed.end());
        needed.push_back(slot_of(member));
        bring(needed);
        return true;
    }

    // A member's kernel values with the active set.
    const T* row(int64_t member) {
        if (const T* const kept = cache_.find(member)) return kept;
        rows_.find(slot_of(member));
        const T* const whole = rows_[slot_of(member)];
        if (is_by_slot_ && is_up_to_date()) return whole;
        T* const values = cache_.make(member);
        for (std::size_t n = 0; n < active_.size(); ++n) values[n] = whole[slot_of(int64_t(n))];
        return values;
    }

    // Those who left the active set last have their gradients brought up to date, by products of all of them with those
    // whose coefficients have changed since.
    void bring_back() {
        const Departed& group = departed_.back();
        std::vector<int32_t> changed, stale;
        std::vector<double> changes, lost;
        for (std::size_t n = 0; n < slots_.size(); ++n) {
            const double change = all_.alpha(int64_t(n)) - group.alpha[n];
            if (change != 0) changed.push_back(slots_[n]), changes.push_back(change);
        }
        const int64_t most =
            std::max<int64_t>(1, rows_.products_at_once() / std::max<int64_t>(1, int64_t(changed.size())));
        while (lost.size() < group.members.size()) {
            stale.clear();
            for (std::size_t n = lost.size(); n < group.members.size() && int64_t(stale.size()) < most; ++n)
                stale.push_back(slots_[std::size_t(group.members[n])]);
            const SourceRows<T> kernel = rows_.source().between(stale, changed);
            for (std::size_t m = 0; m < stale.size(); ++m)
                lost.push_back(units<T>().dot_row(kernel[m], changes.data(), int64_t(changes.size())));
        }
        for (std::size_t m = 0; m < lost.size(); ++m) all_.gradients()[group.members[m]] -= lost[m];
        departed_.pop_back();
    }

    // g_k = y_k - sum_i alpha_i k(x_i, x_k), [thesis] (4.2), where all rows that takes are at hand.
    void sum_up_gradients() {
        drift_ = 0, since_sums_ = 0;
        const auto is_support = [&](std::size_t n) { return all_.alpha(int64_t(n)) != 0; };
        for (std::size_t n = 0; n < slots_.size(); ++n)
            if (is_support(n) && !rows_.find(slots_[n])) return;
        double* const g = all_.gradients();
        for (int64_t n = 0; n < all_.size(); ++n) g[n] = all_.y(n);
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (!is_support(i)) continue;
            const T* const row = rows_[slots_[i]];
            for (std::size_t n = 0; n < slots_.size(); ++n) g[n] -= all_.alpha(int64_t(i)) * double(row[slots_[n]]);
        }
    }

    void shrink() {
        since_look_ = 0;
        if (departed_.size() == most_shrinks) return;
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

    std::vector<int32_t> active_;  // numbers in `all_`
    Members work_;                 // the active ones
    RowCache<T> cache_;
    Extremes extremes_;
    std::vector<Departed> departed_;
    bool is_by_slot_ = true;  // rows of the patterns need not be copied for the whole set
    int64_t since_look_ = 0, since_sums_ = 0, steps_ = 0;
    double gain_ = 0, linear_change_ = 0, drift_ = 0;
};

}  // namespace larank
