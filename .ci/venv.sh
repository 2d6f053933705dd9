#!/usr/bin/env bash
# venv.sh DIRECTORY [PYTHON]: make a virtual environment with pip, from a Python that acidsql runs on (3.10 to 3.13).
set -euo pipefail
. "$(dirname "$0")/packages.sh"
directory=$1
wanted=${2:-}

fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' 2> /dev/null; }

python=
for candidate in ${wanted:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if command -v "$candidate" > /dev/null && fits "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say "acidsql needs Python 3.10, 3.11, 3.12 or 3.13; ${wanted:-python3} is none of them."
    say "Debian/Ubuntu: apt-get install python3 python3-venv    else: make PYTHON=/path/to/python3.12"
    exit 1
fi

# Debian keeps the part of Python that puts pip into a virtual environment in a package of its own.
if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if ! install_debian "$package"; then
        say "$python cannot make virtual environments: its module ensurepip is missing."
        say "Debian/Ubuntu: sudo apt-get install $package"
        exit 1
    fi
fi
"$python" -m venv "$directory"
