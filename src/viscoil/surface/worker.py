"""One process that makes surfaces for :mod:`viscoil.surface.job`: a line of JSON in, a line of JSON out, per frame.

The first line names the run and the options, every further one a frame. The process ends when its input does, so none
outlives the one that started it by more than a frame.
"""

import json
import os
import sys


def main() -> None:
    """Answer requests until there are no more."""
    # Answers go to what was standard output; anything a library prints goes to the errors.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from viscoil.errors import ViscoilError
    from viscoil.io.run import Run
    from viscoil.surface import store
    from viscoil.surface.options import settings

    first = json.loads(sys.stdin.readline())
    run, options = Run(first["run"]), settings(**first["options"])
    for line in sys.stdin:
        index = int(json.loads(line)["frame"])
        try:
            mesh = store.make(run, index, options)
            answer = {"frame": index, "row": store.row(mesh), "time": mesh.time}
        except ViscoilError as error:
            answer = {"frame": index, "error": str(error)}
        except Exception as error:  # this frame is lost, the next one may be fine
            answer = {"frame": index, "error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
