// The non-zero coefficients a_i^m, a short list per example.
//
// Most examples have none or two of them whatever the number of classes, so lists live in pools, in blocks of 2, 4, 8,
// ... entries; a list that outgrows its block moves to the next size and leaves its block to a free list. Threads that
// change the lists of different examples at the same time take blocks from pools of their own.
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

    explicit Coefficients(int64_t examples, int64_t pools = 1) : lists_(std::size_t(examples)) {
        pools_.resize(std::size_t(pools));
    }
    // The copy has its lists side by side.
    Coefficients(const Coefficients& other) : Coefficients(other.examples(), int64_t(other.pools_.size())) {
        int64_t room = 0;
        for (const List& list : other.lists_) room += list.count ? capacity(list.size) : 0;
        pools_[0].reserve(room);
        for (int64_t i = 0; i < examples(); ++i) assign(i, other.begin(i), other.count(i));
    }
    Coefficients(Coefficients&&) = default;
    Coefficients& operator=(Coefficients&&) = default;
    Coefficients& operator=(const Coefficients& other) { return *this = Coefficients(other); }

    int64_t examples() const { return int64_t(lists_.size()); }
    int64_t count(int64_t i) const { return lists_[std::size_t(i)].count; }
    const Entry* begin(int64_t i) const { return lists_[std::size_t(i)].start; }
    const Entry* end(int64_t i) const { return begin(i) + count(i); }

    struct Entries {
        const Entry *first, *last;
        const Entry* begin() const { return first; }
        const Entry* end() const { return last; }
    };
    Entries of(int64_t i) const { return {begin(i), end(i)}; }

    // Room for `count` entries of example i. The former ones stay as long as there are not more than before.
    Entry* resize(int64_t i, int64_t count, int64_t pool = 0) {
        List& list = lists_[std::size_t(i)];
        if (count > capacity(list.size)) {
            Pool& from = pools_[std::size_t(pool)];
            if (list.size) from.release(list.start, list.size);
            while (capacity(list.size) < count) ++list.size;
            list.start = from.take(list.size);
        }
        list.count = int32_t(count);
        return list.start;
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
    void assign(int64_t i, const Entry* list, int64_t count, int64_t pool = 0) {
        std::copy(list, list + count, resize(i, count, pool));
    }

    void prefetch_list(int64_t i) const { prefetch(lists_.data() + i); }
    void prefetch_entries(int64_t i) const {
        if (count(i) == 0) return;
        prefetch(begin(i));
        prefetch(end(i) - 1);
    }

  private:
    struct List {
        Entry* start = nullptr;
        int32_t count = 0;
        int32_t size = 0;  // capacity: 0 for none, else 2^size
    };
    static int64_t capacity(int32_t size) { return size ? int64_t{1} << size : 0; }

    // Blocks keep their place: a pool that is used up goes on in a piece of memory as large as all before it.
    struct alignas(cache_lines) Pool {
        void reserve(int64_t entries) {
            if (entries <= left) return;
            pieces.emplace_back(std::size_t(std::max({entries, total, int64_t{256}})));
            left = int64_t(pieces.back().size());
            total += left;
        }
        Entry* take(int32_t size) {
            std::vector<Entry*>& spare = free[size];
            if (spare.empty()) {
                reserve(capacity(size));
                left -= capacity(size);
                return pieces.back().data() + (int64_t(pieces.back().size()) - left - capacity(size));
            }
            Entry* const start = spare.back();
            spare.pop_back();
            return start;
        }
        void release(Entry* start, int32_t size) { free[size].push_back(start); }

        std::vector<LargeVector<Entry>> pieces;
        int64_t left = 0, total = 0;  // entries of the last piece that no block has; of all pieces
        std::vector<Entry*> free[32];
    };

    LargeVector<List> lists_;
    std::vector<Pool> pools_;
};

// The lists of some examples as they were before they changed for the first time.
template <class T>
class alignas(cache_lines) CoefficientJournal {
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
