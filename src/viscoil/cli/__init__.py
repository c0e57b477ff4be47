"""The command line: parsing and printing only. Every command imports what it needs when it runs."""

import os
import sys

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    from viscoil.errors import ViscoilError

    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from viscoil.cli.commands import dispatch

        code = dispatch(tokens)
        sys.stdout.flush()
        return code
    except ViscoilError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone: there is nobody left to tell. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
