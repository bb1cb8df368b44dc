"""Distil, export, run and measure sentence encoders that live on the device."""
