// The active set of kernel/activeset.hpp where the kernel values of all examples are in memory, as one matrix.
//
// Nothing is fed or asked for: examples are numbers of rows, and a look adds rows to the scores. What a look has found
// of an example is enough to let it join, or take up further classes, without a step: its scores are those of the look.
// A step (`solve_row` of linear/rowqp.hpp) is the exact solution for one example and all classes it has coefficients
// for, everything else held fixed, [mcsvm] section 5.
//
// While a large part of all examples are support vectors of each class, the scores of all examples are kept up to date:
// a change of one coefficient is one pass over a row of the matrix. Later each class keeps its support vectors side by
// side, and the square of their kernel values: a change is a pass over a row of that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel/activeset.hpp"
#include "kernel/notfinite.hpp"
#include "kernel/support.hpp"
#include "memory/aligned.hpp"
#include "memory/prefetch.hpp"
#include "simd/units.hpp"

namespace larank {

// What is solved, but for the costs; the arrays are the caller's.
template <class T>
struct SharedProblem {
    const T* matrix;  // [examples][examples], symmetric
    int64_t examples, classes;
    const int32_t* labels;
    const double* delta;  // [classes][classes]
    Formulation formulation = Formulation::crammer_singer;
};

// The support vectors of one class, side by side, and the square of their kernel values.
template <class T>
class SharedList {
  public:
    int64_t size() const { return int64_t(ids_.size()); }
    int64_t stride() const { return stride_; }
    int32_t id(int32_t place) const { return ids_[std::size_t(place)]; }
    double score(int32_t place) const { return scores_[std::size_t(place)]; }
    void set_score(int32_t place, double score) { scores_[std::size_t(place)] = score; }
    void set_coefficient(int32_t place, double beta) { beta_[std::size_t(place)] = beta; }
    void prefetch_row(int32_t place) const {
        constexpr int64_t lines = 4;
        for (int64_t l = 0; l < lines && stride_ > 0; ++l) prefetch(square_row(place) + l * line);
    }

    // Its values in the square are still to be filled.
    int32_t add(int32_t id, double beta, double score) {
        ids_.push_back(id), beta_.push_back(beta), scores_.push_back(score);
        return int32_t(size()) - 1;
    }
    // The last one takes the place of this one.
    void remove(int32_t place, const T* matrix, int64_t examples) {
        const std::size_t at = std::size_t(place);
        ids_[at] = ids_.back(), beta_[at] = beta_.back(), scores_[at] = scores_.back();
        ids_.pop_back(), beta_.pop_back(), scores_.pop_back();
        if (place < int32_t(size())) fill(place, matrix + ids_[at] * examples);
    }
    // Row and column of the square, by the kernel values of the example with all others.
    void fill(int32_t place, const T* row) {
        if (!stride_) return;
        T* const own = square_row(place);
        for (int64_t j = 0; j < size(); ++j) own[j] = row[ids_[std::size_t(j)]];
        T* column = square_.data() + place;
        for (int64_t j = 0; j < size(); ++j, column += stride_) *column = own[j];
    }

    // What it takes to keep a square with room to grow: rows an odd number of cache lines apart, so that a column is
    // spread over the cache.
    int64_t wanted_stride() const { return (((size() + size() / 4) / line + 1) | 1) * line; }
    // The square goes to other memory; the values are those it had, or of the matrix. A growing list has one member
    // more. Room for rows is no memory until they come.
    void move_square(const T* matrix, int64_t examples, bool is_growing) {
        const int64_t stride = wanted_stride(), known = size() - int64_t(is_growing);
        Pages<T> square(stride * stride);
        for (int64_t i = 0; i < known; ++i) {
            T* const own = square.data() + i * stride;
            const T* const row = matrix + ids_[std::size_t(i)] * examples;
            if (stride_)
                std::copy_n(square_row(i), known, own);
            else
                for (int64_t j = 0; j < size(); ++j) own[j] = row[ids_[std::size_t(j)]];
        }
        square_ = std::move(square), stride_ = stride;
    }
    void forget_square() { square_ = Pages<T>(), stride_ = 0; }

    // The scores of the class after a change of one coefficient: S(x_j, y) += change k(x_i, x_j), [larank] eq. (8).
    void follow(int32_t place, double change, const T* row) {
        if (stride_)
            units<T>().add_row_values(square_row(place), change, size(), scores_.data());
        else
            units<T>().add_row_values_at(row, ids_.data(), change, size(), scores_.data());
    }
    // From here on: how far coefficients and scores have come, and what is yet to be added to both.
    void mark() {
        marked_beta_ = beta_, marked_scores_ = scores_, change_.resize(beta_.size()), raised_.resize(beta_.size());
    }
    double change_since(int32_t place) const { return beta_[std::size_t(place)] - marked_beta_[std::size_t(place)]; }
    double raised_since(int32_t place) const {
        return scores_[std::size_t(place)] - marked_scores_[std::size_t(place)];
    }
    double change(int32_t place) const { return change_[std::size_t(place)]; }
    double raised(int32_t place) const { return raised_[std::size_t(place)]; }
    void set_change(int32_t place, double change) { change_[std::size_t(place)] = change; }
    // What the change adds to the scores.
    void raise(const T* matrix, int64_t examples) {
        for (int64_t i = 0; i < size(); ++i)
            raised_[std::size_t(i)] = stride_ ? units<T>().dot_row(square_row(i), change_.data(), size())
                                              : units<T>().dot_row_at(matrix + ids_[std::size_t(i)] * examples,
                                                                      ids_.data(), change_.data(), size());
    }
    void add_raised(double share) {
        for (std::size_t i = 0; i < scores_.size(); ++i) scores_[i] += share * raised_[i];
    }
    // S(x_i, y) by the row of the example.
    double sum(const T* row) const { return units<T>().dot_row_at(row, ids_.data(), beta_.data(), size()); }

  private:
    static constexpr int64_t line = 64 / int64_t(sizeof(T));

    T* square_row(int64_t place) const { return square_.data() + place * stride_; }

    std::vector<int32_t> ids_;
    LargeVector<double> beta_, scores_, marked_beta_, marked_scores_, change_, raised_;
    Pages<T> square_;
    int64_t stride_ = 0;
};

// Objectives at the coefficients as a look found them, and the worst violations of optimality.
struct SharedObjectives {
    double primal = 0, linear = 0, half_squared_norm = 0, scale = 1, outside = 0, of_members = 0;
};

template <class T>
class SharedSet {
  public:
    SharedSet(const SharedProblem<T>& problem, int64_t memory_limit)
        : problem_(problem),
          memory_limit_(memory_limit),
          members_(std::size_t(problem.examples)),
          lists_(std::size_t(problem.classes)),
          costs_(std::size_t(problem.examples), 0.0),
          all_scores_(std::size_t(problem.examples * problem.classes), 0.0),
          work_(padded<double>(problem.classes)) {
        for (int64_t id = 0; id < problem.examples; ++id)
            members_[std::size_t(id)].diagonal = double(problem.matrix[id * problem.examples + id]);
    }

    SharedSet(SharedSet&&) = default;

    const SharedProblem<T>& problem() const { return problem_; }
    void set_costs(const double* costs) { costs_.assign(costs, costs + problem_.examples); }
    void set_tau(double tau) { tau_ = tau; }
    // What is feasible for Crammer-Singer is for Weston-Watkins, so the change is one way.
    void set_formulation(Formulation formulation) { problem_.formulation = formulation; }
    const StepCounters& counters() const { return counters_; }
    int64_t support_patterns() const { return int64_t(present_.size()); }
    int64_t support_vectors() const { return vectors_; }
    int64_t bytes() const {
        return int64_t(members_.size() * sizeof(Member) + all_scores_.capacity() * 8 +
                       std::size_t(values_in_squares_) * sizeof(T)) +
               vectors_ * 136;
    }

    // PROCESSNEW, [larank] algorithm 2, with all classes at once.
    void process(const int64_t* ids, int64_t count) {
        std::vector<double> scores(std::size_t(problem_.classes));
        for (int64_t n = 0; n < count; ++n) {
            const int32_t id = int32_t(ids[n]);
            for (int64_t y = 0; y < problem_.classes; ++y)
                scores[std::size_t(y)] = is_dense_ ? all_scores_of(y)[id] : lists_[std::size_t(y)].sum(row(id));
            ++counters_.operations[std::size_t(Operation::process_new)];
            if (take_up(id, scores.data())) step(id, tau_);
        }
    }

    // Optimizes members, each on its own classes, as `ActiveSet::converge` does.
    bool converge(int64_t visits) {
        if (!is_sweeping_) {
            level_ = fall_of_level * largest_violation();
            if (!std::isfinite(level_)) throw NotFinite();
            if (!begin_level()) return true;
            mark();
        }
        while (visits > 0) {
            const int64_t visited = int64_t(sweep_.size()) + 1;
            visits -= visited;
            visits_before_move_ -= visited;
            sweep();
            const bool is_moved = visits_before_move_ < 0 && move_on();
            if (!moved_.empty() && !is_moved)
                sweep_ = std::exchange(moved_, {});
            else if (!begin_level())
                return true;
            else
                visits -= support_patterns() / looks_per_visit;
        }
        return false;
    }

    int64_t moves() const { return moves_; }

    // Before a look at all examples; returns how many rows of the matrix it will read. It adds to the scores of the
    // look before what coefficients have changed by since. When the rounding of coarse sums could come to tau, all
    // scores are summed up afresh.
    int64_t begin_look() {
        terms_ = std::exchange(gone_, {});
        add_terms([](const Vector& v) { return v.beta - v.seen; }, terms_);
        is_fine_ = rounding_of(terms_) > tau_;
        if (!is_fine_) rounding_ += rounding_of(terms_);
        is_afresh_ = rounding_ > tau_;
        if (is_afresh_) {
            terms_ = all_terms();
            is_fine_ = rounding_of(terms_) > tau_;
            rounding_ = is_fine_ ? 0 : rounding_of(terms_);
        }
        for (const int32_t id : present_)
            for (Vector& v : members_[std::size_t(id)].vectors) v.seen = v.beta;
        if (is_dense_) rounding_ = 0;
        int64_t rows = 0;
        for (std::size_t n = 0; n < terms_.size(); ++n) rows += n == 0 || terms_[n].id != terms_[n - 1].id;
        return rows;
    }
    // The scores of the examples from `first` to `last`, a row for each: those of the look before become those of now.
    void look(int64_t first, int64_t last, double* scores) const {
        if (is_dense_) {
            for (int64_t y = 0; y < problem_.classes; ++y)
                for (int64_t j = first; j < last; ++j) scores[j * problem_.classes + y] = all_scores_of(y)[j];
            return;
        }
        if (is_afresh_) std::fill(scores + first * problem_.classes, scores + last * problem_.classes, 0.0);
        sum_up(terms_, is_fine_, first, last, scores);
    }

    // By the scores of all examples as they are now. The primal is that of the best multiple of w from `low` to `high`.
    SharedObjectives judge(const double* scores, double low, double high, double precision) const {
        SharedObjectives at;
        for (const int32_t id : present_) {
            for (const Vector& v : members_[std::size_t(id)].vectors) {
                at.half_squared_norm += v.beta * scores[id * problem_.classes + v.label] / 2;
                at.linear -= v.beta * delta(id, v.label);
            }
            at.of_members = std::max(at.of_members, violation_by(id, scores));
        }
        if (!std::isfinite(at.half_squared_norm)) throw NotFinite();
        if (at.half_squared_norm < 0) low = high = 1;  // the gap is a violation of optimality, of w as it is
        std::vector<Line> lines;
        for (int32_t id = 0; id < problem_.examples; ++id) {
            if (cost(id) <= 0) continue;
            const double excess = lines_of(id, scores_of(scores, id), low, high, lines);
            if (!is_member(id)) at.outside = std::max(at.outside, excess);
        }
        const auto primal = [&](double scale) {
            double sum = scale * scale * at.half_squared_norm, largest = 0;
            for (const Line& line : lines) {
                largest = std::max(largest, line.delta + scale * line.slope);
                if (line.cost == 0) continue;
                sum += line.cost * largest;
                largest = 0;
            }
            return sum;
        };
        at.scale = low < high ? lowest(primal, low, high, precision) : low;
        at.primal = primal(at.scale);
        return at;
    }

    // Lets examples that violate optimality by more than tau join, the worst first, and members take up further
    // classes, all with the scores of the look; then each of them steps. Some that are close to violating it join, too.
    void extend(const double* scores) {
        is_sweeping_ = false;
        const std::size_t members = present_.size();
        std::vector<std::pair<double, int32_t>> joining;
        double worst = 0;
        for (int32_t id = 0; id < problem_.examples; ++id) {
            if (cost(id) <= 0 || is_member(id)) continue;
            const double excess = excess_at(id, scores, 1).largest;
            worst = std::max(worst, excess);
            if (excess > -most_reach) joining.emplace_back(-excess, id);
        }
        std::vector<int32_t> violating;
        for (std::size_t n = 0; n < members; ++n)
            if (take_up(present_[n], scores_of(scores, present_[n]))) violating.push_back(present_[n]);
        std::sort(joining.begin(), joining.end());
        const double reach = std::min(reach_of_worst * worst, most_reach);
        std::size_t watched = std::size_t(share_watched * double(members));
        std::size_t most = std::max(first_to_join, members);
        for (const auto& [negative, id] : joining) {
            const bool is_violating = -negative > tau_;
            if (most-- == 0 || (!is_violating && (-negative < -reach || watched-- == 0))) break;
            if (is_violating && take_up(id, scores_of(scores, id)))
                violating.push_back(id);
            else
                watch(id, scores_of(scores, id));
            ++counters_.operations[std::size_t(Operation::process_new)];
        }
        for (const int32_t id : violating) step(id, tau_);  // however few they are
    }

    // What has no coefficient goes.
    void prune() {
        is_sweeping_ = false;
        for (std::size_t n = 0; n < present_.size();) {
            auto& vectors = members_[std::size_t(present_[n])].vectors;
            const bool is_support =
                std::any_of(vectors.begin(), vectors.end(), [](const Vector& v) { return v.beta != 0; });
            for (std::size_t v = vectors.size(); v-- > (is_support ? 1 : 0);)
                if (vectors[v].beta == 0) remove_vector(present_[n], v);
            if (is_support) {
                ++n;
                continue;
            }
            members_[std::size_t(present_[n])].position = -1;
            if (n + 1 < present_.size()) {
                present_[n] = present_.back();
                members_[std::size_t(present_[n])].position = int32_t(n);
            }
            present_.pop_back();
        }
        if (is_dense_ && vectors_ * least_share < problem_.examples * problem_.classes) leave_dense();
        if (!is_dense_) fit_squares();
    }

    // These members get other coefficients, a row of `values` each; scores are summed up anew.
    void set_coefficients(const int64_t* ids, int64_t count, const double* values) {
        is_sweeping_ = false;
        for (int64_t n = 0; n < count; ++n)
            for (int64_t y = 0; y < problem_.classes; ++y) {
                const double value = values[n * problem_.classes + y];
                const int32_t id = int32_t(ids[n]);
                Vector* v = find(id, int32_t(y));
                if (!v && value == 0) continue;
                if (!v) v = add_vector(id, int32_t(y), 0);
                v->beta = value;
                if (!is_dense_) lists_[std::size_t(y)].set_coefficient(v->place, value);
            }
        for (SharedList<T>& list : lists_)
            for (int32_t place = 0; place < list.size(); ++place) list.set_score(place, list.sum(row(list.id(place))));
        if (is_dense_) {
            std::vector<double> scores(all_scores_.size());
            const std::vector<Term> terms = all_terms();
            sum_up(terms, rounding_of(terms) > tau_, 0, problem_.examples, scores.data());
            for (int64_t y = 0; y < problem_.classes; ++y)
                for (int64_t j = 0; j < problem_.examples; ++j)
                    all_scores_of(y)[j] = scores[std::size_t(j * problem_.classes + y)];
        }
        prune();
    }

    SupportArrays support() const {
        std::vector<int32_t> ids = present_;
        std::sort(ids.begin(), ids.end());
        SupportArrays arrays;
        for (const int32_t id : ids) {
            Pattern p;
            p.id = id, p.label = label(id), p.cost = cost(id), p.diagonal = diagonal(id);
            for (const Vector& v : members_[std::size_t(id)].vectors)
                if (v.beta != 0) arrays.put(v.label, v.beta);
            arrays.end_pattern(id, p);
        }
        return arrays;
    }
    // Whether a cost keeps any coefficient from growing.
    bool has_bounded() const {
        return std::any_of(present_.begin(), present_.end(), [&](int32_t id) {
            const auto& vectors = members_[std::size_t(id)].vectors;
            return std::any_of(vectors.begin(), vectors.end(),
                               [&](const Vector& v) { return std::abs(v.beta) >= cost(id) * (1 - at_bound); });
        });
    }

  private:
    static constexpr double fall_of_level = 0.05, at_bound = 1e-12;
    static constexpr int64_t rest_share = 256;  // of the members may still move when the others rest
    static constexpr int64_t looks_per_visit = 8;
    static constexpr double most_reach = 0.1, reach_of_worst = 0.5;  // beyond the margin, of those that join early
    static constexpr double share_watched = 0.08;                    // of the members, at most
    static constexpr std::size_t first_to_join = 512;                // or as many as there are members
    static constexpr double least_diagonal = 1e-12;
    static constexpr int64_t sweeps_before_move = 10, values_of_a_visit = 100;
    static constexpr double rounding_of_sums = 32;  // units in the last place of the largest coefficient
    static constexpr int64_t least_share = 6;       // of the examples per class, if the scores of all are kept

    struct Vector {
        int32_t label, place;
        double beta, seen;  // now, and by the last look
    };
    // A coefficient, or what one has changed by.
    struct Term {
        int32_t id, label;
        double value;
    };
    struct Member {
        std::vector<Vector> vectors;  // the first one is the label's
        int32_t position = -1;
        double diagonal = 0;  // k(x, x), which in the matrix is far from anything else
    };

    // The arrays of a row problem.
    struct Work {
        explicit Work(int64_t lanes) : scores(lanes), coefficients(lanes), others(lanes), change(lanes) {}
        AlignedArray<double> scores, coefficients, others, change;
    };

    // One class of an example whose loss may not be zero: its excess is delta + scale * slope. The last one of the
    // classes whose largest excess is the loss has the cost.
    struct Line {
        double delta, slope, cost;
    };
    // Those of an example for scales from `low` to `high`; returns its largest excess at one. Of classes with the same
    // Delta the largest score alone counts, for Crammer-Singer.
    double lines_of(int32_t id, const double* scores, double low, double high, std::vector<Line>& lines) const {
        const double own = scores[label(id)];
        const bool is_summed = problem_.formulation == Formulation::weston_watkins;
        const std::size_t first = lines.size();
        double largest = -std::numeric_limits<double>::infinity();
        for (int32_t y = 0; y < problem_.classes; ++y) {
            if (y == label(id)) continue;
            const Line line{delta(id, y), scores[y] - own, is_summed ? cost(id) : 0};
            largest = std::max(largest, line.delta + line.slope);
            if (line.delta + (line.slope > 0 ? high : low) * line.slope <= 0) continue;
            if (!is_summed && lines.size() > first && lines.back().delta == line.delta)
                lines.back().slope = std::max(lines.back().slope, line.slope);
            else
                lines.push_back(line);
        }
        if (lines.size() > first) lines.back().cost = cost(id);
        return largest;
    }

    const T* row(int32_t id) const { return problem_.matrix + id * problem_.examples; }
    int32_t label(int32_t id) const { return problem_.labels[id]; }
    double cost(int32_t id) const { return costs_[std::size_t(id)]; }
    double diagonal(int32_t id) const { return members_[std::size_t(id)].diagonal; }
    double delta(int32_t id, int32_t y) const { return problem_.delta[label(id) * problem_.classes + y]; }
    bool is_member(int32_t id) const { return members_[std::size_t(id)].position >= 0; }
    const double* scores_of(const double* scores, int32_t id) const { return scores + id * problem_.classes; }
    Excess excess_at(int32_t id, const double* scores, double scale) const {
        return excess_of(scores_of(scores, id), problem_.classes, label(id), problem_.delta, scale,
                         problem_.formulation);
    }

    double* all_scores_of(int64_t y) { return all_scores_.data() + y * problem_.examples; }
    const double* all_scores_of(int64_t y) const { return all_scores_.data() + y * problem_.examples; }

    Vector* find(int32_t id, int32_t y) {
        for (Vector& v : members_[std::size_t(id)].vectors)
            if (v.label == y) return &v;
        return nullptr;
    }
    Vector* add_vector(int32_t id, int32_t y, double score) {
        Member& member = members_[std::size_t(id)];
        if (member.position < 0) member.position = int32_t(present_.size()), present_.push_back(id);
        SharedList<T>& list = lists_[std::size_t(y)];
        const int32_t place = is_dense_ ? -1 : list.add(id, 0, score);
        member.vectors.push_back({y, place, 0.0, 0.0});
        ++vectors_;
        if (!is_dense_ && keeps_squares_) {
            if (list.size() > list.stride()) lay_square(list, true);
            if (keeps_squares_) list.fill(place, row(id));
        }
        return &member.vectors.back();
    }
    void remove_vector(int32_t id, std::size_t n) {
        auto& vectors = members_[std::size_t(id)].vectors;
        const Vector v = vectors[n];
        if (v.seen != 0) gone_.push_back({id, v.label, -v.seen});
        if (!is_dense_) {
            SharedList<T>& list = lists_[std::size_t(v.label)];
            find(list.id(int32_t(list.size()) - 1), v.label)->place = v.place;
            list.remove(v.place, problem_.matrix, problem_.examples);
        }
        vectors.erase(vectors.begin() + int64_t(n));
        --vectors_;
    }

    void leave_dense() {
        for (const int32_t id : present_)
            for (Vector& v : members_[std::size_t(id)].vectors)
                v.place = lists_[std::size_t(v.label)].add(id, v.beta, all_scores_of(v.label)[id]);
        is_dense_ = false;
        LargeVector<double>().swap(all_scores_);
    }
    // The square of a list gets room to grow; where there is no memory for that, no list has one. The last of a growing
    // list is not yet in its square.
    void lay_square(SharedList<T>& list, bool is_growing) {
        const int64_t values = list.wanted_stride() * list.wanted_stride();
        keeps_squares_ = bytes() + values * int64_t(sizeof(T)) <= memory_limit_;
        if (!keeps_squares_) {
            for (SharedList<T>& other : lists_) other.forget_square();
            values_in_squares_ = 0;
            return;
        }
        values_in_squares_ += values - list.stride() * list.stride();
        list.move_square(problem_.matrix, problem_.examples, is_growing);
    }
    // Where lists have become much shorter, or there are no squares yet.
    void fit_squares() {
        for (SharedList<T>& list : lists_) {
            const int64_t values = list.wanted_stride() * list.wanted_stride(), before = list.stride() * list.stride();
            if (keeps_squares_ && (before == 0 || 2 * values < before)) lay_square(list, false);
        }
    }

    // The solution for the first `count` of `work_`, of which `label` is the place of the label's.
    RowStep<double> solve(int32_t id, int64_t count, int64_t label, double skip) const {
        const double A = std::max(least_diagonal, diagonal(id));
        const RowProblem<double> problem{
            work_.scores.data(), work_.coefficients.data(), count, padded<double>(count), label, A, cost(id), skip};
        return units<double>().solve_row[int(problem_.formulation)](problem, work_.others.data(), work_.change.data());
    }
    // The margin of `solve_row` is one for all classes.
    double shifted(int32_t id, int32_t y, double score) const {
        return y == label(id) ? score : score + delta(id, y) - 1;
    }
    RowStep<double> solve_own(int32_t id, double skip) const {
        const auto& vectors = members_[std::size_t(id)].vectors;
        const int64_t lanes = padded<double>(int64_t(vectors.size()));
        for (std::size_t n = 0; n < vectors.size(); ++n) {
            const Vector& v = vectors[n];
            work_.scores.data()[n] = shifted(id, v.label, score_of(id, v));
            work_.coefficients.data()[n] = v.beta;
        }
        for (int64_t n = int64_t(vectors.size()); n < lanes; ++n)
            work_.scores.data()[n] = work_.coefficients.data()[n] = 0;
        return solve(id, int64_t(vectors.size()), 0, skip);
    }
    RowStep<double> solve_all(int32_t id, const double* scores, double skip) const {
        const int64_t classes = problem_.classes;
        for (int64_t y = 0; y < classes; ++y) work_.scores.data()[y] = shifted(id, int32_t(y), scores[y]);
        std::fill_n(work_.coefficients.data(), padded<double>(classes), 0.0);
        for (const Vector& v : members_[std::size_t(id)].vectors) work_.coefficients.data()[v.label] = v.beta;
        return solve(id, classes, label(id), skip);
    }
    double violation_by(int32_t id, const double* scores) const {
        return solve_all(id, scores_of(scores, id), std::numeric_limits<double>::infinity()).violation;
    }

    // Where it violates optimality: the classes that the solution of its row has coefficients for.
    bool take_up(int32_t id, const double* scores) {
        if (cost(id) <= 0 || !solve_all(id, scores, tau_).moved) return false;
        ++counters_.operations[std::size_t(Operation::process_old)];
        if (!is_member(id)) add_vector(id, label(id), scores[label(id)]);
        for (int32_t y = 0; y < problem_.classes; ++y)
            if (work_.coefficients.data()[y] + work_.change.data()[y] != 0 && !find(id, y))
                add_vector(id, y, scores[y]);
        return true;
    }
    void watch(int32_t id, const double* scores) {
        int32_t rival = -1;
        for (int32_t y = 0; y < problem_.classes; ++y)
            if (y != label(id) && (rival < 0 || delta(id, y) + scores[y] > delta(id, rival) + scores[rival])) rival = y;
        add_vector(id, label(id), scores[label(id)]);
        add_vector(id, rival, scores[rival]);
    }

    bool step(int32_t id, double level) {
        ++counters_.operations[std::size_t(Operation::optimize)];
        auto& vectors = members_[std::size_t(id)].vectors;
        if (problem_.formulation == Formulation::crammer_singer) {
            const double found = own_violation(id);
            if (!(found > level)) return false;
            if (!std::isfinite(found)) throw NotFinite();
            if (vectors.size() == 2) return step_on_two(id, vectors[0], vectors[1]);
        }
        if (!solve_own(id, level).moved) return false;
        double others = 0;
        for (std::size_t n = 1; n < vectors.size(); ++n) {
            double beta = std::min(0.0, vectors[n].beta + work_.change.data()[n]);
            if (problem_.formulation == Formulation::weston_watkins) beta = settled(beta, -cost(id));
            others += set(id, vectors[n], beta);
        }
        double own = -others;  // so that all vanish together in spite of rounding
        if (problem_.formulation == Formulation::crammer_singer) own = std::min(settled(own, cost(id)), cost(id));
        set(id, vectors.front(), own);
        ++counters_.steps;
        return true;
    }
    // The same in closed form: [larank] (10) and (11).
    bool step_on_two(int32_t id, Vector& own, Vector& other) {
        const double excess = delta(id, other.label) + score_of(id, other) - score_of(id, own);
        const double free = excess / (2 * std::max(least_diagonal, diagonal(id)));
        const double beta = settled(std::clamp(own.beta + free, 0.0, cost(id)), cost(id));
        set(id, other, -beta);
        set(id, own, beta);
        ++counters_.steps;
        return true;
    }
    // By the example's own classes, for Crammer-Singer, [sdm] (6).
    double own_violation(int32_t id) const {
        const auto& vectors = members_[std::size_t(id)].vectors;
        const double own = score_of(id, vectors.front());
        double most = 0, least = vectors.front().beta < cost(id) ? 0 : std::numeric_limits<double>::infinity();
        for (std::size_t n = 1; n < vectors.size(); ++n) {
            const double excess = delta(id, vectors[n].label) + score_of(id, vectors[n]) - own;
            most = std::max(most, excess);
            if (vectors[n].beta < 0) least = std::min(least, excess);
        }
        return most - least;
    }
    static double settled(double beta, double bound) {
        return std::abs(beta - bound) <= at_bound * std::abs(bound) ? bound : beta;
    }
    double set(int32_t id, Vector& v, double beta) {
        const double change = beta - v.beta;
        if (change == 0) return beta;
        SharedList<T>& list = lists_[std::size_t(v.label)];
        v.beta = beta;
        if (is_dense_) {
            units<T>().add_row_values(row(id), change, problem_.examples, all_scores_of(v.label));
        } else {
            list.set_coefficient(v.place, beta);
            list.follow(v.place, change, row(id));
        }
        return beta;
    }

    double largest_violation() const {
        double largest = 0;
        for (const int32_t id : present_) largest = std::max(largest, violation(id));
        return largest;
    }
    double score_of(int32_t id, const Vector& v) const {
        return is_dense_ ? all_scores_of(v.label)[id] : lists_[std::size_t(v.label)].score(v.place);
    }
    double violation(int32_t id) const {
        if (problem_.formulation == Formulation::crammer_singer) return own_violation(id);
        return solve_own(id, std::numeric_limits<double>::infinity()).violation;
    }
    bool begin_level() {
        while (true) {
            level_ = std::max(level_, tau_);
            sweep_.clear();
            for (std::size_t n = 0; n < present_.size(); ++n) {
                fetch_ahead(n);
                if (violation(present_[n]) > level_) sweep_.push_back(present_[n]);
            }
            is_sweeping_ = int64_t(sweep_.size()) * rest_share > support_patterns();
            if (is_sweeping_) return true;
            is_sweeping_ = level_ > tau_;
            if (!is_sweeping_) return false;
            level_ *= fall_of_level;
        }
    }
    // What the members after the n-th are read by, from all over memory.
    void fetch_ahead(std::size_t n) const {
        constexpr std::size_t of_vectors = 6, of_member = 12;
        if (n + of_member >= present_.size()) return;
        prefetch(&members_[std::size_t(present_[n + of_member])]);
        prefetch(members_[std::size_t(present_[n + of_vectors])].vectors.data());
    }
    void sweep() {
        constexpr std::size_t ahead = 2;
        moved_.clear();
        for (std::size_t n = 0; n < sweep_.size(); ++n) {
            if (!is_dense_ && n + ahead < sweep_.size())
                for (const Vector& v : members_[std::size_t(sweep_[n + ahead])].vectors)
                    lists_[std::size_t(v.label)].prefetch_row(v.place);
            if (step(sweep_[n], level_)) moved_.push_back(sweep_[n]);
        }
    }

    // Moves on are due after some sweeps, and after as much work as they take.
    void mark() {
        if (is_dense_) return void(visits_before_move_ = std::numeric_limits<int64_t>::max());
        int64_t values = 0;
        for (SharedList<T>& list : lists_) list.mark(), values += list.size() * list.size();
        visits_before_move_ = std::max(sweeps_before_move * support_patterns(), values / values_of_a_visit);
    }

    // Steps zigzag where kernel values are badly conditioned. What they have come to since the mark, d, is a better
    // direction than that of any of them. The dual along it is known without kernel values:
    //
    //   D(beta + t d) = D(beta) + t <g, d> - t^2 / 2 <d, K d>,   g_i(y) = -Delta(y_i, y) - S(x_i, y),
    //
    // where K d is what scores have changed by. Each pattern goes to the largest value, t = <g, d> / <d, K d>, or until
    // one of its coefficients meets a bound. That change e is feasible, and so is every part of it; with t' = <g, e> /
    // <e, K e> the part min(1, t') has the largest dual. As <g, e> > 0 is asked for, the dual rises.
    bool move_on() {
        double slope = 0, bend = 0;
        for (const int32_t id : present_)
            for (const Vector& v : members_[std::size_t(id)].vectors) {
                const SharedList<T>& list = lists_[std::size_t(v.label)];
                slope += list.change_since(v.place) * gradient(id, v);
                bend += list.change_since(v.place) * list.raised_since(v.place);
            }
        const bool is_rising = slope > 0 && bend > 0 && set_changes(slope / bend) && take_changes();
        moves_ += is_rising;
        mark();
        return is_rising;
    }
    double gradient(int32_t id, const Vector& v) const {
        return -delta(id, v.label) - lists_[std::size_t(v.label)].score(v.place);
    }
    // Of all coefficients: `length` times the way since the mark, or to the bound of their pattern.
    bool set_changes(double length) {
        for (const int32_t id : present_) {
            const auto& vectors = members_[std::size_t(id)].vectors;
            double reach = length;
            for (const Vector& v : vectors) {
                const double way = lists_[std::size_t(v.label)].change_since(v.place);
                if (way != 0) reach = std::min(reach, (bound(id, v.label, way > 0) - v.beta) / way);
            }
            for (const Vector& v : vectors) {
                SharedList<T>& list = lists_[std::size_t(v.label)];
                list.set_change(v.place, std::max(0.0, reach) * list.change_since(v.place));
            }
        }
        return std::isfinite(length);
    }
    double bound(int32_t id, int32_t y, bool is_upper) const {
        constexpr double none = std::numeric_limits<double>::infinity();
        const bool is_summed = problem_.formulation == Formulation::weston_watkins;
        if (y == label(id)) return is_upper ? (is_summed ? none : cost(id)) : 0;
        return is_upper ? 0 : (is_summed ? -cost(id) : -none);
    }
    bool take_changes() {
        double slope = 0, bend = 0;
        for (SharedList<T>& list : lists_) list.raise(problem_.matrix, problem_.examples);
        for (const int32_t id : present_)
            for (const Vector& v : members_[std::size_t(id)].vectors) {
                const SharedList<T>& list = lists_[std::size_t(v.label)];
                slope += list.change(v.place) * gradient(id, v);
                bend += list.change(v.place) * list.raised(v.place);
            }
        if (!(slope > 0 && bend > 0)) return false;
        const double share = std::min(1.0, slope / bend);
        for (const int32_t id : present_) change_own(id, share);
        for (SharedList<T>& list : lists_) list.add_raised(share);
        return true;
    }
    void change_own(int32_t id, double share) {
        auto& vectors = members_[std::size_t(id)].vectors;
        double others = 0;
        for (std::size_t n = vectors.size(); n-- > 0;) {
            Vector& v = vectors[n];
            SharedList<T>& list = lists_[std::size_t(v.label)];
            const double beta = v.beta + share * list.change(v.place);
            v.beta = n == 0 ? -others : std::abs(beta) <= at_bound * cost(id) ? 0 : std::min(0.0, beta);
            if (problem_.formulation == Formulation::weston_watkins && n > 0) v.beta = settled(v.beta, -cost(id));
            if (problem_.formulation == Formulation::crammer_singer && n == 0)
                v.beta = std::min(settled(v.beta, cost(id)), cost(id));
            list.set_coefficient(v.place, v.beta);
            others += v.beta;
        }
    }

    static void add_row(const T* k, double beta, int64_t count, float* sums) {
        if constexpr (std::is_same_v<T, float>) units<T>().add_row_in_type(k, T(beta), count, sums);
    }
    static void add_row(const T* k, double beta, int64_t count, double* sums) {
        units<T>().add_row_values(k, beta, count, sums);
    }

    // Of all coefficients, where it is not zero.
    template <class Function>
    void add_terms(Function value, std::vector<Term>& terms) const {
        for (const int32_t id : present_)
            for (const Vector& v : members_[std::size_t(id)].vectors)
                if (value(v) != 0) terms.push_back({id, v.label, value(v)});
    }
    std::vector<Term> all_terms() const {
        std::vector<Term> terms;
        add_terms([](const Vector& v) { return v.beta; }, terms);
        return terms;
    }
    // What sums of some terms in the precision of the matrix could be wrong by: large ones of both signs leave little
    // of their sum.
    static double rounding_of(const std::vector<Term>& terms) {
        double largest = 0;
        for (const Term& term : terms) largest = std::max(largest, std::abs(term.value));
        return rounding_of_sums * double(std::numeric_limits<T>::epsilon()) * largest;
    }

    // Adds to the scores of the examples from `first` to `last`; coarsely, some terms at a time are summed up in the
    // precision of the matrix.
    void sum_up(const std::vector<Term>& terms, bool is_fine, int64_t first, int64_t last, double* scores) const {
        constexpr int64_t width = 256;
        constexpr std::size_t terms_at_once = 320;
        const std::size_t values = std::size_t(problem_.classes * width);
        std::vector<double> sums(values);
        std::vector<T> some(values);
        for (int64_t at = first; at < last; at += width) {
            const int64_t count = std::min(width, last - at);
            std::fill(sums.begin(), sums.end(), 0.0);
            for (std::size_t n = 0; is_fine && n < terms.size(); ++n) add_term(terms, n, at, count, width, sums.data());
            for (std::size_t n = 0; !is_fine && n < terms.size(); n += terms_at_once) {
                std::fill(some.begin(), some.end(), T(0));
                const std::size_t end = std::min(terms.size(), n + terms_at_once);
                for (std::size_t m = n; m < end; ++m) add_term(terms, m, at, count, width, some.data());
                for (std::size_t v = 0; v < values; ++v) sums[v] += double(some[v]);
            }
            for (int64_t j = 0; j < count; ++j)
                for (int64_t y = 0; y < problem_.classes; ++y)
                    scores[(at + j) * problem_.classes + y] += sums[std::size_t(y * width + j)];
        }
    }
    template <class Sum>
    void add_term(const std::vector<Term>& terms, std::size_t n, int64_t at, int64_t count, int64_t width,
                  Sum* sums) const {
        constexpr std::size_t ahead = 5;
        constexpr int64_t line = 64 / int64_t(sizeof(T));
        if (n + ahead < terms.size() && terms[n + ahead].id != terms[n + ahead - 1].id)
            for (int64_t j = 0; j < count; j += line) prefetch(row(terms[n + ahead].id) + at + j);
        add_row(row(terms[n].id) + at, terms[n].value, count, sums + terms[n].label * width);
    }

    // Where a convex function is smallest, by golden section.
    template <class Function>
    static double lowest(Function function, double low, double high, double precision) {
        const double golden = (std::sqrt(5.0) - 1) / 2;
        double left = high - golden * (high - low), right = low + golden * (high - low);
        double at_left = function(left), at_right = function(right);
        while (high - low > precision) {
            if (at_left < at_right) {
                high = right, right = left, at_right = at_left;
                left = high - golden * (high - low), at_left = function(left);
            } else {
                low = left, left = right, at_left = at_right;
                right = low + golden * (high - low), at_right = function(right);
            }
        }
        return at_left < at_right ? left : right;
    }

    SharedProblem<T> problem_;
    int64_t memory_limit_;
    std::vector<Member> members_;   // of all examples
    std::vector<int32_t> present_;  // those that are members
    std::vector<SharedList<T>> lists_;
    std::vector<double> costs_;
    LargeVector<double> all_scores_;  // [classes][examples], while they are kept
    std::vector<Term> terms_, gone_;  // of the look, and what it is to take back of coefficients that are no more
    bool is_fine_ = false, is_afresh_ = false;
    double rounding_ = 0;  // of the scores of the last look
    mutable Work work_;
    double tau_ = 0, level_ = 0;
    std::vector<int32_t> sweep_, moved_;
    bool is_sweeping_ = false, is_dense_ = true, keeps_squares_ = true;
    int64_t vectors_ = 0, moves_ = 0, visits_before_move_ = 0, values_in_squares_ = 0;
    StepCounters counters_;
};

}  // namespace larank
