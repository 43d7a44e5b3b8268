// A snapshot: the state of a solver as bytes, out of one session and into another that goes on from there.
//
// What can be in one has `template <class Snapshot> void exchange(Snapshot& snapshot)`, which names its fields in turn.
// A SnapshotWriter takes them down and a SnapshotReader puts them back, so that the two cannot differ. What is read is
// not trusted: lengths are compared with what is left of the bytes, no number may be NaN, and a class that reads
// requires that its fields make sense together before anything uses them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace larank {

inline void must_hold(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("the saved state is damaged: ") + what);
}

// Whether all numbers are from `first` up to but not including `end`.
template <class Numbers>
bool are_within(const Numbers& numbers, int64_t first, int64_t end) {
    for (const auto number : numbers)
        if (int64_t(number) < first || int64_t(number) >= end) return false;
    return true;
}
template <class Numbers>
bool are_finite(const Numbers& numbers) {
    for (const auto number : numbers)
        if (!std::isfinite(number)) return false;
    return true;
}

template <class Field>
constexpr bool is_plain = std::is_arithmetic_v<Field> || std::is_enum_v<Field>;

template <class Field>
struct is_sequence : std::false_type {};
template <class Item, class Allocator>
struct is_sequence<std::vector<Item, Allocator>> : std::true_type {};

template <class Field>
struct is_array : std::false_type {};
template <class Item, std::size_t size>
struct is_array<std::array<Item, size>> : std::true_type {};

class SnapshotWriter {
  public:
    static constexpr bool reads = false;

    template <class... Fields>
    void operator()(Fields&... fields) {
        (write(fields), ...);
    }
    std::vector<uint8_t> take() { return std::move(bytes_); }

  private:
    template <class Field>
    void write(Field& field) {
        if constexpr (is_plain<Field>) {
            append(&field, sizeof(Field));
        } else if constexpr (is_array<Field>::value) {
            for (auto& item : field) write(item);
        } else if constexpr (is_sequence<Field>::value) {
            using Item = typename Field::value_type;
            uint64_t size = field.size();
            write(size);
            if constexpr (is_plain<Item>)
                append(field.data(), field.size() * sizeof(Item));
            else
                for (Item& item : field) write(item);
        } else {
            field.exchange(*this);
        }
    }
    void append(const void* from, std::size_t count) {
        const auto* const first = static_cast<const uint8_t*>(from);
        bytes_.insert(bytes_.end(), first, first + count);
    }

    std::vector<uint8_t> bytes_;
};

class SnapshotReader {
  public:
    static constexpr bool reads = true;

    SnapshotReader(const uint8_t* bytes, std::size_t count) : at_(bytes), left_(count) {}

    template <class... Fields>
    void operator()(Fields&... fields) {
        (read(fields), ...);
    }
    void end() const { must_hold(left_ == 0, "there is more of it than the session has a place for"); }

  private:
    template <class Field>
    void read(Field& field) {
        if constexpr (std::is_same_v<Field, bool>) {
            uint8_t byte = 0;
            copy(&byte, 1);
            field = byte != 0;
        } else if constexpr (is_plain<Field>) {
            copy(&field, sizeof(Field));
            if constexpr (std::is_floating_point_v<Field>) must_hold(!std::isnan(field), "a number is NaN");
        } else if constexpr (is_array<Field>::value) {
            for (auto& item : field) read(item);
        } else if constexpr (is_sequence<Field>::value) {
            read_sequence(field);
        } else {
            field.exchange(*this);
        }
    }

    template <class Sequence>
    void read_sequence(Sequence& sequence) {
        using Item = typename Sequence::value_type;
        uint64_t size = 0;
        read(size);
        must_hold(size <= left_ / (is_plain<Item> ? sizeof(Item) : 1), "it is cut short");
        sequence.clear();
        if constexpr (is_plain<Item>) {
            sequence.resize(std::size_t(size));
            copy(sequence.data(), sequence.size() * sizeof(Item));
            if constexpr (std::is_floating_point_v<Item>)
                for (const Item item : sequence) must_hold(!std::isnan(item), "a number is NaN");
        } else {
            for (uint64_t n = 0; n < size; ++n) read(sequence.emplace_back());  // memory in proportion to the bytes
        }
    }

    void copy(void* to, std::size_t count) {
        must_hold(count <= left_, "it is cut short");
        if (count) std::memcpy(to, at_, count);
        at_ += count;
        left_ -= count;
    }

    const uint8_t* at_;
    std::size_t left_;
};

}  // namespace larank
