"""What the tests of reported faults share: the doors beside the command line, to import."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
