// Memory for rows that grow, come and go: slabs of rows of the same room.
//
// Rows taken one by one from the general heap leave holes of every size behind when they grow. Here a row that has
// outgrown its room moves to a slab of larger ones, and a slab that nobody uses any more becomes one of others, or is
// given back whole where memory is short.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <new>
#include <system_error>
#include <utility>
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
            const int64_t room = room_for(columns);
            number = new_slab(bytes_of_slab(room), room);
            open_[slabs_[std::size_t(number)].room].push_back(number);
        }
        return take_from(number);
    }

    // By how much `take` would make the memory grow.
    int64_t growth(int64_t columns) {
        if (slab_with_room(columns) >= 0) return 0;
        const int64_t bytes = bytes_of_slab(room_for(columns));
        return bytes == whole_slab && !spare_.empty() ? 0 : bytes;
    }

    // A free row of another slab with room for all of this one; none without values.
    Piece place_elsewhere(const Piece& piece) {
        for (auto at = open_.lower_bound(piece.room); at != open_.end(); ++at) {
            std::vector<int32_t>& numbers = at->second;
            for (std::size_t n = 0; n < numbers.size(); ++n) {
                if (numbers[n] == piece.slab) continue;
                std::swap(numbers[n], numbers.back());
                return take_from(numbers.back());
            }
        }
        return {};
    }

    // Memory of its own for all of this one.
    Piece place_alone(const Piece& piece) {
        const int32_t number = new_slab(piece.room * int64_t(sizeof(T)), piece.room);
        open_[piece.room].push_back(number);
        return take_from(number);
    }

    // The slab in use with the most free memory; -1 if no slab has any.
    int32_t emptiest() const {
        int32_t found = -1;
        int64_t most = 0;
        for (std::size_t number = 0; number < slabs_.size(); ++number) {
            const int64_t free = int64_t(slabs_[number].free.size()) * slabs_[number].room;
            if (free > most) found = int32_t(number), most = free;
        }
        return found;
    }

    void give_back(const Piece& piece) {
        if (!piece.values) return;
        in_use_ -= piece.room * int64_t(sizeof(T));
        Slab& slab = slabs_[std::size_t(piece.slab)];
        slab.free.push_back(piece.values);
        if (int64_t(slab.free.size()) < slab.rows()) {
            if (slab.free.size() == 1) open_[piece.room].push_back(piece.slab);
            return;
        }
        std::vector<int32_t>& numbers = open_[slab.room];
        numbers.erase(std::remove(numbers.begin(), numbers.end(), piece.slab), numbers.end());
        if (slab.bytes == whole_slab)
            spare_.push_back(std::move(slab.memory));
        else
            held_ -= slab.bytes;
        slab = Slab();
        unused_.push_back(piece.slab);
    }

    // Few rows will grow: they are made little larger than they must be.
    void grow_little() { grows_little_ = true; }
    // Memory is short: so are rows and slabs, and none is made ahead.
    void be_tight() {
        grows_little_ = is_tight_ = true;
        if (next_.valid()) next_ = {};
    }
    // Gives a slab that nobody uses back to the system; false if there is none.
    bool drop_spare() {
        if (spare_.empty()) return false;
        spare_.pop_back();
        held_ -= whole_slab;
        return true;
    }
    int64_t bytes() const { return held_ + (next_.valid() ? whole_slab : 0); }  // of all slabs
    int64_t bytes_in_use() const { return in_use_; }                            // of the rows that were taken

  private:
    static constexpr int64_t whole_slab = int64_t(huge_page);

    struct Slab {
        Pages<T> memory;
        int64_t bytes = 0, room = 0;
        std::vector<T*> free;
        int64_t rows() const { return bytes / (room * int64_t(sizeof(T))); }
    };

    // Of a slab that is the last of its room in `open_`.
    Piece take_from(int32_t number) {
        Slab& slab = slabs_[std::size_t(number)];
        T* const values = slab.free.back();
        slab.free.pop_back();
        if (slab.free.empty()) open_[slab.room].pop_back();
        in_use_ += slab.room * int64_t(sizeof(T));
        return {values, slab.room, number};
    }

    // The smallest rows that are large enough and free; -1 if there are none.
    int32_t slab_with_room(int64_t columns) {
        auto at = open_.lower_bound(columns);
        while (at != open_.end() && at->second.empty()) at = open_.erase(at);
        return at == open_.end() ? -1 : at->second.back();
    }

    // More than asked for, by half or, where few will grow, by an eighth; in steps of an eighth, so that rows asked for
    // at about the same time share slabs.
    int64_t room_for(int64_t columns) const {
        constexpr int64_t line = 64 / int64_t(sizeof(T));
        const int64_t wanted = columns + (grows_little_ ? columns / 8 : columns / 2);
        int64_t room = 2 * line;
        while (room < wanted) room = (room + room / 8 + line) / line * line;
        return room;
    }

    // Few rows, small slabs; then huge pages, or what one row takes.
    int64_t bytes_of_slab(int64_t room) const {
        const int64_t row = room * int64_t(sizeof(T));
        const int64_t share = std::min(whole_slab, in_use_ / (is_tight_ ? 32 : 8));
        return share == whole_slab && row <= share ? share : std::max<int64_t>(1, share / row) * row;
    }

    int32_t new_slab(int64_t bytes, int64_t room) {
        Slab slab;
        slab.bytes = bytes;
        slab.room = room;
        slab.memory = bytes == whole_slab ? huge_pages() : Pages<T>(bytes / int64_t(sizeof(T)));
        for (int64_t row = slab.rows(); row-- > 0;) slab.free.push_back(slab.memory.data() + row * room);
        held_ += bytes;
        if (unused_.empty()) {
            slabs_.push_back(std::move(slab));
            return int32_t(slabs_.size()) - 1;
        }
        const int32_t number = unused_.back();
        unused_.pop_back();
        slabs_[std::size_t(number)] = std::move(slab);
        return number;
    }

    // The system clears pages when they are first touched, which takes longer than filling them: slabs that nobody uses
    // are used again, and another thread touches the pages of the next new one meanwhile. Where there is no memory for
    // a thread or its pages, nothing is ahead.
    Pages<T> huge_pages() {
        constexpr int64_t values = whole_slab / int64_t(sizeof(T));
        if (!spare_.empty()) {
            Pages<T> used = std::move(spare_.back());
            spare_.pop_back();
            held_ -= whole_slab;
            return used;
        }
        Pages<T> ready = next_.valid() ? next_.get() : Pages<T>();
        if (!ready.data()) ready = Pages<T>(values);
        if (is_tight_) return ready;
        try {
            next_ = std::async(std::launch::async, [] {
                try {
                    Pages<T> pages(values);
                    constexpr int64_t page = 4096 / int64_t(sizeof(T));
                    for (int64_t n = 0; n < values; n += page) pages.data()[n] = T(0);
                    return pages;
                } catch (const std::bad_alloc&) {
                    return Pages<T>();
                }
            });
        } catch (const std::system_error&) {
        }
        return ready;
    }

    std::vector<Slab> slabs_;
    std::vector<Pages<T>> spare_;  // of slabs that nobody uses
    std::future<Pages<T>> next_;
    std::vector<int32_t> unused_;
    std::map<int64_t, std::vector<int32_t>> open_;  // slabs with free rows, by room
    int64_t in_use_ = 0, held_ = 0;
    bool grows_little_ = false, is_tight_ = false;
};

}  // namespace larank
