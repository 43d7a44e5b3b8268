// Support patterns and their rows of kernel values, under a limit on memory: what all kernel machines share.
//
// The core never evaluates a kernel. It is handed blocks: the kernel values of a few new examples with every pattern in
// the table, and among themselves. A pattern born from the block finds its values in the latter, so the size of blocks
// does not change the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "blocks/source.hpp"
#include "kernel/gram.hpp"
#include "kernel/support.hpp"
#include "memory/limit.hpp"

namespace larank {

// New examples and their kernel values; `kernel` has room for the slots born while the block is worked on.
template <class T>
struct Block {
    int64_t examples = 0;
    int64_t width = 0;          // of `kernel`, at least slots + examples
    T* kernel = nullptr;        // [examples][width], with the pattern slots
    const T* within = nullptr;  // [examples][examples]
};

// What a block says of its examples beside their kernel values.
struct Examples {
    int64_t count = 0;
    const int64_t* ids = nullptr;
    const int32_t* labels = nullptr;  // classes in the order of their arrival
    const double* costs = nullptr;
    const double* diagonal = nullptr;  // k(x_i, x_i)
};

template <class T>
class PatternRows {
  public:
    // A step of the machine reads `rows_in_use` rows at the same time; 0 if none are kept. Where it comes back to most
    // rows soon, they are brought up to date together now and then, after `births_to_settle` patterns have come.
    PatternRows(int64_t memory_limit, int64_t rows_in_use, int64_t births_to_settle)
        : memory_limit_(memory_limit),
          rows_in_use_(rows_in_use),
          births_to_settle_(births_to_settle),
          gram_(rows_in_use) {}

    SupportTable& table() { return table_; }
    const SupportTable& table() const { return table_; }
    bool are_kept() const { return rows_in_use_ > 0; }

    // While the loan lasts, rows that are not here are asked of the source.
    class Loan {
      public:
        Loan(PatternRows& rows, KernelSource<T>& source) : rows_(rows) {
            if (rows_.source_) throw std::logic_error("the session is at work already");
            rows_.source_ = &source;
        }
        ~Loan() { rows_.source_ = nullptr; }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

      private:
        PatternRows& rows_;
    };
    KernelSource<T>& source() const {
        if (!source_) throw std::logic_error("rows of kernel values are missing, and there is no source of them");
        return *source_;
    }

    void feed(const Block<T>& block) {
        if (block.width < table_.slots() + block.examples)
            throw std::invalid_argument("the block has too few columns for the slots it may need");
        block_ = block;
        if (gram_.births() >= births_to_settle_) settle();
    }
    // Brings all rows up to date, which costs less than one by one where most of them will be used.
    void settle() { gram_.settle(table_.slots()); }
    // The same, and whether they are all here.
    bool settle_all() {
        settle();
        const auto is_here = [&](int32_t slot) { return find(slot); };
        return std::all_of(table_.present().begin(), table_.present().end(), is_here);
    }
    template <class IsWanted>
    void settle_some(IsWanted is_wanted) {
        gram_.settle_some(table_.slots(), is_wanted);
    }
    // Rows of slots that are not worth keeping go before others.
    template <class IsWorthKeeping>
    void retire(IsWorthKeeping is_worth_keeping) {
        gram_.retire(is_worth_keeping);
    }
    // Whether some rows had to go.
    bool are_short() const { return gram_.resident() < table_.size(); }
    // The kernel values of example b of the block with all patterns.
    const T* of_example(int64_t b) const { return block_.kernel + b * block_.width; }

    // Example b becomes a pattern.
    int32_t add(int64_t b, int64_t id, int32_t label, double cost, double diagonal) {
        const int32_t slot = restore(of_example(b), id, label, cost, diagonal);
        tell_later_examples(b, slot);
        return slot;
    }
    // The same for machines that never look at values between two patterns: memory stays linear in their number.
    int32_t add_without_row(int64_t b, int64_t id, int32_t label, double cost, double diagonal) {
        const int32_t slot = table_.add(id, label, cost, diagonal);
        tell_later_examples(b, slot);
        return slot;
    }

    // A pattern whose values with the slots before it are in `kernel`.
    int32_t restore(const T* kernel, int64_t id, int32_t label, double cost, double diagonal) {
        const int32_t slot = table_.add(id, label, cost, diagonal);
        const int64_t columns = table_.slots();
        T* const row = gram_.add(slot, columns);
        std::copy(kernel, kernel + columns, row);
        row[slot] = T(diagonal);
        return slot;
    }

    // Whether the row of a pattern is kept, up to date or not.
    bool is_kept(int32_t slot) const { return gram_.is_kept(slot); }
    // Whether the row of a pattern is here; it is brought up to date. False if it must be computed first.
    bool find(int32_t slot) { return gram_.find(slot, table_.slots()) != nullptr; }
    // The same, and others make room for what it has grown by. `make_room(slot)` keeps the row of the slot.
    template <class MakeRoom>
    bool is_ready(int32_t slot, MakeRoom make_room) {
        const int64_t before = bytes();
        if (!find(slot)) return false;
        if (bytes() > before) make_room(slot);
        return true;
    }
    // The row of a pattern that was just added or found.
    const T* operator[](int32_t slot) const { return gram_.row(slot); }

    // Asks for these rows at once; the most urgent one, which stays whatever the memory, is the last.
    template <class MakeRoom>
    void bring(const std::vector<int32_t>& slots, MakeRoom make_room) {
        const SourceRows<T> rows = source().rows(slots, table_.slots());
        for (std::size_t n = 0; n < slots.size(); ++n) {
            std::copy(rows[n], rows[n] + table_.slots(), gram_.fill(slots[n], table_.slots()));
            make_room(slots[n]);
        }
    }
    template <class MakeRoom>
    void require(int32_t slot, MakeRoom make_room) {
        if (!is_ready(slot, make_room)) bring({slot}, make_room);
    }

    // Where the table was read from a snapshot: brings the rows of all patterns, or as many as there is room for. They
    // are born anew in their order, since a value is that of the younger one with the older, which may round otherwise
    // than the other way round.
    template <class MakeRoom>
    void bring_all(MakeRoom make_room) {
        gram_.expect(table_.slots());
        if (!are_kept()) return;
        const std::vector<int32_t> all = table_.in_order_of_birth();
        for (std::size_t first = 0; first < all.size(); first += rows_of_a_share()) {
            const std::size_t count = std::min(all.size() - first, rows_of_a_share());
            const SourceRows<T> rows = source().rows({&all[first], &all[first] + count}, table_.slots());
            for (std::size_t n = 0; n < count; ++n) {
                std::copy(rows[n], rows[n] + table_.slots(), gram_.add(all[first + n], table_.slots()));
                make_room(all[first + n]);
            }
            if (gram_.resident() < int64_t(first + count)) return;
        }
    }

    // Rows to be computed together: not so many that they push each other out.
    int64_t at_once() const { return std::clamp<int64_t>(gram_.resident() / 4, 1, int64_t(rows_of_a_share())); }
    // Kernel values between other sets of patterns, to be computed together.
    int64_t products_at_once() const {
        return std::clamp<int64_t>(memory_limit_ / 32 / int64_t(sizeof(T)), int64_t{1} << 12, int64_t{1} << 22);
    }
    int64_t resident() const { return gram_.resident(); }

    int64_t bytes() const { return table_.bytes() + gram_.bytes() + foreign_bytes_; }
    // What others hold on behalf of the machine, such as the patterns themselves.
    void set_foreign_bytes(int64_t bytes) { foreign_bytes_ = bytes; }

    // Whether there is room for these rows and what the machine keeps `beside` them.
    bool fit_with(int64_t beside) {
        if (2 * (bytes() + beside) > memory_limit_) gram_.be_tight();
        return bytes() + beside <= memory_limit_;
    }
    void grow_little() { gram_.grow_little(); }
    // Rows that were asked for are here twice for a moment, and their source has room for a few more.
    int64_t bytes_on_the_way() const { return int64_t(rows_of_a_share()) * bytes_of_row() * 5 / 4; }
    // What is left for others beside the rows in use and on the way.
    int64_t room_beside(int64_t beside) const { return memory_limit_ - bytes_at_least(beside) - bytes_on_the_way(); }
    // Raises where there is no room for others, which take so much; `what` they are for.
    void check_room_beside(int64_t beside, const char* what) const {
        if (room_beside(beside) >= 0) return;
        const int64_t needed = bytes_at_least(beside) + bytes_of_row() * 5 / 4;
        throw too_little_memory(needed + needed * 5 / 59 + 1, what, "");  // 5/64 of that may be on the way
    }
    // Drops the rows used least recently, but not that of `kept` nor those in use, until they fit.
    void drop_until_fit(int64_t beside, int32_t kept) {
        if (2 * (bytes() + beside) > memory_limit_) gram_.be_tight();
        const int64_t others = table_.bytes() + foreign_bytes_ + beside;
        if (!gram_.stay_within(memory_limit_ - others, kept))
            throw too_little_memory(bytes() + beside, "for ", " so far and more for those to come");
    }

  private:
    static constexpr int64_t most_at_once = 256;

    // Rows that take little of the memory while they are computed.
    std::size_t rows_of_a_share() const {
        return std::size_t(std::clamp<int64_t>(memory_limit_ / 16 / bytes_of_row(), 1, most_at_once));
    }
    int64_t bytes_of_row() const { return std::max<int64_t>(1, table_.slots()) * int64_t(sizeof(T)); }

    void tell_later_examples(int64_t b, int32_t slot) {
        for (int64_t later = b + 1; later < block_.examples; ++later)
            block_.kernel[later * block_.width + slot] = block_.within[later * block_.examples + b];
    }

    // Of patterns, rows in use, and what is kept beside them. Rows may have more room than they need, see `RowPool`.
    int64_t bytes_at_least(int64_t beside) const {
        constexpr int64_t line = 64 / int64_t(sizeof(T));
        const int64_t in_use = rows_in_use_ * (table_.slots() * 7 / 4 + 2 * line) * int64_t(sizeof(T));
        return table_.bytes() + gram_.bytes_beside_values() + in_use + foreign_bytes_ + beside;
    }

    MemoryLimitError too_little_memory(int64_t needed, const std::string& what, const std::string& more) const {
        static const char* const in_use[] = {"the ", "one row of kernel values beside the coefficients of the ",
                                             "two rows of kernel values beside the coefficients of the "};
        return MemoryLimitError("memory_limit must be at least " + std::to_string(needed) + " bytes " + what +
                                in_use[rows_in_use_] + std::to_string(table_.size()) + " support patterns" + more +
                                ", got " + std::to_string(memory_limit_));
    }

    int64_t memory_limit_, rows_in_use_, births_to_settle_;
    SupportTable table_;
    Gram<T> gram_;
    Block<T> block_;
    KernelSource<T>* source_ = nullptr;
    int64_t foreign_bytes_ = 0;
};

}  // namespace larank
