"""``python -m acidsql`` runs the command ``acidsql``."""

from acidsql.cli import main

if __name__ == "__main__":
    main(prog_name="acidsql")
