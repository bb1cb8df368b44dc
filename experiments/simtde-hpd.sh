#!/usr/bin/env bash
# Distills and scores SimTDE's and HPD's recipes, from the root of the repository, into build/simtde-hpd.
#     experiments/simtde-hpd.sh STEP...
# Steps of docs/results/simtde.md and hpd.md:
#   simtde   SimTDE's table 2 and ablation study, with its small teacher: SENTENCES sentences, one epoch; scores
#   long     LONG of these rows, SimTDE and those whose weights start at random, on four times the text in small batches: 16 times as
#            many steps; scores
#   base     BASE of the rows with a large teacher, all-mpnet-base-v2: SimTDE-384-L3(768), ablations, LRN-KD-768-L2(768),
#            LMX-KD-384-L12(384); scores
#   timing   SimTDE's table 4, with students of these shapes; where nothing else runs
#   rates    how long teacher embeddings and an epoch take, of sentences of 120 and of 250 characters at most; where nothing else runs
#   hpd      HPD-128, projection-128, whitening-128, of the teacher's last layers: two passes over the same text; with augmentation,
#            as many steps as without, and at 1e-3 as many passes; HPD for as many steps as the baselines take, too, and with the seed 0
#            for ten times as many as two passes; scores
#   dimensions  HPD-128, 256 and 384 and whitening after it, in this way without augmentation; scores
#   hpdtables  HPD's tables 1, 2 and 4 with students that are independent of their teacher, all-mpnet-base-v2: two passes over the same
#            text for each of ROWS and of ENCODERS: minilm (all-MiniLM-L6-v2), masked (its layers after masked language modeling, the
#            step masked of cmow.sh) or tinybert-shape, which is pretrained here; hpd-128-batches-of-64,
#            hpd-128-four-passes, hpd-128-ten-passes and hpd-128-more-text (30,000 sentences of the ten files besides, as many
#            steps as four passes) are further rows; scores
#   retrieval  HPD's table 3: an index of 1,024 lists of captions, of which each picture has five; where nothing else runs
# Each method is trained at each of RATES, its rate is chosen on STS-B dev, and it is trained at that rate with each of SEEDS. SimTDE's
# ablations have the seed 0 alone.
# Steps tried out: SENTENCES=2000 RATES=3e-4 SEEDS=0 OPTIONS="--set stages.epochs=0.1" OUT=/tmp/try. See students.sh, too.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/simtde-hpd}
source experiments/students.sh
NLI=$TRAIN/pairs/nli_triplets.tsv.xz
CAPTIONS=$TRAIN/pairs/captions5_en.tsv.xz
MPNET=$OUT/all-mpnet-base-v2
ENCODERS=${ENCODERS:-minilm masked}
ROWS=${ROWS:-simcse projection-128 hpd-128 hpd-128-augmented hpd-256 hpd-312 hpd-384}  # hpd-312 is of tinybert-shape, hpd-384 of minilm
SENTENCES=${SENTENCES:-60000}
COMPARED="simtde-small simtde-small-all-layers lrn-kd"
SIMTDE="$COMPARED lmx-kd simtde-small-random-table simtde-small-random-table-no-token-loss simtde-small-hidden-states
    simtde-small-kl simtde-small-pair-cosine simtde-small-pair-cosine-mae"
BASE=${BASE:-simtde random-table random-table-no-token-loss all-layers hidden-states lrn-kd lmx-kd}
LONG=${LONG:-simtde-small simtde-small-random-table simtde-small-random-table-no-token-loss lmx-kd simtde-small-hidden-states}

sentences=("${corpus[@]}" --set "corpus.limit=$((SENTENCES + 1000))" --set "corpus.limit_per_source=$((SENTENCES / 6))"
    --set corpus.max_characters=250)

simtde() {
    local name seeds RATES=${RATES:-3e-4 1e-3 3e-3}
    for name in $SIMTDE; do
        [[ " $COMPARED " == *" $name "* ]] && seeds=$SEEDS || seeds=0
        SEEDS=$seeds tuned "simtde/$name" "$name" "${sentences[@]}"
    done
    score simtde "$OUT/simtde" $TEACHER "$OUT"/simtde/*-seed-*
}

# whiten NAME SEED DIM: the student NAME-seed-SEED, whitened as by recipe whitening-128 or hpd-384-whitening-DIM, without training it again,
# if this student is there
whiten() {
    local student=$OUT/$1-seed-$2 out=$OUT/$1-whitening-$3-seed-$2
    [ -d "$out" ] || [ ! -d "$student" ] || $COMMAND export "$student" --dim "$3" --whiten --fit "$NLI#anchor,positive,hard_negative" \
        --precision fp32 --out "$out"
}

# HPD's students here: the teacher's last layers, learning from the sentences of the triplets.
last_layers=(--corpus "$NLI#anchor,positive,hard_negative" --teacher $TEACHER --set student.source= --set student.layers=3)

# Two passes over the text: 1.43 over the 63,900 sentences, about, that synonyms make of 45,908 are as many steps. The baselines take 154
# steps for two passes over the triplets; HPD does so in 0.857 of a pass.
hpd() {
    local name RATES=${RATES:-1e-4 5e-4 1e-3}  # the first is the paper's
    tuned hpd/hpd-128 hpd-128 "${last_layers[@]}" --wordnet "$TRAIN/wordnet" --set stages.epochs=1.43
    RATES=1e-3 tuned hpd/hpd-128-two-passes hpd-128 "${last_layers[@]}" --wordnet "$TRAIN/wordnet" --set stages.epochs=2
    tuned hpd/hpd-128-no-augmentation hpd-128-no-augmentation "${last_layers[@]}" --set stages.epochs=2
    tuned hpd/hpd-128-no-augmentation-154-steps hpd-128-no-augmentation "${last_layers[@]}" --set stages.epochs=0.857
    RATES=1e-3 SEEDS=0 CHECKPOINT_STEPS=180 tuned hpd/hpd-128-no-augmentation-twenty-passes hpd-128-no-augmentation "${last_layers[@]}" \
        --set stages.epochs=20
    for name in projection-128 whitening-128; do
        RATES="3e-5 $RATES" tuned "hpd/$name" "$name" "${last_layers[@]}" --pairs "$NLI" --set stages.epochs=2
    done
    score hpd "$OUT/hpd" $TEACHER "$OUT"/hpd/*-seed-*
    facts hpd-text "$OUT"/hpd/hpd-128-two-passes-seed-*
    $COMMAND evaluate "$OUT/hpd/hpd-128-seed-0" --against $TEACHER --semantic-retrieval "$EVAL/retrieval/scifact" --semantic-retrieval-nlist 64 \
        --out "$RESULTS/hpd-retrieval.json" --markdown "$OUT/hpd-retrieval.md" --force
}

dimensions() {
    local seed dim students=()
    for dim in 128 256 384; do
        RATES=5e-4 tuned "dimensions-$dim" "hpd-$dim" "${last_layers[@]}" --set augmentation.required=false --set stages.epochs=2
    done
    for seed in $SEEDS; do
        for dim in 128 256; do whiten dimensions-384 "$seed" $dim; done
        students+=("$OUT"/dimensions-{128,256,384,384-whitening-128,384-whitening-256}-seed-"$seed")
    done
    evaluated hpd-dimensions "${students[@]}" "${sts[@]}" --markdown "$OUT/dimensions.md"
}

# Rows whose weights start at random, beside those that start from the teacher, for 3,750 steps of 64 in place of 235 of 256.
long() {
    local name RATES=${RATES:-1e-3 3e-3} CHECKPOINT_STEPS=375
    for name in $LONG; do
        tuned "simtde-long/$name" "$name" "${longer_text[@]}" --set stages.batch_size=64
    done
    score simtde-long "$OUT/simtde-long" $TEACHER "$OUT"/simtde-long/*-seed-*
}

rates() {
    local characters
    for characters in 120 250; do
        distill "rates-$characters" simtde-small "${corpus[@]}" --set corpus.limit=9000 --set corpus.limit_per_source=1500 \
            --set corpus.max_characters=$characters --cache "$(mktemp -d)"
    done
    facts simtde-training "$OUT"/rates-{120,250}
}

mpnet() { [ -d "$MPNET" ] || $PYTHON -m experiments.unpack_model --out "$MPNET"; }

# base_row NAME RECIPE OPTION...: the students of a row with a large teacher, if it is one of BASE
base_row() {
    case " $BASE " in *" $1 "*)
        tuned "simtde-base/simtde-base-$1" "$2" --teacher "$MPNET" "${sentences[@]}" "${@:3}" ;;
    esac
}

base() {
    local RATES=${RATES:-3e-4 1e-3 3e-3}
    mpnet
    base_row simtde simtde-base
    base_row random-table simtde-base --set student.table_init=random
    base_row random-table-no-token-loss simtde-small-random-table-no-token-loss --set student.token_dim=384
    base_row all-layers simtde-base --set student.layers=0
    base_row hidden-states simtde-small-hidden-states --set student.token_dim=384
    base_row lrn-kd lrn-kd
    base_row lmx-kd lmx-kd --set student.hidden_size=384 --set head.dim=768
    score simtde-base "$OUT/simtde-base" "$MPNET" "$OUT"/simtde-base/*-seed-*
}

# All in PyTorch at fp32, as in the paper. Time does not depend on what the weights have learned, so the students hardly train.
timing() {
    mpnet
    local name subjects=() few=("${corpus[@]}" --set corpus.limit=2000 --set stages.epochs=0.1)
    distill timing-simtde-base simtde-base --teacher "$MPNET" "${few[@]}"
    distill timing-lmx-kd lmx-kd --teacher "$MPNET" "${few[@]}" --set student.hidden_size=384 --set head.dim=768
    distill timing-simtde-small simtde-small "${few[@]}"
    for name in simtde-base lmx-kd simtde-small; do subjects+=("$name=sentence-transformer:$OUT/timing-$name"); done
    $PYTHON -m edgeembed.papers.simtde.cost_table "${subjects[@]}" "MiniLM=$TEACHER" --against "all-mpnet-base-v2=sentence-transformer:$MPNET" \
        --sts "$EVAL/stsb/test.tsv" --out "$RESULTS/simtde-timing.json" --force
}

pretrain() {
    [ -d "$OUT/tinybert-shape" ] || $PYTHON -m experiments.pretrained_encoder $(printf -- '--corpus %s ' "$TRAIN"/en/*.txt.xz) \
        --limit "${PRETRAINING_SENTENCES:-1500000}" --out "$OUT/tinybert-shape"
}

# row NAME RECIPE OPTION...: the students of a row of HPD's tables, if it is one of ROWS
row() { case " $ROWS " in *" $1 "*) tuned "hpd-$encoder/$1" "${@:2}" ;; esac; }

# 3,000 sentences of each of the ten files, the same in each run.
more_text() {
    local file
    [ ! -f "$OUT/more.txt" ] || return 0
    for file in "${corpus[@]}"; do
        [ "$file" = --corpus ] || xz -dc "$file" | awk 'length >= 10 && length <= 120' | shuf -n 3000 --random-source=<(yes)
    done > "$OUT/more.txt.new"
    mv "$OUT/more.txt.new" "$OUT/more.txt"
}

# The teacher's principal components, which an HPD student of 128 dimensions is to reach.
teacher_128() {
    [ -d "$OUT/teacher-128" ] || $PYTHON -m experiments.pca_teacher --teacher "$MPNET" --corpus "$NLI#anchor,positive,hard_negative" \
        --limit 5000 --out "$OUT/teacher-128"
    facts hpd-teacher-128 "$OUT/teacher-128"
}

hpdtables() {
    mpnet
    more_text
    teacher_128
    local text=(--corpus "$NLI#anchor,positive,hard_negative" --teacher "$MPNET" --set stages.epochs=2)
    local labeled=(--pairs "$NLI" --set stages.epochs=2) encoder source width dim seed shape RATES=${RATES:-1e-4 5e-4 1e-3}
    for encoder in $ENCODERS; do
        mkdir -p "$OUT/hpd-$encoder"
        case $encoder in
            tinybert-shape)
                pretrain
                source=$OUT/tinybert-shape width=312
                ;;
            masked) source=build/cmow/masked-teacher width=384 ;;
            minilm) source=$TEACHER width=384 ;;
        esac
        row simcse whitening-128 "${labeled[@]}" --teacher "$source" --set head.whiten_dim=0
        row projection-128 projection-128 "${labeled[@]}" --teacher "$source"
        for dim in 128 256 $width; do
            shape=(--set "student.source=$source" --set "head.dim=$dim" --set "stages.losses.mse=$dim")
            row "hpd-$dim" hpd-128-no-augmentation "${text[@]}" "${shape[@]}"
            row "hpd-$dim-augmented" hpd-128 "${text[@]}" --wordnet "$TRAIN/wordnet" "${shape[@]}"
            row "hpd-$dim-batches-of-64" hpd-128-no-augmentation "${text[@]}" "${shape[@]}" --set stages.batch_size=64
            row "hpd-$dim-four-passes" hpd-128-no-augmentation "${text[@]}" "${shape[@]}" --set stages.epochs=4
            row "hpd-$dim-ten-passes" hpd-128-no-augmentation "${text[@]}" "${shape[@]}" --set stages.epochs=10
            row "hpd-$dim-more-text" hpd-128-no-augmentation "${text[@]}" --corpus "$OUT/more.txt" "${shape[@]}" --set stages.epochs=2.43
        done
        for seed in $SEEDS; do
            whiten "hpd-$encoder/simcse" "$seed" 128
            for dim in 128 256; do whiten "hpd-$encoder/hpd-$width" "$seed" $dim; done
        done
        score "hpd-$encoder" "$OUT/hpd-$encoder" "$MPNET" "$OUT/hpd-$encoder"/*-seed-* "$source" "$OUT/teacher-128"
    done
}

# How many of the captions are also in the text that HPD learned from.
shared_captions() {
    awk -F'\t' '
        FNR == 1 { next }
        NR == FNR { for (i = 1; i <= 3; i++) learned[$i]; next }
        !($1 in seen) { seen[$1]; queries++; if ($1 in learned) shared_queries++ }
        { for (i = 2; i <= NF; i++) if ($i != "" && !($i in found)) { found[$i]; documents++; if ($i in learned) shared++ } }
        END { printf "{\"queries\": %d, \"shared_queries\": %d, \"documents\": %d, \"shared_documents\": %d}\n", queries,
            shared_queries, documents, shared }' <(xz -dc "$NLI") <(xz -dc "$CAPTIONS")
}

retrieval() {
    [ -f "$OUT/captions.tsv" ] || xz -dc "$CAPTIONS" | awk -F'\t' -v OFS='\t' '
        NR == 1 { print "question1", "question2", "is_duplicate"; next }
        { for (i = 2; i <= NF; i++) if ($i != "") print $1, $i, 1 }' > "$OUT/captions.tsv"
    $COMMAND evaluate "$OUT/hpd/hpd-128-two-passes-seed-0" --against $TEACHER --semantic-retrieval "$OUT/captions.tsv" \
        --out "$RESULTS/hpd-captions.json" --markdown "$OUT/captions.md" --force
    shared_captions > "$RESULTS/hpd-captions-shared.json"
}

mkdir -p "$OUT"/{simtde,simtde-long,simtde-base,hpd}
[ $# -gt 0 ] || { echo "$0: no step; expected some of those that its first lines describe" >&2 && exit 2; }
for step in "$@"; do
    case $step in
        simtde | long | base | timing | rates | hpd | dimensions | hpdtables | retrieval) $step ;;
        *) echo "$0: no step $step; expected one of those that its first lines describe" >&2 && exit 2 ;;
    esac
done
