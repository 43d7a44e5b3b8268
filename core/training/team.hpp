// Threads that do the parts of one computation together, some microseconds at a time.
//
// `each` returns when all parts are done. Between two calls the threads wait by looking: a lock would take longer than
// the parts do. Who looks in vain for a while gives its processor away. The calling thread does every part that nobody
// has begun when its own is done, so that a thread which the system lets wait, or did not give at all, holds up nobody.
// What a part computes must therefore not depend on the thread that does it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "memory/aligned.hpp"

namespace larank {

class Team {
  public:
    explicit Team(int64_t parts) : seats_(std::size_t(parts)) {
        const int64_t processors = std::max<int64_t>(1, std::thread::hardware_concurrency());
        const int64_t count = std::min(parts, processors);  // more would take turns at looking
        threads_.reserve(std::size_t(count));
        try {
            for (int64_t part = 1; part < count; ++part) threads_.emplace_back([this, part] { serve(part); });
        } catch (const std::system_error&) {  // then there are fewer
        }
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() {
        is_over_.store(true, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);
        for (std::thread& thread : threads_) thread.join();
    }

    int64_t parts() const { return int64_t(seats_.size()); }

    // Calls work(part) for all parts. Of what they throw, the first part's is passed on.
    template <class Work>
    void each(Work work) {
        call_ = [](void* with, int64_t part) { (*static_cast<Work*>(with))(part); };
        with_ = &work;
        const uint64_t turn = turn_.fetch_add(1, std::memory_order_release) + 1;
        for (int64_t part = 0; part < parts(); ++part) do_part(part, turn);
        for (Seat& seat : seats_) wait([&] { return seat.done.load(std::memory_order_acquire) == turn; });
        for (Seat& seat : seats_)
            if (seat.thrown) std::rethrow_exception(std::exchange(seat.thrown, nullptr));
    }

  private:
    // A part, with the last turn in which somebody began it and the last in which it was done.
    struct alignas(cache_lines) Seat {
        std::atomic<uint64_t> begun{0}, done{0};
        std::exception_ptr thrown;
    };

    void serve(int64_t part) {
        for (uint64_t turn = 0;;) {
            wait([&] { return turn_.load(std::memory_order_relaxed) != turn; });
            turn = turn_.load(std::memory_order_acquire);
            if (is_over_.load(std::memory_order_relaxed)) return;
            do_part(part, turn);
        }
    }

    // Nothing, where somebody else has begun it: as long as nobody has, the turn cannot end.
    void do_part(int64_t part, uint64_t turn) {
        Seat& seat = seats_[std::size_t(part)];
        uint64_t before = turn - 1;
        if (!seat.begun.compare_exchange_strong(before, turn, std::memory_order_acq_rel)) return;
        try {
            call_(with_, part);
        } catch (...) {
            seat.thrown = std::current_exception();
        }
        seat.done.store(turn, std::memory_order_release);
    }

    template <class Condition>
    static void wait(Condition holds) {
        constexpr int looks = 2000;  // some tens of microseconds
        for (int n = 0; !holds(); ++n)
            if (n < looks)
                pause();
            else
                std::this_thread::yield();
    }
    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    std::vector<Seat> seats_;
    std::vector<std::thread> threads_;
    void (*call_)(void* with, int64_t part) = nullptr;
    void* with_ = nullptr;
    alignas(cache_lines) std::atomic<uint64_t> turn_{0};
    std::atomic<bool> is_over_{false};
};

}  // namespace larank
