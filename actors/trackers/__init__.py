"""Adapters of the tracker port (kopt.tracker): TensorBoard, Weights & Biases."""
