// Strings, and tuples of small numbers, as dense numbers in the order in which they first came.
//
// Both tables use open addressing with linear probing, are at most half full, and compare what they hold: two keys are
// one only if they are equal, whatever their hashes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace larank {

constexpr uint32_t unknown = 0xffffffffu;  // the number of what is not in a table

inline uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}

template <class Word>
uint64_t loaded(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// Tails are read as two words that overlap: a loop over bytes would take longer than all the rest.
inline uint32_t hash_of(std::string_view text) {
    const char* p = text.data();
    std::size_t left = text.size();
    uint64_t hash = mixed(0, left);
    for (; left > 8; left -= 8, p += 8) hash = mixed(hash, loaded<uint64_t>(p));
    if (left >= 4)
        hash = mixed(hash, loaded<uint32_t>(p) << 32 | loaded<uint32_t>(p + left - 4));
    else if (left > 0)
        hash =
            mixed(hash, loaded<uint8_t>(p) << 16 | loaded<uint8_t>(p + left / 2) << 8 | loaded<uint8_t>(p + left - 1));
    return uint32_t(mixed(hash, left));
}

class Dictionary {
  public:
    uint32_t size() const { return uint32_t(ends_.size()); }

    std::string_view operator[](uint32_t number) const {
        const std::size_t start = number ? ends_[number - 1] : 0;
        return {text_.data() + start, ends_[number] - start};
    }

    uint32_t find(std::string_view word) const {
        return slots_.empty() ? unknown : slot_of(word, hash_of(word)).number();
    }

    // The number of the word, which is the next one if it is new.
    uint32_t insert(std::string_view word) {
        if (2 * (ends_.size() + 1) > slots_.size()) grow();
        const uint32_t hash = hash_of(word);
        Slot& slot = const_cast<Slot&>(slot_of(word, hash));
        if (slot.next) return slot.number();
        if (ends_.size() >= unknown / 2) throw std::length_error("more than 2147483647 distinct strings");
        text_.append(word);
        ends_.push_back(text_.size());
        slot = {hash, size()};
        return size() - 1;
    }

    // Forgets all but the first words.
    void truncate(uint32_t count) {
        if (count >= size()) return;
        ends_.resize(count);
        text_.resize(count ? ends_.back() : 0);
        for (Slot& slot : slots_) slot = {};
        for (uint32_t number = 0; number < count; ++number) put({hash_of((*this)[number]), number + 1});
    }

    // All words in one string, and where each ends.
    const std::string& text() const { return text_; }
    const std::vector<std::size_t>& ends() const { return ends_; }

  private:
    struct Slot {
        uint32_t hash = 0, next = 0;                  // one more than the number; zero: free
        uint32_t number() const { return next - 1; }  // of a free slot: `unknown`
    };

    const Slot& slot_of(std::string_view word, uint32_t hash) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash & mask;
        while (slots_[at].next && !(slots_[at].hash == hash && (*this)[slots_[at].number()] == word))
            at = (at + 1) & mask;
        return slots_[at];
    }
    void put(Slot slot) {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = slot.hash & mask;
        while (slots_[at].next) at = (at + 1) & mask;
        slots_[at] = slot;
    }
    void grow() {
        std::vector<Slot> old(std::max<std::size_t>(16, 2 * slots_.size()));
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.next) put(slot);
    }

    std::vector<Slot> slots_;  // a power of two
    std::string text_;
    std::vector<std::size_t> ends_;
};

// Tuples of `width` numbers, each with a number that the caller gives. The tuples stand in the table itself, so that a
// look-up touches memory once.
class TupleTable {
  public:
    explicit TupleTable(std::size_t width) : width_(width), stride_(width + 1), slots_(16 * stride_) {}

    std::size_t size() const { return size_; }

    uint32_t hash(const uint32_t* tuple) const {
        uint64_t hash = 0;
        for (std::size_t k = 0; k < width_; ++k) hash = mixed(hash, tuple[k] + 1u);
        return uint32_t(mixed(hash, 0));
    }

    uint32_t find(const uint32_t* tuple, uint32_t hash) const { return slots_[offset_of(tuple, hash)] - 1; }

    // The number of the tuple, which is `next` if it is new.
    uint32_t insert(const uint32_t* tuple, uint32_t hash, uint32_t next) {
        std::size_t offset = offset_of(tuple, hash);
        if (slots_[offset]) return slots_[offset] - 1;
        if (2 * (size_ + 1) > mask_ + 1) {
            grow();
            offset = offset_of(tuple, hash);
        }
        put(offset, next + 1, tuple);
        ++size_;
        return next;
    }

    // Calls visit(number, tuple) for all of them, in no order.
    template <class Visit>
    void each(const Visit& visit) const {
        for (std::size_t offset = 0; offset < slots_.size(); offset += stride_)
            if (slots_[offset]) visit(slots_[offset] - 1, &slots_[offset + 1]);
    }

  private:
    std::size_t offset_of(const uint32_t* tuple, uint32_t hash) const {
        std::size_t at = hash & mask_;
        while (true) {
            const uint32_t* slot = &slots_[at * stride_];
            if (!slot[0] || std::equal(tuple, tuple + width_, slot + 1)) return at * stride_;
            at = (at + 1) & mask_;
        }
    }
    void put(std::size_t offset, uint32_t next, const uint32_t* tuple) {
        slots_[offset] = next;
        std::copy_n(tuple, width_, &slots_[offset + 1]);
    }
    void grow() {
        std::vector<uint32_t> old(2 * slots_.size());
        old.swap(slots_);
        mask_ = 2 * mask_ + 1;
        for (std::size_t offset = 0; offset < old.size(); offset += stride_)
            if (old[offset]) put(offset_of(&old[offset + 1], hash(&old[offset + 1])), old[offset], &old[offset + 1]);
    }

    std::size_t width_, stride_, mask_ = 15, size_ = 0;
    std::vector<uint32_t> slots_;  // one more than the number, or zero if free; then the tuple
};

}  // namespace larank
