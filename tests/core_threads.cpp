// The paths of the core that several threads take at the same time, without Python, for ThreadSanitizer: `make tsan`.
//
// What threads share is what they share under Python, where the interpreter's lock is released: examples, models that
// are read, tables of which each thread fills a part, features that one thread learns while others look them up.
#include <cstdio>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "blocks/sparseproducts.hpp"
#include "chain/chain.hpp"
#include "chain/larank.hpp"
#include "chain/perceptron.hpp"
#include "data/svmlight.hpp"
#include "kernel/lasvm.hpp"
#include "kernel/tracking.hpp"
#include "linear/primal.hpp"
#include "linear/sdm.hpp"
#include "memory/rowpool.hpp"
#include "simd/units.hpp"
#include "text/templates.hpp"

namespace {

using namespace larank;

constexpr int64_t threads = 4;

void in_threads(const std::function<void(int64_t)>& work) {
    std::vector<std::thread> running;
    for (int64_t n = 0; n < threads; ++n) running.emplace_back(work, n);
    for (std::thread& thread : running) thread.join();
}

// Rows of small numbers, labels 0, 1, ... in turn, and costs of one.
struct Data {
    Data(int64_t count, int64_t width, int32_t classes) : rows(count), features(width), labels(std::size_t(count)) {
        Random random(1);
        for (int64_t i = 0; i < count; ++i) {
            labels[std::size_t(i)] = int32_t(i) % classes;
            for (int64_t j = 0; j < width; ++j) values.push_back(random.uniform() + double(j == i % classes));
        }
        for (int64_t i = 0; i < count; ++i) {
            for (int64_t j = i % 2; j < width; j += 2) {
                columns.push_back(int32_t(j));
                listed.push_back(values[std::size_t(i * width + j)]);
            }
            starts.push_back(int64_t(columns.size()));
        }
        costs.assign(std::size_t(count), 1.0);
    }
    double product(int64_t i, int64_t k) const {
        double sum = 0;
        for (int64_t j = 0; j < features; ++j)
            sum += values[std::size_t(i * features + j)] * values[std::size_t(k * features + j)];
        return sum;
    }
    Matrix<double> dense() const {
        Matrix<double> X;
        X.rows = rows, X.columns = features, X.values = values.data();
        return X;
    }

    int64_t rows, features;
    std::vector<int32_t> labels;
    std::vector<double> values, costs, listed;
    std::vector<int32_t> columns;  // of every other value, with those in `listed`
    std::vector<int64_t> starts{0};
};

// ---- Chains ----

// Sequences of four tokens with three features each; the labels follow from the first.
struct Chains {
    explicit Chains(int64_t count) : sequences(count) {
        Random random(2);
        for (int64_t t = 0; t < 4 * count; ++t) {
            labels.push_back(int32_t(random.below(3)));
            const int32_t first = labels.back(), second = 3 + int32_t(random.below(20));
            indices.insert(indices.end(), {first, second, second + 20});
            indptr.push_back(int64_t(indices.size()));
        }
    }
    Stretch<double> at(int64_t i) const {
        return {{indptr.data(), indices.data(), nullptr, ones}, 4 * i, 4, labels.data() + 4 * i, history, absent, 0};
    }

    static constexpr int64_t features = 43, classes = 3;
    int64_t sequences;
    std::vector<int32_t> labels, indices;
    std::vector<int64_t> indptr{0};
    const double ones[3] = {1, 1, 1};
    const int32_t history[1] = {absent};
};

ChainModel<double> chain_model() {
    ChainModel<double> model(1);
    model.grow(Chains::features, Chains::classes);
    const bool follows[12] = {true, true, true, true, true, true, true, true, true, true, true, true};
    const bool ends[3] = {true, true, true};
    model.set_grammar(Grammar<double>(follows, ends, Chains::classes));
    model.prepare(4);
    return model;
}

void search(const ChainModel<double>& model, const Chains& chains) {
    ChainSearch<double> search(model);
    int32_t output[4];
    for (int64_t i = 0; i < chains.sequences; ++i) {
        const Stretch<double> x = chains.at(i);
        search.argmax(search.plain(x), output);
        search.greedy(search.plain(x), output);
        search.argmax(search.augmented(x), output);
        search.best_paths(search.plain(x), 2);
    }
}

// A copy of a model and its session is trained while others predict with the model, and go on to the copy.
template <class Solver, class... Settings>
void chains_are_read_while_a_copy_is_trained(const Settings&... settings) {
    const Chains chains(60);
    auto model = std::make_unique<ChainModel<double>>(chain_model());
    auto solver = std::make_unique<Solver>(*model, settings...);
    for (int round = 0; round < 3; ++round) {
        auto copy = std::make_unique<ChainModel<double>>(*model);
        auto trained = std::make_unique<Solver>(*copy, *solver);
        in_threads([&](int64_t n) {
            if (n > 0) return search(*model, chains);
            copy->grow(Chains::features + 10 * round, Chains::classes);
            for (int64_t i = 0; i < chains.sequences; ++i) trained->process(chains.at(i), i, 0.1);
        });
        solver = std::move(trained), model = std::move(copy);
    }
}

void features_are_learnt_while_others_look_them_up() {
    const CharacterTables ascii{[](uint32_t c) { return c >= 'A' && c <= 'Z'; }, [](uint32_t c) { return c >= 'A'; },
                                [](uint32_t c) { return c >= '0' && c <= '9'; }, [](uint32_t c) { return c; }};
    TemplateTable table({{Form::whole, 0, 0}, {Form::suffix, 2, 0}}, {{{0, 0}}, {{1, 0}, {0, -1}}, {}}, 1, ascii);
    const auto block = [](int64_t first) {
        Sentences sentences(1);
        for (int64_t k = 0; k < 500; ++k) {
            sentences.append_cell("word" + std::to_string(first + k));
            if (k % 5 == 4) sentences.end_sentence();
        }
        return sentences;
    };
    in_threads([&](int64_t n) {
        for (int64_t k = 0; k < 10; ++k)
            if (n == 0)
                table.learn(block(300 * k));
            else
                table.encode(block(200 * k + n)), table.state(), table.features(), table.origins({});
    });
}

// ---- Kernel values and sessions ----

void tiles_of_one_table_are_filled_by_several_threads() {
    const Data data(64, 40, 3);
    std::vector<double> table(std::size_t(data.rows * data.rows)), norms;
    for (int64_t i = 0; i < data.rows; ++i) norms.push_back(data.product(i, i));
    const int64_t width = lattice_words<uint8_t>(data.features) + lattice_terms;
    const std::vector<uint32_t> lattice(std::size_t(data.rows * width), 0x01020304);
    in_threads([&](int64_t n) {
        const int64_t first = data.rows * n / threads, count = data.rows / threads;
        const Tile<double> tile{table.data() + first * data.rows, count, data.rows, data.rows};
        const double* const X = data.values.data();
        for (const auto compare : units<double>().compare_rows)
            compare(X + first * data.features, X, data.features, 0.1, tile);
        const CsrRows<double> all{data.listed.data(), data.columns.data(), data.starts.data(), data.rows};
        sparse_products({all.values, all.columns, all.starts + first, count}, all, data.features, tile);
        for (const auto products : units<double>().lattice_products)
            products(lattice.data() + first * width, lattice.data(), width - lattice_terms, 2, 0.5, tile);
        const MapArguments<double> with{norms.data() + first, norms.data(), 0.1, 1.0, 3};
        for (const auto map : units<double>().map_products) map(tile, with);
    });
}

// Kernel values from the examples that all sessions share.
class Source final : public KernelSource<double> {
  public:
    Source(const Data& data, const SupportTable& table) : data_(data), table_(table) {}
    SourceRows<double> rows(const std::vector<int32_t>& slots, int64_t columns) override {
        std::vector<int32_t> all;
        for (int64_t slot = 0; slot < columns; ++slot) all.push_back(int32_t(slot));
        return between(slots, all);
    }
    SourceRows<double> between(const std::vector<int32_t>& slots, const std::vector<int32_t>& others) override {
        values_.clear();
        for (const int32_t a : slots)
            for (const int32_t b : others) values_.push_back(data_.product(table_[a].id, table_[b].id));
        return {values_.data(), int64_t(others.size())};
    }

  private:
    const Data& data_;
    const SupportTable& table_;
    std::vector<double> values_;
};

// One session, block after block, the values of the next block being computed by another thread meanwhile.
template <class Solver>
void train(Solver& solver, const Data& data) {
    constexpr int64_t size = 16;
    struct Values {
        std::vector<double> kernel, within;
        std::vector<int64_t> ids, of_slots;
    };
    const int64_t width = data.rows + size;
    const auto computed = [&](int64_t first, std::vector<int64_t> of_slots) {
        Values block{std::vector<double>(std::size_t(size * width)), {}, {}, std::move(of_slots)};
        for (int64_t i = 0; i < size; ++i) {
            block.ids.push_back(first + i);
            for (std::size_t s = 0; s < block.of_slots.size(); ++s)
                block.kernel[std::size_t(i * width) + s] = data.product(first + i, block.of_slots[s]);
            for (int64_t k = 0; k < size; ++k) block.within.push_back(data.product(first + i, first + k));
        }
        return block;
    };
    Source source(data, solver.table());
    const auto ids_of_slots = [&] {
        std::vector<int64_t> ids;
        for (int32_t slot = 0; slot < solver.table().slots(); ++slot) ids.push_back(solver.table()[slot].id);
        return ids;
    };
    const typename PatternRows<double>::Loan loan(solver.rows(), source);
    for (int64_t first = 0; first < data.rows; first += size) {
        auto ahead = std::async(std::launch::async, computed, first, ids_of_slots());
        Values block = ahead.get();
        std::vector<double> diagonal;
        for (int64_t i = 0; i < size; ++i) diagonal.push_back(block.within[std::size_t(i * size + i)]);
        solver.feed(Block<double>{size, width, block.kernel.data(), block.within.data()},
                    Examples{size, block.ids.data(), data.labels.data() + first, data.costs.data(), diagonal.data()});
        solver.run(size);
    }
    solver.finish();
}

void sessions_with_kernels_share_their_examples() {
    const Data data(96, 8, 3);
    in_threads([&](int64_t n) {
        if (n % 2 == 0) {
            LaSVM<double> solver(LaSVMOptions{}, n == 0 ? int64_t{1} << 30 : int64_t{1} << 16);  // or rows are dropped
            train(solver, data);
        } else {
            Tracker<double> solver(Tracking::process_reprocess, 5, uint64_t(n), int64_t{1} << 30);
            train(solver, data);
        }
    });
}

void slabs_of_rows_are_touched_ahead() {
    in_threads([](int64_t) {
        RowPool<double> pool;
        std::vector<RowPool<double>::Piece> pieces;
        for (int64_t row = 0; row < 1200; ++row) {
            pieces.push_back(pool.take(8192));
            pieces.back().values[row] = 1;
        }
        for (const auto& piece : pieces) pool.give_back(piece);
    });
}

// ---- Linear models and files ----

void linear_sessions_share_their_examples() {
    const Data data(200, 30, 4);
    in_threads([&](int64_t n) {
        SdmOptions options;
        options.classes = 4, options.seed = uint64_t(n);
        Sdm<double> solver(data.dense(), data.labels.data(), data.costs.data(), data.costs.data(), options);
        for (int k = 0; k < 5; ++k) solver.advance(100000);
        solver.evaluate();
    });
}

void threads_of_one_linear_session_visit_rows_together() {
    const Data data(3000, 12, 4);
    SdmOptions options;
    options.classes = 4, options.threads = threads;
    Sdm<double> solver(data.dense(), data.labels.data(), data.costs.data(), data.costs.data(), options);
    for (int k = 0; k < 20; ++k) solver.advance(3000000);
    solver.evaluate();
}

void stripes_of_one_data_set_are_summed_up_by_several_threads() {
    const Data data(4000, 30, 4);
    const PrimalOptions options{Loss::squared_hinge, Aggregation::interpolation, 2.0, 0.5, 4, true};
    PrimalLosses<double> losses(data.dense(), data.labels.data(), data.costs.data(), nullptr, options);
    const std::size_t size = std::size_t(losses.weight_rows() * losses.lanes());
    const AlignedArray<double> V{int64_t(size)};
    in_threads([&](int64_t n) {
        AlignedArray<double> out{int64_t(size)};
        std::vector<double> curvatures(4);
        for (int64_t stripe = n; stripe < losses.stripes(); stripe += threads) {
            losses.evaluate(stripe, V.data(), out.data());
            losses.product(stripe, V.data(), out.data());
        }
    });
}

// The next block is read while a session works on the one before.
void a_file_is_read_while_a_session_works() {
    std::string text;
    for (int64_t i = 0; i < 600; ++i)
        text += std::to_string(i % 3) + " " + std::to_string(1 + i % 3) + ":1 9:" + std::to_string(i) + "e-3\n";
    SvmlightReader<double> reader(IndexBase::one, 9, 4000);
    std::size_t at = 0;
    const auto next = [&] {
        at += reader.feed(std::string_view(text).substr(at));
        return reader.take();
    };
    SvmlightRows<double> rows = next();
    while (at < text.size()) {
        auto ahead = std::async(std::launch::async, next);
        const int64_t count = int64_t(rows.starts.size()) - 1;
        Matrix<double> X;
        X.rows = count, X.columns = rows.features, X.values = rows.values.begin();
        X.starts = rows.starts.data(), X.columns32 = rows.indices.begin();
        std::vector<int32_t> labels;
        for (int64_t i = 0; i < count; ++i) labels.push_back(int32_t(i % 3));
        const std::vector<double> costs(std::size_t(count), 1.0);
        SdmOptions options;
        options.classes = 3;
        Sdm<double> solver(X, labels.data(), costs.data(), costs.data(), options);
        solver.advance(10000);
        rows = ahead.get();
    }
}

}  // namespace

int main() {
    set_simd_level(simd_levels().back());
    const auto claim = [](const char* name, const std::function<void()>& holds) {
        holds();
        std::printf("%s\n", name);
    };
    const ChainLaRank<double>::Settings settings{1e-10, 5, int64_t{1} << 30, false, 1};
    claim("chains are read while a copy is trained by LaRank",
          [&] { chains_are_read_while_a_copy_is_trained<ChainLaRank<double>>(settings); });
    claim("chains are read while a copy is trained by a perceptron",
          [&] { chains_are_read_while_a_copy_is_trained<ChainPerceptron<double>>(OnlineRule::perceptron, true); });
    claim("features are learnt while others look them up", features_are_learnt_while_others_look_them_up);
    claim("tiles of one table are filled by several threads", tiles_of_one_table_are_filled_by_several_threads);
    claim("sessions with kernels share their examples", sessions_with_kernels_share_their_examples);
    claim("slabs of rows are touched ahead", slabs_of_rows_are_touched_ahead);
    claim("linear sessions share their examples", linear_sessions_share_their_examples);
    claim("threads of one linear session visit rows together", threads_of_one_linear_session_visit_rows_together);
    claim("stripes of one data set are summed up by several threads",
          stripes_of_one_data_set_are_summed_up_by_several_threads);
    claim("a file is read while a session works", a_file_is_read_while_a_session_works);
}
