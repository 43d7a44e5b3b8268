// The concept labeller in single precision.
#include "bindings/concepts.hpp"

void bind_concepts(nb::module_& m) {
    using larank::ConceptCounters;
    using larank::ConceptLexicon;
    bind_struct<ConceptCounters>(m, "ConceptCounters", "sentences", &ConceptCounters::sentences, "mistakes",
                                 &ConceptCounters::mistakes, "updates", &ConceptCounters::updates, "scores",
                                 &ConceptCounters::scores);
    nb::class_<concepts::Corpus>(m, "ConceptCorpus")
        .def(nb::init<Vector<int64_t>, Vector<int32_t>, Vector<int32_t>, Vector<int64_t>, concepts::Universes>(),
             "starts"_a.noconvert(), "words"_a.noconvert(), "labels"_a.noconvert(), "universe_of"_a.noconvert(),
             "universes"_a.noconvert())
        .def_prop_ro("size", &concepts::Corpus::size);
    nb::class_<ConceptLexicon>(m, "ConceptLexicon")
        .def(
            "__init__",
            [](ConceptLexicon* self, Table<double> scores, Vector<uint8_t> is_met) {
                concepts::require(scores.shape(1) == is_met.shape(0), "is_met must be one per symbol");
                concepts::require(are_finite(scores), "scores must be finite");
                new (self) ConceptLexicon(int64_t(scores.shape(0)), int64_t(scores.shape(1)));
                self->scores().assign(scores.data(), scores.data() + scores.size());
                self->is_met() = copied(is_met);
            },
            "scores"_a.noconvert(), "is_met"_a.noconvert())
        .def_prop_ro(
            "scores",
            [](ConceptLexicon& self) {
                return to_numpy(std::vector<double>(self.scores()),
                                {std::size_t(self.words()), std::size_t(self.symbols())});
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "is_met", [](ConceptLexicon& self) { return to_numpy(std::vector<uint8_t>(self.is_met())); },
            nb::rv_policy::move);
    concepts::bind_labeler<float>(m, "ConceptLabeler");
}
