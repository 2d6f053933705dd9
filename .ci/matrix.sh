#!/usr/bin/env bash
# matrix.sh [--install] [--smoke] [CELL...]: the tests that need Spark, on other versions of PySpark and Python, each in a virtual
# environment of its own below MATRIX (.matrix). All that is installed comes from the package index that pip uses.
#
# A cell is `pyspark-4.0` (a series), `pyspark-newest` (what pip chooses for `pip install .`) or `python-3.10` (that Python,
# and what pip chooses); the interpreter comes from PATH, or from PYTHONS, a list of executables. A cell whose
# interpreter is missing is skipped, and the summary says so. --smoke: one short story instead of all of tests/spark.
# --install: only make the environments.
set -euo pipefail
cd "$(dirname "$0")/.."
. .ci/packages.sh
unset PYTHONDONTWRITEBYTECODE

matrix=${MATRIX:-.matrix}
all=(pyspark-4.0 pyspark-4.1 pyspark-4.2 pyspark-4.3 pyspark-newest python-3.10 python-3.13)
suites=(tests/spark)
[ -d tests/oracle ] && suites+=(tests/oracle)
extras='.[dev]'
options=(-n "${WORKERS:-2}")
only_install=
if [ "${1:-}" = --install ]; then
    shift
    only_install=yes
fi
if [ "${1:-}" = --smoke ]; then
    shift
    suites=(tests/smoke)
    extras='.'
    options=(-m '')
fi
[ $# -gt 0 ] && all=("$@")

# find_python VERSION: the executable of that Python.
find_python() {
    local candidate
    for candidate in ${PYTHONS:-} "python$1"; do
        if "$candidate" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2> /dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

# install CELL: its environment, made where it is missing.
install() {
    local wanted=(pyspark) python=
    case $1 in
        pyspark-newest) ;;
        pyspark-*) wanted=("pyspark==${1#pyspark-}.*") ;;
        python-*) python=$(find_python "${1#python-}") || return 3 ;;
        *) say "matrix.sh: no such cell: $1"; return 2 ;;
    esac
    [ -x "$matrix/$1/bin/python" ] || .ci/venv.sh "$matrix/$1" "$python"
    "$matrix/$1/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --upgrade \
        "$extras" "${wanted[@]}" 'pytest>=8.2' 'pytest-timeout>=2.3' 'hypothesis>=6.100' 'pytest-xdist>=3.6'
}

results=()
failed=0
done=passed
[ -n "$only_install" ] && done=installed
for cell in "${all[@]}"; do
    code=0
    install "$cell" || code=$?
    if [ "$code" = 3 ]; then
        results+=("SKIPPED  $cell: no such Python on PATH or in PYTHONS")
        continue
    fi
    python=$(realpath -s "$matrix/$cell/bin/python")
    # from another directory: what is imported there is what was installed
    what=$(cd / && "$python" -c 'import platform, acidsql, pyspark; print("Python", platform.python_version(), "PySpark", pyspark.__version__)') || code=$?
    if [ "$code" = 0 ] && [ -z "$only_install" ]; then
        say "--- $cell: $what"
        "$python" -m pytest -q -p no:cacheprovider "${options[@]}" "${suites[@]}" || code=$?
    fi
    if [ "$code" = 0 ]; then
        results+=("$done   $cell: $what")
    else
        results+=("FAILED   $cell: $what")
        failed=1
    fi
done
printf '%s\n' '' "${results[@]}"
exit "$failed"
