// Rows of kernel values between members of a set whose members come and go.
//
// A member has a number, its column in every row; numbers are used again. A row is complete when its member is born.
// What members born later add to it is fetched when the row is next used, from their rows, by symmetry: nothing is
// written into rows that nobody reads.
//
// Where there is a limit, room is made before memory grows: the rows used least recently go, and what is left of slabs
// that are mostly empty moves to others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "memory/prefetch.hpp"
#include "memory/rowpool.hpp"
#include "memory/usage.hpp"

namespace larank {

template <class T>
class Gram {
  public:
    using Pool = std::shared_ptr<RowPool<T>>;

    // The rows used last stay whatever the limit: so many. Several sets may have their memory from one pool.
    explicit Gram(int64_t spared = 1, Pool pool = std::make_shared<RowPool<T>>())
        : pool_(std::move(pool)), spared_(spared) {}

    // Room for the row of a new member, whose first `columns` values the caller fills. The newest row.
    T* add(int64_t member, int64_t columns) {
        if (member >= int64_t(rows_.size())) rows_.resize(std::size_t(member) + 1);
        births_.push_back(int32_t(member));
        return fill(member, columns);
    }

    // The same for a row that was dropped and computed again.
    T* fill(int64_t member, int64_t columns) {
        Row& row = rows_[std::size_t(member)];
        widen(member, columns);
        row.seen = births_.size();
        usage_.touch(rows_, member);
        return row.piece.values;
    }

    // Room for the rows of so many members, which are filled when somebody asks for them.
    void expect(int64_t members) { rows_.resize(std::size_t(members)); }

    // The row with all columns up to date, or null where it was dropped or leans on one that was.
    const T* find(int64_t member, int64_t columns) {
        Row& row = rows_[std::size_t(member)];
        if (!row.is_here() || !catch_up(member, columns)) return nullptr;
        usage_.touch(rows_, member);
        return row.piece.values;
    }

    bool is_kept(int64_t member) const { return rows_[std::size_t(member)].is_here(); }
    // The row of a member that was just added or found.
    const T* row(int64_t member) const { return rows_[std::size_t(member)].piece.values; }

    // Rows that are not worth keeping go before others from now on, those used least recently first.
    template <class IsWorthKeeping>
    void retire(IsWorthKeeping is_worth_keeping) {
        for (int32_t member = usage_.newest(), left = int32_t(resident_); left > 0; --left) {
            const int32_t older = rows_[std::size_t(member)].older;
            if (!is_worth_keeping(member)) usage_.retire(rows_, member);
            member = older;
        }
    }

    // A row that will be used soon: first where it is, then, once that has arrived, its values.
    void prefetch_entry(int64_t member) const { prefetch(&rows_[std::size_t(member)]); }
    void prefetch_row(int64_t member) const {
        constexpr int64_t lines = 4;
        const T* const values = rows_[std::size_t(member)].piece.values;
        for (int64_t l = 0; l < lines; ++l) prefetch(values + l * int64_t(line));
    }

    // At most so many bytes from now on; false if the rows that stay, among them that of `kept`, take more.
    bool stay_within(int64_t most, int64_t kept) {
        most_ = most;
        make_room(0, kept);
        return bytes() <= most_;
    }

    void clear() {
        for (const Row& row : rows_) pool_->give_back(row.piece);
        rows_.clear();
        rows_.shrink_to_fit();
        births_.clear();
        usage_ = {};
        resident_ = 0;
    }

    int64_t bytes() const { return pool_->bytes() + bytes_beside_values(); }
    int64_t bytes_beside_values() const { return int64_t(rows_.size() * sizeof(Row) + births_.capacity() * 4); }
    int64_t resident() const { return resident_; }
    void grow_little() { pool_->grow_little(); }  // few rows will grow
    void be_tight() { pool_->be_tight(); }        // memory is short

    // Brings all rows up to date at once, which is cheaper than many rows that catch up alone; and births that every
    // row has seen can be forgotten.
    void settle(int64_t columns) {
        if (births_.empty()) return;
        for (const int32_t member : births_)
            if (is_kept(member)) catch_up(member, columns);
        settle_some(columns, [](int32_t) { return true; });
        births_.clear();
        for (Row& row : rows_) row.seen = 0;
    }
    int64_t births() const { return int64_t(births_.size()); }

    // The same for some members, while those born last are still in the cache.
    template <class IsWanted>
    void settle_some(int64_t columns, IsWanted is_wanted) {
        std::vector<int32_t> wanted;
        for (std::size_t member = 0; member < rows_.size(); ++member)
            if (is_late(member) && is_wanted(int32_t(member))) wanted.push_back(int32_t(member));
        for (const int32_t member : in_order_of_address(wanted))  // rows may go, and move, while others grow
            if (is_kept(member)) widen(member, columns);
        std::size_t first = births_.size();
        for (const int32_t member : wanted)
            if (is_kept(member)) first = std::min(first, rows_[std::size_t(member)].seen);
        const std::vector<const T*> younger = rows_born_since(first);
        if (std::all_of(younger.begin(), younger.end(), [](const T* row) { return row; })) {
            take_in(wanted, younger, first, columns);
        } else {
            for (const int32_t member : wanted)
                if (is_kept(member)) catch_up(member, columns);
        }
    }

  private:
    static constexpr std::size_t line = 64 / sizeof(T);  // of the cache, in values

    struct Row : Used {
        typename RowPool<T>::Piece piece;
        bool is_here() const { return piece.values; }
        std::size_t seen = 0;  // how many births it has taken in
    };

    // Rows that lie together grow together, and leave no half empty slabs behind.
    std::vector<int32_t> in_order_of_address(std::vector<int32_t> members) const {
        std::sort(members.begin(), members.end(), [&](int32_t a, int32_t b) {
            return rows_[std::size_t(a)].piece.values < rows_[std::size_t(b)].piece.values;
        });
        return members;
    }

    bool catch_up(int64_t member, int64_t columns) {
        Row& row = rows_[std::size_t(member)];
        if (row.seen == births_.size()) return true;
        widen(member, columns);
        T* const values = row.piece.values;
        constexpr std::size_t ahead = 12;
        for (std::size_t b = row.seen; b < births_.size(); ++b) {
            if (b + 2 * ahead < births_.size()) prefetch(&rows_[std::size_t(births_[b + 2 * ahead])]);
            if (b + ahead < births_.size()) prefetch(rows_[std::size_t(births_[b + ahead])].piece.values + member);
            const Row& younger = rows_[std::size_t(births_[b])];
            if (!younger.is_here()) {
                drop(int32_t(member));
                return false;
            }
            values[births_[b]] = younger.piece.values[member];
        }
        row.seen = births_.size();
        return true;
    }

    bool is_late(std::size_t member) const { return rows_[member].is_here() && rows_[member].seen < births_.size(); }

    // Of births from the `first` on; null where a row was dropped.
    std::vector<const T*> rows_born_since(std::size_t first) const {
        std::vector<const T*> rows;
        for (std::size_t b = first; b < births_.size(); ++b)
            rows.push_back(rows_[std::size_t(births_[b])].piece.values);
        return rows;
    }

    // The values of the births from the `first` on with members in order, by symmetry: `younger` are their rows. A line
    // of the cache has the values of several members; where they are at least a few, they take it in together. The
    // newborn go alone: with births before their own, the younger row is theirs.
    void take_in(const std::vector<int32_t>& members, const std::vector<const T*>& younger, std::size_t first,
                 int64_t columns) {
        constexpr std::size_t few = 4;
        std::vector<T> nobody(std::size_t(columns), T(0));
        std::vector<bool> is_newborn(rows_.size());
        for (std::size_t b = first; b < births_.size(); ++b) is_newborn[std::size_t(births_[b])] = true;
        for (std::size_t n = 0, end = 0; n < members.size(); n = end) {
            const std::size_t number = std::size_t(members[n]) / line;
            T* older[line];
            std::fill(older, older + line, nobody.data());
            std::size_t together = 0;
            for (; end < members.size() && std::size_t(members[end]) / line == number; ++end) {
                const int32_t member = members[end];
                if (!is_kept(member) || is_newborn[std::size_t(member)]) continue;
                older[std::size_t(member) % line] = start_of(member);
                ++together;
            }
            if (together >= few) take_in_line(older, number * line, younger, first);
            for (std::size_t m = n; m < end; ++m)
                if (together < few || is_newborn[std::size_t(members[m])]) take_in_one(members[m], younger, first);
        }
        for (const int32_t member : members) rows_[std::size_t(member)].seen = births_.size();
    }
    T* start_of(int32_t member) { return rows_[std::size_t(member)].piece.values; }

    // A line is read once, and those to be read and written next are on their way meanwhile. Rooms are whole lines.
    // What nobody wants goes to a row that nobody reads; what was taken in before is written again.
    void take_in_line(T* const* older, std::size_t member, const std::vector<const T*>& younger, std::size_t first) {
        const int32_t* const births = births_.data() + first;
        for (std::size_t b = 0; b < younger.size(); ++b) {
            const T* const values = younger[b] + member;
            prefetch(values + line);
            if (b + line < younger.size()) prefetch(older[b % line] + births[b + line]);
            for (std::size_t m = 0; m < line; ++m) older[m][births[b]] = values[m];
        }
    }

    void take_in_one(int32_t member, const std::vector<const T*>& younger, std::size_t first) {
        if (!is_kept(member)) return;
        T* const values = start_of(member);
        const int32_t* const births = births_.data();
        for (std::size_t b = rows_[std::size_t(member)].seen; b < births_.size(); ++b)
            values[births[b]] = younger[b - first][member];
    }

    void widen(int64_t member, int64_t columns) {
        Row& row = rows_[std::size_t(member)];
        if (row.piece.room >= columns) return;
        make_room(columns, member);
        resident_ += !row.is_here();
        move(row, pool_->take(columns));
    }

    void move(Row& row, const typename RowPool<T>::Piece& to) {
        // Beyond its columns stands what the memory held before: zeros, or kernel values of other rows.
        std::copy(row.piece.values, row.piece.values + row.piece.room, to.values);
        pool_->give_back(row.piece);
        row.piece = to;
    }

    // Until a row of so many columns, if any, can be taken. That of `kept` stays.
    void make_room(int64_t columns, int64_t kept) {
        const auto growth = [&] { return columns ? pool_->growth(columns) : 0; };
        while (bytes() + growth() > most_) {
            if (pool_->drop_spare()) continue;
            const bool are_holes = pool_->bytes_in_use() + bytes_beside_values() + growth() <= most_;
            if (!(are_holes && empty_a_slab(kept)) && !drop_oldest(kept)) return;
        }
    }

    // The rows of the emptiest slab go to free places in others, or go altogether; those that have to stay get memory
    // of their own. False if no slab has any room.
    bool empty_a_slab(int64_t kept) {
        const int32_t slab = pool_->emptiest();
        if (slab < 0) return false;
        for (std::size_t member = 0; member < rows_.size(); ++member) {
            Row& row = rows_[member];
            if (row.piece.slab != slab) continue;
            const auto place = pool_->place_elsewhere(row.piece);
            if (place.values)
                move(row, place);
            else if (int64_t(member) != kept && !is_spared(int64_t(member)))
                drop(int32_t(member));
            else
                move(row, pool_->place_alone(row.piece));
        }
        return true;
    }

    bool is_spared(int64_t member) const {
        int32_t newest = usage_.newest();
        for (int64_t n = 0; n < spared_ && newest >= 0; ++n, newest = rows_[std::size_t(newest)].older)
            if (newest == member) return true;
        return false;
    }

    // The row that has not been used for the longest time; false if there is none but those that stay.
    bool drop_oldest(int64_t kept) {
        int32_t member = usage_.oldest();
        if (member == kept && member >= 0) member = rows_[std::size_t(member)].newer;
        if (member < 0 || is_spared(member)) return false;
        drop(member);
        return true;
    }

    void drop(int32_t member) {
        Row& row = rows_[std::size_t(member)];
        usage_.unlink(rows_, member);
        pool_->give_back(row.piece);
        row.piece = {};
        --resident_;
    }

    Pool pool_;
    std::vector<Row> rows_;
    std::vector<int32_t> births_;  // members in the order in which they came
    UsageOrder<Row> usage_;
    int64_t resident_ = 0, spared_;
    int64_t most_ = std::numeric_limits<int64_t>::max();
};

}  // namespace larank
