#!/usr/bin/env bash
# Makes what docs/results/distilcse.md tells, from the root of the repository, into build/distilcse.
#     experiments/distilcse.sh STEP...
#   mine     hard negatives for paraphrases
#   weights  PKD's weight, by the score on STS-B dev: prints them, the best first
#   ckd kd pkd prototypes
#            stage 1 by CKD, KD, PKD, and KD weighted by prototype scores, on the same sentences and steps, then the same stage 2
#   one_stage
#            KD on the labeled text alone, in one stage
#   stage_2  stage 2 alone. Each of these is trained at each of RATES, its rate is chosen on STS-B dev, and it is trained at that
#            rate with each of SEEDS; prototypes only at RATE
#   banks    CKD with banks of 0 and 4,096
#   scale    CKD and KD on 240,000 sentences, and CKD on 15,000 with the seed 0, in as many steps: 15 times as many steps as above, in
#            small batches; similarity and geometry
#   starts   CKD for a student as wide as its teacher, from the teacher's layers and from those after SimCSE; scores on STS-B dev, as in
#            the paper's table 3
#   tables   similarity and geometry of all of them, and the scores on STS-B dev after each stage
#   transfer the transfer tasks, of CKD and of stage 2 alone, the paper's SimCSE student
#   costs    what bank, cache, evaluations and checkpoints cost; where nothing else runs
# See students.sh, too.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/distilcse}
source experiments/students.sh
NLI=$TRAIN/pairs/nli_triplets.tsv.xz
MINED=$OUT/mined.tsv
STEPS=${STEPS:-240}
SENTENCES=${SENTENCES:-60000}
BATCH=${BATCH:-256}  # in stage 1
PASSES=${PASSES:-0.2}  # over the triplets, in stage 2
RATES=${RATES:-5e-4 1e-3 2e-3}  # with which a student that starts at random learns in so few steps; the paper's is 3e-4, for thousands
WEIGHT=${WEIGHT:-0.001}  # of PKD's distances: the best on STS-B dev (step weights)
RATE=${RATE:-2e-3}  # of the steps that choose no rate: the best for CKD on STS-B dev

# Stage 2 as the recipe has it, on a fifth of the triplets by default.
second=(--set stages.1.epochs="$PASSES" --set stages.1.checkpoint_steps=29)
alone=(--set stages.epochs="$PASSES" --set stages.checkpoint_steps=29 --set stages.batch_size=128)
pairs=(--pairs "$NLI#anchor,positive,hard_negative" --pairs "$MINED")

# sentences COUNT [STEPS]: the options for that many sentences in as many steps of BATCH
sentences() {
    echo --set corpus.max_characters=120 --set "corpus.limit=$(($1 + 1000))" --set "corpus.limit_per_source=$(($1 / 6))" \
        --set "stages.batch_size=$BATCH" --set "stages.epochs=$(python3 -c "print(round(${2:-$STEPS} * $BATCH / $1, 4))")"
}

mine() {
    [ -f "$MINED" ] || $COMMAND mine --pairs "$TRAIN/pairs/tatoeba_pivot_en_paraphrase.tsv.xz#sentence1,sentence2" --out "$MINED"
}

# both FUNCTION NAME RECIPE COUNT STEPS OPTION...: a student of two stages, the first on COUNT sentences
both() {
    # shellcheck disable=SC2046  # options, one a word
    "$1" "$2" "$3" "${corpus[@]}" "${second[@]}" "${pairs[@]}" $(sentences "$4" "$5") "${@:6}"
}

# at_rate NAME RECIPE OPTION...: a student at RATE
at_rate() { distill "$@" --dev "$EVAL/stsb/dev.tsv" --set stages.0.checkpoint_steps=60 --set stages.0.learning_rate="$RATE"; }

# Weights with which PKD's distances, at most 4 a layer, count less or more than the squared distance of embeddings, a mean over dimensions.
weights() {
    local weight
    for weight in 0.001 0.01 0.1; do
        RATE=1e-3 both at_rate "weights/$weight" distilcse-pkd $SENTENCES $STEPS --set stages.losses.patient.weight="$weight"
    done
    $PYTHON experiments/best_on_dev.py --all "$OUT"/weights/* > "$RESULTS/distilcse-weights.json"
    cat "$RESULTS/distilcse-weights.json"
}

ckd() { both tuned distilcse distilcse $SENTENCES $STEPS; }

kd() { both tuned distilcse-kd distilcse-kd $SENTENCES $STEPS; }

pkd() {
    [ -e "$OUT/distilcse-pkd-rate-1e-3" ] || ln -s "weights/$WEIGHT" "$OUT/distilcse-pkd-rate-1e-3"  # the same training
    both tuned distilcse-pkd distilcse-pkd $SENTENCES $STEPS --set stages.losses.patient.weight="$WEIGHT"
}

prototypes() { both at_rate distilcse-prototype-kd-seed-0 distilcse-prototype-kd $SENTENCES $STEPS; }

one_stage() {
    # shellcheck disable=SC2046
    tuned distilcse-one-stage distilcse-one-stage --corpus "$NLI#anchor,positive,hard_negative" --corpus "$MINED#anchor" \
        $(sentences $SENTENCES) --set corpus.limit_per_source=0
}

stage_2() {
    # shellcheck disable=SC2046
    RATES="5e-5 2e-4 1e-3" tuned stage-2-alone simcse "${corpus[@]}" "${pairs[@]}" $(sentences $SENTENCES) "${alone[@]}" \
        --set student.layers=4 --set student.hidden_size=312
}

banks() {
    local size seed
    for size in 0 4096; do
        for seed in $SEEDS; do
            both at_rate "distilcse-bank-$size-seed-$seed" distilcse $SENTENCES $STEPS --seed "$seed" \
                --set stages.losses.contrastive_distillation.bank_size=$size
        done
    done
}

# 3,750 steps of 64, in which the bank of 65,536 is renewed three times. No run may end early: the patience of three epochs is two
# scores on STS-B dev where sentences are few.
scale() {
    local BATCH=64 CHECKPOINT_STEPS=375 to_the_end=(--set stages.0.patience=0)
    SEEDS=0 RATES=1e-3 both tuned scale/distilcse-15000 distilcse 15000 3750 "${to_the_end[@]}"
    RATES="5e-4 1e-3 2e-3" both tuned scale/distilcse-240000 distilcse 240000 3750 "${to_the_end[@]}"
    RATES="2.5e-4 5e-4 1e-3" both tuned scale/distilcse-kd-240000 distilcse-kd 240000 3750 "${to_the_end[@]}"
    # The last is for the comparison with 15,000 sentences, at the same rate.
    score distilcse-scale "$OUT/scale" $TEACHER "$OUT"/scale/*-seed-* "$OUT/scale/distilcse-240000-rate-1e-3"
    evaluated distilcse-scale-geometry "$OUT"/scale/*-seed-* --geometry "$EVAL/stsb/dev.tsv"
    $PYTHON -m experiments.seed_table "$RESULTS/distilcse-scale-geometry.json" | tee "$OUT/scale-geometry.md"
    $PYTHON experiments/best_on_dev.py --all "$OUT"/scale/*-seed-* > "$RESULTS/distilcse-scale-dev.json"  # after each stage
}

starts() {
    local wide=(--set student.hidden_size=0 --set stages.project_to_teacher=false)
    # shellcheck disable=SC2046
    distill starts/simcse-alone simcse "${corpus[@]}" "${pairs[@]}" $(sentences $SENTENCES) "${alone[@]}" --set student.layers=4 \
        --dev "$EVAL/stsb/dev.tsv"
    both tuned starts/teacher distilcse $SENTENCES $STEPS "${wide[@]}"
    both tuned starts/simcse distilcse $SENTENCES $STEPS "${wide[@]}" --set student.source="$OUT/starts/simcse-alone" --set student.layers=0
    $PYTHON experiments/best_on_dev.py --all "$OUT"/starts/{simcse-alone,*-rate-*} > "$RESULTS/distilcse-starts.json"
    cat "$RESULTS/distilcse-starts.json"
}

tables() {
    local students=("$OUT"/*-seed-*) name
    for name in "$OUT"/distilcse-[0-9]*; do [ ! -d "$name" ] || students+=("$name"); done
    score distilcse "$OUT" $TEACHER "${students[@]}"
    $PYTHON experiments/best_on_dev.py --all "${students[@]}" > "$RESULTS/distilcse-dev.json"  # after each stage
    evaluated distilcse-geometry "${students[@]}" --geometry "$EVAL/stsb/dev.tsv"
    $PYTHON -m experiments.seed_table "$RESULTS/distilcse-geometry.json" | tee "$OUT/geometry.md"
}

# Of the tasks at hand SST-2 is left out: its classifiers of 67,000 phrases take longer than all others together.
transfer() {
    evaluated distilcse-transfer "$OUT"/distilcse-seed-* "$OUT"/stage-2-alone-seed-* $TEACHER --transfer "$EVAL/senteval/subj.tsv" \
        --transfer "$EVAL/senteval/trec_train.tsv" --transfer "$EVAL/senteval/mrpc_tok_train.tsv"
    $PYTHON -m experiments.seed_table "$RESULTS/distilcse-transfer.json" --teacher $TEACHER | tee "$OUT/transfer.md"
}

costs() {
    $PYTHON experiments/distilcse_costs.py "$OUT/distilcse-seed-0" "$TRAIN/en/wikipedia.txt.xz" "$EVAL/stsb/dev.tsv" \
        > "$RESULTS/distilcse-costs.json"
}

[ $# -gt 0 ] || { echo "$0: no step; expected some of those that its first lines describe" >&2 && exit 2; }
for step in "$@"; do
    case $step in
        mine | weights | ckd | kd | pkd | prototypes | one_stage | stage_2 | banks | scale | starts | tables | transfer | costs) $step ;;
        *) echo "$0: no step $step; expected some of those in its first lines" >&2 && exit 2 ;;
    esac
done
