#!/usr/bin/env bash
# Makes what docs/results/xayn.md tells, and the paper's other rows, from the root of the repository, into build/xayn.
#     experiments/xayn.sh STEP...
#   vocabularies  50,000, 100,000 and 150,000 tokens of ten languages; 100,000 of ten times as much English as of others, with the
#                 smoothing exponents 1.0, 0.7 and 0.3; and an existing one
#   sizes         a semantic ranker of each of SIZES with each of SEEDS: as many pairs, the same steps and shape
#   wide          of 100,000 tokens: without PCA, as wide as the teacher; and at the best rate of the student with PCA, with each of
#                 SEEDS
#   long          of 100,000 tokens: ten times as many steps, five passes in batches of 64
#   rates         of 100,000 tokens, at each of RATES with the seed 0; scores on STS-B dev in nine languages. With WIDTHS=wide those
#                 that are as wide as the teacher
#   tuned         of 100,000 tokens: at the best of these rates, with each of SEEDS; of 50,000 and 150,000, too
#   similarity    similarity within and across languages, of all students that are there
#   retrieval     retrieval within and across languages, of the rankers of 100,000 tokens; MRR@10, nDCG@10 and MAP@100
#   scores        both
#   bundles       the rankers of SIZES with the seed 0, at fp32 and int8
#   bench         time, size and energy beside a model in XLM-R's base shape; where nothing else runs
#   control       WordPiece vocabularies of multilingual BERT's size (105,879 tokens) of the ten languages and of 42, made in the same
#                 way of as much text each, without smoothing, and a semantic ranker of each, with scores
#   pca           the teacher with the PCA that students learn from (12/128 in the paper)
#   teachers      a teacher of similarity (figure 2) and one of relevance (figure 3)
#   taught        a semantic and a relevance ranker of these
#   base          the same of all-mpnet-base-v2, which is 768 wide as the paper's teachers: 12/768, 12/128, 1/768 and 1/128
# See students.sh, too. PAIRS (a language), EPOCHS and RATE change what students learn from, each with an OUT of its own;
# EPOCHS=20 RATE=2e-5 PAIRS=100000 are the paper's.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/xayn}
source experiments/students.sh
MPNET=$OUT/all-mpnet-base-v2
PAIRS=${PAIRS:-20000}
QUESTIONS=${QUESTIONS:-6000}  # of each of the relevance teacher's two files
VOCABULARIES=${VOCABULARIES:-100000-0.7 50000-0.7 150000-0.7 english-1.0 english-0.7 english-0.3}
SIZES=${SIZES:-100000 50000 150000}
BEST_RATE=3e-3  # on STS-B dev, by the step rates
declare -A recipes=([100000]=xayn-semantic [wide]=xayn-semantic-wide)
# The paper's 2e-5 is for 140,000 steps; these are two passes, some thousand steps.
settings=(--parallel "$TRAIN/parallel" --set "parallel.limit=$PAIRS" --set "stages.epochs=${EPOCHS:-2}"
    --set "stages.learning_rate=${RATE:-1e-3}")

stsb_pairs=en-en,de-de,es-es,fr-fr,it-it,nl-nl,pl-pl,pt-pt,ru-ru,en-de,en-es,en-fr,en-it,en-nl,en-pl,en-pt,en-ru
similarity_sets=(--cross-lingual-sts "$EVAL/stsb_multi_mt#$stsb_pairs" --cross-lingual-sts "$EVAL/sts17#en-en,es-es,es-en,tr-en")

# vocabulary SIZE SMOOTHING NAME ENGLISH: a vocabulary of the ten languages, unless it is there
vocabulary() {
    local language texts=(--corpus "en=$4")
    for language in de fr es it pt nl pl ru tr; do texts+=(--corpus "$language=$TRAIN/multilingual/$language.txt.xz"); done
    [ -f "$OUT/$3.json" ] || $COMMAND vocab "${texts[@]}" --size "$1" --smoothing "$2" --against "$OUT/mistral.json" --out "$OUT/$3.json" \
        --json > "$OUT/$3.report"
}

vocabularies() {
    local name
    mkdir -p "$OUT"
    [ -f "$OUT/mistral.json" ] || {
        $PYTHON -m pip download --quiet --no-deps --dest "$OUT" mistral-common==1.13.1
        $PYTHON experiments/xayn_vocabulary.py "$OUT"/mistral_common-*.whl 100000 "$OUT/mistral.json"
    }
    for name in $VOCABULARIES; do
        case $name in
            # Of languages with as much text each, smoothing changes nothing: ten times as much of English for the exponents.
            english-*) vocabulary 100000 "${name#english-}" "$name" "$TRAIN/en/wikipedia.txt.xz" ;;
            *) vocabulary "${name%-*}" "${name#*-}" "$name" "$TRAIN/multilingual/en.txt.xz" ;;
        esac
    done
    $PYTHON -m experiments.vocabulary_table "$OUT"/*-[01].[0-9].report --out "$RESULTS/xayn-vocabularies.json" | tee "$OUT/vocabularies.md"
}

# student NAME RECIPE VOCABULARY OPTION...: a student, unless it is there
student() {
    distill "$1" "$2" "${settings[@]}" --set vocabulary.kind=file --set "vocabulary.file=$OUT/$3.json" "${@:4}"
}

# A seed also decides which pairs are drawn.
sizes() {
    local seed size
    for seed in $SEEDS; do
        for size in $SIZES; do student "semantic-$size-seed-$seed" xayn-semantic "$size-0.7" --seed "$seed"; done
    done
}

wide() {
    local seed
    student semantic-wide-seed-0 xayn-semantic-wide 100000-0.7
    for seed in $SEEDS; do
        student "semantic-wide-at-$BEST_RATE-seed-$seed" xayn-semantic-wide 100000-0.7 --set "stages.learning_rate=$BEST_RATE" \
            --seed "$seed"
    done
}

long() { student semantic-long-seed-0 xayn-semantic 100000-0.7 --set stages.epochs=5 --set stages.batch_size=64; }

rates() {
    local rate name language students=()
    for name in ${WIDTHS:-100000}; do
        for rate in ${RATES:-3e-4 1e-3 3e-3 1e-2}; do
            students+=("$OUT/rates/$name-rate-$rate")
            student "rates/$name-rate-$rate" "${recipes[$name]}" 100000-0.7 --set "stages.learning_rate=$rate"
        done
    done
    # `evaluate` reads the file test.tsv of each language.
    for language in en de es fr it nl pl pt ru; do
        mkdir -p "$OUT/stsb_multi_mt-dev/$language"
        cp "$EVAL/stsb_multi_mt/$language/dev.tsv" "$OUT/stsb_multi_mt-dev/$language/test.tsv"
    done
    evaluated xayn-rates "${students[@]}" --cross-lingual-sts "$OUT/stsb_multi_mt-dev#$stsb_pairs" --markdown "$OUT/rates.md"
}

tuned() {
    local seed size
    for seed in $SEEDS; do
        student "semantic-tuned-seed-$seed" xayn-semantic 100000-0.7 --set "stages.learning_rate=$BEST_RATE" --seed "$seed"
        for size in 50000 150000; do
            student "semantic-$size-at-$BEST_RATE-seed-$seed" xayn-semantic "$size-0.7" --set "stages.learning_rate=$BEST_RATE" \
                --seed "$seed"
        done
    done
}

pca() {
    [ -d "$OUT/teacher-128" ] || $PYTHON -m experiments.pca_teacher --teacher $TEACHER --parallel "$TRAIN/parallel" --out "$OUT/teacher-128"
    facts xayn-teacher-128 "$OUT/teacher-128"
}

base() {
    [ -d "$MPNET" ] || $PYTHON -m experiments.unpack_model --out "$MPNET"
    [ -d "$OUT/base-128" ] || $PYTHON -m experiments.pca_teacher --teacher "$MPNET" --parallel "$TRAIN/parallel" --out "$OUT/base-128"
    student semantic-base-seed-0 xayn-semantic 100000-0.7 --teacher "$MPNET"
    student semantic-base-wide-seed-0 xayn-semantic-wide 100000-0.7 --teacher "$MPNET"
    # The teachers in English alone: their other scores take an hour.
    evaluated xayn-base "$OUT"/semantic-base-seed-0 "$OUT"/semantic-base-wide-seed-0 "$OUT/base-128" --against "$MPNET" \
        --cross-lingual-sts "$EVAL/stsb_multi_mt#en-en" --cross-lingual-sts "$EVAL/sts17#en-en"
}

control() {
    local ten=() all=() file language name
    mkdir -p "$OUT/control"
    [ -d "$OUT/words" ] || {
        ${PYTHON3:-python3} -m venv "$OUT/wordfreq"
        "$OUT/wordfreq/bin/python" -m pip install --quiet wordfreq==3.1.1 click
        "$OUT/wordfreq/bin/python" experiments/frequent_words.py "$OUT/words"
    }
    for file in "$OUT"/words/*.txt; do
        language=$(basename "$file" .txt)
        all+=(--corpus "$language=$file")
        case $language in en | de | fr | es | it | pt | nl | pl | ru | tr) ten+=(--corpus "$language=$file") ;; esac
    done
    for name in ten all; do
        local -n texts=$name
        # Without case, as multilingual BERT's and as the lists of words are.
        [ -f "$OUT/words-$name.json" ] || $COMMAND vocab "${texts[@]}" --size 105879 --smoothing 1 --uncased --out "$OUT/words-$name.json" \
            --json > "$OUT/words-$name.report"
        student "control/semantic-words-$name" xayn-semantic "words-$name"
    done
    evaluated xayn-control "$OUT"/control/semantic-words-{ten,all} "${similarity_sets[@]}" --markdown "$OUT/control.md"
}

teachers() {
    [ -d "$OUT/teacher-semantic" ] || $COMMAND distill --recipe xayn-semantic-teacher --scored "$EVAL/stsb/train.tsv" \
        --dev "$EVAL/stsb/dev.tsv" --out "$OUT/teacher-semantic" --resume
    local kind columns header pairs=()
    for kind in medquad_qa:question,answer wikipedia_title_lead:title,lead; do
        columns=${kind#*:} kind=${kind%%:*}
        [ -f "$OUT/$kind.tsv" ] || {
            xz -dc "$TRAIN/pairs/$kind.tsv.xz" | {
                IFS= read -r header && echo "$header"
                shuf -n "$QUESTIONS" --random-source=<(yes)
            } > "$OUT/$kind-drawn.tsv"
            $COMMAND mine --pairs "$OUT/$kind-drawn.tsv#$columns" --out "$OUT/$kind.tsv"
        }
        pairs+=(--pairs "$OUT/$kind.tsv")
    done
    [ -d "$OUT/teacher-relevance" ] || $COMMAND distill --recipe xayn-relevance-teacher "${pairs[@]}" --out "$OUT/teacher-relevance" \
        --resume
}

taught() {
    student semantic-taught-seed-0 xayn-semantic 100000-0.7 --teacher "$OUT/teacher-semantic"
    student relevance-taught-seed-0 xayn-relevance 100000-0.7 --teacher "$OUT/teacher-relevance"
    facts xayn-taught "$OUT"/teacher-{semantic,relevance} "$OUT"/{semantic,relevance}-taught-seed-0
}

# Sets the array `teachers` to those that are there beside the default one.
find_teachers() {
    local name
    teachers=()
    for name in teacher-semantic teacher-relevance teacher-128; do
        [ ! -d "$OUT/$name" ] || teachers+=("$OUT/$name")
    done
}

# find_students NAME...: sets the array `students` to those of the students that are there
find_students() {
    local name
    students=()
    for name in $(printf "$OUT/%s-seed-* " "$@"); do [ ! -d "$name" ] || students+=("$name"); done
}

similarity() {
    local students teachers
    find_students 'semantic-*' 'relevance-*'
    find_teachers
    evaluated xayn "${students[@]}" "${teachers[@]}" --against $TEACHER "${similarity_sets[@]}" --markdown "$OUT/scores.md"
}

retrieval() {
    local students teachers retrieval=() set
    find_students 'relevance-*' semantic-100000 semantic-wide semantic-long semantic-tuned semantic-taught semantic-base semantic-base-wide
    find_teachers
    for set in scifact cacm; do retrieval+=(--retrieval "$EVAL/retrieval/$set"); done
    evaluated xayn-retrieval "${students[@]}" "${teachers[@]}" --against $TEACHER "${retrieval[@]}" --cross-lingual-retrieval \
        "$EVAL/retrieval/xquad#en-en,de-de,es-es,ru-ru,tr-tr,de-en,es-en,ru-en,tr-en" --markdown "$OUT/retrieval.md"
}

scores() {
    similarity
    retrieval
}

bundles() {
    local size precision
    for size in $SIZES; do
        for precision in fp32 int8; do
            [ -d "$OUT/bundle-$size-$precision" ] || $COMMAND export "$OUT/semantic-$size-seed-0" --precision $precision --role semantic \
                --out "$OUT/bundle-$size-$precision"
        done
    done
    facts xayn-bundles "$OUT"/bundle-*
}

bench() {
    [ -d "$OUT/xlm-r" ] || $PYTHON -m experiments.random_teacher --out "$OUT/xlm-r" $(printf -- '--text %s ' "$TRAIN"/multilingual/*.txt.xz)
    # The students in PyTorch at fp32 too: like for like, as in the paper.
    $PYTHON -m edgeembed.papers.xayn.cost_table "student, int8=$OUT/bundle-100000-int8" "student, fp32=$OUT/bundle-100000-fp32" \
        "student, PyTorch=sentence-transformer:$OUT/semantic-100000-seed-0" \
        "student as wide as the teacher, PyTorch=sentence-transformer:$OUT/semantic-wide-seed-0" \
        --against "XLM-R base shape, random weights=sentence-transformer:$OUT/xlm-r" --texts "$EVAL/stsb/dev.tsv" \
        --out "$RESULTS/xayn-table-3.json" --force
}

[ $# -gt 0 ] || { echo "$0: no step; expected some of those that its first lines describe" >&2 && exit 2; }
for step in "$@"; do
    case $step in
        vocabularies | sizes | wide | long | rates | tuned | similarity | retrieval | scores | bundles | bench) $step ;;
        pca | base | control | teachers | taught) $step ;;
        *) echo "$0: no step $step; expected one of those that its first lines describe" >&2 && exit 2 ;;
    esac
done
