"""Quantization of an ONNX model: one precision a file, and what several of them share."""
