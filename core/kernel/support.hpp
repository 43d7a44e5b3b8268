// The support table: the patterns that have coefficients, and which coefficients they have.
//
// A support vector is a pair (x_i, y) whose coefficient beta_i^y is not zero, a support pattern an x_i that appears in
// one [larank] section 3. A pattern has a slot, its column in every row of kernel values; slots of patterns that leave
// are used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "memory/snapshot.hpp"
#include "training/random.hpp"

namespace larank {

struct SupportVector {
    int32_t label;
    int32_t place;  // where its class keeps it, in machines that store scores
    double beta;

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(label, place, beta);
    }
};

struct Pattern {
    int64_t id = -1;  // its number in the stream of examples
    int32_t label = 0;
    uint32_t birth = 0;   // its number among all that have become patterns
    double cost = 0;      // C of this example
    double diagonal = 0;  // k(x_i, x_i)
    int32_t position = -1;
    std::vector<SupportVector> vectors;

    // Whether any coefficient is not zero; in the middle of things all may be.
    bool is_support() const {
        return std::any_of(vectors.begin(), vectors.end(), [](const SupportVector& v) { return v.beta != 0; });
    }

    SupportVector* find(int32_t y) {
        for (SupportVector& v : vectors)
            if (v.label == y) return &v;
        return nullptr;
    }

    // Its position is where `SupportTable` finds it.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(id, label, birth, cost, diagonal, vectors);
    }
};

class SupportTable {
  public:
    int32_t add(int64_t id, int32_t label, double cost, double diagonal) {
        int32_t slot = int32_t(patterns_.size());
        if (free_.empty()) {
            patterns_.emplace_back();
        } else {
            slot = free_.back();
            free_.pop_back();
        }
        Pattern& p = patterns_[std::size_t(slot)];
        p.id = id, p.label = label, p.cost = cost, p.diagonal = diagonal, p.position = int32_t(present_.size());
        p.birth = births_++;
        present_.push_back(slot);
        newborn_.push_back(slot);
        slot_of_[id] = slot;
        return slot;
    }

    Pattern& operator[](int32_t slot) { return patterns_[std::size_t(slot)]; }
    const Pattern& operator[](int32_t slot) const { return patterns_[std::size_t(slot)]; }
    // The coefficients of all support vectors, and back to them; no vector may have come or gone in between.
    void remember() {
        remembered_.clear();
        for (const int32_t slot : present_)
            for (const SupportVector& v : patterns_[std::size_t(slot)].vectors) remembered_.push_back(v.beta);
    }
    void go_back() {
        std::size_t n = 0;
        for (const int32_t slot : present_)
            for (SupportVector& v : patterns_[std::size_t(slot)].vectors) v.beta = remembered_[n++];
    }

    // What was remembered, and what is, change places.
    void swap_remembered() {
        std::size_t n = 0;
        for (const int32_t slot : present_)
            for (SupportVector& v : patterns_[std::size_t(slot)].vectors) std::swap(v.beta, remembered_[n++]);
    }

    // `costs` has an entry for every id.
    void set_costs(const double* costs) {
        for (const int32_t slot : present_) patterns_[std::size_t(slot)].cost = costs[patterns_[std::size_t(slot)].id];
    }

    // (x_i, y) joins with coefficient zero.
    void add_vector(int32_t slot, int32_t y, int32_t place) {
        patterns_[std::size_t(slot)].vectors.push_back({y, place, 0.0});
        ++vectors_;
    }

    // Support vectors whose coefficient is zero leave, and with the last of them the pattern. `leaves` is told of each;
    // `stays` may say that one does all the same.
    template <class Leaves>
    void remove_zeros(int32_t slot, Leaves leaves) {
        remove_zeros(slot, leaves, [](const SupportVector&) { return false; });
    }
    template <class Leaves, class Stays>
    void remove_zeros(int32_t slot, Leaves leaves, Stays stays) {
        auto& vectors = patterns_[std::size_t(slot)].vectors;
        for (std::size_t n = 0; n < vectors.size();) {
            if (vectors[n].beta != 0 || stays(vectors[n])) {
                ++n;
                continue;
            }
            leaves(vectors[n]);
            vectors[n] = vectors.back();
            vectors.pop_back();
            --vectors_;
        }
        if (vectors.empty()) remove(slot);
    }

    void remove(int32_t slot) {
        Pattern& p = patterns_[std::size_t(slot)];
        slot_of_.erase(p.id);
        const int32_t last = present_.back();
        present_[std::size_t(p.position)] = last;
        patterns_[std::size_t(last)].position = p.position;
        present_.pop_back();
        p.position = -1;
        p.vectors.clear();
        free_.push_back(slot);
    }

    bool contains(int32_t slot) const { return patterns_[std::size_t(slot)].position >= 0; }
    int32_t slot_of(int64_t id) const {  // -1 if it is no support pattern
        const auto found = slot_of_.find(id);
        return found == slot_of_.end() ? -1 : found->second;
    }

    // The patterns that have come since the last call of `forget_newborn` and are still here.
    std::vector<int32_t> newborn() const {
        std::vector<int32_t> slots;
        for (const int32_t slot : newborn_)
            if (contains(slot)) slots.push_back(slot);
        std::sort(slots.begin(), slots.end());
        slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
        return slots;
    }
    void forget_newborn() { newborn_.clear(); }

    int32_t pick(Random& random) const { return present_[random.below(uint32_t(present_.size()))]; }
    const std::vector<int32_t>& present() const { return present_; }
    // The same, the oldest first.
    std::vector<int32_t> in_order_of_birth() const {
        std::vector<int32_t> slots = present_;
        std::sort(slots.begin(), slots.end(), [this](int32_t a, int32_t b) {
            return patterns_[std::size_t(a)].birth < patterns_[std::size_t(b)].birth;
        });
        return slots;
    }
    int64_t vectors() const { return vectors_; }
    int64_t size() const { return int64_t(present_.size()); }
    int64_t slots() const { return int64_t(patterns_.size()); }  // those in use and those free

    int64_t bytes() const {
        constexpr int64_t map_entry = 48;
        return slots() * int64_t(sizeof(Pattern) + 4 * sizeof(SupportVector)) + size() * map_entry;
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(patterns_, present_, free_, births_);
        if constexpr (Snapshot::reads) find_all();
    }
    // Calls check(slot, pattern, vector) for every support vector.
    template <class Check>
    void each_vector(Check check) const {
        for (const int32_t slot : present_)
            for (const SupportVector& v : patterns_[std::size_t(slot)].vectors) check(slot, (*this)[slot], v);
    }

  private:
    // What follows from patterns, and from who is present.
    void find_all() {
        must_hold(slots() < INT32_MAX && size() + int64_t(free_.size()) == slots(), "slots are lost");
        must_hold(are_within(present_, 0, slots()) && are_within(free_, 0, slots()), "a slot is out of range");
        vectors_ = 0;
        newborn_.clear();
        slot_of_.clear();
        for (const int32_t slot : present_) {
            Pattern& p = patterns_[std::size_t(slot)];
            must_hold(p.position < 0, "a slot is in use twice");
            must_hold(p.id >= 0 && p.label >= 0 && slot_of_.emplace(p.id, slot).second, "a pattern makes no sense");
            must_hold(std::isfinite(p.diagonal), "a kernel value is not finite");
            p.position = int32_t(slot_of_.size()) - 1;
            vectors_ += int64_t(p.vectors.size());
        }
        std::vector<bool> is_free(patterns_.size());
        for (const int32_t slot : free_) {
            must_hold(!contains(slot) && !is_free[std::size_t(slot)], "a slot is in use and free");
            must_hold((*this)[slot].vectors.empty(), "a free slot has coefficients");
            is_free[std::size_t(slot)] = true;
        }
        each_vector([](int32_t, const Pattern&, const SupportVector& v) {
            must_hold(std::isfinite(v.beta), "a coefficient is not finite");
        });
    }

    std::vector<Pattern> patterns_;
    std::vector<int32_t> present_;  // the slots in use, in no order
    std::vector<int32_t> free_, newborn_;
    std::unordered_map<int64_t, int32_t> slot_of_;
    std::vector<double> remembered_;
    int64_t vectors_ = 0;
    uint32_t births_ = 0;
};

// The patterns and their coefficients as arrays, in the order of the slots: what a model is made of.
struct SupportArrays {
    std::vector<int32_t> slots;
    std::vector<int64_t> ids;
    std::vector<int32_t> labels;
    std::vector<double> costs, diagonal;
    std::vector<double> coefficients;  // those of pattern n from starts[n] to starts[n + 1]
    std::vector<int32_t> columns;      // whose they are: classes or problems
    std::vector<int64_t> starts{0};

    int64_t size() const { return int64_t(ids.size()); }
    void put(int32_t column, double coefficient) {
        columns.push_back(column);
        coefficients.push_back(coefficient);
    }
    // What was put since the last time belongs to this pattern; without coefficients it is left out.
    void end_pattern(int32_t slot, const Pattern& p) {
        if (int64_t(coefficients.size()) == starts.back()) return;
        slots.push_back(slot), ids.push_back(p.id), labels.push_back(p.label);
        costs.push_back(p.cost), diagonal.push_back(p.diagonal);
        starts.push_back(int64_t(coefficients.size()));
    }
};

// `put(arrays, slot, pattern)` puts the coefficients of one pattern.
template <class Put>
SupportArrays arrays_of(const SupportTable& table, Put put) {
    SupportArrays arrays;
    for (int32_t slot = 0; slot < table.slots(); ++slot) {
        if (!table.contains(slot)) continue;
        put(arrays, slot, table[slot]);
        arrays.end_pattern(slot, table[slot]);
    }
    return arrays;
}

}  // namespace larank
