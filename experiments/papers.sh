#!/usr/bin/env bash
# Compares the encoders in the wheel with students of the five papers, from the root of the repository, into build/papers.
#     experiments/papers.sh STEP...
# Steps of docs/results/papers.md:
#   ours     mini, nano and micro from the text of step `long` of simtde-hpd.sh, in as many steps; scores
#   bundles  students of the five papers' shapes, which hardly train, at int8
#   bench    size and latency of these beside the encoders in the wheel; where nothing else runs
# Each of ours is trained at each of RATES, its rate is chosen on STS-B dev, and it is trained at that rate with each of SEEDS. With
# NAMES="mini nano" and the like, only these. See students.sh, too.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/papers}
source experiments/students.sh
NAMES=${NAMES:-mini nano micro}

# One pass in batches of 64: 3,750 steps, in place of the recipe's stages.
ours() {
    local name stage="epochs = 1.0, batch_size = 64, checkpoint_steps = 375, losses = { cosine = 1.0, similarity = 5.0 }"
    local -A rates=([mini]="5e-4 1e-3" [nano]="1e-3 2e-3 4e-3" [micro]="1e-3 3e-3 6e-3")
    for name in $NAMES; do
        RATES=${RATES:-${rates[$name]}} tuned "ours/$name" "$name" "${longer_text[@]}" --set "stages=[{ $stage }]"
    done
    score papers-ours "$OUT/ours" $TEACHER "$OUT"/ours/*-seed-*
}

# shape NAME RECIPE OPTION...: a student that learned next to nothing, since size and latency do not depend on what weights have
# learned, and its bundle
shape() {
    local backend=onnx
    [ "$1" != cmow ] || backend=numpy
    distill "shapes/$1" "$2" --set stages.epochs=0.01 "${@:3}"
    [ -d "$OUT/bundles/$1" ] || $COMMAND export "$OUT/shapes/$1" --backend $backend --precision int8 --out "$OUT/bundles/$1"
}

bundles() {
    local language texts=()
    for language in en de fr es it pt nl pl ru tr; do texts+=(--corpus "$language=$TRAIN/multilingual/$language.txt.xz"); done
    [ -f "$OUT/vocabulary.json" ] || $COMMAND vocab "${texts[@]}" --size 100000 --smoothing 0.7 --out "$OUT/vocabulary.json"
    shape simtde simtde-small "${longer_text[@]}"
    shape hpd hpd-128-no-augmentation --teacher $TEACHER --set student.source= --set student.layers=3 "${longer_text[@]}"
    shape distilcse distilcse-one-stage "${longer_text[@]}"
    shape xayn xayn-semantic --parallel "$TRAIN/parallel" --set parallel.limit=200 --set vocabulary.kind=file \
        --set vocabulary.file="$OUT/vocabulary.json"
    shape cmow cmow-hybrid-small "${longer_text[@]}"
    [ -d "$OUT/bundles/teacher" ] || $COMMAND export $TEACHER --precision int8 --out "$OUT/bundles/teacher"
    facts papers-bundles "$OUT"/bundles/*
}

bench() {
    local name subjects=(mini nano micro)
    for name in simtde hpd distilcse xayn cmow; do subjects+=("$name=$OUT/bundles/$name"); done
    $COMMAND bench "${subjects[@]}" --against "teacher=$OUT/bundles/teacher" --texts "$EVAL/stsb/dev.tsv" --no-sweep \
        --out "$RESULTS/papers-costs.json" --markdown "$OUT/costs.md" --force
}

mkdir -p "$OUT"/{ours,shapes,bundles}
[ $# -gt 0 ] || { echo "$0: no step; expected some of those that its first lines describe" >&2 && exit 2; }
for step in "$@"; do
    case $step in
        ours | bundles | bench) $step ;;
        *) echo "$0: no step $step; expected one of those that its first lines describe" >&2 && exit 2 ;;
    esac
done
