"""``python -m viscoil`` is the same as ``viscoil``."""

import sys

from viscoil.cli import main

sys.exit(main())
