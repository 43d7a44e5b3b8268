// Which pattern leaves where there may be so many and no more, and what becomes of its coefficients.
//
// Forget::oldest lets the pattern go that was born first, and with it what it adds to the function: for streams that
// drift. Forget::least changes the function as little as it can. The coefficients of pattern i, which are feasible and
// stay as they are, go over to the patterns j nearest to it, so that phi(x_i) is replaced by its projection on them,
//
//   gamma_j^y += a_j beta_i^y,  a minimises r(a) = |phi(x_i) - sum_j a_j phi(x_j)|^2,
//
// and w changes by sum_y (beta_i^y)^2 r(a), the square of its length. What a pattern has inherited, gamma_j, is not
// touched by steps. It is the pattern just born that leaves: it has the fewest coefficients, and where it stays others
// are worn away. If it lies so far from all others that most of it would be lost, the one that adds least to the
// function and to its average over the stream goes instead, its average the same way. Machines of weights keep what a
// pattern adds to them, and lose nothing; there the oldest goes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kernel/steps.hpp"

namespace larank {

enum class Forget { least, oldest };

struct ForgettingOptions {
    int64_t max_patterns = 0;  // 0 for any number
    Forget forget = Forget::least;
};

template <class Machine>
class Forgetting {
  public:
    explicit Forgetting(const ForgettingOptions& options) : options_(options) {}

    // After a new example: lets a pattern go if there are too many.
    void make_room(Steps<Machine>& steps) {
        const SupportTable& table = steps.machine().table();
        if (options_.max_patterns == 0 || table.size() <= options_.max_patterns) return;
        if (options_.forget == Forget::oldest) {
            steps.let_go(oldest(table));
        } else if constexpr (Machine::compares_patterns) {
            Bequest bequest = bequest_of(steps.machine(), table.present().back());  // the one just born
            if (bequest.lost > most_lost) bequest = bequest_of(steps.machine(), least(steps.machine()));
            steps.hand_over(bequest.slot, bequest.heirs, bequest.shares);
        } else {
            steps.retire(oldest(table));
        }
    }

  private:
    // Chosen on noisy streams of ten and fifteen features: 1 heir lost up to a point, 16 gained nothing for their time.
    static constexpr std::size_t most_heirs = 8;
    static constexpr double most_lost = 0.9;  // of the squared length of phi(x_i)
    static constexpr double ridge = 1e-3;     // patterns may lie on top of each other

    struct Bequest {
        int32_t slot = -1;
        std::vector<int32_t> heirs;
        std::vector<double> shares;
        double lost = 1;  // r(a) / k(x_i, x_i)
    };

    static int32_t oldest(const SupportTable& table) {
        return *std::min_element(table.present().begin(), table.present().end(), [&](int32_t a, int32_t b) {
            return int32_t(table[a].birth - table[b].birth) < 0;  // the count of births may have begun anew
        });
    }
    static int32_t least(const Machine& machine) {
        const SupportTable& table = machine.table();
        const auto length = [&](int32_t slot) {
            double squares = 0;
            for (const SupportVector& v : table[slot].vectors)
                for (const double value : {machine.coefficient(v), machine.averaged(v)}) squares += value * value;
            return table[slot].diagonal * squares;
        };
        return *std::min_element(table.present().begin(), table.present().end(),
                                 [&](int32_t a, int32_t b) { return length(a) < length(b); });
    }

    // The patterns nearest to this one in angle, and the shares that minimise what is lost.
    static Bequest bequest_of(Machine& machine, int32_t slot) {
        machine.require(slot);
        const SupportTable& table = machine.table();
        const auto* const kernel = machine.kernel_row(slot);
        std::vector<std::pair<double, int32_t>> nearest;
        for (const int32_t other : table.present()) {
            if (other == slot || !(table[other].diagonal > 0)) continue;
            const double k = double(kernel[other]);
            const std::pair<double, int32_t> found{k * k / table[other].diagonal, other};
            if (nearest.size() == most_heirs) {
                if (found.first <= nearest.back().first) continue;
                nearest.pop_back();
            }
            nearest.insert(std::upper_bound(nearest.begin(), nearest.end(), found, std::greater<>()), found);
        }
        Bequest bequest;
        bequest.slot = slot;
        for (const auto& [cosine, other] : nearest) {
            bequest.heirs.push_back(other);
            bequest.shares.push_back(double(kernel[other]));
        }
        const double length = table[slot].diagonal;
        if (length > 0)
            bequest.lost = std::max(0.0, 1 - project(factor(machine, bequest.heirs), bequest.shares) / length);
        return bequest;
    }

    // The Cholesky factor of the kernel values between some patterns, row by row.
    static std::vector<double> factor(Machine& machine, const std::vector<int32_t>& slots) {
        const std::size_t n = slots.size();
        std::vector<double> L(n * n);
        for (std::size_t i = 0; i < n; ++i) {
            machine.require(slots[i]);
            const auto* const kernel = machine.kernel_row(slots[i]);
            const double diagonal = machine.table()[slots[i]].diagonal;
            for (std::size_t j = 0; j <= i; ++j) {
                double rest = i == j ? (1 + ridge) * diagonal : double(kernel[slots[j]]);
                for (std::size_t m = 0; m < j; ++m) rest -= L[i * n + m] * L[j * n + m];
                L[i * n + j] = i == j ? std::sqrt(std::max(rest, ridge * diagonal)) : rest / L[j * n + j];
            }
        }
        return L;
    }

    // From k to a with L L' a = k. Returns a' k, the squared length of the projection.
    static double project(const std::vector<double>& L, std::vector<double>& a) {
        const std::size_t n = a.size();
        double length = 0;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t m = 0; m < i; ++m) a[i] -= L[i * n + m] * a[m];
            a[i] /= L[i * n + i];
            length += a[i] * a[i];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t m = i + 1; m < n; ++m) a[i] -= L[m * n + i] * a[m];
            a[i] /= L[i * n + i];
        }
        return length;
    }

    ForgettingOptions options_;
};

}  // namespace larank
