"""Trace torch modules to ONNX, and convert ONNX files."""
