// The non-zero coefficients a_i^m, a short list per example.
//
// Most examples have none or two of them whatever the number of classes, so lists live in one pool, in blocks of 2, 4,
// 8, ... entries; a list that outgrows its block moves to the next size and leaves its block to the free list.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "memory/aligned.hpp"
#include "memory/prefetch.hpp"

namespace larank {

template <class T>
class Coefficients {
  public:
    struct Entry {
        T value;
        int32_t label;

        template <class Snapshot>
        void exchange(Snapshot& snapshot) {
            snapshot(value, label);
        }
    };

    explicit Coefficients(int64_t examples) : lists_(std::size_t(examples)) {}

    int64_t examples() const { return int64_t(lists_.size()); }
    int64_t count(int64_t i) const { return lists_[std::size_t(i)].count; }
    const Entry* begin(int64_t i) const { return pool_.data() + lists_[std::size_t(i)].start; }
    const Entry* end(int64_t i) const { return begin(i) + count(i); }

    // Room for `count` entries of example i. The former ones stay as long as there are not more than before.
    Entry* resize(int64_t i, int64_t count) {
        List& list = lists_[std::size_t(i)];
        if (count > capacity(list.size)) {
            release(list);
            while (capacity(list.size) < count) ++list.size;
            list.start = take(list.size);
        }
        list.count = int32_t(count);
        return pool_.data() + list.start;
    }

    // Whether example i has the same list in both.
    bool equals(const Coefficients& other, int64_t i) const {
        return std::equal(begin(i), end(i), other.begin(i), other.end(i), [](const Entry& left, const Entry& right) {
            return left.label == right.label && left.value == right.value;
        });
    }

    // List by list, wherever they lie.
    template <class Snapshot>
    void exchange(Snapshot& snapshot) {
        std::vector<Entry> list;
        for (int64_t i = 0; i < examples(); ++i) {
            list.assign(begin(i), end(i));
            snapshot(list);
            if constexpr (Snapshot::reads) std::copy(list.begin(), list.end(), resize(i, int64_t(list.size())));
        }
    }

    // Example i gets the entries of the list, wherever they are from.
    void assign(int64_t i, const Entry* list, int64_t count) { std::copy(list, list + count, resize(i, count)); }

    void prefetch_list(int64_t i) const { prefetch(lists_.data() + i); }
    void prefetch_entries(int64_t i) const {
        if (count(i) == 0) return;
        prefetch(begin(i));
        prefetch(end(i) - 1);
    }

  private:
    struct List {
        int64_t start = 0;
        int32_t count = 0;
        int32_t size = 0;  // capacity: 0 for none, else 2^size
    };
    static int64_t capacity(int32_t size) { return size ? int64_t{1} << size : 0; }

    int64_t take(int32_t size) {
        std::vector<int64_t>& spare = free_[size];
        if (spare.empty()) {
            pool_.resize(pool_.size() + std::size_t(capacity(size)));
            return int64_t(pool_.size()) - capacity(size);
        }
        const int64_t start = spare.back();
        spare.pop_back();
        return start;
    }
    void release(const List& list) {
        if (list.size) free_[list.size].push_back(list.start);
    }

    LargeVector<List> lists_;
    LargeVector<Entry> pool_;
    std::vector<int64_t> free_[32];
};

// The lists of some examples as they were before they changed for the first time.
template <class T>
class CoefficientJournal {
  public:
    using Entry = typename Coefficients<T>::Entry;

    explicit CoefficientJournal(int64_t examples) : is_noted_(std::size_t(examples)) {}

    void note(int64_t i, const Coefficients<T>& coefficients) {
        if (is_noted_[std::size_t(i)]) return;
        is_noted_[std::size_t(i)] = true;
        notes_.push_back({i, int64_t(entries_.size()), coefficients.count(i)});
        entries_.insert(entries_.end(), coefficients.begin(i), coefficients.end(i));
    }
    void clear() {
        for (const Note& note : notes_) is_noted_[std::size_t(note.example)] = false;
        notes_.clear();
        entries_.clear();
    }
    // Calls visit(i, entries, count) for each.
    template <class Visit>
    void each(Visit visit) const {
        for (const Note& note : notes_) visit(note.example, entries_.data() + note.start, note.count);
    }

  private:
    struct Note {
        int64_t example, start, count;
    };
    std::vector<bool> is_noted_;
    std::vector<Note> notes_;
    std::vector<Entry> entries_;
};

}  // namespace larank
