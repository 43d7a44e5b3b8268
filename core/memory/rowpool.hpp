// Memory for rows that grow, come and go: slabs of rows of the same room.
//
// Rows taken one by one from the general heap leave holes of every size behind when they grow. Here a row that has
// outgrown its room moves to a slab of larger ones, and a slab that nobody uses any more is given back whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <vector>

#include "memory/aligned.hpp"

namespace larank {

template <class T>
class RowPool {
  public:
    RowPool() = default;
    RowPool(RowPool&&) = default;
    RowPool& operator=(RowPool&&) = default;

    struct Piece {
        T* values = nullptr;
        int64_t room = 0;  // how many values fit
        int32_t slab = -1;
    };

    // Room for at least so many values, not set to anything.
    Piece take(int64_t columns) {
        int32_t number = slab_with_room(columns);
        if (number < 0) {
            number = new_slab(room_for(columns));
            open_[slabs_[std::size_t(number)].room].push_back(number);
        }
        Slab& slab = slabs_[std::size_t(number)];
        T* const values = slab.free.back();
        slab.free.pop_back();
        bytes_ += slab.room * int64_t(sizeof(T));
        return {values, slab.room, number};
    }

    void give_back(const Piece& piece) {
        if (!piece.values) return;
        bytes_ -= piece.room * int64_t(sizeof(T));
        Slab& slab = slabs_[std::size_t(piece.slab)];
        slab.free.push_back(piece.values);
        if (int64_t(slab.free.size()) < slab.rows) {
            if (slab.free.size() == 1) open_[piece.room].push_back(piece.slab);
            return;
        }
        slab = Slab();
        unused_.push_back(piece.slab);
    }

    void clear() { *this = RowPool(); }
    void be_tight() { is_tight_ = true; }
    int64_t bytes() const { return bytes_; }  // of the rows in use

  private:
    static constexpr int64_t largest_slab = int64_t{1} << 22;

    struct Slab {
        Pages<T> memory;
        int64_t rows = 0, room = 0;
        std::vector<T*> free;
    };

    // The smallest rows that are large enough and free; -1 if there are none.
    int32_t slab_with_room(int64_t columns) {
        for (auto at = open_.lower_bound(columns); at != open_.end();) {
            auto& [room, numbers] = *at;
            while (!numbers.empty() && !has_room(numbers.back(), room)) numbers.pop_back();
            if (!numbers.empty()) return numbers.back();
            at = open_.erase(at);
        }
        return -1;
    }

    bool has_room(int32_t number, int64_t room) const {
        const Slab& slab = slabs_[std::size_t(number)];
        return slab.room == room && !slab.free.empty();
    }

    // More than asked for, by half or, where memory is short, by an eighth; in steps of an eighth, so that rows asked
    // for at about the same time share slabs.
    int64_t room_for(int64_t columns) const {
        constexpr int64_t line = 64 / int64_t(sizeof(T));
        const int64_t wanted = columns + (is_tight_ ? columns / 8 : columns / 2);
        int64_t room = 2 * line;
        while (room < wanted) room = (room + room / 8 + line) / line * line;
        return room;
    }

    int32_t new_slab(int64_t room) {
        int32_t number = int32_t(slabs_.size());
        if (unused_.empty()) {
            slabs_.emplace_back();
        } else {
            number = unused_.back();
            unused_.pop_back();
        }
        Slab& slab = slabs_[std::size_t(number)];
        const int64_t wanted = std::min(largest_slab, bytes_ / 8);  // few rows, small slabs
        slab.rows = std::max<int64_t>(1, wanted / (room * int64_t(sizeof(T))));
        slab.room = room;
        slab.memory = wanted == largest_slab && slab.rows > 1 ? large_pages() : Pages<T>(slab.rows * room);
        for (int64_t row = slab.rows; row-- > 0;) slab.free.push_back(slab.memory.data() + row * room);
        return number;
    }

    // The system clears pages when they are first touched, which takes longer than filling them: another thread touches
    // those of the next slab meanwhile.
    Pages<T> large_pages() {
        Pages<T> ready = next_.valid() ? next_.get() : Pages<T>(largest_slab / int64_t(sizeof(T)));
        next_ = std::async(std::launch::async, [] {
            Pages<T> pages(largest_slab / int64_t(sizeof(T)));
            constexpr int64_t page = 4096 / int64_t(sizeof(T));
            for (int64_t n = 0; n < largest_slab / int64_t(sizeof(T)); n += page) pages.data()[n] = T(0);
            return pages;
        });
        return ready;
    }

    std::vector<Slab> slabs_;
    std::future<Pages<T>> next_;
    std::vector<int32_t> unused_;
    std::map<int64_t, std::vector<int32_t>> open_;  // slabs with free rows, by room; some may be gone or full by now
    int64_t bytes_ = 0;
    bool is_tight_ = false;
};

}  // namespace larank
