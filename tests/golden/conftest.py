"""What pytest must not collect here: the scripts that made the fixtures need PyTorch."""

collect_ignore = ["make_mlp.py", "make_ops.py"]
