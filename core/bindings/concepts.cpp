// The concept labeller in single precision.
#include "bindings/concepts.hpp"

void bind_concepts(nb::module_& m) {
    using larank::ConceptCounters;
    bind_struct<ConceptCounters>(m, "ConceptCounters", "sentences", &ConceptCounters::sentences, "mistakes",
                                 &ConceptCounters::mistakes, "updates", &ConceptCounters::updates, "scores",
                                 &ConceptCounters::scores);
    nb::class_<concepts::Corpus>(m, "ConceptCorpus")
        .def(nb::init<Vector<int64_t>, Vector<int32_t>, Vector<int32_t>, Vector<int64_t>, concepts::Universes>(),
             "starts"_a.noconvert(), "words"_a.noconvert(), "labels"_a.noconvert(), "universe_of"_a.noconvert(),
             "universes"_a.noconvert())
        .def_prop_ro("size", &concepts::Corpus::size)
        .def_prop_ro("words", &concepts::Corpus::words);
    concepts::bind_labeler<float>(m, "ConceptLabeler");
}
