"""`python -m admm_softmax`: the command."""

import sys

from admm_softmax.cli import main

sys.exit(main())
