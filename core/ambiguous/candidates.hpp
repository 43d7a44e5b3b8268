// Candidate sets: the labels an example may have, each set kept once and known by its number.
//
// A set also says how many classes there are: those of them that are not in it are the wrong ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/snapshot.hpp"

namespace larank {

// The set y of an example, ascending, with weights v that add up to one; 1 / |y| each in [thesis] (6.5).
struct CandidateSet {
    const int32_t* labels;
    const double* weights;
    int64_t size;
    int64_t classes;  // of which those not in y are wrong

    int64_t wrong() const { return classes - size; }
};

class CandidateSets {
  public:
    // The number of a set. Labels must ascend and weights must be positive; these are made to add up to one.
    int32_t number_of(const int32_t* labels, const double* weights, int64_t size, int64_t classes) {
        check(labels, weights, size, classes);
        const double largest = *std::max_element(weights, weights + size);
        std::vector<double> shares(weights, weights + size);
        double total = 0;
        for (double& share : shares) total += share /= largest;  // the sum of the weights themselves may overflow
        for (double& share : shares)
            if (!((share /= total) >= least_share))
                throw std::invalid_argument("the weights of a candidate set must not differ by more than 1e100 times");
        const std::string key = key_of(labels, shares.data(), size, classes);
        const auto found = numbers_.find(key);
        if (found != numbers_.end()) return found->second;
        const int32_t number = int32_t(classes_.size());
        labels_.insert(labels_.end(), labels, labels + size);
        weights_.insert(weights_.end(), shares.begin(), shares.end());
        starts_.push_back(int64_t(labels_.size()));
        classes_.push_back(classes);
        key_bytes_ += int64_t(key.size()) + map_entry;
        numbers_.emplace(key, number);
        return number;
    }

    CandidateSet operator[](int32_t number) const {
        const auto from = std::size_t(starts_[std::size_t(number)]);
        return {labels_.data() + from, weights_.data() + from, starts_[std::size_t(number) + 1] - int64_t(from),
                classes_[std::size_t(number)]};
    }

    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        snapshot(labels_, weights_, starts_, classes_);
        if constexpr (Snapshot::reads) number_all();
    }

    int64_t size() const { return int64_t(classes_.size()); }
    int64_t bytes() const {
        return int64_t(labels_.capacity() * 4 + weights_.capacity() * 8 + starts_.capacity() * 8 +
                       classes_.capacity() * 8) +
               key_bytes_;
    }

  private:
    // The numbers of sets that were read.
    void number_all() {
        must_hold(starts_.size() == classes_.size() + 1 && starts_.front() == 0 &&
                      starts_.back() == int64_t(labels_.size()) && labels_.size() == weights_.size(),
                  "candidate sets differ in number");
        numbers_.clear();
        for (int32_t number = 0; number < size(); ++number) {
            const int64_t from = starts_[std::size_t(number)], to = starts_[std::size_t(number) + 1];
            must_hold(from < to && to <= starts_.back(), "a candidate set is out of range");
            const CandidateSet set = (*this)[number];
            check(set.labels, set.weights, set.size, set.classes);
            const std::string key = key_of(set.labels, set.weights, set.size, set.classes);
            key_bytes_ += int64_t(key.size()) + map_entry;
            numbers_.emplace(key, number);
        }
    }

    static constexpr int64_t map_entry = 80;
    static constexpr double least_share = 1e-101;

    static void check(const int32_t* labels, const double* weights, int64_t size, int64_t classes) {
        if (size < 1) throw std::invalid_argument("a candidate set must not be empty");
        for (int64_t n = 0; n < size; ++n) {
            if (labels[n] < 0 || labels[n] >= classes || (n && labels[n] <= labels[n - 1]))
                throw std::invalid_argument("the labels of a candidate set must ascend from 0 to classes - 1");
            if (!(weights[n] > 0) || !std::isfinite(weights[n]))
                throw std::invalid_argument("the weights of a candidate set must be finite and positive");
        }
    }

    static std::string key_of(const int32_t* labels, const double* weights, int64_t size, int64_t classes) {
        std::string key(sizeof(int64_t) + std::size_t(size) * (sizeof(int32_t) + sizeof(double)), '\0');
        char* at = key.data();
        std::memcpy(at, &classes, sizeof classes);
        at += sizeof classes;
        std::memcpy(at, labels, std::size_t(size) * sizeof(int32_t));
        at += std::size_t(size) * sizeof(int32_t);
        std::memcpy(at, weights, std::size_t(size) * sizeof(double));
        return key;
    }

    std::vector<int32_t> labels_;
    std::vector<double> weights_;
    std::vector<int64_t> starts_{0};
    std::vector<int64_t> classes_;
    std::unordered_map<std::string, int32_t> numbers_;
    int64_t key_bytes_ = 0;
};

}  // namespace larank
