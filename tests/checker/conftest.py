"""Puts the functions that the checker's tests share within their reach."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
