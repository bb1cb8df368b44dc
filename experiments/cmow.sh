#!/usr/bin/env bash
# Makes what docs/results/cmow.md tells, from the root of the repository, into build/cmow.
#     experiments/cmow.sh [STEP...]
#   masked    the teacher of general distillation: all-MiniLM-L6-v2 with a head for masked tokens, trained on SENTENCES sentences
#   general   general distillation of the hybrid: masked language modeling, on as many sentences; and of the sentence embeddings of
#             all-MiniLM-L6-v2, on the same
#   teachers  a teacher of each of TASKS, from all-MiniLM-L6-v2
#   glue      TASKS of GLUE after general distillation, and with teachers of the tasks, from random weights and pretrained, or some
#             ROWS of these: tables 1 to 3 and 8; the learning rate of each, one of RATES, is the best on dev, as in the paper;
#             embeddings-scratch and embeddings-random are further ROWS
#   glue_table
#             the table of the classifiers of TASKS that are there, and of those that are in cmow-glue.json and not there
#   students  hybrid, hybrid in one direction, CMOW and CBOW of sentence embeddings, with each of SEEDS: 60,000 sentences, three times;
#             full tables, random vectors and widths, all as in the paper
#   small     a student of sentence embeddings for ranking: small matrices, low-rank tables; 160,000 sentences, three times
#   scores    similarity and word order of those that are there
#   bundles   the small one for NumPy, at fp32, fp16 and int8, and for ONNX
#   bench     latency beside model2vec's of the same teacher, and the paper's table 5; where nothing else runs
# See students.sh, too.
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-build/cmow}
source experiments/students.sh
MASKED_TEACHER=${MASKED_TEACHER:-$OUT/masked-teacher}  # a masked language model with uncased BERT's vocabulary
SENTENCES=${SENTENCES:-150000}
TASKS=${TASKS:-rte mrpc stsb cola sst2 mnli}
ROWS=${ROWS:-scratch general embeddings pretrained random random-unidirectional pretrained-joint}
RATES=${RATES:-1e-3 1e-4}  # of classifiers
TEACHER_RATE=5e-5  # of teachers of tasks
STATIC="model2vec=model2vec:build/bench-runtime/model2vec@.venv-peers/bin/python"  # from make bench-runtime

masked() {
    [ -d "$OUT/masked-teacher" ] || $PYTHON -m experiments.pretrained_encoder "${corpus[@]}" --start $TEACHER --epochs 1 \
        --learning-rate 2e-4 --limit "$SENTENCES" --out "$OUT/masked-teacher"
    facts cmow-masked-teacher "$OUT/masked-teacher"
}

# The last is to be initialized again (--from-scratch): only its shape counts.
general() {
    local sentences=(--set corpus.limit="$((SENTENCES + 1000))" --set corpus.limit_per_source="$((SENTENCES / 6))"
        --set corpus.max_characters=250)
    distill general cmow-general --teacher "$MASKED_TEACHER" "${corpus[@]}" "${sentences[@]}"
    distill general-embeddings cmow-hybrid "${corpus[@]}" "${sentences[@]}" --set student.dropout=0.1 --set stages.epochs=1
    distill general-unidirectional cmow-general --teacher "$MASKED_TEACHER" "${corpus[@]}" --set student.shape.bidirectional=false \
        --set corpus.limit=2000
}

# classifier FOLDER RATE SEED TASK METRIC ENCODER [OPTION...]: a classifier of a GLUE task, unless it is there
classifier() {
    local out=$1/$2-$3
    [ -d "$out" ] || $KEEP_MEMORY $COMMAND finetune "$6" --train "$GLUE/$4_train.tsv" --dev "$GLUE/$4_dev.tsv" --metric "$5" \
        --out "$out" --seed "$3" --set learning_rate="$2" --set classifier_learning_rate="$2" --encoding diffcat "${@:7}" --json > "$out.json"
}

# task NAME TASK METRIC ENCODER [OPTION...]: a classifier of a GLUE task at each of RATES with the seed 0, and at the best with each of
# SEEDS
task() {
    local folder=$OUT/glue/$1/$2 rate seed
    shift
    mkdir -p "$folder"
    for rate in $RATES; do classifier "$folder" "$rate" 0 "$@"; done
    rate=$($PYTHON -m experiments.glue_table "$folder" --best)
    for seed in $SEEDS; do classifier "$folder" "$rate" "$seed" "$@"; done
}

# each_task FUNCTION: calls it for each of TASKS; name, metric, options, settings (a student's) and epochs (a teacher's)
# are then set
each_task() {
    local line name metric options settings epochs
    GLUE=$OUT/glue/data
    $PYTHON experiments/glue_data.py "$(dirname "$EVAL")" "$GLUE" > "$RESULTS/cmow-glue-data.json"
    for line in "rte accuracy" "mrpc accuracy-f1" "stsb pearson-spearman" "cola matthews" "sst2 accuracy" "mnli accuracy"; do
        read -r name metric <<< "$line"
        case " $TASKS " in *" $name "*) ;; *) continue ;; esac
        # Batches as in the paper. Tasks with more examples have larger ones, and fewer epochs.
        case $name in
            sst2 | mnli) epochs=1 settings=(--set batch_size=128 --set patience=2) ;;
            *) epochs=3 settings=(--set batch_size=64) ;;
        esac
        options=()
        [ "$name" != stsb ] || options=(--score-range 1 5)  # 21 bins
        "$1"
    done
}

task_teacher() {
    local folder=$OUT/glue/teacher/$name
    mkdir -p "$folder"
    classifier "$folder" $TEACHER_RATE 0 "$name" "$metric" $TEACHER "${options[@]}" --encoding joint --set "epochs=$epochs"
}

# row NAME ENCODER [OPTION...]: the classifiers of a task in a row of the table
row() {
    case " $ROWS " in *" $1 "*) task "$1" "$name" "$metric" "$2" "${options[@]}" "${settings[@]}" "${@:3}" ;; esac
}

rows() {
    local taught=(--teacher "$OUT/glue/teacher/$name/$TEACHER_RATE-0" --cache "$OUT/glue/cache")
    row scratch "$OUT/general" --from-scratch  # neither kind of distillation
    row general "$OUT/general"
    row embeddings "$OUT/general-embeddings"
    row pretrained "$OUT/general" "${taught[@]}"
    row random "$OUT/general" "${taught[@]}" --from-scratch
    # Controls of the row embeddings, which has a linear layer and another vocabulary.
    row embeddings-scratch "$OUT/general-embeddings" --from-scratch
    row embeddings-random "$OUT/general-embeddings" "${taught[@]}" --from-scratch
    row random-unidirectional "$OUT/general-unidirectional" "${taught[@]}" --from-scratch
    case $name in cola | sst2) return ;; esac
    row pretrained-joint "$OUT/general" "${taught[@]}" --encoding joint
}

teachers() { each_task task_teacher; }
glue() { each_task rows; }

glue_table() {
    local file=$RESULTS/cmow-glue.json options
    read -ra options <<< "$(printf -- '--task %s ' $TASKS)"
    [ ! -f "$file" ] || options+=(--known "$file")
    $PYTHON -m experiments.glue_table "$OUT/glue" "${options[@]}" --out "$file" | tee "$OUT/glue.md"
}

embeddings=(--set corpus.max_characters=250 --set stages.epochs=3 --set stages.checkpoint_steps=235 --dev "$EVAL/stsb/dev.tsv")

# A seed also decides which sentences are drawn.
students() {
    local seed name
    for seed in $SEEDS; do
        for name in cmow-hybrid cmow-hybrid-unidirectional cmow cbow; do
            distill "$name-seed-$seed" $name "${corpus[@]}" "${embeddings[@]}" --seed "$seed" --set corpus.limit=61000 \
                --set corpus.limit_per_source=10000 --set vocabulary.kind=trimmed --set vocabulary.size=16000
        done
    done
}

small() {
    distill hybrid-small cmow-hybrid-small "${corpus[@]}" "${embeddings[@]}" --set corpus.limit=161000 \
        --set corpus.limit_per_source=20000
}

scores() {
    local students=() name
    for name in "$OUT"/{hybrid-small,general-embeddings,general} "$OUT"/*-seed-*; do [ ! -d "$name" ] || students+=("$name"); done
    evaluated cmow "${students[@]}" --against $TEACHER "${sts[@]}" --word-order "$TRAIN/en/ted.txt.xz" --markdown "$OUT/scores.md"
}

bundles() {
    for precision in fp32 fp16 int8; do
        [ -d "$OUT/numpy-$precision" ] || $COMMAND export "$OUT/hybrid-small" --backend numpy --precision $precision \
            --out "$OUT/numpy-$precision"
    done
    [ -d "$OUT/onnx-int8" ] || $COMMAND export "$OUT/hybrid-small" --precision int8 --out "$OUT/onnx-int8"
    facts cmow-bundles "$OUT"/numpy-* "$OUT"/onnx-*
}

bench() {
    $COMMAND bench "hybrid-small=$OUT/numpy-int8" "hybrid-small, ONNX=$OUT/onnx-int8" --against "$STATIC" --texts "$EVAL/stsb/dev.tsv" \
        --no-sweep --out "$RESULTS/cmow-costs.json" --markdown "$OUT/bench.md" --force
    local names=(bert-base distilbert mobilebert tinybert) peers=() name
    [ -d "$OUT/peers" ] || $PYTHON -m experiments.random_peers "${names[@]}" --out "$OUT/peers" \
        --tokenizer "$($PYTHON -c "from edgeembed.models import find_torch_model; print(find_torch_model('$TEACHER'))")"
    for name in "${names[@]}"; do peers+=("$OUT/peers/$name"); done
    $PYTHON -m edgeembed.papers.cmow.cost_table "hybrid, PyTorch=$OUT/general" "hybrid-small, PyTorch=$OUT/hybrid-small" "hybrid-small, NumPy, int8=$OUT/numpy-int8" \
        "$STATIC" "$TEACHER" "${peers[@]}" \
        --batches 2 --texts "$EVAL/stsb/dev.tsv" --out "$RESULTS/cmow-table-5.json" --force
}

[ $# -gt 0 ] || set -- masked general teachers glue glue_table students small scores bundles bench
for step in "$@"; do
    case $step in
        masked | general | teachers | glue | glue_table | students | small | scores | bundles | bench) $step ;;
        *) echo "$0: no step $step; expected some of those in its first lines" >&2 && exit 2 ;;
    esac
done
