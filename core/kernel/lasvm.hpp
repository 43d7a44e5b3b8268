// LaSVM [thesis] 4.2: an online solver of the binary SVM with a bias, on one or, one-versus-rest, several problems.
//
// The dual stands in kernel/binaryproblem.hpp. S is the set of potential support vectors, (i, j) a tau-violating pair
// if alpha_i can grow, alpha_j can shrink and g_i - g_j > tau.
//
//   PROCESS (algorithm 11) puts a new example k into S and steps on it and the extreme member on the other side
//   REPROCESS (algorithm 12) steps on the most violating pair in S and lets blatant non-support vectors go
//   finishing (algorithm 13, line 4) repeats REPROCESS until no violating pair is left; it is in kernel/smo.hpp
//
// An example that makes no violating pair is put into S only where it may be the partner of one to come: the first few
// of a class, where there is nobody to pair them with (algorithm 13, line 1), and where all members are at bounds those
// that are further out (4.2.3, case c). The algorithm as written puts every example into S, from where REPROCESS lets
// it go again, most of the time at once. One that stays a while can become a partner later, so the two part ways now
// and then: in 5 of 24 runs that were compared.
//
// The problems share patterns, blocks and rows of kernel values. Problem p tells class p from the rest; while there are
// two classes, one problem tells class 1 from class 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "kernel/binaryproblem.hpp"
#include "kernel/patternsolver.hpp"
#include "kernel/smo.hpp"
#include "simd/units.hpp"

namespace larank {

struct LaSVMOptions {
    double tau = 1e-3;
    double delta_max = 0;  // REPROCESS is repeated until delta is below; 0 if once is enough, [thesis] 4.2.5
};

struct LaSVMCounters {
    int64_t process = 0, reprocess = 0, steps = 0;
    int64_t finishing_steps = 0;  // of finishes that were taken over, and of the last one

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(process, reprocess, steps, finishing_steps);
    }
};

// S of one problem, and where its members are.
class PotentialSupport {
  public:
    Members members;
    Extremes extremes;                        // of the members as they are
    double dual = 0, linear = 0;              // the objective, and its part sum_i alpha_i y_i
    double loss = 0;                          // of the examples seen, as they were met
    std::array<int64_t, 2> count{};           // members of either sign
    std::vector<int32_t> slot_of, member_of;  // by member, and by slot: -1 where there is none
    std::vector<int32_t> zeros;               // members whose coefficient is zero
    std::vector<int32_t> free_members;

    double delta() const { return extremes.largest - extremes.smallest; }  // [thesis] (4.11)
    double bias() const {
        const bool has_top = extremes.at_largest >= 0, has_bottom = extremes.at_smallest >= 0;
        if (has_top && has_bottom) return (extremes.largest + extremes.smallest) / 2;
        return has_top ? extremes.largest : has_bottom ? extremes.smallest : 0.0;
    }
    int64_t member(int32_t slot) const {
        return std::size_t(slot) < member_of.size() ? member_of[std::size_t(slot)] : -1;
    }
    int64_t bytes() const {
        return members.bytes() + int64_t((slot_of.capacity() + member_of.capacity()) * sizeof(int32_t));
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(members, extremes.largest, extremes.at_largest, extremes.smallest, extremes.at_smallest);
        snapshot(dual, linear, loss, count, slot_of, member_of, zeros, free_members);
    }
    // Whether members and patterns agree; of the only problem, a member's number is its slot.
    void check(const SupportTable& table, bool is_only) const {
        const int64_t size = members.size();
        must_hold(int64_t(slot_of.size()) == size && int64_t(member_of.size()) <= table.slots() &&
                      (!is_only || size <= table.slots()),
                  "the members of a problem differ in number");
        must_hold(are_within(slot_of, 0, table.slots()) && are_within(member_of, -1, size) &&
                      are_within(zeros, 0, size) && are_within(free_members, 0, size),
                  "a member is out of range");
        for (int64_t n = 0; n < size; ++n) {
            if (!members.is_member(n)) continue;
            const int32_t slot = slot_of[std::size_t(n)];
            must_hold(table.contains(slot) && member(slot) == n && (!is_only || slot == n),
                      "members and patterns do not agree");
        }
        for (const int32_t n : free_members) must_hold(!members.is_member(n), "a free number is in use");
        for (const int64_t n : {extremes.at_largest, extremes.at_smallest})
            must_hold(n == -1 || (n >= 0 && n < size && members.is_member(n)), "an extreme is no member");
    }
};

template <class T>
class LaSVM : public PatternSolver<T, LaSVM<T>> {
  public:
    using Base = PatternSolver<T, LaSVM<T>>;
    using Base::table;

    LaSVM(const LaSVMOptions& options, int64_t memory_limit)
        : Base(memory_limit, 2, births_between_settles), options_(options), problems_(1) {}

    const std::vector<PotentialSupport>& problems() const { return problems_; }
    int64_t classes() const { return classes_; }
    int64_t columns() const { return int64_t(problems_.size()); }
    const LaSVMCounters& counters() const { return counters_; }

    void feed(const Block<T>& block, const Examples& examples) {
        go_on();
        settle_rows();
        Base::feed(block, examples);
    }

    // Works on until `end` examples of the block are done.
    void run(int64_t end) {
        if (at_ < end) go_on();
        for (; at_ < end; ++at_) {
            make_room_for(examples_.labels[at_]);
            for (std::size_t p = 0; p < problems_.size(); ++p) {
                process(p);
                reprocess(problems_[p]);
            }
        }
    }

    // f(x) = sum_i alpha_i k(x_i, x) + b of all problems.
    void decide(const T* kernel, double* f) const {
        for (const PotentialSupport& s : problems_) *f++ = expansion(s, kernel) + s.bias();
    }

    void finish() {
        while (!finish(std::numeric_limits<int64_t>::max())) {
        }
    }
    // The finishing step, about so many steps of it or up to the next large product; true once it is done.
    bool finish(int64_t steps) {
        const auto bring = [this](const std::vector<int32_t>& slots) { bring_rows(slots); };
        while (finishing_ < problems_.size()) {
            if (finished_.size() == finishing_) begin_finish(problems_[finishing_]);
            Smo<T>& smo = *finished_[finishing_];
            Progress progress = Progress::more;
            for (int64_t done = 0; done < steps && progress == Progress::more; done += between_looks) {
                const int64_t before = smo.steps();
                progress = smo.run(std::min(between_looks, steps - done), bring);
                counters_.finishing_steps += smo.steps() - before;
                stay_within_limit();
            }
            if (progress != Progress::done) return false;
            smo.release_rows();
            ++finishing_;
        }
        return true;
    }

    // The model: coefficients, biases and uncertainties of all problems, finished where finishing has begun.
    SupportArrays support() {
        const std::size_t slots = std::size_t(table().slots());
        std::vector<double> alpha(problems_.size() * slots, 0.0);  // [problem][slot]
        for (std::size_t p = 0; p < problems_.size(); ++p) {
            Smo<T>* const smo = finished(p);
            const Members& members = smo ? smo->members() : problems_[p].members;
            const std::vector<int32_t>& slot_of = smo ? smo->slots() : problems_[p].slot_of;
            for (int64_t n = 0; n < members.size(); ++n)
                if (members.is_member(n)) alpha[p * slots + std::size_t(slot_of[std::size_t(n)])] = members.alpha(n);
        }
        return arrays_of(table(), [&](SupportArrays& arrays, int32_t slot, const Pattern&) {
            for (std::size_t p = 0; p < problems_.size(); ++p)
                if (const double a = alpha[p * slots + std::size_t(slot)]; a != 0) arrays.put(int32_t(p), a);
        });
    }
    double bias(std::size_t p) const {
        const Extremes at = finished(p) ? finished(p)->extremes() : Extremes();
        return at.at_largest >= 0 && at.at_smallest >= 0 ? (at.largest + at.smallest) / 2 : problems_[p].bias();
    }
    double delta(std::size_t p) const {
        return finished(p) ? finished(p)->extremes().largest - finished(p)->extremes().smallest : problems_[p].delta();
    }
    double dual() const {
        double dual = 0;
        for (std::size_t p = 0; p < problems_.size(); ++p)
            dual += problems_[p].dual + (finished(p) ? finished(p)->gain() : 0.0);
        return dual;
    }
    double half_squared_norm() const {
        double half = 0;
        for (std::size_t p = 0; p < problems_.size(); ++p) {
            half += problems_[p].linear - problems_[p].dual;
            if (const Smo<T>* const smo = finished(p)) half += smo->linear_change() - smo->gain();
        }
        return half;
    }
    double loss() const {
        double loss = 0;
        for (const PotentialSupport& s : problems_) loss += s.loss;
        return loss;
    }
    // The distance to the decision boundary within which an example of either class makes a violating pair.
    double reach() const {
        double widest = 0;
        for (const PotentialSupport& s : problems_)
            if (s.delta() < std::numeric_limits<double>::infinity()) widest = std::max(widest, s.delta());
        return 1 + widest / 2;
    }

    // The stream goes on as if there had been no finishing, which does not count then.
    void go_on() {
        for (const auto& smo : finished_) counters_.finishing_steps -= smo->steps();
        forget_finish();
    }

    // What finishing has come to is where the stream goes on from.
    void take_over_finish() {
        for (std::size_t p = 0; p < finished_.size(); ++p) take_over(problems_[p], *finished_[p]);
        forget_finish();
        for (const int32_t slot : std::vector<int32_t>(table().present())) release_if_unused(slot);
    }

    void begin_another_epoch() {
        for (PotentialSupport& s : problems_) s.loss = 0;
    }

    void add_class() { make_room_for(int32_t(classes_)); }

    // A pattern of a saved model; `row` holds its values with the slots before it.
    void restore(const T* row, const SupportArrays& saved, std::size_t n) {
        const int32_t label = saved.labels[n];
        const double diagonal = saved.diagonal[n];
        const int32_t slot = rows_.restore(row, saved.ids[n], label, saved.costs[n], diagonal);
        const T* const kernel = rows_[slot];
        for (std::size_t e = std::size_t(saved.starts[n]); e < std::size_t(saved.starts[n + 1]); ++e) {
            const double alpha = saved.coefficients[e];
            PotentialSupport& s = problems_[std::size_t(saved.columns[e])];
            const double y = sign(std::size_t(saved.columns[e]), label), f = expansion(s, kernel);
            for (int64_t member = 0; member < s.members.size(); ++member)
                s.members.gradients()[member] -= alpha * double(kernel[s.slot_of[std::size_t(member)]]);
            insert(s, slot, y, alpha, y - f - alpha * diagonal);
            s.linear += alpha * y;
            s.dual += alpha * (y - f) - alpha * alpha * diagonal / 2;
            find_extremes(s);
        }
        stay_within_limit();
    }
    bool knows(int32_t label) const { return label < classes_; }
    bool accepts(int32_t column, double alpha) const { return column >= 0 && column < columns() && alpha != 0; }

    // Of the stream, as if there had been no finishing.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        LaSVMCounters counters = counters_;
        for (const auto& smo : finished_) counters.finishing_steps -= smo->steps();
        snapshot(table(), classes_, problems_, counters);
        if constexpr (Snapshot::reads) counters_ = counters;
        if constexpr (Snapshot::reads) {
            const int64_t wanted = classes_ > 2 ? classes_ : 1;
            must_hold(classes_ >= 0 && columns() == wanted, "the problems do not fit the classes");
            for (const PotentialSupport& s : problems_) s.check(table(), has_one_problem());
            for (const int32_t slot : table().present())
                must_hold(table()[slot].label < classes_, "a label is out of range");
        }
    }
    void bring_all_rows() {
        rows_.bring_all([this](int32_t) { stay_within_limit(); });
    }

    double sign(std::size_t problem, int32_t label) const {
        const int32_t positive = classes_ > 2 ? int32_t(problem) : 1;
        return label == positive ? 1.0 : -1.0;
    }

    int64_t bytes_beside_rows() const {
        int64_t total = 0;
        for (const PotentialSupport& s : problems_) total += s.bytes();
        for (const auto& smo : finished_) total += smo->bytes();
        if (finishing_ < finished_.size()) total += rows_.bytes_on_the_way();
        return total;
    }
    void stay_within_limit(int32_t kept = -1) {
        if (rows_.bytes() > bytes_of_small_gram) rows_.grow_little();  // few of so many
        Base::stay_within_limit(kept);
    }

  private:
    using Base::at_, Base::examples_, Base::rows_;

    // Most support vectors stay at a bound, and nobody reads their rows.
    static constexpr int64_t births_between_settles = int64_t{1} << 16;
    static constexpr int64_t between_looks = 64;  // steps of finishing, at the memory
    static constexpr int64_t rows_ahead = 15;
    static constexpr int64_t bytes_of_small_gram = int64_t{1} << 26;
    static constexpr double share_of_finish = 0.75;  // of the memory for rows
    static constexpr int64_t seeds = 5;              // of a class: "a few examples", algorithm 13, line 1

    bool has_one_problem() const { return problems_.size() == 1; }
    void forget_finish() {
        finished_.clear();
        finishing_ = 0;
    }

    Smo<T>* finished(std::size_t p) const { return p < finished_.size() ? finished_[p].get() : nullptr; }

    double expansion(const PotentialSupport& s, const T* kernel) const {
        if (has_one_problem()) return units<T>().dot_row(kernel, s.members.alphas(), s.members.size());
        return units<T>().dot_row_at(kernel, s.slot_of.data(), s.members.alphas(), s.members.size());
    }

    void process(std::size_t p) {  // [thesis] algorithm 11
        PotentialSupport& s = problems_[p];
        const int64_t id = examples_.ids[at_];
        const double y = sign(p, examples_.labels[at_]), cost = examples_.costs[at_];
        int32_t slot = table().slot_of(id);
        const int64_t present = slot < 0 ? -1 : s.member(slot);
        if (present >= 0) {
            ++counters_.process;
            s.loss += cost * std::max(0.0, y * (s.members.g(present) - s.bias()));
            return;
        }
        const double g = y - expansion(s, rows_.of_example(at_));
        const int64_t partner = y > 0 ? s.extremes.at_smallest : s.extremes.at_largest;
        const double slope = y > 0 ? g - s.extremes.smallest : s.extremes.largest - g;
        const bool is_violating = partner >= 0 && slope > options_.tau;
        if (is_violating) require_rows(s, s.slot_of[std::size_t(partner)], slot);
        ++counters_.process;
        s.loss += cost * std::max(0.0, y * (g - s.bias()));
        if (!is_violating && !can_wait(s, y, g)) return;
        if (slot < 0) {
            slot = rows_.add(at_, id, examples_.labels[at_], cost, examples_.diagonal[at_]);
            stay_within_limit();
        }
        const int64_t k = insert(s, slot, y, 0.0, g);
        if (!is_violating) return find_extremes(s);
        rows_.find(s.slot_of[std::size_t(partner)]);  // it may have a new column
        rows_.find(slot);
        if (y > 0)
            step(s, k, partner);
        else
            step(s, partner, k);
    }

    // Whether an example without a violating pair may make one with those to come.
    bool can_wait(const PotentialSupport& s, double y, double g) const {
        const bool has_partner = (y > 0 ? s.extremes.at_smallest : s.extremes.at_largest) >= 0;
        if (!has_partner) return s.count[y > 0] < seeds;
        return (y > 0 ? g - s.extremes.largest : s.extremes.smallest - g) > options_.tau;  // [thesis] 4.2.3, case c
    }

    void reprocess(PotentialSupport& s) {  // [thesis] algorithm 12
        // Where rounding or an indefinite kernel keeps gradients apart, delta_max is never reached.
        int64_t steps_left = 1000 + 100 * s.members.size();
        do {
            if (!(s.delta() > options_.tau)) return;
            const int64_t i = s.extremes.at_largest, j = s.extremes.at_smallest;
            require_rows(s, s.slot_of[std::size_t(i)], s.slot_of[std::size_t(j)]);
            ++counters_.reprocess;
            step(s, i, j);
            remove_blatant(s);
        } while (options_.delta_max > 0 && s.delta() > options_.delta_max && --steps_left > 0);
    }

    // The rows of both are here.
    void step(PotentialSupport& s, int64_t i, int64_t j) {
        const int32_t slot_i = s.slot_of[std::size_t(i)], slot_j = s.slot_of[std::size_t(j)];
        const T *const ki = rows_[slot_i], *const kj = rows_[slot_j];
        const PairStep taken = s.members.step(i, j, double(ki[slot_j]));
        s.dual += taken.gain;
        s.linear += taken.lambda * (s.members.y(i) - s.members.y(j));
        for (const int64_t member : {i, j})
            if (s.members.alpha(member) == 0) s.zeros.push_back(int32_t(member));
        s.extremes = has_one_problem()
                         ? units<T>().move_gradient(ki, kj, taken.lambda, s.members.up(), s.members.down(),
                                                    s.members.size(), s.members.gradients())
                         : units<T>().move_gradient_at(ki, kj, s.slot_of.data(), taken.lambda, s.members.up(),
                                                       s.members.down(), s.members.size(), s.members.gradients());
        s.members.settle(taken, i, j, s.extremes);
        ++counters_.steps;
    }

    void remove_blatant(PotentialSupport& s) {  // [thesis] algorithm 12, lines 5-11
        bool are_extremes_gone = false;
        std::size_t kept = 0;
        for (std::size_t n = 0; n < s.zeros.size(); ++n) {
            const int32_t member = s.zeros[n];
            if (!s.members.is_member(member) || s.members.alpha(member) != 0) continue;
            const double g = s.members.g(member);
            const bool is_blatant = s.members.y(member) > 0 ? g <= s.extremes.smallest : g >= s.extremes.largest;
            if (!is_blatant) {
                s.zeros[kept++] = member;
                continue;
            }
            are_extremes_gone |= member == s.extremes.at_largest || member == s.extremes.at_smallest;
            remove(s, member);
        }
        s.zeros.resize(kept);
        if (are_extremes_gone) find_extremes(s);
    }

    int64_t insert(PotentialSupport& s, int32_t slot, double y, double alpha, double g) {
        const Pattern& pattern = table()[slot];
        int64_t member = slot;
        if (!has_one_problem()) {
            member = s.free_members.empty() ? s.members.size() : s.free_members.back();
            if (!s.free_members.empty()) s.free_members.pop_back();
        }
        s.members.put(member, y, pattern.cost, pattern.diagonal, alpha, g);
        s.slot_of.resize(std::size_t(s.members.size()), 0);
        s.member_of.resize(std::max(s.member_of.size(), std::size_t(slot) + 1), -1);
        s.slot_of[std::size_t(member)] = slot, s.member_of[std::size_t(slot)] = int32_t(member);
        if (alpha == 0) s.zeros.push_back(int32_t(member));
        ++s.count[y > 0];
        return member;
    }

    void remove(PotentialSupport& s, int64_t member) {
        const int32_t slot = s.slot_of[std::size_t(member)];
        --s.count[s.members.y(member) > 0];
        s.members.remove(member);
        s.member_of[std::size_t(slot)] = -1;
        if (!has_one_problem()) s.free_members.push_back(int32_t(member));
        release_if_unused(slot);
    }

    void release_if_unused(int32_t slot) {
        if (slot < 0 || !table().contains(slot)) return;
        for (const PotentialSupport& s : problems_)
            if (s.member(slot) >= 0) return;
        table().remove(slot);
    }

    void find_extremes(PotentialSupport& s) {
        s.extremes =
            units<T>().find_extremes(s.members.gradients(), s.members.up(), s.members.down(), s.members.size());
    }

    // Most examples go to their bound at once and stay there, so the rows of others are those that will be used. Where
    // there is no room for all, these stay, and all take over what they need of rows that may go.
    void settle_rows() {
        const auto is_free_slot = [this](int32_t slot) { return is_free(slot); };
        if (!rows_.are_short()) return rows_.settle_some(is_free_slot);
        rows_.settle();
        rows_.retire(is_free_slot);
    }
    bool is_free(int32_t slot) const {
        return std::any_of(problems_.begin(), problems_.end(), [&](const PotentialSupport& s) {
            return s.member(slot) >= 0 && s.members.is_free(s.member(slot));
        });
    }

    // The rows of two patterns, the second of which need not be one yet. A few rows cost no more than one, so those
    // next in line come with them.
    void require_rows(const PotentialSupport& s, int32_t one, int32_t other) {
        while (!are_found(one, other)) {
            const auto is_missing = [&](int64_t member) { return !rows_.is_kept(s.slot_of[std::size_t(member)]); };
            const std::size_t more = std::size_t(std::min(rows_ahead, rows_.at_once() - 1));
            std::vector<int32_t> needed;
            for (const int32_t member : next_in_line(s.members, s.extremes, options_.tau, more, is_missing))
                needed.push_back(s.slot_of[std::size_t(member)]);
            for (const int32_t slot : {one, other}) {
                if (slot < 0 || rows_.is_kept(slot)) continue;
                needed.erase(std::remove(needed.begin(), needed.end(), slot), needed.end());
                needed.push_back(slot);
            }
            bring_rows(needed);
        }
    }
    bool are_found(int32_t one, int32_t other) {
        const bool is_first = rows_.find(one), is_second = other < 0 || rows_.find(other);
        stay_within_limit();
        return is_first && is_second;
    }
    void bring_rows(const std::vector<int32_t>& slots) {
        stay_within_limit();
        rows_.bring(slots, [this](int32_t) { stay_within_limit(); });
    }

    // A third class makes three problems of one: that of class 1 against class 0 goes on as class 1 against the rest,
    // and its mirror image as class 0 against the rest.
    void make_room_for(int32_t label) {
        while (classes_ <= label) {
            ++classes_;
            if (classes_ == 3) {
                for (int32_t slot = 0; slot < problems_[0].members.size(); ++slot)
                    if (!problems_[0].members.is_member(slot)) problems_[0].free_members.push_back(slot);
                problems_.insert(problems_.begin(), mirrored(problems_[0]));
            }
            if (classes_ > 2) problems_.push_back(seeded());
        }
    }

    // The problem of a class that has just arrived: a few patterns of each of the others are its first members.
    PotentialSupport seeded() {
        PotentialSupport s;
        std::vector<int64_t> taken(std::size_t(classes_), 0);
        for (int32_t slot = 0; slot < table().slots(); ++slot)
            if (table().contains(slot) && taken[std::size_t(table()[slot].label)]++ < seeds)
                insert(s, slot, -1.0, 0.0, -1.0);
        find_extremes(s);
        return s;
    }

    PotentialSupport mirrored(const PotentialSupport& s) {
        PotentialSupport image;
        for (int64_t member = 0; member < s.members.size(); ++member) {
            if (!s.members.is_member(member)) continue;
            const int32_t slot = s.slot_of[std::size_t(member)];
            const Pattern& pattern = table()[slot];
            const int64_t at = image.members.size();
            image.members.put(at, -s.members.y(member), pattern.cost, pattern.diagonal, -s.members.alpha(member),
                              -s.members.g(member));
            image.slot_of.push_back(slot);
            image.member_of.resize(std::max(image.member_of.size(), std::size_t(slot) + 1), -1);
            image.member_of[std::size_t(slot)] = int32_t(at);
            if (s.members.alpha(member) == 0) image.zeros.push_back(int32_t(at));
        }
        image.dual = s.dual, image.linear = s.linear, image.loss = s.loss;
        image.count = {s.count[1], s.count[0]};
        find_extremes(image);
        return image;
    }

    void begin_finish(const PotentialSupport& s) {
        std::vector<int32_t> numbers, slots;
        for (int64_t member = 0; member < s.members.size(); ++member) {
            if (!has_one_problem() && !s.members.is_member(member)) continue;
            numbers.push_back(int32_t(member));
            slots.push_back(has_one_problem() ? int32_t(member) : s.slot_of[std::size_t(member)]);
        }
        const int64_t count = int64_t(numbers.size()), needed = bytes_beside_rows() + bytes_of_finishes();
        rows_.check_room_beside(needed, "to finish the model with ");
        finished_.push_back(std::make_unique<Smo<T>>(s.members.at(numbers), std::move(slots), rows_, options_.tau));
        if (finished_.size() == 1 && rows_.bytes() < bytes_of_small_gram) rows_.settle();
        const int64_t room = int64_t(share_of_finish * double(rows_.room_beside(needed)));
        finished_.back()->keep_rows(std::clamp<int64_t>(room, 0, count * count * int64_t(sizeof(T))));
        stay_within_limit();
    }
    // Of those to come, at least: all stay, but they work one after the other.
    int64_t bytes_of_finishes() const {
        int64_t total = 0, most = 0;
        for (std::size_t p = finished_.size(); p < problems_.size(); ++p) {
            const int64_t members = problems_[p].members.size();
            total += Smo<T>::bytes_for(members);
            most = std::max(most, Smo<T>::bytes_at_work(members));
        }
        return total + most;
    }

    void take_over(PotentialSupport& s, Smo<T>& smo) {
        const Members& members = smo.members();
        s.zeros.clear();
        for (std::size_t n = 0; n < smo.slots().size(); ++n) {
            if (!members.is_member(int64_t(n))) continue;
            const int64_t member = s.member(smo.slots()[n]);
            s.linear += (members.alpha(int64_t(n)) - s.members.alpha(member)) * s.members.y(member);
            s.members.set_alpha(member, members.alpha(int64_t(n)));
            s.members.gradients()[member] = members.g(int64_t(n));
            if (members.alpha(int64_t(n)) == 0) s.zeros.push_back(int32_t(member));
        }
        s.dual += smo.gain();
        find_extremes(s);
        remove_blatant(s);
    }

    LaSVMOptions options_;
    std::vector<PotentialSupport> problems_;
    int64_t classes_ = 0;
    LaSVMCounters counters_;

    std::vector<std::unique_ptr<Smo<T>>> finished_;
    std::size_t finishing_ = 0;
};

}  // namespace larank
