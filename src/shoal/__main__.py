"""`python -m shoal COMMAND`: the same as the command `shoal`."""

from shoal.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m shoal")
