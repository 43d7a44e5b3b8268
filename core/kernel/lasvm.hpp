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
// that are further out (4.2.3, case c). Others would not change a thing.
//
// The problems share patterns, blocks and rows of kernel values. Problem p tells class p from the rest; while there are
// two classes, one problem tells class 1 from class 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/binaryproblem.hpp"
#include "kernel/patternrows.hpp"
#include "kernel/smo.hpp"
#include "simd/units.hpp"

namespace larank {

struct LaSVMOptions {
    double tau = 1e-3;
    double delta_max = 0;  // REPROCESS is repeated until delta is below; 0 if once is enough, [thesis] 4.2.5
};

struct LaSVMCounters {
    int64_t process = 0, reprocess = 0, steps = 0, finishing_steps = 0;
};

// S of one problem, and where its members are.
class PotentialSupport {
  public:
    Members members;
    Extremes extremes;                       // of the members as they are
    double dual = 0, linear = 0;             // the objective, and its part sum_i alpha_i y_i
    double loss = 0;                         // of the examples seen, as they were met
    std::array<int64_t, 2> count{};          // members of either sign
    std::vector<int32_t> slot_of, place_of;  // by place, and by slot: -1 where there is none
    std::vector<int32_t> zeros;              // places whose coefficient is zero
    std::vector<int32_t> free_places;

    double delta() const { return extremes.largest - extremes.smallest; }  // [thesis] (4.11)
    double bias() const {
        const bool has_top = extremes.at_largest >= 0, has_bottom = extremes.at_smallest >= 0;
        if (has_top && has_bottom) return (extremes.largest + extremes.smallest) / 2;
        return has_top ? extremes.largest : has_bottom ? extremes.smallest : 0.0;
    }
    int64_t place(int32_t slot) const { return std::size_t(slot) < place_of.size() ? place_of[std::size_t(slot)] : -1; }
    int64_t bytes() const {
        return members.bytes() + int64_t((slot_of.capacity() + place_of.capacity()) * sizeof(int32_t));
    }
};

template <class T>
class LaSVM {
  public:
    LaSVM(const LaSVMOptions& options, int64_t memory_limit)
        : options_(options), rows_(memory_limit, 2, births_between_settles), problems_(1) {}

    PatternRows<T>& rows() { return rows_; }
    const PatternRows<T>& rows() const { return rows_; }
    const std::vector<PotentialSupport>& problems() const { return problems_; }
    int64_t classes() const { return classes_; }
    const LaSVMCounters& counters() const { return counters_; }
    const std::vector<int32_t>& needed() const { return needed_; }

    void feed(const Block<T>& block, const Examples& examples) {
        go_on();
        rows_.table().forget_newborn();
        rows_.feed(block);
        examples_ = examples;
        at_ = 0;
        stay_within_limit();
    }

    // Works on until `end` examples of the block are done; false if rows of kernel values are needed first.
    bool run(int64_t end) {
        needed_.clear();
        if (at_ < end) go_on();
        for (; at_ < end; ++at_, problem_ = 0) {
            make_room_for(examples_.labels[at_]);
            for (; problem_ < problems_.size(); ++problem_, is_processed_ = false) {
                if (!is_processed_ && !process(problems_[problem_])) return false;
                is_processed_ = true;
                if (!reprocess(problems_[problem_])) return false;
            }
        }
        return true;
    }

    // f(x) = sum_i alpha_i k(x_i, x) + b of all problems.
    void decide(const T* kernel, double* f) const {
        for (const PotentialSupport& s : problems_) *f++ = expansion(s, kernel) + s.bias();
    }

    // The finishing step, so many steps at a time.
    Progress finish(int64_t steps) {
        needed_.clear();
        while (finishing_ < problems_.size()) {
            if (finished_.size() == finishing_) begin_finish(problems_[finishing_]);
            Smo<T>& smo = *finished_[finishing_];
            Progress progress = Progress::more;
            for (int64_t done = 0; done < steps && progress == Progress::more; done += between_looks) {
                const int64_t before = smo.steps();
                progress = smo.run(std::min(between_looks, steps - done));
                counters_.finishing_steps += smo.steps() - before;
                stay_within_limit();
            }
            if (progress != Progress::done) {
                needed_ = smo.needed();
                return progress;
            }
            smo.release_rows();
            ++finishing_;
        }
        return Progress::done;
    }
    // What finishing waits for where it needs products.
    Smo<T>* finishing() { return finishing_ < finished_.size() ? finished_[finishing_].get() : nullptr; }
    const Smo<T>* finished(std::size_t problem) const {
        return problem < finished_.size() ? finished_[problem].get() : nullptr;
    }
    Smo<T>* finished(std::size_t problem) { return problem < finished_.size() ? finished_[problem].get() : nullptr; }

    // The stream goes on as if there had been no finishing.
    void go_on() {
        finished_.clear();
        finishing_ = 0;
    }

    // What finishing has come to is where the stream goes on from.
    void take_over_finish() {
        for (std::size_t p = 0; p < finished_.size(); ++p) take_over(problems_[p], *finished_[p]);
        go_on();
        for (const int32_t slot : std::vector<int32_t>(rows_.table().present())) release_if_unused(slot);
    }

    void provide(int32_t slot, const T* row) {
        rows_.provide(slot, row);
        stay_within_limit();
    }
    void set_foreign_bytes(int64_t bytes) {
        rows_.set_foreign_bytes(bytes);
        stay_within_limit();
    }
    void forget_loss() {
        for (PotentialSupport& s : problems_) s.loss = 0;
    }

    void add_class() { make_room_for(int32_t(classes_)); }

    // A pattern of a saved model, with a coefficient for every problem; `row` holds its values with the slots before
    // it.
    void restore(const T* row, int64_t id, int32_t label, double cost, double diagonal, const double* alpha) {
        const int32_t slot = rows_.restore(row, id, label, cost, diagonal);
        const T* const kernel = rows_[slot];
        for (std::size_t p = 0; p < problems_.size(); ++p) {
            if (alpha[p] == 0) continue;
            PotentialSupport& s = problems_[p];
            const double y = sign(p, label), f = expansion(s, kernel);
            for (int64_t place = 0; place < s.members.size(); ++place)
                s.members.gradients()[place] -= alpha[p] * double(kernel[s.slot_of[std::size_t(place)]]);
            insert(s, slot, y, alpha[p], y - f - alpha[p] * diagonal);
            s.linear += alpha[p] * y;
            s.dual += alpha[p] * (y - f) - alpha[p] * alpha[p] * diagonal / 2;
            find_extremes(s);
        }
        stay_within_limit();
    }

    double sign(std::size_t problem, int32_t label) const {
        const int32_t positive = classes_ > 2 ? int32_t(problem) : 1;
        return label == positive ? 1.0 : -1.0;
    }

    int64_t bytes_beside_rows() const {
        int64_t total = 0;
        for (const PotentialSupport& s : problems_) total += s.bytes();
        for (const auto& smo : finished_) total += smo->bytes();
        return total;
    }

  private:
    // Most support vectors stay at a bound, and nobody reads their rows.
    static constexpr int64_t births_between_settles = int64_t{1} << 16;
    static constexpr int64_t between_looks = 64;  // steps of finishing, at the memory
    static constexpr int64_t rows_ahead = 15;
    static constexpr int64_t bytes_of_small_gram = int64_t{1} << 26;
    static constexpr int64_t most_shrinks = 24;      // that each keep the coefficients of all members; 0.9^24 is 8 %
    static constexpr double share_of_finish = 0.75;  // of the memory for rows
    static constexpr int64_t seeds = 5;              // of a class: "a few examples", algorithm 13, line 1

    bool has_one_problem() const { return problems_.size() == 1; }

    double expansion(const PotentialSupport& s, const T* kernel) const {
        if (has_one_problem()) return units<T>().dot_row(kernel, s.members.alphas(), s.members.size());
        return units<T>().dot_row_at(kernel, s.slot_of.data(), s.members.alphas(), s.members.size());
    }

    bool process(PotentialSupport& s) {  // [thesis] algorithm 11
        const int64_t id = examples_.ids[at_];
        const double y = sign(problem_, examples_.labels[at_]), cost = examples_.costs[at_];
        int32_t slot = rows_.table().slot_of(id);
        const int64_t present = slot < 0 ? -1 : s.place(slot);
        if (present >= 0) {
            ++counters_.process;
            s.loss += cost * std::max(0.0, y * (s.members.g(present) - s.bias()));
            return true;
        }
        const double g = y - expansion(s, rows_.of_example(at_));
        const int64_t partner = y > 0 ? s.extremes.at_smallest : s.extremes.at_largest;
        const double slope = y > 0 ? g - s.extremes.smallest : s.extremes.largest - g;
        const bool is_violating = partner >= 0 && slope > options_.tau;
        if (is_violating && !has_rows_of_pair(s, s.slot_of[std::size_t(partner)], slot)) return false;
        ++counters_.process;
        s.loss += cost * std::max(0.0, y * (g - s.bias()));
        if (!is_violating && !can_wait(s, y, g)) return true;
        if (slot < 0) {
            slot = rows_.add(at_, id, examples_.labels[at_], cost, examples_.diagonal[at_]);
            stay_within_limit();
        }
        const int64_t k = insert(s, slot, y, 0.0, g);
        if (!is_violating) {
            find_extremes(s);
            return true;
        }
        rows_.find(s.slot_of[std::size_t(partner)]);  // it may have a new column
        rows_.find(slot);
        if (y > 0)
            step(s, k, partner);
        else
            step(s, partner, k);
        return true;
    }

    // Whether an example without a violating pair may make one with those to come.
    bool can_wait(const PotentialSupport& s, double y, double g) const {
        const bool has_partner = (y > 0 ? s.extremes.at_smallest : s.extremes.at_largest) >= 0;
        if (!has_partner) return s.count[y > 0] < seeds;
        return (y > 0 ? g - s.extremes.largest : s.extremes.smallest - g) > options_.tau;  // [thesis] 4.2.3, case c
    }

    // Of two patterns, the second of which need not be one yet.
    bool has_rows_of_pair(const PotentialSupport& s, int32_t one, int32_t other) {
        return other < 0 ? has_rows(s, {one}) : has_rows(s, {one, other});
    }

    bool reprocess(PotentialSupport& s) {  // [thesis] algorithm 12
        do {
            if (!(s.delta() > options_.tau)) return true;
            const int64_t i = s.extremes.at_largest, j = s.extremes.at_smallest;
            if (!has_rows(s, {s.slot_of[std::size_t(i)], s.slot_of[std::size_t(j)]})) return false;
            ++counters_.reprocess;
            step(s, i, j);
            remove_blatant(s);
        } while (options_.delta_max > 0 && s.delta() > options_.delta_max);
        return true;
    }

    // The rows of both are here.
    void step(PotentialSupport& s, int64_t i, int64_t j) {
        const int32_t slot_i = s.slot_of[std::size_t(i)], slot_j = s.slot_of[std::size_t(j)];
        const T *const ki = rows_[slot_i], *const kj = rows_[slot_j];
        const PairStep taken = s.members.step(i, j, double(ki[slot_j]));
        s.dual += taken.gain;
        s.linear += taken.lambda * (s.members.y(i) - s.members.y(j));
        for (const int64_t place : {i, j})
            if (s.members.alpha(place) == 0) s.zeros.push_back(int32_t(place));
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
            const int32_t place = s.zeros[n];
            if (!s.members.is_member(place) || s.members.alpha(place) != 0) continue;
            const double g = s.members.g(place);
            const bool is_blatant = s.members.y(place) > 0 ? g <= s.extremes.smallest : g >= s.extremes.largest;
            if (!is_blatant) {
                s.zeros[kept++] = place;
                continue;
            }
            are_extremes_gone |= place == s.extremes.at_largest || place == s.extremes.at_smallest;
            remove(s, place);
        }
        s.zeros.resize(kept);
        if (are_extremes_gone) find_extremes(s);
    }

    int64_t insert(PotentialSupport& s, int32_t slot, double y, double alpha, double g) {
        const Pattern& pattern = rows_.table()[slot];
        int64_t place = slot;
        if (!has_one_problem()) {
            place = s.free_places.empty() ? s.members.size() : s.free_places.back();
            if (!s.free_places.empty()) s.free_places.pop_back();
        }
        s.members.put(place, y, pattern.cost, pattern.diagonal, alpha, g);
        s.slot_of.resize(std::size_t(s.members.size()), 0);
        s.place_of.resize(std::max(s.place_of.size(), std::size_t(slot) + 1), -1);
        s.slot_of[std::size_t(place)] = slot, s.place_of[std::size_t(slot)] = int32_t(place);
        if (alpha == 0) s.zeros.push_back(int32_t(place));
        ++s.count[y > 0];
        return place;
    }

    void remove(PotentialSupport& s, int64_t place) {
        const int32_t slot = s.slot_of[std::size_t(place)];
        --s.count[s.members.y(place) > 0];
        s.members.remove(place);
        s.place_of[std::size_t(slot)] = -1;
        if (!has_one_problem()) s.free_places.push_back(int32_t(place));
        release_if_unused(slot);
    }

    void release_if_unused(int32_t slot) {
        if (slot < 0 || !rows_.table().contains(slot)) return;
        for (const PotentialSupport& s : problems_)
            if (s.place(slot) >= 0) return;
        rows_.table().remove(slot);
    }

    void find_extremes(PotentialSupport& s) {
        s.extremes =
            units<T>().find_extremes(s.members.gradients(), s.members.up(), s.members.down(), s.members.size());
    }

    // A few rows cost no more than one, so those next in line are asked for too.
    bool has_rows(const PotentialSupport& s, std::initializer_list<int32_t> slots) {
        for (const int32_t slot : slots)
            if (!rows_.find(slot)) needed_.push_back(slot);
        stay_within_limit();
        if (needed_.empty()) return true;
        const auto is_missing = [&](int64_t place) {
            const int32_t slot = s.slot_of[std::size_t(place)];
            return !rows_.is_kept(slot) && std::find(slots.begin(), slots.end(), slot) == slots.end();
        };
        const std::size_t more = std::size_t(std::min(rows_ahead, rows_.at_once() - 1));
        for (const int32_t place : next_in_line(s.members, s.extremes, options_.tau, more, is_missing))
            needed_.push_back(s.slot_of[std::size_t(place)]);
        return false;
    }

    // A third class makes three problems of one: that of class 1 against class 0 goes on as class 1 against the rest,
    // and its mirror image as class 0 against the rest.
    void make_room_for(int32_t label) {
        while (classes_ <= label) {
            ++classes_;
            if (classes_ == 3) {
                for (int32_t slot = 0; slot < problems_[0].members.size(); ++slot)
                    if (!problems_[0].members.is_member(slot)) problems_[0].free_places.push_back(slot);
                problems_.insert(problems_.begin(), mirrored(problems_[0]));
            }
            if (classes_ > 2) problems_.push_back(seeded());
        }
    }

    // The problem of a class that has just arrived: a few patterns of each of the others are its first members.
    PotentialSupport seeded() {
        PotentialSupport s;
        std::vector<int64_t> taken(std::size_t(classes_), 0);
        for (int32_t slot = 0; slot < rows_.table().slots(); ++slot)
            if (rows_.table().contains(slot) && taken[std::size_t(rows_.table()[slot].label)]++ < seeds)
                insert(s, slot, -1.0, 0.0, -1.0);
        find_extremes(s);
        return s;
    }

    PotentialSupport mirrored(const PotentialSupport& s) {
        PotentialSupport image;
        for (int64_t place = 0; place < s.members.size(); ++place) {
            if (!s.members.is_member(place)) continue;
            const int32_t slot = s.slot_of[std::size_t(place)];
            const Pattern& pattern = rows_.table()[slot];
            const int64_t at = image.members.size();
            image.members.put(at, -s.members.y(place), pattern.cost, pattern.diagonal, -s.members.alpha(place),
                              -s.members.g(place));
            image.slot_of.push_back(slot);
            image.place_of.resize(std::max(image.place_of.size(), std::size_t(slot) + 1), -1);
            image.place_of[std::size_t(slot)] = int32_t(at);
            if (s.members.alpha(place) == 0) image.zeros.push_back(int32_t(at));
        }
        image.dual = s.dual, image.linear = s.linear, image.loss = s.loss;
        image.count = {s.count[1], s.count[0]};
        find_extremes(image);
        return image;
    }

    void begin_finish(const PotentialSupport& s) {
        std::vector<int32_t> places, slots;
        for (int64_t place = 0; place < s.members.size(); ++place) {
            if (!has_one_problem() && !s.members.is_member(place)) continue;
            places.push_back(int32_t(place));
            slots.push_back(has_one_problem() ? int32_t(place) : s.slot_of[std::size_t(place)]);
        }
        finished_.push_back(std::make_unique<Smo<T>>(s.members.at(places), std::move(slots), rows_, options_.tau));
        if (finished_.size() == 1 && rows_.bytes() < bytes_of_small_gram) rows_.settle();
        const int64_t whole = int64_t(places.size() * places.size() * sizeof(T));
        const int64_t shrunk = most_shrinks * int64_t(places.size() * sizeof(double));
        const int64_t room = int64_t(share_of_finish * double(rows_.room_beside(bytes_beside_rows() + shrunk)));
        finished_.back()->keep_rows(std::clamp<int64_t>(room, 0, whole));
        stay_within_limit();
    }

    void take_over(PotentialSupport& s, Smo<T>& smo) {
        const Members& members = smo.members();
        s.zeros.clear();
        for (std::size_t n = 0; n < smo.slots().size(); ++n) {
            if (!members.is_member(int64_t(n))) continue;
            const int64_t place = s.place(smo.slots()[n]);
            s.linear += (members.alpha(int64_t(n)) - s.members.alpha(place)) * s.members.y(place);
            s.members.set_alpha(place, members.alpha(int64_t(n)));
            s.members.gradients()[place] = members.g(int64_t(n));
            if (members.alpha(int64_t(n)) == 0) s.zeros.push_back(int32_t(place));
        }
        s.dual += smo.gain();
        find_extremes(s);
        remove_blatant(s);
    }

    void stay_within_limit() {
        if (rows_.bytes() > bytes_of_small_gram) rows_.be_tight();  // few of so many rows will grow
        rows_.drop_until_fit(bytes_beside_rows(), -1);
    }

    LaSVMOptions options_;
    PatternRows<T> rows_;
    std::vector<PotentialSupport> problems_;
    int64_t classes_ = 0;

    Examples examples_;
    int64_t at_ = 0;           // examples of the block that are done
    std::size_t problem_ = 0;  // problems that are done with the example at hand
    bool is_processed_ = false;
    std::vector<int32_t> needed_;
    LaSVMCounters counters_;

    std::vector<std::unique_ptr<Smo<T>>> finished_;
    std::size_t finishing_ = 0;
};

}  // namespace larank
